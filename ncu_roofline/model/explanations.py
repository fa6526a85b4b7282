"""What a report can show, what it lacks, and the ncu command that would add it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.chips import Level, Precision, load_spec
from ncu_roofline.chips.clocks import clocks_text
from ncu_roofline.chips.fields import LAST_RELEASE, Release, capability_text, release_text
from ncu_roofline.chips.instruction import Kind
from ncu_roofline.chips.metric_names import OPS_PATH_SINCE
from ncu_roofline.chips.sets import SectionSet, load_sets
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.inputs import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.sectionfile import parse_section
from ncu_roofline.model.collecting import (
    TENSOR,
    Wanted,
    command_of,
    counts_tensor_operations,
    opcodes_note,
    release_of,
    tensor_metrics,
)
from ncu_roofline.model.extract import UNKNOWN_CAPABILITY
from ncu_roofline.model.foreign import disbelieved, told
from ncu_roofline.model.measurements import Measurements, Quantity
from ncu_roofline.model.opcodes import WARPS
from ncu_roofline.model.plausible import left_out
from ncu_roofline.model.utilisation import uncounted_tensor
from ncu_roofline.model.work import MIXED

# Answers about cost and completeness: a set that only counts opcodes lacks time, the basic one all counts.
_OFFERED = ("roofline", "detailed", "full")


@dataclass(frozen=True)
class UsedSets:
    """The set that a report was made with and what that gives, and the cheapest set that gives most of what is missing.

    "" where the report was not made with a stock set, or its release is unknown; ``other`` is "" too where nothing is missing
    or no set gives more.
    """

    made_with: str = ""
    gives: str = ""
    other: str = ""
    other_gives: str = ""

    @property
    def sentence(self) -> str:
        """Both in one sentence, "" where neither is known."""
        made = f"the report was made with --set {self.made_with}: {self.gives}" if self.made_with else ""
        other = f"a command with --set {self.other} would give {self.other_gives}" if self.other else ""
        return "; ".join(part for part in (made, other) if part)


def sets_of(report: Report | MetricTable, m: Measurements, missing: Sequence[str]) -> UsedSets:
    """The sets of a report whose launches ``m`` lack the precisions and levels ``missing``."""
    release = release_of(report.ncu_version)
    if release == LAST_RELEASE or not len(m) or isinstance(report, MetricTable):
        return UsedSets()
    sections = report.kernels[int(m.launch[0])].sections
    made = load_sets().made(release, filter(None, map(_identifier, sections)))
    offered = [one for one in load_sets().of(release) if one.name in _OFFERED and one is not made]
    best = max(offered, key=lambda one: _given(one, missing), default=None)
    if best is None or _given(best, missing) <= (_given(made, missing) if made else 0):
        best = None
    return UsedSets(
        made.name if made else "", made.gives if made else "", best.name if best else "", best.gives if best else ""
    )


def _given(one: SectionSet, missing: Sequence[str]) -> int:
    """How much of what is missing a set holds."""
    return sum(name in one.traffic or name.partition(".")[0] in one.work or _by_opcodes(one, name) for name in missing)


def _by_opcodes(one: SectionSet, name: str) -> bool:
    return one.opcodes and name.partition(".")[0] in load_spec().sections


def _identifier(data: bytes) -> str:
    try:
        return parse_section(data).identifier
    except ValueError:
        return ""


@dataclass(frozen=True)
class Availability:
    """Of one precision or level: how many launches have it, and by which way."""

    id: str
    label: str
    launches: int
    source: str
    metrics: str
    notes: str

    @property
    def partial(self) -> bool:
        """Whether something is left out of the count."""
        return "embedded" in self.source.split() or "lower bound" in self.notes


@dataclass(frozen=True)
class Explanation:
    """One report: what it holds for a roofline and how to collect the rest.

    ``precisions``: what was asked for, and of those that are drawn on request what was counted all the same.
    ``missing`` names precision and level ids that some launch lacks, ``partial`` those of which some traffic or work is not
    counted (loads only, say).  ``command`` adds ``added``, all of these that this release of ncu can collect; where it is
    empty, ``notes`` says why.  ``sets`` says with which section set the report was made, and which other holds more.
    """

    report: str
    ncu_version: str
    devices: tuple[tuple[str, str], ...]
    launches: int
    precisions: tuple[Availability, ...]
    levels: tuple[Availability, ...]
    missing: tuple[str, ...]
    partial: tuple[str, ...]
    added: tuple[str, ...]
    command: str
    notes: tuple[str, ...]
    sets: UsedSets = field(default_factory=UsedSets)

    @property
    def summary(self) -> str:
        """One sentence: what is missing; "" if nothing is."""
        if not self.missing:
            return ""
        where = "its launch" if self.launches == 1 else f"some or all of its {self.launches} launches"
        return f"metrics for {', '.join(self.labels(self.missing))} are missing in {where}."

    def labels(self, names: Sequence[str]) -> list[str]:
        """What the precisions and levels of these ids are called."""
        called = {row.id: row.label for row in (*self.precisions, *self.levels)}
        return [called.get(name) or label_of(name) for name in names]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and the page."""
        return {**asdict(self), "text": self.summary}


