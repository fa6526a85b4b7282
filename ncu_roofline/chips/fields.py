"""What the data files are made of: compute capabilities, releases and names of counters as people write them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import MisfitError, Stated, decode
from ncu_roofline.chips.formula import WeightedSum

Capability = tuple[int, int]
Release = tuple[int, int]
Record = TypeVar("Record")

DATA = Path(__file__).resolve().parent.parent / "data"
LAST: Capability = (99, 9)
"""The end of a range that is open."""
ANY_MINOR = 99
"""The minor version of an end that reads ``10.x``: later than all there will be."""
LAST_RELEASE: Release = (9999, 9)
"""The end of a range of releases that is open."""

_COUNTER = re.compile(r"[a-z][a-z0-9]*__[a-z][a-z0-9_]*")
_CAPABILITY = re.compile(r"([1-9][0-9]?)\.([0-9])", re.ASCII)
_TARGET = re.compile(r"(?:(?:sm|cc|compute)_?)?(\d{1,2})\.?(\d)[af]?", re.ASCII)
_RELEASE = re.compile(r"(20\d\d)\.(\d)", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}")


def parse_release(text: str) -> Release | None:
    """``"2024.2"`` or ``"2024.2.1.0"`` as (2024, 2), None for anything else."""
    match = _RELEASE.match(text)
    return (int(match[1]), int(match[2])) if match else None


def release_text(release: Release) -> str:
    """ "2024.2"."""
    return "{}.{}".format(*release)


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


def read(
    path: Path, name: str, form: type[Record], prepare: Callable[[dict[str, Any]], object] = lambda _table: None
) -> Record:
    """A data file, called ``name`` in errors, as a record; ``prepare`` completes its table before.  Raises SpecError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        prepare(table)
        found: Record = decode(form, table)
    except MisfitError as error:
        reason = str(error)
    except ValueError as error:
        reason = f"(whole file): {error}"
    else:
        return found
    raise SpecError("Cannot use the specification file", name, reason, "Correct the file.")


def expand(pattern: str) -> Iterator[str]:
    """Counter names of a pattern with braces, as a shell writes them: ``d{add,mul}`` gives ``dadd`` and ``dmul``."""
    parts = _BRACES.split(pattern)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ("".join(chosen) for chosen in product(*choices))


def _capability(text: str) -> Capability:
    found = parse_capability(text)
    if found is None:
        raise ValueError(f'must be a compute capability like "9.0", not {text!r}')
    return found


@cache
def _ranges(text: str) -> tuple[tuple[Capability, Capability], ...]:
    """``10.x`` is every chip of major version 10, at the end of a range the last of them."""
    found: list[tuple[Capability, Capability]] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        since, until = _capability(first.replace(".x", ".0")), LAST
        end = last or ("" if dash else first)
        if end:
            until = (_capability(end.replace(".x", ".0"))[0], ANY_MINOR) if end.endswith(".x") else _capability(end)
        if since > until:
            raise ValueError(f"{part.strip()}: since is later than until")
        if found and since <= found[-1][1]:
            raise ValueError(f"{part.strip()}: ranges overlap or are not in order")
        found.append((since, until))
    return tuple(found)


def _releases(text: str) -> tuple[Release, Release]:
    first, dash, last = text.partition("-")
    ends = [_RELEASE.fullmatch(end) for end in (first, last or first)]
    if not ends[0] or not ends[1]:
        raise ValueError(f'must be like "2021.3-2022.4" or "2024.1-", not {text!r}')
    since, until = ((int(end[1]), int(end[2])) for end in ends if end)
    return since, LAST_RELEASE if dash and not last else until


def _weights(stated: Mapping[str, float]) -> WeightedSum:
    table: dict[str, float] = {}
    for pattern, weight in stated.items():
        for name in expand(pattern):
            if not _COUNTER.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a counter without suffix")
            if name in table:
                raise ValueError(f"names {name} twice")
            table[name] = weight
    if not table:
        raise ValueError("must name at least one counter")
    return WeightedSum.of(table)


# What a data file states as text or table, for the fields of records.
StatedCapability = Annotated[Capability, Stated(str, _capability)]
Ranges = Annotated[tuple[tuple[Capability, Capability], ...], Stated(str, _ranges)]
"""Ranges of compute capabilities, ends included: ``"7.0, 7.5-8.6, 10.x, 12.0-"``."""
Releases = Annotated[tuple[Release, Release], Stated(str, _releases)]
"""Releases of Nsight Compute, both included: ``"2021.3-2022.4"``, ``"2024.1-"`` or ``"2023.2"``."""
Weights = Annotated[WeightedSum, Stated(dict[str, float], _weights)]
"""A weighted sum, from ``{ counter pattern = weight }``; braces in a pattern are expanded."""
Expanded = Annotated[tuple[str, ...], Stated(str, lambda pattern: tuple(expand(pattern)))]
"""Names, from one pattern with braces."""
AllExpanded = Annotated[
    tuple[tuple[str, ...], ...], Stated(tuple[str, ...], lambda patterns: tuple(tuple(expand(one)) for one in patterns))
]
ALL: tuple[tuple[Capability, Capability], ...] = (((7, 0), LAST),)
"""Ranges of what is stated for all chips."""


def covers(ranges: tuple[tuple[Capability, Capability], ...], compute_capability: Capability) -> bool:
    """Whether one of the ranges holds a compute capability."""
    return any(since <= compute_capability <= until for since, until in ranges)
