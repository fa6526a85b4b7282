"""Sums over the instructions of a launch beside what its own counters say; and how fast loops ran, as far as these allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.source.code import FLOPS, INT32, INTEGERS, INTENSITIES, NOWHERE, OUTSIDE, WORKS, Instructions
from ncu_roofline.analyses.source.frames import COUNTS
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.source_counters import SECTOR
from ncu_roofline.chips.verdict import COMPLETE, MOST_OF_TIME, as_percent
from ncu_roofline.formats.report import Metrics
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.points import Roofs
from ncu_roofline.model.work import demands, loads_constants

_PER_INSTRUCTION = {
    "active": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "threads": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
# What is counted by the names of opcodes, by the column that has the same by instruction.
_NAMED = {"executed": "sass__inst_executed_per_opcode", "threads": "sass__thread_inst_executed_true_per_opcode"}
_SUMMED = {
    "requested": (tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{one}.sum" for one in ("ld", "st", "atom", "red")), SECTOR),
    "local": (tuple(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{one}.sum" for one in ("ld", "st")), SECTOR),
    "shared": (tuple(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{one}.sum" for one in ("ld", "st", "atom")), 1),
    "samples": (("smsp__pcsamp_sample_count",), 1),
}
_BUFFER, _DROPPED = "smsp__pcsamp_buffer_size_bytes", "smsp__pcsamp_dropped_bytes"
_PER_BYTE, _FULL = 7 / 64, 0.99
"""Samples that a byte of the buffer holds: twelve A100 launches of 0.3 to 4 s have 3,669,964 in 33,554,432 bytes, none more."""
_MISCOUNTED = "the report lacks some, or has some twice"
_UNITS = {column.name: column.unit for column in COUNTS}
_LITTLE = 0.01
"""Local traffic that is less than this share of the other is printf's or the driver's, and may differ by any factor."""
_OUT_OF_ALL = 10.0
"""Counters that differ by more than this factor are of another launch."""
_WORDS = {FLOPS: "floating-point", INTEGERS: "INT32"}


class Demanded(NamedTuple):
    """Of one precision of a launch: kind of work, what it counts, pipe, operations, and seconds these take at the peak rate."""

    kind: str
    unit: str
    pipe: str
    work: float
    seconds: float
    metrics: str


class LaunchRoofs(NamedTuple):
    """What a launch's roofs allow: its run time (s), the roof of L1 (byte/s), and what its operations ask of the pipes.

    ``constants``: what looks like half-precision arithmetic loads constants, as the model tells by the opcodes executed.
    ``bound``: id of the roof or unit that limits it by its verdict, "" if none does.
    """

    seconds: float
    l1: float
    demanded: tuple[Demanded, ...]
    constants: bool
    bound: str

    @property
    def unit(self) -> str:
        """What the launch's work counts: op where all of it is of integer tensor instructions, else flop."""
        return "op" if {one.unit for one in self.demanded if one.kind != INT32} == {"op"} else "flop"

    def performance_of(self, whole: Mapping[str, float]) -> str:
        """The column of the operations that performance counts: INT32's where they limit the launch or are all that it does.

        ``whole``: sums over the instructions; where work is unknown, what the kernel's counters say of it stands in.
        """
        kinds = {one.kind for one in self.demanded}
        works = bool(kinds - {INT32}) if math.isnan(whole[FLOPS]) else whole[FLOPS] > 0
        integers = INT32 in kinds or whole[INTEGERS] > 0
        return INTEGERS if integers and (self.bound == INT32 or not works) else FLOPS

    def compute(self, work: Mapping[str, float], totals: Mapping[str, float]) -> float:
        """The compute roof of work of several kinds: all of it over the time that the busiest pipe needs.

        Of each kind it is taken to be mixed of precisions and families as the launch's ``totals`` (by column) are.
        """
        busy: dict[str, float] = {}
        for one in (one for one in self.demanded if one.kind in work):
            total = totals[f"work_{one.kind}"]
            busy[one.pipe] = busy.get(one.pipe, 0.0) + one.seconds * (work[one.kind] / total if total > 0 else 0.0)
        longest, covered = max(busy.values(), default=math.nan), {one.kind for one in self.demanded}
        known = all(kind in covered for kind, value in work.items() if value > 0)
        return sum(work.values()) / longest if known and longest > 0 else math.nan


def launch_roofs(m: Measurements, roofs: Roofs, bound: Sequence[str]) -> list[LaunchRoofs]:
    """Those of each launch; ``bound``: ids of what limits them, as of `LaunchRoofs`."""
    spec = load_spec()
    l1 = roofs.bandwidth().get(spec.chain[0])
    launches: list[list[Demanded]] = [[] for _ in range(len(m))]
    for one in demands(m, spec, roofs.compute()):
        kind, quantity = one.precision.id.partition(".")[0], m.work.get(one.precision.id)
        for row in np.flatnonzero(one.work > 0).tolist() if kind in (*WORKS, INT32) else ():
            choice = quantity.choice[row] if quantity else -1
            metrics = quantity.origins[choice].metrics if quantity and choice >= 0 else ""
            work, seconds = float(one.work[row]), float(one.seconds[row])
            launches[row].append(Demanded(kind, one.precision.unit, str(one.pipe[row]), work, seconds, metrics))
    l1_roofs = l1.value.tolist() if l1 else [math.nan] * len(m)
    rows = zip(m.seconds.tolist(), l1_roofs, map(tuple, launches), loads_constants(m).tolist(), bound, strict=True)
    return [LaunchRoofs(*row) for row in rows]


