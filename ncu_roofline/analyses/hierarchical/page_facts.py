"""What the page says in words, from the frames: header, kernels without floating-point work, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.answer import ranked
from ncu_roofline.analyses.hierarchical.captions import (
    above_note,
    differ,
    of_the_time,
    profiled_clock,
    report_names,
    row_notes,
    time_weighted,
    why,
)
from ncu_roofline.analyses.hierarchical.chart import ZERO, Band, asked_work, statuses
from ncu_roofline.analyses.hierarchical.page_data import levels
from ncu_roofline.analyses.hierarchical.style import label_of
from ncu_roofline.analyses.hierarchical.usage import (
    LONGEST,
    NAMED,
    Usage,
    answers,
    busiest_text,
    level_text,
    levels_of,
    occupancy_text,
    per_kernel,
    tensor_caveat,
    times_text,
    unit_label,
    waves_text,
    without_dots,
)
from ncu_roofline.base.texts import listed, one_line
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.model.columns import KERNELS, ROOFS, UNUSED
from ncu_roofline.rendering.frames import Column, Frames, view_of

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 100  # rows of a table in words; the rest is summed up

_STATUS = {
    "no-work-metrics": "the report has no counters of operations for them",
    "no-traffic-metrics": "the report has no counters of memory traffic for them",
    "no-time": "the report has no run time for them",
    "foreign": "their counters may be another kernel's",
    "unknown-chip": "their GPU is not known, and the report brings no roofline of its own",
}
_STATUS_OF_VIEW = {
    "instruction": {
        "no-work-metrics": "the report has no counters of executed instructions for them",
        "no-instructions": "they executed no instructions",
        "unknown-chip": "their GPU is not known",
    }
}


@dataclass(frozen=True)
class Total:
    """Launches that share a name, a status or a note: how many, their seconds (NaN: unknown) and share of all time."""

    label: str
    launches: int
    seconds: float
    share: float
    detail: str = ""

    @property
    def time(self) -> str:
        return format_value(self.seconds, "second", 3)

    @property
    def percent(self) -> str:
        return percent(self.share)


def percent(ratio: float) -> str:
    """A ratio in percent with up to three digits; "n/a" for NaN."""
    if ratio != ratio:
        return "n/a"
    return "< 0.01 %" if 0 < ratio < 1e-4 else f"{100 * ratio:.3g} %"


def facts(frames: Frames) -> dict[str, Any]:
    """All the words of a page, as plain values for the template."""
    kernels, roofs = _tidy(frames.kernels, KERNELS).assign(status=statuses(frames)), _tidy(frames.roofs, ROOFS)
    return {
        "devices": _devices(kernels if len(kernels) else roofs),
        "reports": [one_line(name) for name in report_names(frames).values()],
        "versions": _distinct(kernels["ncu_version"]),
        "clocks": {**_clocks(frames, kernels), "roofs": _roof_clocks(roofs)},
        "tiles": _tiles(kernels),
        "usage": _usage(frames),
        "tensor": tensor_caveat(frames),
        "statuses": _statuses(kernels, {**_STATUS, **_asked(frames), **_STATUS_OF_VIEW.get(view_of(frames), {})}),
        "missing": _missing(kernels, {level["id"]: level["label"] for level in levels(frames)}),
        "notes": _notes(kernels),
        "row_notes": [one_line(note) for note in (above_note(frames), *row_notes(frames, 12)) if note],
        "answered": answers(frames, without_dots(frames)),
        "roofs": _roofs(roofs, report_names(frames)),
        "has_points": len(frames.points) > 0,
        "view": view_of(frames),
        "has_kernels": len(kernels) > 0,
    }


def _tidy(frame: pd.DataFrame, declared: Sequence[Column]) -> pd.DataFrame:
    """``frame`` with one_line texts and NaN for infinite numbers: a time or a clock that overflowed is not known."""
    columns: dict[str, Any] = {}
    for column in declared:
        if column.name not in frame:  # a view that has no use for it
            continue
        values = frame[column.name]
        if column.dtype == "str":
            columns[column.name] = [one_line(value) for value in values]
        elif column.dtype == "float":
            columns[column.name] = values.where(values.abs() < float("inf"))
    tidy: pd.DataFrame = frame.assign(**columns)
    return tidy


def _distinct(values: pd.Series) -> list[str]:
    """Distinct texts in order of appearance, without the empty one."""
    return [text for text in dict.fromkeys(v for v in values) if text]


def _devices(frame: pd.DataFrame) -> list[str]:
    """ "name (compute capability x.y)" of each GPU."""
    pairs = dict.fromkeys(zip(frame["device"], frame["compute_capability"], strict=True))
    return [f"{name or 'unknown GPU'}{f' (compute capability {cc})' if cc else ''}" for name, cc in pairs]


def _range(values: pd.Series, unit: str) -> str:
    """ "low" or "low to high" with unit; "" where nothing is known."""
    known = values.dropna()
    if not len(known):
        return ""
    low, high = (format_value(float(v), unit, 4) for v in (known.min(), known.max()))
    return low if low == high else f"{low} to {high}"


def _clocks(frames: Frames, kernels: pd.DataFrame) -> dict[str, Any]:
    """Profiled SM clock over the kernels' time, its maximum, and whether they are too far apart."""
    ratios = time_weighted(frames, "clock_ratio")
    ratio = ratios[0] if ratios else float("nan")
    between = f" ({percent(ratios[1])} to {percent(ratios[2])})" if ratios and differ(*ratios[1:]) else ""
    return {
        "profiled": profiled_clock(frames),
        "maximum": _range(kernels["clock_max"], "hertz"),
        "ratio": f"{percent(ratio)}{between}",
        "warn": ratio < CLOCK_WARNING,
    }


