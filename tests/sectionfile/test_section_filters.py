"""Architecture filters and alternatives of metrics."""

from __future__ import annotations

from typing import Any

import pytest

from ncu_roofline.formats.sectionfile.section import EVERYWHERE, Filter, arch_number, made, name_on


@pytest.mark.parametrize(
    ("capability", "number"),
    [((7, 0), 70), ((8, 6), 86), ((9, 0), 90), ((10, 0), 100), ((10, 1), 110), ((11, 0), 110), ((12, 1), 121)],
)
def test_arch_number(capability: tuple[int, int], number: int) -> None:
    assert arch_number(capability) == number


@pytest.mark.parametrize(
    ("low", "high", "inside", "outside"),
    [
        (75, 86, (75, 80, 86), (72, 87)),
        (None, 70, (50, 70), (72,)),
        (89, None, (89, 90, 121), (87,)),
        (None, None, (50, 121), ()),
        (100, 101, (100, 103, 110), (90, 120)),  # 10.1 of ncu 2025.1 is 11.0
        (101, 101, (110,), (100, 120)),
        (110, 110, (110,), (103, 120)),
        (None, 0, (), (50, 90)),  # "InvalidArch" as upper bound, as ncu 2024.2 takes it
    ],
)
def test_range(low: int | None, high: int | None, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    one = Filter(low, high)
    assert all(one.matches(arch) for arch in inside)
    assert not any(one.matches(arch) for arch in outside)


def test_filter_is_any_of_its_ranges_and_everything_without_any() -> None:
    two = Filter(None, 50, ((70, 75), (89, None)))
    assert [two.matches(arch) for arch in (70, 75, 80, 86, 89, 90)] == [True, True, False, False, True, True]
    assert EVERYWHERE.matches(10)


def _metric(name: str, *options: Any, kind: str = "Metric", **bounds: int) -> Any:
    more = {"Options": options} if options else {}
    return made(kind, Name=name, Filter=made("Filter", **bounds) if bounds else None, **more)


def test_first_matching_alternative_wins_over_the_base() -> None:
    options = (("old", {"MaxArch": 72}), ("new", {"MinArch": 89}), ("newer", {"MinArch": 90}))
    metric = _metric("base", *(_metric(name, kind="Option", **bounds) for name, bounds in options), MinArch=80)
    resolved = {arch: name_on(metric, arch) for arch in (70, 75, 80, 89, 90)}
    assert resolved == {70: "old", 75: None, 80: "base", 89: "new", 90: "new"}


def test_alternative_without_filter_always_matches() -> None:
    assert name_on(_metric("base", _metric("other", kind="Option")), 80) == "other"


def test_filter_inside_another() -> None:
    outer = Filter(75, 86, ((70, 70),))
    assert EVERYWHERE.inside(outer) == outer
    assert outer.inside(EVERYWHERE) == outer
    assert Filter(80).inside(Filter(75, 86)) == Filter(80, 86)
    assert Filter(None, 90).inside(Filter(75, 86)) == Filter(75, 90)
    items = Filter(items=((89, None),))
    assert items.inside(outer) == Filter(75, 86, ((89, None),))


def test_metric_inherits_the_filter_around_it() -> None:
    metric = _metric("base", _metric("new", kind="Option", MinArch=89))
    found = {arch: name_on(metric, arch, Filter(80, 90)) for arch in (75, 80, 89, 100)}
    assert found == {75: None, 80: "base", 89: "new", 100: None}
