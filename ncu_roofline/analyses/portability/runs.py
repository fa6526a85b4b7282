"""Runs: one application on one platform, from reports, other tools' files and rows of plain tables, with measured ceilings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ncu_roofline.base.errors import RooflineError, unexpected
from ncu_roofline.base.texts import expression, first_found
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.formulas import INSTEAD, why_not
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, Ceiling, Ceilings
from ncu_roofline.formats.inputs import open_ceilings, recognised
from ncu_roofline.formats.inputs.plain_table import FORMAT as PLAIN
from ncu_roofline.formats.inputs.plain_table import PlainRow, PlainTable, plain_rows, read_rows
from ncu_roofline.formats.inputs.tables import ANY_PRECISION
from ncu_roofline.model import Roofline, Selection, as_trajectory, closing_input, measurements_of, roofline
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.plausible import left_out
from ncu_roofline.model.roofline import as_percent
from ncu_roofline.rendering.frames import records

if TYPE_CHECKING:
    import pandas as pd

MIXED = "mixed"
_KEY = ("report", "launch", "kernel", "device", "label")
Path = str | PathLike[str]
Find = Callable[[str, tuple[int, int] | None], Ceilings | None]
Row = dict[str, Any]


class PlatformRoof(NamedTuple):
    """A roof in SI units, and whether it is measured, published, theoretical or stated (by a table, as what is attainable)."""

    value: float
    origin: str


@dataclass(frozen=True)
class PlatformRun:
    """Executed operations of one precision per second, intensity by level, roofs by ceiling (fma, nofma, ...) and by level.

    ``work`` (operations), ``canonical`` (operations on paper) and ``seconds`` are NaN where unknown, and so is a stated
    ``attainable`` (operations per second).  ``supported`` is yes, no, not run, missing or unread.  ``coverage``: share of the
    time of its launches that the numbers stand for; the others lack metrics.
    """

    platform: str
    application: str
    variant: str
    source: str
    device: str = ""
    precision: str = ANY_PRECISION
    supported: str = "yes"
    performance: float = math.nan
    work: float = math.nan
    canonical: float = math.nan
    seconds: float = math.nan
    attainable: float = math.nan
    fma_share: float = math.nan
    intensity: Mapping[str, float] = field(default_factory=dict)
    compute: Mapping[str, PlatformRoof] = field(default_factory=dict)
    bandwidth: Mapping[str, PlatformRoof] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    coverage: float = 1.0

    @property
    def unit(self) -> str:
        """What its work counts: op for integers, else flop."""
        return next((one.unit for one in load_spec().precisions if one.id == self.precision), "flop")

    @property
    def about(self) -> str:
        """Which run it is, for messages."""
        return " ".join(filter(None, (self.platform, self.variant)))

    def cannot(self, reason: str, next_step: str) -> RooflineError:
        """The error of a run that can't be compared."""
        return RooflineError("Cannot compare", self.source, reason, next_step)


@dataclass(frozen=True)
class Platform:
    """A file with runs; ``platform`` is what its machine is called, "" for what the file says."""

    path: str
    platform: str = ""


@dataclass(frozen=True)
class Reading:
    """How files become runs: ``by`` application or kernel; ``label`` as of `as_trajectory` names the variants of reports."""

    precision: str = ""
    by: str = "application"
    label: str = ""
    clock: str = "profiled"
    application: str = ""
    select: Selection = field(default_factory=Selection)


