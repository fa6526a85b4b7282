"""What a report can show, what it lacks, and the ncu command that would add it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ncu_roofline.base.texts import conjoined, plural
from ncu_roofline.chips import Architecture, Level, Precision, load_spec
from ncu_roofline.chips.fields import LAST_RELEASE, Release, capability_text, parse_release, release_text
from ncu_roofline.chips.formulas import board_rule
from ncu_roofline.chips.ncu import OPS_PATH_SINCE, clocks_text
from ncu_roofline.chips.tables import Kind
from ncu_roofline.chips.verdict import CLOCK_WARNING, as_percent
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model.extract import UNKNOWN_CAPABILITY
from ncu_roofline.model.measurements import Columns, Measurements, Quantity
from ncu_roofline.model.plausible import disbelieved, left_out, told
from ncu_roofline.model.work import MIXED, SOURCES, THREADS, WARPS, uncounted_tensor

Gpus = Sequence[tuple[Architecture, str]]  # chip and product name
SOURCE_COUNTERS = ("--set", "full", "--import-source", "on")
"""What has ncu count by instruction, with what a roofline needs, and keep the source."""
TENSOR = "tensor"
"""What all tensor types together are called where one of them, but not which, is missing."""

_SETS = ("made_with", "gives", "other", "other_gives")
# Answers about cost and completeness: a set that only counts opcodes lacks time, the basic one all counts.
_OFFERED = ("roofline", "detailed", "full")
# Counts per opcode: reports of 2019 have none.  Those of warp instructions (tensor cores) all releases that were looked at take
# after --metrics, those of threads 2022.3 and later; before, they come with the section only.
OPCODES_SINCE, THREADS_BY_NAME_SINCE = (2020, 1), (2022, 3)
OPCODES_SECTION = "SourceCounters"
_OPCODES_NOTE = f"the counts per opcode that give them ({WARPS}, also in --section {OPCODES_SECTION}), one or two passes more"
# Instruction families whose work the counts per opcode don't tell (tcgen05: the shape is in a descriptor), or not for certain.
_NOT_BY_OPCODE = (".tcgen05", ".wgmma")
# Session settings of the graphical interface are names of its own; only what the command line knows is passed on.
_CLOCK_CONTROLS, _REPLAYS = ("base", "boost", "none"), ("kernel", "application", "range", "app-range")
# With a filter of one's own these would count other launches than they did.
_FILTERS = ("--kernel-name", "--kernel-name-base", "--kernel-regex", "--kernel-regex-base", "--kernel-id", "--launch-skip")


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
        return "embedded" in self.source.split() or "lower bound" in self.notes

    @property
    def origin(self) -> str:
        """What it was counted from, and what must be known of that."""
        told = [SOURCES.get(source, source) for source in self.source.split()]
        return "; ".join(filter(None, (conjoined(told), self.notes)))


@dataclass(frozen=True)
class Explanation:
    """One report: what it holds for a roofline and how to collect the rest.

    ``precisions``: what was asked for, and of those that are drawn on request what was counted all the same.
    ``missing`` names precision and level ids that some launch lacks, ``partial`` those of which some traffic or work is not
    counted (loads only, say).  ``command`` adds ``added``, all of these that this release of ncu can collect; where it is
    empty, ``notes`` says why.  ``sets`` says with which section set of ncu the report was made ("made_with") and what that
    "gives", and the "other" that gives most of what is missing; "" where it was no stock set or the release is not known, for
    ``other`` also where nothing is missing or no set gives more.
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
    sets: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(_SETS, ""))

    def heading(self, report: str) -> str:
        devices = ", ".join(f"{name} ({capability or 'unknown capability'})" for name, capability in self.devices)
        version = self.ncu_version or "of unknown release"
        return f"{report}: {plural(self.launches, 'launch')}, {devices or 'no GPU named'}, Nsight Compute {version}"

    @property
    def of_sets(self) -> str:
        made, gives, other, more = self.sets.values()
        made = f"the report was made with --set {made}: {gives}" if made else ""
        return "; ".join(filter(None, (made, f"a command with --set {other} would give {more}" if other else "")))

    @property
    def summary(self) -> str:
        """One sentence: what is missing; "" if nothing is."""
        where = "its launch" if self.launches == 1 else f"some or all of its {self.launches} launches"
        return f"metrics for {', '.join(self.labels(self.missing))} are missing in {where}." if self.missing else ""

    def labels(self, names: Sequence[str]) -> list[str]:
        """What the precisions and levels of these ids are called, "tensor" all types of the tensor cores."""
        called = _labels() | {one.id: one.label for one in (*self.precisions, *self.levels)}
        return [called.get(name, name) for name in names]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "text": self.summary}


