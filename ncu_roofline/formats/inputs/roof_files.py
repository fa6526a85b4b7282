"""Files of roofs: NERSC's plot_roofline.py (a name and values per line, `data/inputs.toml`), Empirical Roofline Toolkit.

In ERT's roofline.json ``empirical`` holds ``gflops`` and ``gbytes``, each with ``data``: a list of [name, value] in GFLOP/s and
GB/s.  Version 1 calls its one compute ceiling GFLOPs (its kernels are in double precision), later ones FP64, FP32 and FP16.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import takewhile
from os import PathLike
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import document_of, inside, number
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import Table, countable, text_of
from ncu_roofline.formats.inputs.words import (
    ceiling_of,
    is_theoretical,
    level_of,
    level_words,
    load_words,
    precision_of,
    words_of,
)

Roofs = tuple[list[ImportedRoof], list[str]]
_NEXT = "Write it as `memroofs`, `mem_roof_names`, `comproofs`, `comp_roof_names`, `AI_<level>`, `FLOPS` and `labels` lines."
_TEXTS = ("mem_roof_names", "comp_roof_names", "labels")
# Quotes as typed, as word processors turn them, as TeX writes them, and none; a comment ends the line.
_QUOTE = "'`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{SINGLE LOW-9 QUOTATION MARK}"
_DOUBLE = '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}'
_WORD = re.compile(
    rf"[{_DOUBLE}]([^{_DOUBLE}]*)[{_DOUBLE}]|[{_QUOTE}]+([^{_QUOTE}]*)[{_QUOTE}]+|(#.*)|([^\s,{_QUOTE}{_DOUBLE}]+)"
)
_FIRST = re.compile(r"([A-Za-z_][\w/]*)\s*[:=]?(.*)")


def read(path: str | PathLike[str]) -> PointTable:
    """The points, one per label, all of one kernel that is called as the file; rates, as the file knows no times.

    Raises RooflineError for lines that can't be understood and for a file without points.
    """
    table = Table(path, _NEXT)
    lines, memory, compute, warnings = _content(table)
    flops, labels = lines["flops"], lines["labels"]
    if not flops:
        raise table.damaged("it holds roofs and no points", "Give it with --ceilings, beside a report.")
    precisions = {precision_of(roof.label) for roof in compute}
    only = next(iter(precisions)) if len(precisions) == 1 else ANY_PRECISION
    # Intensities by level; those of a line AI belong to the only memory roof, else to DRAM.
    names = [name for name in lines if name.startswith("ai")]
    if not names:
        raise table.damaged("it has FLOPS and no AI line")
    by_level: dict[str, list[float]] = {}
    for name, level in zip(names, _levels_of([*(name[3:] for name in names), *lines["mem_roof_names"]]), strict=False):
        _check_lengths(table, name.upper(), lines[name], "FLOPS", flops)
        if name == "ai" and len(memory) > 1 and any(roof.id == "mcdram" for roof in memory):
            raise table.damaged("`AI` does not say of which memory", "Write AI_HBM or AI_DRAM.")
        by_level[level if name != "ai" else memory[0].id if len(memory) == 1 else load_spec().memory] = lines[name]
    if len(flops) == 1:  # also an unquoted name with spaces
        labels = [" ".join(labels)]
    labels = labels or [str(index + 1) for index in range(len(flops))]
    _check_lengths(table, "labels", labels, "FLOPS", flops)
    points = []
    for index, (gflops, label) in enumerate(zip(flops, labels, strict=True)):
        stated, rate = precision_of(label), gflops * 1e9
        traffic = {level: rate / values[index] for level, values in by_level.items() if values[index] > 0}
        work = {stated if stated in precisions else only: rate}
        columns = ", ".join(("FLOPS", *(name.upper() for name in names)))
        points.append(ImportedPoint(table.stem, 1.0, work, traffic, rates=True, columns=columns, label=label))
    if compute and any(not precisions & set(point.work) for point in points):
        warnings.append("its roofs are of several precisions, and the labels don't say which each point is of")
    said = tuple(f"{path}: {sentence}" for sentence in warnings)
    return PointTable(table.path, "roofline-data", tuple(points), (*memory, *compute), said)


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Its measured roofs; those that name no precision count for FP64 as well.  Raises RooflineError."""
    table = Table(path, _NEXT)
    _, memory, compute, _ = _content(table)
    measured = [roof for roof in (*memory, *compute) if roof.measured]
    if not measured:
        reason = "it holds no measured roof"
        raise RooflineError("Cannot read ceilings", path, reason, "Add `memroofs` and `comproofs` lines, with their names.")
    by_id = {roof.id: _ceiling(roof, roof.id) for roof in measured}
    for roof in measured:
        custom = "taken as FP64: its file names no precision, and by custom that is what such files hold"
        by_id.setdefault(_double(roof.id), _ceiling(roof, _double(roof.id), custom))
    return Ceilings(table.path, "", "", (0, 0), "", by_id)


