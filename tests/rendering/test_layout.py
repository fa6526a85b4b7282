"""Geometry: limits, lines, boxes, and labels that find a place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.rendering import layout
from ncu_roofline.rendering.layout import Box, Obstacles, View, overlap

VIEW = View(0.01, 100.0, 1e9, 1e13, 400.0, 200.0)


def test_places_are_logarithmic() -> None:
    assert VIEW.x(1.0) == pytest.approx(200.0)
    assert VIEW.y(1e11) == pytest.approx(100.0)
    assert VIEW.slope == pytest.approx(math.degrees(math.atan2(50.0, 100.0)))
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


def test_diagonal_ends_at_the_ridge_or_the_edge() -> None:
    assert layout.diagonal(VIEW, 1e12, 1e13 / 2) == ((0.01, 1e10), (5.0, 5e12))
    (_, low), (_, high) = layout.diagonal(VIEW, 1e10, 5e12) or ((0, 0), (0, 0))
    assert low == 1e9
    assert high == 1e12
    assert layout.diagonal(VIEW, 1e16, 5e12) is None


def test_horizontal_starts_at_the_steepest_roof() -> None:
    assert layout.horizontal(VIEW, 4e12, 2e12) == (2.0, 100.0)
    assert layout.horizontal(VIEW, 4e12, math.inf) == (0.01, 100.0)
    assert layout.horizontal(VIEW, 4e14, 2e12) is None
    assert layout.horizontal(VIEW, 4e12, 1e9) is None


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
    placed = [obstacles.place(layout.around(200, 100, 30, 8, reach=9)) for _ in range(12)]
    found = [box for box in placed if box]
    assert len(found) > 8
    assert not [1 for i, a in enumerate(found) for b in found[:i] if overlap(a, b)]


def test_labels_avoid_dots_and_stay_inside() -> None:
    obstacles = Obstacles(VIEW)
    obstacles.add(Box(225, 100, 10, 10), 5.0)
    box = obstacles.place(layout.around(200, 100, 30, 8))
    assert box
    assert not overlap(box, Box(225, 100, 10, 10))
    assert obstacles.cost(Box(395, 100, 30, 8)) == math.inf
    assert obstacles.place([(Box(395, 100, 30, 8), 0.0)]) is None
    assert obstacles.place([(Box(225, 100, 5, 5), 0.0)], limit=2.0) is None


def test_roof_labels_stand_beside_all_lines_of_a_roof() -> None:
    for box, _ in layout.along_diagonal(VIEW, [1e12, 1.2e12], 5e12, 60, 8):
        assert box.angle == VIEW.slope
        for bandwidth in (1e12, 1.2e12):
            (ax, ay), (bx, by) = layout.diagonal(VIEW, bandwidth, 5e12) or ((0, 0), (0, 0))
            assert not overlap(box, layout.segment(VIEW.x(ax), VIEW.y(ay), VIEW.x(bx), VIEW.y(by)))
    places = layout.along_horizontal(VIEW, [4e12, 3.5e12], 1e12, 60, 8)
    assert places
    for box, _ in places:
        assert not any(abs(box.y - VIEW.y(peak)) < 4 for peak in (4e12, 3.5e12))


def test_leaders_only_for_labels_away_from_their_dot() -> None:
    assert layout.leader(0, 0, Box(10, 0, 14, 8)) is None
    start, end = layout.leader(0, 0, Box(0, 20, 14, 8)) or ((0, 0), (0, 0))
    assert start == (0, 3.2)
    assert end == (0, 16)
