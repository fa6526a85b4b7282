"""Kernels without dots as a table for a terminal: what of the GPU they kept busy, as far as the report says."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from ncu_roofline.model.names import shorten
from ncu_roofline.rendering import captions
from ncu_roofline.rendering.panels import Frames
from ncu_roofline.rendering.shown import ZERO
from ncu_roofline.rendering.table_text import Cells, table_lines
from ncu_roofline.rendering.usage import Usage, busiest_text, levels_of, occupancy_text, unit_label, waves_text
from ncu_roofline.units import format_value

_MOST = 20


def absent_lines(frames: Frames, absent: Sequence[Usage], width: int) -> list[str]:
    """For each reason why kernels have no dots a sentence, and the longest of its kernels as a table."""
    lines: list[str] = []
    for status in dict.fromkeys(one.status for one in absent):
        members = [one for one in absent if one.status == status]
        lines += [""] if lines else []
        lines += textwrap.wrap(f"{_why(frames, status, members)}:", width, break_on_hyphens=False)
        lines += table_lines(_cells(members[:_MOST], width), width)
        if len(members) > _MOST:
            lines.append(f"and {len(members) - _MOST} more")
    return lines


def _why(frames: Frames, status: str, members: Sequence[Usage]) -> str:
    """How many rows have no dots, why, their share of the time and what their report lacks."""
    what = captions.plural(len(members), "launch" if members[0].launch >= 0 else "kernel")
    share = captions.of_the_time(one.share for one in members)
    lacks = captions.lacking(one.missing for one in members) if status not in ZERO else []
    return f"{what} {captions.why(frames, status)}{share}{'; lacks ' if lacks else ''}{', '.join(lacks)}"


def level_cell(one: Usage, level: str) -> str:
    """GB/s and percent of the peak, as far as known: ``512 43.1 %``."""
    rate, share = one.bandwidths.get(level, math.nan) / 1e9, one.fractions.get(level, math.nan)
    parts = [f"{rate:.0f}" if rate >= 1000 else f"{rate:.3g}"] if math.isfinite(rate) else []
    return " ".join([*parts, captions.percent(share)] if math.isfinite(share) else parts)


def _cells(absent: Sequence[Usage], width: int) -> Cells:
    """Columns that nobody fills are left out; time, share and verdict stay whatever the width."""
    repeated = len({(one.kernel, one.step) for one in absent}) < len(absent)
    verdict = max(19, width // 4)
    columns = [
        ("kernel", 0, [one.kernel for one in absent]),
        ("step", 0, [one.step_label[:20] for one in absent]),
        ("launch", 0, [str(one.launch) if repeated and one.launch >= 0 else "" for one in absent]),
        ("launches", 9, [str(one.launches) if any(other.launches > 1 for other in absent) else "" for one in absent]),
        ("time", 0, [format_value(one.seconds, "second", 3) for one in absent]),
        ("share", 0, [captions.percent(one.share) for one in absent]),
        ("verdict", 0, [shorten(one.verdict, verdict) for one in absent]),
        ("gain", 6, [one.gain for one in absent]),
        ("busiest", 1, [busiest_text(one) for one in absent]),
    ]
    levels = levels_of(absent)
    for place, level in enumerate(levels):
        columns.append((f"{unit_label(level)} GB/s, %", 2 + len(levels) - place, [level_cell(one, level) for one in absent]))
    columns += [
        ("occupancy", 10, [occupancy_text(one) for one in absent]),
        ("waves", 11, [waves_text(one) for one in absent]),
    ]
    filled = tuple(column for column in columns if any(column[2]) or column[0] in ("kernel", "time", "share"))
    return Cells(filled, ("kernel", "step", "verdict", "busiest"))