def read_runs(
    inputs: Sequence[Platform | Path],
    ceilings: Mapping[str, Ceilings | Path] | Sequence[Ceilings | Path] = (),
    reading: Reading | None = None,
    find: Find | None = None,
    leave_out: Callable[[RooflineError], None] | None = None,
) -> tuple[list[PlatformRun], list[str]]:
    """The runs of all inputs, and sentences on what was left out.

    ``ceilings`` maps platforms to the file measured on each; a plain list is matched by the GPU that each file names.
    ``find`` is asked for the ceilings of GPUs (name, and compute capability where known) that none of them is of.
    ``leave_out`` is given the error of each input that can't be read, of whatever type, and the others are done; then ceilings
    may fit no platform.  Raises RooflineError for files that can't be read without it, and for ceilings that fit no platform,
    or that could be of any.
    """
    how, machines = reading or Reading(), _Machines(ceilings, find)
    runs: list[PlatformRun] = []
    warnings: dict[str, None] = {}
    complete = True
    for source in (one if isinstance(one, Platform) else Platform(os.fspath(one)) for one in inputs):
        try:
            more, told = _read(source, machines, how)
        except Exception as error:
            if leave_out is None:
                raise
            leave_out(error if isinstance(error, RooflineError) else unexpected("Cannot read", source.path, error))
            complete = False
            continue
        runs += more
        warnings |= dict.fromkeys(told)
    machines.check(list(dict.fromkeys(run.platform for run in runs)), complete)
    return [replace(run, application=run.application or how.application) for run in runs], list(warnings)


def _read(source: Platform, machines: _Machines, how: Reading) -> tuple[list[PlatformRun], list[str]]:
    kind = recognised(source.path)
    if kind is None or kind.id != PLAIN:
        return _read_report(source, machines, how)
    table = read_rows(source.path)
    platforms = {row.platform for row in table.rows}
    if source.platform and len(platforms) > 1:
        reason = f"it has {len(platforms)} platforms of its own, and can't be called {source.platform}"
        raise RooflineError("Cannot compare", source.path, reason, "Give the file without a platform before it.")
    rows = tuple(replace(row, platform=source.platform or row.platform) for row in table.rows)

    def find(row: PlainRow) -> Ceilings | None:
        return next(iter(machines.of(row.platform, row.device, None)), None)

    return runs_of_table(replace(table, rows=rows), find, how.precision, how.by), list(table.warnings)


def _read_report(source: Platform, machines: _Machines, how: Reading) -> tuple[list[PlatformRun], list[str]]:
    def cannot(reason: str, next_step: str) -> RooflineError:
        return RooflineError("Cannot compare", source.path, reason, next_step)

    with closing_input(source.path) as opened:
        m = how.select.launches(measurements_of(opened, label=source.path))
        warnings = list(opened.warnings)
    implausible = left_out(m)
    if not len(m):
        raise cannot("it holds no launch, or none that passes the filters", "Loosen the filters.")
    if how.label.partition(":")[0] == "nvtx":
        m = as_trajectory(m, how.label)
    elif how.label and not any(m.label):
        if not (text := first_found(expression(how.label), source.path)):
            raise cannot(f"the pattern {how.label!r} finds no variant in its path", "Change --label, or leave the file out.")
        m = replace(m, label=np.full(len(m), text, dtype=object))
    asked = Selection(precisions=(how.precision,)) if how.precision in load_spec().on_request else None
    name = source.platform or ("" if any(m.device) else os.path.splitext(os.path.basename(source.path))[0])
    ceilings = [
        one
        for device, capability in dict.fromkeys(zip(m.device, m.capability, strict=True))
        for one in machines.of(source.platform or str(device), str(device), capability)
    ]
    runs = []
    for label in dict.fromkeys(m.label):
        part = m.take(np.flatnonzero(m.label == label))
        if how.by == "application" and len(part) > 1 and part.rates.any():
            reason = f"it has {len(part)} kernels with rates and no times, which can't be added up"
            raise cannot(reason, "Use --by kernel.")
        models = set(zip(part.device, part.capability, strict=True))
        fitting = [one for one in ceilings if any(one.applies_to(*model) for model in models)]
        result = roofline(part, fitting, clock=how.clock, by=how.by, select=asked)
        runs += [replace(run, platform=name or run.platform) for run in runs_of_roofline(result, how.precision, how.by)]
    if not runs:
        reason = f"no launch has work{f' in {how.precision}' if how.precision else ''}, traffic and time"
        reason += f" ({implausible[0]})" if implausible else ""
        raise cannot(reason, "Ask `ncu-roofline explain` what it lacks.")
    partly = (
        f"{run.about}: launches with {as_percent(1 - run.coverage)} of the time are left out, as they lack metrics"
        for run in runs
        if run.coverage < 1 - 1e-9
    )
    return runs, [*warnings, *implausible, *partly]


