"""The picture of the source view: roofs, dots, loops and the hottest lines."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.picture import figure, source_chart
from ncu_roofline.rendering.chart import Listing, Panel, Point, Roof
from ncu_roofline.rendering.picture import settings
from tests.analyses.source_frames import source_frames
from tests.rendering.test_page import HOSTILE
from tests.rendering.test_source_page import TABLES, extreme, with_texts


def drawn(frames: SourceRoofline, kind: str) -> list[tuple[float, float]]:
    """The places of the symbols of a kind."""
    (panel, _), *_ = source_chart(frames).rows or [((), ())]
    points = [mark for mark in getattr(panel, "marks", ()) if isinstance(mark, Point)]
    return [(point.x, point.y) for point in points if point.role == kind]


def lengths(frames: SourceRoofline) -> list[float]:
    """Of the bars."""
    ((_, listing),) = source_chart(frames).rows
    assert isinstance(listing, Listing)
    return [share for row in listing.rows for scale in row.scales for share, _ in scale.bars]


def texts(frames: SourceRoofline) -> list[str]:
    svg = render(frames, "svg").decode()
    return [re.sub(r"&(amp|lt|gt);", "?", text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def joined(found: list[str]) -> str:
    """The lines of the notes as one."""
    return " ".join(text.strip() for text in found)


def test_loops_and_levels_are_dots() -> None:
    frames = source_frames()
    loops = frames.loops[frames.loops["performance"] > 0]
    assert drawn(frames, "loop") == [
        pytest.approx(pair, rel=6e-6) for pair in zip(loops["intensity"], loops["performance"], strict=True)
    ]
    points = frames.roofline.points
    assert drawn(frames, "dot") == [
        pytest.approx(pair, rel=6e-6) for pair in zip(points["intensity"], points["performance"], strict=True)
    ]
    ((panel, _),) = source_chart(frames).rows
    assert isinstance(panel, Panel)
    assert len([mark for mark in panel.marks if isinstance(mark, Roof)]) == 2
    with settings():
        made = figure(frames)
    gids = {line.get_gid() for axes in made.axes for line in axes.lines}
    assert {"roof", "dots-full", "point-loop"} <= gids


def test_hottest_lines_are_listed_in_order() -> None:
    found = texts(source_frames())
    hot = [text for text in found if re.fullmatch(r"[a-z]+\.cuh?:\d+", text)]
    assert hot == [*(f"smooth.cu:{line}" for line in (5, 6, 10, 11, 12, 13, 15, 17)), "weights.cuh:3"]
    assert any("sum += weight(k)" in text for text in found)
    assert "79 %" in found
    assert any("samples" in text for text in found if text.startswith("Bars"))
    assert any("of the warp instructions" in text for text in texts(source_frames(sampled=False)))
    lineless = texts(source_frames(lines=False))
    assert "loop 1: 0x40 to 0x90" in lineless
    assert max(lengths(source_frames())) == lengths(source_frames())[5] == 1.0


def test_what_is_drawn_is_explained_where_there_is_some() -> None:
    frames = source_frames()
    found = joined(texts(frames))
    for words in ("Diamonds", "Round dots: the kernel by its traffic at L1,", "(0: 50.7 GFLOP/s, 1: 52.5 GFLOP/s)"):
        assert words in found
    columns = {**frames.loop_columns, "last_line": frames.loop_columns["first_line"]}  # a loop of one line is no range
    columns["performance"] = np.where(columns["loop"] == 1, 1e12, columns["performance"])
    assert {"0: line 10", "1: line 12"} <= set(texts(replace(frames, loop_columns=columns)))
    columns["performance"] = columns["performance"] * math.nan
    columns["notes"] = np.array(["no samples of warps"] * len(columns["loop"]), dtype=object)
    kernels = {**frames.roofline.kernel_columns, "verdict": np.array(["compute: INT32"], dtype=object)}
    kernels["reason"] = np.array(["bound by its INT32 at 50 %"], dtype=object)
    notes = tuple(f"metric {number} was left out, as {'nobody knows what it says ' * 3}" for number in range(3))
    told = replace(frames, loop_columns=columns, roofline=replace(frames.roofline, kernel_columns=kernels), notes=notes)
    found = joined(texts(told))
    assert "Diamonds" not in found
    for words in (
        "No diamond of loops 0, 1: no samples of warps.",
        "Bound by its INT32 at 50 %.",
        "Bars: share of the samples",
    ):
        assert words in found
    assert all(f"Metric {number} was left out" in found for number in range(3))


def test_code_without_line_has_rows_and_bars_say_what_they_are_together() -> None:
    frames = source_frames()
    columns = {name: values.copy() for name, values in frames.line_columns.items()}
    hottest = int(columns["share_samples"].argmax())
    columns["line"][hottest], columns["file"][hottest], columns["text"][hottest] = -1, "", "slow_division"
    found = texts(replace(frames, line_columns=columns))
    assert {"in slow_division", "no line"} <= set(found)
    assert not any("together" in text for text in found)
    columns["share_samples"][hottest] = 0.0
    assert any(re.search(r"together \d+ % of them", text) for text in texts(replace(frames, line_columns=columns)))
    frames = source_frames(sampled=False, lines=False)  # shares are of the kernel, also of loops in loops
    counts = frames.loop_columns["executed"][frames.loop_columns["loop"] >= 0]
    shares = [f"{100 * count / frames.instruction_columns['executed'].sum():.0f} %" for count in counts]
    assert [text for text in texts(frames) if text.endswith("%")] == shares == ["98 %", "94 %"]


def test_what_lacks_is_left_out_and_what_is_odd_is_drawn() -> None:
    for options in ({"sampled": False}, {"lines": False}, {"texts": {}}, {"code": False}):
        frames = source_frames(**options)
        assert all(math.isfinite(x) and math.isfinite(y) for x, y in drawn(frames, "dot"))
    two = SourceRoofline.joined([source_frames(), source_frames(kernel="sharpen", launch=7)])
    assert any("of 2 that took longest" in text for text in texts(two))
    wild = render(with_texts(source_frames(), HOSTILE), "svg", title=HOSTILE).decode()
    assert not any(tag in wild for tag in ("<img", "<script"))
    assert render(source_frames(), "pdf")[:5] == b"%PDF-"
    assert render(source_frames(), "svg", theme="dark") != render(source_frames(), "svg")
    assert render(extreme(source_frames()), "svg").startswith(b"<?xml")
    frames = source_frames()
    names = [f"{name}_columns" for name in TABLES]
    none = {name: {key: values[:0] for key, values in getattr(frames, name).items()} for name in names}
    assert "no launch has counts by instruction" in texts(replace(frames, **none))
