"""Charts from hand-made sections and metrics."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ncu_roofline.formats.sectionfile.charts import (
    HIDDEN,
    IMPLAUSIBLE,
    MISSING,
    NO_CLOCK,
    NO_VALUE,
    NOT_A_NUMBER,
    NOT_FOR_THIS_CHIP,
    NOT_POSITIVE,
    Chart,
    Dropped,
    Point,
    Roof,
    Wall,
    compile_section,
    evaluate_charts,
)
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.sectionfile.reading import needed_metrics
from tests.sectionfile.section_factory import (
    DRAM_CLOCK,
    SM_CLOCK,
    chart,
    constant,
    metric,
    one,
    per_second,
    point,
    roof,
    section,
)

METRICS: dict[str, float | int | str] = {
    SM_CLOCK: 1.5e9,
    DRAM_CLOCK: 8.0e9,
    "flops.sum.peak_sustained": 96.0,
    "dram__bytes.sum.peak_sustained": 32,
    "add": 3.0,
    "mul": 10.0,
    "fma_x2": 38.0,
    "dram__bytes.sum.per_second": 1.0e10,
    "zero": 0.0,
    "nan": math.nan,
    "inf": math.inf,
    "text": "many",
    "huge": 10**400,
}
PEAK = per_second("flops.sum.peak_sustained")
BANDWIDTH = per_second("dram__bytes.sum.peak_sustained", clock=DRAM_CLOCK)
BYTES = one("dram__bytes.sum.per_second")


def draw(*items: dict[str, Any], capability: tuple[int, int] = (8, 0), **more: Any) -> list[Chart]:
    return evaluate_charts(parse_section(section(*items, **more)), METRICS, capability)


def only(*items: dict[str, Any], **more: Any) -> Chart:
    (got,) = draw(*items, **more)
    return got


def drop(*items: dict[str, Any], **more: Any) -> Dropped:
    got = only(*items, **more)
    assert not (got.roofs)
    assert not (got.points)
    assert not (got.walls)
    (dropped,) = got.dropped
    return dropped


def test_values_of_roofs_points_and_walls() -> None:
    got = only(
        chart(
            roofs=(roof(PEAK, BANDWIDTH, "R"),),
            points=(point(per_second("add", "mul", "fma_x2"), BYTES, "P"),),
            walls=({"Value": constant(2.5), "Options": {"Label": b"W"}}, {"Value": one("add")}),
            Label=b"L",
        )
    )
    assert (got.section, got.title, got.label) == ("Test", "Test section", "L")
    peak, width = ("flops.sum.peak_sustained", SM_CLOCK), ("dram__bytes.sum.peak_sustained", DRAM_CLOCK)
    assert got.roofs == (Roof("R", 1.44e11, 2.56e11, peak, width),)
    assert got.roofs[0].metrics == (*peak, *width)
    assert got.roofs[0].peak_work / got.roofs[0].peak_traffic == pytest.approx(0.5625)
    work = ("add", "mul", "fma_x2", SM_CLOCK)
    assert got.points == (Point("P", 7.65e10, 1e10, 7.65, work, ("dram__bytes.sum.per_second",)),)
    assert got.walls == (Wall("W", 2.5), Wall("", 3.0, ("add",)))
    assert got.dropped == ()


def test_a_metric_listed_twice_counts_twice() -> None:
    got = only(chart(roofs=(roof(per_second("flops.sum.peak_sustained", "flops.sum.peak_sustained"), constant(1.0)),)))
    assert got.roofs[0].peak_work == 2 * 96 * 1.5e9


def test_constants() -> None:
    got = only(chart(roofs=(roof(constant(9.7e12), constant(1.3e12)),), points=(point(constant(4.0), constant(2.0)),)))
    assert (got.roofs[0].peak_work, got.roofs[0].peak_traffic, got.roofs[0].metrics) == (9.7e12, 1.3e12, ())
    assert got.points[0].intensity == 2.0


@pytest.mark.parametrize(
    ("value", "reason", "culprits"),
    [
        (one("gone"), MISSING, ("gone",)),
        (per_second("gone", "lost"), MISSING, ("gone", "lost")),
        (per_second("add", "lost", clock="gone"), MISSING, ("lost", "gone")),
        (per_second("add", clock="gone"), MISSING, ("gone",)),
        (per_second("add", clock=None), NO_CLOCK, ("add",)),
        (per_second(), NO_VALUE, ()),
        ({}, NO_VALUE, ()),
        (one("zero"), NOT_POSITIVE, ("zero",)),
        (constant(0.0), NOT_POSITIVE, ()),
        (constant(-1.0), NOT_POSITIVE, ()),
        (constant(math.nan), NOT_A_NUMBER, ()),
        (constant(math.inf), NOT_A_NUMBER, ()),
        (per_second("add", "nan"), NOT_A_NUMBER, ("nan",)),
        (one("inf"), IMPLAUSIBLE, ("inf",)),
        (one("text"), NOT_A_NUMBER, ("text",)),
        (one("huge"), IMPLAUSIBLE, ("huge",)),
        (one("add", arch={"MinArch": 90}), NOT_FOR_THIS_CHIP, ()),
        (per_second("add", clock=metric(SM_CLOCK, arch={"MaxArch": 75})), NOT_FOR_THIS_CHIP, ("add",)),
        (per_second(metric("add", arch={"MinArch": 90})), NOT_FOR_THIS_CHIP, ()),
    ],
)
@pytest.mark.parametrize("place", ["roof work", "roof traffic", "point work", "point traffic", "wall value"])
def test_dropped(value: dict[str, Any], reason: str, culprits: tuple[str, ...], place: str) -> None:
    kind, part = place.split()
    pair = (value, constant(1.0)) if part == "work" else (constant(1.0), value)
    parts: dict[str, Any] = {
        "roof": {"Rooflines": (roof(*pair, "X"),)},
        "point": {"AchievedValues": (point(*pair, "X"),)},
        "wall": {"Walls": ({"Value": value, "Options": {"Label": b"X"}},)},
    }
    assert drop(chart(**parts[kind])) == Dropped(kind, "X", part, reason, culprits)


def test_the_rest_is_drawn() -> None:
    got = only(chart(roofs=(roof(one("gone"), BANDWIDTH, "A"), roof(PEAK, BANDWIDTH, "B")), points=(point(BYTES, BYTES),)))
    assert [one.label for one in got.roofs] == ["B"]
    assert len(got.points) == 1
    assert [one.label for one in got.dropped] == ["A"]


def test_summands_for_other_chips_are_left_out() -> None:
    packed = metric("packed_x4", arch={"Items": [{"MinArch": 100, "MaxArch": 100}, {"MinArch": 103, "MaxArch": 103}]})
    item = chart(points=(point(per_second("add", packed), BYTES),))
    assert only(item, capability=(9, 0)).points[0].work == 3 * 1.5e9
    assert only(item, capability=(9, 0)).points[0].lacking == ()
    for capability in ((10, 0), (10, 3)):
        assert only(item, capability=capability).points[0].lacking == ("packed_x4",)


def test_a_sum_without_some_of_its_summands() -> None:
    """The viewer draws the others; here it is told which are not there."""
    value = per_second("add", "gone", "lost")
    got = only(chart(roofs=(roof(value, BANDWIDTH),), points=(point(value, BYTES),), walls=({"Value": value},)))
    (line,), (dot,), (wall,) = got.roofs, got.points, got.walls
    assert line.peak_work == dot.work == wall.intensity == 3 * 1.5e9
    assert line.work_metrics == dot.work_metrics == ("add", SM_CLOCK)
    assert line.lacking == dot.lacking == ("gone", "lost")
    assert got.dropped == ()


def test_alternatives_per_compute_capability() -> None:
    name = metric(
        "old",
        arch={"MaxArch": 72},
        options=({"Name": b"add", "Filter": {"MinArch": 90}}, {"Name": b"mul", "Filter": {"MinArch": 75}}),
    )
    item = chart(points=(point(per_second(name), BYTES),))
    work = {arch: [p.work / 1.5e9 for p in only(item, capability=arch).points] for arch in ((7, 0), (8, 9), (12, 0))}
    assert work == {(7, 0): [], (8, 9): [10.0], (12, 0): [3.0]}


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (one("add"), None),
        (constant(1.0), None),
        (constant(-1.0), None),
        (one("zero"), HIDDEN),
        (constant(0.0), HIDDEN),
        (one("gone"), MISSING),
        (one("nan"), NOT_A_NUMBER),
    ],
)
def test_show_only_if_not_zero(gate: dict[str, Any], reason: str | None) -> None:
    got = only(chart(roofs=(roof(PEAK, BANDWIDTH, "R", ShowOnlyIfNotZero=gate), roof(PEAK, BANDWIDTH, "S"))))
    assert [one.label for one in got.roofs] == (["S"] if reason else ["R", "S"])
    assert [(one.label, one.part, one.reason) for one in got.dropped] == ([("R", "condition", reason)] if reason else [])


def test_filters_of_items_and_of_the_section() -> None:
    items = (
        chart(Label=b"old", Filter={"MaxArch": 75}),
        chart(Label=b"all"),
        chart(Label=b"new", Filter={"Items": [{"MinArch": 89}]}),
    )
    assert [one.label for one in draw(*items, capability=(7, 5))] == ["old", "all"]
    assert [one.label for one in draw(*items, capability=(12, 1))] == ["all", "new"]
    assert draw(*items, capability=(8, 0), Filter={"MinArch": 90}) == []
    assert len(draw(*items, capability=(8, 0), Filter={"CollectionFilter": {"CollectionScopes": [1]}})) == 1


def test_definitions_fill_in_what_the_report_lacks() -> None:
    definitions = {
        "d1": "add * 2",
        "fma_x2": "add * 1000",
        "d2": "d1 + 1.",
        "loop": "loop * 2",
        "d3": "gone * 2",
        "bad": "add ^ 2",
    }
    item = chart(points=tuple(point(per_second(name), BYTES, name) for name in definitions))
    got = only(item, definitions=definitions)
    assert {p.label: (p.work / 1.5e9, p.computed) for p in got.points} == {
        "d1": (6.0, ("d1",)),
        "fma_x2": (38.0, ()),  # in the report: the definition is not needed
        "d2": (7.0, ("d2",)),
    }
    assert {d.label: (d.reason, d.metrics) for d in got.dropped} == {name: (MISSING, (name,)) for name in ("loop", "d3", "bad")}


def test_definition_for_another_chip() -> None:
    definitions = {"MetricDefinitions": [{"Name": b"d", "Expression": b"add * 2", "Filter": {"MinArch": 90}}]}
    item = chart(points=(point(one("d"), BYTES),))
    (old,), (new,) = (
        evaluate_charts(parse_section(section(item) + _definitions(definitions)), METRICS, cc) for cc in ((8, 0), (9, 0))
    )
    assert (len(old.points), len(new.points)) == (0, 1)


def _definitions(fields: dict[str, Any]) -> bytes:
    from ncu_roofline.formats.sectionfile.section import messages

    data = messages()["Section"](MetricDefinitions=fields).SerializeToString()
    assert isinstance(data, bytes)
    return data


def test_endless_chain_of_definitions_has_no_value() -> None:
    chain = {f"d{i}": f"d{i + 1} * 2" for i in range(5000)}
    assert drop(chart(points=(point(one("d0"), BYTES),)), definitions=chain).reason == MISSING


def test_definitions_that_multiply_are_evaluated_once_each() -> None:
    definitions = (
        {"loop": "loop + loop + loop + loop"} | {f"d{i}": f"d{i + 1} + d{i + 1} + d{i + 1}" for i in range(15)} | {"d15": "add"}
    )
    got = only(chart(points=(point(one("loop"), BYTES, "loop"), point(one("d0"), BYTES, "d0"))), definitions=definitions)
    assert [one.reason for one in got.dropped] == [MISSING]
    assert got.points[0].work == 3.0 * 3**15


def test_sections_are_compiled_once_per_chip() -> None:
    got = parse_section(section(chart(roofs=(roof(PEAK, BANDWIDTH),))))
    assert compile_section(got, 80) is compile_section(got, 80)
    assert compile_section(got, 80) is not compile_section(got, 90)


def test_needed_metrics() -> None:
    name = metric("old", arch={"MaxArch": 72}, options=({"Name": b"new", "Filter": {"MinArch": 75}},))
    item = chart(
        roofs=(roof(per_second(name), one("d"), ShowOnlyIfNotZero=one("gate")),),
        points=(point(constant(1.0), one("bytes")),),
        walls=({"Value": one("wall")},),
    )
    other = chart(points=(point(one("elsewhere"), one("elsewhere2")),), Filter={"MinArch": 90})
    got = parse_section(section(item, other, definitions={"d": "e + f", "e": "g * 2", "unused": "h * 2"}))
    names = needed_metrics(got, (8, 0))
    assert len(names) == len(set(names))
    assert set(names) == {"new", SM_CLOCK, "d", "e", "f", "g", "gate", "bytes", "wall"}
    assert "old" in needed_metrics(got, (7, 0))
    assert "elsewhere" in needed_metrics(got, (9, 0))


def test_needed_metrics_are_all_that_is_read() -> None:
    class Spy(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            read.add(key)
            return super().get(key, default)

    read: set[str] = set()
    item = chart(roofs=(roof(one("d"), BANDWIDTH, ShowOnlyIfNotZero=one("add")),), points=(point(PEAK, one("x")),))
    got = parse_section(section(item, definitions={"d": "e * 2", "e": "add + mul"}))
    evaluate_charts(got, Spy(METRICS), (8, 0))
    assert read == set(needed_metrics(got, (8, 0)))
