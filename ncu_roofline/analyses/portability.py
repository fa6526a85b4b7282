"""Performance portability: how much of what each platform can give an application gets, over a set of platforms.

Yang et al., "An Empirical Roofline Methodology for Quantitatively Assessing Performance Portability" (P3HPC 2018):

    e_i = P_i / min(F_i, B_i * I_i)           equation 2, architectural efficiency on platform i
    PP  = |H| / sum over i in H of 1 / e_i    equation 1 (Pennycook, Sewall, Lee), 0 unless it runs on every platform of H

P performance in FLOP/s, I intensity in FLOP/B, F compute ceiling in FLOP/s, B bandwidth ceiling in B/s.  Which FLOPs go with
which ceiling decides the answer: executed ones belong under a ceiling that counts executed operations.  What the paper calls
empirical ceilings are measured ones; theoretical roofs stand in where none is given, and the result says so.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.base.errors import RooflineError, unexpected
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, expression, first_found
from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.chips.formulas import INSTEAD, why_not
from ncu_roofline.chips.verdict import REPEATED
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, Ceilings
from ncu_roofline.formats.inputs import open_ceilings, plain_table, recognised
from ncu_roofline.formats.inputs.tables import ANY_PRECISION
from ncu_roofline.model import Displayed, Roofline, Selection, as_trajectory, closing_input, measurements_of, roofline
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.plausible import left_out
from ncu_roofline.model.roofline import Table as Columns
from ncu_roofline.model.roofline import as_percent, frame_of, of_rows, seen
from ncu_roofline.rendering.document import Column, Document, Table, columns_of, markdown
from ncu_roofline.rendering.frames import json_rows, records, units_of

if TYPE_CHECKING:
    import pandas as pd

Path = str | PathLike[str]
Find = Callable[[str, tuple[int, int] | None], Ceilings | None]
Measured = Callable[[str, str, tuple[int, int] | None], list[Ceilings]]
Row = dict[str, Any]
FLOPS = ("executed", "canonical")
CEILINGS = {
    "fma": "fused multiply-adds (FMA)",
    "nofma": "separate multiplications and additions (no FMA)",
    "divide": "divisions",
    "divide_nofma": "divisions without FMA",
    "mix": "the FMA-mix ceiling",
}
BINDING = "binding"
"""Instead of a level: whichever level limits most."""
MIXED = "mixed"
_UNREAD, _MISSING = "unread", "missing"
_LEFT_OUT = ("not run", _UNREAD)
_BOUNDS = {"no": "not supported", **{name: name for name in (_MISSING, *_LEFT_OUT, "compute", "stated")}}
_ABSENT = {
    _MISSING: "no input has it: that counts as not supported, and the portability is 0",
    "not run": "not run: left out of the set of platforms",
    _UNREAD: "no readable input has it: left out of the set of platforms",
}


def _bound(bound: str) -> str:
    """What limits a run, by the name of its level, or why it did not run."""
    return _BOUNDS.get(bound) or level_style(bound).label


_OF = columns_of(read(DATA / "columns" / "portability.toml", dict[str, Any]))
_CALLED = {"precision": precision_label, "bound": _bound}
PORTABILITY_PLATFORMS = tuple(replace(one, words=_CALLED.get(one.name)) for one in _OF["platforms"])
PORTABILITY_SUMMARY = _OF["summary"]
TABLES = {"platforms": PORTABILITY_PLATFORMS, "summary": PORTABILITY_SUMMARY}
HEAD = {"schema": "ncu-roofline-portability", "schema_version": 1}
_OF_RUNS = ("precision", "performance", "intensity", "compute_roof", "bandwidth_roof")  # nothing where it did not run
_SHOWN = ("application", "variant", "platform", *_OF_RUNS, "bound", "efficiency", "portability")


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


@dataclass(frozen=True)
class Choices:
    """What goes into the efficiency of each platform.

    ``level`` is a level id or "binding" (equation 2 has one level; the paper takes device memory), ``levels`` those of single
    platforms; ``canonical`` maps variants ("" for the only one) to operations; ``platforms`` is H, all that occur if empty.
    ``incomplete``: inputs were left out, so a platform that the others lack is left out of H, and not taken as unsupported.
    """

    flops: str = "executed"
    ceiling: str = "fma"
    level: str = field(default_factory=lambda: load_spec().memory)
    levels: Mapping[str, str] = field(default_factory=dict)
    canonical: Mapping[str, float] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()
    incomplete: bool = False

    def __post_init__(self) -> None:
        if self.flops not in FLOPS or self.ceiling not in CEILINGS:
            raise ValueError(f"flops must be one of {', '.join(FLOPS)}, and ceiling one of {', '.join(CEILINGS)}")


@dataclass(frozen=True, repr=False)
class Portability(Displayed):
    """A row per platform and variant (PORTABILITY_PLATFORMS), one per variant with its portability (PORTABILITY_SUMMARY)."""

    view: ClassVar[str] = "portability"
    counted: ClassVar[Mapping[str, str]] = {"platform_columns": "run", "summary_columns": "variant"}
    glance: ClassVar[tuple[Column, ...]] = seen(
        PORTABILITY_PLATFORMS, "application", "variant", "platform", "performance", "efficiency", "bound", "portability"
    )
    platform_columns: Columns
    summary_columns: Columns
    warnings: tuple[str, ...] = ()

    platforms = frame_of("platform_columns", "Efficiency per platform and variant, with all that went into it.")
    summary = frame_of("summary_columns", "Performance portability per variant.")

    @property
    def platform_rows(self) -> list[Row]:
        """The platforms row by row."""
        return records(self.platform_columns)

    @property
    def summary_rows(self) -> list[Row]:
        """The variants row by row."""
        return records(self.summary_columns)


def performance_portability(efficiencies: Iterable[float]) -> float:
    """Equation 1: the harmonic mean of the efficiencies, one per platform; 0 where the application runs not everywhere (e = 0).

    Raises ValueError for no platform at all, and for an efficiency that is negative or no finite number.
    """
    values = list(efficiencies)
    if not values or not all(0 <= value < math.inf for value in values):
        raise ValueError("performance portability needs an efficiency of at least 0 for each of one or more platforms")
    return len(values) / sum(1 / value for value in values) if all(values) else 0.0


def portability(
    runs: Path | Sequence[Path | Platform] | Mapping[str, Path | Sequence[Path]] | Sequence[PlatformRun] | pd.DataFrame,
    choices: Choices | None = None,
    *,
    ceilings: Mapping[str, Ceilings | Path] | Sequence[Ceilings | Path] = (),
    reading: Reading | None = None,
) -> Portability:
    """Performance portability of each application and variant over its platforms.

    ``runs``: paths of reports and plain tables, or platforms by name with a path or several each; or what `read_runs` of
    `platforms` read, or a DataFrame with the columns of a plain table.  ``ceilings`` (by platform, or a list of files that say
    their GPU) and ``reading`` are about paths.

    A platform of H without a row, or with one that says it is not supported, makes it 0; one that was "not run" is left out,
    with a warning.  Efficiencies and portability are ratios, rates in FLOP/s and B/s.  Raises RooflineError where a file can't
    be read or a run lacks a number that the choices need, TypeError for what is no run, ValueError for ceilings of runs that
    have theirs.

    >>> found = portability("gpp-platforms.csv")
    >>> found.summary[["variant", "lowest"]].iloc[0].tolist(), f"{found.summary['portability'][0]:.1%}"
    (['nw=1', 'KNL 7250'], '90.8%')
    """
    chosen = choices or Choices()
    given, warnings = _runs(runs, ceilings, reading)
    groups: dict[tuple[str, str], dict[str, list[PlatformRun]]] = {}
    everywhere: dict[str, dict[str, None]] = {}
    for run in _named(given, chosen):
        groups.setdefault((run.application, run.variant), {}).setdefault(run.platform, []).append(run)
        everywhere.setdefault(run.application, {})[run.platform] = None
    rows: list[Row] = []
    summaries: list[Row] = []
    called = ReportNames.apart(run.source for run in given)
    for (application, variant), by_platform in groups.items():
        absent = PlatformRun("", application, variant, "", supported=_UNREAD if chosen.incomplete else _MISSING)
        one = {name: _merged(mine) for name, mine in by_platform.items()}
        wanted = chosen.platforms or everywhere[application]
        found = [_efficiency_row(one.get(name, replace(absent, platform=name)), chosen) for name in wanted]
        counted = [row for row in found if row["status"] not in _LEFT_OUT]
        lowest = min(counted, key=lambda row: float(row["efficiency"]), default=None)
        pp = performance_portability(row["efficiency"] for row in counted) if counted else math.nan
        summaries.append({
            "application": application,
            "variant": variant,
            "portability": pp,
            "platforms": len(counted),
            "names": ", ".join(row["platform"] for row in counted),
            "lowest": lowest["platform"] if lowest else "",
            "unsupported": ", ".join(row["platform"] for row in found if row["status"] in ("no", _MISSING)),
            "not_run": ", ".join(row["platform"] for row in found if row["status"] in _LEFT_OUT),
        })  # fmt: skip
        rows += [{**row, "source": called(row["source"]), "portability": pp} for row in found]
        warnings += _warnings(found)
    if not rows:
        raise RooflineError("Cannot compare", "the inputs", "they hold no run", "Give reports or tables with points.")
    unused = dict.fromkeys(run.platform for run in given if chosen.platforms and run.platform not in chosen.platforms)
    if unused:
        warnings.append(f"not among the platforms asked for, and left out: {', '.join(unused)}")
    tables = of_rows(rows, PORTABILITY_PLATFORMS), of_rows(summaries, PORTABILITY_SUMMARY)
    return Portability(*tables, tuple(dict.fromkeys(warnings)))


def _runs(given: Any, ceilings: Any, reading: Reading | None) -> tuple[Sequence[PlatformRun], list[str]]:
    """The runs of whatever `portability` takes, and sentences on what was left out of files."""

    def several(one: Any) -> list[Any]:
        """One or several as a list; what is neither is one, too."""
        alone = not isinstance(one, Iterable) or isinstance(one, (str, bytes, PathLike)) or hasattr(one, "columns")
        return [one] if alone else list(one)

    paths = several(given)
    if isinstance(given, Mapping):
        paths = [Platform(fspath(path), str(name)) for name, mine in given.items() for path in several(mine)]
    if paths and all(isinstance(one, (str, PathLike, Platform)) for one in paths):
        return read_runs(paths, ceilings, reading)
    if ceilings or reading:
        raise ValueError("ceilings and reading are about paths: runs and tables have their roofs")
    if not isinstance(given, (Mapping, Sequence)) and hasattr(given, "to_dict"):
        rows = [
            (f"row {number}", {str(name): None if cell != cell else cell for name, cell in row.items()})
            for number, row in enumerate(given.to_dict("records"), start=1)
        ]
        return runs_of_table(plain_table.plain_rows("DataFrame", list(map(str, given.columns)), rows), lambda _: None), []
    wrong = [type(one).__name__ for one in paths if not isinstance(one, (PlatformRun, str, PathLike, Platform))]
    if wrong or not all(isinstance(one, PlatformRun) for one in paths):
        odd = next(iter(wrong), "str beside others")
        raise TypeError(f"runs are paths (all of them), PlatformRuns or a DataFrame, not of type {odd}")
    return paths, []


def _named(runs: Sequence[PlatformRun], choices: Choices) -> list[PlatformRun]:
    """Runs of files that name no application are of the one that the others name; canonical counts are of known variants."""
    variants = list(dict.fromkeys(run.variant for run in runs))
    if "" in choices.canonical and len(variants) > 1:
        reason = f"one number of operations can't hold for {len(variants)} variants"
        raise RooflineError("Cannot use", "--canonical-flops", reason, f"Give one for each, as {variants[0]}=1e12.")
    unknown = next((name for name in choices.canonical if name and name not in variants), "")
    if unknown and not choices.incomplete:
        reason = f"there is no such variant (there are {', '.join(variants[:6])})"
        raise RooflineError("Cannot use --canonical-flops of", unknown, reason, "Name a variant as the table does.")
    names = list(dict.fromkeys(run.application for run in runs if run.application))
    if len(names) < 2:
        return [replace(run, application=names[0] if names else "") for run in runs]
    if nameless := next((run for run in runs if not run.application), None):
        reason = f"it names no application, and the other inputs name {', '.join(names[:6])}"
        raise nameless.cannot(reason, "Say which it is with --application.")
    return list(runs)


def _efficiency_row(run: PlatformRun, choices: Choices) -> Row:
    """A row of the platforms frame, without the portability of its variant."""
    row: Row = {column.name: math.nan if column.dtype == "float" else "" for column in PORTABILITY_PLATFORMS}
    row |= {name: getattr(run, name) for name in ("application", "variant", "platform", "device", "source")}
    row |= {"status": run.supported, "flops": choices.flops, "ceiling": choices.ceiling, "notes": "; ".join(run.notes)}
    if run.supported != "yes":
        return {**row, "efficiency": math.nan if run.supported in _LEFT_OUT else 0.0}
    if choices.flops == "canonical":  # operations on paper, in the same time and traffic
        canonical = choices.canonical.get(run.variant, choices.canonical.get("", run.canonical))
        if math.isnan(canonical):
            next_step = "Add a column canonical_flops, or give --canonical-flops."
            raise run.cannot(f"{run.about} has no canonical FLOP count", next_step)
        if math.isnan(run.work):
            reason = f"{run.about} has rates only, and a canonical count needs the time or the executed FLOPs"
            raise run.cannot(reason, "Add a column seconds or flops.")
        ratio = canonical / run.work
        scaled = {level: intensity * ratio for level, intensity in run.intensity.items()}
        run = replace(run, performance=run.performance * ratio, work=canonical, intensity=scaled)
    missing = PlatformRoof(math.nan, "")
    compute = run.compute.get("fma" if choices.ceiling == "mix" else choices.ceiling, missing)
    if choices.ceiling == "mix":  # what the run's share of fused instructions can reach (Yang, Kurth, Williams 2019, eq. 7)
        compute = compute._replace(value=compute.value * (1 + run.fma_share) / 2)
    level = choices.levels.get(run.platform, choices.level)
    if level == BINDING:
        slopes = {name: run.intensity[name] * roof.value for name, roof in run.bandwidth.items() if name in run.intensity}
        level = min(slopes, key=lambda name: slopes[name], default=load_spec().memory)
    bandwidth, intensity = run.bandwidth.get(level, missing), run.intensity.get(level, math.nan)
    slope = bandwidth.value * intensity
    attainable, bound = min(compute.value, slope), "compute" if compute.value <= slope else level
    if math.isnan(compute.value) or math.isnan(slope):
        compute = bandwidth = PlatformRoof(math.nan, "stated")
        attainable, bound = run.attainable, "stated"
        if math.isnan(attainable):
            raise _lacking(run, choices, level)
    share = run.performance / attainable if attainable > 0 else math.nan
    if not 0 < share < math.inf:
        raise run.cannot(f"the numbers of {run.about} give no efficiency", "Check their units.")
    row |= {name: getattr(run, name) for name in ("precision", "performance", "work", "seconds")}
    row["unit"] = next((one.unit for one in load_spec().precisions if one.id == run.precision), "flop")
    row |= {"level": level, "intensity": intensity, "attainable": attainable, "bound": bound, "efficiency": share}
    row |= {"compute_roof": compute.value, "compute_origin": compute.origin}
    return {**row, "bandwidth_roof": bandwidth.value, "bandwidth_origin": bandwidth.origin}


def _lacking(run: PlatformRun, choices: Choices, level: str) -> RooflineError:
    """The error of a run without what its efficiency needs, and what it has."""
    if math.isnan(run.intensity.get(level, math.nan)):
        reason = f"{run.about} has no intensity at {level} (it has {', '.join(run.intensity) or 'none'})"
        return run.cannot(reason, f"Choose another with --level '{run.platform}=LEVEL'.")
    reason = f"{run.about} has no bandwidth ceiling of {level}"
    if level in run.bandwidth:
        reason = f"{run.about} has no {choices.ceiling} ceiling in {run.precision} (it has {', '.join(run.compute) or 'none'})"
    return run.cannot(reason, f"Give measured ceilings, as --ceilings '{run.platform}=FILE'.")


def _warnings(rows: Sequence[Row]) -> Iterator[str]:
    """What a reader must know of the platforms of one variant."""
    for row in rows:
        about = " ".join(filter(None, (row["platform"], row["variant"])))
        if row["status"] in _ABSENT:
            yield f"{about}: {_ABSENT[row['status']]}"
        if row["efficiency"] > 1:
            unless = " (unless two measurements differ by that much)" if row["efficiency"] <= REPEATED else ""
            counted = f"{row['flops']} {UNITS[row['unit']].symbol}s do not belong under the ceiling {row['ceiling']}"
            counted += f" ({row['compute_origin'] or 'stated'})"
            yield f"{about}: {100 * row['efficiency']:.4g} % is impossible{unless}: {counted}"
        unused = [f"{about}: {note}" for note in row["notes"].split("; ") if INSTEAD in note]
        yield from unused
        if "theoretical" in (row["compute_origin"], row["bandwidth_origin"]) and not unused:
            platform = row["platform"]
            yield f"{platform}: roofs are theoretical where none is measured; give --ceilings '{platform}=FILE'"
    precisions = {row["precision"] for row in rows if row["precision"] not in ("", ANY_PRECISION)}
    if len(precisions) > 1:
        yield f"the platforms are compared in different precisions: {', '.join(sorted(precisions))}"


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
    how = reading or Reading()
    pairs = list(ceilings.items()) if isinstance(ceilings, Mapping) else [("", ceiling) for ceiling in ceilings]
    given = [(name, one if isinstance(one, Ceilings) else open_ceilings(one)) for name, one in pairs]
    used: set[int] = set()

    def measured(platform: str, device: str, capability: tuple[int, int] | None) -> list[Ceilings]:
        """What is named for a platform, which is taken to be measured on it; else what was measured on its device."""
        named = [one for name, one in given if name and name.lower() == platform.lower()]
        fitting = [one for name, one in given if not name and one.applies_to(device, capability or one.compute_capability)]
        used.update(map(id, named or fitting))
        if named and capability:
            return [replace(one, device=device, compute_capability=capability) for one in named]
        known = find(device, capability) if find and not (named or fitting) else None
        return [known] if known else named or fitting

    runs: list[PlatformRun] = []
    warnings: dict[str, None] = {}
    complete = True
    for source in (one if isinstance(one, Platform) else Platform(os.fspath(one)) for one in inputs):
        try:
            more, told = _read(source, measured, how)
        except Exception as error:
            if leave_out is None:
                raise
            leave_out(error if isinstance(error, RooflineError) else unexpected("Cannot read", source.path, error))
            complete = False
            continue
        runs += more
        warnings |= dict.fromkeys(told)
    platforms = ", ".join(dict.fromkeys(run.platform for run in runs))
    for name, one in given:
        unsaid = not name and not one.device and ", " in platforms
        if unsaid or (complete and id(one) not in used):
            reason = f"they were measured on {name or one.device or 'an unnamed machine'}, and the platforms are {platforms}"
            raise RooflineError("Cannot use ceilings", one.path, reason, "Give them as --ceilings PLATFORM=FILE.")
    return [replace(run, application=run.application or how.application) for run in runs], list(warnings)


def _read(source: Platform, measured: Measured, how: Reading) -> tuple[list[PlatformRun], list[str]]:
    kind = recognised(source.path)
    if kind is None or kind.id != plain_table.FORMAT:
        return _read_report(source, measured, how)
    table = plain_table.read_rows(source.path)
    if source.platform and len({row.platform for row in table.rows}) > 1:
        reason = f"it has platforms of its own, and can't be called {source.platform}"
        raise RooflineError("Cannot compare", source.path, reason, "Give the file without a platform before it.")
    table = replace(table, rows=tuple(replace(row, platform=source.platform or row.platform) for row in table.rows))

    def best(row: plain_table.PlainRow) -> Ceilings | None:
        return next(iter(measured(row.platform, row.device, None)), None)

    return runs_of_table(table, best, how.precision, how.by), list(table.warnings)


def _read_report(source: Platform, measured: Measured, how: Reading) -> tuple[list[PlatformRun], list[str]]:
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
    gpus = dict.fromkeys(zip(m.device, m.capability, strict=True))
    ceilings = [one for gpu in gpus for one in measured(source.platform or str(gpu[0]), str(gpu[0]), gpu[1])]
    runs = []
    for label in dict.fromkeys(m.label):
        part = m.take(np.flatnonzero(m.label == label))
        if how.by == "application" and len(part) > 1 and part.rates.any():
            raise cannot(f"it has {len(part)} kernels with rates and no times, which can't be added up", "Use --by kernel.")
        models = set(zip(part.device, part.capability, strict=True))
        fitting = [one for one in ceilings if any(one.applies_to(*model) for model in models)]
        result = roofline(part, fitting, clock=how.clock, by=how.by, select=asked)
        runs += [replace(run, platform=name or run.platform) for run in runs_of_roofline(result, how.precision, how.by)]
    if not runs:
        reason = f"no launch has work{f' in {how.precision}' if how.precision else ''}, traffic and time"
        reason += f" ({implausible[0]})" if implausible else ""
        raise cannot(reason, "`ncu-roofline explain` says what it lacks.")
    partly = (
        f"{run.about}: launches with {as_percent(1 - run.coverage)} of the time are left out, as they lack metrics"
        for run in runs
        if run.coverage < 1 - 1e-9
    )
    return runs, [*warnings, *implausible, *partly]


def runs_of_roofline(result: Roofline, precision: str = "", by: str = "application") -> list[PlatformRun]:
    """A run per launch, kernel or application of a Roofline; ``precision`` "" takes the one with the most work.

    The variant is the label of its points and, unless ``by`` is application, the kernel.  Platforms are called as their GPUs.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in records(result.point_columns):
        groups.setdefault(tuple(row[name] for name in ("report", "launch", "kernel", "device", "label")), []).append(row)
    runs = []
    for (report, _, kernel, device, label), rows in groups.items():
        chosen, notes = _precision({row["precision"]: row["performance"] for row in rows}, precision)
        rows = [row for row in rows if row["precision"] == chosen]
        if not rows:
            continue
        first = rows[0]
        own = [roof for roof in records(result.roof_columns) if roof["device"] == device]
        roofs = [roof for roof in own if roof["origin"] != UNUSED]
        for roof in own:
            if roof["origin"] == UNUSED and roof["precision"] in ("", chosen):
                notes += [f"{roof['label']}: {note}" for note in roof["notes"].split("; ") if INSTEAD in note]
        compute: dict[str, PlatformRoof] = {}  # measured ones first
        for roof in sorted(roofs, key=lambda roof: roof["origin"] != "measured"):
            if roof["precision"] == chosen:
                kind = roof["roof"].removeprefix(chosen).lstrip(".") or "fma"
                compute.setdefault(kind, PlatformRoof(roof["value"], _origin(roofs, "roof", roof["roof"])))
        if not math.isnan(first["compute_roof"]):  # the peak is that of the points, a mean over their launches
            origin = compute["fma"].origin if "fma" in compute else _origin(roofs, "kind", "compute")  # of several
            compute["fma"] = PlatformRoof(first["compute_roof"], origin)
        run = PlatformRun(
            platform=device,
            application="",
            variant=" ".join(filter(None, (label, "" if by == "application" else kernel))),
            source=report,
            device=device,
            precision=chosen,
            **{name: first[name] for name in ("performance", "work", "seconds", "fma_share", "coverage")},
            intensity={row["level"]: row["intensity"] for row in rows},
            compute=compute,
            bandwidth={
                row["level"]: PlatformRoof(row["bandwidth_roof"], _origin(roofs, "roof", row["level"]))
                for row in rows
                if not math.isnan(row["bandwidth_roof"])
            },
            notes=tuple(notes),
        )
        runs.append(run)
    return runs


