"""Cells of the tables of the source view: shares, heat bars, stalls, instructions, and names of places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.source.columns import WITHIN
from ncu_roofline.analyses.source.frames import inlined_at
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE
from ncu_roofline.analyses.source.launches import Row
from ncu_roofline.base.texts import clean

_BAR = 8  # characters of a whole heat bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL, _ASCII_FULL = "█", "#"


def share_text(value: float) -> str:
    """A share in per cent; "0 %" is counted, "n/a" is not."""
    return "0 %" if value == 0 else percent(value)


def bars(shares: Sequence[float], ascii_only: bool) -> list[str]:
    """Bars as long as the shares are, the largest of them whole."""
    largest = max((share for share in shares if share > 0), default=math.nan)
    return [_bar(share / largest, ascii_only) if share > 0 else "" for share in shares]


def _bar(part: float, ascii_only: bool) -> str:
    if ascii_only:
        return _ASCII_FULL * math.ceil(_BAR * part)
    whole, rest = divmod(math.ceil(8 * _BAR * part), 8)
    return _FULL * whole + (_EIGHTHS[rest] if rest else "")


def stall_text(row: Row) -> str:
    """The most frequent stall with its share: ``long scoreboard 62 %``."""
    if not row["stall"]:
        return ""
    share = f" {100 * row['share_stall']:.0f} %" if math.isfinite(row["share_stall"]) else ""
    return clean(row["stall"]).replace("_", " ") + share


def place_text(file: str, line: int, called: Callable[[str], str]) -> str:
    """``smooth.cu:13``; what code without line is."""
    if line == OUTSIDE:
        return "outside"
    if line <= 0 or not file:
        return "no line"
    return f"{clean(called(file))}:{line}"


def line_text(row: Row, names: Mapping[str, str]) -> str:
    """The text of a line; of code without lines, which function it is; ``names``: readable ones of functions."""
    text = clean(row["text"])
    return f"in {clean(names.get(row['text'], '')) or text}" if row["line"] == NOWHERE and text else text


def code_text(row: Row) -> str:
    """The whole instruction, or what is known of its opcode."""
    return clean(row["sass"] or row["opcode"])


def chain(row: Row, called: Callable[[str], str]) -> str:
    """The line of an instruction, with the places at which it is inlined: ``weights.cuh:3 < smooth.cu:13``."""
    if not row["line"] > 0:
        return ""
    callers = (f"{clean(called(file))}:{clean(line)}" for file, line in inlined_at(row["inlined"]))
    return WITHIN.join((place_text(row["file"], row["line"], called), *callers))
