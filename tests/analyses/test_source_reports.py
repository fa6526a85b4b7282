"""The source view of real reports: sums against NVIDIA's counters and its ncu's own page, and nothing above a roof."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import text_table
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.code import INT32, WORKS
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.page import payload
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.verdict import MOST_OF_TIME, REPEATED
from ncu_roofline.model.selection import Selection
from tests.analyses.source_launches import WITHOUT, with_counts

pytestmark = pytest.mark.reports
EVERYTHING = Selection(launch=((0, 10**6),))
ALTERNATING = {"executed": 0.04, "threads": 0.04, "active": 0.04, "requested": 0.07}
"""How far sums may be from the counters of another pass: warps of these kernels race each other, or sectors are theoretical."""


@pytest.fixture(scope="module")
def shown(real_reports: dict[str, Path]) -> dict[str, SourceRoofline]:
    return {path.name: source_roofline(path, select=EVERYTHING) for path in with_counts(real_reports)}


def test_sums_are_the_counters(shown: dict[str, SourceRoofline]) -> None:
    """Work is exact, by address and by the counters of operations, also of kernels that are not deterministic: one pass counts
    both.  Shares of a launch add up."""
    compared = 0
    for name, found in shown.items():
        for row in found.totals.query("counter > 0 and sum == sum").itertuples():
            if "negligible" not in row.notes:
                margin = 1e-6 if row.quantity.startswith("work") else ALTERNATING.get(row.quantity, 0.01)
                assert abs(row.ratio - 1) <= margin, f"{name} {row}"
                compared += 1
        for frame in (found.lines, found.outer_lines, found.instructions, found.loops.query("parent == -1")):
            sums = frame.groupby("launch")[["share_samples", "share_work", "share_requested"]].sum(min_count=1).to_numpy()
            np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-6, err_msg=name)
    assert compared > 250


def within(loops: pd.DataFrame, loop: int) -> set[int]:
    """A loop and those in it."""
    inner = loops[loops["parent"] == loop]["loop"] if loop >= 0 else []
    return {loop}.union(*(within(loops, one) for one in inner))


def check_loops(found: SourceRoofline, launch: int, about: str) -> int:
    """Each loop with a performance, anew from the instructions, the kernel's time and the roofs of its points."""
    points, kernels, instructions, loops = (
        frame[frame["launch"] == launch]
        for frame in (found.roofline.points, found.roofline.kernels, found.instructions, found.loops)
    )
    told = loops[loops["performance"].notna()]
    if instructions["owner"].nunique() > 1:  # loops have what the functions did that they call
        assert (told["performance"] <= told["attainable"]).all(), about
        return len(told)
    for loop in told.itertuples():
        mine = instructions[instructions["loop"].isin(within(loops, loop.loop))]
        work, samples = mine[loop.performance_of].sum(), mine["samples"].sum() / instructions["samples"].sum()
        intensity = work / (mine["requested"].sum() + mine["local"].sum())
        kinds = [kind for kind in (WORKS if loop.performance_of == "work" else (INT32,)) if mine[f"work_{kind}"].sum() > 0]
        families = points["precision"].str.partition(".")[0]
        highest = sum(points[families == kind]["compute_roof"].max() for kind in kinds)
        limit = min(highest, intensity * points[points["level"] == "l1"]["bandwidth_roof"].iloc[0])
        speed = work / (samples * float(kernels["seconds"].iloc[0]))
        assert loop.performance == pytest.approx(speed), f"{about} {loop.loop}"
        assert max(speed, loop.attainable) <= limit * (1 + 1e-9), f"{about} {loop.loop}"
        if points["precision"].nunique() == 1:
            assert loop.attainable == pytest.approx(limit), f"{about} {loop.loop}"
        assert MOST_OF_TIME <= samples <= 1 + 1e-9
    return len(told)


def test_nothing_stands_above_its_roof(shown: dict[str, SourceRoofline]) -> None:
    dots, bound, idle = 0, [], []
    for name, found in shown.items():
        told = sum(check_loops(found, launch, f"{name} {launch}") for launch in found.loops["launch"].unique())
        for point in found.roofline.points.query("performance == performance").itertuples():
            assert point.performance <= REPEATED * min(point.compute_roof, point.intensity * point.bandwidth_roof), name
        assert (found.loops[found.loops["performance"].isna()]["notes"] != "").all(), name
        idle += found.loops.query("loop >= 0 and executed == 0")["notes"].tolist()
        every = [loop for one in payload(found)["launches"] for loop in one["loops"]]
        paged = [loop for loop in every if loop["performance"] is not None]
        assert len(paged) == told
        assert all(loop["performance"] <= loop["attainable"] * (1 + 1e-3) for loop in paged)  # rounded
        dots += told
        for block in text_table(found, by="loop", width=160).split("Sums over "):
            if "of roof at L1" in block:  # of kernels that DRAM binds it is told that loops stand against L1
                bound.append("DRAM-bound" in block)
                assert ("Bytes of DRAM, which binds the kernel, are known of it alone" in block) == bound[-1]
    assert (dots > 5, set(bound), set(idle), len(idle) >= 4) == (True, {False, True}, {"never executed"}, True)


