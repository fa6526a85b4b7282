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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.portability.runs import (
    Path,
    Platform,
    PlatformRoof,
    PlatformRun,
    Reading,
    Row,
    merged,
    read_runs,
    runs_of_frame,
)
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.formulas import INSTEAD
from ncu_roofline.chips.verdict import REPEATED
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import Displayed
from ncu_roofline.model.roofline import Table as Columns
from ncu_roofline.model.roofline import frame_of, of_rows, seen
from ncu_roofline.rendering.document import Column, Document, Table, markdown
from ncu_roofline.rendering.frames import json_rows, records, units_of

if TYPE_CHECKING:
    import pandas as pd

FLOPS = ("executed", "canonical")
CEILINGS = {
    "fma": "fused multiply-adds (FMA)",
    "nofma": "separate multiplications and additions (no FMA)",
    "divide": "divisions",
    "divide_nofma": "divisions without FMA",
    "mix": "what the share of fused instructions can reach",
}
BINDING = "binding"
"""Instead of a level: whichever level limits most."""
_UNREAD, _MISSING = "unread", "missing"
_LEFT_OUT = ("not run", _UNREAD)
_BOUNDS = {"no": "not supported", **{name: name for name in (_MISSING, *_LEFT_OUT, "compute", "stated")}}
_ABSENT = {
    _MISSING: "no input has it, which counts as not supported, and the portability is 0",
    "not run": "not run, and left out of the set of platforms",
    _UNREAD: "no input that could be read has it, so it is left out of the set of platforms",
}
__all__ = ["Choices", "Portability", "efficiency", "performance_portability", "portability"]


def _bound(bound: str) -> str:
    """What limits a run, by the name of its level, or why it did not run."""
    return _BOUNDS.get(bound) or level_style(bound).label


_OF = "file the row comes from: its name, with folders only where they tell files apart"
_STATUS = "yes, no (not supported), missing (no input has it), not run, or unread (left out, both)"
_ORIGIN = "measured, published, theoretical, or stated (the table gives what is attainable)"
_SHARE = "e: performance / attainable; 0 where not supported, NaN where left out"
PORTABILITY_PLATFORMS = (
    Column.text("application", "application, '' where no input names one"),
    Column.text("variant", "label or parameter of the run, with --by kernel also the kernel; '' if there is one"),
    Column.text("platform", "platform: as the user, the table, or else the GPU is called"),
    Column.text("device", "name of the GPU or machine"),
    Column.text("source", _OF),
    Column.text("status", _STATUS),
    Column.text("precision", "precision id of the work; fp where the file does not say", "", 5, words=precision_label),
    Column.text("flops", "executed or canonical: which operations count"),
    Column.number("work", "flop", "these operations"),
    Column.text("unit", "flop or op: what work counts"),
    Column.number("seconds", "second", "run time"),
    Column.number("performance", "flop/s", "P: work / seconds", "P", 2, digits=4),
    Column.text("level", "memory level id of intensity and bandwidth"),
    Column.number("intensity", "flop/byte", "I: work / bytes of this level", "I", 3, digits=4),
    Column.text("ceiling", "which compute ceiling: fma, nofma, divide, divide_nofma or mix"),
    Column.number("compute_roof", "flop/s", "F: that ceiling", "F", 4, digits=4),
    Column.text("compute_origin", _ORIGIN),
    Column.number("bandwidth_roof", "byte/s", "B: bandwidth ceiling of the level", "B", 4, digits=4),
    Column.text("bandwidth_origin", "measured, published, theoretical or stated"),
    Column.number("attainable", "flop/s", "min(F, B * I)"),
    Column.text("bound", "compute, the level id, or stated", "bound by", words=_bound),
    Column.number("efficiency", "ratio", _SHARE, "e", form="percent"),
    Column.number("portability", "ratio", "PP of this application and variant", "PP", form="percent"),
    Column.text("notes", "what a reader must know of this row, sentences separated by '; '"),
)
PORTABILITY_SUMMARY = (
    Column.text("application", "application, '' where no input names one"),
    Column.text("variant", "label or parameter of the runs"),
    Column.number("portability", "ratio", "PP: harmonic mean of the efficiencies, 0 unless all platforms are supported"),
    Column.integer("platforms", "|H|: platforms that count"),
    Column.text("names", "these platforms, separated by ', '"),
    Column.text("lowest", "platform with the lowest efficiency"),
    Column.text("unsupported", "platforms that make it 0"),
    Column.text("not_run", "platforms left out because nobody ran it there, or no input that could be read says so"),
)
TABLES = {"platforms": PORTABILITY_PLATFORMS, "summary": PORTABILITY_SUMMARY}
_OF_RUNS = ("precision", "performance", "intensity", "compute_roof", "bandwidth_roof")  # nothing where it did not run
_SHOWN = ("application", "variant", "platform", *_OF_RUNS, "bound", "efficiency", "portability")


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
    choices: Choices
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


