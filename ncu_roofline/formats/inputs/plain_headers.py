"""Headers of plain tables and the cells below them: which quantity, of which level or precision, in SI units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.spelling import CEILINGS, ceiling_of, is_theoretical, level_of, precision_of, precision_words
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedRoof
from ncu_roofline.formats.inputs.text import damaged, plain_number

PARAMETERS = ("nw", "stride", "step", "parameter", "size", "n")
"""Columns whose numbers say nothing without their name: a label becomes ``nw=6``."""
_TEXTS = {
    **dict.fromkeys(("platform", "machine", "system_name"), "platform"),
    **dict.fromkeys(("device", "gpu", "chip", "hardware", "architecture"), "device"),
    **dict.fromkeys(("application", "app", "code", "benchmark", "program"), "application"),
    **dict.fromkeys(("kernel", "kernel_name", "function", "loop", "region", "name"), "kernel"),
    **dict.fromkeys(("label", "variant", "case", *PARAMETERS), "label"),
    **dict.fromkeys(("level", "memory_level"), "level"),
    **dict.fromkeys(("precision", "data_type"), "precision"),
    **dict.fromkeys(("supported", "runs", "status"), "supported"),
    **dict.fromkeys(("launches", "calls", "invocations"), "launches"),
    **dict.fromkeys(("fma_share", "alpha"), "fma_share"),
    **dict.fromkeys(("note", "notes", "comment", "source"), "note"),
}
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_TIME = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
}
_FLOP = re.compile(r"([kmgtp]?)flops?")
_FLOP_RATE = re.compile(r"([kmgtp]?)flops?(?:/s(?:ec|econd)?|ps)")
_BYTES = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)")
_BYTE_RATE = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)(?:/s(?:ec|econd)?|s|ps)")
_QUANTITIES = {
    **dict.fromkeys(("work",), "work"),
    **dict.fromkeys(("performance", "perf"), "performance"),
    **dict.fromkeys(("time", "runtime", "duration", "walltime", "elapsed"), "seconds"),
    **dict.fromkeys(("traffic", "moved"), "traffic"),
    **dict.fromkeys(("ai", "intensity", "oi"), "intensity"),
    **dict.fromkeys(("attainable",), "attainable"),
    **dict.fromkeys(("peak", "ceiling", "roof"), "peak"),
    **dict.fromkeys(("bandwidth", "bw"), "bandwidth"),
}
_UNITS_OF = {
    "work": ("flop", ""),
    **dict.fromkeys(("performance", "attainable", "peak"), ("flops", "flop", "")),
    "seconds": ("second", ""),
    "traffic": ("byte", ""),
    "intensity": ("",),
    "bandwidth": ("byte/s", "byte", ""),
}
_BY_UNIT = {"flop": "work", "flops": "performance", "byte": "traffic", "second": "seconds", "byte/s": "bandwidth"}
_FILLERS = ("arithmetic", "operational", "executed", "canonical", "total", "run", "memory", "of", "measured", "empirical")
_RATIO = re.compile(r"\bflops?\s*/\s*b(?:yte)?s?\b")
_OF_LEVEL = ("traffic", "intensity", "bandwidth")
_OF_PRECISION = ("work", "performance", "peak", "canonical", "fma_share")
Supported = Literal["yes", "no", "not run"]
_SUPPORTED: dict[str, Supported] = {
    **dict.fromkeys(("", "yes", "y", "true", "1", "ok", "run", "supported"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0", "unsupported", "fails", "failed"), "no"),
    **dict.fromkeys(("not run", "not measured", "not-run", "skipped", "n/a"), "not run"),
}
_ZERO_MAY_BE = ("work", "performance", "fma_share", "canonical", "launches")


@dataclass(frozen=True)
class Header:
    """What a column holds: a quantity, in how many SI units one of its numbers is, and of what.

    ``of`` is a level id for traffic, intensity and bandwidth; ``precision`` and ``ceiling`` go with work and peaks.
    """

    text: str
    quantity: str
    scale: float = 1.0
    of: str = ""
    precision: str = ANY_PRECISION
    ceiling: str = ""
    theoretical: bool = False


class AmbiguousHeaderError(ValueError):
    """A column whose unit could mean two things; the text is a sentence part."""


def header(text: str) -> Header | None:
    """What the column called ``text`` holds, None if nothing known.  Raises AmbiguousHeaderError."""
    words = _words(text)
    plain = "_".join(words)
    if plain in _TEXTS:
        return Header(text, _TEXTS[plain])
    if "%" in text or not all(_known(word) for word in words):
        return None
    kind, scale = _unit(words) or ("", 1.0)
    named = next((_QUANTITIES[word] for word in words if word in _QUANTITIES), "")
    named = named or ("intensity" if _RATIO.search(text.lower()) else "")
    if "canonical" in words and kind in ("flop", ""):
        quantity = "canonical"
    elif named:
        quantity = named if kind in _UNITS_OF[named] else ""
    elif kind == "flop" and scale > 1 and any(word.endswith("flops") for word in words):
        raise AmbiguousHeaderError(f"the column {text!r} may be work or a rate")
    else:
        quantity = _BY_UNIT.get(kind, "")
    if not quantity:
        return None
    of_roof = [
        word for word in words if word not in _QUANTITIES and not _FLOP.fullmatch(word) and not _FLOP_RATE.fullmatch(word)
    ]
    return Header(
        text,
        quantity,
        scale,
        of=level_of(" ".join(words)) if quantity in _OF_LEVEL else "",
        precision=precision_of(" ".join(words)) if quantity in _OF_PRECISION else ANY_PRECISION,
        ceiling=(ceiling_of(" ".join(of_roof)) or "fma") if quantity == "peak" else "",
        theoretical=is_theoretical(text),
    )


def _words(text: str) -> list[str]:
    """Words in lower case; a rate stays one word: "Perf. [GFLOP/s]" and "perf_gflop_per_s" are perf, gflop/s."""
    lower = " ".join(text.lower().split())
    lower = re.sub(r"([a-z])(?: ?_per_| per | ?/) ?s(?:ec|econd)?\b", r"\1/s", lower)
    lower = _RATIO.sub("", lower.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
    return re.findall(r"[a-z0-9]+(?:/s\b)?", lower)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset((*_QUANTITIES, *_TIME, *_FILLERS, *CEILINGS, *precision_words()))


def _known(word: str) -> bool:
    """Whether a word of a header is one of ours; a column with another one means something else, however it begins."""
    return word in _vocabulary() or is_theoretical(word) or bool(level_of(word)) or _unit([word]) is not None


def _unit(words: list[str]) -> tuple[str, float] | None:
    """The kind of a column's unit (flop, flops, byte, byte/s, second) and its size in SI units."""
    for word in reversed(words):
        if word in _TIME:
            return "second", _TIME[word]
        for kind, pattern in (("flops", _FLOP_RATE), ("flop", _FLOP), ("byte", _BYTES), ("byte/s", _BYTE_RATE)):
            match = pattern.fullmatch(word)
            if match:
                return kind, {**_PREFIX, **_BINARY}[match[1]]
    return None


