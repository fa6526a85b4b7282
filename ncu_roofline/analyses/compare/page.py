"""The page of a comparison: one self-contained html file without any network, its chart drawn here, no plotly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ncu_roofline.analyses.compare import text as said
from ncu_roofline.analyses.compare.frames import ADDED, NOT_JUDGED, REMOVED, SAME, Comparison
from ncu_roofline.analyses.compare.picture import figure
from ncu_roofline.analyses.compare.text import Pair, Row
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.base.units import percent, time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.palette import GAIN, LOSS
from ncu_roofline.rendering.page import number, self_contained
from ncu_roofline.rendering.picture import saved
from ncu_roofline.rendering.style import THEMES

WIDTHS = {"wide": 800.0, "medium": 515.0, "narrow": 240.0}
"""Points that the chart is wide, by what the page shows it for: screens, windows and paper, phones."""
_APART = 20  # kernels that are listed as new or gone
_NAME = 400  # characters of a full name


def render_html(comparison: Comparison, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes; of three reports or more the chart shows the last against the baseline, the table all times.

    Nothing of the frames is trusted: it reaches the page escaped or as JSON.  Raises ValueError for an unknown theme.
    """
    pairs, lines = said.pairs(comparison), said.threshold_lines(comparison)
    pair = said.main_pair(pairs) or Pair({}, "", [])
    heading = one_line(title) or pair.title or "Comparison"
    values: dict[str, Any] = dict.fromkeys(("subtitle", "said", "legend"), "")
    values |= {"headline": "Nothing was compared", "charts": {}, "notes": []}
    if pairs:
        values = {
            "headline": said.headline(pair),
            "subtitle": said.about(pair, titled=heading != pair.title),
            "said": one_line(said.details(pair)),
            "legend": said.legend(pair),
            "charts": {name: _chart(comparison, name) for name in WIDTHS},
            "notes": list(map(one_line, said.notes_of(pair))),
        }
    return self_contained(
        __package__,
        ("page_csv.js", "page.js"),
        _table(comparison, pairs, pair) if pairs else {"columns": []},
        styles=("page.css", "compare.css"),
        bundle=False,
        title=heading,
        theme=theme,
        **values,
        hues=_hues(),
        steps=[(each.title, said.headline(each)) for each in pairs],
        tripped=any(line.startswith("tripped: ") for line in lines),
        thresholds=list(map(one_line, lines)),
        apart=[(label, _listed(pair, word)) for label, word in (("New", ADDED), ("Gone", REMOVED))],
        reports=list(said.names_of(comparison).values()),
    )


def _listed(pair: Pair, word: str) -> tuple[list[tuple[str, str]], int]:
    """The longest kernels that only one report has, with their times, and how many more there are."""
    listed = [(clean(row["kernel"]), row["time"]) for row in pair.rows if row["outcome"] == word]
    return listed[:_APART], max(len(listed) - _APART, 0)


