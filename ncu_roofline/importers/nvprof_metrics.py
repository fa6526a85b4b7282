"""nvprof's metrics as work and traffic, by the method of Yang, Kurth, Williams (2019), section II.

Work is what ``flop_count_dp/sp/hp`` count (fused multiply-adds as two).  Traffic is transactions x 32 byte: global, local and
atomic ones at L1, reads and writes at L2, DRAM and system memory.  The papers put shared memory into L1, at 32 byte as well;
here it is a level of its own, and one of its transactions moves 128 byte (32 banks of 4 byte).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Capability = tuple[int, int]

SECTOR = 32.0
TENSOR_LEVEL = "tensor_precision_fu_utilization"
TENSOR_LEVELS = 10.0  # nvprof gives utilisation as a whole number from 0 (idle) to 10 (full)

WORK = {"flop_count_dp": "fp64", "flop_count_sp": "fp32", "flop_count_hp": "fp16"}
# Half precision is left out: nvprof counts a packed fused instruction as 4 and a packed add as 2, so the parts are no counts
# of instructions.
_PARTS = {"fp64": "flop_count_dp", "fp32": "flop_count_sp"}
_NOT_FLOP = ("flop_count_sp_special",)


@dataclass(frozen=True)
class Traffic:
    """One way to get the bytes of a level: the metrics it needs, those it adds where collected, and bytes for each count.

    ``since`` is the first compute capability on which a transaction has that size; where it is unknown, Volta is assumed.
    """

    level: str
    needed: tuple[str, ...]
    added: tuple[str, ...] = ()
    size: float = SECTOR
    since: Capability = (0, 0)


# In this order: the first way whose metrics are there gives the level.
TRAFFIC = (
    Traffic(
        "l1",
        ("gld_transactions", "gst_transactions"),
        ("local_load_transactions", "local_store_transactions", "atomic_transactions"),
        # Kepler moves 128 byte in a cached load, and Pascal counts differently: only Volta counts sectors.
        since=(7, 0),
    ),
    Traffic("shared", ("shared_load_transactions", "shared_store_transactions"), size=128.0, since=(5, 0)),
    Traffic("l2", ("l2_read_transactions", "l2_write_transactions")),
    Traffic("dram", ("dram_read_transactions", "dram_write_transactions")),
    Traffic("dram", ("dram_read_bytes", "dram_write_bytes"), size=1.0),
    Traffic("system", ("sysmem_read_transactions", "sysmem_write_transactions")),
    Traffic("system", ("system_read_transactions", "system_write_transactions")),
    Traffic("system", ("sysmem_read_bytes", "sysmem_write_bytes"), size=1.0),
)

USED = frozenset(
    [name for way in TRAFFIC for name in (*way.needed, *way.added)]
    + list(WORK)
    + [f"{part}_{kind}" for part in _PARTS.values() for kind in ("add", "mul", "fma")]
    + [TENSOR_LEVEL]
)


def could_count(metric: str) -> bool:
    """Whether a metric is a count of operations or bytes that a user may miss among those used."""
    counts = metric.startswith("flop_count") or metric.endswith(("_transactions", "_bytes"))
    return counts and metric not in USED and metric not in _NOT_FLOP


def work_of(totals: Mapping[str, float]) -> Iterator[tuple[str, float, tuple[str, ...]]]:
    """(precision id, FLOP, metrics used), for each precision that was counted, in one sum or in its three parts."""
    for metric, precision in WORK.items():
        if metric in totals:
            yield precision, totals[metric], (metric,)
        elif parts := _parts(totals, precision):
            add, mul, fma = (totals[name] for name in parts)
            yield precision, add + mul + 2 * fma, parts


def fma_share_of(totals: Mapping[str, float]) -> dict[str, float]:
    """alpha by precision: fused instructions among add, multiply and fused ones (Yang, Kurth, Williams 2019, equation 6)."""
    result = {}
    for precision in _PARTS:
        if parts := _parts(totals, precision):
            counts = [totals[name] for name in parts]
            if sum(counts) > 0:
                result[precision] = counts[2] / sum(counts)
    return result


def _parts(totals: Mapping[str, float], precision: str) -> tuple[str, ...]:
    names = tuple(f"{_PARTS[precision]}_{kind}" for kind in ("add", "mul", "fma")) if precision in _PARTS else ()
    return names if names and all(name in totals for name in names) else ()


def traffic_of(totals: Mapping[str, float], capability: Capability) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Level id -> (bytes, metrics used), for each level whose metrics are complete and whose transactions have a known size."""
    result: dict[str, tuple[float, tuple[str, ...]]] = {}
    for way in TRAFFIC:
        if way.level not in result and all(name in totals for name in way.needed) and _known_size(way, capability):
            used = (*way.needed, *(name for name in way.added if name in totals))
            result[way.level] = (way.size * sum(totals[name] for name in used), used)
    return result


def without_traffic(totals: Mapping[str, float], capability: Capability) -> Iterator[tuple[str, str]]:
    """(level, reason) for each level of which something was collected, and not what its bytes need."""
    known = traffic_of(totals, capability)
    for way in TRAFFIC:
        there = [name for name in (*way.needed, *way.added) if name in totals]
        if way.level in known or not there:
            continue
        missing = [name for name in way.needed if name not in totals]
        if missing:
            yield way.level, f"{' and '.join(missing)} not collected"
        else:
            yield way.level, "the size of its transactions on this GPU is not known"


def not_added(totals: Mapping[str, float], capability: Capability) -> tuple[str, ...]:
    """Metrics that would have added to the L1 traffic and were not collected."""
    known = traffic_of(totals, capability)
    return tuple(name for way in TRAFFIC if way.level in known for name in way.added if name not in totals)


def _known_size(way: Traffic, capability: Capability) -> bool:
    return capability == (0, 0) or capability >= way.since
