"""The table of GPUs and rates that data/gpus states: facts of data sheets, never measurements."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).resolve().parent.parent / "data" / "gpus"

Capability = tuple[int, int]


@dataclass(frozen=True)
class Gpu:
    """A GPU as sold.  Clocks in Hz, ``dram`` (the vendor's printed bandwidth) in B/s; ``l2_slices`` 0 where unknown."""

    id: str
    names: tuple[str, ...]
    compute_capability: Capability
    sm_count: int
    core_clock: float
    tensor_clock: float
    memory_clock: float
    bus_bits: int
    dram: float
    l2_slices: int
    source: str


@dataclass(frozen=True)
class Rate:
    """Operations per SM and cycle by compute capability, for a kind of arithmetic without counters of its own."""

    id: str
    per_sm: Mapping[Capability, float] = field(hash=False)
    uncertain: bool
    source: str


def capability(text: str) -> Capability:
    """``"9.0"`` as (9, 0); ValueError for anything else."""
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise ValueError(f"a compute capability reads like 9.0, not {text!r}")
    return int(major), int(minor)


@cache
def gpus() -> tuple[Gpu, ...]:
    """All GPUs of the table."""
    return tuple(_gpu(row) for row in _read("gpus.toml")["gpu"])


@cache
def rates() -> tuple[Rate, ...]:
    """Rates that the architectures' roofs do not state."""
    return tuple(
        Rate(
            id=row["id"],
            per_sm={capability(key): float(value) for key, value in row["per_sm"].items()},
            uncertain=row["uncertain"],
            source=row["source"],
        )
        for row in _read("rates.toml")["rate"]
    )


def find_rate(kind: str, compute_capability: Capability) -> tuple[float, bool] | None:
    """Operations per SM and cycle of a kind of arithmetic, and whether the figure is uncertain; None where unknown."""
    found = (rate for rate in rates() if rate.id == kind and compute_capability in rate.per_sm)
    return next(((rate.per_sm[compute_capability], rate.uncertain) for rate in found), None)


@cache
def link_rates() -> Mapping[int, float]:
    """Bytes per second and lane of each PCI Express generation, one way."""
    return {row["generation"]: row["rate"] * row["code"] / 8 for row in _read("rates.toml")["link"]}


@cache
def proven() -> Mapping[str, frozenset[str]]:
    """Ceilings that were run on real hardware, by compute capability."""
    return {key: frozenset(ids) for key, ids in _read("proven.toml")["proven"].items()}


def find_gpu(name: str, sm_count: int | None = None) -> Gpu | None:
    """The GPU whose name the driver reports as ``name``; None if it is in no table or has another number of SMs."""
    found = [gpu for gpu in gpus() if any(_is_named(name, part) for part in gpu.names)]
    return next((gpu for gpu in found if sm_count is None or gpu.sm_count == sm_count), None)


def named(word: str) -> tuple[Gpu, ...]:
    """GPUs whose id contains ``word``, whatever its case."""
    return tuple(gpu for gpu in gpus() if word.lower() in gpu.id.lower())


def _is_named(name: str, part: str) -> bool:
    words, wanted = name.split(), part.split()
    places = range(len(words) - len(wanted) + 1)
    return any(
        words[i : i + len(wanted) - 1] == wanted[:-1]
        and (words[i + len(wanted) - 1] == wanted[-1] or words[i + len(wanted) - 1].startswith(wanted[-1] + "-"))
        for i in places
    )


def _gpu(row: Mapping[str, Any]) -> Gpu:
    return Gpu(
        id=row["id"],
        names=tuple(row["names"]),
        compute_capability=capability(row["compute_capability"]),
        sm_count=row["sm_count"],
        core_clock=row["core_mhz"] * 1e6,
        tensor_clock=row["tensor_mhz"] * 1e6,
        memory_clock=row["memory_mhz"] * 1e6,
        bus_bits=row["bus_bits"],
        dram=row["dram_gbs"] * 1e9,
        l2_slices=row.get("l2_slices", 0),
        source=row["source"],
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))
