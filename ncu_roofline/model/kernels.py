"""The kernels frame: every launch or group with its time, also those that no chart can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.chips import Spec
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.model.above import above_bandwidths
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.halves import NO_ARITHMETIC
from ncu_roofline.model.measurements import Measurements, objects, precisions_of
from ncu_roofline.model.opcodes import TOLD
from ncu_roofline.model.points import LOW_CLOCK
from ncu_roofline.model.selection import Grouping, kernel_keys, reports_of
from ncu_roofline.model.utilisation import uncounted_tensor
from ncu_roofline.model.verdicts import Verdicts
from ncu_roofline.model.work import total_flops

_CONTRADICT = (TOLD, NO_ARITHMETIC)


class Everything(NamedTuple):
    """What the reports hold of a GPU, selected or not."""

    device: str
    kernels: int
    launches: int
    seconds: float


def everything_of(m: Measurements, selected: Measurements) -> tuple[Everything, ...]:
    """What there is on each GPU, () where everything is selected."""
    if len(selected) == len(m):
        return ()
    kernels = {device: {key for key in kernel_keys(m) if key[2] == device} for device in dict.fromkeys(m.device.tolist())}
    seconds = np.where((m.seconds > 0) & ~m.rates, m.seconds, 0.0)
    return tuple(
        Everything(device, len(members), int(m.invocations[here].sum()), float(seconds[here].sum()))
        for device, members in kernels.items()
        for here in [m.device == device]
    )


def kernels_table(
    m: Measurements,
    grouping: Grouping,
    spec: Spec,
    levels: tuple[str, ...],
    verdicts: Verdicts,
    everything: Sequence[Everything] = (),
) -> dict[str, Any]:
    """Columns of the kernels frame (`columns.KERNELS`); shares are of the time of ``everything`` if that is given."""
    first, single = grouping.first, grouping.by == "launch"
    seconds = grouping.total(np.nan_to_num(m.seconds))
    seconds = np.where(grouping.total(np.isfinite(m.seconds).astype(np.float64)) > 0, seconds, np.nan)
    seconds = np.where(grouping.total(m.rates.astype(np.float64)) > 0, np.nan, seconds)
    devices = set(m.device)
    total = sum(one.seconds for one in everything if one.device in devices) or np.nansum(seconds)
    work = _sum_known(grouping, np.where(m.rates, np.nan, total_flops(m)))
    clock = grouping.mean(m.clock, m.seconds)
    ratio = clock / m.clock_max[first]
    available = _Availability(m, grouping, spec, levels, verdicts.uncounted)
    work = np.where(available.uncounted & ~(work > 0), np.nan, work)  # zero of what was counted is not zero in all
    launches = grouping.total(m.invocations.astype(np.float64))
    judged = verdicts.table()
    with np.errstate(divide="ignore", invalid="ignore"):
        recoverable = judged["judged_seconds"] * (1 - 1 / np.asarray(judged["headroom"], dtype=np.float64))
    shares, rates = ({level: judged[f"{kind}_{level}"] for level in LEVELS_WITH_COLUMNS} for kind in ("fraction", "bandwidth"))
    notes = (
        remarks_of(m, grouping),
        _contradictions(m, grouping, spec),
        above_bandwidths(shares, rates, seconds / launches, (clock, m.clock_max[first])),
        [LOW_CLOCK if one < CLOCK_WARNING else "" for one in ratio],
        available.zero_so_far(),
        _tensor_notes(m, grouping, spec),
        available.caveats(),
    )
    return {
        "report": reports_of(m, grouping),
        "launch": m.launch[first] if single else np.full(len(first), -1, dtype=np.int64),
        "kernel": np.array(grouping.label, dtype=object),
        "device": m.device[first],
        "compute_capability": m.capability_text[first],
        "label": grouping.common(m.label),
        "step": m.step[first],
        "name": m.name[first] if grouping.by != "application" else np.array(grouping.label, dtype=object),
        "kind": m.kind[first] if grouping.by != "application" else np.full(len(first), "application", dtype=object),
        "launches": launches.astype(np.int64),
        "untimed": grouping.total(np.where(np.isfinite(m.seconds) & ~m.rates, 0.0, m.invocations)).astype(np.int64),
        "grid": grouping.common(m.grid),
        "block": grouping.common(m.block),
        "nvtx": grouping.common(m.nvtx),
        "ncu_version": m.ncu_version[first],
        "seconds": seconds,
        "time_share": seconds / total if total > 0 else np.full(len(first), np.nan),
        "work": work,
        "status": available.status(),
        "clock_profiled": clock,
        "clock_max": m.clock_max[first],
        "clock_ratio": ratio,
        **judged,
        "recoverable": np.where(judged["judged_seconds"] > 0, recoverable, np.nan),
        "missing": available.missing(),
        "notes": objects(["; ".join(text for text in texts if text) for texts in zip(*notes, strict=True)]),
    }


def remarks_of(m: Measurements, grouping: Grouping) -> Any:
    """The remarks on any launch of each row, each once."""
    found: list[dict[str, None]] = [{} for _ in range(grouping.count)]
    for launch in np.flatnonzero(m.remarks != ""):
        found[grouping.index[launch]][str(m.remarks[launch])] = None
    return ["; ".join(one) for one in found]


def _contradictions(m: Measurements, grouping: Grouping, spec: Spec) -> Any:
    """Work of 0 where opcodes or counters say something else: no point tells it."""
    found: list[dict[str, None]] = [{} for _ in range(grouping.count)]
    for precision in precisions_of(m, spec):
        quantity = m.work.get(precision.id)
        told = []
        for origin in quantity.origins if quantity else ():
            said = next((one for one in origin.note.split("; ") if one.startswith(_CONTRADICT)), "")
            told.append(f"{precision.label}: {said}" if said == NO_ARITHMETIC else said)
        if quantity and any(told):
            for launch in np.flatnonzero((quantity.values == 0) & (quantity.choice >= 0)):
                found[grouping.index[launch]][told[quantity.choice[launch]]] = None
    return ["; ".join(filter(None, one)) for one in found]


def _tensor_notes(m: Measurements, grouping: Grouping, spec: Spec) -> Any:
    """A warning where tensor cores worked but nobody counted what: the kernel's performance is then incomplete."""
    uncounted = uncounted_tensor(m, spec)
    active = grouping.mean(np.where(uncounted, m.tensor_active, np.nan), m.seconds).tolist()
    busy = [f" in {share:.0%} of the cycles" if math.isfinite(share) else "" for share in active]
    text = "tensor cores were busy{} but their operations were not collected: the work is incomplete"
    rows = grouping.total(uncounted.astype(np.float64)) > 0
    return [text.format(share) if row else "" for row, share in zip(rows, busy, strict=True)]