def _origin(roofs: Sequence[Row], name: str, value: str) -> str:
    """What the roofs of ceilings files are, theoretical where there are none."""
    sources = {roof["source"] for roof in roofs if roof[name] == value and roof["origin"] == "measured"}
    return PUBLISHED if PUBLISHED in sources else MEASURED if sources else "theoretical"


def _precision(amounts: Mapping[str, float], wanted: str) -> tuple[str, list[str]]:
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
    table: plain_table.PlainTable,
    find: Callable[[plain_table.PlainRow], Ceilings | None],
    precision: str = "",
    by: str = "application",
) -> list[PlatformRun]:
    """A run per row; ``find`` gives the measured ceilings of a row's platform.  Raises RooflineError."""
    runs = []
    for row in table.rows:
        variant = " ".join(filter(None, (row.label, "" if by == "application" else row.name)))
        run = PlatformRun(row.platform, row.application, variant, table.path, row.device, supported=row.supported)
        runs.append(run)
        if row.supported != "yes":
            continue
        rates = {name: work / row.seconds for name, work in row.work.items() if row.seconds > 0} or dict(row.performance)
        chosen, _ = _precision(rates, precision)
        if not chosen:
            reason = f"{run.about} has no performance{f' in {precision}' if precision else ''}"
            raise run.cannot(reason, "Add columns such as flops and seconds, or write `no` into a column supported.")
        work, seconds = row.work.get(chosen, math.nan), row.seconds
        if math.isnan(work):
            work = rates[chosen] * seconds
        elif math.isnan(seconds):
            seconds = work / rates[chosen]
        intensity = {level: work / traffic for level, traffic in row.traffic.items() if not math.isnan(work)}
        ceilings = find(row)
        compute, bandwidth = table_roofs(row, ceilings, chosen)
        others = ", ".join(name for name in rates if name != chosen)
        notes = [f"work in {others} is left out"] if others else []
        unused = [one for one in ceilings.by_id.values() if one.impossible] if ceilings else []
        notes += [f"{one.id}: {why_not(one.value / one.theory, True, ceilings.status)}" for one in unused if ceilings]
        runs[-1] = replace(
            run,
            precision=chosen,
            performance=rates[chosen],
            work=work,
            seconds=seconds,
            canonical=row.canonical,
            attainable=row.attainable,
            fma_share=row.fused,
            intensity={**row.intensity, **intensity},
            compute=compute,
            bandwidth=bandwidth,
            notes=(*notes, *filter(None, [row.note])),
        )
    return runs