def efficiency(performance: float, compute: float, bandwidth: float, intensity: float) -> float:
    """Architectural efficiency, equation 2: FLOP/s over min(FLOP/s, B/s * FLOP/B), as a ratio."""
    return performance / min(compute, bandwidth * intensity)


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
    runs, told = _runs(runs, ceilings, reading)
    groups: dict[tuple[str, str], dict[str, list[PlatformRun]]] = {}
    everywhere: dict[str, dict[str, None]] = {}
    for run in _named(runs, chosen):
        groups.setdefault((run.application, run.variant), {}).setdefault(run.platform, []).append(run)
        everywhere.setdefault(run.application, {})[run.platform] = None
    rows: list[Row] = []
    summaries: list[Row] = []
    warnings: list[str] = list(told)
    called = ReportNames.apart(run.source for run in runs)
    for (application, variant), by_platform in groups.items():
        absent = PlatformRun("", application, variant, "", supported=_UNREAD if chosen.incomplete else _MISSING)
        one = {name: merged(mine) for name, mine in by_platform.items()}
        wanted = chosen.platforms or everywhere[application]
        found = [_efficiency_row(one.get(name, replace(absent, platform=name)), chosen) for name in wanted]
        summaries.append(_summary(application, variant, found))
        pp = summaries[-1]["portability"]
        rows += [{**row, "source": called(row["source"]), "portability": pp} for row in found]
        warnings += _warnings(found)
    if not rows:
        raise RooflineError("Cannot compare", "the inputs", "they hold no run", "Give reports or tables with points.")
    unused = dict.fromkeys(run.platform for run in runs if chosen.platforms and run.platform not in chosen.platforms)
    if unused:
        warnings.append(f"not among the platforms asked for, and left out: {', '.join(unused)}")
    tables = of_rows(rows, PORTABILITY_PLATFORMS), of_rows(summaries, PORTABILITY_SUMMARY)
    return Portability(*tables, chosen, tuple(dict.fromkeys(warnings)))


def _runs(given: Any, ceilings: Any, reading: Reading | None) -> tuple[Sequence[PlatformRun], Sequence[str]]:
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
        return runs_of_frame(given), ()
    wrong = [one for one in paths if not isinstance(one, PlatformRun)]
    if wrong:
        odd = min(wrong, key=lambda one: isinstance(one, (str, PathLike, Platform)))
        raise TypeError(f"runs are paths (all of them), PlatformRuns or a DataFrame, not of type {type(odd).__name__}")
    return paths, ()


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
    if choices.flops == "canonical":
        run = _canonical(run, choices)
    compute, level, bandwidth = _limits(run, choices)
    intensity = run.intensity.get(level, math.nan)
    slope = bandwidth.value * intensity
    attainable, bound = min(compute.value, slope), "compute" if compute.value <= slope else level
    if math.isnan(compute.value) or math.isnan(slope):
        attainable, bound = run.attainable, "stated"
    share = run.performance / attainable if attainable > 0 else math.nan
    if not 0 < share < math.inf:
        raise run.cannot(f"the numbers of {run.about} give no efficiency", "Check their units.")
    row |= {name: getattr(run, name) for name in ("precision", "unit", "performance", "work", "seconds")}
    row |= {"level": level, "intensity": intensity, "attainable": attainable, "bound": bound, "efficiency": share}
    row |= {"compute_roof": compute.value, "compute_origin": compute.origin}
    return {**row, "bandwidth_roof": bandwidth.value, "bandwidth_origin": bandwidth.origin}


