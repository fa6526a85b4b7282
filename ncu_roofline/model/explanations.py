"""What a report can show, what it lacks, and the ncu command that would add it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ncu_roofline.clocks import clocks_text
from ncu_roofline.importers import MetricTable
from ncu_roofline.model.extract import UNKNOWN_CAPABILITY
from ncu_roofline.model.kernels import CORE_LEVELS, CORE_PRECISIONS
from ncu_roofline.model.measurements import Measurements, Quantity
from ncu_roofline.model.points import CLOCK_WARNING
from ncu_roofline.model.works import MIXED
from ncu_roofline.report import Report
from ncu_roofline.spec import Architecture, Level, Precision, load_spec
from ncu_roofline.spec.instruction import Kind

# The first release whose metric library knows operation counts of the tensor path (CUDA 12.3).
OPS_PATH_SINCE = (2023, 3)


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

    ``missing`` names precision and level ids that some launch lacks, ``partial`` those of which some traffic or work is not
    counted (loads only, say).  ``command`` adds ``added``, all of these that this release of ncu can collect; where it is
    empty, ``notes`` says why.
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

    @property
    def summary(self) -> str:
        """One sentence: what is missing; "" if nothing is."""
        if not self.missing:
            return ""
        return f"metrics for {', '.join(self.missing)} are missing in some or all of its {self.launches} launches."

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and the page."""
        return {**asdict(self), "text": self.summary}


@dataclass(frozen=True)
class _Wanted:
    """What a user wants to see, as far as one of the report's chips can count it."""

    chips: tuple[Architecture, ...]
    precisions: tuple[Precision, ...]
    levels: tuple[Level, ...]

    def metrics(self) -> tuple[str, ...]:
        """What ncu has to collect for all of it."""
        names = ([p.id for p in self.precisions], [level.id for level in self.levels])
        collected = (load_spec().collect(chip.compute_capability, *names) for chip in self.chips)
        return tuple(dict.fromkeys(name for one in collected for name in one))


def explain(
    report: Report | MetricTable,
    m: Measurements,
    precisions: Sequence[str] = CORE_PRECISIONS,
    levels: Sequence[str] = CORE_LEVELS,
    kernel: str = "",
) -> Explanation:
    """Explain a report from its measurements.

    ``precisions`` and ``levels`` are what the user wants to see; ``kernel`` is a regular expression the command line passes on.
    """
    capabilities = [one for one in dict.fromkeys(m.capability) if one != UNKNOWN_CAPABILITY]
    wanted = _wanted(capabilities, precisions, levels)
    have = [availability(p, m.work.get(p.id)) for p in wanted.precisions]
    reached = [availability(level, m.traffic.get(level.id)) for level in wanted.levels]
    missing = tuple(one.id for one in (*have, *reached) if one.launches < len(m))
    partial = tuple(one.id for one in (*have, *reached) if one.id not in missing and one.partial)
    clocks = clocks_text(report.ncu_version, report.session.clock_control)
    notes = _notes(m, capabilities, wanted, (*precisions, *levels), clocks)
    added = (*missing, *partial)
    metrics = wanted.metrics()
    if any("ops_path_tensor" in name for name in metrics) and _release(report.ncu_version) < OPS_PATH_SINCE:
        notes.append(f"tensor operation counts need Nsight Compute {_text(OPS_PATH_SINCE)} or later, not {report.ncu_version}")
        metrics = tuple(name for name in metrics if "ops_path_tensor" not in name)
        added = tuple(name for name in added if not name.startswith("tensor."))
    return Explanation(
        report=str(m.report[0]) if len(m) else str(report.path),
        ncu_version=report.ncu_version,
        devices=devices_of(m),
        launches=len(m),
        precisions=tuple(have),
        levels=tuple(reached),
        missing=missing,
        partial=partial,
        added=added,
        command=command_of(report, metrics, kernel) if added and wanted.chips else "",
        notes=tuple(notes),
    )


def _wanted(capabilities: Sequence[tuple[int, int]], precisions: Sequence[str], levels: Sequence[str]) -> _Wanted:
    spec = load_spec()
    chips = tuple(chip for one in capabilities if (chip := spec.read_as(one)))

    def counts(owner: Precision | Level) -> bool:
        return any(spec.bindings(owner, chip.compute_capability) and owner.id not in chip.lacks for chip in chips)

    return _Wanted(
        chips,
        tuple(p for p in spec.precisions if any(p.id == one or p.id.startswith(f"{one}.") for one in precisions) and counts(p)),
        tuple(level for level in spec.levels if level.id in levels and counts(level)),
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
    return tuple((str(device), f"{one[0]}.{one[1]}" if one != UNKNOWN_CAPABILITY else "") for device, one in pairs)


def _notes(
    m: Measurements, capabilities: Sequence[tuple[int, int]], wanted: _Wanted, asked: Sequence[str], clocks: str
) -> list[str]:
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
        chips = ", ".join(_text(one) for one in sorted(known))
        notes.append(f"compute capability {chips} has no counters for {', '.join(absent)}")
    ratios = m.clock / m.clock_max
    if np.isfinite(ratios).any() and np.nanmedian(ratios) < CLOCK_WARNING:
        notes.append(
            f"the SM clock was {np.nanmedian(ratios):.0%} of its maximum ({clocks}); "
            "roofs stand at the profiled clock, --clock max shows them at the maximum"
        )
    return notes


def chip_notes(capabilities: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on each chip that is not known, or whose counters are unproven."""
    read = [(one, load_spec().read_as(one)) for one in capabilities]
    texts = [
        chip.caveat if chip else "compute capability {}.{} is not known to this version".format(*one) for one, chip in read
    ]
    return [text for text in texts if text]


def _release(version: str) -> tuple[int, int]:
    """(year, number) of a release; one that is not known counts as new: nothing is left out on a guess."""
    words = version.split(".")
    return (
        (int(words[0]), int(words[1])) if len(words) > 1 and words[0].isdecimal() and words[1].isdecimal() else OPS_PATH_SINCE
    )


def _text(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


def command_of(report: Report | MetricTable, metrics: tuple[str, ...], kernel: str) -> str:
    """The ncu command line, quoted for a POSIX shell."""
    words = ["ncu", "--metrics", ",".join(metrics)]
    if kernel:
        words += ["--kernel-name", f"regex:{kernel}"]
    words += ["-o", PurePath(report.path).stem + "-roofline"]
    return shlex.join([*words, *(report.session.application or ("./app",))])