def test_functions_lines_and_buffers(shown: dict[str, SourceRoofline]) -> None:
    """Inlined and called ones, on the GPP kernel, its loop with the slow paths that it calls, and full buffers of samples."""
    functions = shown["rtx3090-ncu2023.1-full-1.ncu-rep"].functions
    compare = functions.query("role == 'inlined' and name == 'cmp'")
    assert (compare["file"].str.endswith("cmp.hxx").all(), compare["share_samples"].max() > 0.7) == (True, True)
    found = shown["v100-ncu2022.2-full-1.ncu-rep"]
    lines = found.lines.query("launch == 2 and line == -1").set_index("text")["share_samples"]
    assert set(lines.index) == {"__cuda_sm20_div_f64_slowpath_v2", "__internal_accurate_pow"}
    called = found.functions.query("launch == 2 and role == 'called'").set_index("name")["share_samples"]
    assert called["__internal_accurate_pow"] == pytest.approx(lines["__internal_accurate_pow"])
    assert found.lines.query("launch == 2 and line == 280")["text"].str.contains("do k = 1").all()
    loop = found.loops.query("launch == 2 and share_work == 1").iloc[0]
    assert loop["notes"] == "with what it calls: __cuda_sm20_div_f64_slowpath_v2, __internal_accurate_pow"
    assert loop["performance"] <= loop["attainable"]
    full = {name for name, found in shown.items() if any("buffer" in note for note in found.notes)}
    assert full == {name for name in shown if name.startswith("a100")}


def test_a_kernel_that_int32_limits(real_reports: dict[str, Path]) -> None:
    """A kernel of tensor products whose integer arithmetic is what is full."""
    path, one = real_reports["a40-ncu2022.1-full-1.ncu-rep"], Selection(launch=((1, 1),))
    found = source_roofline(path, select=one)
    assert set(roofline(path, select=one).points["precision"]) == {"int32", "tensor.int8"}
    told = found.loops.query("performance == performance")
    seconds = told["share_samples"] * found.roofline.kernels["seconds"][0]
    assert told["performance"].tolist() == pytest.approx((told["work_int32"] / seconds).tolist())
    units = found.totals.set_index("quantity")["unit"]
    assert (len(told), units["work"], units["work_tensor"], units["work_int32"]) == (2, "op", "op", "op")
    assert "which limit it" in text_table(found)


def test_findings_have_a_place_and_a_share(shown: dict[str, SourceRoofline]) -> None:
    where = ["launch", "function", "offset"]
    for name, found in shown.items():
        assert len(found.findings[where].merge(found.instructions[where].drop_duplicates())) == len(found.findings), name
        assert found.findings["share"].between(0.03, 1 + 1e-9).all(), name
    assert sum(len(found.findings) for found in shown.values()) > 20


def test_values_that_ncu_did_not_get_and_how_quick_it_is(real_reports: dict[str, Path]) -> None:
    """The largest kernel of the reports, 7,463 instructions: 0.5 s of processor time where this was written."""
    with pytest.raises(RooflineError, match="no counts by instruction"):
        source_roofline(real_reports[WITHOUT])
    begin = time.process_time()
    source_roofline(real_reports["rtx3090-ncu2023.1-full-1.ncu-rep"], select=Selection(launch=((0, 0),)))
    assert time.process_time() - begin < 3


# NVIDIA's own source page

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
    words = f"--page source --csv --print-source cuda,sass --print-kernel-base mangled --import {report}".split()
    done = subprocess.run([ncu, *words], capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    file, function, before, line, header = "", "", "", 0, list[str]()
    lines, places, seen = Lines(), list[tuple[str, int, int]](), set[str]()
    for row in csv.reader(io.StringIO(done.stdout.decode("utf-8", "replace"), newline="")):
        if row[:1] == ["File Path"]:
            file = row[1]
        elif row[:1] == ["Function Name"]:
            function = row[1]
            if seen and (function != before or file in seen):
                yield before, lines, places
                lines, places, seen = Lines(), [], set()
            seen.add(file)
            before = function
        elif row[:1] == ["Line No"]:
            header = row
        elif len(row) == len(header):
            line = int(row[0]) if row[0] not in ("", "-") else line
            if row[2] in ("", "-"):
                lines[file, line] = sums = {}
                for name, value in zip(header, row, strict=True):
                    with suppress(ValueError):
                        sums[name] = float(value)
            elif row[2] != "...":  # further down the line's instructions go on
                places.append((file, line, int(row[2], 16)))
    if seen:
        yield before, lines, places


@pytest.mark.ncu
@pytest.mark.exhaustive
def test_lines_are_those_of_ncu(real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """Of some inlined instructions ncu prints the line that they are inlined at as well; here the innermost counts."""
    compared = placed = doubled = 0
    for path in with_counts(real_reports):
        frame = source_roofline(path, select=EVERYTHING).instructions
        frame = frame.assign(file=[os.path.normpath(name) if name else "" for name in frame["file"]])
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
                for name in COLUMNS.keys() & lines[key].keys():
                    column = COLUMNS[name]
                    if not rows[column].isna().any():
                        expected = SECTORS.get(column, 1) * lines[key][name]
                        assert sums.loc[key, column] == expected, f"{path} {function} {key} {name}"
                        compared += 1
    assert compared > 1000
    assert placed > 10_000
    assert doubled < 0.15 * placed
