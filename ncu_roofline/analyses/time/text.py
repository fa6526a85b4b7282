"""What the time view says: sentences, its kernels, the machines they ran on, what has no symbol, and notes; and its page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernel_labels, largest, tensor_caveat
from ncu_roofline.analyses.hierarchical.style import bounds, level_style, precision_label, precision_order
from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.analyses.time.frames import TimeRoofline, why
from ncu_roofline.base.texts import clean, one_line, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.rendering.document import Document, Note, Table
from ncu_roofline.rendering.frames import column, each_gpu, records, rows, table

HOW_TO_LATENCY = (
    "Launch latency unknown, so no launch overhead is shown: give --ceilings from `ncu-roofline bench run` on this GPU, "
    "or --launch-latency TIME."
)
_SCRIPTS = ("page_csv.js", "page_labels.js", "page_state.js", "page_charts.js", "page_columns.js", "page.js")


def drawable(*place: float) -> bool:
    """Whether a place exists on logarithmic axes."""
    return all(0 < value < math.inf for value in place)


def latency_note(frames: TimeRoofline) -> str:
    """Each GPU's launch latency and where it comes from, or how to get one."""
    found = list(dict.fromkeys(rows(frames, "machines", "device", "latency", "latency_origin")))
    known = [row for row in found if row[1] > 0]
    if not known:
        return HOW_TO_LATENCY if found else ""
    several = len({row[1:] for row in found}) > 1
    parts = [
        f"{format_value(latency, 'second', 3)}{f' on {clean(device)}' if several else ''} ({clean(origin)})"
        for device, latency, origin in (known if several else known[:1])
    ]
    lacking = dict.fromkeys(clean(device) for device, latency, _ in found if not latency > 0)
    text = f"Launch latency: {', '.join(parts)}."
    return f"{text} Unknown for {', '.join(lacking)}: no overhead is shown there." if lacking else text


def _overhead_note(frames: TimeRoofline) -> str:
    """How many kernels do less than their launches cost, and their share of the time."""
    answers = list(rows(frames, "points", "overhead_bound", "time_share"))
    shares = [share for answer, share in answers if answer == "yes"]
    total = sum(share for share in shares if math.isfinite(share))
    text = f"{len(shares)} of {plural(len(answers), 'symbol')} bound by launch overhead, {percent(total)} of the time."
    return text if shares else ""


def about(frames: TimeRoofline) -> list[str]:
    """What must be known of the numbers as a whole, the weightiest first."""
    notes = (tensor_caveat, captions.above_note, captions.clock_note, latency_note, _overhead_note)
    return [text for note in notes if (text := note(frames))]


