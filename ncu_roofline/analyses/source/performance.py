"""How fast loops ran, as far as it may be said: those that hold most of the kernel's time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ncu_roofline.analyses.source.columns import WORKS
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE
from ncu_roofline.analyses.source.totals import Counter, Totals
from ncu_roofline.facts import Spec
from ncu_roofline.facts.thresholds import MOST_OF_TIME
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.work import demands, loads_constants

OVERLAP = "samples of warps overlap: this code would stand above what is attainable"


@dataclass(frozen=True)
class Demanded:
    """Of one precision of a launch: kind of work, what it counts, pipe, operations, and seconds these take at the peak rate."""

    kind: str
    unit: str
    pipe: str
    work: float
    seconds: float
    metrics: str


@dataclass(frozen=True)
class LaunchRoofs:
    """What a launch's roofs allow: its run time (s), the roof of L1 (byte/s), and what its work asks of the pipes."""

    seconds: float
    l1: float
    demanded: tuple[Demanded, ...]
    constants: bool
    """Whether what looks like half-precision arithmetic loads constants, as the model tells by the opcodes executed."""

    @property
    def unit(self) -> str:
        """What the launch's work counts: op where all of it is of integers, else flop."""
        return "op" if self.demanded and all(one.unit == "op" for one in self.demanded) else "flop"

    def counters(self) -> dict[str, Counter]:
        """The operations of the launch by kind."""
        result: dict[str, Counter] = {}
        for one in self.demanded:
            before = result.get(one.kind, Counter(0.0))
            result[one.kind] = Counter(
                before.value + one.work, ", ".join(dict.fromkeys(filter(None, (before.metrics, one.metrics))))
            )
        return result

    def compute(self, work: Mapping[str, float], totals: Mapping[str, float]) -> float:
        """The compute roof of work of several kinds: all of it over the time that the busiest pipe needs.

        Of each kind it is taken to be mixed of precisions and families as the launch's ``totals`` are.
        """
        busy: dict[str, float] = {}
        for one in self.demanded:
            share = work[one.kind] / totals[one.kind] if totals[one.kind] > 0 else 0.0
            busy[one.pipe] = busy.get(one.pipe, 0.0) + one.seconds * share
        covered = {one.kind for one in self.demanded}
        if any(value > 0 and kind not in covered for kind, value in work.items()):
            return math.nan
        longest = max(busy.values(), default=math.nan)
        return sum(work.values()) / longest if longest > 0 else math.nan


def launch_roofs(m: Measurements, roofs: Roofs, spec: Spec) -> list[LaunchRoofs]:
    """Those of each launch."""
    l1 = roofs.bandwidth().get(spec.chain[0])
    constants = loads_constants(m)
    found = [one for one in demands(m, spec, roofs.compute()) if one.precision.id.partition(".")[0] in WORKS]
    return [
        LaunchRoofs(
            seconds=float(m.seconds[row]),
            l1=float(l1.value[row]) if l1 else math.nan,
            demanded=tuple(
                Demanded(
                    kind=one.precision.id.partition(".")[0],
                    unit=one.precision.unit,
                    pipe=str(one.pipe[row]),
                    work=float(one.work[row]),
                    seconds=float(one.seconds[row]),
                    metrics=_metrics(m, one.precision.id, row),
                )
                for one in found
                if one.work[row] > 0
            ),
            constants=bool(constants[row]),
        )
        for row in range(len(m))
    ]


def _metrics(m: Measurements, precision: str, row: int) -> str:
    quantity = m.work.get(precision)
    choice = quantity.choice[row] if quantity else -1
    return quantity.origins[choice].metrics if quantity and choice >= 0 else ""


def performance_columns(
    loops: Mapping[str, Any], roofs: LaunchRoofs, totals: Totals, sums: Mapping[str, float]
) -> dict[str, Any]:
    """Performance, what it is at least, what is attainable, and why there is none, for each row of the loops.

    ``sums``: operations of the launch by ``work_KIND``, as its pipes did them: those of loads of constants, too.
    """
    rows = [_performance(loops, row, roofs, totals, sums) for row in range(len(loops["loop"]))]
    names = ("performance", "performance_least", "attainable", "notes")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _performance(
    loops: Mapping[str, Any], row: int, roofs: LaunchRoofs, totals: Totals, sums: Mapping[str, float]
) -> tuple[float, float, float, str]:
    work, share, intensity = (float(loops[name][row]) for name in ("work", "share_samples", "intensity"))
    trusted = totals.fits("work") and roofs.seconds > 0
    least = work / roofs.seconds if trusted else math.nan
    compute = roofs.compute({kind: float(loops[f"work_{kind}"][row]) for kind in WORKS}, {k: sums[f"work_{k}"] for k in WORKS})
    attainable = min(compute, intensity * roofs.l1)
    speed = work / (share * roofs.seconds) if share > 0 and trusted else math.nan
    reasons = (
        (loops["loop"][row] == OUTSIDE, "outside of the report's code"),
        (loops["loop"][row] == NOWHERE, "no loop"),
        (not work > 0, "no floating-point work known" if math.isnan(work) else "no floating-point work"),
        (not math.isfinite(share), "no samples of warps"),
        (share < MOST_OF_TIME, f"holds less than {100 * MOST_OF_TIME:g} % of the samples, and those of different code overlap"),
        (totals.mixed, "counts and counters are of different launches"),
        (totals.cut, "samples tell of the first part of the run only: their buffer was full"),
        (not trusted, "sums don't fit the kernel's counters" if roofs.seconds > 0 else "no run time"),
        (not math.isfinite(intensity), "asks nothing of L1" if loops["requested"][row] == 0 else "traffic unknown"),
        (not math.isfinite(attainable), "roofs unknown"),
        (speed > attainable, OVERLAP),
    )
    reason = next((text for true, text in reasons if true), "")
    notes = "; ".join(filter(None, (reason, loops["notes"][row])))
    return (math.nan, least, math.nan, notes) if reason else (speed, least, attainable, notes)
