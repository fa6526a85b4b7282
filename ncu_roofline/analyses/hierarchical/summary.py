"""A Roofline as the rows that people read in a terminal or a document: one per kernel and precision, levels side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import Band, empirical_name, kernel_labels
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_order, level_style, precision_label, precision_order
from ncu_roofline.analyses.hierarchical.usage import Key, Usage, by_time, percent, tensor_caveat, usages
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.thresholds import COMPLETE
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.ranking import at_stake, order
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import Frames, column, rows


@dataclass(frozen=True)
class Row:
    """One kernel and precision; ``intensity`` by level id in ``unit`` per byte, ``performance`` in ``unit`` per second.

    ``fraction``: of the lowest roof over all levels; where the precision is one of several of a kernel, which share memory, of
    its own compute roof.  A kernel without dots has one row, without precision and unit.  ``step`` is -1 outside of sweeps;
    ``fma_share`` and ``mix_fraction`` (performance over the FMA-mix ceiling) are NaN where unknown.  ``usage`` is the kernel's
    own row: its verdict holds for all its precisions.
    """

    kernel: str
    launch: int
    launches: int
    seconds: float
    share: float
    precision: str
    intensity: dict[str, float]
    performance: float
    unit: str
    fraction: float
    binds: str
    step: int = -1
    step_label: str = ""
    fma_share: float = math.nan
    mix_fraction: float = math.nan
    lanes: float = math.nan
    compute_roof: float = math.nan
    usage: Usage | None = None

    @property
    def verdict(self) -> str:
        """The kernel's verdict, "" in views that give none."""
        return self.usage.verdict if self.usage else ""


@dataclass(frozen=True)
class RoofLine:
    """A roof over the launches, by its origins."""

    device: str
    label: str
    bands: Mapping[str, Band]
    unit: str

    def text(self, origin: str) -> str:
        """The value or range of an origin with its unit, "" where not given."""
        return self.bands[origin].text(self.unit) if origin in self.bands else ""


@dataclass(frozen=True)
class RooflineSummary:
    """Everything a table for people shows; ``absent`` are the kernels without dots, which have rows, too."""

    heading: str
    levels: tuple[str, ...]
    level_labels: tuple[str, ...]
    rows: tuple[Row, ...]
    absent: tuple[Usage, ...]
    roofs: tuple[RoofLine, ...]
    notes: tuple[str, ...]
    usages: tuple[Usage, ...] = ()
    empirical: str = "measured"

    @property
    def dots(self) -> bool:
        """Whether any kernel has some."""
        return any(row.precision for row in self.rows)

    @property
    def judged(self) -> bool:
        """Whether the view gives verdicts."""
        return any(usage.verdict for usage in self.usages)


def summary(frames: Frames) -> RooflineSummary:
    """The rows of a Roofline, that which could save most first, its precisions together."""
    levels = level_order(set(column(frames, "points", "level")))
    found = usages(frames)
    absent = by_time(one for one in found.values() if one.status != "ok")
    about = (captions.above_note, captions.clock_note, captions.roof_note, captions.source_note)
    notes = (tensor_caveat(frames), *(note(frames) for note in about))
    return RooflineSummary(
        captions.subtitle(frames),
        tuple(levels),
        tuple(level_style(level).label for level in levels),
        tuple(_ordered([*_rows(frames, found), *map(_without_dots, absent)])),
        tuple(absent),
        tuple(_roofs(frames)),
        tuple(filter(None, notes)),
        tuple(by_time(found.values())),
        empirical_name(frames),
    )


def _rows(frames: Frames, found_usages: Mapping[Key, Usage]) -> list[Row]:
    labels, bound = kernel_labels(frames), _bound_labels(frames)
    found: dict[tuple[str, int, str, int, str, str], Row] = {}
    columns = ("report", "launch", "kernel", "step", "device", "precision", "level", "intensity")
    more = (
        "launches",
        "seconds",
        "performance",
        "unit",
        "binding_fraction",
        "binds",
        "label",
        "fma_share",
        "mix_roof",
        "lanes",
        "compute_roof",
    )
    for report, launch, kernel, step, device, precision, level, intensity, *rest in rows(frames, "points", *columns, *more):
        key = (report, launch, kernel, step, precision, device)
        row = found.get(key)
        if row is None:
            launches, seconds, performance, unit, fraction, binds, label, fma_share, mix_roof, lanes, compute_roof = rest
            usage = found_usages.get((report, launch, kernel, step, device))
            found[key] = row = Row(
                kernel=labels[report, kernel],
                launch=launch,
                launches=launches,
                seconds=seconds,
                share=usage.share if usage else math.nan,
                precision=precision,
                intensity={},
                performance=performance,
                unit=unit,
                fraction=fraction,
                binds=bound.get(binds, clean(binds)),
                step=step,
                step_label=clean(label),
                fma_share=fma_share,
                mix_fraction=performance / mix_roof if mix_roof else math.nan,
                lanes=lanes,
                compute_roof=compute_roof or math.nan,
                usage=usage,
            )
        row.intensity[level] = intensity
    kernels: dict[object, list[Row]] = {}
    for row in found.values():
        kernels.setdefault((id(row.usage), row.kernel, row.launch, row.step, row.step_label), []).append(row)
    return [row for members in kernels.values() for row in _of_kernel(members)]