class _Machines:
    """The ceilings of each platform, and which of them found one."""

    def __init__(self, ceilings: Mapping[str, Ceilings | Path] | Sequence[Ceilings | Path], find: Find | None) -> None:
        pairs = list(ceilings.items()) if isinstance(ceilings, Mapping) else [("", ceiling) for ceiling in ceilings]
        self._given = [(name, one if isinstance(one, Ceilings) else open_ceilings(one)) for name, one in pairs]
        self._used: set[int] = set()
        self._find: Find = find or (lambda _device, _capability: None)

    def of(self, platform: str, device: str, capability: tuple[int, int] | None) -> list[Ceilings]:
        """What is named for a platform, which is taken to be measured on it; else what was measured on its device."""
        found = [one for name, one in self._given if name and name.lower() == platform.lower()]
        if found and capability:
            self._used |= set(map(id, found))
            return [replace(one, device=device, compute_capability=capability) for one in found]
        for name, one in [] if found else self._given:
            if not name and one.applies_to(device, capability or one.compute_capability):
                found.append(one)
        self._used |= set(map(id, found))
        known = None if found else self._find(device, capability)
        return [known] if known else found

    def check(self, platforms: Sequence[str], complete: bool) -> None:
        """Raise RooflineError for ceilings of nobody knows which platform, and where runs are ``complete`` of none of them."""
        for name, one in sorted(self._given, key=lambda pair: not pair[0]):
            reason = step = ""
            if not name and not one.device and len(platforms) > 1:
                reason = f"they don't say on which of {len(platforms)} platforms they were measured"
                step = f"Give them as --ceilings '{platforms[0]}=FILE'."
            elif complete and id(one) not in self._used:
                reason = f"they were measured on {one.device or 'an unnamed machine'}, which is none of the platforms"
                step = "Give them as --ceilings PLATFORM=FILE."
                if name:
                    reason = f"there is no platform {name} (there are {', '.join(platforms[:6])})"
                    step = "Correct the name before the =."
            if reason:
                raise RooflineError("Cannot use ceilings", one.path, reason, step)


