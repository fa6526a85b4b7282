"""The source view of real reports: sums against NVIDIA's counters, and nothing above a roof."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ncu_roofline.analyses import text_table
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.frames import INT32, WORKS, SourceRoofline
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
    compared = 0
    for name, found in shown.items():
        for row in found.totals.query("counter > 0 and sum == sum").itertuples():
            if "next to nothing" not in row.notes:
                assert abs(row.ratio - 1) <= ALTERNATING.get(row.quantity, 0.01), f"{name} {row}"
                compared += 1
    assert compared > 250


def test_work_is_exact(shown: dict[str, SourceRoofline]) -> None:
    """By address and by the counters of operations, of deterministic kernels and of others: one pass counts both."""
    works = [found.totals.query("quantity.str.startswith('work') and counter > 0") for found in shown.values()]
    ratios = np.concatenate([one["ratio"].to_numpy() for one in works])
    assert len(ratios) > 50
    np.testing.assert_allclose(ratios, 1, rtol=1e-6)


def within(loops: pd.DataFrame, loop: int) -> set[int]:
    """A loop and those in it."""
    inner = loops[loops["parent"] == loop]["loop"] if loop >= 0 else []
    return {loop}.union(*(within(loops, one) for one in inner))


def highest(points: pd.DataFrame, kind: str) -> float:
    """The highest compute roof of a kind of work."""
    mine = points["precision"].str.partition(".")[0] == kind
    return float(points[mine]["compute_roof"].max())


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
        kinds = WORKS if loop.performance_of == "work" else (INT32,)
        roofs = [highest(points, kind) for kind in kinds if mine[f"work_{kind}"].sum() > 0]
        bandwidth = float(points[points["level"] == "l1"]["bandwidth_roof"].iloc[0])
        limit = min(sum(roofs), intensity * bandwidth)
        speed = work / (samples * float(kernels["seconds"].iloc[0]))
        assert loop.performance == pytest.approx(speed), f"{about} {loop.loop}"
        assert speed <= limit, f"{about} {loop.loop}"
        assert loop.attainable <= limit * (1 + 1e-9), f"{about} {loop.loop}"
        if points["precision"].nunique() == 1:
            assert loop.attainable == pytest.approx(limit), f"{about} {loop.loop}"
        assert MOST_OF_TIME <= samples <= 1 + 1e-9
    return len(told)


def test_nothing_stands_above_its_roof(shown: dict[str, SourceRoofline]) -> None:
    dots = 0
    for name, found in shown.items():
        told = sum(check_loops(found, launch, f"{name} {launch}") for launch in found.loops["launch"].unique())
        for point in found.roofline.points.query("performance == performance").itertuples():
            assert point.performance <= REPEATED * min(point.compute_roof, point.intensity * point.bandwidth_roof), name
        assert (found.loops[found.loops["performance"].isna()]["notes"] != "").all(), name
        every = [loop for one in payload(found)["launches"] for loop in one["loops"]]
        paged = [loop for loop in every if loop["performance"] is not None]
        assert len(paged) == told
        assert all(loop["performance"] <= loop["attainable"] * (1 + 1e-3) for loop in paged)  # rounded
        dots += told
    assert dots > 5


def test_loops_that_never_ran_say_so(shown: dict[str, SourceRoofline]) -> None:
    idle = [note for found in shown.values() for note in found.loops.query("loop >= 0 and executed == 0")["notes"]]
    assert len(idle) >= 4
    assert set(idle) == {"never executed"}


def test_loops_of_kernels_that_dram_binds_are_told_to_stand_against_l1(shown: dict[str, SourceRoofline]) -> None:
    blocks = [block for found in shown.values() for block in text_table(found, by="loop", width=160).split("Sums over ")]
    drawn = [block for block in blocks if "of roof at L1" in block]
    bound = ["DRAM-bound" in block for block in drawn]
    assert ["Bytes of DRAM, which binds the kernel, are known of it alone" in block for block in drawn] == bound
    assert set(bound) == {False, True}


def test_slow_paths_go_with_the_loop_that_calls_them(real_reports: dict[str, Path]) -> None:
    found = source_roofline(real_reports["v100-ncu2022.2-full-1.ncu-rep"])
    loop = found.loops.iloc[0]
    assert loop["share_work"] == 1
    assert loop["notes"] == "with what it calls: __cuda_sm20_div_f64_slowpath_v2, __internal_accurate_pow"
    assert loop["performance"] <= loop["attainable"]
    assert found.findings.iloc[0]["finding"] == "called-library"


def test_shares_of_a_launch_add_up(shown: dict[str, SourceRoofline]) -> None:
    for name, found in shown.items():
        for frame in (found.lines, found.outer_lines, found.instructions, found.loops.query("parent == -1")):
            for share in ("share_samples", "share_work", "share_requested"):
                sums = frame.groupby("launch")[share].sum(min_count=1).dropna()
                np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-6, err_msg=f"{name} {share}")


def test_inlined_functions_have_names(shown: dict[str, SourceRoofline]) -> None:
    functions = shown["rtx3090-ncu2023.1-full-1.ncu-rep"].functions
    compare = functions.query("role == 'inlined' and name == 'cmp'")
    assert (compare["file"].str.endswith("cmp.hxx")).all()
    assert compare["share_samples"].max() > 0.7


def test_called_functions_are_told_apart(shown: dict[str, SourceRoofline]) -> None:
    found = shown["v100-ncu2022.2-full-1.ncu-rep"]
    lines = found.lines.query("launch == 2 and line == -1").set_index("text")["share_samples"]
    assert set(lines.index) == {"__cuda_sm20_div_f64_slowpath_v2", "__internal_accurate_pow"}
    called = found.functions.query("launch == 2 and role == 'called'").set_index("name")["share_samples"]
    assert called["__internal_accurate_pow"] == pytest.approx(lines["__internal_accurate_pow"])


def test_imported_sources_are_found_by_the_end_of_their_path(shown: dict[str, SourceRoofline]) -> None:
    lines = shown["v100-ncu2022.2-full-1.ncu-rep"].lines
    assert lines.query("launch == 2 and line == 280")["text"].str.contains("do k = 1").all()


def test_full_buffers(shown: dict[str, SourceRoofline]) -> None:
    full = {name for name, found in shown.items() if any("buffer" in note for note in found.notes)}
    assert full == {name for name in shown if name.startswith("a100")}


def test_values_that_ncu_did_not_get(real_reports: dict[str, Path]) -> None:
    with pytest.raises(RooflineError, match="no counts by instruction"):
        source_roofline(real_reports[WITHOUT])


def test_it_is_quick(real_reports: dict[str, Path]) -> None:
    """The largest kernel of the reports, 7,463 instructions: 0.5 s of processor time where this was written."""
    path = real_reports["rtx3090-ncu2023.1-full-1.ncu-rep"]
    begin = time.process_time()
    source_roofline(path, select=Selection(launch=((0, 0),)))
    assert time.process_time() - begin < 3