def table_roofs(
    row: plain_table.PlainRow, ceilings: Ceilings | None, precision: str
) -> tuple[dict[str, PlatformRoof], dict[str, PlatformRoof]]:
    """The roofs of the row; measured ones of a ceilings file go before them.

    Where row or file names no precision, a ceiling fits the only one of the other.
    """
    compute, bandwidth = {}, {}
    for roof in row.roofs:
        known = PlatformRoof(roof.value, "measured" if roof.measured else "theoretical")
        if roof.kind == "bandwidth":
            bandwidth[roof.id] = known
        else:
            compute[roof.id.removeprefix(precision).removeprefix(ANY_PRECISION).lstrip(".") or "fma"] = known
    if ceilings:
        for kind in ("fma", "nofma", "divide", "divide_nofma"):
            own = precision if precision.startswith("tensor") and kind == "fma" else f"{precision}.{kind}"
            stated = [name for name in ceilings.by_id if name.partition(".")[2] == kind]
            only = stated if precision == ANY_PRECISION and len(stated) == 1 else []
            found = [one for name in (own, f"{ANY_PRECISION}.{kind}", *only) if (one := ceilings.compute(name))]
            if found and not found[0].impossible:
                compute[kind] = PlatformRoof(found[0].value, ceilings.status)
        for level in dict.fromkeys((*row.traffic, *row.intensity)):
            if (best := ceilings.bandwidth(level)) and not best.impossible:
                bandwidth[level] = PlatformRoof(best.value, ceilings.status)
    return compute, bandwidth


