"""What tests ask of a section: its metrics, rows, derived metrics and texts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ncu_roofline.formats.sectionfile.charts import compile_section
from ncu_roofline.formats.sectionfile.section import Section, arch_number, items_of, name_on, text_of


def text(section: Section, field: str) -> str:
    """A text field, such as Description."""
    return text_of(getattr(section.message, field))


def sets(section: Section) -> tuple[str, ...]:
    """The sets that it is in."""
    return tuple(text_of(one.Identifier) for one in section.message.Sets)


def tables(section: Section) -> list[Any]:
    """Its tables."""
    return [item.Table for item, _ in items_of(section.message) if item.HasField("Table")]


def definitions(section: Section) -> dict[str, str]:
    """Derived metrics: name -> expression, the first of a name."""
    found = section.message.MetricDefinitions.MetricDefinitions
    return {text_of(one.Name): text_of(one.Expression) for one in reversed(found)}


def rows(section: Section, arch: int) -> list[tuple[str, str]]:
    """(label, metric) of all rows of header and tables on an architecture."""
    shown = (*section.message.Header.Metrics, *(metric for table in tables(section) for metric in table.Metrics))
    return [(text_of(metric.Label), name) for metric in shown if (name := name_on(metric, arch)) is not None]


@lru_cache(maxsize=512)
def needed_metrics(section: Section, compute_capability: tuple[int, int]) -> tuple[str, ...]:
    """Every metric that its charts may read on a chip, each once, inputs of derived metrics included."""
    program = compile_section(section, arch_number(compute_capability))
    lines = [line for _, lines in program.charts for line in lines]
    terms = [term for line in lines for _, term in line.parts]
    terms += [line.condition for line in lines if line.condition]
    names = dict.fromkeys(name for term in terms for name in term.all_names)
    pending = list(names)
    while pending:
        expression = program.definitions.get(pending.pop())
        new = [name for name in expression.names if name not in names] if expression else []
        names.update(dict.fromkeys(new))
        pending += new
    return tuple(names)


def colors(section: Section) -> dict[str, int]:
    """The colours of roofs and points by their labels."""
    charts = [item.RooflineChart for item, _ in items_of(section.message) if item.HasField("RooflineChart")]
    lines = [line for chart in charts for line in (*chart.Rooflines, *chart.AchievedValues)]
    return {text_of(line.Options.Label): line.Options.Color.ColorValue for line in lines}
