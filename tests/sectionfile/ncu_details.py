"""The rooflines that a real ncu prints for a report (`--page details --print-details all`), as data."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PARTS = {"Peak Work": "work", "Peak Traffic": "traffic", "Achieved Work": "work", "Achieved Traffic": "traffic"}
_KERNEL = re.compile(r"^  \S.*, Context \d+, Stream \d+, Device \d+, CC [\d.]+$")


@dataclass
class PrintedLine:
    """A roof or point: metrics and values as printed, by part ("work", "traffic")."""

    label: str
    parts: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass
class PrintedChart:
    """A chart of a section."""

    section: str
    label: str
    roofs: list[PrintedLine] = field(default_factory=list)
    points: list[PrintedLine] = field(default_factory=list)


def print_details(ncu: Path, report: Path, home: Path, *, stock_only: bool = False) -> str:
    """What ncu prints, with metric names and base units; with `stock_only`, of stock roofline sections only.

    ncu 2024.2 crashes on other tables of a report that has NaN for every metric.
    """
    command = [str(ncu), "--import", str(report), "--page", "details", "--print-details", "all"]
    command += ["--section", "regex:.*Roofline.*"] if stock_only else []
    command += ["--print-metric-name", "name", "--print-units", "base", "--print-fp"]
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    return done.stdout


def read_details(text: str) -> list[list[PrintedChart]]:
    """Charts with at least one roof or point, per kernel, in printed order."""
    kernels: list[list[PrintedChart]] = []
    section = before = part = ""
    line: PrintedLine | None = None
    rules = 0
    for raw in text.splitlines():
        stripped = raw.strip()
        if _KERNEL.match(raw):
            kernels.append([])
        elif stripped.startswith("Section: "):
            section = stripped.removeprefix("Section: ")
        elif stripped.startswith("Table Name : "):
            kernels[-1].append(PrintedChart(section, stripped.removeprefix("Table Name : ")))
        elif stripped in PARTS:
            chart = kernels[-1][-1]
            if before not in PARTS:  # the label stands above the first part
                line = PrintedLine(before)
                (chart.roofs if stripped.startswith("Peak") else chart.points).append(line)
            part, rules = PARTS[stripped], 0
            assert line
            line.parts[part] = []
            before = stripped
            continue
        elif part and stripped.startswith("-----"):
            rules += 1
            if rules == 3:  # above the heading, below it, at the end
                part, before = "", "Peak Work"
            continue
        elif part and rules == 2 and line:
            words = stripped.split()
            line.parts[part].append((words[0], words[-1]))
            continue
        elif part:
            continue
        if stripped:
            before = stripped
    return [[chart for chart in charts if chart.roofs or chart.points] for charts in kernels]


def interval(printed: str) -> tuple[float, float]:
    """Values that print as `printed`; (nan, nan) for nan and n/a."""
    if printed in ("nan", "-nan", "n/a"):
        return float("nan"), float("nan")
    decimals = len(printed.partition(".")[2])
    half = 0.5000001 * 10.0**-decimals
    return float(printed) - half, float(printed) + half
