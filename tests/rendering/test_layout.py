"""Geometry: limits, lines, boxes, and labels that find a place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.rendering import plan as layout
from ncu_roofline.rendering.plan import Box, Obstacles, View, overlap, roof_ends

VIEW = View(0.01, 100.0, 1e9, 1e13, 400.0, 200.0)


def test_places_are_logarithmic() -> None:
    assert VIEW.x(1.0) == pytest.approx(200.0)
    assert VIEW.y(1e11) == pytest.approx(100.0)
    assert VIEW.holds(1.0, 1e10)
    assert not VIEW.holds(1000.0, 1e10)


def test_limits_show_dots_and_ridges() -> None:
    x0, x1, y0, y1 = layout.limits([(0.05, 2e10), (40.0, 3e12)], [8e12, 4e12], [1.5e12, 15e12])
    assert x0 < 0.05
    assert x1 > 40.0
    assert y0 < 2e10
    assert y1 > 8e12
    assert x0 < 4e12 / 15e12
    assert x1 > 8e12 / 1.5e12


def test_limits_end_somewhere() -> None:
    x0, x1, y0, y1 = layout.limits([(1e-30, 1e-30)], [1e13], [1e12])
    assert x1 / x0 <= 1.0001 * 10**layout.MAX_DECADES
    assert y1 / y0 < 10 ** (layout.MAX_DECADES + 2)


def test_limits_without_anything() -> None:
    x0, x1, y0, y1 = layout.limits([], [], [])
    assert 0 < x0 < x1
    assert 0 < y0 < y1


def test_roofs_end_where_they_meet_or_at_the_edge() -> None:
    assert roof_ends(VIEW, "bandwidth", 1e12, 1e13 / 2) == ((0.01, 1e10), (5.0, 5e12))
    (_, low), (_, high) = roof_ends(VIEW, "bandwidth", 1e10, 5e12) or ((0, 0), (0, 0))
    assert (low, high) == (1e9, 1e12)
    assert roof_ends(VIEW, "bandwidth", 1e16, 5e12) is None
    assert roof_ends(VIEW, "compute", 4e12, 2e12) == ((2.0, 4e12), (100.0, 4e12))
    assert roof_ends(VIEW, "compute", 4e12, math.inf) == ((0.01, 4e12), (100.0, 4e12))
    assert roof_ends(VIEW, "compute", 4e14, 2e12) is None
    assert roof_ends(VIEW, "compute", 4e12, 1e9) is None
    assert roof_ends(VIEW, "wall", 200.0, math.inf) is None


def test_turned_boxes() -> None:
    a = Box(0, 0, 100, 4, 45.0)
    assert not overlap(a, Box(30, -30, 20, 20))
    assert overlap(a, Box(30, 30, 20, 20))
    assert not overlap(a, Box(-4, 4, 100, 4, 45.0))


boxes = st.builds(Box, *[st.floats(-50, 50)] * 2, *[st.floats(0.5, 40)] * 2, st.floats(-90, 90))


@given(boxes, boxes)
def test_overlap_is_symmetric_and_within_bounds(a: Box, b: Box) -> None:
    assert overlap(a, b) == overlap(b, a)
    if overlap(a, b):
        (al, ab, ar, at), (bl, bb, br, bt) = a.bounds(), b.bounds()
        assert al <= br
        assert bl <= ar
        assert ab <= bt
        assert bb <= at


def test_labels_do_not_touch_each_other() -> None:
    obstacles = Obstacles(VIEW)
    places = [obstacles.place(layout.around((200, 100), 30, 8, reach=9)) for _ in range(12)]
    found = [place[0] for place in places if place]
    assert len(found) > 8
    assert not [1 for i, a in enumerate(found) for b in found[:i] if overlap(a, b)]


def test_labels_avoid_dots_and_stay_inside() -> None:
    obstacles = Obstacles(VIEW)
    obstacles.add(Box(225, 100, 10, 10), 5.0)
    place = obstacles.place(layout.around((200, 100), 30, 8))
    assert place
    assert not overlap(place[0], Box(225, 100, 10, 10))
    assert obstacles.cost(Box(395, 100, 30, 8)) == math.inf
    assert obstacles.place([(Box(395, 100, 30, 8), 0.0)]) is None
    assert obstacles.place([(Box(225, 100, 5, 5), 0.0)], limit=2.0) is None


def test_labels_stand_along_their_line_rather_near_to_a_part_of_it() -> None:
    line = ((0.0, 0.0), (120.0, 90.0))
    places = layout.along(line, 60, 8, off=6, near=1)
    boxes = [box for box, _ in sorted(places, key=lambda place: place[1])]
    assert all(box.angle == pytest.approx(math.degrees(math.atan2(3, 4))) for box in boxes)
    assert not any(overlap(box, layout.segment(*line)) for box in boxes)
    assert math.dist((boxes[0].x, boxes[0].y), line[1]) < math.dist((boxes[-1].x, boxes[-1].y), line[1])
    assert layout.along(line, 160, 8) == []


def test_leaders_only_for_labels_away_from_their_dot() -> None:
    assert layout.leader((0, 0), Box(10, 0, 14, 8)) is None
    start, end = layout.leader((0, 0), Box(0, 20, 14, 8)) or ((0, 0), (0, 0))
    assert start == (0, 3.2)
    assert end == (0, 16)
