"""The tables of ``nvprof --csv``: found in the log, GPUs by their names, metrics as work and traffic.

Metrics by the method of Yang, Kurth, Williams (2019), section II.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
        elif current is not None:
            _add(current, number, line, cells, path)
    for table in tables:
        _check_units(table, path)
    return tables


def _add(table: NvprofLogTable, number: int, line: str, cells: list[str], path: str) -> None:
    if len(cells) == len(table.columns):
        row = dict(zip(table.columns, cells, strict=True))
        if not table.rows and not table.units and _is_units(table, row):
            table.units.update({name: unit for name, unit in row.items() if unit})
        else:
            table.rows.append((number, row))
    elif _ROW.match(line):
        reason = f"line {number} has {len(cells)} of the {len(table.columns)} columns of its table"
        raise damaged(path, reason, "Give nvprof's complete output (--log-file keeps the application's apart).")


def _is_units(table: NvprofLogTable, row: dict[str, str]) -> bool:
    timed = _TIMED.get(table.layout)
    # A row of units names no kernel; tables of metrics per launch have one where a metric has a unit.
    return row[timed] in SECONDS if timed else table.layout == "launches" and not row["Kernel"]


def _check_units(table: NvprofLogTable, path: str) -> None:
    timed = _TIMED.get(table.layout)
    if table.rows and timed and timed not in table.units:
        reason = f'the row of units is missing below its heading, so the column "{timed}" can\'t be understood'
        raise damaged(path, reason, "Give nvprof's complete output.")


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
    known = load_spec().architectures
    found = (one.compute_capability for one in known if any(_names(product, device) for product in one.products))
    return next(found, (0, 0))


def _names(product: str, device: str) -> bool:
    return re.search(rf"\b{re.escape(product)}\b", device, re.IGNORECASE) is not None


def tensor_peak(device: str) -> float | None:
    """FLOP/s of the tensor cores at boost clock, None for GPUs whose number of SMs and clock are not known here."""
    board = next((facts for name, facts in _TENSOR_BOARDS.items() if name in device), None)
    architecture = load_spec().architecture(capability_of(device))
    if board is None or architecture is None:
        return None
    per_cycle = architecture.peak(load_spec().standard_tensor.id, device)
    return board[0] * board[1] * per_cycle if per_cycle else None


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
