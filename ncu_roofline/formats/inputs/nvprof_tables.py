"""The tables of ``nvprof --csv``: found in the log, GPUs by their names, metrics as work and traffic.

Metrics by the method of Yang, Kurth, Williams (2019), section II.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.text import SECONDS, damaged, row_of

_LAYOUTS = {
    "metrics": ("Device", "Kernel", "Invocations", "Metric Name", "Avg"),
    "events": ("Device", "Kernel", "Invocations", "Event Name"),
    "summary": ("Time(%)", "Time", "Calls", "Avg", "Name"),
    "trace": ("Start", "Duration", "Device", "Name"),
    "launches": ("Device", "Context", "Stream", "Kernel"),
    "API trace": ("Start", "Duration", "Name"),
}
_TIMED = {"summary": "Time", "trace": "Duration", "API trace": "Duration"}
_OWN_LINE = re.compile(r"={2,}\d*={2,}")
_ROW = re.compile(r'"|[\d.]+,|,')
# GPUs before those of the specification: they have no bindings here, and only their generation matters.
_OLDER = (
    (re.compile(r"\bP100|GP100"), (6, 0)),
    (re.compile(r"\bP(4|6|40)\b|GTX 10\d\d|TITAN X[pP]|P[2456]000\b"), (6, 1)),
    (re.compile(r"\bM(4|6|10|40|60)\b|GTX 9\d\d|GTX TITAN X"), (5, 2)),
    (re.compile(r"\bK80"), (3, 7)),
    (re.compile(r"\bK(20|40)[a-z]*\b|GTX TITAN"), (3, 5)),
)
# SMs and boost clock (Hz) of the boards whose tensor peak is known; the papers use 125 TFLOP/s for the SXM2 board.
_TENSOR_BOARDS = {"V100-SXM2": (80, 1.53e9), "V100-PCIE": (80, 1.38e9)}
Capability = tuple[int, int]
SECTOR = 32.0
TENSOR_LEVEL = "tensor_precision_fu_utilization"
TENSOR_LEVELS = 10.0  # nvprof gives utilisation as a whole number from 0 (idle) to 10 (full)
WORK = {"flop_count_dp": "fp64", "flop_count_sp": "fp32", "flop_count_hp": "fp16"}
# Half precision is left out: nvprof counts a packed fused instruction as 4 and a packed add as 2, so the parts are no counts
# of instructions.
_PARTS = {precision: metric for metric, precision in WORK.items() if metric != "flop_count_hp"}
_NOT_FLOP = ("flop_count_sp_special",)


@dataclass(frozen=True)
class NvprofLogTable:
    """One table of the log: rows as (line number, cells by column), units by column."""

    layout: str
    columns: tuple[str, ...]
    units: dict[str, str]
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def holds_table(text: str) -> bool:
    """Whether some line is the heading of one of nvprof's tables."""
    return any(_layout(cells) for line in text.split("\n") if '"' in line and (cells := row_of(line)))


def tables_of(text: str, path: str) -> list[NvprofLogTable]:
    """All tables of the log, in order.  Raises RooflineError for rows that are cut off and for times without unit."""
    tables: list[NvprofLogTable] = []
    current: NvprofLogTable | None = None
    for number, padded in enumerate(text.split("\n"), 1):
        line = padded.strip()
        if not line or _OWN_LINE.match(line):
            current = current if line else None
            continue
        cells = row_of(line)
        if layout := _layout(cells):
            current = NvprofLogTable(layout, tuple(cells), {})
            tables.append(current)
        elif current is not None and len(cells) == len(current.columns):
            row = dict(zip(current.columns, cells, strict=True))
            # A row of units names no kernel; tables of metrics per launch have one where a metric has a unit.
            timed = _TIMED.get(current.layout)
            is_units = row[timed] in SECONDS if timed else current.layout == "launches" and not row["Kernel"]
            if is_units and not current.rows and not current.units:
                current.units.update({name: unit for name, unit in row.items() if unit})
            else:
                current.rows.append((number, row))
        elif current is not None and _ROW.match(line):
            reason = f"line {number} has {len(cells)} of the {len(current.columns)} columns of its table"
            raise damaged(path, reason, "Give nvprof's complete output (--log-file keeps the application's apart).")
    for table in tables:
        timed = _TIMED.get(table.layout)
        if table.rows and timed and timed not in table.units:
            reason = f'the row of units is missing below its heading, so the column "{timed}" can\'t be understood'
            raise damaged(path, reason, "Give nvprof's complete output.")
    return tables


