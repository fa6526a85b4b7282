"""The interactive page: one self-contained html file, drawn by plotly.js, that needs no network and runs from file://."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.answer import answers_of
from ncu_roofline.analyses.hierarchical.captions import name_of, report_names
from ncu_roofline.analyses.hierarchical.columns import TABLES
from ncu_roofline.analyses.hierarchical.page_data import payload
from ncu_roofline.analyses.hierarchical.page_facts import facts
from ncu_roofline.base.texts import one_line
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.rendering.frames import Frames, Tables
from ncu_roofline.rendering.page import explanations_of, number, self_contained, texts_of

_ADVICE = ("kernel", "rule", "type", "title", "text")
_FINDINGS = 3  # whose titles stand beside the name of a kernel
# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = (
    "page_csv.js",
    "page_state.js",
    "page_labels.js",
    "page_ranges.js",
    "page_dots.js",
    "page_sweep.js",
    "page_chart.js",
    "page_tip.js",
    "page_columns.js",
    "page_controls.js",
    "page_usage.js",
    "page.js",
)


def render_html(
    roofline: Frames,
    *,
    title: str = "",
    theme: str = "auto",
    explanations: Iterable[Mapping[str, str]] = (),
    advice: Iterable[Mapping[str, Any]] = (),
    tables: Tables = TABLES,
) -> bytes:
    """The page of a Roofline as UTF-8 bytes.

    ``explanations`` are dicts with report, text and command (what the report lacks and the ncu command that adds it),
    ``advice`` dicts with kernel, rule, type, title and text, where known launches, share and recoverable seconds, those that
    matter most first.  Nothing of the frames is trusted: it reaches the page escaped
    or as JSON.  ``tables`` declare the columns as of the view.
    Raises ValueError for an unknown theme.
    """
    known = facts(roofline)
    return self_contained(
        __package__,
        _SCRIPTS,
        payload(roofline, tables),
        title=one_line(title) or _default_title(roofline),
        theme=theme,
        facts=known,
        reports=known["reports"],
        lacking=bool(known["statuses"] or known["missing"]),
        explanations=explanations_of(explanations),
        answers=answers_of(roofline),
        advice=_by_kernel(advice),
        strips=getattr(roofline, "strips", ()),
    )


def _by_kernel(advice: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings of a kernel together, kernels and findings in the order of ``advice``."""
    groups: dict[str, list[dict[str, str]]] = {}
    for entry in advice:
        (texts,) = texts_of([entry], _ADVICE)
        groups.setdefault(texts["kernel"], []).append({**texts, "facts": _concerns(entry)})
    return [{"kernel": kernel, "findings": found, "summary": _titles(found)} for kernel, found in groups.items()]


def _titles(found: Sequence[Mapping[str, str]]) -> str:
    """The first findings by their titles."""
    titles = list(dict.fromkeys(entry["title"] for entry in found))
    more = [f"{len(titles) - _FINDINGS} more"] if len(titles) > _FINDINGS else []
    return "; ".join([*titles[:_FINDINGS], *more])


def _concerns(entry: Mapping[str, Any]) -> str:
    """How much a finding is about, as far as that is known."""
    launches, share, seconds = (number(entry.get(key)) for key in ("launches", "share", "recoverable"))
    parts = [f"{launches} launches"] if launches is not None and launches > 1 else []
    parts += [f"{percent(share)} of the time"] if share is not None else []
    parts += [f"could save {format_value(seconds, 'second', 3)}"] if seconds else []
    return ", ".join(parts)


def _default_title(roofline: Frames) -> str:
    """What the view is called, of the only report or of how many."""
    names = [one_line(name) for name in report_names(roofline).values()]
    if len(names) == 1:
        return f"{name_of(roofline)} of {names[0]}"
    return f"{name_of(roofline)} of {len(names)} reports" if names else name_of(roofline)