def runs_of_roofline(result: Roofline, precision: str = "", by: str = "application") -> list[PlatformRun]:
    """A run per launch, kernel or application of a Roofline; ``precision`` "" takes the one with the most work.

    The variant is the label of its points and, unless ``by`` is application, the kernel.  Platforms are called as their GPUs.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in records(result.point_columns):
        groups.setdefault(tuple(row[name] for name in _KEY), []).append(row)
    every_roof, runs = records(result.roof_columns), []
    for (report, _, kernel, device, label), rows in groups.items():
        chosen, notes = chosen_precision({row["precision"]: row["performance"] for row in rows}, precision)
        rows = [row for row in rows if row["precision"] == chosen]
        if not rows:
            continue
        first = rows[0]
        own = [roof for roof in every_roof if roof["device"] == device]
        roofs = [roof for roof in own if roof["origin"] != UNUSED]
        for roof in own:
            if roof["origin"] == UNUSED and roof["precision"] in ("", chosen):
                notes += [f"{roof['label']}: {note}" for note in roof["notes"].split("; ") if INSTEAD in note]
        run = PlatformRun(
            platform=device,
            application="",
            variant=" ".join(filter(None, (label, "" if by == "application" else kernel))),
            source=report,
            device=device,
            precision=chosen,
            **{name: first[name] for name in ("performance", "work", "seconds", "fma_share", "coverage")},
            intensity={row["level"]: row["intensity"] for row in rows},
            compute=_compute_roofs(roofs, chosen, first["compute_roof"]),
            bandwidth={
                row["level"]: PlatformRoof(row["bandwidth_roof"], _origin(roofs, "roof", row["level"]))
                for row in rows
                if not math.isnan(row["bandwidth_roof"])
            },
            notes=tuple(notes),
        )
        runs.append(run)
    return runs


def _compute_roofs(roofs: Sequence[Row], precision: str, peak: float) -> dict[str, PlatformRoof]:
    """Compute roofs by ceiling, measured ones first; the peak is that of the points, a mean over their launches."""
    result: dict[str, PlatformRoof] = {}
    for roof in sorted(roofs, key=lambda roof: roof["origin"] != "measured"):
        if roof["precision"] == precision:
            kind = roof["roof"].removeprefix(precision).lstrip(".") or "fma"
            result.setdefault(kind, PlatformRoof(roof["value"], _origin(roofs, "roof", roof["roof"])))
    if not math.isnan(peak):
        origin = result["fma"].origin if "fma" in result else _origin(roofs, "kind", "compute")  # of several
        result["fma"] = PlatformRoof(peak, origin)
    return result


def _origin(roofs: Sequence[Row], name: str, value: str) -> str:
    """What the roofs of ceilings files are, theoretical where there are none."""
    sources = {roof["source"] for roof in roofs if roof[name] == value and roof["origin"] == "measured"}
    return PUBLISHED if PUBLISHED in sources else MEASURED if sources else "theoretical"


def chosen_precision(amounts: Mapping[str, float], wanted: str) -> tuple[str, list[str]]:
    """The precision asked for, or that of the most work, and a note where other work is left out.

    Work whose file names no precision passes for any.  "" where there is none.
    """
    if wanted:
        fitting = [name for name in amounts if name == wanted or name.startswith(f"{wanted}.")]
        fitting = fitting or [name for name in amounts if name == ANY_PRECISION]
        return max(fitting, key=lambda name: amounts[name], default=""), []
    usual = [name for name in amounts if name not in load_spec().on_request] or list(amounts)
    plain = [name for name in usual if name != MIXED] or usual
    best = max(plain, key=lambda name: amounts[name], default="")
    others = ", ".join(name for name in plain if name != best) if MIXED in amounts else ""
    return best, [f"work in {others} is left out; --precision mixed adds it up"] if others else []


def runs_of_table(
    table: PlainTable, find: Callable[[PlainRow], Ceilings | None], precision: str = "", by: str = "application"
) -> list[PlatformRun]:
    """A run per row; ``find`` gives the measured ceilings of a row's platform.  Raises RooflineError."""
    runs = []
    for row in table.rows:
        variant = " ".join(filter(None, (row.label, "" if by == "application" else row.kernel)))
        run = PlatformRun(row.platform, row.application, variant, table.path, row.device, supported=row.supported)
        runs.append(_numbers(run, row, find(row), precision) if row.supported == "yes" else run)
    return runs


def runs_of_frame(frame: pd.DataFrame) -> list[PlatformRun]:
    """A run per row of a DataFrame with the columns of a plain table (see `ncu_roofline.formats.inputs.plain_table`)."""
    rows = [
        (f"row {number}", {str(name): None if cell != cell else cell for name, cell in row.items()})
        for number, row in enumerate(frame.to_dict("records"), start=1)
    ]
    return runs_of_table(plain_rows("DataFrame", [str(name) for name in frame.columns], rows), lambda _: None)


