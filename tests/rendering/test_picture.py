"""Pictures: what they show as data first, then the artists; that no two texts overlap; that bytes are reproducible."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.picture import chart, figure, footnotes, roof_texts, roofline_chart
from ncu_roofline.analyses.hierarchical.style import level_order, level_style, precision_label
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.chart import MARKERS, THEMES, Panel
from ncu_roofline.rendering.paper import SMALLEST, Pen
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import Box, Plan, overlap
from tests.rendering.frames import A100, ODD, FakeRoofline, make_roofline

FOUR = ("fp64", "fp32", "fp16", "tensor.fp16")


def measure(text: str, size: float) -> tuple[float, float]:
    return 0.6 * size * len(text), 1.2 * size


def plan_of(roofline: FakeRoofline) -> Plan:
    """Where everything in its first panel goes."""
    shown = roofline_chart(roofline, chart(roofline))
    panel = shown.rows[0][0]
    assert isinstance(panel, Panel)
    pen = Pen()
    pen.measure = measure
    return Plan(panel, 450, 270, pen, list(shown.names))


def said(found: Plan, role: str) -> list[str]:
    """The labels of a role."""
    return [one.text for one in found.labels if one.mark.role == role]


def joined(*parts: FakeRoofline) -> FakeRoofline:
    frames = ("points", "roofs", "kernels")
    return FakeRoofline(*(pd.concat([getattr(one, name) for one in parts], ignore_index=True) for name in frames))


def drawn(frames: Any, make: Any = figure, **options: Any) -> tuple[Figure, list[Text]]:
    """The figure and its visible texts, after a draw by Agg."""
    with settings():
        made = make(frames, **options)
        made.canvas.draw()
    hidden = {id(label) for axes in made.axes for label in undrawn_tick_labels(axes)}
    return made, [one for one in made.findobj(Text) if one.get_text().strip() and one.get_visible() and id(one) not in hidden]


def undrawn_tick_labels(axes: Axes) -> list[Text]:
    """Labels that matplotlib keeps but does not draw: of ticks beyond the limits, and of the other side."""
    found = []
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            found += [tick.label2] if low <= tick.get_loc() <= high else [tick.label1, tick.label2]
    return found


def box_of(text: Text) -> Box:
    """The text's box in pixels, turned as it is drawn, a shade smaller than matplotlib says."""
    angle = text.get_rotation()
    upright = angle in (0.0, 90.0)
    if not upright:
        text.set_rotation(0)
    extent = text.get_window_extent()
    text.set_rotation(angle)
    centre = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
    return Box(*centre, extent.width - 1, extent.height - 1, 0.0 if upright else angle)


def overlapping(texts: list[Text]) -> list[tuple[str, str]]:
    boxes = [(one.get_text(), box_of(one)) for one in texts]
    return [(a, b) for i, (a, box_a) in enumerate(boxes) for b, box_b in boxes[:i] if overlap(box_a, box_b)]


def faults(made: Figure, texts: list[Text]) -> list[str]:
    """What is wrong with the texts of a figure."""
    width, height = made.canvas.get_width_height()
    found = [f"{a!r} covers {b!r}" for a, b in overlapping(texts)]
    for text in texts:
        left, bottom, right, top = box_of(text).bounds()
        if left < -1 or bottom < -1 or right > width + 1 or top > height + 1:
            found.append(f"{text.get_text()!r} is outside")
        if text.get_fontsize() < SMALLEST:
            found.append(f"{text.get_text()!r} has {text.get_fontsize():.2g} points")
    return found


def test_panels_by_precision_group() -> None:
    data = chart(make_roofline(4, (*FOUR, "tensor.tf32", "tensor.int8"), mixed=True))
    assert [panel.title for panel in data.panels] == ["FP64, FP32 and FP16", "Tensor", "Tensor INT8"]
    assert [panel.unit for panel in data.panels] == ["flop", "flop", "op"]
    roofs = [{roof.id for roof in panel.of_kind("compute")} for panel in data.panels]
    assert roofs[0] == {"fp64.fma", "fp32.fma", "fp16.fma"}  # of several precisions the highest each
    assert roofs[1] == {"tensor.fp16.mma", "tensor.tf32.mma"}
    assert roofs[2] == {"tensor.int8.mma"}
    assert {roof.id for roof in chart(make_roofline(4)).panels[0].of_kind("compute")} == {"fp64.fma", "fp64.nofma"}


