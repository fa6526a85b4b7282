"""What ncu has to collect on the GPUs of a report, release by release, and the command line for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ncu_roofline.chips import Architecture, Level, Precision, load_spec
from ncu_roofline.chips.fields import LAST_RELEASE, Release, parse_release, release_text
from ncu_roofline.chips.metric_names import OPS_PATH_SINCE
from ncu_roofline.formats.inputs import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.opcodes import THREADS, WARPS

SOURCE_COUNTERS = ("--set", "full", "--import-source", "on")
"""What has ncu count by instruction, with what a roofline needs, and keep the source."""
TENSOR = "tensor"
"""What all tensor types together are called where one of them, but not which, is missing."""

# Counts per opcode: reports of 2019 have none.  Those of warp instructions (tensor cores) all releases that were looked at take
# after --metrics, those of threads 2022.3 and later; before, they come with the section only.
OPCODES_SINCE, THREADS_BY_NAME_SINCE = (2020, 1), (2022, 3)
OPCODES_SECTION = "SourceCounters"
# Instruction families whose work the counts per opcode don't tell (tcgen05: the shape is in a descriptor), or not for certain.
_NOT_BY_OPCODE = (".tcgen05", ".wgmma")
# Session settings of the graphical interface are names of its own; only what the command line knows is passed on.
_CLOCK_CONTROLS, _REPLAYS = ("base", "boost", "none"), ("kernel", "application", "range", "app-range")
# With a filter of one's own these would count other launches than they did.
_FILTERS = ("--kernel-name", "--kernel-name-base", "--kernel-regex", "--kernel-regex-base", "--kernel-id", "--launch-skip")


@dataclass(frozen=True)
class Wanted:
    """What a user wants to see, as far as one of the report's GPUs, (chip, product name) each, can count it."""

    gpus: tuple[tuple[Architecture, str], ...]
    precisions: tuple[Precision, ...]
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, m: Measurements, precisions: Sequence[str], levels: Sequence[str]) -> Wanted:
        """Of precision ids (or their first parts) and level ids; levels without counters of their own are estimated."""
        spec = load_spec()
        pairs = dict.fromkeys(zip(m.capability, m.device, strict=True))
        gpus = tuple((chip, str(device)) for one, device in pairs if (chip := spec.read_as(one)))
        named = [
            p for p in spec.precisions if any(p.id == precision or p.id.startswith(f"{precision}.") for precision in precisions)
        ]
        return cls(
            gpus,
            tuple(p for p in named if any(_counts(chip, p, device) for chip, device in gpus)),
            tuple(level for level in spec.levels if level.id in levels and any(_counts(chip, level) for chip, _ in gpus)),
        )

    @property
    def chips(self) -> tuple[Architecture, ...]:
        """Each once."""
        return tuple(dict.fromkeys(chip for chip, _ in self.gpus))

    def metrics(self, release: Release) -> tuple[str, ...]:
        """What ncu has to collect for all of it; counts per opcode where the release can't count tensor operations."""
        names = [name for chip, device in self.gpus for name in self._of_gpu(chip, device)]
        if release < OPS_PATH_SINCE and any(map(counts_tensor_operations, names)):
            opcodes = [WARPS] if release >= OPCODES_SINCE else []
            names = [name for name in names if not counts_tensor_operations(name)] + opcodes
        if any(not p.bindings for p in self.precisions):
            names.append(THREADS)
        return tuple(dict.fromkeys(names))

    def _of_gpu(self, chip: Architecture, device: str) -> tuple[str, ...]:
        precisions = [p.id for p in self.precisions if p.bindings and _counts(chip, p, device)]
        levels = [level.id for level in self.levels]
        return load_spec().collect(chip.compute_capability, precisions, levels, lacking=True)

    def estimated(self) -> tuple[str, ...]:
        """Ids of levels that no GPU of the report has counters of its own for: nothing better than an estimate can be had."""
        return tuple(level.id for level in self.levels if all(level.id in chip.lacks for chip in self.chips))


def _counts(chip: Architecture, owner: Precision | Level, device: str = "") -> bool:
    if isinstance(owner, Precision) and (rule := chip.board_rule(owner.id, device)) and owner.id in rule.absent:
        return False
    return not owner.bindings or bool(load_spec().bindings(owner, chip.compute_capability))  # none at all: by opcodes alone


def counts_tensor_operations(metric: str) -> bool:
    """Whether it is a counter that `OPS_PATH_SINCE` is about."""
    return "ops_path_tensor" in metric


def tensor_metrics(
    gpus: Sequence[tuple[Architecture, str]], release: Release, *, had_opcodes: bool = False
) -> tuple[tuple[str, ...], str]:
    """The cheapest metrics with which tensor operations of all types are known, and what to know of them.

    ``had_opcodes``: the report has counts per opcode, and they did not tell.
    """
    if release >= OPS_PATH_SINCE and (had_opcodes or _needs_counters(gpus)):
        types = [p for p in load_spec().precisions if p.kind == TENSOR and (not p.part_of or p.disjoint)]
        wanted = Wanted(tuple(gpus), tuple(p for p in types if any(_counts(chip, p, device) for chip, device in gpus)), ())
        passes = max(chip.tensor_passes for chip, _ in gpus)
        cost = f" ({passes} passes more; fewer with --precision and one type)" if passes else ""
        return wanted.metrics(release), f"the command adds the counters of every tensor type{cost}"
    if release >= OPCODES_SINCE and not had_opcodes:
        return (WARPS,), f"the command adds {opcodes_note()}"
    needed = release_text(OPS_PATH_SINCE if had_opcodes else OPCODES_SINCE)
    return (), f"counters that tell them need Nsight Compute {needed} or later"


def _needs_counters(gpus: Iterable[tuple[Architecture, str]]) -> bool:
    """Whether one of the chips has instructions whose work the counts per opcode don't tell."""
    families = [p for p in load_spec().precisions if p.id.endswith(_NOT_BY_OPCODE)]
    return any(_counts(chip, p) for chip, _ in gpus for p in families)


def opcodes_note() -> str:
    """What the counts per opcode are and cost."""
    return f"the counts per opcode that tell them ({WARPS}, also in --section {OPCODES_SECTION}), one or two passes more"


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
    words = ["ncu", *(collect or by_name)]
    words += ["--section", OPCODES_SECTION] if by_section else []
    if kernel:
        words += ["--kernel-name", f"regex:{kernel}"]
    words += ["-o", _export_name(PurePath(report.path).stem)]
    replaced = (*collect, *(_FILTERS if kernel else ()), *(("--replay-mode",) if mixed else ()))
    kept = [option for option in recorded.options if not option.replaced and option.name not in replaced]
    words += [word for option in kept for word in option.words]
    names = {option.name for option in kept}
    for name, value, known in (
        ("--clock-control", report.session.clock_control.lower(), _CLOCK_CONTROLS),
        ("--replay-mode", "" if mixed else report.session.replay.lower(), _REPLAYS),
    ):
        if name not in names and value in known and not recorded.options:
            words += [name, value]
    attached = any(option.name == "--mode" and option.value == "attach" for option in kept)
    return shlex.join([*words, *(recorded.application or (() if attached else ("./app",)))])


def _export_name(stem: str) -> str:
    """A name for -o: ncu puts ids and variables in place of %p, %q{} and others, and takes a dash for an option."""
    return f"{stem}-roofline".replace("%", "_").lstrip("-")
