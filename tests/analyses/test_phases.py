"""The roofline over time inside a kernel: samples to slices, work and traffic per slice, and what is said without them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline import read_report
from ncu_roofline.analyses import ANALYSES, render, text_table
from ncu_roofline.analyses.phases.frames import ACTIVE, CUMULATED, MOST_SLICES, SWITCHED, TOLD, PhaseRoofline, phase_roofline
from ncu_roofline.analyses.phases.picture import figure, phase_chart
from ncu_roofline.analyses.phases.text import launches
from ncu_roofline.chips.tables import counter_of
from ncu_roofline.model.extract import samples_of
from ncu_roofline.rendering.chart import Panel, Point, Timeline
from tests.analyses.phases_made import BLOCKS, DRAM, FP64, GRID, L2, SECONDS, SM, TWO_PHASES, Group, Made, steps
from tests.factory import A100, complete, kernel, report

WORK, TRAFFIC = 1e9, 2.5e8


def phases(folder: Path, made: Made | None = None, **more: Any) -> PhaseRoofline:
    return phase_roofline(report(folder / "p.ncu-rep", (made or Made()).kernel(**more)))


def only(frames: PhaseRoofline) -> dict[str, Any]:
    (row,) = frames.sampled.to_dict("records")
    return row


def band(frames: PhaseRoofline, name: str) -> np.ndarray[Any, Any]:
    return frames.bands[frames.bands["band"] == name]["utilisation"].to_numpy()


class TestTwoPhases:
    @pytest.fixture
    def found(self, tmp_path: Path) -> PhaseRoofline:
        return phases(tmp_path)

    def test_bands_of_runs_of_other_lengths_stand_on_one_axis(self, found: PhaseRoofline) -> None:
        assert only(found)["slices"] == MOST_SLICES
        for name, first, second in (("sm", 20, 60), ("fp64", 10, 90), ("dram", 80, 20), ("l2", 40, 10)):
            values = band(found, name)
            half = MOST_SLICES // 2
            assert values[1 : half - 1] == pytest.approx(first / 100, rel=1e-6), name
            assert values[half + 1 : -1] == pytest.approx(second / 100, rel=1e-6), name

    def test_work_and_traffic_are_exact_in_sum(self, found: PhaseRoofline) -> None:
        assert set(zip(found.points["precision"], found.points["level"], strict=True)) == {("fp64", "dram")}
        assert found.points["work"].sum() == pytest.approx(WORK)
        assert found.points["traffic"].sum() == pytest.approx(TRAFFIC)
        assert (found.points["performance"] * (found.points["end"] - found.points["begin"])).sum() == pytest.approx(WORK)

    def test_a_slice_stands_where_its_shares_put_it(self, found: PhaseRoofline) -> None:
        early, late = found.points.iloc[5], found.points.iloc[-5]
        # 10 of 100 parts of the work in the first half, 80 of 100 of the traffic
        assert early["performance"] == pytest.approx(2 * 0.1 * WORK / SECONDS, rel=0.02)
        assert early["intensity"] == pytest.approx(WORK / TRAFFIC * 10 / 80, rel=0.03)
        assert late["performance"] == pytest.approx(2 * 0.9 * WORK / SECONDS, rel=0.02)
        assert late["intensity"] == pytest.approx(WORK / TRAFFIC * 90 / 20, rel=0.03)
        assert (found.points["fraction"] < 1).all()
        assert set(found.points["notes"]) == {""}
        assert early["metrics"].endswith(f"{FP64}; {DRAM}")

    def test_what_was_sampled_is_told(self, found: PhaseRoofline) -> None:
        row = only(found)
        assert (row["status"], row["dots"], row["groups"], row["sampled_share"]) == ("ok", "", 2, 1.0)
        assert (row["blocks"], row["blocks_started"]) == (GRID, GRID)
        assert row["aligned"] == f"{ACTIVE}, {SWITCHED}"
        assert (row["stretch"], row["shrink"]) == (pytest.approx(1, abs=0.01), pytest.approx(1 / 1.05, abs=0.01))

    def test_the_percent_of_dram_is_scaled_to_what_was_counted(self, found: PhaseRoofline, tmp_path: Path) -> None:
        moved = 0.5 * SECONDS * found.points["bandwidth_roof"].iloc[0]  # half of the peak on average
        assert only(found)["scale"] == pytest.approx(TRAFFIC / moved, rel=0.01)
        assert f"scaled by {TRAFFIC / moved:.2f} to the bytes that were counted" in only(found)["notes"]
        twice = phases(tmp_path, Made(metrics={"dram__bytes.sum": int(2 * TRAFFIC)}))
        assert only(twice)["scale"] == pytest.approx(2 * only(found)["scale"])
        assert twice.points["traffic"].sum() == pytest.approx(2 * TRAFFIC)


@pytest.mark.parametrize(
    ("tells", "metrics", "way"),
    [
        (("switch", "workload"), {DRAM: steps(80, 20)}, TOLD),
        (("switch",), {DRAM: steps(80, 20)}, SWITCHED),
        ((), {DRAM: steps(80, 20)}, CUMULATED),
        ((), {DRAM: steps(80, 20), SM: steps(1, 1)}, ACTIVE),
    ],
)
def test_each_way_finds_the_run(tells: tuple[str, ...], metrics: dict[str, Any], way: str, tmp_path: Path) -> None:
    others = Group({FP64: steps(10, 90)})
    made = Made((others, Group(metrics, before=210e-6, step=1e-6, tells=tells)))
    found = phases(tmp_path, made)
    assert way in only(found)["aligned"]
    assert band(found, "dram")[2:18] == pytest.approx(0.8, rel=0.02)
    assert band(found, "dram")[22:38] == pytest.approx(0.2, rel=0.02)
    assert found.points["traffic"].sum() == pytest.approx(TRAFFIC)


class TestCutOff:
    @pytest.fixture
    def found(self, tmp_path: Path) -> PhaseRoofline:
        return phases(tmp_path, Made(tuple(replace(one, until=0.6) for one in TWO_PHASES)))

    def test_the_rest_is_unknown_and_not_zero(self, found: PhaseRoofline) -> None:
        row = only(found)
        assert row["sampled_share"] == pytest.approx(0.6, abs=0.02)
        assert row["blocks_started"] == pytest.approx(0.6 * GRID, rel=0.02)
        assert found.bands["end"].max() == pytest.approx(0.6 * SECONDS, rel=0.03)
        assert band(found, "dram").min() > 0.1
        assert (row["dots"], len(found.points), math.isnan(row["scale"])) == ("incomplete", 0, True)

    def test_it_is_told_everywhere(self, found: PhaseRoofline) -> None:
        told = "the rest is unknown, not idle"
        assert told in text_table(found)
        assert "phased: 1 ms, the first 600 \N{MICRO SIGN}s in 40 slices" in text_table(found)
        assert told.encode() in render(found, "md")
        assert told.encode() in render(found, "html")
        assert "of 4,096 thread blocks" in only(found)["notes"]
        made = figure(found)
        assert [patch for axes in made.axes for patch in axes.patches if patch.get_gid() == "unknown"]

    def test_blocks_that_nobody_saw_start_tell_it_alone(self, tmp_path: Path) -> None:
        first, second = TWO_PHASES
        few = replace(first, metrics={**first.metrics, BLOCKS: lambda _: 1.0})
        found = phases(tmp_path, Made((few, second)))
        assert (only(found)["sampled_share"], only(found)["dots"]) == (1.0, "incomplete")

    def test_dropped_samples_tell_it(self, tmp_path: Path) -> None:
        found = phases(tmp_path, Made((replace(TWO_PHASES[0], dropped=390), TWO_PHASES[1])))
        assert (only(found)["dropped"], only(found)["dots"]) == (390, "incomplete")
        assert "ncu dropped 390 samples" in only(found)["notes"]


def test_without_sampled_flops_there_are_bands_alone(tmp_path: Path) -> None:
    found = phases(tmp_path, Made((Group({SM: steps(20, 60)}), TWO_PHASES[1])))
    assert (only(found)["dots"], len(found.points)) == ("no-work", 0)
    assert len(found.bands) == 3 * MOST_SLICES
    assert "No dots: no pipe was sampled whose operations are counted." in text_table(found)
    assert launches(found)[0].paths == ()


def test_a_dot_above_its_roof_is_told(tmp_path: Path) -> None:
    bursts = Group({FP64: lambda share: 100.0 if share < 0.1 else 0.0})
    counted = {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 4 * 10**9}
    found = phases(tmp_path, Made((bursts, TWO_PHASES[1]), metrics=counted))
    above = found.points[found.points["fraction"] > 1]
    assert 0 < len(above) < 10
    assert all(note.startswith("above its roof: ") for note in above["notes"])
    assert f"{len(above)} dots above a roof" in text_table(found)


def test_slices_without_work_have_no_dots_and_break_the_path(tmp_path: Path) -> None:
    idle = Group({FP64: lambda share: 0.0 if 0.4 <= share < 0.6 else 50.0, SM: steps(1, 1)})
    found = phases(tmp_path, Made((idle, TWO_PHASES[1])))
    assert len(found.points) == MOST_SLICES
    (path,) = launches(found)[0].paths
    assert len(path.dots) < MOST_SLICES
    assert 20 not in path.slices


def test_too_few_samples(tmp_path: Path) -> None:
    found = phases(tmp_path, Made(tuple(replace(one, step=4e-4) for one in TWO_PHASES)))
    assert only(found)["status"] == "too-few-samples"
    assert "--pm-sampling-interval" in only(found)["notes"]
    assert "1 launch with too few samples (fewer than 4 samples in a pass group" in text_table(found)


def test_without_samples(tmp_path: Path) -> None:
    found = phase_roofline(report(tmp_path / "r.ncu-rep", kernel(complete())))
    assert only(found)["status"] == "no-samples"
    for form in ANALYSES["phases"].formats:
        if form != "parquet":
            assert render(found, form)
    assert "ncu --section PmSampling" in text_table(found)


def test_values_left_out_are_told_where_nothing_can_be_drawn(tmp_path: Path) -> None:
    """All but those that are 0, before the launch and behind it; or all."""
    samples = {name: values for index, one in enumerate(TWO_PHASES) for name, values in one.samples(index).items()}
    negative = phases(tmp_path, **{DRAM: [(time, -value) for time, value in samples[DRAM]]})
    assert only(negative)["status"] == "too-few-samples"
    nothing = phases(tmp_path, **{name: [(time, math.nan) for time, _ in values] for name, values in samples.items()})
    assert only(nothing)["status"] == "no-samples"
    for found, count in ((negative, sum(value > 0 for _, value in samples[DRAM])), (nothing, sum(map(len, samples.values())))):
        assert f"{count:,} values that no sampler can have given were left out" in " ".join(text_table(found).split())


def test_a_band_without_samples_during_the_launch_says_why(tmp_path: Path) -> None:
    later = [(time + 10**7, value) for time, value in TWO_PHASES[1].samples(1)[L2]]
    found = phases(tmp_path, **{L2: later})
    assert np.isnan(band(found, "l2")).tolist() == [True] * only(found)["slices"]
    assert "Less than half of each slice was sampled of L2." in text_table(found)


NAN, LATER = math.nan, 2**61
ODD: dict[str, dict[str, list[tuple[Any, Any]]]] = {
    "numbers that are none": {DRAM: [(10**9 + 1000 * i, NAN if i % 2 else math.inf) for i in range(500)]},
    "negative": {FP64: [(10**9 + 1000 * i, -5.0) for i in range(500)]},
    "texts": {FP64: [("a", "b"), (1, "c")]},
    "no instances": {DRAM: []},
    "no times": {DRAM: [(None, 1.0)] * 10},
    "one sample": {DRAM: [(10**9, 50.0)]},
    "all at once": {DRAM: [(10**9, 50.0)] * 1000},
    "far apart": {DRAM: [(0, 50.0), (LATER, 50.0)]},
    "beyond 64 bits of nanoseconds": {DRAM: [(2**64 - 1 - i, 50.0) for i in range(100)]},
    "zero": {DRAM: [(10**9 + 1000 * i, 0.0) for i in range(500)]},
    "impossible percents": {DRAM: [(10**9 + 1000 * i, 1e300) for i in range(500)]},
    "endless blocks": {BLOCKS: [(10**9 + 1000 * i, 1e308) for i in range(500)]},
    "pass groups that are none": {"profiler__pmsampler_pass_groups": [("x", 5), (3, f"{DRAM},{DRAM}"), (-1, "")]},
    "intervals that are none": {"profiler__pmsampler_interval_time": [(0, NAN), (1, "x")]},
    "an end before its beginning": {
        "profiler__timestamp_workload_start_0": [(LATER, 1)],
        "profiler__timestamp_workload_end_0": [(5, 1)],
    },
    "a run that is nowhere": {
        "profiler__timestamp_workload_start_1": [(5, 1)],
        "profiler__timestamp_workload_end_1": [(6, 1)],
    },
    "dropped without end": {"profiler__pmsampler_dropped_samples": [(0, 1e300), (1, NAN)]},
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("case", ODD)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_odd_samples_make_no_odd_numbers(case: str, tmp_path: Path) -> None:
    found = phases(tmp_path, **ODD[case])
    for name in ("work", "traffic", "performance"):
        assert (found.points[name] >= 0).all()
    assert not (found.bands["utilisation"] > 1.5).any()
    assert (found.bands["utilisation"].fillna(0) >= 0).all()
    for form in ("text", "md", "json", "csv", "html", "svg"):
        assert render(found, form)


def test_samples_in_any_order_are_the_same(tmp_path: Path) -> None:
    made = Made()
    expected, shuffled = phases(tmp_path, made), {}
    for name, values in made.kernel().instances.items():
        shuffled[name] = sorted(values, key=lambda pair: hash((str(pair[0]), "x")))
    assert phases(tmp_path, made, **shuffled).bands.equals(expected.bands)


def test_samples_that_were_lost_in_between_are_unknown(tmp_path: Path) -> None:
    holed = {DRAM: [one for i, one in enumerate(Made().kernel().instances[DRAM]) if not 80 <= i < 120]}
    found = phases(tmp_path, **holed)
    assert np.isnan(band(found, "dram")).any()
    assert only(found)["dots"] == "gaps"
    assert "?" in text_table(found)


def test_a_kernel_is_its_longest_launch_with_samples(tmp_path: Path) -> None:
    launches = [kernel(complete(seconds=5e-3), "void phased<int>(int *)"), Made().kernel(), Made(seconds=2e-3).kernel()]
    path = report(tmp_path / "r.ncu-rep", *launches)
    assert phase_roofline(path).sampled["launch"].tolist() == [2]
    assert phase_roofline(path, by="launch").sampled["launch"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="by must be kernel or launch"):
        phase_roofline(path, by="application")


def test_metrics_of_the_profiler_are_not_taken_for_samples(tmp_path: Path) -> None:
    units = {f"sm__throughput{'.avg.pct_of_peak_sustained_elapsed'}": [(unit, 50.0) for unit in range(108)]}
    path = report(tmp_path / "r.ncu-rep", replace(kernel(complete()), instances=units))
    with read_report(path) as opened:
        assert samples_of(opened.kernels[0].metrics) is None


@pytest.mark.parametrize(
    ("metric", "counter"),
    [
        ("pmsampling:sm__x.sum", "sm__x.sum"),
        ("SM_A.TriageSCG.sm__x_y.avg.per_cycle_active", "sm__x_y.avg.per_cycle_active"),
        ("TriageAC.tpc__w.sum", "tpc__w.sum"),
        ("sm__x.sum", "sm__x.sum"),
        ("inst_executed", ""),
        ("", ""),
    ],
)
def test_names_without_what_stands_in_front(metric: str, counter: str) -> None:
    assert counter_of(metric) == counter


class TestRealReports:
    """The reports that come with Nsight Compute 2024.2, made by NVIDIA on an RTX A4500 with 2023.3."""

    @pytest.fixture
    def examples(self, ncu_releases: dict[str, Path]) -> list[Path]:
        if "2024.2" not in ncu_releases:
            pytest.skip("no Nsight Compute 2024.2")
        root = next(one for one in ncu_releases["2024.2"].parents if one.name == "2024.2")
        found = sorted(root.glob("usr/share/doc/nsight-compute/examples/*/*.ncu-rep"))
        if not found:
            pytest.skip("without its examples")
        return found

    def test_all_of_them_are_sampled_to_their_end(self, examples: list[Path]) -> None:
        found = phase_roofline(examples)
        assert set(found.sampled["status"]) == {"ok"}
        assert (found.sampled["blocks"] == found.sampled["blocks_started"]).all()
        assert (found.sampled["sampled_share"] == 1).all()
        assert found.sampled["stretch"].between(0.98, 1.08).all()

    def test_sampled_percent_of_kernels_that_keep_dram_busy_is_what_was_counted(self, examples: list[Path]) -> None:
        found = phase_roofline(examples)
        means = found.bands[found.bands["band"] == "dram"].groupby("report")["utilisation"].mean()
        scales = found.sampled.set_index("report")["scale"][means[means > 0.5].index]
        assert len(scales) == 4
        assert scales.between(0.95, 1.02).all()

    def test_no_dot_above_a_roof(self, examples: list[Path]) -> None:
        points = phase_roofline(examples).points
        assert len(points) > 50
        assert (points["fraction"] < 1).all()


def blocks(found: PhaseRoofline) -> tuple[Timeline, Panel]:
    """The bands of the longest launch, and the path of its slices."""
    shown = phase_chart(found)
    assert shown
    bands, path = shown.rows[0]
    assert isinstance(bands, Timeline)
    assert isinstance(path, Panel)
    return bands, path


def slices(path: Panel) -> list[Point]:
    return [mark for mark in path.marks if isinstance(mark, Point)]


def test_bands_are_as_high_as_the_roofline_beside_them(tmp_path: Path) -> None:
    made = figure(phases(tmp_path))
    sheet, path = made.axes
    height = made.get_size_inches()[1] * 72
    boxes = [patch.get_bbox() for patch in sheet.patches if patch.get_facecolor()[3] == 0]
    assert min(box.y0 for box in boxes) == pytest.approx(path.get_position().y0 * height)
    assert max(box.y1 for box in boxes) == pytest.approx(path.get_position().y1 * height, abs=2)


def test_formats_hold_the_same_slices(tmp_path: Path) -> None:
    found = phases(tmp_path)
    assert len(render(found, "csv").decode().splitlines()) == 1 + MOST_SLICES
    assert len(render(found, "csv", table="bands").decode().splitlines()) == 1 + 4 * MOST_SLICES
    bands, path = blocks(found)
    assert len(slices(path)) == MOST_SLICES
    assert next(values for name, _, _, values in bands.bands if name == "DRAM") == pytest.approx(band(found, "dram").tolist())
    assert "FP64 at DRAM: " in text_table(found)
    assert text_table(found, ascii_only=True).isascii()
    assert A100["device__attribute_display_name"] in text_table(found)
    assert L2 in set(found.bands["metrics"])
