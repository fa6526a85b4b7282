"""Bytes -> Section."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import Filter, filter_of, made, messages, parse_section
from ncu_roofline.formats.sectionfile.text import parse_document, section_text
from tests.sectionfile import reading
from tests.sectionfile.section_factory import chart, constant, metric, one, per_second, point, roof, section

FULL = section(
    chart(
        roofs=(roof(per_second("w1", "w2"), one("t"), "R", color=0xFFFF0000, ShowOnlyIfNotZero=one("gate")),),
        points=(point(constant(3.0), one("t2"), "P"),),
        walls=({"Value": constant(7.5), "Options": {"Label": b"W"}},),
        Label=b"Chart",
        AxisIntensity={"Label": b"AI", "Min": 0.5, "Base": 2.0},
        AxisWork={"Label": b"FLOP/s", "Max": 1e12},
    ),
    {"Table": {"Label": b"T", "Metrics": [metric("m1")]}},
    definitions={"d": "a * 2"},
    Order=12,
    Extends=b"SpeedOfLight",
    Description=b"caf\xe9",
    Sets=[{"Identifier": b"roofline"}, {"Identifier": b"full"}],
    Header={"Metrics": [metric("h", label="Head")]},
    Metrics={"Metrics": [metric("m", arch={"MinArch": 80}, options=({"Name": b"o", "Filter": {"MaxArch": 72}},))]},
)


def test_every_text() -> None:
    got = parse_section(FULL)
    assert (got.identifier, reading.sets(got)) == ("Test", ("roofline", "full"))
    assert reading.text(got, "Description") == "caf\N{REPLACEMENT CHARACTER}"
    assert reading.definitions(got) == {"d": "a * 2"}
    assert [reading.rows(got, arch) for arch in (70, 80)] == [[("Head", "h"), ("", "m1")]] * 2


def test_charts() -> None:
    ((item, filters),) = parse_section(FULL).charts
    assert filters == (Filter(),)
    chart = item.RooflineChart
    assert (chart.AxisIntensity.Label, chart.AxisIntensity.Min, chart.AxisWork.Max) == (b"AI", 0.5, 1e12)
    assert chart.Walls[0].Value.Constant == 7.5


def test_written_and_read() -> None:
    inner = {"HorizontalContainer": {"Items": [chart(Filter={"MinArch": 80}), chart()]}, "Filter": {"Items": [{"MaxArch": 90}]}}
    for data in (FULL.replace(b"caf\xe9", b"cafe"), section(), section(inner, chart()), section(Header={"Rows": 0})):
        message = parse_section(data).message
        for item in message.Body[0].Items:
            item.ClearField("Table")  # it lacks the columns that a text needs
        for cc_names in (True, False):
            assert parse_document(section_text(message, cc_names=cc_names)).root.message == message


def test_what_a_name_of_others_holds_stays_text() -> None:
    hostile = 'GPU" } \n } # \\ \u202e\0 é'
    message = made("Section", Identifier="A", DisplayName=hostile)
    assert parse_document(section_text(message, cc_names=True)).root.text("DisplayName") == 'GPU" }   } # \\    é'


def test_same_bytes_same_object() -> None:
    assert parse_section(FULL) is parse_section(bytes(bytearray(FULL)))
    assert parse_section(section()) is not parse_section(FULL)


def test_items_replace_the_bounds_of_a_filter() -> None:
    arch = {"MinArch": 50, "Items": [{"MinArch": 70, "MaxArch": 75}, {"MinArch": 89}]}
    got = parse_section(section(Metrics={"Metrics": [metric("m", arch=arch)]}))
    assert filter_of(got.message.Metrics.Metrics[0]) == Filter(50, None, ((70, 75), (89, None)))


def test_unknown_fields_and_enum_values_survive() -> None:
    extra = b"\xfa\x07\x03new"  # field 127, which no release has
    message = messages()["Section"]()
    message.ParseFromString(FULL + extra)
    assert extra in message.SerializeToString()
    got = parse_section(section(Metrics={"Metrics": [metric("m", arch={"MinArch": 999})]}) + extra)
    assert filter_of(got.message.Metrics.Metrics[0]) == Filter(999)


def test_containers_keep_order_and_filters() -> None:
    def named(label: bytes, **more: Any) -> dict[str, Any]:
        return chart(Label=label, **more)

    inner = {"HorizontalContainer": {"Items": [named(b"2", Filter={"MinArch": 80}), named(b"3")]}, "Filter": {"MaxArch": 90}}
    got = parse_section(section(named(b"1"), inner, named(b"4")))
    assert [item.RooflineChart.Label for item, _ in got.charts] == [b"1", b"2", b"3", b"4"]
    shown = {arch: [one.label for one in evaluate_charts(got, {}, arch)] for arch in ((7, 5), (8, 0), (10, 0))}
    assert shown == {(7, 5): ["1", "3", "4"], (8, 0): ["1", "2", "3", "4"], (10, 0): ["1", "4"]}


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff" * 40, FULL[:-3], FULL[: len(FULL) // 2], b"version https://git-lfs.github.com"]
)
def test_damaged(data: bytes) -> None:
    with pytest.raises(ValueError, match="section"):
        parse_section(data)


def test_deep_containers_are_refused() -> None:
    for depth in (25, 90, 5000):
        item = messages()["BodyItem"](RooflineChart={"Label": b"deep"}).SerializeToString()
        for _ in range(depth):
            container = _field(1, item)
            item = _field(5, container)
        with pytest.raises(ValueError, match="section"):
            parse_section(section() + _field(5, _field(1, item)))


def _field(number: int, payload: bytes) -> bytes:
    size = len(payload)
    length = bytearray()
    while size >= 128:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + payload


def test_flipped_bytes_give_a_section_or_a_value_error() -> None:
    random_ = random.Random(7)
    read = 0
    for _ in range(600):
        data = bytearray(FULL)
        for _ in range(random_.randint(1, 4)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        try:
            got = parse_section(bytes(data))
        except ValueError:
            continue
        read += 1
        evaluate_charts(got, {"w1": 1.0, "w2": 2, "t": 3.0, "t2": "x"}, (8, 0))
    assert read > 50
