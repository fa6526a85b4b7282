"""Sections as bytes, as reports embed them: read, written as text, damaged, and made to take long."""

from __future__ import annotations

import random

import pytest

from ncu_roofline.formats.sectionfile.charts import MISSING, compile_section, evaluate_charts
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


def test_every_field() -> None:
    got = parse_section(FULL)
    assert (got.identifier, reading.sets(got)) == ("Test", ("roofline", "full"))
    assert reading.text(got, "Description") == "caf\N{REPLACEMENT CHARACTER}"
    assert reading.definitions(got) == {"d": "a * 2"}
    assert [reading.rows(got, arch) for arch in (70, 80)] == [[("Head", "h"), ("", "m1")]] * 2
    ((item, filters),) = got.charts
    drawn = item.RooflineChart
    assert (filters, drawn.AxisIntensity.Label, drawn.AxisIntensity.Min, drawn.AxisWork.Max) == ((Filter(),), b"AI", 0.5, 1e12)
    extra = b"\xfa\x07\x03new"  # field 127, which no release has
    message = messages()["Section"]()
    message.ParseFromString(FULL + extra)
    assert extra in message.SerializeToString()
    unknown = parse_section(section(Metrics={"Metrics": [metric("m", arch={"MinArch": 999})]}) + extra)
    assert filter_of(unknown.message.Metrics.Metrics[0]) == Filter(999)


def test_filters_inside_others_and_caches() -> None:
    outer = Filter(75, 86, ((70, 70),))
    assert (Filter().inside(outer), outer.inside(Filter()), Filter(80).inside(Filter(75, 86))) == (outer, outer, Filter(80, 86))
    assert Filter(items=((89, None),)).inside(outer) == Filter(75, 86, ((89, None),))
    got = parse_section(FULL)
    assert got is parse_section(bytes(bytearray(FULL)))
    assert compile_section(got, 80) is compile_section(got, 80)


def test_written_and_read() -> None:
    inner = {"HorizontalContainer": {"Items": [chart(Filter={"MinArch": 80}), chart()]}, "Filter": {"Items": [{"MaxArch": 90}]}}
    for data in (FULL.replace(b"caf\xe9", b"cafe"), section(), section(inner, chart()), section(Header={"Rows": 0})):
        message = parse_section(data).message
        for item in message.Body[0].Items:
            item.ClearField("Table")  # it lacks the columns that a text needs
        for cc_names in (True, False):
            assert parse_document(section_text(message, cc_names=cc_names)).root.message == message
    message = made("Section", Identifier="A", DisplayName='GPU" } \n } # \\ \u202e\0 é')  # a name of others stays text
    assert parse_document(section_text(message, cc_names=True)).root.text("DisplayName") == 'GPU" }   } # \\    é'


def test_damaged() -> None:
    for data in (b"", b"\x00", b"\xff" * 40, FULL[:-3], FULL[: len(FULL) // 2], b"version https://git-lfs.github.com"):
        with pytest.raises(ValueError, match="section"):
            parse_section(data)
    for depth in (25, 90, 5000):  # containers in containers, whose lengths are written with five bytes each
        item = messages()["BodyItem"](RooflineChart={"Label": b"deep"}).SerializeToString()
        for number in (*(1, 5) * depth, 1, 5):
            length = bytes([*(len(item) >> shift & 127 | 128 for shift in (0, 7, 14, 21)), 0])
            item = bytes([number << 3 | 2]) + length + item
        with pytest.raises(ValueError, match="section"):
            parse_section(section() + item)
    chance, read = random.Random(7), 0
    for _ in range(600):
        flipped = bytearray(FULL)
        for _ in range(chance.randint(1, 4)):
            flipped[chance.randrange(len(flipped))] = chance.randrange(256)
        try:
            got = parse_section(bytes(flipped))
        except ValueError:
            continue
        read += 1
        evaluate_charts(got, {"w1": 1.0, "w2": 2, "t": 3.0, "t2": "x"}, (8, 0))
    assert read > 50


def test_definitions_without_end() -> None:
    """A chain of them has no value; those that multiply are evaluated once each."""
    moved, metrics = one("bytes"), {"bytes": 1.0, "add": 3.0}
    chain = section(chart(points=(point(one("d0"), moved),)), definitions={f"d{i}": f"d{i + 1} * 2" for i in range(5000)})
    ((dropped,),) = (drawn.dropped for drawn in evaluate_charts(parse_section(chain), metrics, (8, 0)))
    assert dropped.reason == MISSING
    definitions = {"loop": "loop + loop + loop + loop", "d15": "add"}
    definitions |= {f"d{i}": f"d{i + 1} + d{i + 1} + d{i + 1}" for i in range(15)}
    both = section(chart(points=(point(one("loop"), moved), point(one("d0"), moved))), definitions=definitions)
    (drawn,) = evaluate_charts(parse_section(both), metrics, (8, 0))
    assert ([gone.reason for gone in drawn.dropped], drawn.points[0].work) == ([MISSING], 3.0 * 3**15)