class Totals:
    """The sums of one launch beside its counters: ``rows``; ``notes``: what a reader must know of the launch as a whole.

    What was counted of work whose sum is unknown only for what lies outside of the report's code becomes its whole.
    """

    def __init__(self, found: Instructions, metrics: Metrics, roofs: LaunchRoofs) -> None:
        self._found, self._roofs = found, roofs

        def number(name: str) -> float:
            value = metrics.get(name)
            return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else math.nan

        def summed(names: tuple[str, ...], worth: float = 1) -> tuple[float, str]:
            """The sum of the counters that a launch has; NaN if it lacks the first, without which the others say little."""
            there = {name: value for name in names if math.isfinite(value := number(name))}
            return (worth * sum(there.values()), " + ".join(there)) if names[0] in there else (math.nan, "")

        # What the kernel's counters say of each quantity, NaN if they are not there, and which these are.
        named = next(filter(metrics.has_name, ("smsp__inst_executed.sum", "sm__inst_executed.sum")), "")
        counters = {"executed": summed((named,))}
        executed, metric = counters["executed"]
        for quantity, name in _PER_INSTRUCTION.items():
            counters[quantity] = number(name) * executed, f"{name} x {metric}" if metric else ""
        kinds = {one.kind for one in roofs.demanded}
        for kind in (*WORKS, INT32):
            own = [one for one in roofs.demanded if one.kind == kind]
            work = sum(one.work for one in own) if own else math.nan
            counters[f"work_{kind}"] = work, ", ".join(dict.fromkeys(one.metrics for one in own if one.metrics))
        known = [counters[f"work_{kind}"][0] for kind in WORKS if kind in kinds]
        counters[FLOPS] = sum(known) if known else math.nan, "the sum over kinds"
        counters |= {quantity: summed(*given) for quantity, given in _SUMMED.items()}
        self.rows = [self._row(quantity, *counter) for quantity, counter in counters.items()]
        self.rows += self._opcodes(metrics)
        ratios = {row["quantity"]: row["ratio"] for row in self.rows}
        self._fitting = {quantity for quantity, ratio in ratios.items() if abs(ratio - 1) <= COMPLETE}
        for row in self.rows:
            work = row["quantity"].startswith("work") and not math.isnan(row["sum"])
            if work and math.isnan(found.whole[row["quantity"]]):
                found.whole[row["quantity"]] = row["counter"]
        self._cut = number(_DROPPED) > 0 or found.whole["samples"] >= _FULL * number(_BUFFER) * _PER_BYTE
        self._miscounted = abs(ratios["samples"] - 1) > COMPLETE
        self._mixed = math.isfinite(ratios["executed"]) and not 1 / _OUT_OF_ALL < ratios["executed"] < _OUT_OF_ALL
        self.notes = []
        if self._cut:
            self.notes.append("the buffer of samples was full before the kernel's end: they cover its first part only")
        if self._mixed:
            times = f"{ratios['executed']:.3g} times what the kernel's counters say"
            self.notes.append(f"instruction counts are {times}: application replay mixed launches")
        if self._miscounted:
            times = f"{ratios['samples']:.3g} times those of the kernel's counter"
            self.notes.append(f"samples by instruction are {times}: {_MISCOUNTED}")

    def _row(self, quantity: str, counter: float, metrics: str) -> dict[str, Any]:
        found, work = self._found, quantity.startswith("work")
        values, outside = found.counts[quantity], found.body < 0
        unlined = ~outside & np.array([not places for places in found.places], dtype=bool)
        # Nobody knows what code outside of the report's does.
        total = float(values[~outside].sum() if work else values.sum())
        ratio, note = total / counter if counter else math.nan, ""
        if work and math.isnan(total) and found.unknown:
            note = f"operations unknown of {', '.join(found.unknown[:3])}{' and others' * (len(found.unknown) > 3)}"
        elif work and counter > 0 and math.isnan(found.whole[quantity]):
            note = "without what lies outside of the report's code, whose operations are unknown"
        elif abs(ratio - 1) > COMPLETE:
            note = "counted in passes of the kernel that may differ"
            note += ": this one by instrumentation, the counter by hardware"
            if quantity == "samples":
                note = _MISCOUNTED
            elif work:
                note = "by opcodes as our tables decode them: the tables may be wrong, or passes of the kernel differed"
            elif quantity in ("requested", "local") and total + counter < _LITTLE * found.whole["requested"]:
                note = "negligible beside what global accesses request from L1"
        kinds = {one.kind for one in self._roofs.demanded} & (
            {quantity.removeprefix("work_")} if quantity != FLOPS else {*WORKS}
        )
        loads = sum(found.constant_work.get(kind, 0.0) for kind in WORKS if kind in kinds)
        constants = f"without {loads:.4g} operations that the counter has for loads of constants (HFMA2 R0, -RZ, RZ, x, y)"
        return {
            "quantity": quantity,
            "unit": self._roofs.unit if _UNITS[quantity] == "flop" else _UNITS[quantity],
            "sum": total,
            "outside": float(values[outside].sum()),
            "unlined": float(values[unlined].sum()),
            "counter": counter,
            "ratio": ratio if math.isfinite(ratio) else math.nan,
            "metrics": metrics,
            "notes": "; ".join(filter(None, (note, constants if loads > 0 else ""))),
        }

    def _opcodes(self, metrics: Metrics) -> list[dict[str, Any]]:
        """The row of instructions whose names are those of the kernel's own counts by opcode; none without such counts."""
        found = self._found
        for column, metric in _NAMED.items():
            theirs, ours = dict[str, float](), dict[str, float]()
            for opcode, count in metrics.instances(metric) if metrics.has_name(metric) else ():
                if isinstance(opcode, str) and isinstance(count, (int, float)) and 0 <= count < math.inf:
                    name = opcode.partition(".")[0]
                    theirs[name] = theirs.get(name, 0.0) + count
            total = sum(theirs.values())
            if not total > 0 or not np.isfinite(found.counts[column]).all():
                continue
            for opcode, count in zip(found.opcodes, found.counts[column].tolist(), strict=True):
                name = opcode.partition(".")[0]
                ours[name] = ours.get(name, 0.0) + count
            same = sum(min(ours.get(name, 0.0), count) for name, count in theirs.items())
            apart = {name: ours.get(name, 0.0) - theirs.get(name, 0.0) for name in sorted({*ours, *theirs})}
            off = sum(map(abs, apart.values())) / total
            most = sorted(apart, key=lambda name: -abs(apart[name]))[:3]
            named = ", ".join(f"{name or 'outside of the code'} {apart[name]:+.3g}" for name in most if apart[name])
            told = f"differences by name add up to {as_percent(off)} of the counts: {named}" if off > COMPLETE else ""
            values = {"sum": same, "outside": math.nan, "unlined": math.nan, "counter": total, "ratio": same / total}
            return [{"quantity": "opcodes", "unit": _UNITS[column], **values, "metrics": metric, "notes": told}]
        return []

    def performance(self, loops: Mapping[str, Any], counted: str) -> dict[str, Any]:
        """Performance, what it is at least, what is attainable, and why there is none, for each row of the loops.

        ``counted``: the column of the operations that performance counts.
        """
        roofs, kinds = self._roofs, WORKS if counted == FLOPS else (INT32,)
        trusted = counted in self._fitting and roofs.seconds > 0
        found: dict[str, list[Any]] = {"performance": [], "performance_least": [], "attainable": [], "notes": []}
        for row in range(len(loops["loop"])):
            work, share, intensity = (float(loops[name][row]) for name in (counted, "share_samples", INTENSITIES[counted]))
            own = {kind: float(loops[f"work_{kind}"][row]) for kind in kinds}
            attainable = min(roofs.compute(own, self._found.whole), intensity * roofs.l1)
            speed = work / (share * roofs.seconds) if share > 0 and trusted else math.nan
            least = f"holds less than {100 * MOST_OF_TIME:g} % of the samples, and those of different code overlap"
            reasons = (
                (loops["loop"][row] == OUTSIDE, "outside of the report's code"),
                (loops["loop"][row] == NOWHERE, "no loop"),
                (loops["executed"][row] == 0, "never executed"),
                (not work > 0, f"no {_WORDS[counted]} work{' known' if math.isnan(work) else ''}"),
                (not math.isfinite(share), "no samples of warps"),
                (share < MOST_OF_TIME, least),
                (self._mixed, "counts and counters are of different launches"),
                (self._cut, "samples cover only the first part of the run: their buffer was full"),
                (self._miscounted, "samples don't fit the kernel's counter of them"),
                (not trusted, "sums don't fit the kernel's counters" if roofs.seconds > 0 else "no run time"),
                (not math.isfinite(intensity), "no L1 requests" if loops["requested"][row] == 0 else "traffic unknown"),
                (not math.isfinite(attainable), "roofs unknown"),
                (speed > attainable, "samples of warps overlap: this code would stand above what is attainable"),
            )
            reason = next((text for true, text in reasons if true), "")
            found["performance"].append(math.nan if reason else speed)
            found["performance_least"].append(work / roofs.seconds if trusted else math.nan)
            found["attainable"].append(math.nan if reason else attainable)
            found["notes"].append("; ".join(filter(None, (reason, loops["notes"][row]))))
        return found
