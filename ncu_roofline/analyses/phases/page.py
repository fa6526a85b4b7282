"""The view of phases as an interactive page: bands, the path under the roofs and a table of slices in one html file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ncu_roofline.analyses.hierarchical.captions import report_names, roof_note, source_note, subtitle
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.phases import captions
from ncu_roofline.analyses.phases.chart import DrawnBand, LaunchChart, PhaseFrames, Trajectory, charts
from ncu_roofline.base.texts import one_line
from ncu_roofline.base.units import UNITS
from ncu_roofline.rendering.page import PAGE_THEMES, explanations_of, number, self_contained

_SCRIPTS = ("page_format.js", "page_link.js", "page_theme.js", "page_charts.js", "page.js")


def render_html(
    frames: PhaseFrames, *, title: str = "", theme: str = "auto", explanations: Iterable[Mapping[str, str]] = ()
) -> bytes:
    """The page as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    if theme not in PAGE_THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(PAGE_THEMES)}")
    heading, found = one_line(title) or "Roofline over time", charts(frames)
    return self_contained(
        __package__,
        "page.html.j2",
        _SCRIPTS,
        payload(found, title=heading, theme=theme),
        title=heading,
        theme=theme,
        subtitle=one_line(subtitle(frames)),
        found=bool(found),
        explanation=captions.explanation(frames),
        absent=[one_line(note) for note in captions.absent_notes(frames)] if found else [],
        notes=[one_line(note) for note in (roof_note(frames), source_note(frames)) if note],
        reports=[one_line(name) for name in report_names(frames).values()],
        explanations=explanations_of(explanations),
    )


def payload(found: Iterable[LaunchChart], *, title: str, theme: str) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows."""
    units = {key: [unit.symbol, unit.prefixed] for key, unit in UNITS.items()}
    return {"title": title, "theme": theme, "units": units, "launches": [_launch(one) for one in found]}


def _launch(one: LaunchChart) -> dict[str, Any]:
    notes = [captions.CAVEAT if one.paths else captions.CAVEAT_OF_BANDS, *captions.launch_notes(one)]
    return {
        "name": one_line(one.kernel),
        "launch": one.launch,
        "cut": one.cut,
        "seconds": number(one.seconds),
        "edges": [number(edge) for edge in one.edges],
        "bands": [_band(band) for band in one.bands],
        "paths": [_path(path) for path in one.paths],
        "notes": [one_line(note) for note in notes],
    }


def _band(band: DrawnBand) -> dict[str, Any]:
    style = level_style(band.level) if band.level else None
    return {
        "label": one_line(band.label),
        "colours": [style.light, style.dark] if style else None,
        "values": [number(value) for value in band.values],
    }


def _path(path: Trajectory) -> dict[str, Any]:
    style = level_style(path.level)
    return {
        "name": one_line(path.name),
        "level": one_line(style.label),
        "colours": [style.light, style.dark],
        "unit": path.unit,
        "compute_roof": number(path.compute_roof),
        "bandwidth_roof": number(path.bandwidth_roof),
        "slices": list(path.slices),
        "intensity": [number(intensity) for intensity, _ in path.dots],
        "performance": [number(height) for _, height in path.dots],
    }