def _labels() -> dict[str, str]:
    owners: list[Precision | Level] = [*load_spec().precisions, *load_spec().levels]
    return {TENSOR: "Tensor", MIXED: "All pipes"} | {one.id: one.label for one in owners}


def metrics_for(gpus: Gpus, precisions: Sequence[Precision], levels: Sequence[Level], release: Release) -> tuple[str, ...]:
    """What ncu has to collect for these; counts per opcode where the release can't count tensor operations."""
    names: list[str] = []
    for chip, device in gpus:
        counted = [p.id for p in precisions if p.bindings and _counts(chip, p, device)]
        names += load_spec().collect(chip.compute_capability, counted, [level.id for level in levels], lacking=True)
    if release < OPS_PATH_SINCE and any(map(counts_tensor_operations, names)):
        opcodes = [WARPS] if release >= OPCODES_SINCE else []
        names = [name for name in names if not counts_tensor_operations(name)] + opcodes
    return tuple(dict.fromkeys([*names, *(THREADS for p in precisions if not p.bindings)]))


def _counts(chip: Architecture, owner: Precision | Level, device: str = "") -> bool:
    if isinstance(owner, Precision) and (rule := board_rule(chip.boards, owner.id, device)) and owner.id in rule.absent:
        return False
    return not owner.bindings or bool(load_spec().bindings(owner, chip.compute_capability))  # none at all: by opcodes alone