def columns_of(path: str, names: Sequence[str]) -> tuple[dict[str, Header], list[str]]:
    """What is known of the columns, by name, and the names of the others.  Raises RooflineError for two of one meaning."""
    known: dict[str, Header] = {}
    by_meaning: dict[tuple[object, ...], Header] = {}
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
        meaning = (found.quantity, found.of, found.precision, found.ceiling, found.theoretical)
        first = by_meaning.setdefault(meaning, found)
        if first is not found and found.quantity != "label":
            raise damaged(path, f"the columns {first.text!r} and {name!r} hold the same", "Leave out one of them.")
        known[name] = found
    return known, unknown


@dataclass(frozen=True)
class NamedCells:
    """A row: ``values`` by column name; ``place`` says where it stands, for messages."""

    path: str
    place: str
    columns: Mapping[str, Header]
    values: Mapping[str, Any]

    def _of(self, quantity: str) -> list[Header]:
        return [column for column in self.columns.values() if column.quantity == quantity]

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
        cell, reason, number = self.values.get(one.text), "", None
        try:
            number = plain_number(_text(cell))
        except ValueError as error:
            reason = str(error)
        if isinstance(cell, bool):
            reason = f"{cell} is no number"
        elif number == 0 and one.quantity not in _ZERO_MAY_BE:
            reason = "zero can't be meant"
        elif number is not None and math.isinf(number * one.scale):
            reason = "it is too large"
        if reason:
            place = f"{self.place}, column {one.text!r}"
            raise damaged(self.path, f"{place}: {reason}", "Correct the cell, or leave it empty.")
        return math.nan if number is None else number * one.scale

    def number(self, quantity: str) -> float:
        """The number of the first column that has one, NaN if none has."""
        found = [value for one in self._of(quantity) if not math.isnan(value := self.value(one))]
        return found[0] if found else math.nan

    def by_precision(self, quantity: str, precision: str) -> dict[str, float]:
        """Numbers by precision id; columns that name none are of ``precision``."""
        values = {one.precision if one.precision != ANY_PRECISION else precision: self.value(one) for one in self._of(quantity)}
        return {key: value for key, value in values.items() if value > 0}

    def _level(self, one: Header) -> str:
        return one.of or level_of(self.text("level")) or load_spec().memory

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

    def precision(self) -> str:
        """The precision id that the row states, `ANY_PRECISION` where it states none."""
        text = self.text("precision")
        return precision_of(text.replace(".", " ")) if text else ANY_PRECISION

    def supported(self) -> Supported:
        """Whether the application runs there.  Raises RooflineError for a word that says neither."""
        text = self.text("supported").lower()
        if text not in _SUPPORTED:
            known = ", ".join(word for word in _SUPPORTED if word)
            raise damaged(self.path, f"{self.place} says {text[:40]!r} of its support", f"Write one of {known}.")
        return _SUPPORTED[text]

    def used(self) -> str:
        """The columns with numbers that this row fills."""
        quantities = ("work", "performance", "seconds", "traffic", "intensity")
        return ", ".join(
            name for name, one in self.columns.items() if one.quantity in quantities and _text(self.values.get(name))
        )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()
