"""One row per kernel: what the frames say of it, how full it kept the units of the GPU; and the answer in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.style import level_style, precision_order
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, conjoined, listed, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.verdict import COMPLETE, TENSOR_ACTIVE, TENSOR_UNKNOWN, TOO_SHORT, as_percent, as_times
from ncu_roofline.model import Measurements, Roofline
from ncu_roofline.model.columns import KERNELS
from ncu_roofline.model.columns import LEVELS_WITH_COLUMNS as LEVELS
from ncu_roofline.model.selection import WORTH, at_stake, order
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import Frames, optional, records, rows, table, view_of

KEY = ("report", "launch", "kernel", "step", "device")
Key = tuple[Any, ...]
ZERO = frozenset({"zero-flop", "zero-asked"})  # work was counted, and is none: nothing is lacking
SM = "sm"  # in the place of a level: the busiest unit inside the SMs
MARK = "\N{DAGGER}"  # behind the name of a kernel whose tensor work is unknown
LONGEST = "Of several launches of a kernel, time and share are of all, the rest is of the longest."
NAMED = 5  # kernels that a sentence names
MATTERS = 0.01  # share of the time
SENTENCES = 3  # kernels that have a sentence, at most
_NOTEWORTHY = 0.01  # of the bandwidth of a kernel's busiest level: less of an unrated level is no column's worth
_VISIBLE = 0.001  # a unit that no kernel uses more has no bar to see
_TOLD = 0.005  # a part of the time below this is not told
_ALL, _MOST = 0.99, 0.5  # from these shares of a time on something is known of all of it, and is worth telling
_SUMMED = ("launches", "untimed", "seconds", "time_share", "recoverable", "judged_seconds", "short_seconds")
_PLAIN = ("report", "launch", "step", "status", "notes", "headroom_or_less", "limit_fraction", "headroom", "headroom_compute")
_NUMBERS = ("busiest_fraction", "occupancy", "occupancy_theoretical", "waves", "tensor_active")
_TEXTS = ("label", "missing", "device", "kind", "verdict", "reason", "limit", "busiest_unit", "nvtx")


class Kernel(SimpleNamespace):
    """One row of the kernels with columns as attributes; ``kernel`` as `kernel_labels` has it.

    ``status`` is "zero-asked" where all work asked for was counted and is zero, "uncounted-asked" where it was not counted,
    "unshown" where it is there, but at none of the levels chosen.
    ``bandwidths`` (byte/s) and ``fractions`` (ratios) have the levels of which these are known, and the SMs; ``works`` the
    operations of each precision.
    ``longest``: launches, times and share are of several launches, the rest is of the longest of them.
    ``name`` has the step of its sweep; ``tensor_unknown``: tensor cores worked and nobody counted what; ``launches_text`` is
    ``longest of 88`` where one launch speaks for others, ``headroom_text`` ``≤1.9x`` where something that was not looked at may
    be fuller, "" where it is unknown.
    """

    def __init__(self, **columns: Any) -> None:
        super().__init__(**columns)
        self.name = f"{self.kernel}, {self.label}" if self.label else str(self.kernel)
        self.tensor_unknown = bool(self.verdict == TENSOR_UNKNOWN)
        self.marked = f"{self.name} {MARK}" if self.tensor_unknown else self.name
        self.launches_text = f"longest of {self.launches}" if self.longest else str(self.launches)
        less = "\N{LESS-THAN OR EQUAL TO}" if self.headroom_or_less == 1 else ""
        self.headroom_text = f"{less}{as_times(self.headroom)}" if math.isfinite(self.headroom) else ""


class Answer(NamedTuple):
    """What is to be said of one GPU: ``sentences`` on the whole and then on the kernels that could save most time."""

    device: str
    sentences: tuple[str, ...]


def kernel_labels(frames: Frames) -> dict[tuple[str, str], str]:
    """(report, kernel) -> label: the short name, with the report where several reports have that kernel outside of a sweep."""
    pairs = {row for name in ("kernels", "points") for row in rows(frames, name, "report", "kernel", "step")}
    holders = Counter(kernel for kernel, _ in {(kernel, report) for report, kernel, step in pairs if step < 0})
    swept = {kernel for _, kernel, step in pairs if step >= 0}
    return {
        (report, kernel): clean(kernel)
        if holders[kernel] <= 1 or kernel in swept
        else f"{clean(kernel)} [{clean(PurePath(report).stem)}]"
        for report, kernel, _ in pairs
    }


def kernels_of(frames: Frames) -> dict[Key, Kernel]:
    """KEY -> its row, in the order of the frame."""
    labels, lacking = kernel_labels(frames), {"str": "", "int": 0, "float": math.nan}
    missing = {column.name: lacking[column.dtype] for column in KERNELS}
    read = {name: optional(frames, "kernels", name, missing[name]) for name in (*_SUMMED, *_PLAIN, *_NUMBERS)}
    read |= {name: list(map(clean, optional(frames, "kernels", name, ""))) for name in _TEXTS}
    rates, shares = (
        {level: optional(frames, "kernels", f"{kind}_{level}", math.nan) for level in (SM, *LEVELS)}
        for kind in ("bandwidth", "fraction")
    )
    drawn = set(rows(frames, "points", *KEY)) if view_of(frames) in ("roofline", "instruction", "counted") else None
    asked: tuple[str, ...] = getattr(frames, "asked", ())
    work = [
        values
        for precision, values in getattr(frames, "work", {}).items()
        if any(precision == one or precision.startswith(f"{one}.") for one in asked)
    ]
    found = {}
    for index, key in enumerate(rows(frames, "kernels", *KEY)):
        row = Kernel(**{name: values[index] for name, values in read.items()}, kernel=labels[key[0], key[2]], longest=False)
        row.works = {name: float(values[index]) for name, values in getattr(frames, "work", {}).items()}
        row.bandwidths, row.fractions = (
            {level: of[index] for level, of in levels.items() if math.isfinite(of[index])} for levels in (rates, shares)
        )
        if row.status == "ok" and drawn is not None and key not in drawn:
            counted = [float(values[index]) for values in work if math.isfinite(values[index])]
            unseen = not counted or (any(one.startswith("tensor") for one in asked) and row.tensor_active >= TENSOR_ACTIVE)
            row.status = "uncounted-asked" if unseen else "zero-asked"
            if not asked or any(one > 0 for one in counted):
                row.status = "unshown"
        found[key] = row
    return found


def points_of(frames: Frames, columns: Iterable[str]) -> dict[Key, dict[str, list[dict[str, Any]]]]:
    """KEY -> precision -> its points, one at each level, as rows of some columns."""
    points = table(frames, "points")
    every = records({name: points[name] for name in (*KEY, "precision", *columns)})
    of_kernels = grouped((tuple(row[name] for name in KEY), row) for row in every)
    return {key: grouped((row["precision"], row) for row in members) for key, members in of_kernels.items()}


def works_of(frames: Frames, columns: Iterable[str]) -> dict[Key, list[list[dict[str, Any]]]]:
    """KEY -> the points of each precision as `points_of` has them, those of the sum over pipes first.

    A precision and the part of it that is all of it are one: the part.
    """
    parents = {one.id: one.part_of for one in load_spec().precisions if not one.disjoint}
    found = {}
    for key, kinds in points_of(frames, columns).items():
        speeds = {name: points[0]["performance"] for name, points in kinds.items()}
        whole = {parents[name] for name in kinds if parents.get(name) in kinds
                 and speeds[name] >= (1 - COMPLETE) * speeds[parents[name]]}  # fmt: skip
        names = sorted(kinds.keys() - whole, key=lambda name: (name != MIXED, precision_order(name)))
        found[key] = [kinds[name] for name in names]
    return found


def largest(every: Iterable[Kernel], drawable: set[str], limit: int) -> tuple[list[Kernel], int]:
    """The kernels that can be drawn, a row for each name, the longest of ``every`` first, and how many there are.

    They have ``marked``, the name with a mark where tensor work is unknown, and ``matters`` where one takes more than next to
    none of the time of a GPU: only then its dots decide how far the axes reach.
    """
    given = list(every)
    unknown, whole = {one.kernel for one in given if one.tensor_unknown}, seconds_by_gpu(given)
    spent = grouped(((one.device, one.kernel), one.seconds) for one in given)
    matter = {name for (device, name), seconds in spent.items() if not sum(seconds) < MATTERS * whole[device]}
    found = [one for one in per_kernel(given, lambda one: one.kernel) if one.kernel in drawable]
    for one in found:
        one.marked = f"{one.kernel} {MARK}" if one.kernel in unknown else one.kernel
        one.matters = one.kernel in matter
    return found[:limit], len(found)


def by_time(found: Iterable[Kernel]) -> list[Kernel]:
    """The longest first; what has no time comes last, that with most operations of a precision before the others."""

    def place(one: Kernel) -> tuple[float, float]:
        timed = math.isfinite(one.seconds)
        return (-one.seconds, 0.0) if timed else (0.0, -max((work for work in one.works.values() if work > 0), default=0.0))

    return sorted(found, key=place)


def ranked(found: Iterable[Kernel]) -> list[Kernel]:
    """What could save most time first; what takes next to none of the time of its GPU behind it (see `order`)."""
    given = list(found)
    return [given[place] for place in order((one.device, one.seconds, one.recoverable) for one in given)]


def per_kernel(
    found: Iterable[Kernel], by: Callable[[Kernel], Hashable] = lambda one: (one.device, one.kernel, one.step)
) -> list[Kernel]:
    """Launches of a kernel as one row, the longest first: time and share of all of them, the rest of the longest launch.

    Nothing is a mean: verdict, headroom, and how full each unit was are of one launch, so that they go together.
    """
    groups = grouped((by(one), one) for one in by_time(found))
    kernels = []
    for longest, *others in groups.values():
        summed: dict[str, Any] = {"longest": True} if others else {}
        for name in _SUMMED if others else ():
            known = [value for one in (longest, *others) if math.isfinite(value := getattr(one, name))]
            summed[name] = sum(known) if known else math.nan
        kernels.append(Kernel(**{**vars(longest), **summed}) if others else longest)
    return by_time(kernels)


def without_dots(frames: Frames) -> list[Kernel]:
    return by_time(one for one in kernels_of(frames).values() if one.status != "ok")


def tells(frames: Frames, absent: Sequence[Kernel]) -> bool:
    """Whether a table of kernels without points says something: in the roofline view a time is enough."""
    return view_of(frames) in ("roofline", "counted") and any(
        one.bandwidths or one.fractions or one.busiest_unit or math.isfinite(one.occupancy) or math.isfinite(one.seconds)
        for one in absent
    )


def unit_label(unit: str) -> str:
    return "SM" if unit == SM else level_style(unit).label


def units_of(found: Sequence[Kernel]) -> list[str]:
    """Units that some row used enough to see it, the SMs first, then levels from the inside outwards; all if none is."""
    present = [unit for unit in (SM, *LEVELS) if any(unit in one.fractions for one in found)]
    return [unit for unit in present if any(one.fractions.get(unit, 0.0) >= _VISIBLE for one in found)] or present


def levels_of(found: Sequence[Kernel]) -> list[str]:
    """Levels of which some row knows its share or moves some of its bytes, innermost first."""
    present = {level for one in found for level in one.fractions}
    for one in found:
        most = max(one.bandwidths.values(), default=0.0)
        present |= {level for level, rate in one.bandwidths.items() if rate >= _NOTEWORTHY * most > 0}
    return [level for level in LEVELS if level in present]


def tensor_caveat(frames: Frames, mark: str = "") -> str:
    """The sentence on kernels whose tensor cores worked without anybody counting what, "" if there are none."""
    names = [one.name for one in by_time(kernels_of(frames).values()) if one.tensor_unknown]
    said = f"{mark} Tensor FLOPs not collected, so no verdict, and the work shown is incomplete: {listed(names, NAMED)}."
    return said.strip() if names else ""


def reasons(found: Iterable[Kernel]) -> list[tuple[str, str]]:
    """(kernel, why it is as fast as it is), the longest first: one for each verdict on a kernel.

    Where reasons of launches with that verdict differ it is the longest launch's, and says so.
    """
    groups = grouped(((one.name, one.verdict), one) for one in by_time(one for one in found if one.reason))
    several, told = Counter(name for name, _ in groups), []
    for (name, _), members in groups.items():
        first = members[0]
        if first.launch >= 0 and (several[name] > 1 or len({one.reason for one in members}) > 1):
            name += f" (launch {first.launch}{f', longest of {len(members)}' if len(members) > 1 else ''})"
        told.append((name, first.reason))
    return told


def leading(roofline: Roofline, m: Measurements, reports: Container[str]) -> Iterator[tuple[Kernel, Measurements]]:
    """The kernel that comes first on each GPU, and its longest launch in some ``reports``; ``roofline`` is that of ``m``."""
    kernels, keys = kernels_of(roofline), rows(roofline, "kernels", *KEY)
    found = [(kernels[key], name) for key, name in zip(keys, roofline.kernel_columns["name"].tolist(), strict=True)]
    longest = np.argsort(-np.nan_to_num(m.seconds)).tolist()
    for device in dict.fromkeys(one.device for one, _ in found):
        first = ranked(per_kernel(one for one, _ in found if one.device == device))[0]
        names = {name for one, name in found if (one.device, one.kernel) == (device, first.kernel)}
        launches = [row for row in longest if m.name[row] in names and m.report[row] in reports]
        if launches:
            yield first, m.take(np.array(launches[:1]))


# The answer in sentences


def answers_of(frames: Frames) -> list[Answer]:
    """One per GPU, that with most time first; none for frames without verdicts.

    Of a sweep only the last step is judged, as its steps are the same work done again.
    """
    devices = grouped((one.device, one) for one in kernels_of(frames).values())
    judged = {device: members for device, members in devices.items() if any(one.verdict for one in members)}
    longest = sorted(judged, key=lambda device: -_seconds(judged[device]))
    told: tuple[str, ...] = getattr(frames, "told", ())  # what is to be known before
    return [Answer(device, (*told, *_sentences(frames, device, judged[device]))) for device in longest]


def seconds_by_gpu(found: Iterable[Kernel]) -> dict[str, float]:
    return {device: _seconds(members) for device, members in grouped((one.device, one) for one in found).items()}


def _seconds(found: Iterable[Kernel]) -> float:
    return float(sum(one.seconds for one in found if one.seconds > 0))


def _sentences(frames: Frames, device: str, found: Sequence[Kernel]) -> Iterator[str]:
    last = max(one.step for one in found)
    judged = [one for one in found if one.step == last]
    kernels = ranked(per_kernel(judged))
    total = whole = _seconds(kernels)
    if last >= 0:
        yield f"{_steps(found, last)}; at {kernels[0].label or 'the last'} {_headroom(judged)}."
    else:
        counts, launches = counts_text(kernels), sum(one.launches for one in kernels)
        everything = next((one for one in getattr(frames, "everything", ()) if clean(one.device) == device), None)
        whole = everything.seconds if everything else total
        if everything and launches < everything.launches and not any(one.kind == "application" for one in kernels):
            # Where a selection leaves some out: 2 of 6 kernels, 4 of 9 launches, 46 % of the time.
            pairs = [(len({one.kernel for one in kernels}), everything.kernels, "kernel")]
            pairs.append((launches, everything.launches, "launch"))
            parts = [f"{n:,} of {plural(all_, noun)}" if n < all_ else plural(n, noun) for n, all_, noun in pairs]
            parts = parts[: 1 if pairs[0][:2] == pairs[1][:2] else None]
            counts = ", ".join([*parts, *([f"{as_percent(total / whole)} of the time"] if total > 0 and whole > 0 else [])])
        untimed = sum(one.untimed if one.seconds > 0 else one.launches for one in kernels)
        without = f" ({plural(untimed, 'launch')} without a run time)" if untimed else ""
        time = f", {format_value(total, 'second', 3)}{without}" if total > 0 else ""
        yield f"{counts}{time}: {_headroom(judged)}."
        if not time and (counted := _counted(judged)):
            yield f"Counted were {counted}."
    spots: Mapping[tuple[str, str], str] = getattr(frames, "spots", {})
    more = [one for one in kernels[1:SENTENCES] if at_stake(one.seconds, one.recoverable) >= WORTH * total > 0]
    for one in (kernels[0], *more):
        share = [f"{as_percent(one.seconds / whole)} of the time"] if len(kernels) > 1 and one.seconds > 0 else []
        launch = ["in its longest launch"] if one.longest else []
        said = f"{one.name}: {', '.join([*share, *launch, one.reason or one.verdict])}"
        yield f"{'; '.join(filter(None, (said, spots.get((device, one.kernel), ''))))}."


def _counted(found: Sequence[Kernel]) -> str:
    """The operations of all of them by precision: ``30.2 GFLOP in FP32 and 1 GFLOP in FP16``."""
    sums = {p: sum(work for one in found if (work := one.works.get(p.id, 0)) > 0) for p in load_spec().precisions}
    told = [f"{format_value(total, p.unit, 3)} in {p.label}" for p, total in sums.items() if total and not p.part_of]
    return conjoined(told)


def counts_text(kernels: Sequence[Kernel]) -> str:
    """``3 kernels, 105 launches``, or ``3 kernels`` where each was launched once."""
    count, launches = len({(one.device, one.kernel) for one in kernels}), sum(one.launches for one in kernels)
    noun = "application" if kernels and all(one.kind == "application" for one in kernels) else "kernel"
    return plural(count, noun) if launches == count else f"{plural(count, noun)}, {launches:,} launches"


def _headroom(found: Sequence[Kernel]) -> str:
    """Headroom of all launches that have one together, and of which part of the time it is not known."""
    timed = [one for one in found if one.seconds > 0]
    known = [one for one in timed if math.isfinite(one.recoverable)]
    if not timed:
        return "the run time is not known"
    if not known:
        return TOO_SHORT if all(one.verdict == TOO_SHORT for one in timed) else "its headroom is not known"

    def times(headroom: float) -> str:  # that of several launches together is small where one of them has much
        return f"{headroom:.2f}x" if len(known) > 1 and headroom < 2 else as_times(headroom)

    total, whole, saved = _seconds(timed), sum(one.judged_seconds for one in known), sum(one.recoverable for one in known)
    or_less = " or less" if any(one.headroom_or_less == 1 for one in known) else ""
    said = f"headroom {times(whole / (whole - saved))}{or_less} at present traffic and instructions"
    computing = [one for one in known if math.isfinite(one.headroom_compute)]
    counted = sum(one.judged_seconds for one in computing)
    if counted >= _MOST * whole:
        needed = sum(one.judged_seconds / one.headroom_compute for one in computing)
        part = "" if counted >= _ALL * whole else f" for {percent(counted / total)} of the time"
        said += f", {times(counted / needed)} to the compute roofs{part}"
    short = sum(one.short_seconds for one in timed) / total
    unknown = 1 - whole / total - short
    said += f"; unknown for {percent(unknown)} of the time" if unknown >= _TOLD else ""
    return said + (f"; {percent(short)} of the time is in launches {TOO_SHORT}" if short >= _TOLD else "")


def _steps(found: Sequence[Kernel], last: int) -> str:
    steps = sorted({one.step for one in found})
    first, final = ([one for one in found if one.step == step] for step in (steps[0], last))
    before, after = _seconds(first), _seconds(final)
    name = f"{len(steps)} steps, {first[0].label or 'the first'} to {final[0].label or 'the last'}"
    if not before > 0 or not after > 0:
        return name
    change = f"{before / after:.3g}x as fast" if after <= before else f"{after / before:.3g}x as long"
    return f"{name}: {format_value(before, 'second', 3)} to {format_value(after, 'second', 3)}, {change}"
