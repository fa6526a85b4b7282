"""Files of roofs: NERSC's plot_roofline.py and plot_roofline_hierarchical.py, and the Empirical Roofline Toolkit (ERT).

Data files of the scripts have a name and values per line:

    memroofs 14336 2996.77 828.758            GB/s
    mem_roof_names 'L1' 'L2' 'HBM'
    comproofs 7068.86 3535.79                 GFLOP/s
    comp_roof_names 'FMA' 'No-FMA'
    AI_L1 ...  AI_L2 ...  AI_HBM ...          FLOP/byte, or one line AI for the memory level of the only roof
    FLOPS ...                                 GFLOP/s, whatever the name says; GFLOPS is the same
    labels 'nw=1''nw=2' ...

Source: Williams, "Roofline on NVIDIA GPUs" (lecture), and the public nersc-roofline repository.

In ERT's roofline.json ``empirical`` holds ``gflops`` and ``gbytes``, each with ``data``: a list of [name, value] in GFLOP/s and
GB/s.  Version 1 calls its one compute ceiling GFLOPs (its kernels are in double precision), later ones FP64, FP32 and FP16.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import takewhile
from os import PathLike
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import document_of, inside, number
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.spelling import ceiling_of, is_theoretical, levels_of, precision_of
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import Table, countable, text_of

Roofs = tuple[list[ImportedRoof], list[str]]
_NEXT = "Write it as `memroofs`, `mem_roof_names`, `comproofs`, `comp_roof_names`, `AI_<level>`, `FLOPS` and `labels` lines."
_KEYS = {
    **dict.fromkeys(("memroofs", "mem_roofs"), "memroofs"),
    **dict.fromkeys(("mem_roof_names", "mem_roof_name", "memroof_names"), "mem_roof_names"),
    **dict.fromkeys(("comproofs", "comp_roofs"), "comproofs"),
    **dict.fromkeys(("comp_roof_names", "comp_roof_name", "comproof_names"), "comp_roof_names"),
    **dict.fromkeys(("flops", "gflops", "flop/s", "gflop/s", "flops/s", "gflops/s"), "flops"),
    **dict.fromkeys(("labels", "label"), "labels"),
}
_TEXTS = ("mem_roof_names", "comp_roof_names", "labels")
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
_LOWER = ("nofma", "divide", "divide_nofma")
_ASSUMED = "taken as FP64: its file names no precision, and by custom that is what such files hold"
_DOUBLE_PRECISION = "ERT's kernels are in double precision where it names none"
_SEEN_AS_L1 = "ERT calls it L1: it numbers the levels that it can tell apart, and on GPUs the innermost of them is L2"


def recognises(head: str) -> bool:
    """Whether a file begins like one of the scripts: a line of roofs, or intensities and FLOPS."""
    return bool(_SIGN.search(head) or _POINTS.search(head))


def read(path: str | PathLike[str]) -> PointTable:
    """The points, one per label, all of one kernel that is called as the file; rates, as the file knows no times.

    Raises RooflineError for lines that can't be understood and for a file without points.
    """
    table = Table(path, _NEXT)
    lines, warnings = _lines(table)
    if not lines["flops"]:
        raise table.damaged("it holds roofs and no points", "Give it with --ceilings, beside a report.")
    memory, compute, left_out = _roofs(table, lines)
    warnings += left_out
    precisions = {precision_of(roof.label) for roof in compute}
    only = next(iter(precisions)) if len(precisions) == 1 else ANY_PRECISION
    by_level = _intensities(table, lines, [roof.id for roof in memory])
    flops, labels = lines["flops"], lines["labels"]
    if len(flops) == 1:  # also an unquoted name with spaces
        labels = [" ".join(labels)]
    labels = labels or [str(index + 1) for index in range(len(flops))]
    _check_lengths(table, "labels", labels, "FLOPS", flops)
    points = []
    for index, (gflops, label) in enumerate(zip(flops, labels, strict=True)):
        stated, rate = precision_of(label), gflops * 1e9
        traffic = {level: rate / values[index] for level, values in by_level.items() if values[index] > 0}
        work = {stated if stated in precisions else only: rate}
        columns = ", ".join(("FLOPS", *(name.upper() for name in lines if name.startswith("ai"))))
        points.append(ImportedPoint(table.stem, 1.0, work, traffic, rates=True, columns=columns, label=label))
    if compute and any(not precisions & set(point.work) for point in points):
        warnings.append("its roofs are of several precisions, and the labels don't say which each point is of")
    said = tuple(f"{path}: {sentence}" for sentence in warnings)
    return PointTable(table.path, "roofline-data", tuple(points), (*memory, *compute), said)


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Its measured roofs; those that name no precision count for FP64 as well.  Raises RooflineError."""
    table = Table(path, _NEXT)
    memory, compute, _ = _roofs(table, _lines(table)[0])
    measured = [roof for roof in (*memory, *compute) if roof.measured]
    if not measured:
        reason = "it holds no measured roof"
        raise RooflineError("Cannot read ceilings", path, reason, "Add `memroofs` and `comproofs` lines, with their names.")
    by_id = {roof.id: _ceiling(roof, roof.id) for roof in measured}
    for roof in measured:
        name = _double(roof.id)
        by_id.setdefault(name, _ceiling(roof, name, _ASSUMED))
    return Ceilings(table.path, "", "", (0, 0), "", by_id)