def test_the_sum_over_pipes_is_drawn_where_it_binds() -> None:
    roofline = make_roofline(2, ("fp64", "fp32"), mixed=True)
    points = roofline.points
    points["binding_fraction"] = 0.5
    assert "mixed" not in chart(roofline).panels[0].precisions
    points.loc[points.precision == "mixed", "binding_fraction"] = 0.6
    assert chart(roofline).panels[0].precisions == ["fp64", "fp32", "mixed"]
    only = FakeRoofline(points[points.precision == "mixed"], roofline.roofs, roofline.kernels)
    assert chart(only).panels[0].precisions == ["mixed"]


def test_the_name_stands_at_the_precision_that_is_nearest_to_its_roof() -> None:
    roofline = make_roofline(1, ("fp64", "fp32"), zero_flop=0)
    points = roofline.points
    points["bandwidth_roof"] = points.level.map(A100.bandwidth)
    points["compute_roof"] = points.precision.map({"fp64": 9.7e12, "fp32": 19.5e12})
    points["performance"] = points.precision.map({"fp64": 3e12, "fp32": 3.5e11})
    points.loc[points.precision == "fp64", "intensity"] += 40  # near to the edge, where the name has no room on the right
    found = plan_of(roofline)
    (name,) = [label for label in found.labels if label.mark.role == "name"]
    dots = [point for point in found.points if point.role == "dot"]
    x, y = found.view.x, found.view.y
    near = min(dots, key=lambda dot: math.hypot(x(dot.x) - name.box.x, y(dot.y) - name.box.y))
    assert near.of == "FP64"


