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
import re
from collections.abc import Sequence
from itertools import takewhile
from os import PathLike
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.spelling import Named, bandwidth_roofs, compute_roofs, levels_of, precision_of
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import countable, damaged, text_of

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


def read(path: str | PathLike[str]) -> PointTable:
    """The points, one per label, all of one kernel that is called as the file; rates, as the file knows no times.

    Raises RooflineError for lines that can't be understood and for a file without points.
    """
    lines = _Lines(path)
    if not lines.flops:
        raise damaged(path, "it holds roofs and no points", "Give it with --ceilings, beside a report.")
    memory, compute, warnings = lines.roofs()
    precisions = {precision_of(roof.label) for roof in compute}
    points = lines.points(memory, precisions)
    if compute and any(not precisions & set(point.work) for point in points):
        warnings.append(f"{path}: its roofs are of several precisions, and the labels don't say which each point is of")
    return PointTable(str(path), FORMAT, tuple(points), (*memory, *compute), tuple(warnings))


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Its measured roofs; those that name no precision count for FP64 as well.  Raises RooflineError."""
    memory, compute, _ = _Lines(path).roofs()
    measured = [roof for roof in (*memory, *compute) if roof.measured]
    if not measured:
        reason = "it holds no measured roof"
        raise RooflineError("Cannot read ceilings", path, reason, "Add `memroofs` and `comproofs` lines, with their names.")
    units = {"bandwidth": "B/s", "compute": "FLOP/s"}
    by_id = {roof.id: Ceiling(roof.id, roof.value, units[roof.kind], math.nan, "") for roof in measured}
    for roof in measured:
        precision, _, kind = roof.id.partition(".")
        if precision == ANY_PRECISION:
            name = f"fp64.{kind}"
            by_id.setdefault(name, Ceiling(name, roof.value, units[roof.kind], math.nan, "", source=_ASSUMED))
    return Ceilings(str(path), "", "", (0, 0), "", by_id)


class _Lines:
    """The values of the known lines; intensities by what follows ``AI``.  Raises RooflineError for what is no number."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path
        self._words: dict[str, list[str]] = {name: [] for name in ("mem_roof_names", "comp_roof_names", "labels")}
        self._numbers: dict[str, list[float]] = {name: [] for name in ("memroofs", "comproofs", "flops")}
        self._intensities: dict[str, list[float]] = {}
        self._warnings: list[str] = []
        seen: set[str] = set()
        for number, line in enumerate(text_of(path).split("\n"), start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            match = _FIRST.match(text)
            key = match[1].lower() if match else text[:20]
            name = _KEYS.get(key, key if re.fullmatch(r"ai(?:_\w+)?", key) else "")
            if not name:
                self._warnings.append(f"{path}: line {number} begins with {key!r}, which says nothing here, and is left out")
                continue
            if name in seen:
                self._warnings.append(f"{path}: line {number} gives {key!r} again, and the last one counts")
            seen.add(name)
            found = takewhile(lambda word: not word[2], _WORD.findall(match[2] if match else ""))  # up to a comment
            words = [(double or single or bare).strip() for double, single, _, bare in found]
            if name in self._words:
                self._words[name] = words
            elif name.startswith("ai"):
                self._intensities[name[3:]] = self._read(number, words)
            else:
                self._numbers[name] = self._read(number, words)
        self.flops = self._numbers["flops"]

    def _read(self, number: int, words: Sequence[str]) -> list[float]:
        values = []
        for word in words:
            try:
                value = float(word)
            except ValueError:
                raise damaged(self._path, f"line {number} has {word!r} where a number belongs", _NEXT) from None
            if not (math.isnan(value) or (value and countable(value))):
                reason = f"line {number} has {word} where a positive number belongs"
                raise damaged(self._path, reason, "Leave out kernels without work; write nan for what is unknown.")
            values.append(value)
        return values

    def roofs(self) -> tuple[list[ImportedRoof], list[ImportedRoof], list[str]]:
        """Memory and compute roofs, and warnings, those on lines among them."""
        memory_names, compute_names = self._words["mem_roof_names"], self._words["comp_roof_names"]
        memory, compute = self._numbers["memroofs"], self._numbers["comproofs"]
        self._check_lengths("mem_roof_names", memory_names, "memroofs", memory)
        self._check_lengths("comp_roof_names", compute_names, "comproofs", compute)
        if any(map(math.isnan, (*memory, *compute))):
            raise damaged(self._path, "a roof is nan", "Leave out the roofs that are unknown, and their names.")
        bandwidths = [Named(name, value * 1e9) for name, value in zip(memory_names, memory, strict=True)]
        peaks = [Named(name, value * 1e9) for name, value in zip(compute_names, compute, strict=True)]
        by_level, left_out = bandwidth_roofs(bandwidths, beside=list(self._intensities))
        by_precision, more = compute_roofs(peaks)
        return by_level, by_precision, [*self._warnings, *(f"{self._path}: {text}" for text in (*left_out, *more))]

    def _check_lengths(self, name: str, one: Sequence[object], other_name: str, other: Sequence[object]) -> None:
        if len(one) != len(other):
            mine, theirs = (f"{len(values)} {'entry' if len(values) == 1 else 'entries'}" for values in (one, other))
            reason = f"`{name}` has {mine} and `{other_name}` {theirs}"
            raise damaged(self._path, reason, "Give each value its name, and quote names with spaces.")

    def points(self, memory: Sequence[ImportedRoof], precisions: set[str]) -> list[ImportedPoint]:
        """A point per FLOPS value."""
        by_level = self._by_level(memory)
        only = next(iter(precisions)) if len(precisions) == 1 else ANY_PRECISION
        labels, count = self._words["labels"], len(self.flops)
        if count == 1 and len(labels) > 1:  # an unquoted name with spaces
            labels = [" ".join(labels)]
        elif not labels:
            labels = [""] if count == 1 else [str(index + 1) for index in range(count)]
        self._check_lengths("labels", labels, "FLOPS", self.flops)
        points = []
        for index, (gflops, label) in enumerate(zip(self.flops, labels, strict=True)):
            stated, rate = precision_of(label), gflops * 1e9
            point = ImportedPoint(
                name=Path(self._path).stem,
                label=label,
                seconds=1.0,
                rates=True,
                work={stated if stated in precisions else only: rate},
                traffic={level: rate / values[index] for level, values in by_level.items() if values[index] > 0},
                columns=", ".join(("FLOPS", *map(_line_of, self._intensities))),
            )
            points.append(point)
        return points

    def _by_level(self, memory: Sequence[ImportedRoof]) -> dict[str, list[float]]:
        """Intensities by level id; those of a line ``AI`` belong to the only memory roof, else to DRAM."""
        if not self._intensities:
            raise damaged(self._path, "it has FLOPS and no AI line", _NEXT)
        roofs = [roof.id for roof in memory]
        levels = levels_of([*self._intensities, *self._words["mem_roof_names"]])
        result = {}
        for (name, values), level in zip(self._intensities.items(), levels, strict=False):
            self._check_lengths(_line_of(name), values, "FLOPS", self.flops)
            if not name and len(roofs) > 1 and "mcdram" in roofs:
                raise damaged(self._path, "`AI` does not say of which memory", "Write AI_HBM or AI_DRAM.")
            result[level if name else roofs[0] if len(roofs) == 1 else load_spec().memory] = values
        return result


def _line_of(level: str) -> str:
    return f"AI_{level.upper()}" if level else "AI"
