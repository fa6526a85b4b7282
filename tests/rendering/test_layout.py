"""Papers that pictures are drawn on, and geometry: limits, lines, boxes, and labels that find a place."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import RendererAgg

from ncu_roofline.analyses import render
from ncu_roofline.rendering import plan as layout
from ncu_roofline.rendering.paper import DEFAULT, Paper, PaperError, length, paper_of
from ncu_roofline.rendering.plan import Box, Obstacles, View, overlap, roof_ends
from tests.rendering.cases import timed
from tests.rendering.frames import make_roofline, tomllib


def test_lengths_and_presets() -> None:
    lengths = {"3.3in": 237.6, "84mm": 238.11, "8.4 cm": 238.11, "240pt": 240.0, "800px": 600.0, ".5in": 36.0}
    assert {text: length(text) for text in lengths} == pytest.approx(lengths, abs=0.01)
    assert paper_of() == DEFAULT
    assert paper_of(preset="column") == Paper(3.3 * 72, 0.0, 8.0, 300.0)
    assert paper_of(preset="column", font=7, dpi=600) == Paper(3.3 * 72, 0.0, 7.0, 600.0)
    assert paper_of(3.3, "50mm") == Paper(3.3 * 72, pytest.approx(141.73, abs=0.01), DEFAULT.font, DEFAULT.dpi)
    assert paper_of("800px", dpi=200).width == pytest.approx(288)
    assert paper_of("3.3IN").width == paper_of(3.3).width


GIVEN = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
REFUSED = [(asked, words) for words, papers in GIVEN["refused"].items() for asked in papers]
REFUSED += [({name: 10**400}, f"{name} inf is not between") for name in ("dpi", "width")]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_papers_that_nobody_can_draw_on(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(PaperError, match=words):
        paper_of(**asked)


def test_dots_that_are_too_many_are_refused_before_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    canvases: list[float] = []
    start = RendererAgg.__init__

    def watched(self: RendererAgg, width: float, height: float, dpi: float) -> None:
        canvases.append(width * height)
        start(self, width, height, dpi)

    monkeypatch.setattr(RendererAgg, "__init__", watched)
    for frames, paper in (
        (make_roofline(1), {"dpi": 2400}),
        (timed(1), {"width": "60in", "dpi": 2400}),
        (make_roofline(1), {"width": "60in", "height": "200in", "dpi": 100}),
    ):
        with pytest.raises(PaperError, match=r"dpi \d+ makes \d+ million dots of it, more than 100"):
            render(frames, "png", **paper)
    assert 0 < max(canvases) < 1e6
    with pytest.raises(PaperError, match=r"height 1\.5in has no room for the picture"):
        render(make_roofline(3), "png", height="1.5in", font=14)


VIEW = View(0.01, 100.0, 1e9, 1e13, 400.0, 200.0)


def test_places_are_logarithmic_and_limits_show_dots_and_ridges() -> None:
    assert (VIEW.x(1.0), VIEW.y(1e11)) == pytest.approx((200.0, 100.0))
    assert (VIEW.holds(1.0, 1e10), VIEW.holds(1000.0, 1e10)) == (True, False)
    x0, x1, y0, y1 = layout.limits([(0.05, 2e10), (40.0, 3e12)], [8e12, 4e12], [1.5e12, 15e12])
    assert x0 < min(0.05, 4e12 / 15e12)
    assert x1 > max(40.0, 8e12 / 1.5e12)
    assert y0 < 2e10 < 8e12 < y1
    x0, x1, y0, y1 = layout.limits([(1e-30, 1e-30)], [1e13], [1e12])  # they end somewhere
    assert x1 / x0 <= 1.0001 * 10**layout.MAX_DECADES
    assert y1 / y0 < 10 ** (layout.MAX_DECADES + 2)
    x0, x1, y0, y1 = layout.limits([], [], [])
    assert min(x1 - x0, y1 - y0) > 0 < min(x0, y0)


@pytest.mark.parametrize("case", GIVEN["ends"])
def test_roofs_end_where_they_meet_or_at_the_edge(case: dict[str, Any]) -> None:
    assert roof_ends(VIEW, *case["roof"]) == (tuple(map(tuple, case["are"])) if "are" in case else None)


boxes = st.builds(Box, *[st.floats(-50, 50)] * 2, *[st.floats(0.5, 40)] * 2, st.floats(-90, 90))


@given(boxes, boxes)
def test_overlap_is_symmetric_and_within_bounds(a: Box, b: Box) -> None:
    assert overlap(a, b) == overlap(b, a)
    assert not overlap(Box(0, 0, 100, 4, 45.0), Box(30, -30, 20, 20))
    assert overlap(Box(0, 0, 100, 4, 45.0), Box(30, 30, 20, 20))
    if overlap(a, b):
        (al, ab, ar, at), (bl, bb, br, bt) = a.bounds(), b.bounds()
        assert max(al, bl) <= min(ar, br)
        assert max(ab, bb) <= min(at, bt)


def test_labels_touch_neither_each_other_nor_dots_and_stay_inside() -> None:
    obstacles = Obstacles(VIEW)
    places = [obstacles.place(layout.around((200, 100), 30, 8, reach=9)) for _ in range(12)]
    found = [place[0] for place in places if place]
    assert len(found) > 8
    assert not [1 for i, a in enumerate(found) for b in found[:i] if overlap(a, b)]
    obstacles = Obstacles(VIEW)
    obstacles.add(Box(225, 100, 10, 10), 5.0)
    place = obstacles.place(layout.around((200, 100), 30, 8))
    assert place
    assert not overlap(place[0], Box(225, 100, 10, 10))
    assert obstacles.cost(Box(395, 100, 30, 8)) == math.inf
    assert obstacles.place([(Box(395, 100, 30, 8), 0.0)]) is None
    assert obstacles.place([(Box(225, 100, 5, 5), 0.0)], limit=2.0) is None


def test_labels_stand_along_their_line_near_to_a_part_of_it_and_have_leaders_only_away_from_their_dot() -> None:
    line = ((0.0, 0.0), (120.0, 90.0))
    places = layout.along(line, 60, 8, off=6, near=1)
    boxes = [box for box, _ in sorted(places, key=lambda place: place[1])]
    assert all(box.angle == pytest.approx(math.degrees(math.atan2(3, 4))) for box in boxes)
    assert not any(overlap(box, layout.segment(*line)) for box in boxes)
    assert math.dist((boxes[0].x, boxes[0].y), line[1]) < math.dist((boxes[-1].x, boxes[-1].y), line[1])
    assert layout.along(line, 160, 8) == []
    assert layout.leader((0, 0), Box(10, 0, 14, 8)) is None
    assert layout.leader((0, 0), Box(0, 20, 14, 8)) == ((0, 3.2), (0, 16))