def kernel_traffic(m: Measurements, grouping: Grouping) -> dict[str, Any]:
    """Bytes by level id, one number per row of the kernels frame, also of kernels without work; NaN where unknown."""
    return {level: _sum_known(grouping, np.where(m.rates, np.nan, one.values)) for level, one in m.traffic.items()}


def kernel_work(m: Measurements, grouping: Grouping) -> dict[str, Any]:
    """Operations by precision id, one number per row of the kernels frame, zeros too; NaN where unknown."""
    return {precision: _sum_known(grouping, np.where(m.rates, np.nan, one.values)) for precision, one in m.work.items()}


def _sum_known(grouping: Grouping, values: Any) -> Any:
    known = grouping.total(np.isfinite(values).astype(np.float64)) > 0
    return np.where(known, grouping.total(np.nan_to_num(values)), np.nan)


class _Availability:
    """Which rows have which numbers, from any of their launches."""

    def __init__(self, m: Measurements, grouping: Grouping, spec: Spec, levels: tuple[str, ...], uncounted: Any) -> None:
        self._grouping = grouping
        capabilities = [tuple(m.capability[i]) for i in grouping.first]
        self._architectures = {capability: spec.read_as(capability) for capability in dict.fromkeys(capabilities)}
        self.capabilities = capabilities
        self.chip = np.array([self._architectures[capability] is not None for capability in capabilities], dtype=bool)
        self.time = self._known(m.seconds)
        self.foreign = (disbelieved(m)[grouping.first] != "") & ~self.time
        self.works = {name: self._known(quantity.values) for name, quantity in m.work.items()}
        self.traffics = {name: self._known(m.traffic[name].values) for name in levels if name in m.traffic}
        totals = [_sum_known(grouping, quantity.values) > 0 for quantity in m.work.values()]
        self.any_work = self._any(totals)
        self.uncounted = uncounted
        self.any_traffic = self._any(list(self.traffics.values()))
        nothing = np.zeros(grouping.count, dtype=bool)
        self.core = {name: self.works.get(name, nothing) for name in spec.core}
        self.inner = {name: self.traffics.get(name, nothing) for name in spec.chain if name in levels}

    def _known(self, values: Any) -> Any:
        return self._grouping.total(np.isfinite(values).astype(np.float64)) > 0

    def _any(self, masks: list[Any]) -> Any:
        return np.any([*masks, np.zeros(self._grouping.count, dtype=bool)], axis=0)

    def status(self) -> Any:
        """Why a row has points or none.  Zero in the precisions collected is zero work only if all of them were."""
        complete = np.all(list(self.core.values()), axis=0) & self.chip
        nothing = ~self.any_work
        reasons = {
            "foreign": self.foreign,
            "unknown-chip": ~self.chip & nothing,
            "no-time": ~self.time,
            "tensor-unknown": nothing & self.uncounted,
            "no-work-metrics": nothing & ~complete,
            "zero-flop": nothing,
            "no-traffic-metrics": ~self.any_traffic,
        }
        return np.select(list(reasons.values()), list(reasons), default="ok").astype(object)

    def missing(self) -> Any:
        """Core precisions and levels that no launch of a row has, for chips that could count them."""
        pattern = np.vstack([*self.core.values(), *self.inner.values()])
        names = [*self.core, *self.inner]
        texts: dict[Any, str] = {}
        result = np.empty(self._grouping.count, dtype=object)
        for row, (capability, known) in enumerate(zip(self.capabilities, pattern.T, strict=True)):
            key = (capability, known.tobytes(), self.foreign[row])
            if key not in texts:
                architecture = None if self.foreign[row] else self._architectures[capability]
                lacking = [name for name, has in zip(names, known, strict=True) if not has]
                # Of a chip that nobody knows, and of other tools' files, there is no telling what could be collected; what is
                # not believed was.
                texts[key] = " ".join(name for name in lacking if name not in architecture.lacks) if architecture else ""
            result[row] = texts[key]
        return result

    def caveats(self) -> Any:
        """What goes with every number of a chip whose counters are unproven."""
        chips = (self._architectures[capability] for capability in self.capabilities)
        return [chip.caveat if chip else "" for chip in chips]

    def zero_so_far(self) -> Any:
        """For rows whose collected precisions are all zero while others are missing: a sentence that says which."""
        some = np.any(list(self.core.values()), axis=0)
        rows = np.flatnonzero(~self.any_work & some)
        result = np.full(self._grouping.count, "", dtype=object)
        for row in rows:
            absent = [name for name, has in self.core.items() if not has[row]]
            if absent:
                present = [name for name, has in self.core.items() if has[row]]
                result[row] = f"no {', '.join(present)} work; {', '.join(absent)} not collected"
        return result
