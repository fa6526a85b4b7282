"""The commands whose answers are kept, and how an answer becomes a fingerprint."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ncu_roofline
from ncu_roofline.cli import main

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "ncu_roofline" / "data" / "demo"
H100 = ROOT / "tests" / "bench" / "measured_h100"
FINGERPRINTS = Path(__file__).with_name("fingerprints.json")
VIEWS = ("roofline", "time", "instruction", "phases")
TABLES = {
    "roofline": ("points", "roofs", "kernels"),
    "time": ("points", "machines", "absent"),
    "instruction": ("points", "roofs"),
    "phases": ("points", "sampled"),
}


@dataclass(frozen=True)
class Case:
    """One command: its words, and the file that it writes where it does not print."""

    name: str
    words: tuple[str, ...]
    suffix: str = ""


def of_report(report: str) -> Iterator[Case]:
    """All that is kept of one report."""
    for view in VIEWS:
        yield Case(f"show-{view}.json", ("show", report, "--view", view, "--json"))
        yield Case(f"show-{view}.txt", ("show", report, "--view", view, "--width", "120", "--all", "--notes"))
    yield Case("show-auto.json", ("show", report, "--ceilings", "auto", "--json"))
    yield Case("show-launches.json", ("show", report, "--clock", "max", "--by", "launch", "--json"))
    yield Case("show-embedded.json", ("show", report, "--source", "embedded", "--json"))
    for view, tables in TABLES.items():
        for table in tables:
            yield Case(f"{view}-{table}.csv", ("render", report, "--view", view, "--table", table), ".csv")
    yield Case("points.parquet", ("render", report), ".parquet")
    yield Case("points.nersc", ("render", report, "--format", "nersc"), ".dat")
    yield Case("tables.md", ("render", report), ".md")
    yield Case("source.json", ("source", report, "--json"))
    yield Case("source.txt", ("source", report, "--width", "120"))
    yield Case("explain.json", ("explain", report, "--json"))
    yield Case("explain.txt", ("explain", report))
    yield Case("advise.json", ("advise", report, "--json"))
    yield Case("advise.txt", ("advise", report, "--verbose", "--all-findings"))
    yield Case("annotated.ncu-rep", ("annotate", report), ".ncu-rep")


def of_many() -> Iterator[Case]:
    """What takes several files, or none."""
    pair = ("v100-ncu2022.2-full-1.ncu-rep", "v100-ncu2022.2-full-2.ncu-rep")
    yield Case("compare.json", ("compare", *pair, "--json"))
    yield Case("compare.txt", ("compare", *pair, "--width", "120"))
    yield Case("compare-gate.txt", ("compare", *pair, "--fail-if", "time > 0.5 * baseline"))
    yield Case("portability.json", ("portability", f"A={pair[0]}", f"B={pair[1]}", "--json"))
    yield Case("portability.txt", ("portability", f"A={pair[0]}", f"B={pair[1]}"))
    yield Case("ranks.json", ("ranks", *pair, "--rank", r"full-(\d)", "--json"))
    yield Case("ranks.txt", ("ranks", *pair, "--rank", r"full-(\d)", "--width", "120"))


def of_ours() -> Iterator[Case]:
    """The same with files that the tests hold."""
    steps = tuple(f"gpp-nw{step}.ncu-rep" for step in range(1, 7))
    yield Case("steps-compare.json", ("compare", *steps, "--json"))
    yield Case("steps-compare.txt", ("compare", *steps, "--width", "120"))
    yield Case("steps-compare.csv", ("compare", *steps), ".csv")
    yield Case("steps-compare.md", ("compare", *steps), ".md")
    yield Case("steps-trajectory.json", ("show", *steps, "--trajectory", "--json"))
    yield Case("steps-trajectory.txt", ("show", *steps, "--trajectory", "--width", "120"))
    yield Case("steps-measured.json", ("show", *steps, "--ceilings", "ceilings.json", "--json"))
    yield Case("steps-ranks.json", ("ranks", *steps, "--rank", r"nw(\d)", "--json"))
    yield Case("steps-ranks.txt", ("ranks", *steps, "--rank", r"nw(\d)", "--width", "120"))
    yield Case("steps-portability.json", ("portability", *(f"P{n}={path}" for n, path in enumerate(steps)), "--json"))
    table = "gpp-platforms.csv"
    yield Case("table-portability.json", ("portability", table, "--json"))
    yield Case("table-portability.txt", ("portability", table))
    yield Case("table-portability.csv", ("portability", table), ".csv")
    yield Case("table-portability.md", ("portability", table), ".md")
    yield Case("merged.json", ("bench", "merge", "ceilings.json", "ceilings.json"), ".json")
    yield Case("theory.json", ("bench", "theory", "--json"))
    for what in ("architectures", "precisions", "levels", "formats", "inputs", "ceilings"):
        yield Case(f"list-{what}.json", ("list", what, "--json"))


def answer(case: Case, folder: Path) -> tuple[int, bytes, str]:
    """Exit code, what was printed or written, and what was said on standard error."""
    target = folder / f"answer{case.suffix}"
    words = [*case.words, *(("-o", str(target), "--force") if case.suffix else ())]
    out, errors = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
    content = target.read_bytes() if case.suffix and target.exists() else out.buffer.getvalue()  # type: ignore[attr-defined]
    if case.suffix == ".parquet" and code == 0:
        content = as_text_of_parquet(target)
    if case.suffix:
        target.unlink(missing_ok=True)
    return code, content, errors.getvalue().replace(str(target), "TARGET")


def as_text_of_parquet(path: Path) -> bytes:
    """Columns, their metadata and values; not how a release of pyarrow packs them."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    fields = [(field.name, str(field.type), sorted((field.metadata or {}).items())) for field in table.schema]
    return repr((fields, table.to_pydict())).encode()


