"""What a prompt shows of a result: how much there is, on which GPUs, and the first rows; and how results get into notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ncu_roofline.base.texts import clean, listed, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering.table import wrapped

LINES = 20  # of a prompt at most: its table is as long as the sentences leave room
_WIDTH = 100  # characters of a sentence's line
_ROWS_MIN = 5
_DEVICES = 3


def as_text(value: object) -> str:
    """A name, cut where it is long; nothing of it is obeyed by a terminal."""
    return shorten(clean(str(value)))


def as_time(value: float) -> str:
    """Seconds; "n/a" where they are unknown."""
    return format_value(value, "second", 3)


def as_percent(value: float) -> str:
    """A ratio in percent; "n/a" where it is unknown."""
    return f"{100 * value:.3g} %" if math.isfinite(value) else "n/a"


def as_change(value: float) -> str:
    """A relative change in percent, with its sign; "n/a" where it is unknown."""
    return f"{'+' if value > 0 else ''}{as_percent(value)}"


def as_factor(value: float) -> str:
    """By what something is faster or longer; "n/a" where it is unknown."""
    return f"{value:.3g}x" if math.isfinite(value) else "n/a"


@dataclass(frozen=True)
class Shown:
    """A column that is shown at a glance: its name in the table, what stands above it, and how its values are written.

    With ``rate_of`` they are rates of what that column of the table says.
    """

    name: str
    heading: str
    write: Callable[[Any], str] = as_text
    left: bool = False
    rate_of: str = ""

    def cell(self, table: Mapping[str, Sequence[Any]], row: int) -> str:
        """Its text in a row of a table."""
        value = table[self.name][row]
        return format_value(value, f"{table[self.rate_of][row] or 'flop'}/s", 3) if self.rate_of else self.write(value)


KERNEL = Shown("kernel", "kernel", left=True)
VERDICT = Shown("verdict", "verdict", left=True)
LAUNCHES = Shown("launches", "launches", str)
TIME = Shown("seconds", "time", as_time)
SHARE = Shown("time_share", "share", as_percent)
HEADROOM = Shown("headroom", "headroom", as_factor)
TO_COMPUTE = Shown("headroom_compute", "to compute", as_factor)


@dataclass(frozen=True)
class Said:
    """What a result begins with: sentences, and the rows of its table where they have another order than its frame."""

    sentences: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Displayed:
    """A result whose representation is a glance at it, and which a notebook shows as a chart and a table.

    ``counted`` names the fields that hold tables and what one row of each is; ``glance`` the columns of the first of them that
    are shown.  ``html`` and ``said``, the sentences that a result begins with, are filled in by the package when a result is
    made through it (`from ncu_roofline import roofline`); without them there is the plain representation.
    """

    counted: ClassVar[Mapping[str, str]] = {}
    glance: ClassVar[tuple[Shown, ...]] = ()
    html: ClassVar[Callable[[Any], str] | None] = None
    said: ClassVar[Callable[[Any], Said] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Displayed.html is None else Displayed.html(self)

    def __repr__(self) -> str:
        first = columns_of(getattr(self, next(iter(self.counted))))
        counts = ", ".join(self._counts())
        devices = listed((as_text(name) for name in first.get("device", ()) if name), _DEVICES)
        head = f"<{type(self).__name__}: {counts}{'; ' if devices else ''}{devices}>"
        said = Said() if Displayed.said is None else Displayed.said(self)
        whole, *others = said.sentences or ("",)
        sentences = [*wrapped(whole, _WIDTH), *(line for one in others for line in wrapped(one, _WIDTH, "    ", first="  "))]
        most = max(LINES - len(sentences) - 3, _ROWS_MIN)  # beside the head, the names of columns, and how many rows more
        rows = [row[: len(self.glance)] for row in said.rows[:most]] or list(glanced(first, self.glance, most))
        more = (len(said.rows) or length(first)) - most
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n".join([head, *sentences, *aligned(rows, self.glance), *rest])

    def _counts(self) -> list[str]:
        """How much there is of what."""
        return [several(length(columns_of(getattr(self, name))), row) for name, row in self.counted.items()]


def several(count: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def columns_of(table: Any) -> Mapping[str, Sequence[Any]]:
    """A table by column, which may be kept row by row."""
    if isinstance(table, Mapping):
        return table
    return {name: [row[name] for row in table] for name in table[0]} if table else {}


def length(table: Mapping[str, Sequence[Any]]) -> int:
    """Number of rows."""
    return len(next(iter(table.values()), ()))


def glanced(table: Mapping[str, Sequence[Any]], shown: Sequence[Shown], rows: int) -> Iterator[list[str]]:
    """The first rows as text, a cell per column that is shown."""
    for row in range(min(length(table), rows)):
        yield [one.cell(table, row) for one in shown]


def aligned(rows: Sequence[Sequence[str]], shown: Sequence[Shown]) -> list[str]:
    """Lines of a table with its header; none for no rows."""
    if not rows:
        return []
    lines = [[one.heading for one in shown], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = [
        [cell.ljust(width) if one.left else cell.rjust(width) for cell, width, one in zip(line, widths, shown, strict=True)]
        for line in lines
    ]
    return ["  ".join(line).rstrip() for line in cells]
