"""What a metric can be at all: bounds of time, clocks, counts and attributes, from ``ncu_roofline/data/plausible.toml``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ncu_roofline.chips.fields import Fields
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "plausible.toml"
MOST_COUNT = 2.0**64
"""What a counter of the hardware can hold."""
_LONGEST = 300  # characters of a name that are looked at: no metric of ncu has 150
_KEPT = 20_000  # names whose bound is remembered: several times those of any release
_AGGREGATES = ("sum", "avg", "max", "min")
# What the last part of a name makes of a count; the others are no such count (ratios, percentages).
_PEAK = "peak_sustained"
_FORMS = {"per_second": "second", _PEAK: _PEAK, "per_cycle_elapsed": "cycle", "per_cycle_active": "cycle"}


@dataclass(frozen=True)
class Bound:
    """What one metric can be: from 0 to ``most``, and no more than `limit` of its launch; in the metric's own unit.

    ``signed``: a difference of counters, which may be as far below 0.  ``rate``: events per SM (or, not ``per_sm``, per unit)
    and cycle; infinite where nothing is known of it.  ``form``: the metric counts in a launch (""), a "second" or a "cycle",
    or is a "peak_sustained" per cycle.  ``clock``: the highest, in Hz; ``sms``: the most of any chip; ``headroom``: what rates
    per cycle have beyond ``rate``.  ``longer``: seconds by which the execution that was counted may have taken longer than the
    launch; 0 if it is the same.
    """

    id: str
    unit: str
    signed: bool
    most: float
    rate: float
    per_sm: bool
    form: str
    origin: str
    clock: float = math.inf
    sms: float = math.inf
    headroom: float = 1.0
    longer: float = 0.0

    @property
    def is_peak(self) -> bool:
        """Whether it is of what the chip can do, whatever SMs the launch had."""
        return self.form == _PEAK

    @property
    def per_cycle(self) -> bool:
        """Whether the metric is a rate per cycle."""
        return self.form in ("cycle", _PEAK)

    def limit(self, sms: Any, seconds: Any) -> Any:
        """The most that so many SMs can do in the time (s) of a launch; numbers, or arrays of one shape."""
        rate = self.rate * (self.sms if self.is_peak else sms) if self.per_sm else self.rate
        if self.longer:  # a rate is this count over the launch's own time or cycles, of which there is at least one
            count = rate * self.clock * (seconds + self.longer)
            return count / seconds if self.form == "second" else count
        if self.per_cycle:
            return rate * self.headroom
        return rate * self.clock * (1.0 if self.form == "second" else seconds)


@dataclass(frozen=True)
class _Row:
    bound: Bound
    wanted: re.Pattern[str]
    unwanted: re.Pattern[str]

    def matches(self, name: str) -> bool:
        return self.wanted.fullmatch(name) is not None and self.unwanted.fullmatch(name) is None


@dataclass(frozen=True)
class Limits:
    """All bounds; ``sms``, ``slices`` (of L2) and ``seconds`` are the most that any launch can have had.

    ``drawn_most`` (operations or bytes per second, operations per byte, bytes per operation): the most that a line or dot of a
    report's own chart can say, and ``drawn_least`` (per second) the least of a roof.
    ``imported_seconds`` and ``imported_rate`` (operations or bytes per second): the most that a file of another tool can say.
    ``patched_seconds``: what instruction patching may take more than its launch.
    """

    sms: float
    slices: float
    seconds: float
    drawn_most: float
    drawn_least: float
    imported_seconds: float
    imported_rate: float
    patched_seconds: float
    _units: frozenset[str]
    _patched: re.Pattern[str]
    _rows: tuple[_Row, ...]
    _found: dict[str, Bound | None] = field(default_factory=dict)

    def bound(self, name: str) -> Bound | None:
        """The bound of a metric by its full name, None for one of which nothing is known."""
        if name not in self._found:
            if len(name) > _LONGEST:
                return None
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> Bound | None:
        unit, apart, _ = name.partition("__")
        if apart and unit not in self._units and not name.startswith(("device__attribute_", "launch__", "sass__")):
            return None
        row = next((row for row in self._rows if row.matches(name)), None)
        if row is None or row.bound.rate == math.inf:
            return row.bound if row else None
        form = _form(name)
        if form is None:
            return None
        patched = form != _PEAK and self._patched.fullmatch(name) is not None
        return replace(row.bound, form=form, longer=self.patched_seconds if patched else 0.0)


def _form(name: str) -> str | None:
    """Of what the metric is a count: "" of the launch, "second", "cycle", a peak per cycle; None for what is no count."""
    _, *parts = name.split(".")
    if not parts or parts[0] not in _AGGREGATES:
        return None if parts else ""
    return "" if len(parts) == 1 else _FORMS.get(parts[1]) if len(parts) == 2 else None


@lru_cache(maxsize=1)
def load_limits() -> Limits:
    """The file that comes with the package, read once."""
    return read_limits(resources.files("ncu_roofline") / "data")


def read_limits(folder: Traversable) -> Limits:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read_fields(folder / FILE, FILE)
    units, patched, tables = file.texts("units"), file.texts("patched"), file.tables("quantity")
    headroom, longer = file.number("headroom"), file.number("patched_seconds")
    own, other = file.table("drawn"), file.table("imported")
    drawn = own.number("most"), own.number("least")
    imported = other.number("seconds"), other.number("rate")
    for one in (file, own, other):
        one.finish()
    rows = [_row(fields, headroom) for fields in tables]
    most = {row.bound.id: row.bound.most for row in rows}
    if len(most) < len(rows):
        file.fail("quantity", "names something twice")
    for needed in ("time", "sms", "slices", "clock"):
        if needed not in most:
            file.fail("quantity", f"must have one named {needed}")
    complete = (replace(row, bound=replace(row.bound, clock=most["clock"], sms=most["sms"])) for row in rows)
    largest = most["sms"], most["slices"], most["time"] * 1e-9
    return Limits(*largest, *drawn, *imported, longer, frozenset(units), _pattern(patched), tuple(complete))


def _row(fields: Fields, headroom: float) -> _Row:
    rate = fields.number("rate") if fields.has("rate") else math.inf
    known = rate == math.inf and fields.has("known")
    most = headroom * fields.number("known") if known else fields.number("most") if rate == math.inf else MOST_COUNT
    origin = fields.text("origin")
    bound = Bound(
        id=fields.text("id"),
        unit=fields.text("unit"),
        signed=fields.flag("signed"),
        most=most,
        rate=rate,
        per_sm=fields.text("per", "sm", allowed=("sm", "unit")) == "sm",
        form="",
        origin=f"{headroom:g} times {origin}" if known else origin,
        headroom=headroom,
    )
    if ";" in bound.origin:
        fields.fail("origin", "must have no semicolon, which ends a note")
    row = _Row(bound, _pattern(fields.texts("metrics")), _pattern(fields.texts("except", required=False)))
    fields.finish()
    return row


def _pattern(wildcards: tuple[str, ...]) -> re.Pattern[str]:
    """Names that one of them matches; none of them at all if there are none."""
    return re.compile("|".join(map(translate, wildcards)) or r"(?!)")
