"""What a metric can be at all: bounds of time, clocks, counts and attributes, from ``ncu_roofline/data/plausible.toml``."""

from __future__ import annotations

import math
import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import DATA, bad, read

FILE = "plausible.toml"
MOST_COUNT = 2.0**64
"""What a counter of the hardware can hold."""
_LONGEST = 300  # characters of a name that are looked at: no metric of ncu has 150
_KEPT = 20_000  # names whose bound is remembered: several times those of any release
_AGGREGATES = ("sum", "avg", "max", "min")
# What the last part of a name makes of a count; the others are no such count (ratios, percentages).
_PEAK = "peak_sustained"
_FORMS = {"per_second": "second", _PEAK: _PEAK, "per_cycle_elapsed": "cycle", "per_cycle_active": "cycle"}


class Bound(NamedTuple):
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


def _origin(text: str) -> str:
    if ";" in text:
        raise ValueError("must have no semicolon, which ends a note")
    return text


Origin = Annotated[str, Stated(str, _origin)]


class _Quantity(NamedTuple):
    id: str
    unit: str
    origin: Origin
    metrics: tuple[str, ...]
    known: float | None = None
    most: float | None = None
    rate: float | None = None
    per: Literal["sm", "unit"] = "sm"
    signed: bool = False
    other_than: tuple[str, ...] = ()


class _Drawn(NamedTuple):
    most: float
    least: float


class _Imported(NamedTuple):
    seconds: float
    rate: float


class _File(NamedTuple):
    headroom: float
    units: tuple[str, ...]
    patched_seconds: float
    patched: tuple[str, ...]
    drawn: _Drawn
    imported: _Imported
    quantity: tuple[_Quantity, ...]


class Limits:
    """All bounds; ``sms``, ``slices`` (of L2) and ``seconds`` are the most that any launch can have had.

    ``drawn_most`` (operations or bytes per second, operations per byte, bytes per operation): the most that a line or dot of a
    report's own chart can say, and ``drawn_least`` (per second) the least of a roof.
    ``imported_seconds`` and ``imported_rate`` (operations or bytes per second): the most that a file of another tool can say.
    ``patched_seconds``: what instruction patching may take more than its launch.
    """

    def __init__(self, file: _File, rows: list[tuple[Bound, re.Pattern[str], re.Pattern[str]]]) -> None:
        most = {bound.id: bound.most for bound, _, _ in rows}
        self.sms, self.slices, self.seconds = most["sms"], most["slices"], most["time"] * 1e-9
        self.drawn_most, self.drawn_least = file.drawn.most, file.drawn.least
        self.imported_seconds, self.imported_rate = file.imported.seconds, file.imported.rate
        self.patched_seconds = file.patched_seconds
        self._units, self._patched, self._rows = frozenset(file.units), _pattern(file.patched), rows
        self._found: dict[str, Bound | None] = {}

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
        rows = (bound for bound, wanted, unwanted in self._rows if wanted.fullmatch(name) and not unwanted.fullmatch(name))
        bound = next(rows, None)
        if bound is None or bound.rate == math.inf:
            return bound
        form = _form(name)
        if form is None:
            return None
        patched = form != _PEAK and self._patched.fullmatch(name) is not None
        return bound._replace(form=form, longer=self.patched_seconds if patched else 0.0)


def _form(name: str) -> str | None:
    """Of what the metric is a count: "" of the launch, "second", "cycle", a peak per cycle; None for what is no count."""
    _, *parts = name.split(".")
    if not parts or parts[0] not in _AGGREGATES:
        return None if parts else ""
    return "" if len(parts) == 1 else _FORMS.get(parts[1]) if len(parts) == 2 else None


@lru_cache(maxsize=1)
def load_limits() -> Limits:
    """The file that comes with the package, read once."""
    return read_limits(DATA)


def read_limits(folder: Path) -> Limits:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read(folder / FILE, FILE, _File)
    names = [one.id for one in file.quantity]
    if len(set(names)) < len(names):
        bad(FILE, "quantity", "names something twice")
    for needed in ("time", "sms", "slices", "clock"):
        if needed not in names:
            bad(FILE, "quantity", f"must have one named {needed}")
    bounds = [_bound(one, file.headroom, f"quantity[{index}]") for index, one in enumerate(file.quantity)]
    most = {bound.id: bound.most for bound in bounds}
    complete = [bound._replace(clock=most["clock"], sms=most["sms"]) for bound in bounds]
    patterns = [(_pattern(one.metrics), _pattern(one.other_than)) for one in file.quantity]
    return Limits(file, [(bound, *pair) for bound, pair in zip(complete, patterns, strict=True)])


def _bound(stated: _Quantity, headroom: float, where: str) -> Bound:
    if [stated.known, stated.most, stated.rate].count(None) != 2:
        bad(FILE, where, "must state one of known, most and rate")
    most, origin = stated.most or MOST_COUNT, stated.origin
    if stated.known is not None:
        most, origin = headroom * stated.known, f"{headroom:g} times {origin}"
    return Bound(
        id=stated.id,
        unit=stated.unit,
        signed=stated.signed,
        most=most,
        rate=stated.rate or math.inf,
        per_sm=stated.per == "sm",
        form="",
        origin=origin,
        headroom=headroom,
    )


def _pattern(wildcards: tuple[str, ...]) -> re.Pattern[str]:
    """Names that one of them matches; none of them at all if there are none."""
    return re.compile("|".join(map(translate, wildcards)) or r"(?!)")
