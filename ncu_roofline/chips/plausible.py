"""What a metric can be at all: one bound for each quantity, from ``ncu_roofline/data/plausible.toml``."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.chips.fields import DATA, read

FILE = "plausible.toml"
MOST_COUNT = 2.0**64
"""What a counter of the hardware can hold."""
_LONGEST = 300  # characters of a name that are looked at: no metric of ncu has 150
_KEPT = 20_000  # names whose bound is remembered: several times those of any release


class Bound(NamedTuple):
    """What some metrics can be: from 0 to ``most``; ``signed``: a difference of counters, which may be as far below 0."""

    id: str
    most: float
    origin: str
    metrics: tuple[str, ...]
    unit: str = ""
    signed: bool = False
    other_than: tuple[str, ...] = ()


class _Drawn(NamedTuple):
    most: float
    least: float


class _Imported(NamedTuple):
    seconds: float
    rate: float


class _File(NamedTuple):
    units: tuple[str, ...]
    drawn: _Drawn
    imported: _Imported
    quantity: tuple[Bound, ...]


class Limits:
    """All bounds; ``slices`` (of L2) and ``seconds`` are the most that any launch can have had.

    ``drawn_most`` (operations or bytes per second, operations per byte, bytes per operation): the most that a line or dot of a
    report's own chart can say, and ``drawn_least`` (per second) the least of a roof.
    ``imported_seconds`` and ``imported_rate`` (operations or bytes per second): the most that a file of another tool can say.
    """

    def __init__(self, file: _File) -> None:
        most = {bound.id: bound.most for bound in file.quantity}
        self.slices, self.seconds = most["slices"], most["time"] * 1e-9
        self.drawn_most, self.drawn_least = file.drawn
        self.imported_seconds, self.imported_rate = file.imported
        self._units = (*(f"{unit}__" for unit in file.units), "device__attribute_", "launch__", "sass__")
        self._rows = [(bound, _pattern(bound.metrics), _pattern(bound.other_than)) for bound in file.quantity]
        self._known = lru_cache(maxsize=_KEPT)(self._find)

    def bound(self, name: str) -> Bound | None:
        """The bound of a metric by its full name, None for one of which nothing is known."""
        return self._known(name) if len(name) <= _LONGEST else None

    def _find(self, name: str) -> Bound | None:
        if "__" in name and not name.startswith(self._units):
            return None
        rows = (bound for bound, wanted, unwanted in self._rows if wanted.fullmatch(name) and not unwanted.fullmatch(name))
        return next(rows, None)


def _pattern(wildcards: tuple[str, ...]) -> re.Pattern[str]:
    """Names that one of them matches; none of them at all if there are none."""
    return re.compile("|".join(map(translate, wildcards)) or r"(?!)")


@lru_cache(maxsize=1)
def load_limits() -> Limits:
    """The file that comes with the package, read once."""
    return Limits(read(DATA / FILE, FILE, _File))
