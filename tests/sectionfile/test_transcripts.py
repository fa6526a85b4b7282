"""Sections as text, and what their charts are on a chip: transcripts `*.sections`.

$ draw FILE CC ... | OLD => NEW        charts of a section; values of metrics are those of `METRICS`, 1 for real names
$ shown FILE CC ...                    the metrics of its header
$ value EXPRESSION                     of a derived metric
$ classify METRIC ...                  precision and level
$ under FILE TRAFFIC WORK ...          the roofs for a dot of these metrics; FILE: a roof a line, its peaks and such metrics
$ caveat CC METRIC[*N] ...             what is wrong with work that counts instructions
$ halves FILE RELEASE                  factors of roofs and points for half precision
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.sectionfile.charts import Chart, Point, Roof, evaluate_charts, parse_expression
from ncu_roofline.formats.sectionfile.classify import classify, counts_halves_once, peaks_of, tensor_caveat
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from ncu_roofline.formats.sectionfile.text import parse_document
from tests.replay import assert_replays, changed
from tests.sectionfile import reading

HERE = Path(__file__).parent
CLOCKS = tuple(f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "dram", "lts", "l1tex"))


class Metrics(dict[str, Any]):
    """Values of metrics; a name as real ones are has 1 where none is given."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, 1.0 if "__" in name else default)


METRICS = Metrics({
    "sm": 1.5e9, "dram": 8.0e9, "flops": 96.0, "bytes": 32, "add": 3.0, "mul": 10.0, "fma_x2": 38.0, "moved": 1.0e10,
    "zero": 0, "fzero": 0.0, "nan": math.nan, "inf": math.inf, "text": "many", "huge": 10**400, "big": 2**63, "b": 4, "n": 7,
    "a.sum": 6.0, "minus": -1.0,
})  # fmt: skip


def capability(text: str) -> tuple[int, int]:
    return int(text[:-1]), int(text[-1])


def lines_of(chart: Chart) -> Iterator[str]:
    """A chart for people: what is drawn, of which metrics, and what is not, and why."""
    yield f"{chart.section}, {chart.title}: chart {chart.label!r}"
    for one in (*chart.roofs, *chart.points):
        values = (one.work, one.traffic, *([] if isinstance(one, Roof) else [one.intensity]))
        parts = [f"{' + '.join(names)}" or "a constant" for names in (one.work_metrics, one.traffic_metrics)]
        more = [f" {what} {' '.join(names)}" for what, names in (("computed", one.computed), ("lacking", one.lacking)) if names]
        kind = type(one).__name__.lower()
        yield f"  {kind} {one.label!r}: {' '.join(f'{value:.8g}' for value in values)} of {', '.join(parts)}{''.join(more)}"
    yield from (f"  wall {one.label!r}: {one.intensity:g} of {' '.join(one.metrics) or 'a constant'}" for one in chart.walls)
    for gone in chart.dropped:
        yield f"  no {gone.kind} {gone.label!r}: {gone.part} {gone.reason} {' '.join(gone.metrics)}".rstrip()


def value(text: str) -> str:
    try:
        found = parse_expression(text.encode().decode("unicode_escape")).evaluate(METRICS.get)
    except ValueError as error:
        return str(error)
    return f"{type(found).__name__} {found}" if found is not None else "no value"


def answer(command: str, folder: Path) -> str:
    what, _, rest = command.partition(" ")
    if what == "value":
        return value(rest)
    words, *changes = rest.split(" | ")
    name, *others = words.split()
    if what == "classify":
        return ", ".join(part or "-" for part in classify((name, *others, *CLOCKS)))
    if what == "caveat":
        one, _, times = others[0].partition("*")  # sections of 2020 list a metric as often as it counts
        return tensor_caveat((*[one] * int(times or 1), *others[1:]), capability(name))
    text = (folder / name).read_text(encoding="utf-8")
    if what == "under":
        rows = [line.split() for line in text.splitlines()]
        roofs = [Roof(" ".join(r[3:]), float(r[0]), float(r[1]), tuple(r[3:]), tuple(r[2:3])) for r in rows]
        dot = Point("dot", 1.0, 1.0, (*others[1:], CLOCKS[0]), (others[0],))
        found = [peaks_of(Chart("", "", "", tuple(order), (), (), ()), dot) for order in (roofs, roofs[::-1])]
        assert repr(found[0]) == repr(found[1])
        return "{:g} {:g}".format(*found[0])
    for change in changes:
        text = changed(text, change)
    section: Section = parse_section(parse_document(text).data)
    if what == "shown":
        found_on = {cc: reading.rows(section, int(cc)) for cc in others}
        return "\n".join(f"{cc}: {' '.join(metric for _, metric in rows)}" for cc, rows in found_on.items())
    lines = []
    for cc in others if what == "draw" else ["80"]:
        charts = evaluate_charts(section, METRICS, capability(cc))
        if what == "halves":
            return f"{counts_halves_once(charts[0], others[0])}"
        lines += [f"on {cc}", *(line for chart in charts for line in lines_of(chart))]
    return "\n".join(lines if len(others) > 1 else lines[1:])


@pytest.mark.parametrize("path", sorted(HERE.glob("*.sections")), ids=lambda path: path.stem)
def test_transcripts(path: Path, tmp_path: Path) -> None:
    assert_replays(path, tmp_path, lambda command: answer(command, tmp_path))


def test_expressions_beyond_reason() -> None:
    deep = ("(" * 5000 + "a" + ")" * 5000, "-" * 5000 + "1", "a + " * 3000 + "a", "nan_as_zero(" * 200 + "a" + ")" * 200)
    for text in (*deep, "", " "):
        with pytest.raises(ValueError, match="in expression"):
            parse_expression(text)
    assert parse_expression("1" + " + 1" * 2000).evaluate({}.get) == 2001
    for digits in (19, 20, 401, 5_000, 9_999):  # more than 64 bits: a double, of 401 digits infinite
        found = parse_expression("9" * digits).evaluate({}.get)
        assert found == (int if digits == 19 else float)("9" * digits)
        for text in ("{} * a.sum", "a.sum * {}", "b - {}", "n / {}", "-{}"):
            some = parse_expression(text.format("9" * digits)[:9_999]).evaluate(METRICS.get)
            assert some is None or isinstance(some, (int, float))
    assert parse_expression("nan_as_zero * 2").names == ("nan_as_zero",)  # alone it is a metric
    assert parse_expression("b + a.x__y:z.sum * b - 2").names == ("b", "a.x__y:z.sum")
