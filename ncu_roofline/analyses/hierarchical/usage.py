"""What the frame of kernels says of each kernel beside its dots: verdict, reason, and how full the units of the GPU were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

from ncu_roofline.analyses.hierarchical.chart import kernel_labels, statuses
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.base.texts import clean, listed
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.verdict import TENSOR_UNKNOWN, TOO_SHORT, as_percent, as_times
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS as LEVELS
from ncu_roofline.rendering.frames import Frames, optional, rows, view_of

SM = "sm"  # in the place of a level id: the busiest unit inside the SMs
LESS = "\N{LESS-THAN OR EQUAL TO}"
MARK = "\N{DAGGER}"  # behind the name of a kernel whose tensor work is unknown
_NOTEWORTHY = 0.01  # of the bandwidth of a kernel's busiest level: less of an unrated level is no column's worth
LONGEST = "Of several launches of a kernel, time and share are of all, the rest is of the longest."
NAMED = 5
"""Kernels that a sentence names."""
KEY = ("report", "launch", "kernel", "step", "device")
Key = tuple[str, int, str, int, str]
BESIDE = 8  # kernels in the bars below a chart that has dots
_VISIBLE = 0.001  # a unit that no kernel uses more has no bar to see
_SUMMED = ("launches", "untimed", "seconds", "share", "recoverable", "judged_seconds", "short_seconds")
TIME = "time"  # in the place of a unit where nothing but times is known
_COLUMNS = {"share": "time_share", "step_label": "label"}  # where a field is not called as its column
_TEXTS = ("step_label", "missing", "device", "kind", "verdict", "reason", "limit", "busiest_unit")


@dataclass(frozen=True)
class Usage:
    """One row of the kernels, by the names of its columns; ``kernel`` as `kernel_labels` has it, ``status`` as `statuses`.

    ``bandwidths`` (byte/s) and ``fractions`` (ratios) have the levels of which these are known, and the SMs.
    ``longest``: launches, times and share are of several launches, the rest is of the longest of them.
    """

    report: str
    launch: int
    step: int
    kernel: str
    step_label: str
    launches: int
    seconds: float
    share: float
    status: str
    missing: str
    notes: str
    device: str = ""
    kind: str = ""
    untimed: int = 0
    verdict: str = ""
    reason: str = ""
    limit: str = ""
    limit_fraction: float = math.nan
    headroom: float = math.nan
    headroom_or_less: int = 0
    headroom_compute: float = math.nan
    recoverable: float = math.nan
    judged_seconds: float = math.nan
    short_seconds: float = math.nan
    busiest_unit: str = ""
    busiest_fraction: float = math.nan
    occupancy: float = math.nan
    occupancy_theoretical: float = math.nan
    waves: float = math.nan
    bandwidths: dict[str, float] = field(default_factory=dict)
    fractions: dict[str, float] = field(default_factory=dict)
    longest: bool = False

    @property
    def tensor_unknown(self) -> bool:
        """Whether tensor cores worked and nobody counted what."""
        return self.verdict == TENSOR_UNKNOWN

    @property
    def measured(self) -> bool:
        """Whether anything but its time is known of what it kept busy."""
        return bool(self.bandwidths or self.fractions or self.busiest_unit) or math.isfinite(self.occupancy)

    @property
    def launches_text(self) -> str:
        """``longest of 88`` where one launch speaks for others, else how many it sums up."""
        return f"longest of {self.launches}" if self.longest else str(self.launches)

    @property
    def name(self) -> str:
        """The kernel with the step of its sweep."""
        return f"{self.kernel}, {self.step_label}" if self.step_label else self.kernel

    @property
    def headroom_text(self) -> str:
        """The headroom: 1.9x, ≤1.9x where something may be fuller than what was looked at; "" where unknown."""
        return f"{LESS if self.headroom_or_less == 1 else ''}{times_text(self.headroom)}"

    @property
    def marked(self) -> str:
        """The name, with a mark where tensor work is unknown."""
        return f"{self.name} {MARK}" if self.tensor_unknown else self.name


def usages(frames: Frames) -> dict[Key, Usage]:
    """(report, launch, kernel id, step, device) -> its row, in the order of the frame."""
    labels, lacking = kernel_labels(frames), {"str": "", "int": 0, "float": math.nan}
    columns = {
        each.name: optional(frames, "kernels", _COLUMNS.get(each.name, each.name), lacking[str(each.type)])
        for each in fields(Usage)
        if each.type in lacking
    } | {"status": statuses(frames)}
    bandwidths = {level: optional(frames, "kernels", f"bandwidth_{level}", math.nan) for level in LEVELS}
    fractions = {level: optional(frames, "kernels", f"fraction_{level}", math.nan) for level in (SM, *LEVELS)}
    found = {}
    for index, key in enumerate(rows(frames, "kernels", *KEY)):
        row = {name: column[index] for name, column in columns.items()}
        row |= {name: clean(row[name]) for name in _TEXTS} | {"kernel": labels[row["report"], row["kernel"]]}
        if math.isnan(row["judged_seconds"]):  # frames made by hand need not say it
            judged = {"judged_seconds": math.isfinite(row["recoverable"]), "short_seconds": row["verdict"] == TOO_SHORT}
            row |= {name: row["seconds"] if known else 0.0 for name, known in judged.items()}
        known = [
            {name: of[index] for name, of in all_of.items() if math.isfinite(of[index])} for all_of in (bandwidths, fractions)
        ]
        found[key] = Usage(**row, bandwidths=known[0], fractions=known[1])
    return found


def by_time(found: Iterable[Usage]) -> list[Usage]:
    """The longest first; what has no time comes last."""
    return sorted(found, key=lambda one: -one.seconds if math.isfinite(one.seconds) else 0.0)


def without_dots(frames: Frames) -> list[Usage]:
    """Rows of the kernels that have no points, the longest first."""
    return by_time(usage for usage in usages(frames).values() if usage.status != "ok")


def answers(frames: Frames, absent: Sequence[Usage]) -> bool:
    """Whether a table of kernels without points says something: in the roofline view a time is enough."""
    return view_of(frames) == "roofline" and any(kernel.measured or math.isfinite(kernel.seconds) for kernel in absent)


def per_kernel(found: Iterable[Usage]) -> list[Usage]:
    """Launches of a kernel as one row, the longest first: time and share of all of them, the rest of the longest launch.

    Nothing is a mean: verdict, headroom, and how full each unit was are of one launch, so that they go together.
    """
    groups: dict[tuple[str, str, int], list[Usage]] = {}
    for one in found:
        groups.setdefault((one.device, one.kernel, one.step), []).append(one)
    return by_time(_together(members) if len(members) > 1 else members[0] for members in groups.values())


def _together(members: Sequence[Usage]) -> Usage:
    sums = {}
    for name in _SUMMED:
        known = [value for member in members if math.isfinite(value := getattr(member, name))]
        sums[name] = sum(known) if known else math.nan
    return replace(by_time(members)[0], **sums, longest=True)  # type: ignore[arg-type]


def unit_label(unit: str) -> str:
    """SM, L1, L2, DRAM ..."""
    return "SM" if unit == SM else level_style(unit).label


def units_of(found: Iterable[Usage]) -> list[str]:
    """The units of which some row knows the share: the SMs first, then levels from the inside outwards."""
    present = {unit for one in found for unit in one.fractions}
    return [unit for unit in (SM, *LEVELS) if unit in present]


def tensor_caveat(frames: Frames, mark: str = "") -> str:
    """The sentence on kernels whose tensor cores worked without anybody counting what, "" if there are none."""
    names = [one.name for one in by_time(usages(frames).values()) if one.tensor_unknown]
    if not names:
        return ""
    return f"{mark} Tensor work unknown, so no verdict, and missing from the work shown: {listed(names, NAMED)}.".strip()


def reasons(found: Iterable[Usage]) -> list[tuple[str, str]]:
    """(kernel, why it is as fast as it is), the longest first: one for each verdict on a kernel.

    Where reasons of launches with that verdict differ it is the longest launch's, and says so.
    """
    groups: dict[tuple[str, str], list[Usage]] = {}
    for one in by_time(one for one in found if one.reason):
        groups.setdefault((one.name, one.verdict), []).append(one)
    several, told = Counter(name for name, _ in groups), []
    for (name, _), members in groups.items():
        first, alike = members[0], len({member.reason for member in members}) == 1
        if first.launch >= 0 and (several[name] > 1 or not alike):
            name += f" (launch {first.launch}{f', longest of {len(members)}' if len(members) > 1 else ''})"
        told.append((name, first.reason))
    return told


def times_text(headroom: float) -> str:
    """A headroom: 1.9x; "" where unknown."""
    return as_times(headroom) if math.isfinite(headroom) else ""


def levels_of(found: Sequence[Usage]) -> list[str]:
    """Levels of which some row knows its share or moves some of its bytes, innermost first."""
    present = set(units_of(found))
    for one in found:
        largest = max(one.bandwidths.values(), default=0.0)
        present |= {level for level, rate in one.bandwidths.items() if rate >= _NOTEWORTHY * largest > 0}
    return [level for level in LEVELS if level in present]


@lru_cache(maxsize=1)
def _limits() -> dict[str, str]:
    """What each limit is called, by its id."""
    spec = load_spec()
    units = {unit.id: unit.label for unit in load_units().units}
    return units | {roof: precision.roof_label(roof) for precision in spec.precisions for roof in precision.roof_ids()}


def limit_text(one: Usage) -> str:
    """How near the nearest limit is, by its name where the verdict does not say that: ``663 GB/s, 74 %``, ``L2 15 %``."""
    if not one.limit:
        return ""
    share = as_percent(one.limit_fraction) if math.isfinite(one.limit_fraction) else ""
    if ": " in one.verdict:
        rate = one.bandwidths.get(one.limit, math.nan)
        return ", ".join(filter(None, (format_value(rate, "byte/s", 3) if math.isfinite(rate) else "", share)))
    name = level_style(one.limit).label if one.limit in LEVELS else _limits().get(one.limit, one.limit)
    return f"{name} {share}".rstrip()


def busiest_text(one: Usage) -> str:
    """The busiest unit and its share: ``L2 85.1 %``."""
    share = percent(one.busiest_fraction) if math.isfinite(one.busiest_fraction) else ""
    return f"{one.busiest_unit} {share}".rstrip() if one.busiest_unit else ""


def occupancy_text(one: Usage) -> str:
    """Achieved of theoretical occupancy, as far as known: ``43 of 50 %``."""
    achieved = f"{100 * one.occupancy:.0f} " if math.isfinite(one.occupancy) else ""
    possible = f"of {100 * one.occupancy_theoretical:.0f} " if math.isfinite(one.occupancy_theoretical) else ""
    return f"{achieved}{possible}%" if achieved or possible else ""


def waves_text(one: Usage) -> str:
    """Waves of blocks in three digits."""
    return "" if not math.isfinite(one.waves) else f"{one.waves:.0f}" if one.waves >= 100 else f"{one.waves:.3g}"


def level_text(one: Usage, level: str, *, bare: bool = False) -> str:
    """Bandwidth and share of its peak, as far as known: ``512 GB/s, 43.1 %``; ``bare`` in GB/s: ``512 43.1 %``."""
    rate, share = one.bandwidths.get(level, math.nan), one.fractions.get(level, math.nan)
    number = f"{rate / 1e9:.0f}" if rate >= 1e12 else f"{rate / 1e9:.3g}"
    parts = [number if bare else format_value(rate, "byte/s", 3)] if math.isfinite(rate) else []
    return (" " if bare else ", ").join([*parts, percent(share)] if math.isfinite(share) else parts)


@dataclass(frozen=True)
class Bars:
    """What is drawn: ``units`` from the SMs outwards, the longest kernels, and how many there are."""

    units: tuple[str, ...]
    rows: tuple[Usage, ...]
    total: int

    @property
    def of_time(self) -> bool:
        """Whether the bars are shares of the time, as nothing else is known."""
        return self.units == (TIME,)

    def shares(self, row: Usage) -> dict[str, float]:
        """Shares of a row by unit, as ratios; what is unknown is absent."""
        return {TIME: row.share} if self.of_time else row.fractions


def bars(frames: Frames, most: int) -> Bars:
    """The bars of the ``most`` longest kernels without dots, all launches of a kernel together; none where nothing is known."""
    absent = without_dots(frames)
    if not answers(frames, absent):
        return Bars((), (), 0)
    kernels = per_kernel(absent)
    shown = tuple(kernels[:most])
    units = [unit for unit in units_of(shown) if any(one.fractions.get(unit, 0.0) >= _VISIBLE for one in shown)]
    return Bars(tuple(units or units_of(shown)) or (TIME,), shown, len(kernels))


def bar_notes(data: Bars) -> list[str]:
    """What the bars leave out."""
    notes = [LONGEST] if any(row.longest for row in data.rows) else []
    if len(data.rows) < data.total:
        notes.append(f"Bars of the {len(data.rows)} longest of {data.total} kernels without dots.")
    return notes
