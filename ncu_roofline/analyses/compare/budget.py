"""Budgets: limits of kernels, or of operators of a run, in a file that people edit, and what of a new report is over them.

A limit is a condition as `compare --fail-if` takes it, without a baseline.  Kernels are found as `compare` finds them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ncu_roofline.analyses.compare.columns import BUDGET, QUANTITIES
from ncu_roofline.analyses.compare.frames import ADDED, REMOVED, TOLERANCE, Settings, compare
from ncu_roofline.analyses.compare.text import level_of
from ncu_roofline.analyses.compare.thresholds import NOT_EVALUATED, PASSED, TRIPPED, Condition, evaluate, parse
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.records import Stated
from ncu_roofline.base.texts import clean, listed, plural, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.fields import read
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.model import Roofline, Selection, roofline
from ncu_roofline.model.extract import imported
from ncu_roofline.model.roofline import Table as Columns
from ncu_roofline.model.roofline import frame_of, of_rows
from ncu_roofline.rendering.document import Document, Note, Table
from ncu_roofline.rendering.frames import records

OK, OVER, MISSING, UNKNOWN = "ok", "over", "missing", "unknown"
_VERDICTS = {TRIPPED: OVER, NOT_EVALUATED: UNKNOWN, PASSED: OK}
_ORDER = (OVER, MISSING, UNKNOWN, OK)
_SHOWN = 20  # limits that are kept, which nobody has to read
_TIMES = ("seconds", "seconds_normalised", "total_seconds", "total_seconds_normalised", "cycles", "performance")
TABLES = {"limits": BUDGET}


def _conditions(texts: tuple[str, ...]) -> tuple[Condition, ...]:
    try:
        found = tuple(parse(text, "NUMBER") for text in texts)
    except UsageError as error:
        raise ValueError(f"{error.path}: {error.reason}") from None
    for condition in found:
        if any(name.baseline for name in condition.names):
            raise ValueError(f"{condition.text}: a budget has no baseline")
    return found


class Limits(NamedTuple):
    """What a kernel may take.  ``grid``, ``block`` and ``gpu`` are "" for any, ``noise`` is what conditions call so."""

    name: str
    fail_if: Annotated[tuple[Condition, ...], Stated(tuple[str, ...], _conditions)]
    grid: str = ""
    block: str = ""
    gpu: str = ""
    noise: float = TOLERANCE


class Budget(NamedTuple):
    """The file."""

    version: Literal[1]
    rows: Literal["kernels", "operators"]
    limits: tuple[Limits, ...]


@dataclass(frozen=True)
class Checked:
    """Every limit and whether it holds, as columns: `BUDGET`; ``row``: "kernel" or "operator"."""

    view: ClassVar[str] = "budget"
    limit_columns: Columns
    row: str
    notes: tuple[str, ...] = ()

    limits = frame_of("limit_columns", "One row per limit, and per kernel that is missing; those that are over first.")

    def failed(self, strict: bool = False) -> bool:
        """Whether something is over its budget, or nothing could be checked; ``strict``: or something is missing or unknown."""
        verdicts = set(self.limit_columns["verdict"])
        return OVER in verdicts or OK not in verdicts or (strict and verdicts != {OK})


def read_budget(path: str) -> Budget:
    """The budget of a file.  Raises RooflineError, which names the key that is wrong."""
    try:
        found = read(Path(path), Budget)
        twice = [
            key for key, count in Counter((one.name, one.grid, one.block, one.gpu) for one in found.limits).items() if count > 1
        ]
        if twice:
            raise ValueError(f"limits: {shorten(clean(twice[0][0]))} is there twice")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        next_step = "`ncu-roofline budget init REPORT` writes one."
        raise RooflineError("Cannot read budget", path, shorten(clean(reason), 300), next_step) from error
    return found


def budget_text(side: Roofline, settings: Settings, source: str, operators: bool) -> str:
    """A budget file for what a report or trace has now.  Raises RooflineError where nothing of it can be limited."""
    now = compare(side, side, settings=settings)
    level, rows = level_of(now), records(now.kernel_columns)
    cells = zip(now.level_columns["row"].tolist(), now.level_columns["precision"], now.level_columns["level"], strict=True)
    traffic = dict(zip(cells, now.level_columns["traffic"].tolist(), strict=True))
    word, tables = ("operators", "calls") if operators else ("kernels", "launches"), []
    for number, row in sorted(enumerate(rows), key=lambda item: -np.nan_to_num(item[1]["total_seconds"])):
        # Times and traffic of what is small say little, and what an operator of a name needs never changes.
        known = {"time > (1 + noise)": row["seconds"], "fraction < (1 - noise)": row["fraction"]}
        if not operators:
            known[f"bytes.{level} > (1 + noise)"] = traffic.get((number, "", level), math.nan)
        known = {} if row["small"] else known
        if not operators:
            known[f"flops > {1 + TOLERANCE:g}"] = row["work"]
        conditions = [f"{name} * {_amount(name, value)}" for name, value in known.items() if value > 0]
        if not operators and row["seconds"] > 0:  # a kernel that does less in less time may have less of its roof
            slower = f" and time > {_amount('time', row['seconds'])}"
            conditions = [one + slower * one.startswith("fraction") for one in conditions]
        if conditions:
            stated = {"name": row["name"], "grid": row["grid"], "block": row["block"], "gpu": row["device"]}
            keys = [f"{key} = {_quoted(value)}" for key, value in stated.items() if value]
            keys += [f"noise = {row['noise']:.2g}", "fail_if = [", *(f"  {_quoted(one)}," for one in conditions), "]"]
            short = [f"# {clean(row['kernel'])}"] if row["kernel"] != row["name"] else []
            tables.append("\n".join([*short, "[[limits]]", *keys]))
    if not tables:
        reason = f"its {word[0]} are too small to limit their times, or nothing is known of them"
        raise RooflineError("Cannot make a budget of", source, reason, "--small limits times of small ones, too.")
    head = [
        f"# What {word[0]} may take, for `ncu-roofline budget check`, made of {clean(source)}.",
        "# A condition of fail_if that is true is over budget; `ncu-roofline guide compare` has their language.",
        f"# Values are of a launch or call; noise: by how much the times of its {word[1]} differ, {TOLERANCE:g} at least.",
        *([f"# {len(rows) - len(tables)} small ones are left out; --small has them."] if len(tables) < len(rows) else []),
        f'version = 1\nrows = "{word[0]}"',
    ]
    return "\n".join(head) + "\n\n" + "\n\n".join(tables) + "\n"


def _amount(name: str, value: float) -> str:
    """A number as conditions write it."""
    unit = QUANTITIES[name.partition(" ")[0].partition(".")[0]].unit
    if unit == "ratio":
        return f"{100 * value:.4g} %"
    return format_value(value, unit, 5).replace("\N{MICRO SIGN}", "u") if 1e-9 <= value < 1e15 else f"{value:.5g}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def check(side: Roofline, budget: Budget, settings: Settings, kernel: str = "") -> Checked:
    """What of a report or trace is over a budget; of the budget only limits of names that ``kernel`` matches.

    Raises RooflineError for conditions that name a precision or level that does not exist, and where no limit is left.
    """
    devices = list(dict.fromkeys(side.kernel_columns["device"]))
    points = tuple(
        ImportedPoint(one.name, device=one.gpu or devices[0], grid=one.grid, block=one.block) for one in budget.limits
    )
    measured = imported(PointTable("budget", "budget", points), "budget")
    kinds = dict(zip(side.kernel_columns["name"], side.kernel_columns["kind"], strict=True))
    named = replace(measured, kind=np.array([kinds.get(one.name, budget.rows[:-1]) for one in budget.limits], dtype=object))
    chosen = Selection(kernel=kernel).launches(named)
    if not len(chosen):
        raise RooflineError("Cannot use budget", kernel, "it limits no kernel whose name matches", "Choose other kernels.")
    limits = [budget.limits[row] for row in chosen.launch.tolist()]
    found = compare(roofline(chosen), side, settings=replace(settings, small=True, against="baseline", times="raw"))
    rows, keys = records(found.kernel_columns), ("name_before", "grid_before", "block_before", "device_before")
    places = {tuple(row[key] for key in keys): number for number, row in enumerate(rows) if row["outcome"] != REMOVED}
    pairs = [(places.get((one.name, one.grid, one.block, one.gpu or devices[0]), -1), one) for one in limits]
    kernels = {name: column.copy() for name, column in found.kernel_columns.items()}
    for number, one in (pair for pair in pairs if pair[0] >= 0):
        kernels["noise"][number] = one.noise
        if kernels["device"][number] != kernels["device_before"][number]:  # what another GPU took limits nothing
            for name in _TIMES:
                kernels[name][number] = math.nan
    conditions = {number: one.fail_if for number, one in pairs if number >= 0}
    try:
        tested = records(evaluate(replace(found, kernel_columns=kernels), (), conditions).threshold_columns)
    except UsageError as error:
        raise RooflineError("Cannot use budget", error.path, error.reason, error.next_step) from error
    judged = [{**row, "limit": row["threshold"], "value": row["reason"], "verdict": _VERDICTS[row["result"]]} for row in tested]
    for one in (one for number, one in pairs if number < 0):
        told = f"grid {one.grid} block {one.block}" if one.grid else ""
        judged.append({"kernel": clean(one.name), "configuration": told, "limit": "", "value": "", "verdict": MISSING})
    judged.sort(key=lambda row: _ORDER.index(row["verdict"]))
    return Checked(of_rows(judged, BUDGET), budget.rows[:-1], tuple(_notes(rows, budget.rows)))


def _notes(rows: list[dict[str, Any]], word: str) -> Iterator[str]:
    for row in rows:
        told = [note for note in row["notes"].split("; ") if note.startswith(("matched", "before it was", "configuration was"))]
        if told:
            yield f"{clean(row['kernel'])}: {'; '.join(told)}"
    if added := [row for row in rows if row["outcome"] == ADDED]:
        share = sum(np.nan_to_num(row["time_share"]) for row in added)
        names = listed((clean(row["kernel"]) for row in added), 3)
        yield f"Without a limit: {plural(len(added), word[:-1])}, {percent(share)} of the time ({names})"


def document(checked: Checked, *, title: str = "") -> Document:
    """How many limits hold, and each that does not with its numbers; of the others some."""
    rows = records(checked.limit_columns)
    counts = Counter(row["verdict"] for row in rows)
    bad = [row for row in rows if row["verdict"] != OK]
    there = [row for row in rows if row["verdict"] != MISSING]
    kernels = len({(row["kernel"], row["configuration"]) for row in there})
    told = ", ".join(f"{counts[word]} {word}" for word in (OVER, UNKNOWN, OK) if counts[word])
    lacking = f" Missing: {plural(counts[MISSING], checked.row)}." if counts[MISSING] else ""
    over = dict.fromkeys(clean(row["kernel"]) for row in bad if row["verdict"] == OVER)
    answer = f"Over budget: {listed(over, 3)}" if over else "Within budget" if counts[OK] else "Nothing could be checked"
    more = counts[OK] - _SHOWN
    legend = f"... and {more} more limits that hold" if more > 0 else ""
    shown = [*bad, *rows[len(bad) :][:_SHOWN]]
    table = Table("limits", BUDGET, shown, [column.name for column in BUDGET], words={"row": checked.row}, legend=legend)
    limits = f" {plural(len(there), 'limit')} of {plural(kernels, checked.row)}: {told}." if there else ""
    sentence = f"{answer}.{limits}{lacking}"
    return Document(title or "Budget", sentences=[sentence], blocks=[table], notes=[Note(note) for note in checked.notes])