def _merged(runs: Sequence[PlatformRun]) -> PlatformRun:
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


def render_json(result: Portability) -> bytes:
    """Strict JSON: schema, schema_version, units, platforms, summary (one object per row) and warnings; NaN is null."""
    found = {
        **HEAD,
        "units": units_of(result, TABLES),
        **{name: json_rows(result, name, declared) for name, declared in TABLES.items()},
        "warnings": list(result.warnings),
    }
    return (json.dumps(found, indent=1, allow_nan=False) + "\n").encode("ascii")


def document(result: Portability, *, title: str = "", warnings: Sequence[str] = ()) -> Document:
    """A table per platform and variant, and which FLOPs, ceilings, levels and files stand behind it."""
    rows = result.platform_rows
    nothing = dict.fromkeys(_OF_RUNS)
    shown = [row if row["status"] == "yes" else {**row, **nothing, "bound": row["status"]} for row in rows]
    tells = "No room for {names}: a wider terminal, csv and json have them."
    table = Table("platforms", PORTABILITY_PLATFORMS, shown, _SHOWN, tells=tells)
    ran = [row for row in rows if row["status"] == "yes"]
    units = [UNITS[unit].symbol for unit in dict.fromkeys(row["unit"] for row in ran)] or ["FLOP"]
    rate, intensity = (" or ".join(f"{unit}/{per}" for unit in units) for per in ("s", "byte"))
    facts = [
        f"P: performance [{rate}], I: intensity [{intensity}], F: compute ceiling [{rate}], B: bandwidth ceiling [byte/s]; "
        "e: efficiency, PP: performance portability [both %].",
        "e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H.",
    ]
    if ran:
        # Of operations that are no FLOPs the ceiling is that of their precision, whose only roof it is.
        ceilings = [CEILINGS[row["ceiling"]] if row["unit"] == "flop" else precision_label(row["precision"]) for row in ran]
        counted = " and ".join(f"{unit}s" for unit in units)
        ceiling = " and ".join(dict.fromkeys(ceilings))
        facts.append(f"{ran[0]['flops'].capitalize()} {counted} under the ceiling of {ceiling}.")
    names = ReportNames.apart(row["source"] for row in ran)
    for platform in dict.fromkeys(row["platform"] for row in ran):
        mine = [row for row in ran if row["platform"] == platform]
        compute, bandwidth, levels, sources = (
            list(dict.fromkeys(row[name] for row in mine)) for name in ("compute_origin", "bandwidth_origin", "level", "source")
        )
        labels = ", ".join(dict.fromkeys(level_style(level).label for level in levels))
        of_platform = f"compute ceiling {', '.join(compute)}, bandwidth of {labels} {', '.join(bandwidth)}"
        facts.append(
            f"{clean(platform)}: {of_platform}; {', '.join(dict.fromkeys(clean(names(source)) for source in sources))}"
        )
    return Document(title or "Performance portability", blocks=[table, (*facts, *warnings)])


def render_md(result: Portability, *, title: str = "") -> bytes:
    """The document as Markdown with a GitHub table, and warnings, which commands say elsewhere."""
    return markdown(document(result, title=title, warnings=result.warnings))
