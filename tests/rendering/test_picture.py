"""Pictures: what they show against numbers worked out here, then the artists, on paper of many sizes; and their bytes."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.text import Text

from ncu_roofline import roofline, time_roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.picture import figure as comparison_figure
from ncu_roofline.analyses.hierarchical.picture import chart, figure, footnotes, mixes, sweep_marks
from ncu_roofline.analyses.hierarchical.style import level_order, level_style, precision_label
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.picture import figure as source_figure
from ncu_roofline.analyses.time.frames import TimeRoofline
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.chart import THEMES
from ncu_roofline.rendering.paper import PRESETS, SMALLEST
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import Box, overlap
from tests import published
from tests.analyses.time_frames import ordinary, point
from tests.rendering.cases import CASES, DEMO, LATENCY, chart_of, gpp, instructions, made, plan_of
from tests.rendering.frames import A100, ODD, make_roofline, sweep

FOUR = ("fp64", "fp32", "fp16", "tensor.fp16")
LONG = pytest.mark.exhaustive
SVG = "{http://www.w3.org/2000/svg}"


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
    wide = [axes for axes in made.axes if axes.get_xscale() == "log" and made.get_figwidth() > 3]  # three numbers need the room
    sides = [side for axes in wide for side in (axes.xaxis, axes.yaxis)]
    ticks = [(side.get_majorticklocs(), *side.get_view_interval()) for side in sides]
    found += ["few numbers" for places, low, high in ticks if sum(np.clip(places, low, high) == places) < 3]
    return found


# Every letter can be read, is inside, and covers no other, whatever is drawn and how large the paper is.


MAKERS: dict[Any, Any] = {TimeRoofline: time_figure, Comparison: comparison_figure, SourceRoofline: source_figure}
DRAWN = [
    pytest.param(name, how, id=f"{name} {how}", marks=[LONG] * (key != "draw"))
    for name, case in CASES.items()
    for key in ("draw", "draw-more")
    for how in case.get(key, ())
]


@pytest.mark.parametrize(("name", "options"), DRAWN)
def test_texts_are_large_enough_inside_and_apart(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    frames = made(name, tmp_path)
    drawing, texts = drawn(frames, MAKERS.get(type(frames), figure), **options)
    assert faults(drawing, texts) == []
    assert name == "nothing" or len(texts) > 8
    if "width" in options:
        assert drawing.get_size_inches()[0] == pytest.approx(float(options["width"].removesuffix("in")))
    if paper := PRESETS.get(options.get("preset", "")):
        width, height = drawing.get_size_inches() * 72
        assert (width, height if paper.height else 0) == pytest.approx((paper.width, paper.height))
    if name == "compared":  # hollow before, full after
        marks = [drawing.findobj(lambda one, gid=gid: one.get_gid() == gid) for gid in ("before", "after")]
        hollow = [{to_rgba(line.get_markerfacecolor()) == drawing.get_facecolor() for line in lines} for lines in marks]
        assert hollow == [{True}, {False}]
    if name == "compared-gpus":  # times of two models are not compared
        assert not any("run time" in one.get_text() or " ms" in one.get_text() for one in texts)


def test_the_check_of_texts_sees_faults() -> None:
    made, texts = drawn(make_roofline(2))
    assert faults(made, texts) == []
    texts[0].set_fontsize(5)
    texts[1].set_position((-100, 100))
    more = [made.text(0.5, 0.5, "one"), made.text(0.51, 0.5, "two", rotation=30, rotation_mode="anchor")]
    found = {fault.rpartition(" is ")[2].rpartition(" has ")[2] for fault in faults(made, texts + more)}
    assert found >= {"outside", "5 points", "'two' covers 'one'"}


# What is drawn, as numbers


def test_dots_stand_under_roofs_that_meet_at_the_ridge_points() -> None:
    frames = make_roofline(3)
    (panel,) = chart(frames).panels
    rows = frames.points[frames.points.kernel == panel.series[0].kernel]
    assert panel.series[0].dots == [*zip(("l1", "l2", "dram"), rows.intensity, strict=True)]
    dram = next(roof for roof in panel.roofs if roof.id == "dram").bands
    assert (dram["theoretical"].line, dram["measured"].line) == (1.555e12, pytest.approx(0.89 * 1.555e12))  # data sheet, file
    plan, peak = plan_of(frames), 0.89 * 9.746e12
    ridges = [(one.x, one.y) for one in plan.points if one.role == "ridge"]
    assert ridges == [pytest.approx((peak / (0.89 * A100.bandwidth[level]), peak)) for level in ("l1", "l2", "dram")]
    line = next(line for line in plan.lines if line.role == "roof" and line.hue == level_style("l2"))
    assert line.places[1] == pytest.approx((peak / (0.89 * A100.bandwidth["l2"]), peak))
    (ax, ay), (bx, by) = map(plan.view.at, line.places)
    angles = {label.text.partition(" ")[0]: label.box.angle for label in plan.labels if label.mark.role == "theory"}
    assert (angles["L2"], angles["FP64"]) == (pytest.approx(math.degrees(math.atan2(by - ay, bx - ax))), 0.0)


def test_the_largest_kernels_by_time_have_numbers_where_shapes_do_not_suffice() -> None:
    frames = make_roofline(45)
    data = chart(frames)
    times = frames.kernels[frames.kernels.status == "ok"].nlargest(30, "seconds").kernel.tolist()
    assert ([kernel.kernel for kernel in data.kernels], data.total) == (times, 45)
    assert any("The 30 largest of 45 kernels by time are drawn" in note for note in footnotes(frames, data))
    assert not [label for label in plan_of(make_roofline(12)).labels if label.mark.role == "number"]
    labels = plan_of(make_roofline(30)).labels
    numbers, names = ([label.text for label in labels if label.mark.role == role] for role in ("number", "name"))
    assert len(numbers) == len(set(numbers)) >= 28 - len(names) > 0
    found: Any = chart_of(time_roofline(ordinary([point(f"k{n}", seconds=1e-3 * (n + 1)) for n in range(40)])))
    assert (len(found.names), next(iter(found.names.values()))) == (30, "1 k39  4.9 %")  # 40 of 820 ms
    assert any(note.startswith("The 30 largest of 40 kernels by time are drawn") for note in found.notes)


def sweep_lines(frames: Any, role: str = "trajectory") -> list[Any]:
    (panel,) = chart(frames).panels
    return [mark for mark in sweep_marks(panel, [panel]) if mark.role == role]


def test_sweeps_go_through_the_published_points_and_mixes() -> None:
    lines = [line.places for line in sweep_lines(gpp())]
    wanted = (published.INTENSITY_L1, published.INTENSITY_L2, published.INTENSITY_DRAM)
    assert [[x for x, _ in places] for places in lines] == [pytest.approx(level, rel=1e-9) for level in wanted]
    assert [[y for _, y in places] for places in lines] == 3 * [pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)]
    (mark,) = mixes(chart(gpp()).panels[0])
    assert mark.value == pytest.approx(5.655e12, rel=1e-3)
    frames = sweep(1, 3)  # the steps, not the rows; what lacks is left out
    points = frames.points.query("level != 'l2' or step != 1").iloc[::-1].reset_index(drop=True)
    lines = [line.places for line in sweep_lines(replace(frames, points=points))]
    assert [len(places) for places in lines] == [3, 2, 3]
    assert all(np.diff([x for x, _ in places]).min() > 0 for places in lines)
    named = {1: 5, 3: 15, 4: 8, 9: 0}  # many kernels at their ends only
    assert {count: len(sweep_lines(sweep(count, 5), "step")) for count in named} == named


def test_walls_and_open_dots_of_instructions(tmp_path: Path) -> None:
    m = 10**6
    shown: Any = chart_of(instructions(tmp_path, global_ld=(m, 32 * m), shared_ld=(m, 4 * m), shared_st=(m, 4 * m)))
    first, second = shown.rows[0]
    walls = [sorted(mark.value for mark in panel.marks if getattr(mark, "kind", "") == "wall") for panel in (first, second)]
    assert walls[0] == [1 / 32, 1 / 8, 1 / 4, 1]  # sectors of 32 bytes: all lanes apart, 8 and 4 bytes each, one for all
    assert walls[1] == [1 / ways for ways in (32, 16, 8, 4, 2, 1)]
    at = {mark.fill: mark.x for mark in first.marks if mark.role == "dot" and mark.hue == level_style("l1")}
    assert at["full"] > at["none"] == 1 / 32  # global loads are open


# How it is drawn


def test_bars_are_as_long_as_units_were_full_and_end_at_the_axis() -> None:
    frames = make_roofline(0, zero_flop=2, missing=1)
    frames.kernels.loc[0, "fraction_dram"] = 1.07
    made, texts = drawn(frames)
    ends = {one.get_text(): sum(one.get_window_extent().intervalx) / 2 for one in texts if one.get_text() in ("0", "100")}
    found = [one.get_window_extent().width for one in made.findobj(Rectangle) if one.get_gid() == "bar"]
    kernels = frames.kernels.sort_values("seconds", ascending=False)
    wanted = [min(row[f"fraction_{unit}"], 1) for _, row in kernels.iterrows() for unit in ("sm", "l1", "l2", "dram")]
    assert [width / (ends["100"] - ends["0"]) for width in found] == pytest.approx(wanted, abs=0.003)
    assert "107 %" in {one.get_text() for one in texts}
    assert len(made.axes) == 1  # the sheet


def test_precisions_differ_by_fill_and_bands_hold_the_roofs_of_all_launches() -> None:
    frames = make_roofline(3, FOUR, zero_flop=0, clocks_differ=0.3, measured=False)
    assert "Dominated by other work, left out: FP16; choose with --precision." in footnotes(frames, chart(frames))
    object.__setattr__(frames, "asked", ("fp", "tensor"))
    made, texts = drawn(frames)
    faces = {line.get_gid(): line for axes in made.axes for line in axes.lines if (line.get_gid() or "").startswith("dots-")}
    ground = to_rgb(THEMES["light"].ground)
    assert [to_rgb(faces[f"dots-{fill}"].get_markerfacecolor()) == ground for fill in ("full", "none")] == [False, True]
    assert faces["dots-left"].get_fillstyle() == "left"
    names = [text.get_text() for text in texts if text.get_gid() in ("key", "label-name")]
    assert {"FP64", "FP32", "FP16"} <= set(names)
    assert all(len([name for name in names if name.startswith(one.kernel[:8])]) == 1 for one in chart(frames).kernels)
    roof = frames.roofs[frames.roofs.roof == "tensor.fp16.mma"].iloc[0]
    corners = [one.get_xy()[:, 1] for one in made.findobj(Polygon) if one.get_gid() == "band"]
    (flat,) = [ys for ys in corners if ys[0] == ys[1] == pytest.approx(roof.value_max)]
    assert flat.min() == pytest.approx(roof.value_min)


def test_the_size_of_dots_is_their_time_on_request_and_the_legend_covers_none() -> None:
    frames = make_roofline(3)
    for size, count in (("time", 3), ("equal", 1)):
        made, texts = drawn(frames, size=size)
        dots = [line.get_markersize() for axes in made.axes for line in axes.lines if line.get_gid() == "dots-full"]
        assert len(set(dots)) == count
        assert any("of the time" in text.get_text() for text in texts if text.get_gid() == "key") == (size == "time")
    (axes,) = [axes for axes in made.axes if axes.get_xscale() == "log"]
    inside = next(text for text in made.findobj(Text) if text.get_gid() == "key").axes.get_window_extent()
    around = axes.get_window_extent()
    assert around.x0 < inside.x0 < inside.x1 < around.x1
    assert around.y0 < inside.y0 < inside.y1 < around.y1
    for one in chart(frames).panels[0].series:
        assert not any(inside.contains(*axes.transData.transform((x, one.performance))) for _, x in one.dots)


def test_second_axes_of_the_time_view_are_seconds_at_the_roofs() -> None:
    frames = time_roofline(gpp(), launch_latency=LATENCY)
    made, texts = drawn(frames, time_figure)
    machine, first = frames.machines[frames.machines["level"] == "dram"].iloc[0], frames.points.iloc[0]
    both = next(axes for axes in made.axes if axes.get_title(loc="left").startswith("Complexity and time"))
    upper, right = (axes for axes in made.axes if axes is not both and axes.get_position().bounds == both.get_position().bounds)
    assert upper.get_xlim() == pytest.approx([at / machine.bandwidth for at in both.get_xlim()])
    assert right.get_ylim() == pytest.approx([at / machine.peak for at in both.get_ylim()])
    places = {line.get_gid(): tuple(line.get_xydata()[0]) for line in both.lines}
    assert places["dots-full"] == (first.traffic, first.work)
    assert places["point-ring"] == pytest.approx((first.inefficiency * first.traffic, first.inefficiency * first.work))
    assert "launch overhead" not in {one.get_text() for one in texts}  # far away from all dots


@pytest.mark.parametrize("preset", ["column", *(pytest.param(one, marks=LONG) for one in (None, "page", "slide"))])
def test_every_step_is_told_with_its_time_along_arrows(preset: str | None) -> None:
    frames = roofline([DEMO / f"gpp-h100-nw{nw}.ncu-repz" for nw in range(1, 7)], trajectory=True)
    made, texts = drawn(frames, preset=preset)
    told = [one.get_text() for one in texts if one.get_gid() in ("label-step", "key")]
    for step, seconds in frames.kernels.groupby("step").seconds.sum().items():
        time = format_value(seconds, "second", 3)
        assert [one for one in told if one.startswith(f"nw{int(step) + 1}") and one.endswith(time)], told
    assert len([line for axes in made.axes for line in axes.lines if line.get_gid() == "arrow"]) >= 4


def test_odd_names_and_long_titles() -> None:
    frames = make_roofline(6, odd=True)
    glyphs = "\u6838\U0001f680\x1b[0m" + "x" * 30
    for frame in (frames.points, frames.kernels):
        frame["kernel"] = frame["kernel"].replace({"=cmd|' /C calc'!A0": "\\$x$ $ \\alpha$", ODD[1][1]: glyphs})
        frame["report"] = "r" * 4000 + ".ncu-rep"
    made, texts = drawn(frames, title="$\\frac{1}$ costs 5$" + "t" * 3000)
    assert not [text.get_text() for text in texts if is_math_text(text.get_text())]
    assert any("cost\\$_a^{2}\\$ and \\$x_y\\$" in text.get_text() for text in texts)
    width, _ = made.canvas.get_width_height()
    assert [text.get_text() for text in texts if box_of(text).bounds()[2] > width] == []


def test_what_has_no_room_is_told_below() -> None:
    _, texts = drawn(make_roofline(3, ("fp64", "fp32"), zero_flop=0), width=2.6)
    shown = " ".join(one.get_text() for one in texts)
    labels = [text for one in texts if one.get_gid() == "label-roof" and "/s" not in (text := one.get_text())]
    assert labels  # else this tests nothing
    assert [one for one in labels if not re.search(rf"{re.escape(one)} [\d.]+ \w+", shown)] == []
    low, texts = drawn(make_roofline(4, ("fp64", "tensor.fp16", "tensor.int8")), width="5in", height="3.6in")
    assert low.get_size_inches().tolist() == pytest.approx([5.0, 3.6])
    assert sum(axes.get_xscale() == "log" for axes in low.axes) == 1
    assert "Left out for lack of room: 3 parts" in " ".join(text.get_text() for text in texts)


# Names and colours


def test_ids_read_well() -> None:
    labels = [precision_label(p) for p in ("fp64", "tensor.fp16.wgmma", "tensor.fp16.mma", "tensor.fp6fp4", "mixed")]
    assert labels == ["FP64", "Tensor FP16 wgmma", "Tensor FP16 mma.sync", "Tensor FP6/FP4", "All pipes"]
    assert level_order({"zz", "dram", "l1", "noc"}) == ["l1", "dram", "noc", "zz"]


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


# Simulation of full protanopia and deuteranopia: Machado, Oliveira and Fernandes (2009), table of severity 1.0.
BLINDNESS = (
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
)


def test_colours_stand_out_and_differ_for_the_colour_blind() -> None:
    styles = [level_style(level.id) for level in load_spec().levels]
    for theme in THEMES.values():
        for style in [*styles, level_style("noc"), level_style("remote")]:
            assert contrast(style.dark if theme.dark else style.light, theme.ground) >= 3
        assert contrast(theme.text, theme.ground) >= 7
        assert contrast(theme.faint, theme.ground) >= 4.5
        for table in BLINDNESS:
            rgb = [to_rgb(style.dark if theme.dark else style.light) for style in styles]
            seen = [[sum(w * c for w, c in zip(row, one, strict=True)) for row in table] for one in rgb]
            assert all(math.dist(a, b) > 0.12 for place, a in enumerate(seen) for b in seen[:place])


# Files


def test_no_pyplot_and_no_display() -> None:
    code = (
        "import sys; from tests.rendering.frames import make_roofline; from ncu_roofline.analyses import render;"
        "assert not {'matplotlib', 'plotly'} & set(sys.modules);"
        "render(make_roofline(2), 'png'); assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MPLBACKEND": "TkAgg"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("name", ["svg", pytest.param("png", marks=LONG), pytest.param("pdf", marks=LONG)])
def test_bytes_are_reproducible_whatever_the_settings(name: str) -> None:
    frames, options = make_roofline(3, odd=True), {"preset": "page", "title": "<script>alert(1)</script>"}
    first = render(frames, name, **options)
    odd = {"font.family": "monospace", "lines.linewidth": 9, "axes.facecolor": "red", "savefig.bbox": "tight"}
    with matplotlib.rc_context(odd):
        before = dict(matplotlib.rcParams)
        assert render(frames, name, **options) == first
        assert dict(matplotlib.rcParams) == before
    if name == "svg":
        assert "script" not in {element.tag.rpartition("}")[2] for element in ET.fromstring(first).iter()}
    assert b"dc:date" not in first


def test_png_svg_and_pdf() -> None:
    frames = make_roofline(3)
    data = render(frames, "png")
    width, height = struct.unpack(">II", data[16:24])
    assert (data[:8], width, 700 < height < 1100) == (b"\x89PNG\r\n\x1a\n", 1145, True)
    density = data.index(b"pHYs")
    assert struct.unpack(">I", data[density + 4 : density + 8])[0] == round(160 / 0.0254)
    root = ET.fromstring(render(frames, "svg", width="800px"))
    assert float(root.get("width", "").removesuffix("pt")) == pytest.approx(600)
    texts = list(root.iter(f"{SVG}text"))
    said = " ".join("".join(text.itertext()) for text in texts)
    for word in ("FP64 FMA 8.67 TFLOP/s", "intensity [FLOP/B]", "Performance [TFLOP/s]", *frames.points.kernel.unique()):
        assert word in said
    families = {match for text in texts for match in re.findall(r"font(?:-family)?:[^;]*", text.get("style", ""))}
    if tuple(map(int, matplotlib.__version__.split(".")[:2])) >= (3, 6):  # before, a text had one family
        assert any("DejaVu Sans" in family and family.endswith("sans-serif") for family in families)
    assert not [use for use in root.iter(f"{SVG}use") if "DejaVu" in use.get("{http://www.w3.org/1999/xlink}href", "")]
    data = render(frames, "pdf", preset="column")
    assert [word in data for word in (b"/FontFile2", b"/ToUnicode", b"/Type3", b"CreationDate")] == [True, True, False, False]
    assert b"/Subtype /Type0" in data or b"/Subtype /TrueType" in data


def test_what_cannot_be_drawn_is_refused() -> None:
    for name in ("size", "theme"):
        with pytest.raises(ValueError, match=f"{name} 'pink' is not"):
            render(make_roofline(1), "png", **{name: "pink"})