def _content(table: Table) -> tuple[dict[str, list[Any]], list[ImportedRoof], list[ImportedRoof], list[str]]:
    """The values of the known lines by name, texts or numbers; memory and compute roofs; sentences on what is left out.

    Raises RooflineError.
    """
    keys = load_words().nersc
    lines: dict[str, list[Any]] = {key: [] for key in keys.values()}
    seen: set[str] = set()
    warnings = []
    for place, line in enumerate(text_of(table.path).split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _FIRST.match(text)
        key = match[1].lower() if match else text[:20]
        name = keys.get(key, key if re.fullmatch(r"ai(?:_\w+)?", key) else "")
        if not name or match is None:
            warnings.append(f"line {place} begins with {key!r}, which has no meaning here, and is left out")
            continue
        if name in seen:
            warnings.append(f"line {place} gives {key!r} again, and the last one counts")
        seen.add(name)
        found = takewhile(lambda word: not word[2], _WORD.findall(match[2]))  # up to a comment
        lines[name] = [(double or single or bare).strip() for double, single, _, bare in found]
        for at, word in enumerate(lines[name] if name not in _TEXTS else ()):
            with suppress(ValueError):
                lines[name][at] = value = float(word)
                if math.isnan(value) or (value and countable(value)):
                    continue
            reason = f"line {place} has {word[:40]} where a positive number belongs"
            raise table.damaged(reason, "Leave out kernels without work; write nan for what is unknown.")
    named = []
    for kind, names in (("memroofs", "mem_roof_names"), ("comproofs", "comp_roof_names")):
        _check_lengths(table, names, lines[names], kind, lines[kind])
        if any(map(math.isnan, lines[kind])):
            raise table.damaged("a roof is nan", "Leave out the roofs that are unknown, and their names.")
        named.append([(name, value * 1e9) for name, value in zip(lines[names], lines[kind], strict=True)])
    memory, left_out = _bandwidth_roofs(named[0], beside=[name[3:] for name in lines if name.startswith("ai")])
    compute, more = _compute_roofs(named[1])
    return lines, memory, compute, [*warnings, *left_out, *more]


def _check_lengths(table: Table, name: str, one: Sequence[object], other_name: str, other: Sequence[object]) -> None:
    if len(one) != len(other):
        reason = f"`{name}` has {len(one)} entries and `{other_name}` {len(other)}"
        raise table.damaged(reason, "Give each value its name, and quote names with spaces.")


def _levels_of(names: Sequence[str]) -> list[str]:
    """Level ids of several names of one machine; what is unknown keeps its own name.

    Stacked and plain memory on one machine are two levels, as on Knights Landing: mcdram and dram.
    """
    stacked = {word for word in level_words() if word.startswith("hbm")}
    plain = {word for word in level_words() if word.startswith(("ddr", "dram"))}
    words = [words_of(name) for name in names]
    both = any(stacked & set(one) for one in words) and any(plain & set(one) for one in words)
    result, roofs = [], load_words().roofs
    for name, one in zip(names, words, strict=True):
        own = "_".join(word for word in one if word not in (*roofs["empty"], *roofs["theoretical"]))
        result.append("mcdram" if both and stacked & set(one) else level_of(name) or own or load_spec().memory)
    return result


def _bandwidth_roofs(named: Sequence[tuple[str, float]], beside: Sequence[str] = ()) -> Roofs:
    """Bandwidth roofs by level; ``beside`` names levels that the machine has as well."""
    levels = _levels_of([*(name for name, _ in named), *beside])
    return _distinct(
        ImportedRoof(level, "bandwidth", name, value, measured=not is_theoretical(name))
        for (name, value), level in zip(named, levels, strict=False)
    )


def _compute_roofs(named: Sequence[tuple[str, float]]) -> Roofs:
    """Compute roofs by precision and ceiling; the highest of a precision is its ``.fma`` (a tensor type's, the bare id)."""
    rows = [(name, value, precision_of(name), ceiling_of(name)) for name, value in named]
    stated = {precision for _, _, precision, kind in rows if kind == "fma"}
    highest = {precision: value for _, value, precision, _ in sorted(rows, key=lambda row: row[1])}
    roofs = []
    for name, value, precision, kind in rows:
        is_highest = not kind or value == highest[precision]
        lower = kind in ("nofma", "divide", "divide_nofma")
        is_peak = kind == "fma" or (precision not in stated and not lower and is_highest)
        peak = precision if precision.startswith("tensor") else f"{precision}.fma"
        found = peak if is_peak else f"{precision}.{kind or 'peak'}"
        roofs.append(ImportedRoof(found, "compute", name, value, measured=not is_theoretical(name)))
    return _distinct(roofs)


def _distinct(roofs: Iterable[ImportedRoof]) -> Roofs:
    """One roof per id: a measured one goes before a theoretical one, then the higher one counts; sentences on the others."""
    best: dict[str, ImportedRoof] = {}
    others: dict[str, list[str]] = {}
    for roof in sorted(roofs, key=lambda one: (not one.measured, -one.value)):
        if best.setdefault(roof.id, roof) is not roof:
            others.setdefault(roof.id, []).append(roof.label)
    return list(best.values()), [
        f"left out of the roofs: {listed(labels)}, because {best[of].label} stands for {of}" for of, labels in others.items()
    ]


def _ceiling(roof: ImportedRoof, name: str, source: str = "") -> Ceiling:
    return Ceiling(name, roof.value, "B/s" if roof.kind == "bandwidth" else "FLOP/s", source=source)


def _double(name: str) -> str:
    """A roof of no known precision as one of FP64."""
    return f"fp64{name[len(ANY_PRECISION) :]}" if name.startswith(f"{ANY_PRECISION}.") else name


def _is_roof(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and 0 < number(pair[1]) < 1e12


def read_ceilings_ert(path: str | PathLike[str]) -> Ceilings:
    """Its measured ceilings: ``fp64.fma`` and the like in FLOP/s, levels in B/s.  Raises RooflineError with the place."""
    named: dict[str, list[tuple[str, float]]] = {}
    try:
        empirical = inside(document_of(text_of(path)), "empirical")
        for kind in ("gbytes", "gflops"):
            data = inside(empirical, kind, "data")
            if not isinstance(data, list) or not all(map(_is_roof, data)):
                raise ValueError(f'"empirical"."{kind}"."data" is no list of pairs of name and positive number of G per second')
            named[kind] = [(name, value * 1e9) for name, value in data]
        if not any(named.values()):
            raise ValueError('both "gflops" and "gbytes" are empty')
    except (ValueError, RecursionError) as error:
        next_step = "Give the roofline.json as the toolkit wrote it."
        raise RooflineError("Cannot read ceilings", path, str(error), next_step) from error
    memory, compute = _bandwidth_roofs(named["gbytes"])[0], _compute_roofs(named["gflops"])[0]
    # On a GPU, ERT's L1 is L2: the toolkit can't see the L1 of each SM (Yang, Kurth, Williams 2019, section II-A).
    gpu = inside(empirical, "metadata", "CONFIG", "ERT_GPU")
    on_gpu = str(gpu[0] if isinstance(gpu, list) and gpu else gpu).lower() == "true"
    l1_is_l2 = on_gpu and "l2" not in {roof.id for roof in memory}
    by_id = {}
    for roof in [*memory, *compute]:
        name, note = _double(roof.id), ""
        if name != roof.id:
            note = "ERT's kernels are in double precision where it names none"
        elif l1_is_l2 and name == "l1":
            name = "l2"
            note = "ERT calls it L1: it numbers the levels that it can distinguish, and on GPUs the innermost of them is L2"
        by_id[name] = _ceiling(roof, name, note)
    stamp = number(inside(empirical["gflops"], "metadata", "TIMESTAMP_DB"))  # when the toolkit wrote its results
    date = datetime.fromtimestamp(stamp, timezone.utc).date().isoformat() if 0 < stamp < 4e9 else ""
    return Ceilings(str(path), "", "", (0, 0), date, by_id)
