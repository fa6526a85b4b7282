"""What `source` costs, beside `show` of the same report: processor seconds of whole commands, the best of some runs.

    python tests/perf/source.py [REPORT...]         # default: the bundled report with source counters

The launch with most instructions of each report is shown, all of its tables as JSON, and its page.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ncu_roofline import RooflineError, source_roofline

_RUNS = 3
_DEMO = Path(__file__).resolve().parents[2] / "ncu_roofline" / "data" / "demo" / "smooth-made-up.ncu-repz"
_COMMANDS = {"source": ("source",), "source --json": ("source", "--json"), "page": ("source", "--format", "html", "-o", "-")}


def seconds(*words: str) -> float:
    """Processor time of a command, the best of some runs."""
    found = []
    for _ in range(_RUNS):
        before = os.times()
        subprocess.run([sys.executable, "-m", "ncu_roofline", *words], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(found)


def largest(report: str) -> tuple[int, int]:
    """The launch with most instructions among the kernels of a report, and how many it has."""
    columns = source_roofline(report, top=1_000).instruction_columns
    launches = columns["launch"].tolist()
    launch = max(set(launches), key=launches.count)
    return launch, launches.count(launch)


def main(reports: list[str]) -> int:
    """Print a row per report."""
    for report in reports or [str(_DEMO)]:
        try:
            launch, instructions = largest(report)
        except RooflineError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        base = seconds("show", report)
        print(f"{Path(report).name}: {instructions:,} instructions: show {base:.2f} s", end="")
        for name, words in _COMMANDS.items():
            cost = seconds(*words, "--launch", str(launch), report)
            print(f"; {name} {cost:.2f} s, {cost / base:.1f} x", end="")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