def label_of(name: str) -> str:
    """What the precision or level of an id is called, "tensor" all types of the tensor cores; what is no id stays as it is."""
    spec = load_spec()
    called = {TENSOR: "Tensor", MIXED: "All pipes"}
    called |= {precision.id: precision.label for precision in spec.precisions}
    called |= {level.id: level.label for level in spec.levels}
    return called.get(name, name)


def explain(
    report: Report | MetricTable,
    m: Measurements,
    precisions: Sequence[str] = (),
    levels: Sequence[str] = (),
    kernel: str = "",
) -> Explanation:
    """Explain a report from its measurements.

    ``precisions`` and ``levels`` are what the user wants to see, () for those of every report; ``kernel`` is a regular
    expression the command line passes on.
    Where all core precisions are wanted, so are the tensor operations of launches that used tensor cores.
    """
    release, spec = release_of(report.ncu_version), load_spec()
    unasked = [] if precisions else [p for p in spec.precisions if p.id in spec.on_request and _works(m.work.get(p.id))]
    precisions, levels = precisions or spec.core, levels or spec.chain
    wanted = Wanted.of(m, precisions, levels)
    own = int((disbelieved(m) == "").sum())  # of the other launches nothing is missing
    have = [availability(p, m.work.get(p.id)) for p in wanted.precisions if own]
    reached = [availability(level, m.traffic.get(level.id)) for level in wanted.levels if own]
    missing = tuple(one.id for one in (*have, *reached) if one.launches < own)
    final = {*missing, *wanted.estimated()}
    partial = tuple(one.id for one in (*have, *reached) if one.id not in final and one.partial)
    clocks = clocks_text(report.ncu_version, report.session.clock_control)
    notes = [*told(m), *left_out(m), *_notes(m, wanted, (*precisions, *levels), clocks)]
    metrics, added, more = _collected(wanted, (*missing, *partial), release, report.ncu_version)
    notes += more
    uncounted = uncounted_tensor(m, spec)
    if set(spec.core) <= set(precisions) and uncounted.any():
        missing, tensor, note = (*missing, TENSOR), *_tensor(wanted, m, uncounted, release)
        metrics, added = (*metrics, *tensor), (*added, TENSOR) if tensor else added
        notes.append(note)
    return Explanation(
        report=str(m.report[0]) if len(m) else str(report.path),
        ncu_version=report.ncu_version,
        devices=devices_of(m),
        launches=len(m),
        precisions=(*have, *(availability(p, m.work.get(p.id)) for p in unasked)),
        levels=tuple(reached),
        missing=missing,
        partial=partial,
        added=added,
        command=command_of(report, tuple(dict.fromkeys(metrics)), kernel, mixed=own < len(m)) if added and wanted.gpus else "",
        notes=tuple(notes),
        sets=sets_of(report, m, missing),
    )


def _works(quantity: Quantity | None) -> bool:
    """Whether some launch is known to do work."""
    return quantity is not None and bool((quantity.values > 0).any())