def _canonical(run: PlatformRun, choices: Choices) -> PlatformRun:
    """The run with its operations on paper, in the same time and traffic."""
    canonical = choices.canonical.get(run.variant, choices.canonical.get("", run.canonical))
    if math.isnan(canonical):
        raise run.cannot(f"{run.about} has no canonical FLOP count", "Add a column canonical_flops, or give --canonical-flops.")
    if math.isnan(run.work):
        reason = f"{run.about} has rates only, and a canonical count needs the time or the executed FLOPs"
        raise run.cannot(reason, "Add a column seconds or flops.")
    ratio = canonical / run.work
    scaled = {level: intensity * ratio for level, intensity in run.intensity.items()}
    return replace(run, performance=run.performance * ratio, work=canonical, intensity=scaled)


def _limits(run: PlatformRun, choices: Choices) -> tuple[PlatformRoof, str, PlatformRoof]:
    """The compute ceiling, the level and its bandwidth ceiling; NaN ones where the run states what is attainable.

    The ceiling "mix" is what the run's share of fused instructions can reach (Yang, Kurth, Williams 2019, eq. 7).
    Raises RooflineError where one is missing.
    """
    missing, stated = PlatformRoof(math.nan, ""), PlatformRoof(math.nan, "stated")
    compute = run.compute.get("fma" if choices.ceiling == "mix" else choices.ceiling, missing)
    if choices.ceiling == "mix":
        compute = compute._replace(value=compute.value * (1 + run.fma_share) / 2)
    level = choices.levels.get(run.platform, choices.level)
    if level == BINDING:
        slopes = {name: run.intensity[name] * roof.value for name, roof in run.bandwidth.items() if name in run.intensity}
        level = min(slopes, key=lambda name: slopes[name], default=load_spec().memory)
    bandwidth = run.bandwidth.get(level, missing)
    if not math.isnan(compute.value) and not math.isnan(bandwidth.value) and level in run.intensity:
        return compute, level, bandwidth
    if not math.isnan(run.attainable):
        return stated, level, stated
    if level not in run.intensity:
        reason = f"{run.about} has no intensity at {level} (it has {', '.join(run.intensity) or 'none'})"
        raise run.cannot(reason, f"Choose another with --level '{run.platform}=LEVEL'.")
    reason = f"{run.about} has no bandwidth ceiling of {level}"
    if math.isnan(compute.value):
        known = ", ".join(run.compute) or "none"
        reason = f"{run.about} has no {choices.ceiling} ceiling in {run.precision} (it has {known})"
    raise run.cannot(reason, f"Give measured ceilings, as --ceilings '{run.platform}=FILE'.")


def _summary(application: str, variant: str, rows: Sequence[Row]) -> Row:
    counted = [row for row in rows if row["status"] not in _LEFT_OUT]
    lowest = min(counted, key=lambda row: float(row["efficiency"]), default=None)
    return {
        "application": application,
        "variant": variant,
        "portability": performance_portability(row["efficiency"] for row in counted) if counted else math.nan,
        "platforms": len(counted),
        "names": ", ".join(row["platform"] for row in counted),
        "lowest": lowest["platform"] if lowest else "",
        "unsupported": ", ".join(row["platform"] for row in rows if row["status"] in ("no", _MISSING)),
        "not_run": ", ".join(row["platform"] for row in rows if row["status"] in _LEFT_OUT),
    }


