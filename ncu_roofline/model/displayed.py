"""What a prompt shows of a result: how much there is, on which GPUs, and the first rows; and how results get into notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from ncu_roofline.base.texts import clean, listed, plural, shorten
from ncu_roofline.rendering import table as layout
from ncu_roofline.rendering.document import Column, Table, text_columns
from ncu_roofline.rendering.table import wrapped

LINES = 20  # of a prompt at most: its table is as long as the sentences leave room
_WIDTH = 100  # characters of a sentence's line
_ROWS_MIN = 5
_DEVICES = 3


def as_percent(value: float) -> str:
    """A ratio in percent; "n/a" where it is unknown."""
    return f"{100 * value:.3g} %" if math.isfinite(value) else "n/a"


def seen(declared: Sequence[Column], *names: str, **labels: str) -> tuple[Column, ...]:
    """What of some columns is shown at a glance, in this order, some under other ``labels``."""
    columns = {column.name: replace(column, group=(), omit=None) for column in declared}
    return (*map(columns.__getitem__, names), *(replace(columns[name], label=label) for name, label in labels.items()))


class Said(NamedTuple):
    """What a result begins with: sentences, and its table where that has other rows than its frame."""

    sentences: Sequence[str] = ()
    table: Table | None = None


class Displayed:
    """A result whose representation is a glance at it, and which a notebook shows as a chart and a table.

    ``counted`` names the fields that hold tables and what one row of each is; ``glance`` the columns of the first of them that
    are shown.  ``html`` and ``said``, the sentences that a result begins with, are filled in by the package when a result is
    made through it (`from ncu_roofline import roofline`); without them there is the plain representation.
    """

    counted: ClassVar[Mapping[str, str]] = {}
    glance: ClassVar[tuple[Column, ...]] = ()
    html: ClassVar[Callable[[Any], str] | None] = None
    said: ClassVar[Callable[[Any], Said] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Displayed.html is None else Displayed.html(self)

    def __repr__(self) -> str:
        devices = getattr(self, next(iter(self.counted))).get("device", ())
        named = listed((shorten(clean(str(name))) for name in devices if name), _DEVICES)
        head = f"<{type(self).__name__}: {', '.join(self._counts())}{'; ' if named else ''}{named}>"
        said = Said() if Displayed.said is None else Displayed.said(self)
        whole, *others = said.sentences or ("",)
        sentences = [*wrapped(whole, _WIDTH), *(line for one in others for line in wrapped(one, _WIDTH, "    ", first="  "))]
        most = max(LINES - len(sentences) - 3, _ROWS_MIN)  # beside the head, the names of columns, and how many rows more
        columns, more = self.glanced(said.table, most)
        lines = layout.Table(tuple(columns)).fitted(_WIDTH) if columns else layout.Table(())
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n".join([head, *sentences, *(lines.head() if columns else ()), *lines.body(), *rest])

    def _counts(self) -> list[str]:
        """How much there is of what."""
        return [plural(len(next(iter(getattr(self, name).values()), ())), row) for name, row in self.counted.items()]

    def glanced(self, table: Table | None, most: int) -> tuple[list[layout.TextColumn], int]:
        """The first rows of its table, or of another one that stands for it, as texts; and how many rows more there are."""
        if table is None:
            columns, named = getattr(self, next(iter(self.counted))), [one.name for one in self.glance]
            values = {name: columns[name] for name in (*named, "unit") if name in columns}
            plain = [values[name].tolist() if hasattr(values[name], "tolist") else values[name] for name in values]
            rows = [dict(zip(values, row, strict=True)) for row in zip(*plain, strict=True)]
            table = Table("", self.glance, rows, named)
        total = len(table.rows)
        return list(text_columns(replace(table, rows=table.rows[:most])).values()) if total else [], total - most
