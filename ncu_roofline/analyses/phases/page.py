"""The view of phases as an interactive page: bands, the path under the roofs and a table of slices in one html file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ncu_roofline.analyses.hierarchical.captions import report_names, roof_note, source_note, subtitle
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.phases.chart import LaunchChart, PhaseFrames, absent_notes, charts, explanation
from ncu_roofline.base.texts import one_line
from ncu_roofline.rendering.page import explanations_of, number, self_contained

_SCRIPTS = ("page_charts.js", "page.js")


def render_html(
    frames: PhaseFrames, *, title: str = "", theme: str = "auto", explanations: Iterable[Mapping[str, str]] = ()
) -> bytes:
    """The page as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    found = charts(frames)
    return self_contained(
        __package__,
        _SCRIPTS,
        {"launches": [_launch(one) for one in found]},
        title=one_line(title) or "Roofline over time",
        theme=theme,
        subtitle=one_line(subtitle(frames)),
        found=bool(found),
        explanation=explanation(frames),
        absent=[one_line(note) for note in absent_notes(frames)] if found else [],
        notes=[one_line(note) for note in (roof_note(frames), source_note(frames)) if note],
        reports=[one_line(name) for name in report_names(frames).values()],
        explanations=explanations_of(explanations),
    )


def _launch(one: LaunchChart) -> dict[str, Any]:
    """What the script of the page needs of a launch, as values that JSON knows."""

    def colours(level: str) -> list[str]:
        style = level_style(level)
        return [style.light, style.dark]

    return {
        "name": one_line(one.kernel),
        "launch": one.launch,
        "cut": one.cut,
        "seconds": number(one.seconds),
        "edges": [number(edge) for edge in one.edges],
        "bands": [
            {
                "label": one_line(band.label),
                "colours": colours(band.level) if band.level else None,
                "values": [number(value) for value in band.values],
            }
            for band in one.bands
        ],
        "paths": [
            {
                "name": one_line(path.name),
                "level": one_line(level_style(path.level).label),
                "colours": colours(path.level),
                "unit": path.unit,
                "compute_roof": number(path.compute_roof),
                "bandwidth_roof": number(path.bandwidth_roof),
                "slices": list(path.slices),
                "intensity": [number(intensity) for intensity, _ in path.dots],
                "performance": [number(height) for _, height in path.dots],
            }
            for path in one.paths
        ],
        "notes": [one_line(note) for note in (one.caveat, *one.said())],
    }