def _roof_clocks(roofs: pd.DataFrame) -> str:
    """At which clock the theoretical roofs stand, where all of them agree."""
    bases = set(roofs[(roofs["origin"] == "theoretical") & (roofs["kind"] != "wall")]["clock_basis"]) - {""}
    return bases.pop() if len(bases) == 1 else ""


def _tiles(kernels: pd.DataFrame) -> list[tuple[str, str]]:
    """The few numbers of the header: (label, value)."""
    launches = int(kernels["launches"].clip(lower=1).sum()) if len(kernels) else 0
    names = int(kernels["kernel"].nunique())
    tiles = [("kernel" if names == 1 else "kernels", str(names)), ("launch" if launches == 1 else "launches", str(launches))]
    seconds = kernels["seconds"]
    if seconds.notna().any():
        tiles.append(("GPU time", format_value(float(seconds.sum()), "second", 4)))
        share = float(seconds[kernels["status"] == "ok"].sum() / seconds.sum()) if seconds.sum() else float("nan")
        if (kernels["status"] == "ok").any():
            tiles.append(("of it on the chart", percent(share)))
    return tiles


def _total(label: str, rows: pd.DataFrame, detail: str = "") -> Total:
    """Sum of ``rows``; a time that no row has stays unknown."""
    return Total(
        label=label,
        launches=int(rows["launches"].clip(lower=1).sum()),
        seconds=float(rows["seconds"].sum(min_count=1)),
        share=float(rows["time_share"].sum(min_count=1)),
        detail=detail,
    )


def _usage(frames: Frames) -> dict[str, Any]:
    """Kernels without dots as a table of texts, ranked, without columns that nobody fills; the tail is summed up."""
    found = ranked(per_kernel(without_dots(frames)))
    shown, tail = found[:_SHOWN], found[_SHOWN:]
    several = len({one.device for one in found}) > 1
    columns = [
        ("GPU", False, [one.device or "unknown" if several else "" for one in shown]),
        ("Verdict", False, [one.verdict for one in shown]),
        ("Headroom", True, [one.headroom_text for one in shown]),
        ("To compute roof", True, [times_text(one.headroom_compute) for one in shown]),
        ("Could save", True, [_to_save(one) for one in shown]),
        ("Time", True, [format_value(one.seconds, "second", 3) for one in shown]),
        ("Share", True, [percent(one.share) for one in shown]),
        ("Launches", True, [one.launches_text if any(other.launches > 1 for other in shown) else "" for one in shown]),
        ("Busiest", False, [busiest_text(one) for one in shown]),
        *((unit_label(level), True, [level_text(one, level) for one in shown]) for level in levels_of(shown)),
        ("Occupancy", True, [occupancy_text(one) for one in shown]),
        ("Waves", True, [waves_text(one) for one in shown]),
    ]
    filled = [(header, number, texts) for header, number, texts in columns if any(texts)]
    rows = [
        {
            "kernel": one.marked,
            "device": one_line(one.device),
            "reason": _why(frames, one),
            "cells": [(texts[index], number) for _, number, texts in filled],
        }
        for index, one in enumerate(shown)
    ]
    note = LONGEST if any(one.longest for one in shown) else ""
    more = f"{len(tail)} more kernels{of_the_time(one.share for one in tail)}" if tail else ""
    return {"headers": [(header, number) for header, number, _ in filled], "rows": rows, "more": more, "note": note}


