"""The page of a comparison: one self-contained html file without any network, its chart drawn here, no plotly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered, Row
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.kernels import ADDED, NOT_JUDGED, REMOVED, SAME
from ncu_roofline.analyses.compare.picture import figure
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
    names, pair = changes.names_of(comparison), changes.main_pair(comparison)
    one, kernels = pair if pair else ({}, [])
    lines = changes.threshold_lines(comparison)
    heading = one_line(title) or (changes.pair_title(one, names) if pair else "Comparison")
    values: dict[str, Any] = {"headline": "Nothing was compared", "charts": {}, "notes": []}
    values |= dict.fromkeys(("subtitle", "said", "legend"), "")
    if pair:
        values = {
            "headline": changes.headline(one, kernels),
            "subtitle": changes.about(one, names, titled=heading != changes.pair_title(one, names)),
            "said": one_line(changes.details(one, kernels)),
            "legend": changes.legend(one),
            "charts": {name: _chart(comparison, name) for name in WIDTHS},
            "notes": list(map(one_line, changes.notes_of(one, kernels))),
        }
    return self_contained(
        __package__,
        ("page_csv.js", "page.js"),
        _data(comparison, one, kernels, names) if pair else {"columns": []},
        styles=("page.css", "compare.css"),
        bundle=False,
        title=heading,
        theme=theme,
        **values,
        hues=_hues(),
        steps=[(changes.pair_title(other, names), changes.headline(other, rows)) for other, rows in changes.pairs(comparison)],
        tripped=any(line.startswith("tripped: ") for line in lines),
        thresholds=list(map(one_line, lines)),
        apart=[(label, _listed(kernels, word)) for label, word in (("New", ADDED), ("Gone", REMOVED))],
        reports=list(names.values()),
    )


def _listed(kernels: Sequence[Numbered], word: str) -> tuple[list[tuple[str, str]], int]:
    """The longest kernels that only one report has, with their times, and how many more there are."""
    found = [(clean(row["kernel"]), changes.times(row)) for _, row in kernels if row["outcome"] == word]
    return found[:_APART], max(len(found) - _APART, 0)


def _data(frames: Comparison, one: Row, kernels: Sequence[Numbered], names: Mapping[str, str]) -> dict[str, Any]:
    """The table of a pair of reports, the states between them with a time each."""
    rows = [row for _, row in kernels]
    columns = [column for column in _columns(frames, one, kernels, names) if any(column["texts"])]
    return {
        "columns": columns,
        "names": [clean(row["name"] or row["name_before"])[:_NAME] for row in rows],
        "outcomes": [row["outcome"] for row in rows],
        "changed": [row["outcome"] not in (SAME, NOT_JUDGED) or row["verdict_before"] != row["verdict"] for row in rows],
    }


def _column(label: str, heading: str, texts: Sequence[str], values: Sequence[float] | None = None) -> dict[str, Any]:
    """A column: its heading, that of its file (with the unit), the texts of all rows, and values where texts are not these."""
    numbers = None if values is None else [number(value) for value in values]
    return {"label": label, "heading": heading, "texts": list(texts), "values": numbers, "between": False}


def _numbers(label: str, heading: str, values: Sequence[float], text: Callable[[float], str]) -> dict[str, Any]:
    return _column(label, heading, [changes.known(value, text) for value in values], values)


def _columns(frames: Comparison, one: Row, kernels: Sequence[Numbered], names: Mapping[str, str]) -> list[dict[str, Any]]:
    rows, labels, memory = [row for _, row in kernels], changes.labels_of(kernels), changes.level_of(frames)
    before, after = zip(*map(changes.times_of, rows), strict=True) if rows else ((), ())
    if not changes.same_gpu(one):
        after = tuple(row["total_seconds"] for row in rows)  # as measured; nobody compares it
    saved = [row["seconds_saved"] if changes.same_gpu(row) or not row["matched"] else math.nan for row in rows]
    launches = list(map(changes.launches, rows))
    ratios = []
    for name, values in changes.ratios_of(frames, kernels).items():
        label = f"{level_style(memory).label if memory else ''} bytes" if name == "bytes" else name
        texts = [text if (text := changes.change(*pair)) != "n/a" else "" for pair in values]
        changed = [after / before - 1 if before else math.nan for before, after in values]
        ratios.append(_column(label, f"change of {label}", texts, changed))
    return [
        _column("Kernel", "kernel", [labels[place] for place, _ in kernels]),
        _column("Change", "change", list(map(changes.said, rows))),
        _column("Verdict", "verdict", list(map(changes.verdicts, rows))),
        _numbers("Time before", "Time before [s]", before, time_text),
        *_times_between(frames, one, rows, names),
        _numbers("Time after", "Time after [s]", after, time_text),
        _numbers("Saved", "saved [s]", saved, lambda value: "\N{MINUS SIGN}" * (value < 0) + time_text(abs(value))),
        _numbers("Speed-up", "speed-up", list(map(changes.speedup_of, rows)), changes.ratio_text),
        _numbers("Share of roof before", "share of roof before", [row["fraction_before"] for row in rows], percent),
        _numbers("after", "share of roof after", [row["fraction"] for row in rows], percent),
        *ratios,
        _column("Launches", "launches", launches if set(launches) - {"1"} else [""] * len(launches)),
    ]


def _times_between(frames: Comparison, one: Row, rows: Sequence[Row], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run times of the states between, where all reports are compared with the baseline."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("name_before", "grid_before", "block_before", "device_before", "occurrence"))

    between = []
    for other, others in changes.pairs(frames):
        if other["against"] == one["against"] == "baseline" and other["step"] != one["step"]:
            found = {key(row): changes.times_of(row)[1] for _, row in others if row["name_before"]}
            times = [found.get(key(row), math.nan) if row["name_before"] else math.nan for row in rows]
            label = names[other["report"]].removesuffix(".ncu-rep")
            between.append({**_numbers(label, f"{label} [s]", times, time_text), "between": True})
    return between


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


def _chart(comparison: Comparison, name: str) -> str:
    """The chart of a width as svg inside html: its texts are texts, and its colours those of the page's theme."""
    drawn = saved(partial(figure, comparison, points=WIDTHS[name], heading=False), "svg").decode()
    tag, _, inside = drawn[drawn.index("<svg") :].partition(">")
    box = tag.partition('viewBox="')[2].partition('"')[0]
    svg = f'<svg viewBox="{box}">{_without(_without(inside, "metadata"), "style")}'
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # nobody needs ids of groups, and others are of the whole page
    svg = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    for hue in _pairs_of_hues():
        svg = svg.replace(f": {hue}", f": var(--hue-{hue[1:]})")
    return svg


def _without(svg: str, element: str) -> str:
    """What stands before and behind the first such element: descriptions and rules of its own would be those of the page."""
    before, start, rest = svg.partition(f"<{element}")
    return before + rest.partition(f"</{element}>")[2] if start else svg
