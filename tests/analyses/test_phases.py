"""Samples over time, beside phases-samples.frames: odd ones, files and pictures of them, and NVIDIA's reports."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline import read_report
from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.phases.frames import MOST_SLICES, PhaseRoofline, phase_roofline
from ncu_roofline.analyses.phases.picture import figure, phase_chart
from ncu_roofline.analyses.phases.text import launches
from ncu_roofline.chips.tables import counter_of
from ncu_roofline.model.extract import samples_of
from ncu_roofline.rendering.chart import Panel, Timeline
from tests.analyses.data import first
from tests.analyses.phases_made import DRAM, FP64, L2, SECONDS, SM, TWO_PHASES, Group, Made, steps
from tests.factory import complete, kernel, report

WORK, TRAFFIC = 1e9, 2.5e8


def phases(folder: Path, made: Made | None = None, **more: Any) -> PhaseRoofline:
    return phase_roofline(report(folder / "p.ncu-rep", (made or Made()).kernel(**more)))


def only(frames: PhaseRoofline) -> dict[str, Any]:
    (row,) = frames.sampled.to_dict("records")
    return row


def band(frames: PhaseRoofline, name: str) -> np.ndarray[Any, Any]:
    return frames.bands[frames.bands["band"] == name]["utilisation"].to_numpy()


def test_slices_by_hand(tmp_path: Path) -> None:
    """Runs of other lengths stand on one axis; work and traffic are exact in sum; each slice has the share of its samples."""
    found = phases(tmp_path)
    half = MOST_SLICES // 2
    for name, early, late in (("sm", 20, 60), ("fp64", 10, 90), ("dram", 80, 20), ("l2", 40, 10)):
        values = band(found, name)
        assert len(values) == MOST_SLICES
        assert values[1 : half - 1] == pytest.approx(early / 100, rel=1e-6), name
        assert values[half + 1 : -1] == pytest.approx(late / 100, rel=1e-6), name
    points = found.points
    assert (points["work"].sum(), points["traffic"].sum()) == pytest.approx((WORK, TRAFFIC))
    assert (points["performance"] * (points["end"] - points["begin"])).sum() == pytest.approx(WORK)
    for row, work, moved in ((points.iloc[5], 10, 80), (points.iloc[-5], 90, 20)):
        assert row["performance"] == pytest.approx(2 * work / 100 * WORK / SECONDS, rel=0.02)
        assert row["intensity"] == pytest.approx(WORK / TRAFFIC * work / moved, rel=0.03)
    half_of_peak = 0.5 * SECONDS * points["bandwidth_roof"].iloc[0]
    assert only(found)["scale"] == pytest.approx(TRAFFIC / half_of_peak, rel=0.01)


def test_slices_without_work_have_no_dots_and_break_the_path(tmp_path: Path) -> None:
    idle = Group({FP64: lambda share: 0.0 if 0.4 <= share < 0.6 else 50.0, SM: steps(1, 1)})
    found = phases(tmp_path, Made((idle, TWO_PHASES[1])))
    (path,) = launches(found)[0].paths
    assert (len(found.points), len(path.dots) < MOST_SLICES, 20 in path.slices) == (MOST_SLICES, True, False)


def test_values_left_out_are_told_where_nothing_can_be_drawn(tmp_path: Path) -> None:
    """All but those that are 0, before the launch and behind it; or all."""
    samples = {name: values for index, one in enumerate(TWO_PHASES) for name, values in one.samples(index).items()}
    negative = phases(tmp_path, **{DRAM: [(time, -value) for time, value in samples[DRAM]]})
    nothing = phases(tmp_path, **{name: [(time, math.nan) for time, _ in values] for name, values in samples.items()})
    assert (only(negative)["status"], only(nothing)["status"]) == ("too-few-samples", "no-samples")
    for found, count in ((negative, sum(value > 0 for _, value in samples[DRAM])), (nothing, sum(map(len, samples.values())))):
        assert f"{count:,} values that no sampler can have given were left out" in " ".join(text_table(found).split())


def test_samples_that_are_elsewhere_lost_or_mixed_up(tmp_path: Path) -> None:
    expected = phases(tmp_path)
    later = phases(tmp_path, **{L2: [(time + 10**7, value) for time, value in TWO_PHASES[1].samples(1)[L2]]})
    assert np.isnan(band(later, "l2")).all()
    assert "Less than half of each slice was sampled of L2." in text_table(later)
    instances = Made().kernel().instances
    holed = phases(tmp_path, **{DRAM: [one for i, one in enumerate(instances[DRAM]) if not 80 <= i < 120]})
    assert (np.isnan(band(holed, "dram")).any(), only(holed)["dots"], "?" in text_table(holed)) == (True, "gaps", True)
    shuffled = {name: sorted(values, key=lambda pair: hash((str(pair[0]), "x"))) for name, values in instances.items()}
    assert phases(tmp_path, **shuffled).bands.equals(expected.bands)


@pytest.mark.parametrize("form", first(["json", "md", "html", "svg"]))
def test_odd_times_make_no_odd_numbers(tmp_path: Path, form: str) -> None:
    """None, and beyond 64 bits of nanoseconds."""
    for odd in ([(None, 1.0)] * 10, [(2**64 - 1 - i, 50.0) for i in range(100)]):
        found = phases(tmp_path, **{DRAM: odd})
        assert (found.points[["work", "traffic", "performance"]] >= 0).all(axis=None)
        assert found.bands["utilisation"].fillna(0).between(0, 1.5).all()
        assert render(found, form)


def test_metrics_of_the_profiler_are_not_taken_for_samples(tmp_path: Path) -> None:
    units = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": [(unit, 50.0) for unit in range(108)]}
    path = report(tmp_path / "r.ncu-rep", replace(kernel(complete()), instances=units))
    with read_report(path) as opened:
        assert samples_of(opened.kernels[0].metrics) is None
    names = {"pmsampling:sm__x.sum": "sm__x.sum", "TriageAC.tpc__w.sum": "tpc__w.sum", "sm__x.sum": "sm__x.sum"}
    names |= {"SM_A.TriageSCG.sm__x_y.avg.per_cycle_active": "sm__x_y.avg.per_cycle_active", "inst_executed": "", "": ""}
    assert {name: counter_of(name) for name in names} == names


def test_pictures_and_files_hold_the_same_slices(tmp_path: Path) -> None:
    """Of a launch that was sampled to its end, and of one that was not, whose rest is drawn as unknown."""
    found = phases(tmp_path)
    assert len(render(found, "csv").decode().splitlines()) == 1 + MOST_SLICES
    assert len(render(found, "csv", table="bands").decode().splitlines()) == 1 + 4 * MOST_SLICES
    assert text_table(found, ascii_only=True).isascii()
    shown = phase_chart(found)
    bands, path = shown.rows[0] if shown else (None, None)
    assert isinstance(bands, Timeline)
    assert isinstance(path, Panel)
    assert next(values for name, _, _, values in bands.bands if name == "DRAM") == pytest.approx(band(found, "dram").tolist())
    cut = phases(tmp_path, Made(tuple(replace(one, until=0.6) for one in TWO_PHASES)))
    assert b"the rest is unknown, not idle" in render(cut, "html")
    assert [patch for axes in figure(cut).axes for patch in axes.patches if patch.get_gid() == "unknown"]
    drawn = figure(found)
    sheet, panel = drawn.axes
    height = drawn.get_size_inches()[1] * 72  # bands are as high as the roofline beside them
    boxes = [patch.get_bbox() for patch in sheet.patches if patch.get_facecolor()[3] == 0]
    assert min(box.y0 for box in boxes) == pytest.approx(panel.get_position().y0 * height)
    assert max(box.y1 for box in boxes) == pytest.approx(panel.get_position().y1 * height, abs=2)


def test_reports_of_nvidia(ncu_releases: dict[str, Path]) -> None:
    """Those that come with Nsight Compute 2024.2, of an RTX A4500: sampled to their end, and DRAM as busy as was counted."""
    root = next((one for one in ncu_releases.get("2024.2", Path()).parents if one.name == "2024.2"), Path("/nowhere"))
    examples = sorted(root.glob("usr/share/doc/nsight-compute/examples/*/*.ncu-rep"))
    if not examples:
        pytest.skip("no examples of Nsight Compute 2024.2")
    found = phase_roofline(examples)
    sampled = found.sampled
    assert (set(sampled["status"]), set(sampled["sampled_share"])) == ({"ok"}, {1})
    assert (sampled["blocks"] == sampled["blocks_started"]).all()
    assert sampled["stretch"].between(0.98, 1.08).all()
    means = found.bands[found.bands["band"] == "dram"].groupby("report")["utilisation"].mean()
    scales = sampled.set_index("report")["scale"][means[means > 0.5].index]
    assert (len(scales), scales.between(0.95, 1.02).all()) == (4, True)
    assert (len(found.points) > 50, (found.points["fraction"] < 1).all()) == (True, True)
