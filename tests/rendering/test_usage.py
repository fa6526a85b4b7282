"""Verdicts, utilisation of kernels without dots, bands of roofs and caveats: what each format says of them."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle

from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import (
    kernels_of,
    per_kernel,
    reasons,
    tensor_caveat,
    without_dots,
)
from ncu_roofline.analyses.hierarchical.picture import chart, footnotes
from ncu_roofline.analyses.hierarchical.style import Band
from ncu_roofline.base.units import percent, range_text
from ncu_roofline.rendering.table import columns_wide
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.rendering.test_picture import drawn, faults

LEVELS = ("l1", "shared", "l2", "dram")
LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int)"


def words(text: str) -> str:
    """``text`` with its line ends and paddings as single spaces."""
    return " ".join(text.split())


def lines_of(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(name)]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("precisions", [("fp64",), ("fp32", "tensor.fp16", "tensor.int8")])
def test_time_share_and_verdict_stay_at_any_width(width: int, precisions: tuple[str, ...]) -> None:
    text = text_table(make_roofline(5, precisions, levels=LEVELS, zero_flop=2, missing=2, chip="h100"), width=width)
    assert max(map(columns_wide, text.splitlines())) <= width
    headers = [line.split() for line in lines_of(text, "kernel")]
    assert len(headers) == 1  # kernels with dots, without work, without counters
    assert {"time", "share", "verdict", "headroom"} <= set(headers[0])


def test_a_verdict_stands_once_for_a_kernel_and_replaces_the_lowest_roof() -> None:
    roofline = make_roofline(1, ("fp32", "tensor.fp16"), zero_flop=0, mixed=True, chip="h100")
    roofline.kernels["verdict"], roofline.kernels["headroom"] = "compute: FP32 FMA", 1.94
    roofline.kernels["headroom_or_less"] = 0
    text = text_table(roofline, width=140)
    assert text.count("compute: FP32 FMA") == 1
    assert " 1.9x " in lines_of(text, "gpp_kernel")[0]
    assert "  bound by" not in text
    assert render(roofline, "md").decode().count("| compute: FP32 FMA | 1.9x |") == 3  # its rows stand for themselves


def test_views_without_verdicts_name_the_lowest_roof() -> None:
    text = text_table(make_roofline(2, zero_flop=1, usage=False))
    assert "bound by" in text
    assert "verdict" not in text


def test_frames_without_the_columns() -> None:
    whole = make_roofline(2, zero_flop=1, missing=1, usage=False)
    old = [name for name in whole.kernels if whole.kernels[name].notna().any() and (whole.kernels[name] != "").any()]
    needed = {*old, "label", "step", "missing", "notes", "nvtx"}
    kernels = whole.kernels[[name for name in whole.kernels if name in needed]]
    assert "verdict" not in kernels
    fewer = FakeRoofline(whole.points, whole.roofs, kernels)
    for name in ("text", "html", "json"):
        assert render(fewer, name, table="kernels") == render(whole, name, table="kernels")


def test_a_kernel_on_two_gpus_has_two_rows() -> None:
    one, other = make_roofline(1, zero_flop=1, aggregated=True), make_roofline(1, zero_flop=1, aggregated=True, chip="h100")
    frames = ("points", "roofs", "kernels")
    both = FakeRoofline(*(pd.concat([getattr(one, name), getattr(other, name)], ignore_index=True) for name in frames))
    both.kernels["verdict"] = ["memory: L2", "latency", "compute: FP64 FMA", "memory: DRAM"]
    text = text_table(both, width=140)
    assert all(text.count(verdict) == 1 for verdict in ("memory: L2", "compute: FP64 FMA", "memory: DRAM"))
    assert len(kernels_of(both)) == 4


def test_reasons_stand_once_those_of_the_sentences_there() -> None:
    roofline = make_roofline(9)
    order = roofline.kernels.sort_values("recoverable", ascending=False)
    why = order.reason.tolist()
    whole, short = (words(text_table(roofline, width=100, notes=notes)) for notes in (True, False))
    assert [whole.count(reason) for reason in why] == [1] * 10
    assert [short.count(reason) for reason in why] == [1] * 3 + [0] * 7
    document = render(roofline, "md").decode().replace("\\", "")
    assert all(reason in document for reason in why)


def test_launches_of_a_kernel_give_one_reason() -> None:
    roofline = make_roofline(3, zero_flop=0)
    roofline.kernels["kernel"] = roofline.points["kernel"] = "same"
    longest = roofline.kernels.nlargest(1, "seconds").iloc[0]
    roofline.kernels["verdict"] = "latency"
    found = kernels_of(roofline).values()
    assert reasons(found) == [(f"same (launch {longest.launch}, longest of 3)", longest.reason)]


def test_each_verdict_on_a_kernel_has_its_reason() -> None:
    roofline = make_roofline(3, zero_flop=0)
    kernels = roofline.kernels
    kernels["kernel"] = roofline.points["kernel"] = "same"
    kernels["seconds"], kernels["launch"] = [3.0, 2.0, 1.0], [4, 5, 6]
    kernels["verdict"], kernels["reason"] = ["latency", "memory: L2", "latency"], ["idle", "full", "idle"]
    found = kernels_of(roofline).values()
    assert reasons(found) == [("same (launch 4, longest of 2)", "idle"), ("same (launch 5)", "full")]
    text, document = text_table(roofline, width=100), render(roofline, "md").decode().replace("\\", "")
    assert all("same (launch 5): full" in one for one in (text, document))


@pytest.mark.parametrize("usage", [True, False])
def test_no_dots_but_an_answer(usage: bool) -> None:
    roofline = make_roofline(0, zero_flop=2, missing=1, usage=usage)
    for text in (text_table(roofline, width=240), render(roofline, "md").decode().replace("\\", "")):
        assert "No kernel can be drawn" not in text
        assert all(name in text for name in ("transpose_0", "transpose_1", "unmeasured_0", "without floating-point work"))
        assert "ncu-roofline explain" in text
        assert ("busiest" in text) == ("occupancy" in text) == ("waves" in text) == usage
        assert ("verdict" in text) == usage


def test_rows_of_kernels_without_dots() -> None:
    roofline = make_roofline(0, zero_flop=1)
    kernel = roofline.kernels.iloc[0]
    (row,) = lines_of(text_table(roofline, width=200), "transpose_0  ")
    share = percent(kernel.fraction_l2)
    assert f"{kernel.bandwidth_l2 / 1e9:.0f} {share}" in row
    assert f"{100 * kernel.occupancy:.0f} of 50 %" in row
    assert f"{kernel.busiest_unit} {percent(kernel.busiest_fraction)}" in row


def test_zero_work_lacks_nothing() -> None:
    roofline = make_roofline(1, zero_flop=2)
    roofline.kernels.loc[1:, "missing"] = "dram"
    for name in ("text", "md"):
        text = render(roofline, name).decode()
        assert "without floating-point work" in text
        assert "lacks" not in text
        assert "explain" not in text
        assert not re.search(r"\| dram \|", text)
    assert "Not in the report" not in render(roofline, "html").decode()


def test_a_link_to_the_host_without_traffic_is_no_column() -> None:
    roofline = make_roofline(0, levels=("l2", "dram", "system"), zero_flop=1)
    roofline.kernels["fraction_system"] = math.nan
    roofline.kernels["bandwidth_system"] = 300.0
    assert "System" not in lines_of(text_table(roofline, width=200), "kernel")[0]
    roofline.kernels["bandwidth_system"] = 80e9
    assert "System" in lines_of(text_table(roofline, width=200), "kernel")[0]


def test_launches_of_a_kernel_share_bars() -> None:
    roofline = make_roofline(0, zero_flop=3)
    kernels = roofline.kernels
    kernels["kernel"] = ["copy", "copy", "sort"]
    kernels["seconds"] = [3.0, 1.0, 2.0]
    kernels["fraction_l2"] = [0.2, 0.6, math.nan]
    kernels["verdict"] = ["memory: L2", "latency", "latency"]
    kernels["occupancy"], kernels["waves"] = [0.1, 0.4, 0.2], [1.0, 7.0, 3.0]
    copy, sort = per_kernel(without_dots(roofline))
    assert (copy.kernel, copy.seconds, copy.launches, copy.verdict) == ("copy", 4.0, 2, "memory: L2")
    row = kernels.iloc[0]
    assert (copy.fractions["l2"], copy.occupancy, copy.waves, copy.launches_text) == (0.2, 0.1, 1.0, "longest of 2")
    assert (copy.headroom, copy.busiest_unit, copy.busiest_fraction) == (row.headroom, row.busiest_unit, row.busiest_fraction)
    assert "l2" not in sort.fractions
    assert sort.launches_text == "1"
    page = render(roofline, "html").decode()
    assert page.count("longest of 2") == page.count("the rest is of the longest.") == 1


def bars_of(roofline: Any, **options: Any) -> tuple[list[float], list[str], Any]:
    """The lengths of the bars in percent of what 100 % takes, the texts, and the figure."""
    made, texts = drawn(roofline, **options)
    ends = {one.get_text(): one.get_window_extent() for one in texts if one.get_text() in ("0", "100")}
    whole = (sum(ends["100"].intervalx) - sum(ends["0"].intervalx)) / 2 if len(ends) == 2 else math.nan
    found = [one.get_window_extent().width for one in made.findobj(Rectangle) if one.get_gid() == "bar"]
    return [100 * width / whole for width in found], [one.get_text() for one in texts], made


def test_bars_instead_of_an_empty_chart() -> None:
    roofline = make_roofline(0, zero_flop=2, missing=1)
    found, texts, made = bars_of(roofline)
    kernels = roofline.kernels.sort_values("seconds", ascending=False)
    expected = [100 * row[f"fraction_{unit}"] for _, row in kernels.iterrows() for unit in ("sm", "l1", "l2", "dram")]
    assert found == pytest.approx(expected, abs=0.3)
    assert any(text.startswith("% of peak") for text in texts)
    assert {"SM", "L1", "L2", "DRAM", "0", "100"} <= set(texts)
    assert len(made.axes) == 1  # the sheet
    assert not any("No kernel can be drawn" in text for text in texts)


def test_bars_beside_a_chart() -> None:
    found, texts, _ = bars_of(make_roofline(2, zero_flop=12))
    assert len(found) == 8 * 4
    assert "Kernels without dots" in texts
    assert any("Bars of the 8 longest of 12 kernels without dots." in words(text) for text in [" ".join(texts)])
    assert not bars_of(make_roofline(2, zero_flop=0))[0]


def test_times_where_nothing_else_is_known() -> None:
    roofline = make_roofline(0, zero_flop=2, usage=False)
    found, texts, _ = bars_of(roofline)
    shares = roofline.kernels["time_share"].sort_values(ascending=False)
    assert found == pytest.approx([100 * share for share in shares], abs=0.3)
    assert "% of the time" in texts


def test_more_than_a_peak_ends_at_the_axis_and_says_so() -> None:
    roofline = make_roofline(0, zero_flop=1)
    roofline.kernels["fraction_dram"] = 1.07
    found, texts, _ = bars_of(roofline)
    assert max(found) == pytest.approx(100, abs=0.3)
    assert "107 %" in texts


CROWDS = [(count, dots, levels) for count in (1, 5, 30) for dots in (0, 3) for levels in (("dram",), (*LEVELS, "system"))]


@pytest.mark.parametrize(
    ("count", "dots", "levels"),
    [pytest.param(*one, marks=[] if one == (5, 3, (*LEVELS, "system")) else pytest.mark.exhaustive) for one in CROWDS],
)
def test_no_texts_of_bars_overlap(count: int, dots: int, levels: tuple[str, ...]) -> None:
    roofline = make_roofline(dots, zero_flop=count, levels=levels, missing=1, tensor_unknown=1)
    for frame in (roofline.kernels, roofline.points):
        frame["kernel"] = frame["kernel"].replace("transpose_0", LONG)
    roofline.kernels.loc[roofline.kernels.kernel == LONG, "verdict"] = "compute: " + "a pipe of many words " * 4
    assert faults(*drawn(roofline)) == []


def test_the_instruction_view_draws_no_bars() -> None:
    class Instructions(FakeRoofline):
        view = "instruction"

    whole = make_roofline(0, zero_flop=0, missing=2, usage=False)
    frames = Instructions(whole.points, whole.roofs, whole.kernels)
    assert [len(bars_of(each)[0]) for each in (frames, whole)] == [0, 2]


def test_unknown_tensor_work_is_told_in_texts_and_data() -> None:
    for name in ("text", "md", "csv", "json"):
        told = render(make_roofline(3, tensor_unknown=1), name, table="kernels").decode().replace("\\", "")
        silent = render(make_roofline(3), name, table="kernels").decode()
        for words_of_it in ("tensor work unknown", "tensor cores were busy"):
            assert (words_of_it in told.lower(), words_of_it in silent.lower()) == (True, False), name


@pytest.mark.parametrize("dots", [0, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_unknown_tensor_work_is_told_in_pictures(dots: int) -> None:
    roofline = make_roofline(dots, zero_flop=1, tensor_unknown=1)
    name = roofline.kernels.kernel.iloc[0]
    texts = [one.get_text() for one in drawn(roofline)[1]]
    assert any(text.startswith(f"{name} \N{DAGGER}") for text in texts)
    assert "\N{DAGGER} Tensor work unknown" in " ".join(texts)
    assert name in " ".join(texts).partition("Tensor work unknown")[2]
    assert not any("\N{DAGGER}" in one.get_text() for one in drawn(make_roofline(3))[1])


def test_what_binds_is_withheld_where_tensor_work_is_unknown() -> None:
    roofline = make_roofline(1, zero_flop=0, tensor_unknown=1)
    (row,) = lines_of(text_table(roofline, width=140), "gpp_kernel  ")
    assert "tensor work unknown" in row
    assert not re.search(r"\dx ", row)
    assert tensor_caveat(roofline).endswith("gpp_kernel.")


def test_notes_of_kernels_are_in_every_format() -> None:
    roofline = make_roofline(2, zero_flop=2)
    notes = roofline.kernels["notes"].tolist()
    roofline.kernels["notes"] = [*notes[:3], "application replay: all kernels have the same counters"]
    roofline.points["notes"] = "a lower bound: the chip counts half of it"
    for name in ("text", "md", "html", "json", "csv"):
        text = words(render(roofline, name, table="kernels").decode())
        assert "pplication replay" in text
        assert name == "csv" or "lower bound: the chip" in text
    pictured = footnotes(roofline, chart(roofline))
    assert "Application replay: all kernels have the same counters (transpose_1)." in pictured
    assert "A lower bound: the chip counts half of it." in pictured
    assert captions.kernel_notes(roofline) == ["Application replay: all kernels have the same counters (transpose_1)."]


@pytest.mark.parametrize("origin", ["theoretical", pytest.param("measured", marks=pytest.mark.exhaustive)])
def test_bands_hold_the_roof_of_every_launch(origin: str) -> None:
    roofline = make_roofline(4, clocks_differ=0.3, measured=False)
    roofs = roofline.roofs
    roofs["origin"] = origin
    made, texts = drawn(roofline)
    areas = [one for one in made.findobj(Polygon) if one.get_gid() == "band"]
    assert len(areas) == 4  # two compute roofs, L1 and L2; DRAM has its own clock
    compute = roofs[roofs.roof == "fp64.fma"].iloc[0]
    corners = [area.get_xy() for area in areas]
    (flat,) = [one for one in corners if one[0, 1] == one[1, 1] == pytest.approx(compute.value_max)]
    low, high = flat[:, 1].min(), flat[:, 1].max()
    lines = [one.get_ydata() for one in made.findobj(Line2D) if one.get_gid() == "roof"]
    assert any(list(ys) == pytest.approx([compute.value] * 2) for ys in lines)
    assert not any(list(ys) == pytest.approx([compute.value_max] * 2) for ys in lines)
    assert (low, high) == pytest.approx((compute.value_min, compute.value_max))
    own = roofline.points[roofline.points.precision == "fp64"].compute_roof
    assert own.between(low, high).all()
    written = range_text(compute.value_min, compute.value_max, "flop/s")
    assert any(written in one.get_text() for one in texts)
    for name, digits in (("text", 3), ("md", 3), ("html", 4)):
        assert range_text(compute.value_min, compute.value_max, "flop/s", digits) in render(roofline, name).decode()


def test_mixes_stay_below_the_upper_edge() -> None:
    roofline = make_roofline(3, clocks_differ=0.4, measured=False, zero_flop=0)
    top = roofline.roofs[roofline.roofs.roof == "fp64.fma"].value_max.iloc[0]
    roofline.points["compute_roof"] = top
    roofline.points["fma_share"], roofline.points["mix_roof"] = 0.9, 0.95 * top
    made, _ = drawn(roofline)
    drawn_mixes = [line.get_ydata()[0] for line in made.findobj() if line.get_gid() == "mix"]
    edge = max(roof.best.high for roof in chart(roofline).panels[0].of_kind("compute"))
    assert edge == top
    assert drawn_mixes
    assert all(value <= edge for value in drawn_mixes)


def test_clocks_that_hardly_differ_are_one_line() -> None:
    roofline = make_roofline(2, clocks_differ=0.008, measured=False)
    made, _ = drawn(roofline)
    assert [one for one in made.findobj(Polygon) if one.get_gid() == "band"] == []
    assert " to " not in words(text_table(roofline)).partition("theoretical")[2].partition("Profiled")[0]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.91e12, 2.1e12, "1.91 to 2.10 TFLOP/s"),
        (8e11, 1.2e12, "800 GFLOP/s to 1.2 TFLOP/s"),
        (9.5e12, 10e12, "9.50 to 10.0 TFLOP/s"),
    ],
)
def test_ranges(low: float, high: float, text: str) -> None:
    assert range_text(low, high, "flop/s") == text
    assert Band.of(low, low, high).text("flop/s") == text


def test_bands_of_several_reports_join() -> None:
    one, other = Band.of(1.0, 0.95, 1.05), Band.of(2.0, math.nan, math.nan)
    assert (one.joined(other).low, one.joined(other).high) == (0.95, 2.0)
    assert Band.of(1.0, 1.0, 1.005).joined(Band.of(1.002, 1.002, 1.002)).text("flop/s") == "1 FLOP/s"
    assert one.joined(other).line == 1.5


def test_the_clock_told_is_that_of_the_time() -> None:
    roofline = make_roofline(2, zero_flop=1)
    kernels = roofline.kernels
    kernels["seconds"] = [0.98, 0.01, 0.01]
    kernels["clock_profiled"] = [1.40e9, 0.7e9, math.nan]
    kernels["clock_ratio"] = kernels["clock_profiled"] / 1.41e9
    assert "SM clock 1.39 GHz (700 MHz to 1.4 GHz) of 1.41 GHz" in captions.subtitle(roofline)
    assert captions.clock_note(roofline) == ""  # one short kernel at half the clock is no warning
    assert "Clock:" not in render(roofline, "html").decode().partition("<main>")[2].partition("<noscript>")[0]
    kernels["seconds"] = [0.01, 0.98, 0.01]
    assert captions.clock_note(roofline).startswith("Profiled at 0.50 (0.50 to 0.99) of the maximum SM clock")
    assert "Profiled at 0.50 (0.50 to 0.99) of" in render(roofline, "html").decode()


def test_work_from_opcodes_is_told() -> None:
    roofline = make_roofline(2)
    roofline.points["source"] = "opcodes"
    assert "6 of 6 dots counted from executed opcodes." in words(text_table(roofline))


@pytest.mark.parametrize(
    ("work", "active", "said"),
    [
        (0.0, 0.0, "without tensor work (counted, zero)"),
        (0.0, 0.3, "without metrics of tensor work"),
        (math.nan, 0.0, "without metrics of tensor work"),
        (1e9, 0.3, "without a dot of the kinds of work and levels chosen"),
    ],
)
def test_kernels_without_the_work_asked_for(work: float, active: float, said: str) -> None:
    made = make_roofline(3, zero_flop=0)
    made.kernels["tensor_active"] = active
    roofline = SimpleNamespace(
        points=made.points.iloc[:0],
        roofs=made.roofs,
        kernels=made.kernels,
        asked=("tensor",),
        work={"fp64": [1e9] * 3, "tensor.fp16": [work] * 3},
    )
    assert set(made.kernels["status"]) == {"ok"}
    page = render(roofline, "html").decode()
    pictured = " ".join(bars_of(roofline)[1]) if work == 1e9 else page
    for text in (text_table(roofline, width=140), page, pictured, render(roofline, "md").decode().replace("\\", "")):
        assert "No kernel can be drawn" not in text
        assert said in words(text)
        assert all(name in text for name in made.kernels["kernel"])
    assert "of it on the chart" not in page
    assert ("lacks" not in text_table(roofline)) or said.startswith("without metrics")


def test_a_note_is_said_once() -> None:
    roofline = make_roofline(2, zero_flop=1)
    roofline.kernels["notes"] = ["seen on no chip", "seen on no chip", ""]
    roofline.points["notes"] = roofline.roofs["notes"] = "seen on no chip"
    for text in (text_table(roofline), render(roofline, "md").decode()):
        assert words(text).lower().count("seen on no chip") == 1
