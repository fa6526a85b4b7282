"""Architecture filters and alternatives of metrics."""

from __future__ import annotations

import pytest

from ncu_roofline.formats.sectionfile.section import EVERYWHERE, ArchFilter, ArchRange, MetricName, SectionMetric, arch_number


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
    one = ArchRange(low, high)
    assert all(one.matches(arch) for arch in inside)
    assert not any(one.matches(arch) for arch in outside)


def test_filter_is_any_of_its_ranges_and_everything_without_any() -> None:
    two = ArchFilter(ArchRange(None, 50), (ArchRange(70, 75), ArchRange(89, None)))
    assert [two.matches(arch) for arch in (70, 75, 80, 86, 89, 90)] == [True, True, False, False, True, True]
    assert EVERYWHERE.matches(10)


def _only(low: int | None, high: int | None = None) -> ArchFilter:
    return ArchFilter(ArchRange(low, high))


def test_first_matching_alternative_wins_over_the_base() -> None:
    metric = SectionMetric(
        MetricName("base", "Label", _only(80)),
        (MetricName("old", "", _only(None, 72)), MetricName("new", "Own", _only(89)), MetricName("newer", "", _only(90))),
    )
    resolved = {arch: metric.resolve(arch) for arch in (70, 75, 80, 89, 90)}
    assert {arch: one and one.name for arch, one in resolved.items()} == {70: "old", 75: None, 80: "base", 89: "new", 90: "new"}
    assert resolved[70]
    assert resolved[70].label == "Label"
    assert resolved[89]
    assert resolved[89].label == "Own"


def test_alternative_without_filter_always_matches() -> None:
    found = SectionMetric(MetricName("base"), (MetricName("other"),)).resolve(80)
    assert found
    assert found.name == "other"


def test_filter_inside_another() -> None:
    outer = ArchFilter(ArchRange(75, 86), (ArchRange(70, 70),))
    assert EVERYWHERE.inside(outer) == outer
    assert outer.inside(EVERYWHERE) == outer
    assert _only(80).inside(_only(75, 86)) == _only(80, 86)
    assert _only(None, 90).inside(_only(75, 86)) == _only(75, 90)
    items = ArchFilter(items=(ArchRange(89, None),))
    assert items.inside(outer) == ArchFilter(ArchRange(75, 86), (ArchRange(89, None),))


def test_metric_inherits_the_filter_around_it() -> None:
    metric = SectionMetric(MetricName("base"), (MetricName("new", "", _only(89)),))
    around = _only(80, 90)
    found = {arch: metric.resolve(arch, around) for arch in (75, 80, 89, 100)}
    assert {arch: one and one.name for arch, one in found.items()} == {75: None, 80: "base", 89: "new", 100: None}