def explain(
    report: Report | MetricTable, m: Measurements, precisions: Sequence[str] = (), levels: Sequence[str] = (), kernel: str = ""
) -> Explanation:
    """Explain a report from its measurements.

    ``precisions`` (ids or their first parts) and ``levels`` are what the user wants to see, () for those of every report;
    ``kernel`` is a regular expression the command line passes on.
    Where all core precisions are wanted, so are the tensor operations of launches that used tensor cores.
    """
    release, spec = release_of(report.ncu_version), load_spec()
    worked = {name for name, quantity in m.work.items() if (quantity.values > 0).any()}
    unasked = [] if precisions else [p for p in spec.precisions if p.id in spec.on_request and p.id in worked]
    precisions, levels = precisions or spec.core, levels or spec.chain
    gpus = tuple((chip, str(device)) for device, one in m.gpus if (chip := spec.read_as(one)))
    named = [p for p in spec.precisions if any(p.id == one or p.id.startswith(f"{one}.") for one in precisions)]
    # What is wanted, as far as one of the report's GPUs can count it.
    kinds = [p for p in named if any(_counts(chip, p, device) for chip, device in gpus)]
    places = [level for level in spec.levels if level.id in levels and any(_counts(chip, level) for chip, _ in gpus)]
    own = int((disbelieved(m) == "").sum())  # of the other launches nothing is missing
    have = [availability(p, m.work.get(p.id)) for p in kinds if own]
    reached = [availability(level, m.traffic.get(level.id)) for level in places if own]
    missing = tuple(one.id for one in (*have, *reached) if one.launches < own)
    # Of levels that no GPU of the report has counters of its own for nothing better than an estimate can be had.
    final = {*missing, *(level.id for level in places if all(level.id in chip.lacks for chip, _ in gpus))}
    partial = tuple(one.id for one in (*have, *reached) if one.id not in final and one.partial)
    notes = [*told(m), *left_out(m)]
    capabilities = [one for one in dict.fromkeys(m.capability) if one != UNKNOWN_CAPABILITY]
    if not len(m):
        notes.append("no launch to explain")
    elif not capabilities:
        notes.append("the report does not name its GPU, so no counter can be chosen")
    notes += chip_notes(capabilities)
    counted = [*(p.id for p in kinds), *(level.id for level in places)]
    asked = [one for one in (*precisions, *levels) if one != MIXED]
    absent = [one for one in asked if not any(f"{name}.".startswith(f"{one}.") for name in counted)]
    if absent and gpus:
        chips = ", ".join(map(capability_text, sorted({chip.compute_capability for chip, _ in gpus})))
        # What the data files say of GPUs that lack something of their chip's family.
        lacking = [(rule, device) for chip, device in gpus for rule in chip.boards if rule.absent]
        rules = [rule for rule, device in lacking if any(name in device for name in rule.names)]
        boards = "".join(f" ({note})" for note in dict.fromkeys(rule.note for rule in rules))
        names = ", ".join(_labels().get(one, one) for one in absent)
        notes.append(f"compute capability {chips} has no counters for {names}{boards}")
    ratio = Columns.middle(Columns.divided(m.clock, m.clock_max))
    if ratio < CLOCK_WARNING:
        clocks = clocks_text(report.ncu_version, report.session.clock_control)
        stand = "roofs stand at the profiled clock, --clock max shows them at the maximum"
        notes.append(f"the SM clock was {as_percent(ratio)} of its maximum ({clocks}); {stand}")
    metrics, added = metrics_for(gpus, kinds, places, release), (*missing, *partial)
    tensor = [name for name in added if name.startswith(f"{TENSOR}.")]
    if (
        tensor
        and release < OPS_PATH_SINCE
        and any(map(counts_tensor_operations, metrics_for(gpus, kinds, places, LAST_RELEASE)))
    ):
        since = f"tensor operation counts need Nsight Compute {release_text(OPS_PATH_SINCE)} or later, not {report.ncu_version}"
        added = added if WARPS in metrics else tuple(name for name in added if name not in tensor)
        notes.append(f"{since}; the command adds {_OPCODES_NOTE}" if WARPS in metrics else since)
    uncounted = uncounted_tensor(m, spec)
    if set(spec.core) <= set(precisions) and uncounted.any():
        more, how = tensor_metrics(gpus, release, had_opcodes=bool(m.tensor_gaps[uncounted].all()))
        active = m.tensor_active[uncounted]
        busy = f", up to {as_percent(np.nanmax(active))} of the cycles" if np.isfinite(active).any() else ""
        where = f"{int(uncounted.sum())} of {plural(len(m), 'launch')}{busy}"
        notes.append(f"the tensor pipe was active in {where}, and its FLOPs were not collected; {how}")
        missing, metrics, added = (*missing, TENSOR), (*metrics, *more), (*added, TENSOR) if more else added
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
        command=command_of(report, tuple(dict.fromkeys(metrics)), kernel, mixed=own < len(m)) if added and gpus else "",
        notes=tuple(notes),
        sets=_sets_of(report, m, missing),
    )


def availability(owner: Precision | Level | Kind, quantity: Quantity | None) -> Availability:
    if quantity is None:
        return Availability(owner.id, owner.label, 0, "", "", "")
    known = np.isfinite(quantity.values)
    used = [quantity.origins[i] for i in sorted(set(quantity.choice[known].tolist()))]  # np.unique imports numpy.ma
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
    return tuple((str(device), capability_text(one)) for device, one in m.gpus)