def test_of_many_orders_the_names_take_that_which_leaves_none_out() -> None:
    roofline = make_roofline(6, zero_flop=0)
    points = roofline.points
    points["intensity"] = points.intensity.groupby(points.level).transform("median") * (1 + 0.1 * (points.index % 7))
    points["performance"] = 2e12 * (1 + 0.01 * (points.index // 3))
    found = plan_of(roofline)
    assert not found.missing
    assert len(said(found, "name")) == len(set(points.kernel))


def test_roofs_that_are_told_by_name_only_have_their_value_below() -> None:
    roofline = make_roofline(3, ("fp64", "fp32"), zero_flop=0)
    _, texts = drawn(roofline, width=2.6)
    shown = " ".join(one.get_text() for one in texts)
    labels = [one.get_text() for one in texts if one.get_gid() == "label-roof"]
    assert any("/s" not in one for one in labels)  # else this tests nothing
    for label in labels:
        assert "/s" in label or re.search(rf"{re.escape(label)} [\d.]+ \w+", shown)


def test_a_series_has_its_dots_innermost_first_at_one_height() -> None:
    roofline = make_roofline(3)
    for one in chart(roofline).panels[0].series:
        rows = roofline.points[roofline.points.kernel == one.kernel]
        assert [level for level, _ in one.dots] == ["l1", "l2", "dram"]
        assert [x for _, x in one.dots] == rows.intensity.tolist()
        assert {one.performance} == set(rows.performance)


def test_measured_and_theoretical_make_one_roof() -> None:
    roofs = {roof.id: roof for roof in chart(make_roofline(1)).panels[0].roofs}
    assert roofs["dram"].bands["theoretical"].line == A100.bandwidth["dram"]
    assert roofs["dram"].value == roofs["dram"].bands["measured"].line == pytest.approx(0.89 * A100.bandwidth["dram"])
    assert roof_texts([roofs["dram"]])[0] == "HBM 1.38 TB/s (theory 1.55 TB/s)"
    assert not chart(make_roofline(1, measured=False)).origins[1:]


def test_roofs_meet_at_the_ridge_points() -> None:
    roofline = make_roofline(3)
    found, roofs = plan_of(roofline), {roof.id: roof for roof in chart(roofline).panels[0].roofs}
    peak = roofs["fp64.fma"].value
    ridges = [(point.x, point.y) for point in found.points if point.role == "ridge"]
    assert ridges == [(pytest.approx(peak / roofs[level].value), peak) for level in ("l1", "l2", "dram")]
    for line in (line for line in found.lines if line.role in ("roof", "theory")):
        origin, (start, end) = {"roof": "measured", "theory": "theoretical"}[line.role], line.places
        if line.hue:
            assert end[1] == pytest.approx(roofs["fp64.fma"].bands[origin].line)
        else:
            assert start[0] == pytest.approx(start[1] / roofs["l1"].bands[origin].line)


def test_every_roof_gets_its_label_along_its_line() -> None:
    found = plan_of(make_roofline(5, levels=("l1", "shared", "l2", "dram")))
    labels = {label.text: label for label in found.labels if label.mark.role == "theory"}
    assert sorted(labels) == [
        "FP64 FMA 8.67 TFLOP/s (theory 7.57 TFLOP/s)",
        "FP64 no FMA 4.34 TFLOP/s (theory 3.78 TFLOP/s)",
        "HBM 1.38 TB/s (theory 1.55 TB/s)",
        "L1/TEX, Shared 17.3 TB/s (theory 15.1 TB/s)",
        "L2 6.42 TB/s (theory 5.61 TB/s)",
    ]
    line = next(line for line in found.lines if line.role == "roof" and line.hue == level_style("l2"))
    (ax, ay), (bx, by) = map(found.view.at, line.places)
    slope = math.degrees(math.atan2(by - ay, bx - ax))
    assert labels["L2 6.42 TB/s (theory 5.61 TB/s)"].box.angle == pytest.approx(slope)
    assert labels["FP64 FMA 8.67 TFLOP/s (theory 7.57 TFLOP/s)"].box.angle == 0.0
    assert found.untold == []


def test_what_carries_no_verdict_does_not_stretch_the_axes() -> None:
    roofline = make_roofline(3, ("fp64", "fp16"), zero_flop=0)
    points, kernels = roofline.points, roofline.kernels
    points = points[(points.kernel != kernels.kernel[2]) | (points.precision == "fp64")].reset_index(drop=True)
    roofline = FakeRoofline(points, roofline.roofs, kernels)
    points["bandwidth_roof"] = points.level.map(A100.bandwidth)
    points["compute_roof"] = points.precision.map({"fp64": 9.7e12, "fp16": 78e12})
    small = (points.precision == "fp16") | (points.kernel == kernels.kernel[2])
    view = plan_of(FakeRoofline(points[~small], roofline.roofs, kernels)).view
    points.loc[points.precision == "fp16", "performance"] = 1e6  # constants, in the way of HFMA2
    points.loc[points.kernel == kernels.kernel[2], "performance"] = 1e5
    kernels["seconds"] = [0.6, 0.399, 0.001]
    far = (points.level == "l1") & (points.precision == "fp64")
    points.loc[far, "intensity"] = 1e7
    found = plan_of(roofline)
    wide = found.view
    assert wide.x1 < 10 * view.x1
    assert (wide.y0, wide.y1) == (view.y0, view.y1)
    dots = [point for point in found.points if point.role == "dot"]
    assert sum(arrow.number for arrow in found.arrows) == sum(not wide.holds(dot.x, dot.y) for dot in dots)


def test_walls() -> None:
    roofline = make_roofline(1)
    wall = roofline.roofs.iloc[-1:].assign(roof="wall", kind="wall", level="", label="stride 1", value=0.25, unit="flop/byte")
    found = plan_of(FakeRoofline(roofline.points, pd.concat([roofline.roofs, wall], ignore_index=True), roofline.kernels))
    assert [line.places[0][0] for line in found.lines if line.role == "wall"] == [0.25]
    assert [label.box.angle for label in found.labels if label.text.startswith("stride 1")] == [90.0]


def test_the_overlap_test_sees_overlaps() -> None:
    with settings():
        made = Figure()
        FigureCanvasAgg(made)
        made.text(0.5, 0.5, "one")
        made.text(0.51, 0.5, "two", rotation=30, rotation_mode="anchor")
        made.canvas.draw()
    assert overlapping(made.findobj(Text)) == [("two", "one")]


def test_notes_and_subtitle() -> None:
    roofline = make_roofline(2, missing=1)
    notes = footnotes(roofline, chart(roofline))
    assert notes[0] == "Profiled at 0.78 of the maximum SM clock: the application may run faster without the profiler."
    assert any(note.startswith("1 kernel without floating-point work, ") for note in notes)
    assert any(note.startswith("1 kernel without metrics of floating-point work, ") for note in notes)
    assert "Roofs: theoretical at profiled clock 1.09 GHz, measured at clock 1.41 GHz." in notes
    parts = [
        "NVIDIA A100-SXM4-40GB (compute capability 8.0)",
        "sample.ncu-rep",
        "ncu 2024.2.1.0",
        "SM clock 1.09 GHz of 1.41 GHz",
    ]
    assert captions.subtitle(roofline) == " \u00b7 ".join(parts)
    assert captions.clock_note(make_roofline(1, clocks=False)) == ""


LEVELS = [level.id for level in load_spec().levels]


def test_ids_read_well() -> None:
    labels = [precision_label(p) for p in ("fp64", "tensor.fp16.wgmma", "tensor.fp16.mma", "tensor.fp6fp4", "mixed")]
    assert labels == ["FP64", "Tensor FP16 wgmma", "Tensor FP16 mma.sync", "Tensor FP6/FP4", "All pipes"]
    assert level_order({"zz", "dram", "l1", "noc"}) == ["l1", "dram", "noc", "zz"]


def test_no_pyplot_and_no_display() -> None:
    code = (
        "import sys; from tests.rendering.frames import make_roofline; from ncu_roofline.analyses import render;"
        "assert not {'matplotlib', 'plotly'} & set(sys.modules);"
        "render(make_roofline(2), 'png'); assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MPLBACKEND": "TkAgg"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_picture_of_several_precisions() -> None:
    roofline = make_roofline(3, FOUR, zero_flop=0)
    data = chart(roofline)
    assert data.fills == {"fp64": "full", "fp32": "none", "fp16": "left", "tensor.fp16": "full"}
    made, texts = drawn(roofline)
    keys = [text.get_text() for text in texts if text.get_gid() == "key"]
    assert {"FP64", "FP32", "FP16"} <= set(keys)
    faces = {line.get_gid(): line for axes in made.axes for line in axes.lines if (line.get_gid() or "").startswith("dots-")}
    ground = to_rgb(THEMES["light"].ground)
    assert to_rgb(faces["dots-full"].get_markerfacecolor()) != ground
    assert to_rgb(faces["dots-none"].get_markerfacecolor()) == ground
    assert faces["dots-left"].get_fillstyle() == "left"
    names = [*keys, *(text.get_text() for text in texts if text.get_gid() == "label-name")]
    for kernel in data.kernels:
        assert len([name for name in names if name.startswith(kernel.label[:8])]) == 1


def test_the_size_of_dots_is_their_time_on_request_and_the_legend_covers_none() -> None:
    roofline = make_roofline(3)
    for size, count in (("equal", 1), ("time", 3)):
        made, texts = drawn(roofline, size=size)
        assert (
            len({line.get_markersize() for axes in made.axes for line in axes.lines if line.get_gid() == "dots-full"}) == count
        )
        assert any("of the time" in text.get_text() for text in texts if text.get_gid() == "key") == (size == "time")
    made, _ = drawn(roofline)
    (axes,) = [axes for axes in made.axes if axes.get_xscale() == "log"]
    inside = next(text for text in made.findobj(Text) if text.get_gid() == "key").axes.get_window_extent()
    around = axes.get_window_extent()
    assert around.x0 < inside.x0 < inside.x1 < around.x1
    assert around.y0 < inside.y0 < inside.y1 < around.y1
    for one in chart(roofline).panels[0].series:
        assert not any(inside.contains(*axes.transData.transform((x, one.performance))) for _, x in one.dots)
    for options, words in (
        ({"size": "big"}, "size 'big' is not one of equal, time"),
        ({"theme": "pink"}, "theme 'pink' is not"),
    ):
        with pytest.raises(ValueError, match=words):
            render(roofline, "png", **options)


def test_panels_without_time_are_left_out_and_told_but_never_those_of_a_gpu() -> None:
    roofline = make_roofline(3, ("fp64", "tensor.int8"), zero_flop=0)
    points, kernels = roofline.points, roofline.kernels
    last = kernels.kernel[2]
    kernels["seconds"] = [0.6, 0.399, 0.001]
    integer = points.precision == "tensor.int8"
    roofline = FakeRoofline(points[integer == (points.kernel == last)], roofline.roofs, kernels)
    data = chart(roofline)
    assert ([panel.title for panel in data.panels], data.panels_left_out) == (["FP64"], 1)
    assert last not in {kernel.label for kernel in data.kernels}
    assert any("1 further panel left out" in note for note in footnotes(roofline, data))
    long, short = make_roofline(2, report="long.ncu-rep"), make_roofline(2, chip="h100", report="short.ncu-rep")
    short.kernels["seconds"] *= 1e-6
    data = chart(joined(long, short))
    assert [panel.title for panel in data.panels] == [f"FP64, {A100.device}", "FP64, NVIDIA H100 80GB HBM3"]


def test_what_is_drawn_and_how_it_is_called() -> None:
    roofline = make_roofline(45)  # the largest by time
    data = chart(roofline)
    assert (len(data.kernels), data.total, len(chart(roofline, 7).kernels)) == (30, 45, 7)
    times = roofline.kernels[roofline.kernels.status == "ok"].nlargest(30, "seconds").kernel.tolist()
    assert [kernel.label for kernel in data.kernels] == times
    assert any("The 30 largest of 45 kernels by time are drawn" in note for note in footnotes(roofline, data))
    roofline = make_roofline(4)  # launches of one kernel
    roofline.points["kernel"] = roofline.kernels["kernel"] = "same"
    data = chart(roofline)
    assert [(kernel.label, kernel.share) for kernel in data.kernels] == [("same", pytest.approx(1.0))]
    assert len(data.panels[0].series) == 4
    data = chart(joined(make_roofline(2, report="before.ncu-rep"), make_roofline(3, report="runs/after.ncu-rep")))
    assert {kernel.label for kernel in data.kernels} == {
        "gpp_kernel [before]", "gpp_kernel [after]", "smooth_kernel [before]", "smooth_kernel [after]", "DeviceReduceKernel",
    }  # fmt: skip
    roofline = make_roofline(4)  # points that no logarithm takes
    for row, value in enumerate((0.0, math.nan, math.inf)):
        roofline.points.loc[row, "intensity"] = value
    roofline.points.loc[3:5, "performance"] = 0.0
    data = chart(roofline)
    assert (data.total, sum(len(one.dots) for one in data.panels[0].series)) == (2, 6)
    roofline = make_roofline(2, levels=("l1", "dram", "system"))  # system memory has a roof only where it has dots
    fewer = FakeRoofline(roofline.points[roofline.points.level != "system"], roofline.roofs, roofline.kernels)
    levels = [{roof.level for roof in chart(one).panels[0].roofs if roof.level} for one in (roofline, fewer)]
    assert levels == [{"l1", "dram", "system"}, {"l1", "dram"}]


def test_numbers_where_markers_do_not_suffice() -> None:
    assert not said(plan_of(make_roofline(len(MARKERS))), "number")
    found = plan_of(make_roofline(30))
    numbers, names = said(found, "number"), said(found, "name")
    assert len(numbers) == len(set(numbers)) >= 28 - len(names) > 0


def test_dots_beyond_the_axes_have_an_arrow_with_their_value() -> None:
    roofline = make_roofline(3)
    roofline.points["bandwidth_roof"] = roofline.points.level.map(A100.bandwidth)
    roofline.points.loc[2, "intensity"] = 4.44e9
    found = plan_of(roofline)
    assert [(arrow.direction, arrow.texts[-1]) for arrow in found.arrows] == [(">", "4.4e9 FLOP/B")]
    assert ("4.4e9 FLOP/B" in said(found, "edge"), found.outside) == (True, 0)
    roofline = make_roofline(2, ("fp64", "fp32"), zero_flop=0)
    points = roofline.points
    points["bandwidth_roof"] = points.level.map(A100.bandwidth)
    points.loc[points.index[(points.precision == "fp32") & (points.level == "l1")][0], "intensity"] = 4.44e9
    assert "FP32 4.4e9 FLOP/B" in said(plan_of(roofline), "edge")
    roofline = make_roofline(1, zero_flop=0)  # a level without verdict stretches the axes a little
    points = roofline.points
    points["bandwidth_roof"] = points.level.map(A100.bandwidth)
    edge = plan_of(roofline).view.x1
    points.loc[points.level == "l1", "intensity"] = 1.2 * edge
    assert edge < plan_of(roofline).view.x1 < 2 * edge
    points.loc[points.level == "l1", "intensity"] = 3 * edge
    assert [arrow.hue for arrow in plan_of(roofline).arrows] == [level_style("l1")]


ALL = ("l1", "shared", "l2", "dram")
CROWDS: dict[str, dict[str, Any]] = {
    **{f"{n}-{len(p)}": {"n_kernels": n, "precisions": p, "odd": True, "missing": 2, "levels": ALL}
       for n in (1, 5, 30) for p in (("fp64",), FOUR)},
    **{f"seed-{n}": {"n_kernels": 4 + 8 * n, "seed": n, "levels": (*ALL, "system")[: 2 + n % 3], "measured": n % 2 == 0,
                     "chip": "h100"} for n in range(6)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "theme"),
    [
        pytest.param(
            name, theme, marks=[] if (name, theme) in (("5-4", "dark"), ("seed-1", "light")) else pytest.mark.exhaustive
        )
        for name in CROWDS
        for theme in ("light", "dark")
    ],
)
def test_no_texts_overlap(name: str, theme: str) -> None:
    assert faults(*drawn(make_roofline(**CROWDS[name]), theme=theme)) == []


def test_odd_names_and_titles() -> None:
    roofline = make_roofline(6, odd=True)
    glyphs = "\u6838\U0001f680\x1b[0m" + "x" * 30
    for frame in (roofline.points, roofline.kernels):
        frame["kernel"] = frame["kernel"].replace({"=cmd|' /C calc'!A0": "\\$x$ $ \\alpha$", ODD[1][1]: glyphs})
        frame["report"] = "r" * 4000 + ".ncu-rep"
    made, texts = drawn(roofline, title="$\\frac{1}$ costs 5$" + "t" * 3000)
    assert not [text.get_text() for text in texts if is_math_text(text.get_text())]
    assert any("cost\\$_a^{2}\\$ and \\$x_y\\$" in text.get_text() for text in texts)
    width, _ = made.canvas.get_width_height()
    assert [text.get_text() for text in texts if box_of(text).bounds()[2] > width] == []


def test_nothing_to_draw_says_why_and_shows_the_roofs() -> None:
    roofline = make_roofline(0, missing=2, usage=False)
    roofline.kernels["seconds"] = math.nan
    assert len([line for line in plan_of(roofline).lines if line.hue]) == 6
    _, texts = drawn(roofline)
    assert any("No kernel can be drawn." in text.get_text() and "FP64, L2" in text.get_text() for text in texts)
    assert overlapping(texts) == []
    roofline = make_roofline(2)
    for points in (roofline.points, roofline.points.iloc[:0]):
        assert drawn(FakeRoofline(points, roofline.roofs.iloc[:0], roofline.kernels))[1]


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


# Simulation of full protanopia and deuteranopia: Machado, Oliveira and Fernandes (2009), table of severity 1.0.
BLINDNESS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def test_colours_stand_out_and_differ_for_the_colour_blind() -> None:
    styles = {name: level_style(name) for name in LEVELS}
    for theme in THEMES.values():
        for style in [*styles.values(), level_style("noc"), level_style("remote")]:
            assert contrast(style.dark if theme.dark else style.light, theme.ground) >= 3
        assert contrast(theme.text, theme.ground) >= 7
        assert contrast(theme.faint, theme.ground) >= 4.5
        for table in BLINDNESS.values():
            rgb = [to_rgb(style.dark if theme.dark else style.light) for style in styles.values()]
            seen = [[sum(w * c for w, c in zip(row, one, strict=True)) for row in table] for one in rgb]
            assert all(math.dist(a, b) > 0.12 for place, a in enumerate(seen) for b in seen[:place])


@pytest.mark.parametrize("name", ["svg", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("png", "pdf"))])
def test_bytes_are_reproducible_whatever_the_settings(name: str) -> None:
    first = render(make_roofline(3, odd=True), name, preset="page", title="<script>alert(1)</script>")
    odd = {"font.family": "monospace", "lines.linewidth": 9, "axes.facecolor": "red", "savefig.bbox": "tight"}
    with matplotlib.rc_context(odd):
        before = dict(matplotlib.rcParams)
        assert render(make_roofline(3, odd=True), name, preset="page", title="<script>alert(1)</script>") == first
        assert dict(matplotlib.rcParams) == before
    if name == "svg":
        assert "script" not in {element.tag.rpartition("}")[2] for element in ET.fromstring(first).iter()}
    assert b"dc:date" not in first


def test_png() -> None:
    data = render(make_roofline(2, zero_flop=0), "png")
    width, height = struct.unpack(">II", data[16:24])
    assert (data[:8], width) == (b"\x89PNG\r\n\x1a\n", 1145)
    assert 700 < height < 1000
    density = data.index(b"pHYs")
    assert struct.unpack(">I", data[density + 4 : density + 8])[0] == round(160 / 0.0254)
