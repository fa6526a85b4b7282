"""python -m tests.frozen: see the package."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from tests.frozen.cases import FINGERPRINTS, ROOT, answer, fingerprint, laid_out, normal, signatures


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen")
    parser.add_argument("--write", action="store_true", help="write the fingerprints instead of comparing with them")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="what was printed, a folder per report")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only reports whose name holds one of these; many: what takes several"
    )
    options = parser.parse_args()
    if options.keep:
        options.keep = options.keep.resolve()
    os.environ["COLUMNS"] = "120"
    kept = json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    differing = 0
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name) / "in", Path(name)
        folder.mkdir()
        os.environ["XDG_DATA_HOME"] = str(out / "no-data")
        shared = Path(os.environ.get("NCU_ROOFLINE_REPORTS", ROOT.parent / "shared" / "data" / "reports"))
        every = laid_out(folder, shared)
        os.chdir(folder)
        for report, cases in every.items():
            if options.names and not any(word in report for word in options.names):
                continue
            before = kept.setdefault(report, {})
            for case in cases:
                code, content, errors = answer(case, out)
                now = fingerprint(case.name, code, content, errors)
                if options.keep:
                    (options.keep / report).mkdir(parents=True, exist_ok=True)
                    kind = normal(case.name, content) + (f"\n--- exit {code}\n{errors}".encode() if code or errors else b"")
                    (options.keep / report / case.name).write_bytes(kind)
                if before.get(case.name) != now and not options.write:
                    differing += 1
                    print(f"{report}: {case.name}: {before.get(case.name)} -> {now}", flush=True)
                before[case.name] = now
        if not options.names and kept.get("signatures") != signatures() and not options.write:
            differing += 1
            print("signatures of public functions differ")
        kept["signatures"] = signatures()
    if options.write:
        FINGERPRINTS.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")
        print(f"{len(kept.keys() - every.keys()) - 1} reports that are not here: not renewed")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
