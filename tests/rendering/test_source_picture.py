"""The picture of the source view: roofs, dots, loops and the hottest lines."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.picture import figure
from ncu_roofline.rendering.picture import settings
from tests.analyses.source_frames import source_frames
from tests.rendering.test_page import HOSTILE
from tests.rendering.test_source_page import TABLES, extreme, with_texts


def drawn(frames: SourceRoofline, kind: str) -> list[tuple[float, float]]:
    """The last point of each line of a kind."""
    with settings():
        made = figure(frames)
    lines = [line for axes in made.axes for line in axes.lines if line.get_gid() == kind]
    return [(float(line.get_xdata()[-1]), float(line.get_ydata()[-1])) for line in lines]


def texts(frames: SourceRoofline) -> list[str]:
    svg = render(frames, "svg").decode()
    return [re.sub(r"&(amp|lt|gt);", "?", text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


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
    assert len(drawn(frames, "roof")) == 2


def test_hottest_lines_are_listed_in_order() -> None:
    found = texts(source_frames())
    hot = [text for text in found if re.fullmatch(r"[a-z]+\.cuh?:\d+", text)]
    assert hot == [*(f"smooth.cu:{line}" for line in (5, 6, 10, 11, 12, 13, 15, 17)), "weights.cuh:3"]
    assert any("sum += weight(k)" in text for text in found)
    assert "79 %" in found
    assert any("samples" in text for text in found if text.startswith("Bars"))
    assert any("of the warp instructions" in text for text in texts(source_frames(sampled=False)))
    lineless = texts(source_frames(lines=False))
    assert "loop 0x40 to 0xa0" in lineless
    lengths = [x for x, _ in drawn(source_frames(), "heat")]
    assert max(lengths) == lengths[5]


def test_diamonds_are_explained_where_there_are_some() -> None:
    frames = source_frames()
    assert any("Diamonds" in text for text in texts(frames))
    columns = dict(frames.loop_columns)
    columns["performance"] = columns["performance"] * math.nan
    assert not any("Diamonds" in text for text in texts(replace(frames, loop_columns=columns)))


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


def test_nothing_to_draw() -> None:
    frames = source_frames()
    tables = {
        f"{name}_columns": {key: values[:0] for key, values in getattr(frames, f"{name}_columns").items()} for name in TABLES
    }
    assert "no launch has counts by instruction" in texts(replace(frames, **tables))


def test_extreme_counts() -> None:
    assert render(extreme(source_frames()), "svg").startswith(b"<?xml")