def normal(name: str, content: bytes) -> bytes:
    """Numbers of JSON to 12 digits: another order of a sum is no other answer; the version of the program is none either."""
    content = content.replace(ncu_roofline.__version__.encode(), b"VERSION")
    if not name.endswith(".json") or not content.strip().startswith((b"{", b"[")):
        return content
    document = json.loads(content, parse_float=lambda text: f"{float(text):.12g}")
    return json.dumps(document, indent=1).encode()


def fingerprint(name: str, code: int, content: bytes, errors: str) -> str:
    """Exit code and the first digits of a hash."""
    folded = re.sub(r"/\S*/", "", errors).encode()  # where the files lie
    return f"{code} {hashlib.sha256(normal(name, content) + b'|' + folded).hexdigest()[:16]}"


def signatures() -> dict[str, str]:
    """How the public functions are called."""
    public: dict[str, Any] = {name: getattr(ncu_roofline, name) for name in ncu_roofline.__all__}
    return {name: str(inspect.signature(each)) for name, each in public.items() if inspect.isfunction(each)}


def laid_out(folder: Path, shared: Path) -> dict[str, list[Case]]:
    """Cases by report, whose files lie in one folder by their names: what is printed does not tell where."""
    with tarfile.open(H100 / "reports.tar.xz") as archive:
        for member in archive.getmembers():
            if content := archive.extractfile(member):
                (folder / Path(member.name).name).write_bytes(content.read())
    for path in [*shared.glob("*.ncu-rep"), *DEMO.iterdir(), H100 / "ceilings.json"]:
        (folder / path.name).symlink_to(path.resolve())
    reports = sorted(path.name for path in folder.glob("*.ncu-rep*"))
    cases = {report: list(of_report(report)) for report in reports} | {"ours": list(of_ours())}
    return cases | ({"many": list(of_many())} if any(shared.glob("v100-ncu2022.2-full-*.ncu-rep")) else {})