def absent_notes(frames: TimeRoofline) -> Iterator[str]:
    """What has no place on logarithmic axes: how many, why, time and bytes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for status, share, traffic in rows(frames, "absent", "status", "time_share", "traffic"):
        found.setdefault(status, []).append((share, traffic))
    for status, members in found.items():
        time = captions.of_the_time(share for share, _ in members).removeprefix(", ") or "unknown time"
        moved = [traffic for _, traffic in members if math.isfinite(traffic)]
        bytes_text = f" and {format_value(sum(moved), 'byte', 3)} of traffic" if moved else ""
        yield f"{plural(len(members), 'row')} {why(status)}: {time}{bytes_text}."


def explanation(frames: TimeRoofline) -> str:
    """Why there are no charts."""
    if not column(frames, "absent", "kernel"):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn.", *absent_notes(frames)])


def _symbols_table(frames: TimeRoofline, words: Mapping[str, str]) -> Table:
    """All symbols, the longest kernel first, its steps in order."""
    labels = kernel_labels(frames)
    shown = [row for row in records(table(frames, "points")) if drawable(row["traffic"], row["work"])]
    shown = [{**row, "kernel": labels[row["report"], row["kernel"]]} for row in shown]
    kernels, _ = largest(frames, "points", labels, {row["kernel"] for row in shown}, len(shown))
    place = {kernel.label: number for number, kernel in enumerate(kernels)}
    shown.sort(key=lambda row: (place[row["kernel"]], row["device"], row["step"], -row["seconds"]))
    return Table("points", columns.TIME_POINTS, shown, columns.POINTS_SHOWN, words=words)


def _machines_table(frames: TimeRoofline, words: Mapping[str, str]) -> Table:
    """GPUs with peak, bandwidth, balance and launch latency, per precision, at the level of the view."""
    units = defaultdict(lambda: "flop", rows(frames, "points", "precision", "unit"))
    shown = [{**row, "unit": units[row["precision"]]} for row in records(table(frames, "machines"))]
    shown = [row for row in shown if row["level"] == frames.level]
    return Table("machines", columns.TIME_MACHINES, shown, columns.MACHINES_SHOWN, words=words)


def _absent_table(frames: TimeRoofline, words: Mapping[str, str]) -> Table:
    """What has no symbol: why, time and bytes, the longest first."""
    labels = kernel_labels(frames)
    shown = records(table(frames, "absent"))
    shown = [{**row, "kernel": labels.get((row["report"], row["kernel"]), row["kernel"])} for row in shown]
    shown.sort(key=lambda row: -row["seconds"] if math.isfinite(row["seconds"]) else 0.0)
    return Table("absent", columns.TIME_ABSENT, shown, columns.ABSENT_SHOWN, "Without symbol", words)


def document(frames: TimeRoofline, *, title: str = "", notes: bool = True) -> Document:
    """The whole, a part per GPU where there are several; without ``notes`` only those that make a number doubtful."""
    whole = [*about(frames), captions.roof_note(frames), captions.source_note(frames) if notes else ""]
    of_kernels = [*captions.kernel_notes(frames), *captions.row_notes(frames, 8)] if notes else captions.doubts_of(frames)
    told = [*(Note(text) for text in whole if text), *(Note(text, "kernel") for text in of_kernels)]
    return each_gpu(frames, title or "Time-based roofline", _of_gpu, told)


def _of_gpu(frames: TimeRoofline, title: str) -> Document:
    words = {"level": level_style(frames.level).label}
    symbols = _symbols_table(frames, words)
    first = symbols if symbols.rows else tuple(explanation(frames).splitlines())
    sentences = [text for answer in answers_of(frames) for text in answer.sentences]
    tables = [first, _machines_table(frames, words), _absent_table(frames, words)]
    return Document(title, captions.subtitle(frames), sentences, tables)


def render_html(
    frames: TimeRoofline, *, title: str = "", theme: str = "auto", explanations: Iterable[Mapping[str, str]] = ()
) -> bytes:
    """The page of the time view as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    from ncu_roofline.rendering.page import explanations_of, self_contained, shown_table

    level = level_style(frames.level).label
    notes = [*about(frames), *absent_notes(frames), captions.roof_note(frames), captions.source_note(frames)]
    notes += [*captions.kernel_notes(frames), *captions.row_notes(frames, 8)]
    return self_contained(
        __package__,
        _SCRIPTS,
        _payload(frames),
        title=one_line(title) or "Time-based roofline",
        theme=theme,
        subtitle=one_line(captions.subtitle(frames)),
        level=level,
        answers=answers_of(frames),
        has_points=bool(column(frames, "points", "kernel")),
        has_latency=any(value > 0 for value in column(frames, "machines", "latency")),
        explanation=explanation(frames),
        machines=shown_table(_machines_table(frames, {"level": level})),
        absent=shown_table(_absent_table(frames, {"level": level})),
        notes=[one_line(note) for note in notes if note],
        reports=[one_line(name) for name in captions.report_names(frames).values()],
        explanations=explanations_of(explanations),
    )


def _payload(frames: TimeRoofline) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows; texts stand once, in "texts"."""
    from ncu_roofline.rendering.page import packed, plain_columns

    texts: dict[str, int] = {}
    called = captions.report_names(frames)
    points, machines = (
        packed(plain_columns(frames, name, columns.TABLES[name], called), columns.TABLES[name], texts)
        for name in ("points", "machines")
    )
    labels = kernel_labels(frames)
    precisions = sorted(set(column(frames, "points", "precision")), key=precision_order)
    return {
        "level": frames.level,
        "level_label": level_style(frames.level).label,
        "columns": {one.name: [one.unit, one.meaning] for one in (*columns.TIME_MACHINES, *columns.TIME_POINTS)},
        "bounds": {key: [style.label, style.light, style.dark] for key, style in bounds().items()},
        "precisions": {one_line(precision): precision_label(precision) for precision in precisions},
        "points": {**points, "name": [labels[pair] for pair in rows(frames, "points", "report", "kernel")]},
        "machines": machines,
        "texts": list(texts),
    }