def _layout(cells: list[str]) -> str:
    return next((layout for layout, columns in _LAYOUTS.items() if set(columns).issubset(cells)), "")


def device_name(cell: str) -> str:
    """ "Tesla V100-SXM2-16GB (0)" without the number of the device."""
    return re.sub(r"\(\d+\)$", "", cell.strip()).rstrip()


def capability_of(device: str) -> tuple[int, int]:
    """The compute capability that a GPU's name tells, (0, 0) where it tells none."""
    older = next((capability for pattern, capability in _OLDER if pattern.search(device)), None)
    if older:
        return older
    for one in load_spec().architectures:
        if any(re.search(rf"\b{re.escape(product)}\b", device, re.IGNORECASE) for product in one.products):
            return one.compute_capability
    return 0, 0


def tensor_peak(device: str) -> float | None:
    """FLOP/s of the tensor cores at boost clock, None for GPUs whose number of SMs and clock are not known here."""
    board = next((facts for name, facts in _TENSOR_BOARDS.items() if name in device), None)
    architecture = load_spec().architecture(capability_of(device))
    if board is None or architecture is None:
        return None
    per_cycle = architecture.peak(load_spec().standard_tensor.id, device)
    return board[0] * board[1] * per_cycle if per_cycle else None


class Traffic(NamedTuple):
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


def work_of(totals: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float], list[str]]:
    """FLOP by precision, counted in one sum or in its three parts; alpha by precision; the metrics used.

    alpha is the share of fused instructions among add, multiply and fused ones (Yang, Kurth, Williams 2019, equation 6).
    """
    work: dict[str, float] = {}
    shares: dict[str, float] = {}
    used: list[str] = []
    for metric, precision in WORK.items():
        parts = [f"{_PARTS[precision]}_{kind}" for kind in ("add", "mul", "fma")] if precision in _PARTS else []
        complete = bool(parts) and all(name in totals for name in parts)
        add, mul, fma = (totals[name] for name in parts) if complete else (0.0, 0.0, 0.0)
        if metric in totals:
            work[precision] = totals[metric]
            used.append(metric)
        elif complete:
            work[precision] = add + mul + 2 * fma
            used += parts
        if add + mul + fma > 0:
            shares[precision] = fma / (add + mul + fma)
    return work, shares, used


def traffic_of(totals: Mapping[str, float], capability: Capability) -> tuple[dict[str, float], list[str], list[str]]:
    """Bytes by level, the metrics used, and those that would have added to L1 and were not collected.

    A level is there where its metrics are complete and its transactions have a known size.
    """
    traffic: dict[str, float] = {}
    used: list[str] = []
    for way in TRAFFIC:
        if way.level not in traffic and all(name in totals for name in way.needed) and _known_size(way, capability):
            names = [*way.needed, *(name for name in way.added if name in totals)]
            traffic[way.level] = way.size * sum(totals[name] for name in names)
            used += names
    return traffic, used, [name for way in TRAFFIC if way.level in traffic for name in way.added if name not in totals]


def without_traffic(totals: Mapping[str, float], capability: Capability) -> Iterator[tuple[str, str]]:
    """(level, reason) for each level of which something was collected, and not what its bytes need."""
    known = traffic_of(totals, capability)[0]
    for way in TRAFFIC:
        if way.level not in known and any(name in totals for name in (*way.needed, *way.added)):
            missing = [name for name in way.needed if name not in totals]
            reason = (
                f"{' and '.join(missing)} not collected" if missing else "the size of its transactions on this GPU is not known"
            )
            yield way.level, reason


def _known_size(way: Traffic, capability: Capability) -> bool:
    return capability == (0, 0) or capability >= way.since
