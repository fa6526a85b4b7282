"""The interactive page: one self-contained html file, drawn by plotly.js, that needs no network and runs from file://."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ncu_roofline.analyses.hierarchical.captions import name_of
from ncu_roofline.analyses.hierarchical.columns import TABLES
from ncu_roofline.analyses.hierarchical.page_data import payload
from ncu_roofline.analyses.hierarchical.page_facts import facts
from ncu_roofline.rendering.frames import Frames, Tables
from ncu_roofline.rendering.page import EXPLANATION, PAGE_THEMES, self_contained, texts_of
from ncu_roofline.texts import one_line

_ADVICE = ("kernel", "rule", "type", "title", "text")
# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = (
    "page_format.js",
    "page_state.js",
    "page_labels.js",
    "page_sweep.js",
    "page_chart.js",
    "page_table.js",
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
    advice: Iterable[Mapping[str, str]] = (),
    tables: Tables = TABLES,
) -> bytes:
    """The page of a Roofline as UTF-8 bytes.

    ``explanations`` are dicts with report, text and command (what the report lacks and the ncu command that adds it),
    ``advice`` dicts with kernel, rule, type, title and text.  Nothing of the frames is trusted: it reaches the page escaped
    or as JSON.  ``tables`` declare the columns as of the view.
    Raises ValueError for an unknown theme and RooflineError where plotly is not installed.
    """
    if theme not in PAGE_THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(PAGE_THEMES)}")
    heading = one_line(title) or _default_title(roofline)
    return self_contained(
        __package__,
        "page.html.j2",
        _SCRIPTS,
        payload(roofline, tables, title=heading, theme=theme),
        title=heading,
        theme=theme,
        facts=facts(roofline),
        explanations=texts_of(explanations, EXPLANATION),
        advice=texts_of(advice, _ADVICE),
    )


def _default_title(roofline: Frames) -> str:
    """The device, or the only report."""
    names = [one_line(name) for name in dict.fromkeys(roofline.kernels["report"]) if name]
    if len(names) == 1:
        return f"{name_of(roofline)} of {names[0]}"
    return f"{name_of(roofline)} of {len(names)} reports" if names else name_of(roofline)