def _lines(table: Table) -> tuple[dict[str, list[Any]], list[str]]:
    """The values of the known lines by name, texts or numbers, and sentences on the others.  Raises RooflineError."""
    lines: dict[str, list[Any]] = {key: [] for key in _KEYS.values()}
    seen: set[str] = set()
    warnings = []
    for place, line in enumerate(text_of(table.path).split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _FIRST.match(text)
        key = match[1].lower() if match else text[:20]
        name = _KEYS.get(key, key if re.fullmatch(r"ai(?:_\w+)?", key) else "")
        if not name or match is None:
            warnings.append(f"line {place} begins with {key!r}, which says nothing here, and is left out")
            continue
        if name in seen:
            warnings.append(f"line {place} gives {key!r} again, and the last one counts")
        seen.add(name)
        found = takewhile(lambda word: not word[2], _WORD.findall(match[2]))  # up to a comment
        words = [(double or single or bare).strip() for double, single, _, bare in found]
        lines[name] = words if name in _TEXTS else [_number(table, place, word) for word in words]
    return lines, warnings


def _number(table: Table, line: int, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise table.damaged(f"line {line} has {word!r} where a number belongs") from None
    if not (math.isnan(value) or (value and countable(value))):
        reason = f"line {line} has {word} where a positive number belongs"
        raise table.damaged(reason, "Leave out kernels without work; write nan for what is unknown.")
    return value


def _check_lengths(table: Table, name: str, one: Sequence[object], other_name: str, other: Sequence[object]) -> None:
    if len(one) != len(other):
        mine, theirs = (f"{len(values)} {'entry' if len(values) == 1 else 'entries'}" for values in (one, other))
        reason = f"`{name}` has {mine} and `{other_name}` {theirs}"
        raise table.damaged(reason, "Give each value its name, and quote names with spaces.")


def _roofs(table: Table, lines: dict[str, list[Any]]) -> tuple[list[ImportedRoof], list[ImportedRoof], list[str]]:
    """Memory and compute roofs, and sentences on what was left out."""
    named = []
    for kind, names in (("memroofs", "mem_roof_names"), ("comproofs", "comp_roof_names")):
        _check_lengths(table, names, lines[names], kind, lines[kind])
        if any(map(math.isnan, lines[kind])):
            raise table.damaged("a roof is nan", "Leave out the roofs that are unknown, and their names.")
        named.append([(name, value * 1e9) for name, value in zip(lines[names], lines[kind], strict=True)])
    memory, left_out = bandwidth_roofs(named[0], beside=[name[3:] for name in lines if name.startswith("ai")])
    compute, more = compute_roofs(named[1])
    return memory, compute, [*left_out, *more]


def _intensities(table: Table, lines: dict[str, list[Any]], roofs: Sequence[str]) -> dict[str, list[float]]:
    """Intensities by level id; those of a line ``AI`` belong to the only memory roof, else to DRAM."""
    names = [name for name in lines if name.startswith("ai")]
    if not names:
        raise table.damaged("it has FLOPS and no AI line")
    levels = levels_of([*(name[3:] for name in names), *lines["mem_roof_names"]])
    result = {}
    for name, level in zip(names, levels, strict=False):
        _check_lengths(table, name.upper(), lines[name], "FLOPS", lines["flops"])
        if name == "ai" and len(roofs) > 1 and "mcdram" in roofs:
            raise table.damaged("`AI` does not say of which memory", "Write AI_HBM or AI_DRAM.")
        result[level if name != "ai" else roofs[0] if len(roofs) == 1 else load_spec().memory] = lines[name]
    return result


def bandwidth_roofs(named: Sequence[tuple[str, float]], beside: Sequence[str] = ()) -> Roofs:
    """Bandwidth roofs by level, and sentences on what was left out; ``beside`` names levels that the machine has as well."""
    levels = levels_of([*(name for name, _ in named), *beside])
    return _distinct(
        ImportedRoof(level, "bandwidth", name, value, measured=not is_theoretical(name))
        for (name, value), level in zip(named, levels, strict=False)
    )


def compute_roofs(named: Sequence[tuple[str, float]]) -> Roofs:
    """Compute roofs by precision and ceiling; the highest of a precision is its ``.fma`` (a tensor type's, the bare id)."""
    rows = [(name, value, precision_of(name), ceiling_of(name)) for name, value in named]
    stated = {precision for _, _, precision, kind in rows if kind == "fma"}
    highest = {precision: value for _, value, precision, _ in sorted(rows, key=lambda row: row[1])}
    roofs = []
    for name, value, precision, kind in rows:
        is_highest = not kind or value == highest[precision]
        is_peak = kind == "fma" or (precision not in stated and kind not in _LOWER and is_highest)
        peak = precision if precision.startswith("tensor") else f"{precision}.fma"
        found = peak if is_peak else f"{precision}.{kind or 'peak'}"
        roofs.append(ImportedRoof(found, "compute", name, value, measured=not is_theoretical(name)))
    return _distinct(roofs)


def _distinct(roofs: Iterable[ImportedRoof]) -> Roofs:
    """One roof per id: a measured one goes before a theoretical one, then the higher one counts."""
    best: dict[str, ImportedRoof] = {}
    others: dict[str, list[str]] = {}
    for roof in sorted(roofs, key=lambda one: (not one.measured, -one.value)):
        if best.setdefault(roof.id, roof) is not roof:
            others.setdefault(roof.id, []).append(roof.label)
    left_out = []
    for of, labels in others.items():
        which = f"the roof {listed(labels)} is" if len(labels) == 1 else f"the roofs {listed(labels)} are"
        left_out.append(f"{which} left out, because {best[of].label} stands for {of}")
    return list(best.values()), left_out


def _ceiling(roof: ImportedRoof, name: str, source: str = "") -> Ceiling:
    return Ceiling(name, roof.value, "B/s" if roof.kind == "bandwidth" else "FLOP/s", math.nan, "", source=source)


def _double(name: str) -> str:
    """A roof of no known precision as one of FP64."""
    return f"fp64{name[len(ANY_PRECISION) :]}" if name.startswith(f"{ANY_PRECISION}.") else name


def recognises_ert(head: str) -> bool:
    """Whether a file begins like ERT's roofline.json."""
    return head.lstrip().startswith("{") and all(f'"{word}"' in head for word in ("empirical", "gflops", "gbytes", "data"))


def read_ceilings_ert(path: str | PathLike[str]) -> Ceilings:
    """Its measured ceilings: ``fp64.fma`` and the like in FLOP/s, levels in B/s.  Raises RooflineError with the place."""
    try:
        empirical = inside(document_of(text_of(path)), "empirical")
        memory, _ = bandwidth_roofs(_pairs(empirical, "gbytes"))
        compute, _ = compute_roofs(_pairs(empirical, "gflops"))
        if not memory and not compute:
            raise ValueError('both "gflops" and "gbytes" are empty')
    except (ValueError, RecursionError) as error:
        next_step = "Give the roofline.json as the toolkit wrote it."
        raise RooflineError("Cannot read ceilings", path, str(error), next_step) from error
    # On a GPU, ERT's L1 is L2: the toolkit can't see the L1 of each SM (Yang, Kurth, Williams 2019, section II-A).
    gpu = inside(empirical, "metadata", "CONFIG", "ERT_GPU")
    on_gpu = str(gpu[0] if isinstance(gpu, list) and gpu else gpu).lower() == "true"
    l1_is_l2 = on_gpu and "l2" not in {roof.id for roof in memory}
    by_id = {}
    for roof in [*memory, *compute]:
        name, note = _double(roof.id), ""
        if name != roof.id:
            note = _DOUBLE_PRECISION
        elif l1_is_l2 and name == "l1":
            name, note = "l2", _SEEN_AS_L1
        by_id[name] = _ceiling(roof, name, note)
    stamp = number(inside(empirical["gflops"], "metadata", "TIMESTAMP_DB"))  # when the toolkit wrote its results
    date = datetime.fromtimestamp(stamp, timezone.utc).date().isoformat() if 0 < stamp < 4e9 else ""
    return Ceilings(str(path), "", "", (0, 0), date, by_id)


def _pairs(empirical: object, kind: str) -> list[tuple[str, float]]:
    """Names and values in SI units.  Raises ValueError with the place of what is none."""
    data = inside(empirical, kind, "data")
    if not isinstance(data, list):
        raise ValueError(f'"empirical"."{kind}"."data" is no list')
    for position, pair in enumerate(data):
        good = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and 0 < number(pair[1]) < 1e12
        if not good:
            raise ValueError(f'"empirical"."{kind}"."data"[{position}] is no pair of name and positive number of G per second')
    return [(name, value * 1e9) for name, value in data]
