"""How fast loops ran, as far as it may be said: those that hold most of the kernel's time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.source.columns import FLOPS, INT32, INTEGERS, INTENSITIES, WORKS
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE
from ncu_roofline.analyses.source.totals import Counter, Totals
from ncu_roofline.chips import Spec
from ncu_roofline.chips.thresholds import MOST_OF_TIME
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.work import demands, loads_constants

_NAMES = {FLOPS: "floating-point", INTEGERS: "INT32"}
OVERLAP = "samples of warps overlap: this code would stand above what is attainable"


class Demanded(NamedTuple):
    """Of one precision of a launch: kind of work, what it counts, pipe, operations, and seconds these take at the peak rate."""

    kind: str
    unit: str
    pipe: str
    work: float
    seconds: float
    metrics: str


@dataclass(frozen=True)
class LaunchRoofs:
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

    def counters(self) -> dict[str, Counter]:
        """The operations of the launch by kind."""
        found = {}
        for kind in dict.fromkeys(one.kind for one in self.demanded):
            mine = [one for one in self.demanded if one.kind == kind]
            metrics = dict.fromkeys(one.metrics for one in mine if one.metrics)
            found[kind] = Counter(sum(one.work for one in mine), ", ".join(metrics))
        return found

    def compute(self, work: Mapping[str, float], totals: Mapping[str, float]) -> float:
        """The compute roof of work of several kinds: all of it over the time that the busiest pipe needs.

        Of each kind it is taken to be mixed of precisions and families as the launch's ``totals`` are.
        """
        busy: dict[str, float] = {}
        for one in (one for one in self.demanded if one.kind in work):
            share = work[one.kind] / totals[one.kind] if totals[one.kind] > 0 else 0.0
            busy[one.pipe] = busy.get(one.pipe, 0.0) + one.seconds * share
        covered = {one.kind for one in self.demanded}
        longest = max(busy.values(), default=math.nan)
        known = all(kind in covered for kind, value in work.items() if value > 0)
        return sum(work.values()) / longest if known and longest > 0 else math.nan


def launch_roofs(m: Measurements, roofs: Roofs, spec: Spec, bound: Sequence[str]) -> list[LaunchRoofs]:
    """Those of each launch; ``bound``: ids of what limits them, as of `LaunchRoofs`."""
    l1, constants = roofs.bandwidth().get(spec.chain[0]), loads_constants(m)
    launches: list[list[Demanded]] = [[] for _ in range(len(m))]
    for one in demands(m, spec, roofs.compute()):
        kind, quantity = one.precision.id.partition(".")[0], m.work.get(one.precision.id)
        for row in np.flatnonzero(one.work > 0).tolist() if kind in (*WORKS, INT32) else ():
            choice = quantity.choice[row] if quantity else -1
            metrics = quantity.origins[choice].metrics if quantity and choice >= 0 else ""
            work, seconds = float(one.work[row]), float(one.seconds[row])
            launches[row].append(Demanded(kind, one.precision.unit, str(one.pipe[row]), work, seconds, metrics))
    l1_roofs = l1.value.tolist() if l1 else [math.nan] * len(m)
    rows = zip(m.seconds.tolist(), l1_roofs, map(tuple, launches), constants.tolist(), bound, strict=True)
    return [LaunchRoofs(*row) for row in rows]


def performance_columns(
    loops: Mapping[str, Any], roofs: LaunchRoofs, totals: Totals, sums: Mapping[str, float], counted: str
) -> dict[str, Any]:
    """Performance, what it is at least, what is attainable, and why there is none, for each row of the loops.

    ``sums``: operations of the launch by ``work_KIND``; ``counted``: the column of those that performance counts.
    """
    kinds = WORKS if counted == FLOPS else (INT32,)
    trusted = totals.fits(counted) and roofs.seconds > 0
    found: dict[str, list[Any]] = {"performance": [], "performance_least": [], "attainable": [], "notes": []}
    for row in range(len(loops["loop"])):
        work, share, intensity = (float(loops[name][row]) for name in (counted, "share_samples", INTENSITIES[counted]))
        mine = {kind: float(loops[f"work_{kind}"][row]) for kind in kinds}
        attainable = min(roofs.compute(mine, {kind: sums[f"work_{kind}"] for kind in kinds}), intensity * roofs.l1)
        speed = work / (share * roofs.seconds) if share > 0 and trusted else math.nan
        reasons = (
            (loops["loop"][row] == OUTSIDE, "outside of the report's code"),
            (loops["loop"][row] == NOWHERE, "no loop"),
            (loops["executed"][row] == 0, "never executed"),
            (not work > 0, f"no {_NAMES[counted]} work{' known' if math.isnan(work) else ''}"),
            (not math.isfinite(share), "no samples of warps"),
            (
                share < MOST_OF_TIME,
                f"holds less than {100 * MOST_OF_TIME:g} % of the samples, and those of different code overlap",
            ),
            (totals.mixed, "counts and counters are of different launches"),
            (totals.cut, "samples tell of the first part of the run only: their buffer was full"),
            (totals.miscounted, "samples don't fit the kernel's counter of them"),
            (not trusted, "sums don't fit the kernel's counters" if roofs.seconds > 0 else "no run time"),
            (not math.isfinite(intensity), "asks nothing of L1" if loops["requested"][row] == 0 else "traffic unknown"),
            (not math.isfinite(attainable), "roofs unknown"),
            (speed > attainable, OVERLAP),
        )
        reason = next((text for true, text in reasons if true), "")
        found["performance"].append(math.nan if reason else speed)
        found["performance_least"].append(work / roofs.seconds if trusted else math.nan)
        found["attainable"].append(math.nan if reason else attainable)
        found["notes"].append("; ".join(filter(None, (reason, loops["notes"][row]))))
    return found