def chip_notes(capabilities: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on each chip that is not known, or whose counters are unproven."""
    read = [(capability, load_spec().read_as(capability)) for capability in capabilities]
    unknown = "compute capability {} is not known to this version"
    return [text for one, chip in read if (text := chip.caveat if chip else unknown.format(capability_text(one)))]


def _sets_of(report: Report | MetricTable, m: Measurements, missing: Sequence[str]) -> dict[str, str]:
    """The sets of a report whose launches ``m`` lack the precisions and levels ``missing``."""
    release = release_of(report.ncu_version)
    if release == LAST_RELEASE or not len(m) or isinstance(report, MetricTable):
        return dict.fromkeys(_SETS, "")
    from ncu_roofline.chips.tables import SectionSet, load_sets
    from ncu_roofline.model.embedded import section_of

    def given(one: SectionSet | None) -> int:  # how much of what is missing
        held = {*one.work, *(load_spec().sections if one.opcodes else ())} if one else set()
        return sum(one is not None and (name in one.traffic or name.partition(".")[0] in held) for name in missing)

    sections = map(section_of, report.kernels[int(m.launch[0])].sections)
    made = load_sets().made(release, [one.identifier for one in sections if one and one.identifier])
    offered = [one for one in load_sets().of(release) if one.name in _OFFERED and one is not made]
    best = max(offered, key=given, default=None)
    own = (made.name, made.gives) if made else ("", "")
    other = (best.name, best.gives) if best and given(best) > given(made) else ("", "")
    return dict(zip(_SETS, (*own, *other), strict=True))


def counts_tensor_operations(metric: str) -> bool:
    return "ops_path_tensor" in metric


def tensor_metrics(gpus: Gpus, release: Release, *, had_opcodes: bool = False) -> tuple[tuple[str, ...], str]:
    """The cheapest metrics with which tensor operations of all types are known, and what to know of them.

    ``had_opcodes``: the report has counts per opcode, and they did not tell.
    """
    # Instructions whose work the counts per opcode don't tell.
    families = [p for p in load_spec().precisions if p.id.endswith(_NOT_BY_OPCODE)]
    if release >= OPS_PATH_SINCE and (had_opcodes or any(_counts(chip, p) for chip, _ in gpus for p in families)):
        types = [p for p in load_spec().precisions if p.kind == TENSOR and (not p.part_of or p.disjoint)]
        counted = [p for p in types if any(_counts(chip, p, device) for chip, device in gpus)]
        passes = max(chip.tensor_passes for chip, _ in gpus)
        cost = f" ({passes} passes more; fewer with --precision and one type)" if passes else ""
        return metrics_for(gpus, counted, (), release), f"the command adds the counters of every tensor type{cost}"
    if release >= OPCODES_SINCE and not had_opcodes:
        return (WARPS,), f"the command adds {_OPCODES_NOTE}"
    needed = release_text(OPS_PATH_SINCE if had_opcodes else OPCODES_SINCE)
    return (), f"counters of them need Nsight Compute {needed} or later"


def release_of(version: str) -> Release:
    """(year, number) of a release; one that is not known counts as new: nothing is left out on a guess."""
    return parse_release(version) or LAST_RELEASE


def command_of(
    report: Report | MetricTable, metrics: tuple[str, ...], kernel: str, *, collect: tuple[str, ...] = (), mixed: bool = False
) -> str:
    """The ncu command line, quoted for a POSIX shell, with the user's own options; ``kernel`` replaces their filter.

    ``collect`` are words that say what is collected in the place of ``metrics``; ``mixed``: the report's way of
    replay mixed kernels up and is left out, as ncu's own does not.
    Own options come last: then the line is right even where one that this version does not know has no value after all.
    """
    recorded = report.session.command
    by_section = THREADS in metrics and release_of(report.ncu_version) < THREADS_BY_NAME_SINCE
    by_name = ("--metrics", ",".join(name for name in metrics if name != THREADS or not by_section))
    words = ["ncu", *(collect or by_name), *(["--section", OPCODES_SECTION] if by_section else [])]
    if kernel:
        words += ["--kernel-name", f"regex:{kernel}"]
    # ncu puts ids and variables in place of %p, %q{} and others, and takes a dash for an option.
    words += ["-o", f"{PurePath(report.path).stem}-roofline".replace("%", "_").lstrip("-")]
    replaced = (*collect, *(_FILTERS if kernel else ()), *(("--replay-mode",) if mixed else ()))
    kept = [option for option in recorded.options if not option.replaced and option.name not in replaced]
    words += [word for option in kept for word in option.words]
    # Settings that the report tells without its command line.
    replay = "" if mixed else report.session.replay
    settings = (("--clock-control", report.session.clock_control, _CLOCK_CONTROLS), ("--replay-mode", replay, _REPLAYS))
    for name, value, known in settings:
        if value.lower() in known and not recorded.options:
            words += [name, value.lower()]
    attached = any(option.name == "--mode" and option.value == "attach" for option in kept)
    return shlex.join([*words, *(recorded.application or (() if attached else ("./app",)))])
