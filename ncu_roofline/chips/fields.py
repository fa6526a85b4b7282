"""What the data files are made of: compute capabilities, releases and weighted sums of counters as people write them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, TypeVar

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import MisfitError, Stated, decode

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


def parse_release(text: str) -> Release | None:
    """``"2024.2"`` or ``"2024.2.1.0"`` as (2024, 2), None for anything else."""
    match = re.match(r"(20\d\d)\.(\d)", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def release_text(release: Release) -> str:
    """ "2024.2"."""
    return "{}.{}".format(*release)


def parse_capability(text: str) -> Capability | None:
    """``"9.0"`` as (9, 0), None for anything else."""
    match = re.fullmatch(r"([1-9][0-9]?)\.([0-9])", text)
    return (int(match[1]), int(match[2])) if match else None


def parse_target(text: str) -> Capability | None:
    """The compute capability that people and compilers write as ``9.0``, ``90a``, ``sm_90`` or ``compute_90``."""
    match = re.fullmatch(r"(?:(?:sm|cc|compute)_?)?(\d{1,2})\.?(\d)[af]?", text.strip().lower(), re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def capability_text(capability: Capability) -> str:
    """(9, 0) as ``"9.0"``; "" for (0, 0), which stands for an unknown one."""
    return "{}.{}".format(*capability) if any(capability) else ""


def capability(text: str) -> Capability:
    """``"9.0"`` as (9, 0); ValueError for anything else."""
    found = parse_capability(text)
    if found is None:
        raise ValueError(f'must be a compute capability like "9.0", not {text!r}')
    return found


class WeightedSum(tuple[tuple[str, float], ...]):
    """``sum(weight * counter)`` as its terms: the one form that every peak, work and traffic has.  A term names a counter
    without its suffix (``smsp__sass_thread_inst_executed_op_ffma_pred_on``); whoever uses the sum adds it (``.sum``,
    ``.sum.per_second``, ``.sum.peak_sustained``).  Weights are positive."""

    __slots__ = ()

    @classmethod
    def of(cls, table: Mapping[str, float]) -> WeightedSum:
        return cls((name, float(weight)) for name, weight in table.items())

    def counters(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self)

    def text(self) -> str:
        """Readable form: ``dadd + dmul + 2*dfma``."""
        return " + ".join(name if weight == 1 else f"{weight:g}*{name}" for name, weight in self)


class SpecError(RooflineError, ValueError):
    """A data file of the specification is wrong: a mistake of whoever edited it, not of a report."""


def read(path: Path, form: type[Record]) -> Record:
    """A data file as a record.  Raises SpecError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found: Record = decode(form, tomllib.loads(path.read_text(encoding="utf-8")))
    except MisfitError as error:
        reason = str(error)
    except ValueError as error:
        reason = f"(whole file): {error}"
    else:
        return found
    raise SpecError("Cannot use the specification file", f"{path.parent.name}/{path.name}", reason, "Correct the file.")


def table(name: str, form: type[Record]) -> Callable[[], Record]:
    """What gives the data file of a name that comes with the package, read once, when it is asked for."""
    return cache(lambda: read(DATA / name, form))


def expand(pattern: str) -> Iterator[str]:
    """Counter names of a pattern with braces, as a shell writes them: ``d{add,mul}`` gives ``dadd`` and ``dmul``."""
    parts = re.split(r"\{([^{}]*)\}", pattern)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ("".join(chosen) for chosen in product(*choices))


@cache
def ranges(text: str) -> tuple[tuple[Capability, Capability], ...]:
    """``10.x`` is every chip of major version 10, at the end of a range the last of them."""
    found: list[tuple[Capability, Capability]] = []
    for part in map(str.strip, text.split(",")):
        first, dash, last = part.partition("-")
        since, until = capability(first.replace(".x", ".0")), LAST
        end = last or ("" if dash else first)
        if end:
            until = (capability(end.replace(".x", ".0"))[0], ANY_MINOR) if end.endswith(".x") else capability(end)
        found.append((since, until))
    return tuple(found)


def _releases(text: str) -> tuple[Release, Release]:
    ends = re.fullmatch(r"(20\d\d)\.(\d)(?:(-)(?:(20\d\d)\.(\d))?)?", text, re.ASCII)
    if not ends:
        raise ValueError(f'must be like "2021.3-2022.4" or "2024.1-", not {text!r}')
    since = int(ends[1]), int(ends[2])
    if ends[4]:
        return since, (int(ends[4]), int(ends[5]))
    return since, LAST_RELEASE if ends[3] else since


def _weights(stated: Mapping[str, float]) -> WeightedSum:
    return WeightedSum((name, weight) for pattern, weight in stated.items() for name in expand(pattern))


# What a data file states as text or table, for the fields of records.
StatedCapability = Annotated[Capability, Stated(str, capability)]
Ranges = Annotated[tuple[tuple[Capability, Capability], ...], Stated(str, ranges)]
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