def _table(comparison: Comparison, pairs: Sequence[Pair], pair: Pair) -> dict[str, Any]:
    """The table of a pair of reports: columns with the texts and values of all rows, and what its filters look at."""
    rows, columns = pair.rows, []

    def add(label: str, heading: str, texts: list[str], values: list[float] | None = None, between: bool = False) -> None:
        """``heading``: in its file, with the unit; ``values`` where texts are not these; ``between``: folded away."""
        numbers = None if values is None else list(map(number, values))
        if any(texts):
            columns.append({"label": label, "heading": heading, "texts": texts, "values": numbers, "between": between})

    def add_number(label: str, heading: str, values: list[float], text: Callable[[float], str], between: bool = False) -> None:
        add(label, heading, [text(value) if math.isfinite(value) else "" for value in values], values, between)

    for label, name in (("Kernel", "label"), ("Change", "change"), ("Verdict", "limits")):
        add(label, label.lower(), [row[name] for row in rows])
    add_number("Time before", "Time before [s]", [row["before"] for row in rows], time_text)
    for label, times in _between(comparison, pairs, pair):
        add_number(label, f"{label} [s]", times, time_text, between=True)
    # Between GPUs as measured: nobody compares it.
    add_number("Time after", "Time after [s]", [row["after" if pair.same_gpu else "total_seconds"] for row in rows], time_text)
    saved = [row["seconds_saved"] if row["device"] == row["device_before"] or not row["matched"] else math.nan for row in rows]
    add_number("Saved", "saved [s]", saved, lambda value: "\N{MINUS SIGN}" * (value < 0) + time_text(abs(value)))
    add_number("Speed-up", "speed-up", [row["speedup"] for row in rows], said.ratio_text)
    add_number("Share of roof before", "share of roof before", [row["fraction_before"] for row in rows], percent)
    add_number("after", "share of roof after", [row["fraction"] for row in rows], percent)
    level = said.level_of(comparison)
    for name, label in (
        ("FLOP", "FLOP"),
        ("bytes", f"{level_style(level).label if level else ''} bytes"),
        ("FLOP/B", "FLOP/B"),
    ):
        changes = [after / before - 1 if before else math.nan for before, after in (row["ratios"][name] for row in rows)]
        add(label, f"change of {label}", [row[name] if row[name] != "n/a" else "" for row in rows], changes)
    if {row["count"] for row in rows} - {"1"}:
        add("Launches", "launches", [row["count"] for row in rows])
    return {
        "columns": columns,
        "names": [clean(row["name"] or row["name_before"])[:_NAME] for row in rows],
        "outcomes": [row["outcome"] for row in rows],
        "changed": [row["outcome"] not in (SAME, NOT_JUDGED) or row["verdict_before"] != row["verdict"] for row in rows],
    }


def _between(comparison: Comparison, pairs: Sequence[Pair], pair: Pair) -> list[tuple[str, list[float]]]:
    """Run times of the states between, where all reports are compared with the baseline."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("name_before", "grid_before", "block_before", "device_before", "occurrence"))

    names, found = said.names_of(comparison), []
    for other in pairs:
        if other.whole["against"] == pair.whole["against"] == "baseline" and other.whole["step"] != pair.whole["step"]:
            times = {key(row): row["after"] for row in other.rows if row["name_before"]}
            label = names[other.whole["report"]].removesuffix(".ncu-rep")
            found.append((label, [times.get(key(row), math.nan) if row["name_before"] else math.nan for row in pair.rows]))
    return found


def _themed() -> dict[str, str]:
    """Colours of the light chart and what stands for them on dark ground."""
    light, dark = THEMES["light"], THEMES["dark"]
    roles = ("ground", "text", "faint", "grid", "compute", "connector")
    hues = [(getattr(light, role), getattr(dark, role)) for role in roles] + [(hue.light, hue.dark) for hue in (GAIN, LOSS)]
    hues += [(style.light, style.dark) for style in (level_style(level.id) for level in load_spec().levels)]
    return {one.lower(): other for one, other in hues}


def _hues() -> list[tuple[str, str, str]]:
    """Name, light and dark of each colour of the chart; its ground is that of the card it stands on."""
    themed = _themed() | {THEMES["light"].ground.lower(): "var(--card)"}
    return [(f"--hue-{one[1:]}", other if other == "var(--card)" else one, other) for one, other in themed.items()]


def _chart(comparison: Comparison, name: str) -> str:
    """The chart of a width as svg inside html: its texts are texts, and its colours those of the page's theme."""
    drawn = saved(partial(figure, comparison, points=WIDTHS[name], heading=False), "svg").decode()
    box = re.search(r'viewBox="([^"]*)"', drawn)
    # Descriptions and rules of its own would be those of the page; nobody needs the ids of groups, and others are of the page.
    svg = re.sub(r"(?s)^.*?<svg[^>]*>|<metadata.*?</metadata>|<style.*?</style>", "", drawn)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    for hue in _themed():
        svg = svg.replace(f": {hue}", f": var(--hue-{hue[1:]})")
    return f'<svg viewBox="{box[1] if box else ""}">{svg}'
