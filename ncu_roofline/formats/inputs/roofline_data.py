"""Data files of NERSC's plot_roofline.py and plot_roofline_hierarchical.py: roofs and points, a name and values per line.

    memroofs 14336 2996.77 828.758            GB/s
    mem_roof_names 'L1' 'L2' 'HBM'
    comproofs 7068.86 3535.79                 GFLOP/s
    comp_roof_names 'FMA' 'No-FMA'
    AI_L1 ...  AI_L2 ...  AI_HBM ...          FLOP/byte, or one line AI for the memory level of the only roof
    FLOPS ...                                 GFLOP/s, whatever the name says; GFLOPS is the same
    labels 'nw=1''nw=2' ...

Source: Williams, "Roofline on NVIDIA GPUs" (lecture), and the public nersc-roofline repository.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.spelling import Named, bandwidth_roofs, compute_roofs, levels_of, precision_of
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import countable, text_of

FORMAT = "roofline-data"
_NEXT = "Write it as `memroofs`, `mem_roof_names`, `comproofs`, `comp_roof_names`, `AI_<level>`, `FLOPS` and `labels` lines."
_KEYS = {
    **dict.fromkeys(("memroofs", "mem_roofs"), "memroofs"),
    **dict.fromkeys(("mem_roof_names", "mem_roof_name", "memroof_names"), "mem_roof_names"),
    **dict.fromkeys(("comproofs", "comp_roofs"), "comproofs"),
    **dict.fromkeys(("comp_roof_names", "comp_roof_name", "comproof_names"), "comp_roof_names"),
    **dict.fromkeys(("flops", "gflops", "flop/s", "gflop/s", "flops/s", "gflops/s"), "flops"),
    **dict.fromkeys(("labels", "label"), "labels"),
}
_SIGN = re.compile(r"^[ \t]*(?:mem|comp)_?roofs\b[ \t:=]+[-+.\d]", re.IGNORECASE | re.MULTILINE)
_POINTS = re.compile(
    r"^[ \t]*AI(?:_\w+)?[ \t:=]+[-+.\d].*?^[ \t]*G?FLOPS[ \t:=]+[-+.\d]", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
# Quotes as typed, as word processors turn them, as TeX writes them, and none; a comment ends the line.
_QUOTE = "'`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{SINGLE LOW-9 QUOTATION MARK}"
_DOUBLE = '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{DOUBLE LOW-9 QUOTATION MARK}'
_WORD = re.compile(
    rf"[{_DOUBLE}]([^{_DOUBLE}]*)[{_DOUBLE}]|[{_QUOTE}]+([^{_QUOTE}]*)[{_QUOTE}]+|(#.*)|([^\s,{_QUOTE}{_DOUBLE}]+)"
)
_FIRST = re.compile(r"([A-Za-z_][\w/]*)\s*[:=]?(.*)")
_ASSUMED = "taken as FP64: its file names no precision, and by custom that is what such files hold"


def recognises(head: str) -> bool:
    """Whether a file begins like one: a line of roofs, or intensities and FLOPS."""
    return bool(_SIGN.search(head) or _POINTS.search(head))


def read(path: str | os.PathLike[str]) -> PointTable:
    """The points, one per label, all of one kernel that is called as the file; rates, as the file knows no times.

    Raises RooflineError for lines that can't be understood and for a file without points.
    """
    lines = _lines(path)
    if not lines.flops:
        raise RooflineError("Cannot read", path, "it holds roofs and no points", "Give it with --ceilings, beside a report.")
    memory, compute, warnings = _roofs(path, lines)
    precisions = {precision_of(roof.label) for roof in compute}
    points = _points(path, lines, memory, precisions)
    if compute and any(not precisions & set(point.work) for point in points):
        warnings.append(f"{path}: its roofs are of several precisions, and the labels don't say which each point is of")
    return PointTable(str(path), FORMAT, tuple(points), (*memory, *compute), tuple(warnings))


def read_ceilings(path: str | os.PathLike[str]) -> Ceilings:
    """Its measured roofs; those that name no precision count for FP64 as well.  Raises RooflineError."""
    lines = _lines(path)
    memory, compute, _ = _roofs(path, lines)
    measured = [roof for roof in (*memory, *compute) if roof.measured]
    if not measured:
        reason = "it holds no measured roof"
        raise RooflineError("Cannot read ceilings", path, reason, "Add `memroofs` and `comproofs` lines, with their names.")
    by_id = {roof.id: _ceiling(roof) for roof in measured}
    for roof in measured:
        precision, _, kind = roof.id.partition(".")
        if precision == ANY_PRECISION:
            by_id.setdefault(f"fp64.{kind}", replace(_ceiling(roof, _ASSUMED), id=f"fp64.{kind}"))
    return Ceilings(str(path), "", "", (0, 0), "", by_id)


def _ceiling(roof: ImportedRoof, note: str = "") -> Ceiling:
    unit = "B/s" if roof.kind == "bandwidth" else "FLOP/s"
    return Ceiling(roof.id, roof.value, unit, math.nan, "", source=note)


@dataclass
class _Lines:
    """The values of the known lines; intensities by what follows ``AI``."""

    memroofs: list[float] = field(default_factory=list)
    mem_roof_names: list[str] = field(default_factory=list)
    comproofs: list[float] = field(default_factory=list)
    comp_roof_names: list[str] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    intensities: dict[str, list[float]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def _lines(path: str | os.PathLike[str]) -> _Lines:
    result = _Lines()
    seen: set[str] = set()
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _FIRST.match(text)
        key, values = match[1].lower() if match else text[:20], []
        for double, single, comment, bare in _WORD.findall(match[2] if match else ""):
            if comment:
                break
            values.append((double or single or bare).strip())
        name = _KEYS.get(key, key if re.fullmatch(r"ai(?:_\w+)?", key) else "")
        if not name:
            result.warnings.append(f"{path}: line {number} begins with {key!r}, which says nothing here, and is left out")
            continue
        if name in seen:
            result.warnings.append(f"{path}: line {number} gives {key!r} again, and the last one counts")
        seen.add(name)
        if name in ("mem_roof_names", "comp_roof_names", "labels"):
            setattr(result, name, values)
        elif name.startswith("ai"):
            result.intensities[name[3:]] = _numbers(path, number, values)
        else:
            setattr(result, name, _numbers(path, number, values))
    return result


def _numbers(path: str | os.PathLike[str], number: int, words: Sequence[str]) -> list[float]:
    values = []
    for word in words:
        try:
            value = float(word)
        except ValueError:
            raise RooflineError("Cannot read", path, f"line {number} has {word!r} where a number belongs", _NEXT) from None
        if not (math.isnan(value) or (value and countable(value))):
            reason = f"line {number} has {word} where a positive number belongs"
            raise RooflineError("Cannot read", path, reason, "Leave out kernels without work; write nan for what is unknown.")
        values.append(value)
    return values


def _roofs(path: str | os.PathLike[str], lines: _Lines) -> tuple[list[ImportedRoof], list[ImportedRoof], list[str]]:
    _check_lengths(path, "mem_roof_names", lines.mem_roof_names, "memroofs", lines.memroofs)
    _check_lengths(path, "comp_roof_names", lines.comp_roof_names, "comproofs", lines.comproofs)
    if any(math.isnan(value) for value in (*lines.memroofs, *lines.comproofs)):
        raise RooflineError("Cannot read", path, "a roof is nan", "Leave out the roofs that are unknown, and their names.")
    named = [Named(name, value * 1e9) for name, value in zip(lines.mem_roof_names, lines.memroofs, strict=True)]
    memory, left_out = bandwidth_roofs(named, beside=list(lines.intensities))
    compute, more = compute_roofs([Named(n, v * 1e9) for n, v in zip(lines.comp_roof_names, lines.comproofs, strict=True)])
    return memory, compute, [*lines.warnings, *(f"{path}: {text}" for text in (*left_out, *more))]


def _check_lengths(
    path: str | os.PathLike[str], name: str, one: Sequence[object], other_name: str, other: Sequence[object]
) -> None:
    if len(one) != len(other):
        mine, theirs = (f"{len(values)} {'entry' if len(values) == 1 else 'entries'}" for values in (one, other))
        reason = f"`{name}` has {mine} and `{other_name}` {theirs}"
        raise RooflineError("Cannot read", path, reason, "Give each value its name, and quote names with spaces.")


def _points(
    path: str | os.PathLike[str], lines: _Lines, memory: Sequence[ImportedRoof], precisions: set[str]
) -> list[ImportedPoint]:
    by_level = _by_level(path, lines, memory)
    only = next(iter(precisions)) if len(precisions) == 1 else ANY_PRECISION
    labels, count = lines.labels, len(lines.flops)
    if count == 1 and len(labels) > 1:  # an unquoted name with spaces
        labels = [" ".join(labels)]
    elif not labels:
        labels = [""] if count == 1 else [str(index + 1) for index in range(count)]
    _check_lengths(path, "labels", labels, "FLOPS", lines.flops)
    points = []
    for index, (gflops, label) in enumerate(zip(lines.flops, labels, strict=True)):
        stated = precision_of(label)
        rate = gflops * 1e9
        points.append(
            ImportedPoint(
                name=Path(path).stem,
                label=label,
                seconds=1.0,
                rates=True,
                work={stated if stated in precisions else only: rate},
                traffic={level: rate / values[index] for level, values in by_level.items() if values[index] > 0},
                columns="FLOPS, " + ", ".join(f"AI_{name.upper()}" if name else "AI" for name in lines.intensities),
            )
        )
    return points


def _by_level(path: str | os.PathLike[str], lines: _Lines, memory: Sequence[ImportedRoof]) -> dict[str, list[float]]:
    """Intensities by level id; those of a line ``AI`` belong to the only memory roof, else to DRAM."""
    if not lines.intensities:
        raise RooflineError("Cannot read", path, "it has FLOPS and no AI line", _NEXT)
    roofs = [roof.id for roof in memory]
    levels = levels_of([*lines.intensities, *lines.mem_roof_names])
    result = {}
    for (name, values), level in zip(lines.intensities.items(), levels, strict=False):
        _check_lengths(path, f"AI_{name.upper()}" if name else "AI", values, "FLOPS", lines.flops)
        if not name and len(roofs) > 1 and "mcdram" in roofs:
            raise RooflineError("Cannot read", path, "`AI` does not say of which memory", "Write AI_HBM or AI_DRAM.")
        result[level if name else roofs[0] if len(roofs) == 1 else load_spec().memory] = values
    return result