def _numbers(run: PlatformRun, row: PlainRow, ceilings: Ceilings | None, wanted: str) -> PlatformRun:
    """The run with the numbers of its row."""
    rates = {name: work / row.seconds for name, work in row.work.items() if row.seconds > 0} or dict(row.performance)
    chosen, _ = chosen_precision(rates, wanted)
    if not chosen:
        reason = f"{run.about} has no performance{f' in {wanted}' if wanted else ''}"
        raise run.cannot(reason, "Add columns such as flops and seconds, or write `no` into a column supported.")
    work, seconds = row.work.get(chosen, math.nan), row.seconds
    if math.isnan(work):
        work = rates[chosen] * seconds
    elif math.isnan(seconds):
        seconds = work / rates[chosen]
    intensity = {level: work / traffic for level, traffic in row.traffic.items() if not math.isnan(work)}
    compute, bandwidth = table_roofs(row, ceilings, chosen)
    unused = [one for one in ceilings.by_id.values() if one.impossible] if ceilings else []
    others = ", ".join(name for name in rates if name != chosen)
    notes = [f"work in {others} is left out"] if others else []
    notes += [f"{one.id}: {why_not(one.value / one.theory, clock_known=True)}" for one in unused]
    return replace(
        run,
        precision=chosen,
        performance=rates[chosen],
        work=work,
        seconds=seconds,
        canonical=row.canonical,
        attainable=row.attainable,
        fma_share=row.fma_share,
        intensity={**row.intensity, **intensity},
        compute=compute,
        bandwidth=bandwidth,
        notes=(*notes, *filter(None, [row.note])),
    )


def table_roofs(
    row: PlainRow, ceilings: Ceilings | None, precision: str
) -> tuple[dict[str, PlatformRoof], dict[str, PlatformRoof]]:
    """The roofs of the row; measured ones of a ceilings file go before them."""
    compute, bandwidth = {}, {}
    for roof in row.roofs:
        known = PlatformRoof(roof.value, "measured" if roof.measured else "theoretical")
        if roof.kind == "bandwidth":
            bandwidth[roof.id] = known
        else:
            compute[roof.id.removeprefix(precision).removeprefix(ANY_PRECISION).lstrip(".") or "fma"] = known
    if ceilings:
        for kind in ("fma", "nofma", "divide", "divide_nofma"):
            if (ceiling := _measured(ceilings, precision, kind)) and not ceiling.impossible:
                compute[kind] = PlatformRoof(ceiling.value, ceilings.status)
        for level in dict.fromkeys((*row.traffic, *row.intensity)):
            if (best := ceilings.bandwidth(level)) and not best.impossible:
                bandwidth[level] = PlatformRoof(best.value, ceilings.status)
    return compute, bandwidth


def _measured(ceilings: Ceilings, precision: str, kind: str) -> Ceiling | None:
    """The measured ceiling of a kind; where one side names no precision, it fits the only one of the other."""
    own = precision if precision.startswith("tensor") and kind == "fma" else f"{precision}.{kind}"
    stated = [name for name in ceilings.by_id if name.partition(".")[2] == kind]
    only = stated if precision == ANY_PRECISION and len(stated) == 1 else []
    return next((found for name in (own, f"{ANY_PRECISION}.{kind}", *only) if (found := ceilings.compute(name))), None)


def merged(runs: Sequence[PlatformRun]) -> PlatformRun:
    """Several kernels of one application on one platform as one: work, traffic and time are added up.

    Raises RooflineError where a kernel gives only rates, which can't be added.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    if any(math.isnan(run.work) or math.isnan(run.seconds) or run.supported != "yes" for run in runs):
        reason = f"{len(runs)} rows are of {first.about}, and without work and time of each they can't be added up"
        raise first.cannot(reason, "Add columns with work and seconds, label the rows, or use --by kernel.")
    if len({run.precision for run in runs}) > 1:
        raise first.cannot(f"the rows of {first.about} are of several precisions", "Choose one with --precision.")
    work, seconds = sum(run.work for run in runs), sum(run.seconds for run in runs)

    def shared(name: str) -> dict[str, Any]:
        """What all have, with the value of the first: they are of one platform."""
        return {key: value for key, value in getattr(first, name).items() if all(key in getattr(run, name) for run in runs)}

    return replace(
        first,
        performance=work / seconds,
        work=work,
        seconds=seconds,
        canonical=sum(run.canonical for run in runs),
        attainable=work / sum(run.work / run.attainable for run in runs),
        fma_share=math.nan,
        intensity={level: work / sum(run.work / run.intensity[level] for run in runs) for level in shared("intensity")},
        compute=shared("compute"),
        bandwidth=shared("bandwidth"),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
    )
