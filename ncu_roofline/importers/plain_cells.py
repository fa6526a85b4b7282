"""The cells of one row of a plain table, by what their columns hold, in SI units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ncu_roofline.errors import RooflineError
from ncu_roofline.importers.cells import damaged, plain_number
from ncu_roofline.importers.spelling import level_of, precision_of
from ncu_roofline.importers.table_headers import PARAMETERS, AmbiguousHeaderError, Header, header
from ncu_roofline.importers.tables import ANY_PRECISION, ImportedRoof

Supported = Literal["yes", "no", "not run"]
_SUPPORTED: dict[str, Supported] = {
    **dict.fromkeys(("", "yes", "y", "true", "1", "ok", "run", "supported"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0", "unsupported", "fails", "failed"), "no"),
    **dict.fromkeys(("not run", "not measured", "not-run", "skipped", "n/a"), "not run"),
}
_ZERO_MAY_BE = ("work", "performance", "fma_share", "canonical", "launches")


def columns_of(path: str, names: Sequence[str]) -> tuple[dict[str, Header], list[str]]:
    """What is known of the columns, by name, and the names of the others.  Raises RooflineError for two of one meaning."""
    known: dict[str, Header] = {}
    unknown = []
    for name in names:
        try:
            found = header(name)
        except AmbiguousHeaderError as error:
            unit = name.strip()
            raise damaged(path, str(error), f"Call it {unit[:1]}flop for work or {unit[:1]}flop/s for a rate.") from error
        if found is None:
            unknown.append(name)
            continue
        same = [one for one in known.values() if _meaning(one) == _meaning(found)]
        if same and found.quantity != "label":
            raise damaged(path, f"the columns {same[0].text!r} and {name!r} hold the same", "Leave out one of them.")
        known[name] = found
    return known, unknown


def _meaning(one: Header) -> tuple[object, ...]:
    return one.quantity, one.of, one.precision, one.ceiling, one.theoretical


@dataclass(frozen=True)
class Cells:
    """A row: ``values`` by column name; ``place`` says where it stands, for messages."""

    path: str
    place: str
    columns: Mapping[str, Header]
    values: Mapping[str, Any]

    def _of(self, quantity: str) -> list[Header]:
        return [one for one in self.columns.values() if one.quantity == quantity]

    def error(self, one: Header, reason: str) -> RooflineError:
        """The error for one cell."""
        return damaged(self.path, f"{self.place}, column {one.text!r}: {reason}", "Correct the cell, or leave it empty.")

    def text(self, quantity: str) -> str:
        """The text of a column, '' where there is none."""
        return next((_text(self.values.get(one.text)) for one in self._of(quantity)), "")

    def label(self) -> str:
        """All label columns; a parameter with its name: "nw=6 stride=2"."""
        parts = []
        for one in self._of("label"):
            text = _text(self.values.get(one.text))
            name = one.text.strip().lower()
            parts.append(f"{name}={text}" if text and name in PARAMETERS and "=" not in text else text)
        return " ".join(filter(None, parts))

    def value(self, one: Header) -> float:
        """The number of a cell in SI units, NaN for an empty one.  Raises RooflineError."""
        cell = self.values.get(one.text)
        try:
            if isinstance(cell, bool):
                raise ValueError(f"{cell} is no number")
            number = plain_number(_text(cell))
        except ValueError as error:
            raise self.error(one, str(error)) from error
        if number == 0 and one.quantity not in _ZERO_MAY_BE:
            raise self.error(one, "zero can't be meant")
        if number is not None and math.isinf(number * one.scale):
            raise self.error(one, "it is too large")
        return math.nan if number is None else number * one.scale

    def number(self, quantity: str) -> float:
        """The number of the first column that has one, NaN if none has."""
        found = [value for one in self._of(quantity) if not math.isnan(value := self.value(one))]
        return found[0] if found else math.nan

    def whole(self, quantity: str) -> int:
        """A count, 1 where there is none."""
        value = self.number(quantity)
        return 1 if math.isnan(value) or value < 1 else int(value)

    def by_precision(self, quantity: str, precision: str) -> dict[str, float]:
        """Numbers by precision id; columns that name none are of ``precision``."""
        values = {one.precision if one.precision != ANY_PRECISION else precision: self.value(one) for one in self._of(quantity)}
        return {key: value for key, value in values.items() if value > 0}

    def _level(self, one: Header) -> str:
        return one.of or level_of(self.text("level")) or "dram"

    def by_level(self, quantity: str) -> dict[str, float]:
        """Numbers by level id."""
        values = {self._level(one): self.value(one) for one in self._of(quantity)}
        return {key: value for key, value in values.items() if not math.isnan(value)}

    def roofs(self, precision: str) -> tuple[ImportedRoof, ...]:
        """The roofs of this row: measured ones, unless the column says theoretical; the measured one of two counts."""
        found: dict[str, ImportedRoof] = {}
        for one in sorted((*self._of("peak"), *self._of("bandwidth")), key=lambda column: column.theoretical):
            value = self.value(one)
            of = one.precision if one.precision != ANY_PRECISION else precision
            compute = of if of.startswith("tensor") and one.ceiling == "fma" else f"{of}.{one.ceiling}"
            name, kind = (compute, "compute") if one.quantity == "peak" else (self._level(one), "bandwidth")
            if not math.isnan(value):
                found.setdefault(name, ImportedRoof(name, kind, one.text, value, measured=not one.theoretical))
        return tuple(found.values())

    def used(self) -> str:
        """The columns with numbers that this row fills."""
        quantities = ("work", "performance", "seconds", "traffic", "intensity")
        return ", ".join(
            name for name, one in self.columns.items() if one.quantity in quantities and _text(self.values.get(name))
        )


def precision_in(cells: Cells) -> str:
    """The precision id that a row states, `ANY_PRECISION` where it states none."""
    text = cells.text("precision")
    return precision_of(text.replace(".", " ")) if text else ANY_PRECISION


def supported_in(cells: Cells) -> Supported:
    """Whether the application runs there.  Raises RooflineError for a word that says neither."""
    text = cells.text("supported").lower()
    if text not in _SUPPORTED:
        known = ", ".join(word for word in _SUPPORTED if word)
        raise damaged(cells.path, f"{cells.place} says {text[:40]!r} of its support", f"Write one of {known}.")
    return _SUPPORTED[text]


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()
