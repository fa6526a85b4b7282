"""Attack the commands with reports that nobody should have made.

    python -m tests.attack --reports 500 --seed 1 [--jobs 2]      # what is run before a release
    python -m tests.attack --seconds 3600 [--real]                # another seed each time; --real: real reports, too
    python -m tests.attack --replay SEED:NUMBER                   # one report again, with what was found

Exit code 1 if something was found.  Each offending report is saved (--save), with the command and the finding beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.attack.campaign import BASE, REPORT, Campaign
from tests.attack.changes import FAMILIES
from tests.attack.reports import made, real
from tests.attack.runs import FINDINGS
from tests.report.factory import write

MANY = 10**6  # more than there is time for


def campaign(seed: int, first: int, count: int | None, args: argparse.Namespace) -> tuple[Counter[str], Counter[str], float]:
    """Attacks one after the other, so many or for a time; offenders are saved at once, and told."""
    os.environ.update(COLUMNS="120", XDG_DATA_HOME=os.path.join(tempfile.gettempdir(), "attack-no-data"))
    until, bases = time.monotonic() + (args.seconds or 0), {**made(), **(real() if args.real else {})}
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        one = Campaign(seed, Path(folder), bases, args.only)
        for number in range(first, first + (count or MANY)):
            for attack, line, finding in one.attack(number):
                place, what = Path(args.save) / f"{seed}-{number}", f"{attack.family}: {attack.what[:300]} (of {attack.base})"
                place.mkdir(parents=True, exist_ok=True)
                write(place, attack.data, REPORT)
                write(place, bases[attack.base], BASE)
                met = f"{finding.kind}: ncu-roofline {' '.join(line.words(REPORT, BASE))}"
                with (place / "found.txt").open("a", encoding="utf-8") as stream:
                    stream.write(f"{what}\n{met}\n{finding.why}\n\n")
                why = "".join(finding.why.strip().splitlines()[-1:])[:300]
                print(f"--replay {seed}:{number}  {what!r}\n    {met}: {why!r}", flush=True)
            if count is None and time.monotonic() > until:
                break
        return one.classes, one.families, one.slowest


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--reports", type=int, help="default: 500")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="default: another one each time")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--real", action="store_true", help="attack real reports, too (NCU_ROOFLINE_REPORTS)")
    parser.add_argument("--save", default="build/attack", help="where offending reports go (default: build/attack)")
    parser.add_argument("--only", action="append", default=[], choices=list(FAMILIES), help="of this family; repeatable")
    parser.add_argument("--replay", metavar="SEED:NUMBER")
    args, started = parser.parse_args(argv), time.monotonic()
    if args.replay:
        seed, first = map(int, args.replay.split(":"))
        tallies = [campaign(seed, first, 1, args)]
    else:
        seed, count = args.seed, args.reports if args.reports or args.seconds else 500
        each = MANY if count is None else -(-count // args.jobs)
        starts = range(0, args.jobs * MANY if count is None else count, each)
        with ProcessPoolExecutor(args.jobs) as pool:
            parts = [pool.submit(campaign, seed, start, count and min(each, count - start), args) for start in starts]
            tallies = [part.result() for part in parts]
    classes, families = (sum((tally[index] for tally in tallies), Counter[str]()) for index in range(2))
    seconds, slowest = time.monotonic() - started, max(tally[2] for tally in tallies)
    print(f"seed {seed}: {families.total()} reports, {classes.total()} runs in {seconds:.0f} s, slowest {slowest:.1f} s")
    print("reports: " + ", ".join(f"{count} {name}" for name, count in sorted(families.items())))
    print("runs: " + ", ".join(f"{classes[name]} {name}" for name in ("ok", "explained", *FINDINGS)))
    return 1 if any(classes[name] for name in FINDINGS) else 0


if __name__ == "__main__":
    sys.exit(main())
