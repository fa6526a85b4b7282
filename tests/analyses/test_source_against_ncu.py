"""Sums of source lines are those of the source page of NVIDIA's own ncu, and what lies on which line as well."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.model.selection import Selection
from tests.analyses.source_launches import with_counts

pytestmark = [pytest.mark.ncu, pytest.mark.reports, pytest.mark.exhaustive]
COLUMNS = {
    "# Samples": "samples",
    "smsp__pcsamp_sample_count": "samples",
    "Warp Stall Sampling (Not-issued Cycles)": "not_issued",
    "Instructions Executed": "executed",
    "Thread Instructions Executed": "active",
    "Predicated-On Thread Instructions Executed": "threads",
    "L2 Theoretical Sectors Global": "requested",
    "L2 Theoretical Sectors Global Ideal": "ideal",
    "L1 Wavefronts Shared": "shared",
}
SECTORS = {"requested": 32, "ideal": 32}
Lines = dict[tuple[str, int], dict[str, float]]


def pages(ncu: Path, report: Path, home: Path) -> Iterator[tuple[str, Lines, list[tuple[str, int, int]]]]:
    """Of each function of each launch its mangled name, its lines with their sums, and (file, line, address)."""
    words = [
        ncu,
        "--import",
        report,
        "--page",
        "source",
        "--csv",
        "--print-source",
        "cuda,sass",
        "--print-kernel-base",
        "mangled",
    ]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    file = function = before = ""
    header: list[str] = []
    lines: Lines = {}
    places: list[tuple[str, int, int]] = []
    seen: set[str] = set()
    line = 0
    for row in csv.reader(io.StringIO(done.stdout.decode("utf-8", "replace"), newline="")):
        if row[:1] == ["File Path"]:
            file = row[1]
        elif row[:1] == ["Function Name"]:
            function = row[1]
            if seen and (function != before or file in seen):
                yield before, lines, places
                lines, places, seen = {}, [], set()
            seen.add(file)
            before = function
        elif row[:1] == ["Line No"]:
            header = row
        elif len(row) == len(header):
            line = int(row[0]) if row[0] not in ("", "-") else line
            if row[2] in ("", "-"):
                lines[file, line] = {name: float(value) for name, value in zip(header, row, strict=True) if _number(value)}
            elif row[2] != "...":  # further down the line's instructions go on
                places.append((file, line, int(row[2], 16)))
    if seen:
        yield before, lines, places


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_lines(real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """Of some inlined instructions ncu prints the line that they are inlined at as well; here the innermost counts."""
    compared = placed = doubled = 0
    for path in with_counts(real_reports):
        found = source_roofline(path, select=Selection(launch=((0, 10**6),)))
        frame = found.instructions.assign(file=[os.path.normpath(name) if name else "" for name in found.instructions["file"]])
        mine = dict(iter(frame[frame["file"] != ""].groupby(["launch", "function"], sort=False)))
        printed = list(pages(ncu_releases[max(ncu_releases)], path, tmp_path))[: len(mine)]  # then of launches without counts
        assert [function for function, _, _ in printed] == [function for _, function in mine], path
        for (function, lines, places), rows in zip(printed, mine.values(), strict=True):
            addresses = Counter(address for _, _, address in places)
            unclear = {(file, line) for file, line, address in places if addresses[address] > 1}
            own = set(zip(rows["file"], rows["line"], rows["address"], strict=True))
            assert own <= set(places), f"{path} {function}"
            assert {place for place in places if addresses[place[2]] == 1} <= own, f"{path} {function}"
            placed, doubled = placed + len(own), doubled + len(places) - len(own)
            sums = rows.groupby(["file", "line"]).sum(numeric_only=True)
            for key in (lines.keys() & set(sums.index)) - unclear:
                for name, column in COLUMNS.items():
                    if name in lines[key] and not rows[column].isna().any():
                        assert sums.loc[key, column] == SECTORS.get(column, 1) * lines[key][name], (
                            f"{path} {function} {key} {name}"
                        )
                        compared += 1
    assert compared > 1000
    assert placed > 10_000
    assert doubled < 0.15 * placed
