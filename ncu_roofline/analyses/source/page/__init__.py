"""The source view as an interactive page: chart, source and instructions in one self-contained html file, no plotly."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.answer import answers_of
from ncu_roofline.analyses.hierarchical.captions import roof_note, source_note
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.launches import Launch, launches
from ncu_roofline.analyses.source.page.data import payload
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.rendering.page import PAGE_THEMES, self_contained

# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = (
    "page_format.js",
    "page_link.js",
    "page_theme.js",
    "page_labels.js",
    "page_state.js",
    "page_address.js",
    "page_chart.js",
    "page_rows.js",
    "page_listings.js",
    "page_tables.js",
    "page_details.js",
    "page_find.js",
    "page.js",
)


def render_html(frames: SourceRoofline, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes.

    Nothing of the frames is trusted: source text, names and messages reach the page escaped or as JSON.  Very long files and
    kernels of very many instructions are shown where something was counted, and the page says so.
    Raises ValueError for an unknown theme.
    """
    if theme not in PAGE_THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(PAGE_THEMES)}")
    found = launches(frames)
    reports = list(dict.fromkeys(one.report_name for one in found if one.report))
    heading = one_line(title) or _title(found, reports)
    return self_contained(
        __package__,
        "page.html.j2",
        _SCRIPTS,
        payload(frames, title=heading, theme=theme),
        styles=("page.css", "source.css"),
        bundle=False,
        title=heading,
        theme=theme,
        devices=list(dict.fromkeys(clean(one.device) for one in found)),
        answers=answers_of(frames.roofline),
        has_rows=bool(found),
        notes=[one_line(note) for note in (*frames.notes, roof_note(frames.roofline), source_note(frames.roofline)) if note],
        reports=[one_line(report) for report in reports],
    )


def _title(found: list[Launch], reports: list[str]) -> str:
    """Which kernel of which report."""
    kernels = list(dict.fromkeys(clean(one.kernel) for one in found))
    what = kernels[0] if len(kernels) == 1 else f"{len(kernels)} kernels"
    return f"Source roofline of {what}" + (f" in {one_line(reports[0])}" if len(reports) == 1 else "")
