"""What a section collects on which chip."""

from __future__ import annotations

from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.check.section_rules import Content

HEAD = 'Identifier: "A" DisplayName: "a"\n'


def _content(text: str) -> Content:
    return Content("", parse_document(HEAD + text))


def test_an_item_that_is_hidden_collects_nothing() -> None:
    metric = 'Metrics { Name: "m" Filter { MinArch: 70 MaxArch: 90 } }'
    content = _content(f"Body {{ Items {{ Filter {{ MaxArch: 75 }} Table {{ Columns: 1 {metric} }} }} }}")
    assert [arch for arch in (62, 70, 75, 80, 90, 100) if content.collected_on(arch)] == [70, 75]


def test_a_metric_inherits_what_it_leaves_open() -> None:
    options = 'Options { Name: "old" Filter { MaxArch: 75 } } Options { Name: "new" Filter { MinArch: 89 } }'
    table = f'Table {{ Columns: 1 Metrics {{ Name: "m" {options} }} }}'
    content = _content(f"Filter {{ MinArch: 72 }} Body {{ Items {{ Filter {{ MaxArch: 90 }} {table} }} }}")
    expected = {70: "", 72: "old", 75: "old", 80: "m", 89: "new", 90: "new", 100: ""}
    assert {arch: "".join(content.collected_on(arch)) for arch in expected} == expected


def test_the_first_definition_that_holds_counts() -> None:
    content = _content(
        "MetricDefinitions {\n"
        '  MetricDefinitions { Name: "x" Expression: "a * 1" Filter { MinArch: 80 } }\n'
        '  MetricDefinitions { Name: "x" Expression: "a * 2" }\n'
        '  MetricDefinitions { Name: "x" Expression: "a * 3" }\n}'
    )
    assert [content.defined_on(arch)["x"].expression for arch in (75, 80)] == ["a * 2", "a * 1"]


def test_charts_in_containers_keep_their_places() -> None:
    chart = (
        'RooflineChart {{ Label: "{}" AchievedValues {{ AchievedWork {{ Constant: 1 }} AchievedTraffic {{ Constant: 1 }} }} }}'
    )
    one, two, three = (chart.format(name) for name in ("one", "two", "three"))
    container = f"HorizontalContainer {{ Items {{\n{two} }} Items {{ Filter {{ MinArch: 80 }}\n{three} }} }}"
    content = _content(f"Body {{ Items {{ {container}\n{one} }} }}")
    places = [(chart.text("Label"), chart.line) for chart, _, _ in content.charts_on(80)]
    assert places == [("one", 5), ("two", 3), ("three", 4)]
    assert [chart.text("Label") for chart, _, _ in content.charts_on(75)] == ["one", "two"]
