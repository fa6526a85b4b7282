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


def test_diamonds_are_explained_where_there_are_some() -> None:
    frames = source_frames()
    assert any("Diamonds" in text for text in texts(frames))
    columns = dict(frames.loop_columns)
    columns["performance"] = columns["performance"] * math.nan
    columns["notes"] = np.array(["no samples of warps"] * len(columns["loop"]), dtype=object)
    found = texts(replace(frames, loop_columns=columns))
    assert not any("Diamonds" in text for text in found)
    assert "No diamond of loops 0, 1: no samples of warps." in joined(found)


def test_what_limits_the_kernel_is_told() -> None:
    frames = source_frames()
    kernels = {**frames.roofline.kernel_columns}
    kernels["verdict"], kernels["reason"] = (
        np.array([text], dtype=object) for text in ("compute: INT32", "bound by its INT32 at 50 %")
    )
    told = replace(frames, roofline=replace(frames.roofline, kernel_columns=kernels))
    assert "Bound by its INT32 at 50 %." in joined(texts(told))


def test_dots_are_explained_and_loops_go_by_their_numbers() -> None:
    frames = source_frames()
    found = texts(frames)
    assert "Round dots: the kernel by its traffic at L1," in joined(found)
    assert "(0: 50.7 GFLOP/s, 1: 52.5 GFLOP/s)" in joined(found)
    columns = dict(frames.loop_columns)
    columns["last_line"] = columns["first_line"]
    columns["performance"] = np.where(columns["loop"] == 1, 1e12, columns["performance"])
    assert {"0: line 10", "1: line 12"} <= set(texts(replace(frames, loop_columns=columns)))


def test_code_without_line_has_rows_and_bars_say_what_they_are_together() -> None:
    frames = source_frames()
    columns = {name: values.copy() for name, values in frames.line_columns.items()}
    hottest = int(columns["share_samples"].argmax())
    columns["line"][hottest], columns["file"][hottest], columns["text"][hottest] = -1, "", "slow_division"
    found = texts(replace(frames, line_columns=columns))
    assert "in slow_division" in found
    assert "no line" in found
    assert not any("together" in text for text in found)
    columns["share_samples"][hottest] = 0.0
    assert any(re.search(r"together \d+ % of them", text) for text in texts(replace(frames, line_columns=columns)))


def test_shares_are_of_the_kernel_also_of_loops_in_loops() -> None:
    frames = source_frames(sampled=False, lines=False)
    whole = frames.instruction_columns["executed"].sum()
    shares = [
        f"{100 * executed / whole:.0f} %" for executed in frames.loop_columns["executed"][frames.loop_columns["loop"] >= 0]
    ]
    assert [text for text in texts(frames) if text.endswith("%")] == shares == ["98 %", "94 %"]


def test_notes_stand_below() -> None:
    notes = tuple(f"metric {number} was left out, as {'nobody knows what it says ' * 3}" for number in range(3))
    told = " ".join(text.strip() for text in texts(replace(source_frames(), notes=notes)))
    for number in range(3):
        assert f"Metric {number} was left out" in told
    assert "Bars: share of the samples" in told


def test_what_lacks_is_left_out() -> None:
    for options in ({"sampled": False}, {"lines": False}, {"texts": {}}, {"code": False}):
        frames = source_frames(**options)
        assert all(math.isfinite(x) and math.isfinite(y) for x, y in drawn(frames, "dot"))
        assert render(frames, "png")[:4] == b"\x89PNG"
    two = SourceRoofline.joined([source_frames(), source_frames(kernel="sharpen", launch=7)])
    assert any("of 2 that took longest" in text for text in texts(two))


def test_hostile_texts_and_themes() -> None:
    svg = render(with_texts(source_frames(), HOSTILE), "svg", title=HOSTILE).decode()
    assert "<img" not in svg
    assert "<script" not in svg
    assert render(source_frames(), "pdf")[:5] == b"%PDF-"
    assert render(source_frames(), "svg", theme="dark") != render(source_frames(), "svg")
    with pytest.raises(ValueError, match="theme"):
        render(source_frames(), "svg", theme="pink")


def test_extreme_counts_and_nothing_to_draw() -> None:
    assert render(extreme(source_frames()), "svg").startswith(b"<?xml")
    frames = source_frames()
    tables = {
        f"{name}_columns": {key: values[:0] for key, values in getattr(frames, f"{name}_columns").items()} for name in TABLES
    }
    assert "no launch has counts by instruction" in texts(replace(frames, **tables))
