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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.attack.attack import Attack
from tests.attack.bases import made, real
from tests.attack.campaign import BASE, FAMILIES, REPORT, Campaign, Tally, numbers
from tests.attack.commands import Line
from tests.attack.judging import FINDINGS, Finding


def campaign(
    seed: int, first: int, count: int | None, seconds: float | None, with_real: bool, save: str, only: Sequence[str]
) -> Tally:
    """Attacks one after the other; offenders are saved at once, and told."""
    os.environ.update(COLUMNS="120", XDG_DATA_HOME=os.path.join(tempfile.gettempdir(), "attack-no-data"))
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        bases = {**made(), **(real() if with_real else {})}
        one = Campaign(seed, Path(folder), bases, only)
        for number in numbers(first, count, None if seconds is None else time.monotonic() + seconds):
            for attack, line, finding in one.attack(number):
                place = Path(save) / f"{seed}-{number}"
                place.mkdir(parents=True, exist_ok=True)
                (place / REPORT).write_bytes(attack.data)
                (place / BASE).write_bytes(bases[attack.base])
                said = f"{finding.kind}: ncu-roofline {' '.join(line.words(REPORT, BASE, 'result'))}\n{finding.why}\n\n"
                with (place / "found.txt").open("a", encoding="utf-8") as stream:
                    stream.write(f"{attack.family}: {attack.what[:500]} (of {attack.base})\n{said}")
                _tell(seed, number, attack, line, finding)
        return one.tally


def _tell(seed: int, number: int, attack: Attack, line: Line, finding: Finding) -> None:
    why = finding.why.strip().splitlines()[-1:]
    print(f"--replay {seed}:{number}  {attack.family}: {attack.what[:90]!r} of {attack.base}")
    print(f"    {finding.kind}: ncu-roofline {line.text}: {''.join(why)[:300]!r}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--reports", type=int, default=None)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--real", action="store_true", help="attack real reports, too (NCU_ROOFLINE_REPORTS)")
    parser.add_argument("--save", default="build/attack", help="where offending reports go (default: build/attack)")
    parser.add_argument(
        "--only", action="append", default=[], choices=list(FAMILIES), help="attacks of this family; repeatable"
    )
    parser.add_argument("--replay", metavar="SEED:NUMBER")
    args = parser.parse_args(argv)
    started = time.monotonic()
    if args.replay:
        seed, first = map(int, args.replay.split(":"))
        tallies = [campaign(seed, first, 1, None, args.real, args.save, args.only)]
    else:
        seed = time.time_ns() % 10**6 if args.seed is None else args.seed
        count = 500 if args.reports is None and args.seconds is None else args.reports
        shares = [None if count is None else count // args.jobs + (job < count % args.jobs) for job in range(args.jobs)]
        firsts = [sum(share or 10**6 for share in shares[:job]) for job in range(args.jobs)]
        with ProcessPoolExecutor(args.jobs) as pool:
            parts = [
                pool.submit(campaign, seed, first, share, args.seconds, args.real, args.save, args.only)
                for first, share in zip(firsts, shares, strict=True)
            ]
            tallies = [part.result() for part in parts]
    return report(seed, tallies, time.monotonic() - started)


def report(seed: int, tallies: Sequence[Tally], seconds: float) -> int:
    """Print what came of it; the exit code."""
    classes = sum((tally.classes for tally in tallies), type(tallies[0].classes)())
    families = sum((tally.families for tally in tallies), type(tallies[0].families)())
    reports = sum(tally.reports for tally in tallies)
    slowest = max(tally.slowest for tally in tallies)
    print(f"seed {seed}: {reports} reports, {sum(classes.values())} runs in {seconds:.0f} s, slowest {slowest:.1f} s")
    print("reports: " + ", ".join(f"{count} {name}" for name, count in sorted(families.items())))
    print("runs: " + ", ".join(f"{classes[name]} {name}" for name in ("ok", "explained", *FINDINGS)))
    return 1 if any(classes[name] for name in FINDINGS) else 0


if __name__ == "__main__":
    sys.exit(main())
