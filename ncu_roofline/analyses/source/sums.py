"""Sums over the instructions of a launch: by line, by function; shares of the kernel, intensity, lanes, the main stall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import COUNTS, INTEGERS, INTENSITIES
from ncu_roofline.analyses.source.counts import FloatArray, IntArray
from ncu_roofline.analyses.source.instructions import INTEGER, NOWHERE, OUTSIDE, Instructions, issued_by
from ncu_roofline.model.names import short_names

Tables = tuple[dict[str, FloatArray], dict[str, FloatArray]]
"""Sums of all counts, and samples by reason."""


def sums_by(found: Instructions, index: IntArray, groups: int, rows: IntArray | None = None) -> Tables:
    """Sums over each group of instructions, or of these ``rows``.

    ``index`` has the group of each; a negative one belongs to none.
    """
    chosen = index >= 0
    kept, rows = index[chosen], np.flatnonzero(chosen) if rows is None else rows[chosen]

    def summed(table: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        added = {name: np.bincount(kept, weights=values[rows], minlength=groups) for name, values in table.items()}
        return {name: values.astype(np.float64) for name, values in added.items()}

    return summed(found.counts), summed(found.waits)


def sum_columns(found: Instructions, counts: Mapping[str, FloatArray], stalls: Mapping[str, FloatArray]) -> dict[str, Any]:
    """The columns of counts and shares, with the reason for most stalls in each row."""
    whole, asked, samples = found.whole, counts["requested"] + counts["local"], counts["samples"]
    stall, share = np.full(len(samples), "", dtype=object), np.full(len(samples), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {
            "share_samples": samples / whole["samples"],
            "share_work": counts["work"] / whole["work"],
            "share_int32": counts[INTEGERS] / whole[INTEGERS],
            "share_requested": counts["requested"] / whole["requested"],
            "share_excess": np.maximum(counts["requested"] - counts["ideal"], 0) / whole["requested"],
            **{name: counts[work] / asked for work, name in INTENSITIES.items()},
            "share_integer": counts[INTEGER] / counts[issued_by(found.counts)],
            "lanes": counts[found.lanes] / counts["executed"],
        }
        if stalls:
            names, table = np.array(list(stalls), dtype=object), np.vstack(list(stalls.values()))
            most = np.max(table, axis=0)
            stall = np.where(most > 0, names[np.argmax(table, axis=0)], "")
            share = np.where((most > 0) & (samples > 0), most / samples, np.nan)
    finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in shares.items()}
    return {column.name: counts[column.name] for column in COUNTS} | finite | {"stall": stall, "share_stall": share}


def line_columns(found: Instructions, texts: Mapping[str, Sequence[str]], *, outermost: bool = False) -> dict[str, Any]:
    """A row per line in the order of files and lines, then what has no line, by function, then what lies outside.

    Lines are the innermost ones, or the ``outermost``: of the function's own, at which code is inlined.
    """
    own = -1 if outermost else 0
    keys = [
        (places[own].file, places[own].line, "") if places else ("", NOWHERE if name else OUTSIDE, name)
        for places, name in zip(found.places, [found.owners[one] for one in found.owner.tolist()], strict=True)
    ]
    sizes = Counter(keys)
    ordered = sorted(sizes, key=lambda key: (key[1] < 0, key[0], abs(key[1]), key[2]))
    place = {key: row for row, key in enumerate(ordered)}
    index = np.array([place[key] for key in keys], dtype=np.int64)
    return {
        "file": [file for file, _, _ in ordered],
        "line": [line for _, line, _ in ordered],
        "text": ["".join(texts.get(file, ())[line - 1 : line]) if file and line > 0 else name for file, line, name in ordered],
        "instructions": [sizes[key] for key in ordered],
        **sum_columns(found, *sums_by(found, index, len(ordered))),
    }


def has_lines(lines: Mapping[str, Any]) -> bool:
    """Whether warps were counted at some line of the source, by the frame of lines; where not, instructions are shown."""
    line, executed, samples = (np.asarray(lines[name]) for name in ("line", "executed", "samples"))
    return bool(np.any((line > 0) & ((executed != 0) | (samples > 0))))


def function_columns(found: Instructions, kernel: str) -> dict[str, Any]:
    """The kernel (``kernel`` is its mangled name) and what it calls, which add up to all; then, of these, what is inlined."""
    chosen = []
    for number, name in enumerate(found.owners):
        rows = np.flatnonzero(found.owner == number)
        if len(rows):
            chosen.append((name, ("kernel" if name == kernel else "called") if name else "outside", rows))
    inlined: dict[str, list[int]] = {}
    for row, places in enumerate(found.places):
        for name in {place.function for place in places if place.function}:
            inlined.setdefault(name, []).append(row)
    chosen += [(name, "inlined", np.array(inlined[name], dtype=np.int64)) for name in sorted(inlined)]
    names = [name for name, _, _ in chosen]
    index = np.concatenate([*(rows for _, _, rows in chosen), np.empty(0, dtype=np.int64)])
    groups = np.repeat(np.arange(len(chosen)), [len(rows) for _, _, rows in chosen])
    begins = [_first_place(found, name if role == "inlined" else "", rows) for name, role, rows in chosen]
    return {
        "function": names,
        "name": short_names(names),
        "role": [role for _, role, _ in chosen],
        "file": [file for file, _ in begins],
        "line": [line for _, line in begins],
        "instructions": [len(rows) for _, _, rows in chosen],
        **sum_columns(found, *sums_by(found, groups, len(chosen), index)),
    }


def _first_place(found: Instructions, function: str, rows: IntArray) -> tuple[str, int]:
    """File and the lowest line of a function: of its own code, not of what is inlined into it."""
    lines: dict[str, int] = {}
    chains = {id(places): places for places in map(found.places.__getitem__, rows.tolist())}
    for file, line, of in chain.from_iterable(chains.values()):
        if of == function and (file not in lines or line < lines[file]):
            lines[file] = line
    return next(iter(lines.items()), ("", -1))


def stall_columns(found: Instructions) -> dict[str, Any]:
    """A row per instruction and reason that was sampled there."""
    names = list(found.stalls)
    table = np.vstack([every for every, _ in found.stalls.values()]) if names else np.empty((0, len(found)))
    not_issued = np.vstack([one for _, one in found.stalls.values()]) if names else table
    rows, reasons = np.nonzero(table.T > 0)
    return {
        "function": [found.columns["function"][row] for row in rows.tolist()],
        "offset": found.columns["offset"][rows],
        "reason": [names[one] for one in reasons.tolist()],
        "samples": table[reasons, rows],
        "not_issued": not_issued[reasons, rows],
    }
