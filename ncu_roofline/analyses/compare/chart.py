"""A comparison as plain data for pictures: dots before and after in rooflines of the new GPU, and the kernels that matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered, Row, level_of, rows_of
from ncu_roofline.analyses.compare.frames import Comparison as ComparisonFrames
from ncu_roofline.analyses.compare.kernels import SMALL_SHARE
from ncu_roofline.analyses.hierarchical.style import precision_label, precision_order
from ncu_roofline.base.texts import clean
from ncu_roofline.chips import load_spec
from ncu_roofline.model.columns import UNUSED

MAX_PANELS = 4
_CORE = ""  # the group of all precisions outside of tensor cores
_Key = tuple[int, str, str]  # row of the kernels, precision, level


@dataclass(frozen=True)
class Dot:
    """One kernel in one report: FLOP/B (or OP/B) and FLOP/s (or OP/s)."""

    intensity: float
    performance: float


@dataclass(frozen=True)
class Move:
    """A kernel that both reports have, at one memory level: its dots, None where one is unknown, and what is said of it."""

    number: int
    label: str
    said: str
    outcome: str
    level: str
    precision: str
    before: Dot | None
    after: Dot

    @property
    def dots(self) -> list[Dot]:
        """The dots that are known, the new one last."""
        return [dot for dot in (self.before, self.after) if dot]


@dataclass(frozen=True)
class Roof:
    """A roof of the new report: measured where it was, else theoretical; in FLOP/s, OP/s or B/s."""

    kind: str
    level: str
    label: str
    value: float
    unit: str
    origin: str


@dataclass(frozen=True)
class MovePanel:
    """One set of axes: one GPU and one group of precisions, work in ``unit``."""

    title: str
    unit: str
    moves: tuple[Move, ...]
    roofs: tuple[Roof, ...]

    def of_kind(self, kind: str) -> list[Roof]:
        """The roofs of one kind, highest first."""
        return sorted((roof for roof in self.roofs if roof.kind == kind), key=lambda roof: -roof.value)


@dataclass(frozen=True)
class Line:
    """A kernel in the list: run times of all launches [s], shares of the roof, NaN where unknown, and what is said of them."""

    number: int
    label: str
    outcome: str
    said: str
    times: tuple[float, float]
    times_text: str
    shares: tuple[float, float]
    shares_text: str
    verdict: str


@dataclass(frozen=True)
class MoveChart:
    """Everything a picture shows; ``timed`` where times may be compared; ``rest`` counts rows that are not in the list."""

    panels: tuple[MovePanel, ...]
    lines: tuple[Line, ...]
    timed: bool
    rest: int
    panels_left_out: int


def move_chart(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], top: int = changes.MOST) -> MoveChart:
    """The chart of a pair of reports: ``top`` kernels, first those that matter, then those of most time."""
    chosen = _chosen(one, kernels, top)
    labels, timed = changes.labels_of(kernels), changes.same_gpu(one)
    panels = _panels(frames, one, chosen, labels) if timed else []
    lines = tuple(_line(number, row, labels[number]) for number, row in chosen)
    return MoveChart(tuple(panels[:MAX_PANELS]), lines, timed, len(kernels) - len(lines), max(len(panels) - MAX_PANELS, 0))


def _chosen(one: Row, kernels: Sequence[Numbered], top: int) -> list[Numbered]:
    """Those that matter, then the longest that are worth a look; if there is none, the first."""
    shown, rest = changes.matters(one, kernels)
    longest = sorted((pair for pair in rest if _long(pair[1])), key=lambda pair: -pair[1]["time_share"])
    kept = {number for number, _ in [*shown, *longest][:top]}
    return [pair for pair in kernels if pair[0] in kept] or list(kernels[:1])


def _long(row: Row) -> bool:
    return bool(row["time_share"] >= SMALL_SHARE)


def _line(number: int, row: Row, label: str) -> Line:
    return Line(
        number, label, row["outcome"], changes.said(row), changes.times_of(row), changes.times(row),
        (row["fraction_before"], row["fraction"]), changes.shares(row), changes.verdicts(row),
    )  # fmt: skip


def _panels(frames: ComparisonFrames, one: Row, kernels: Sequence[Numbered], labels: Mapping[int, str]) -> list[MovePanel]:
    cells: dict[_Key, Row] = {(row["row"], row["precision"], row["level"]): row for row in rows_of(frames, "levels")}
    memory, levels = level_of(frames), {level.id for level in load_spec().levels}
    kernels = [pair for pair in kernels if _long(pair[1])] or kernels
    groups: dict[tuple[str, str], list[Move]] = {}
    for number, row in kernels:
        level = row["binds"] if row["binds"] in levels else memory
        if row["matched"] and (move := _move(number, row, level, labels[number], cells)):
            groups.setdefault((clean(row["device"]), _group(row["precision"])), []).append(move)
    several = len({device for device, _ in groups}) > 1
    roofs = [row for row in rows_of(frames, "roofs") if row["step"] == one["step"]]
    worked: dict[int, set[str]] = {}
    for number, precision, _ in cells:
        worked.setdefault(number, set()).add(precision)
    found = []
    for device, group in sorted(groups, key=lambda key: (key[0], key[1] != _CORE, key[1])):
        moves = tuple(groups[device, group])
        named = {move.precision for move in moves}
        precisions = set().union(*(worked[move.number] for move in moves)) if "mixed" in named else named
        mine = [row for row in roofs if clean(row["device"]) == device]
        wanted = _roofs(mine, precisions - {""}, {move.level for move in moves} | {memory}, _unit(group), len(precisions) > 1)
        title = ", ".join(precision_label(one) for one in sorted(named, key=precision_order))
        found.append(MovePanel(f"{title}; {device}" if several else title, _unit(group), moves, tuple(wanted)))
    return found


def _group(precision: str) -> str:
    """Panel that a precision belongs to: those of tensor cores, and the others, that count one unit of work."""
    unit = _unit(precision)
    family = "tensor" if precision.startswith("tensor") else _CORE
    return family if unit == "flop" else precision


def _unit(precision: str) -> str:
    known = {one.id: one.unit for one in load_spec().precisions}
    return next((unit for name, unit in known.items() if precision == name or precision.startswith(f"{name}.")), "flop")


def _move(number: int, row: Row, level: str, label: str, cells: Mapping[_Key, Row]) -> Move | None:
    """The dots of a kernel at a level, each of the precision with most work in its report; None without the new one."""
    after = _dot(cells.get((number, row["precision"], level)), "")
    before = _dot(cells.get((number, row["precision_before"], level)), "_before")
    if after is None:
        return None
    if _unit(row["precision"]) != _unit(row["precision_before"]):
        before = None  # operations on integers and on floating-point numbers are not one axis
    return Move(number, label, changes.said(row), row["outcome"], level, row["precision"], before, after)


def _dot(cell: Row | None, suffix: str) -> Dot | None:
    """A dot that can stand on logarithmic axes."""
    if cell is None:
        return None
    values = cell[f"intensity{suffix}"], cell[f"performance{suffix}"]
    return Dot(*values) if all(0 < value < math.inf for value in values) else None


def _roofs(rows: Sequence[Row], precisions: set[str], levels: set[str], unit: str, tops: bool) -> Iterable[Roof]:
    """The roofs of some precisions and levels, the one that counts of each; with ``tops`` the highest of each precision."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        compute = row["kind"] == "compute" and row["unit"] == f"{unit}/s" and _covers(row["precision"], precisions)
        drawn = compute or (row["kind"] == "bandwidth" and row["level"] in levels)
        if not 0 < row["value"] < math.inf or not drawn or row["origin"] == UNUSED:
            continue
        key = row["kind"], row["precision"] if compute and tops else row["roof"]
        if key not in best or _rank(row) > _rank(best[key]):
            best[key] = row
    for row in best.values():
        yield Roof(row["kind"], row["level"], clean(row["label"]), row["value"], row["unit"], row["origin"])


def _rank(row: Mapping[str, Any]) -> tuple[bool, float]:
    return row["origin"] == "measured", row["value"]


def _covers(roof: str, precisions: set[str]) -> bool:
    """Whether the compute roof of a precision limits one of ``precisions``."""
    return any(one == roof or one.startswith(f"{roof}.") or roof.startswith(f"{one}.") for one in precisions)
