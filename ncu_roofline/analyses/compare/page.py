"""The page of a comparison: one self-contained html file without any network, its chart drawn here, no plotly."""

from __future__ import annotations

import re
from functools import partial

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered
from ncu_roofline.analyses.compare.kernels import ADDED, REMOVED
from ncu_roofline.analyses.compare.page_data import payload
from ncu_roofline.analyses.compare.picture import as_svg, figure
from ncu_roofline.analyses.compare.text import (
    ComparisonFrames,
    names_of,
    notes_of,
    pair_title,
    pairs,
    rows_of,
    threshold_lines,
)
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.palette import GAIN, LOSS
from ncu_roofline.rendering.page import PAGE_THEMES, self_contained
from ncu_roofline.rendering.style import THEMES

WIDTHS = {"wide": 800.0, "medium": 515.0, "narrow": 240.0}
"""Points that the chart is wide, by what the page shows it for: screens, windows and paper, phones."""
_APART = 20  # kernels that are listed as new or gone
_GROUP = re.compile(r'<g id="[^"]*"')
_REFERENCE = re.compile(r'( id="|url\(#|xlink:href="#)')


def render_html(comparison: ComparisonFrames, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes; of three reports or more the chart shows the last against the baseline, the table all times.

    Nothing of the frames is trusted: it reaches the page escaped or as JSON.  Raises ValueError for an unknown theme.
    """
    if theme not in PAGE_THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(PAGE_THEMES)}")
    names, pair = names_of(comparison), changes.main_pair(comparison)
    one, kernels = pair if pair else ({}, [])
    lines = threshold_lines(comparison)
    heading = one_line(title) or (pair_title(one, names) if pair else "Comparison")
    return self_contained(
        __package__,
        "page.html.j2",
        ("page_format.js", "page_csv.js", "page_link.js", "page_theme.js", "page.js"),
        {"theme": theme, "title": heading, **(payload(comparison, one, kernels, names) if pair else {"columns": []})},
        styles=("page.css", "compare.css"),
        bundle=False,
        title=heading,
        theme=theme,
        headline=changes.headline(one, kernels) if pair else "Nothing was compared",
        about=changes.about(one, names, titled=heading != pair_title(one, names)) if pair else "",
        said=one_line(changes.details(one, kernels)) if pair else "",
        legend=changes.legend(one) if pair else "",
        charts={name: _chart(comparison, name) for name in WIDTHS} if pair else {},
        hues=_hues(),
        steps=[(pair_title(other, names), changes.headline(other, rows)) for other, rows in pairs(comparison)],
        tripped=any(row["result"] == "tripped" for row in rows_of(comparison, "thresholds")),
        thresholds=list(map(one_line, lines)),
        apart=[(label, _listed(kernels, word)) for label, word in (("New", ADDED), ("Gone", REMOVED))],
        notes=list(map(one_line, notes_of(one, kernels))) if pair else [],
        reports=list(names.values()),
    )


def _listed(kernels: list[Numbered], word: str) -> tuple[list[tuple[str, str]], int]:
    """The longest kernels that only one report has, with their times, and how many more there are."""
    found = [(clean(row["kernel"]), changes.times(row)) for _, row in kernels if row["outcome"] == word]
    return found[:_APART], max(len(found) - _APART, 0)


def _pairs_of_hues() -> dict[str, str]:
    """Colours of the light chart and what stands for them on dark ground."""
    light, dark = THEMES["light"], THEMES["dark"]
    roles = ("ground", "text", "faint", "grid", "compute", "connector")
    found = {getattr(light, role): getattr(dark, role) for role in roles} | {hue.light: hue.dark for hue in (GAIN, LOSS)}
    levels = (level_style(level.id) for level in load_spec().levels)
    return {one.lower(): other for one, other in (found | {style.light: style.dark for style in levels}).items()}


def _hues() -> list[tuple[str, str, str]]:
    """Name, light and dark of each colour of the chart; its ground is that of the card it stands on."""
    ground, card = THEMES["light"].ground.lower(), "var(--card)"
    hues = {**_pairs_of_hues(), ground: card}
    return [(f"--hue-{one[1:]}", card if one == ground else one, other) for one, other in hues.items()]


def _chart(comparison: ComparisonFrames, name: str) -> str:
    """The chart of a width as svg inside html: its texts are texts, and its colours those of the page's theme."""
    drawn = as_svg(partial(figure, comparison, points=WIDTHS[name], heading=False)).decode()
    tag, _, inside = drawn[drawn.index("<svg") :].partition(">")
    box = tag.partition('viewBox="')[2].partition('"')[0]
    svg = f'<svg viewBox="{box}">{_without(_without(inside, "metadata"), "style")}'
    svg = _REFERENCE.sub(rf"\g<1>{name}-", _GROUP.sub("<g", svg))  # ids are of the whole page; those of groups nobody needs
    for hue in _pairs_of_hues():
        svg = svg.replace(f": {hue}", f": var(--hue-{hue[1:]})")
    return svg


def _without(svg: str, element: str) -> str:
    """What stands before and behind the first such element: descriptions and rules of its own would be those of the page."""
    before, start, rest = svg.partition(f"<{element}")
    return before + rest.partition(f"</{element}>")[2] if start else svg