def _to_save(one: Usage) -> str:
    """The time by which it exceeds what its headroom leaves; nothing where there is no verdict."""
    if not one.verdict:
        return ""
    return "unknown" if one.seconds > 0 and one.recoverable != one.recoverable else format_value(one.recoverable, "second", 3)


def _why(frames: Frames, one: Usage) -> str:
    """The reason of the verdict, and why there is no dot."""
    absent = why(frames, one.status)
    return "; ".join(filter(None, (one.reason, f"no dot: {absent}" if absent else "")))


def _asked(frames: Frames) -> dict[str, str]:
    return {
        "uncounted-asked": f"the report has no counters of {asked_work(frames)} for them",
        "unshown": "they have no dot of the kinds of work and levels chosen",
    }


def _statuses(kernels: pd.DataFrame, why: dict[str, str]) -> list[Total]:
    """Launches without a point, by reason; ``why`` by status."""
    found = []
    for status, rows in kernels.groupby("status", sort=False):
        if status not in {"ok", "", *ZERO}:
            reason = why.get(str(status), f"status {status}")
            found.append(_total(reason, rows, listed(_distinct(rows["kernel"]), NAMED)))
    return found


def _missing(kernels: pd.DataFrame, labels: dict[str, str]) -> list[Total]:
    """Precisions and levels that launches lack, those of most launches first."""
    kernels = kernels[~kernels["status"].isin(list(ZERO))]  # their work is known
    split = [str(text).split() for text in kernels["missing"]]
    counts = Counter(word for words in split for word in set(words))
    return [
        _total(labels.get(word) or _id_label(word), kernels[[word in words for words in split]], word)
        for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _id_label(word: str) -> str:
    return label_of(word)


def _notes(kernels: pd.DataFrame) -> list[Total]:
    """Distinct sentences of the notes with the launches they hold for; the tail of very many is one row."""
    split = [{part for part in text.split("; ") if part} for text in kernels["notes"]]
    counts = Counter(part for parts in split for part in parts)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    totals = [_total(part, kernels[[part in parts for parts in split]]) for part, _ in ordered[:20]]
    if len(ordered) > 20:
        rest = {part for part, _ in ordered[20:]}
        totals.append(_total(f"{len(rest)} more notes: see the kernels", kernels[[bool(parts & rest) for parts in split]]))
    return totals


def _roofs(roofs: pd.DataFrame, called: Mapping[str, str]) -> list[dict[str, str]]:
    """Every roof as a row of texts."""
    rows = []
    for roof in roofs.to_dict("records"):
        unit = str(roof["unit"])
        low, high, value = (float(roof[column]) for column in ("value_min", "value_max", "value"))
        clock = format_value(float(roof["clock"]), "hertz")
        rows.append(
            {
                "device": roof["device"],
                "report": called.get(roof["report"], roof["report"]),
                "label": roof["label"],
                "value": Band.of(value, low, high).text(unit, 4) if unit else f"{value:.4g}",
                "origin": PUBLISHED if roof["source"] == PUBLISHED and roof["origin"] != UNUSED else roof["origin"],
                "clock": "" if clock == "n/a" else f"{clock} {roof['clock_basis']}".strip(),
                "source": roof["source"],
                "metrics": roof["metrics"],
                "notes": roof["notes"],
            }
        )
    return rows[:500]