def _collected(
    wanted: Wanted, added: tuple[str, ...], release: Release, version: str
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Metrics to collect, the ids that they add, and notes on what the release can't collect."""
    metrics = wanted.metrics(release)
    lacking = any(name.startswith(f"{TENSOR}.") for name in added)
    if not lacking or not any(map(counts_tensor_operations, wanted.metrics(LAST_RELEASE))) or release >= OPS_PATH_SINCE:
        return metrics, added, []
    text = f"tensor operation counts need Nsight Compute {release_text(OPS_PATH_SINCE)} or later, not {version}"
    if WARPS in metrics:
        return metrics, added, [f"{text}; the command adds {opcodes_note()}"]
    return metrics, tuple(name for name in added if not name.startswith("tensor.")), [text]


def _tensor(wanted: Wanted, m: Measurements, uncounted: NDArray[np.bool_], release: Release) -> tuple[tuple[str, ...], str]:
    """Metrics for the tensor work of these launches, and a note."""
    metrics, text = tensor_metrics(wanted.gpus, release, had_opcodes=bool(m.tensor_gaps[uncounted].all()))
    active = m.tensor_active[uncounted]
    busy = f", up to {np.nanmax(active):.0%} of the cycles" if np.isfinite(active).any() else ""
    return metrics, (
        f"the tensor pipe was active in {int(uncounted.sum())} of {len(m)} launches{busy}, "
        f"and its operations were not counted; {text}"
    )


def availability(owner: Precision | Level | Kind, quantity: Quantity | None) -> Availability:
    """How many launches have it, and by which way."""
    if quantity is None:
        return Availability(owner.id, owner.label, 0, "", "", "")
    known = np.isfinite(quantity.values)
    used = [quantity.origins[i] for i in np.unique(quantity.choice[known])]
    return Availability(
        id=owner.id,
        label=owner.label,
        launches=int(known.sum()),
        source=" ".join(dict.fromkeys(origin.source for origin in used)),
        metrics="; ".join(origin.metrics for origin in used),
        notes="; ".join(dict.fromkeys(origin.note for origin in used if origin.note)),
    )


def devices_of(m: Measurements) -> tuple[tuple[str, str], ...]:
    """(name, compute capability as text, "" where unknown) of each GPU model."""
    pairs = dict.fromkeys(zip(m.device, m.capability, strict=True))
    return tuple((str(device), capability_text(one)) for device, one in pairs)


def _notes(m: Measurements, wanted: Wanted, asked: Sequence[str], clocks: str) -> list[str]:
    capabilities = [one for one in dict.fromkeys(m.capability) if one != UNKNOWN_CAPABILITY]
    notes = []
    if not len(m):
        notes.append("no launch to look at")
    elif not capabilities:
        notes.append("the report does not say which GPU it was made on, so no counter can be chosen")
    known = {chip.compute_capability for chip in wanted.chips}
    notes += chip_notes(capabilities)
    found = [precision.id for precision in wanted.precisions] + [level.id for level in wanted.levels]
    absent = [one for one in asked if one != MIXED and not any(f"{name}.".startswith(f"{one}.") for name in found)]
    if absent and wanted.chips:
        chips = ", ".join(map(capability_text, sorted(known)))
        notes.append(f"compute capability {chips} has no counters for {', '.join(map(label_of, absent))}{_boards(wanted)}")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = m.clock / m.clock_max
    if np.isfinite(ratios).any() and np.nanmedian(ratios) < CLOCK_WARNING:
        notes.append(
            f"the SM clock was {np.nanmedian(ratios):.0%} of its maximum ({clocks}); "
            "roofs stand at the profiled clock, --clock max shows them at the maximum"
        )
    return notes


def chip_notes(capabilities: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on each chip that is not known, or whose counters are unproven."""
    read = [(capability, load_spec().read_as(capability)) for capability in capabilities]
    texts = [
        chip.caveat if chip else f"compute capability {capability_text(one)} is not known to this version" for one, chip in read
    ]
    return [text for text in texts if text]


def _boards(wanted: Wanted) -> str:
    """What the data files say of GPUs that lack something of their chip's family."""
    rules = [rule for chip, device in wanted.gpus for rule in chip.boards if rule.absent and rule.applies(device)]
    return "".join(f" ({note})" for note in dict.fromkeys(rule.note for rule in rules))