def _of_kernel(members: Sequence[Row]) -> list[Row]:
    """The rows of a kernel: one for a precision and the part of it that is all of it, parts of a sum under their own roofs."""
    by_id = {row.precision: row for row in members}
    parents = {one.id: one.part_of for one in load_spec().precisions if one.id in by_id and not one.disjoint}
    whole = {
        parent
        for part, parent in parents.items()
        if parent in by_id and by_id[part].performance >= (1 - COMPLETE) * by_id[parent].performance
    }
    own = MIXED in by_id
    return [
        replace(row, fraction=row.performance / row.compute_roof) if own and row.precision != MIXED else row
        for row in members
        if row.precision not in whole
    ]


def _without_dots(usage: Usage) -> Row:
    """The row of a kernel that no chart shows."""
    return Row(
        kernel=usage.kernel,
        launch=usage.launch,
        launches=usage.launches,
        seconds=usage.seconds,
        share=usage.share,
        precision="",
        intensity={},
        performance=math.nan,
        unit="",
        fraction=math.nan,
        binds="",
        step=usage.step,
        step_label=usage.step_label,
        usage=usage,
    )


def _ordered(found: Sequence[Row]) -> list[Row]:
    """By what could be saved, as `ranked`; steps of a sweep stay together, in their order, and precisions, their sum first."""
    groups: dict[object, list[Row]] = {}
    for row in found:
        groups.setdefault(_group(row), []).append(row)
    members = list(groups.values())
    ranked = [members[place] for place in order(map(_stakes, members))]

    def place(row: Row) -> tuple[object, ...]:
        return row.step, row.precision != "mixed", precision_order(row.precision)

    return [row for one in ranked for row in sorted(one, key=place)]


def _stakes(rows: Sequence[Row]) -> tuple[str, float, float]:
    """GPU, seconds and seconds that could be saved of some rows of a kernel, all its steps together."""
    found = list({id(row.usage): row.usage for row in rows if row.usage}.values())
    if not found:
        return "", rows[0].seconds, math.nan
    known = [one for one in found if one.seconds > 0]
    return found[0].device, sum(one.seconds for one in known), sum(at_stake(one.seconds, one.recoverable) for one in known)


def _group(row: Row) -> object:
    return row.kernel if row.step >= 0 else id(row.usage) if row.usage else (row.kernel, row.launch)


def _bound_labels(frames: Frames) -> dict[str, str]:
    """Roof id -> label; levels go by their short label."""
    labels = {roof: clean(label) for roof, label in rows(frames, "roofs", "roof", "label")}
    return {
        roof: level_style(roof).label if roof == level else labels[roof]
        for roof, level in rows(frames, "roofs", "roof", "level")
    }


def _roofs(frames: Frames) -> list[RoofLine]:
    """Compute roofs from high to low, then bandwidths; each over all launches and reports."""
    bands: dict[tuple[str, str], dict[str, Band]] = {}
    about: dict[tuple[str, str], tuple[str, str, str]] = {}
    owners: dict[tuple[str, str], str] = {}
    columns = ("device", "roof", "kind", "precision", "label", "unit", "origin", "value", "value_min", "value_max")
    for device, roof, kind, precision, label, unit, origin, *values in rows(frames, "roofs", *columns):
        if origin == UNUSED:
            continue
        by_origin = bands.setdefault((device, roof), {})
        by_origin[origin] = Band.of(*values).joined(by_origin.get(origin))
        wall_of = precision_label(precision) if kind == "wall" and precision else ""
        owners[device, roof] = wall_of
        about[device, roof] = (kind, ", ".join(filter(None, (wall_of, clean(label) or roof))), unit)
    kinds = ("compute", "bandwidth", "wall")

    def place(key: tuple[str, str]) -> tuple[object, ...]:
        kind = about[key][0]
        highest = max(band.high for band in bands[key].values())
        return key[0], kinds.index(kind) if kind in kinds else len(kinds), owners[key], -highest

    return [RoofLine(key[0], about[key][1], bands[key], about[key][2]) for key in sorted(bands, key=place)]


def intensity_text(value: float) -> str:
    """An intensity in three digits, "" for a missing level: 2.58, 0.0913, 3.1e-05."""
    if not math.isfinite(value):
        return ""
    return f"{value:.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def intensity_unit(data: RooflineSummary) -> str:
    """What intensities count: FLOP/B, OP/B or both; inst/TXN in the instruction view."""
    return " or ".join(dict.fromkeys(UNITS[COUNTED[row.unit].intensity_unit].symbol for row in data.rows if row.unit))


def performance_text(row: Row) -> str:
    """Performance with its unit, "" without dots."""
    return "" if not row.precision else format_value(row.performance, f"{row.unit}/s", 3)


def share_text(value: float) -> str:
    """A share in per cent, "" for a missing one: not every kernel has a mix of FMAs."""
    return percent(value) if math.isfinite(value) else ""


def time_text(seconds: float) -> str:
    """A run time with its unit."""
    return format_value(seconds, "second", 3)


def label_of(row: Row) -> str:
    """Readable precision, "" without dots."""
    return precision_label(row.precision) if row.precision else ""