def _warnings(rows: Sequence[Row]) -> Iterator[str]:
    """What a reader must know of the platforms of one variant."""
    for row in rows:
        about = " ".join(filter(None, (row["platform"], row["variant"])))
        if row["status"] in _ABSENT:
            yield f"{about}: {_ABSENT[row['status']]}"
        if row["efficiency"] > 1:
            unless = " (unless two measurements differ by that much)" if row["efficiency"] <= REPEATED else ""
            counted = f"{row['flops']} {UNITS[row['unit']].symbol}s do not belong under the ceiling {row['ceiling']}"
            yield f"{about}: {row['efficiency']:.1%} is impossible{unless}: {counted} ({row['compute_origin'] or 'stated'})"
        unused = [f"{about}: {note}" for note in row["notes"].split("; ") if INSTEAD in note]
        yield from unused
        if "theoretical" in (row["compute_origin"], row["bandwidth_origin"]) and not unused:
            platform = row["platform"]
            yield f"{platform}: roofs are theoretical where none is measured; give --ceilings '{platform}=FILE'"
    precisions = {row["precision"] for row in rows if row["precision"] not in ("", "fp")}
    if len(precisions) > 1:
        yield f"the platforms are compared in different precisions: {', '.join(sorted(precisions))}"


def render_json(result: Portability) -> bytes:
    """Strict JSON: schema, schema_version, units, platforms, summary (one object per row) and warnings; NaN is null."""
    document = {
        "schema": "ncu-roofline-portability",
        "schema_version": 1,
        "units": units_of(result, TABLES),
        **{name: json_rows(result, name, declared) for name, declared in TABLES.items()},
        "warnings": list(result.warnings),
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def document(result: Portability, *, title: str = "", warnings: Sequence[str] = ()) -> Document:
    """A table per platform and variant, and the choices behind it."""
    rows = result.platform_rows
    nothing = dict.fromkeys(_OF_RUNS)
    shown = [row if row["status"] == "yes" else {**row, **nothing, "bound": row["status"]} for row in rows]
    tells = "No room for {names}: a wider terminal, csv and json have them."
    table = Table("platforms", PORTABILITY_PLATFORMS, shown, _SHOWN, tells=tells)
    facts = _facts([row for row in rows if row["status"] == "yes"])
    return Document(title or "Performance portability", blocks=[table, (*facts, *warnings)])


def render_md(result: Portability, *, title: str = "") -> bytes:
    """The document as Markdown with a GitHub table, and warnings, which commands say elsewhere."""
    return markdown(document(result, title=title, warnings=result.warnings))


def _facts(ran: Sequence[Row]) -> Iterator[str]:
    """Which FLOPs, ceilings, levels and files stand behind the table."""
    units = [UNITS[unit].symbol for unit in dict.fromkeys(row["unit"] for row in ran)] or ["FLOP"]
    rate, intensity = (" or ".join(f"{unit}/{per}" for unit in units) for per in ("s", "byte"))
    yield (
        f"P: performance [{rate}], I: intensity [{intensity}], F: compute ceiling [{rate}], B: bandwidth ceiling [byte/s]; "
        "e: efficiency, PP: performance portability [both %]."
    )
    yield "e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H."
    if ran:
        # Of operations that are no FLOPs the ceiling is that of their precision, whose only roof it is.
        ceilings = [CEILINGS[row["ceiling"]] if row["unit"] == "flop" else precision_label(row["precision"]) for row in ran]
        counted = " and ".join(f"{unit}s" for unit in units)
        yield f"{ran[0]['flops'].capitalize()} {counted} under the ceiling of {' and '.join(dict.fromkeys(ceilings))}."
    names = ReportNames.apart(row["source"] for row in ran)
    for platform in dict.fromkeys(row["platform"] for row in ran):
        rows = [row for row in ran if row["platform"] == platform]
        compute, bandwidth, levels, sources = (
            list(dict.fromkeys(row[name] for row in rows)) for name in ("compute_origin", "bandwidth_origin", "level", "source")
        )
        labels = ", ".join(dict.fromkeys(level_style(level).label for level in levels))
        of_platform = f"compute ceiling {', '.join(compute)}, bandwidth of {labels} {', '.join(bandwidth)}"
        yield f"{clean(platform)}: {of_platform}; {', '.join(dict.fromkeys(clean(names(source)) for source in sources))}"
