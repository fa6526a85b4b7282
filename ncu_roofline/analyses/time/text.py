"""What the time view says: sentences, its kernels, the machines they ran on, what has no symbol, and notes; and its page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernel_labels
from ncu_roofline.analyses.hierarchical.style import bounds, level_style, precision_label, precision_order
from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.analyses.time.frames import TimeRoofline, why
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, one_line, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.rendering.document import Document, Note, Table
from ncu_roofline.rendering.frames import column, each_gpu, records, rows, table

HOW_TO_LATENCY = (
    "Launch latency unknown, so no launch overhead is shown: give --ceilings from `ncu-roofline bench run` on this GPU, "
    "or --launch-latency TIME."
)
_NOTES = 8  # on kernels and rows each
_SCRIPTS = ("page_labels.js", "page_plot.js", "page_state.js", "page_charts.js", "page_columns.js", "page.js")


def drawable(*place: float) -> bool:
    """Whether a place exists on logarithmic axes."""
    return all(0 < value < math.inf for value in place)


def about(frames: TimeRoofline) -> list[str]:
    """What must be known of the numbers as a whole, the weightiest first.

    Each GPU's launch latency and where it comes from, or how to get one; how many kernels do less than their launches cost.
    """
    found = list(dict.fromkeys(rows(frames, "machines", "device", "latency", "latency_origin")))
    known = [row for row in found if row[1] > 0]
    latency = HOW_TO_LATENCY if found else ""
    if known:
        several = len({row[1:] for row in found}) > 1
        parts = [
            f"{format_value(seconds, 'second', 3)}{f' on {clean(device)}' if several else ''} ({clean(origin)})"
            for device, seconds, origin in (known if several else known[:1])
        ]
        lacking = dict.fromkeys(clean(device) for device, seconds, _ in found if not seconds > 0)
        unknown = f" Unknown for {', '.join(lacking)}: no overhead is shown there." if lacking else ""
        latency = f"Launch latency: {', '.join(parts)}.{unknown}"
    answers = list(rows(frames, "points", "overhead_bound", "time_share"))
    shares = [share for answer, share in answers if answer == "yes"]
    total = percent(sum(share for share in shares if math.isfinite(share)))
    overhead = f"{len(shares)} of {plural(len(answers), 'symbol')} bound by launch overhead, {total} of the time."
    return [*captions.main_notes(frames), *filter(None, (latency, overhead if shares else ""))]


def absent_notes(frames: TimeRoofline) -> Iterator[str]:
    """What has no place on logarithmic axes: how many, why, time and bytes."""
    absent = rows(frames, "absent", "status", "time_share", "traffic")
    for status, members in grouped((status, numbers) for status, *numbers in absent).items():
        time = captions.of_the_time(share for share, _ in members).removeprefix(", ") or "unknown time"
        moved = [traffic for _, traffic in members if math.isfinite(traffic)]
        bytes_text = f" and {format_value(sum(moved), 'byte', 3)} of traffic" if moved else ""
        yield f"{plural(len(members), 'row')} {why(status)}: {time}{bytes_text}."


def explanation(frames: TimeRoofline) -> str:
    if not column(frames, "absent", "kernel"):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn.", *absent_notes(frames)])


def _tables(frames: TimeRoofline) -> tuple[Table, Table, Table]:
    """All symbols, the longest kernel first, its steps in order; the machines per precision, at the level of the view; what has
    no symbol: why, time and bytes, the longest first."""
    words, labels = {"level": level_style(frames.level).label}, kernel_labels(frames)
    symbols = [row for row in records(table(frames, "points")) if drawable(row["traffic"], row["work"])]
    symbols = [{**row, "kernel": labels[row["report"], row["kernel"]]} for row in symbols]
    seconds = {kernel: sum(times) for kernel, times in grouped((row["kernel"], row["seconds"]) for row in symbols).items()}
    symbols.sort(key=lambda row: (-seconds[row["kernel"]], row["kernel"], row["device"], row["step"], -row["seconds"]))
    units = defaultdict(lambda: "flop", rows(frames, "points", "precision", "unit"))
    machines = [{**row, "unit": units[row["precision"]]} for row in records(table(frames, "machines"))]
    machines = [row for row in machines if row["level"] == frames.level]
    absent = records(table(frames, "absent"))
    absent = [{**row, "kernel": labels.get((row["report"], row["kernel"]), row["kernel"])} for row in absent]
    absent.sort(key=lambda row: -row["seconds"] if math.isfinite(row["seconds"]) else 0.0)
    return (
        Table("points", columns.TIME_POINTS, symbols, columns.POINTS_SHOWN, words=words),
        Table("machines", columns.TIME_MACHINES, machines, columns.MACHINES_SHOWN, words=words),
        Table("absent", columns.TIME_ABSENT, absent, columns.ABSENT_SHOWN, "Without symbol", words),
    )


def document(frames: TimeRoofline, *, title: str = "", notes: bool = True) -> Document:
    """The whole, a part per GPU where there are several; without ``notes`` only those that make a number doubtful."""

    def of_gpu(frames: TimeRoofline, title: str) -> Document:
        symbols, *others = _tables(frames)
        first = symbols if symbols.rows else tuple(explanation(frames).splitlines())
        sentences = [text for answer in answers_of(frames) for text in answer.sentences]
        return Document(title, captions.subtitle(frames), sentences, [first, *others])

    whole = [*about(frames), captions.roof_note(frames), captions.source_note(frames) if notes else ""]
    of_kernels = captions.notes_of(frames, _NOTES) if notes else captions.notes_of(frames, doubts=True)
    told = [*(Note(text) for text in whole if text), *(Note(text, "kernel") for text in of_kernels)]
    return each_gpu(frames, title or "Time-based roofline", of_gpu, told)


def render_html(
    frames: TimeRoofline, *, title: str = "", theme: str = "auto", explanations: Iterable[Mapping[str, str]] = ()
) -> bytes:
    """The page of the time view as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    from ncu_roofline.rendering.page import packed, plain_columns, self_contained, shown_table

    level, called = level_style(frames.level).label, captions.report_names(frames)
    notes = [*about(frames), *absent_notes(frames), captions.roof_note(frames), captions.source_note(frames)]
    notes += captions.notes_of(frames, _NOTES)
    texts: dict[str, int] = {}
    points, machines = (
        packed(plain_columns(frames, name, columns.TABLES[name], called), columns.TABLES[name], texts)
        for name in ("points", "machines")
    )
    labels = kernel_labels(frames)
    precisions = sorted(set(column(frames, "points", "precision")), key=precision_order)
    payload = {
        "level": frames.level,
        "level_label": level,
        "columns": {one.name: [one.unit, one.meaning] for one in columns.TIME_POINTS},
        "bounds": {key: list(style) for key, style in bounds().items()},
        "precisions": {one_line(precision): precision_label(precision) for precision in precisions},
        "points": {**points, "name": [labels[pair] for pair in rows(frames, "points", "report", "kernel")]},
        "machines": machines,
        "texts": list(texts),
    }
    _, of_machines, absent = map(shown_table, _tables(frames))
    return self_contained(
        __package__,
        _SCRIPTS,
        payload,
        title=one_line(title) or "Time-based roofline",
        theme=theme,
        subtitle=captions.subtitle(frames),
        level=level,
        answers=answers_of(frames),
        has_points=bool(column(frames, "points", "kernel")),
        has_latency=any(value > 0 for value in column(frames, "machines", "latency")),
        explanation=explanation(frames),
        machines=of_machines,
        absent=absent,
        notes=notes,
        reports=called.values(),
        explanations=explanations,
    )
