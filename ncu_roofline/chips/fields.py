"""One data file read key by key; compute capabilities and releases as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NoReturn

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.formula import WeightedSum

Capability = tuple[int, int]

LAST: Capability = (99, 9)
"""The end of a range that is open."""

ANY_MINOR = 99
"""The minor version of an end that reads ``10.x``: later than all there will be."""

Release = tuple[int, int]
LAST_RELEASE: Release = (9999, 9)
"""The end of a range of releases that is open."""

_COUNTER = re.compile(r"[a-z][a-z0-9]*__[a-z][a-z0-9_]*")
_RELEASE = re.compile(r"(20\d\d)\.(\d+)(?:\.|$)", re.ASCII)
_CAPABILITY = re.compile(r"([1-9][0-9]?)\.([0-9])", re.ASCII)
_TARGET = re.compile(r"(?:(?:sm|cc|compute)_?)?(\d{1,2})\.?(\d)[af]?", re.ASCII)
_RELEASE = re.compile(r"(20\d\d)\.(\d)", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}")


def parse_release(text: str) -> Release | None:
    """``"2024.2"`` or ``"2024.2.1.0"`` as (2024, 2), None for anything else."""
    match = _RELEASE.match(text)
    return (int(match[1]), int(match[2])) if match else None


def parse_capability(text: str) -> Capability | None:
    """``"9.0"`` as (9, 0), None for anything else."""
    match = _CAPABILITY.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def parse_target(text: str) -> Capability | None:
    """The compute capability that people and compilers write as ``9.0``, ``90a``, ``sm_90`` or ``compute_90``."""
    match = _TARGET.fullmatch(text.strip().lower())
    return (int(match[1]), int(match[2])) if match else None


def capability_text(capability: Capability) -> str:
    """(9, 0) as ``"9.0"``; "" for (0, 0), which stands for an unknown one."""
    return "{}.{}".format(*capability) if any(capability) else ""


def capability(text: str) -> Capability:
    """``"9.0"`` as (9, 0); ValueError for anything else."""
    found = parse_capability(text)
    if found is None:
        raise ValueError(f"a compute capability reads like 9.0, not {text!r}")
    return found


class SpecError(RooflineError, ValueError):
    """A data file of the specification is wrong: a mistake of whoever edited it, not of a report."""


def bad(file: str, key: str, reason: str) -> NoReturn:
    """Raise a `SpecError` that names file and key."""
    raise SpecError("Cannot use the specification file", file, f"{key}: {reason}", "Correct the file.")


def expand(pattern: str) -> Iterator[str]:
    """Counter names of a pattern with braces, as a shell writes them: ``d{add,mul}`` gives ``dadd`` and ``dmul``."""
    parts = _BRACES.split(pattern)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ("".join(chosen) for chosen in product(*choices))


class Fields:
    """One table of a file, read key by key; `finish` refuses whatever was not asked for."""

    def __init__(self, file: str, table: Mapping[str, object], where: str = "") -> None:
        self.file = file
        self._table = table
        self._where = where
        self._known: set[str] = set()

    def fail(self, key: str, reason: str) -> NoReturn:
        """Raise, naming the file and the full path of the key."""
        bad(self.file, f"{self._where}.{key}" if self._where else key, reason)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._known.add(key)
        return key in self._table

    def text(self, key: str, default: str | None = None, allowed: tuple[str, ...] = ()) -> str:
        """A string, one of ``allowed`` if given."""
        value = self._get(key, default)
        if not isinstance(value, str):
            self.fail(key, f"must be a string, not {value!r}")
        if allowed and value not in allowed:
            self.fail(key, f"must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        return value

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        """A list of strings without repetition."""
        value = self._get(key, None if required else [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, f"must be a list of strings, not {value!r}")
        if len(set(value)) != len(value):
            self.fail(key, "names something twice")
        return tuple(value)

    def flag(self, key: str) -> bool:
        """A boolean, false if absent."""
        value = self._get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"must be true or false, not {value!r}")
        return value

    def number(self, key: str) -> float:
        """A positive finite number."""
        return self._positive(key, self._get(key))

    def integer(self, key: str) -> int:
        """A whole number from 0 on."""
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self.fail(key, f"must be a whole number from 0 on, not {value!r}")
        return value

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers from 1 on."""
        value = self._get(key)
        if not isinstance(value, list) or not all(type(item) is int and item > 0 for item in value):
            self.fail(key, f"must be a list of whole numbers from 1 on, not {value!r}")
        return tuple(value)

    def capability(self, key: str) -> Capability:
        """A compute capability, written ``"9.0"``."""
        return self._capability(key, self.text(key))

    def ranges(self, key: str) -> tuple[tuple[Capability, Capability], ...]:
        """Ranges of compute capabilities, ends included: ``"7.0, 7.5-8.6, 10.x, 12.0-"``; all if absent.

        ``10.x`` is every chip of major version 10, at the end of a range the last of them.
        """
        found: list[tuple[Capability, Capability]] = []
        for part in self.text(key, "7.0-").split(","):
            first, dash, last = part.strip().partition("-")
            since = self._capability(key, first.replace(".x", ".0"))
            until = self._end(key, last) if last else LAST if dash else self._end(key, first)
            if since > until:
                self.fail(key, f"{part.strip()}: since is later than until")
            if found and since <= found[-1][1]:
                self.fail(key, f"{part.strip()}: ranges overlap or are not in order")
            found.append((since, until))
        return tuple(found)

    def releases(self, key: str) -> tuple[Release, Release]:
        """Releases of Nsight Compute, both included: ``"2021.3-2022.4"``, ``"2024.1-"`` or ``"2023.2"``."""
        text = self.text(key)
        first, dash, last = text.partition("-")
        ends = [_RELEASE.fullmatch(end) for end in (first, last or first)]
        if not ends[0] or not ends[1]:
            self.fail(key, f'must be like "2021.3-2022.4" or "2024.1-", not {text!r}')
        since, until = ((int(end[1]), int(end[2])) for end in ends if end)
        return since, LAST_RELEASE if dash and not last else until

    def numbers(self, key: str) -> dict[str, float]:
        """A table of positive finite numbers, empty if absent."""
        if not self.has(key):
            return {}
        return {name: self._positive(f"{key}.{name}", value) for name, value in self._mapping(key).items()}

    def weights(self, key: str, *, required: bool) -> WeightedSum | None:
        """A weighted sum, from ``{ counter pattern = weight }``; braces in a pattern are expanded."""
        if not required and not self.has(key):
            return None
        table: dict[str, float] = {}
        for pattern, value in self._mapping(key, required=True).items():
            weight = self._positive(f"{key}.{pattern}", value)
            for name in expand(pattern):
                if not _COUNTER.fullmatch(name):
                    self.fail(key, f"{name!r} is no name of a counter without suffix")
                if name in table:
                    self.fail(key, f"names {name} twice")
                table[name] = weight
        if not table:
            self.fail(key, "must name at least one counter")
        return WeightedSum.of(table)

    def table(self, key: str) -> Fields:
        """A sub-table, empty if absent."""
        return Fields(self.file, self._mapping(key), f"{self._where}.{key}" if self._where else key)

    def tables(self, key: str, *, required: bool = True) -> list[Fields]:
        """An array of tables."""
        value = self._get(key, None if required else [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value) or (required and not value):
            self.fail(key, "must be an array of tables")
        where = f"{self._where}.{key}" if self._where else key
        return [Fields(self.file, item, f"{where}[{index}]") for index, item in enumerate(value)]

    def names(self) -> tuple[str, ...]:
        """The keys that are there."""
        return tuple(self._table)

    def finish(self) -> None:
        """Refuse keys nobody asked for."""
        for key in self._table:
            if key not in self._known:
                self.fail(key, "is not a key of such a table")

    def _get(self, key: str, default: object = None) -> object:
        if self.has(key):
            return self._table[key]
        if default is None:
            self.fail(key, "is missing")
        return default

    def _mapping(self, key: str, *, required: bool = False) -> dict[str, object]:
        value = self._get(key, None if required else {})
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r}")
        return value

    def _end(self, key: str, text: str) -> Capability:
        major, _ = self._capability(key, text.replace(".x", ".0"))
        return (major, ANY_MINOR) if text.endswith(".x") else self._capability(key, text)

    def _capability(self, key: str, text: str) -> Capability:
        found = parse_capability(text)
        if found is None:
            self.fail(key, f'must be a compute capability like "9.0", not {text!r}')
        return found

    def _positive(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(key, f"must be a number, not {value!r}")
        if not 0 < value < math.inf:
            self.fail(key, f"must be positive and finite, not {value!r}")
        return float(value)


def release_text(release: Release) -> str:
    """ "2024.2"."""
    return "{}.{}".format(*release)
