"""The time view as an interactive page: three charts and a table in one self-contained html file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernel_labels
from ncu_roofline.analyses.hierarchical.style import bounds, level_style, precision_label, precision_order
from ncu_roofline.analyses.time import captions as time_captions
from ncu_roofline.analyses.time.captions import TimeFrames
from ncu_roofline.analyses.time.columns import TIME_MACHINES, TIME_POINTS
from ncu_roofline.analyses.time.text import absent_table, machines_table
from ncu_roofline.base.texts import one_line
from ncu_roofline.rendering.document import Column
from ncu_roofline.rendering.frames import column
from ncu_roofline.rendering.page import explanations_of, plain_columns, self_contained, shown_table

_SCRIPTS = ("page_csv.js", "page_labels.js", "page_state.js", "page_charts.js", "page_columns.js", "page.js")


def render_html(
    frames: TimeFrames,
    *,
    title: str = "",
    theme: str = "auto",
    explanations: Iterable[Mapping[str, str]] = (),
) -> bytes:
    """The page of the time view as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    return self_contained(
        __package__,
        _SCRIPTS,
        payload(frames),
        title=one_line(title) or "Time-based roofline",
        theme=theme,
        subtitle=one_line(captions.subtitle(frames)),
        level=level_style(frames.level).label,
        answers=answers_of(frames),
        has_points=bool(column(frames, "points", "kernel")),
        has_latency=any(value > 0 for value in column(frames, "machines", "latency")),
        explanation=time_captions.explanation(frames),
        machines=shown_table(machines_table(frames)),
        absent=shown_table(absent_table(frames)),
        notes=_notes(frames),
        reports=[one_line(name) for name in captions.report_names(frames).values()],
        explanations=explanations_of(explanations),
    )


def payload(frames: TimeFrames) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows."""
    texts: dict[str, int] = {}
    labels = kernel_labels(frames)
    names = zip(column(frames, "points", "report"), column(frames, "points", "kernel"), strict=True)
    called = captions.report_names(frames)
    precisions = sorted(set(column(frames, "points", "precision")), key=precision_order)
    return {
        "level": frames.level,
        "level_label": level_style(frames.level).label,
        "columns": {one.name: [one.unit, one.meaning] for one in (*TIME_MACHINES, *TIME_POINTS)},
        "bounds": {key: [style.label, style.light, style.dark] for key, style in bounds().items()},
        "precisions": {one_line(precision): precision_label(precision) for precision in precisions},
        "points": {**_packed(frames, "points", TIME_POINTS, texts, called), "name": [labels[pair] for pair in names]},
        "machines": _packed(frames, "machines", TIME_MACHINES, texts, called),
        "texts": list(texts),
    }


def _packed(
    frames: TimeFrames, table: str, declared: Sequence[Column], texts: dict[str, int], called: Mapping[str, str]
) -> dict[str, Any]:
    """Columns with texts replaced by their positions in the pool ``texts``, which grows; reports as they are ``called``."""
    packed: dict[str, Any] = plain_columns(frames, table, declared, called)
    named = [one.name for one in declared if one.dtype == "str"]
    packed |= {name: [texts.setdefault(text, len(texts)) for text in packed[name]] for name in named}
    return {"text_columns": named, **packed}


def _notes(frames: TimeFrames) -> list[str]:
    notes = [*time_captions.about(frames), *time_captions.absent_notes(frames), captions.roof_note(frames)]
    notes += [captions.source_note(frames), *captions.kernel_notes(frames), *captions.row_notes(frames, 8)]
    return [one_line(note) for note in notes if note]
