"""Plain tables of any tool or paper: one row per platform and run, with units in the names of the columns.

What columns may be called is in `data/inputs.toml`.  Without a unit a number is in SI units; a column without a level is of the
column ``level``, else of DRAM.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal, NamedTuple, cast

from ncu_roofline.base.records import document_of
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import SECONDS, Table, damaged, delimiter_of, plain_number, row_of, text_of
from ncu_roofline.formats.inputs.words import ceiling_of, is_theoretical, level_of, load_words, precision_of, precision_words

FORMAT = "plain-table"
Supported = Literal["yes", "no", "not run"]
_LISTS = ("rows", "points", "kernels", "data")  # keys under which a JSON object may hold the list of rows
_NEXT = "Give a CSV or JSON table with columns such as platform, flops, bytes_dram and seconds."
_ADD = "Add columns such as flops, seconds and bytes_dram."
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
_OURS = {"roof_origin", "binding_fraction"}  # columns of the tables of this program: results, whose bandwidth is no roof
_AGREE = 0.01  # figures printed with three digits agree within this
# Labels whose numbers say nothing without their name: they become ``nw=6``.
_PARAMETERS = ("nw", "stride", "step", "parameter", "size", "n")
_BY_UNIT = {"flop": "work", "flops": "performance", "byte": "traffic", "second": "seconds", "byte/s": "bandwidth"}
_FILLERS = ("arithmetic", "operational", "executed", "canonical", "total", "run", "memory", "of", "measured", "empirical")
_PREFIX = {letter: 1e3**power for power, letter in enumerate(["", *"kmgtp"])}
_PREFIX |= {f"{letter}i": 2.0 ** (10 * power) for power, letter in enumerate("kmgt", 1)}
_UNITS = {
    "flops": r"([kmgtp]?)flops?(?:/s(?:ec|econd)?|ps)",
    "flop": r"([kmgtp]?)flops?",
    "byte": r"([kmgtp]?|[kmgt]i)(?:b|bytes?)",
    "byte/s": r"([kmgtp]?|[kmgt]i)(?:b|bytes?)(?:/s(?:ec|econd)?|s|ps)",
}
_RATIO = re.compile(r"\bflops?\s*/\s*b(?:yte)?s?\b")
_AMBIGUOUS = "work or a rate"
_OF_PRECISION = ("work", "performance", "peak", "canonical", "fma_share")
_ZERO_MAY_BE = ("work", "performance", "fma_share", "canonical", "launches")


class Header(NamedTuple):
    """What a column holds: a quantity, in how many SI units one of its numbers is, and of what.

    ``of`` is a level id for traffic, intensity and bandwidth; ``precision`` and ``ceiling`` go with work and peaks.
    """

    text: str
    quantity: str
    scale: float = 1.0
    of: str = ""
    precision: str = ANY_PRECISION
    ceiling: str = ""
    theoretical: bool = False


def header(text: str) -> Header | None:
    """What the column called ``text`` holds, None if nothing known; of what may be work or a rate the quantity is that."""
    # Words in lower case; a rate stays one word: "Perf. [GFLOP/s]" and "perf_gflop_per_s" are perf, gflop/s.
    lower = " ".join(text.lower().split())
    lower = re.sub(r"([a-z])(?: ?_per_| per | ?/) ?s(?:ec|econd)?\b", r"\1/s", lower)
    lower = _RATIO.sub("", lower.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
    words = re.findall(r"[a-z0-9]+(?:/s\b)?", lower)
    name = " ".join(words)
    known = load_words()
    if quantity := known.columns.get("_".join(words)):
        return Header(text, quantity)
    # A column with a word that is none of ours means something else, however it begins.
    ours = (*known.quantities, *_FILLERS, *known.roofs["ceilings"], *precision_words())
    if "%" in text or not all(word in ours or is_theoretical(word) or level_of(word) or _unit(word) for word in words):
        return None
    units = [unit for word in reversed(words) if (unit := _unit(word))]
    kind, scale = units[0] if units else ("", 1.0)
    named = next((known.quantities[word] for word in words if word in known.quantities), "")
    named = named or ("intensity" if _RATIO.search(text.lower()) else "")
    if "canonical" in words and kind in ("flop", ""):
        quantity = "canonical"
    elif named:
        quantity = named if kind in known.units[named] else ""
    elif kind == "flop" and scale > 1 and any(word.endswith("flops") for word in words):
        quantity = _AMBIGUOUS
    else:
        quantity = _BY_UNIT.get(kind, "")
    if not quantity:
        return None
    of_roof = [word for word in words if word not in known.quantities and (_unit(word) or [""])[0] not in ("flop", "flops")]
    return Header(
        text,
        quantity,
        scale,
        of=level_of(name) if quantity in ("traffic", "intensity", "bandwidth") else "",
        precision=precision_of(name) if quantity in _OF_PRECISION else ANY_PRECISION,
        ceiling=(ceiling_of(" ".join(of_roof)) or "fma") if quantity == "peak" else "",
        theoretical=is_theoretical(text),
    )


def _unit(word: str) -> tuple[str, float] | None:
    """The kind of a unit (flop, flops, byte, byte/s, second) and its size in SI units, None for other words."""
    if (time := load_words().times.get(word)) is not None:
        return "second", SECONDS[time]
    found = ((kind, re.fullmatch(pattern, word)) for kind, pattern in _UNITS.items())
    return next(((kind, _PREFIX[match[1]]) for kind, match in found if match), None)


def recognises(head: str) -> bool:
    """Whether the header line, or the keys of a JSON list, name work or performance, and traffic, intensity or a roof."""
    if head.lstrip().startswith(("[", "{")):
        return '"schema"' not in head and _suffices(list(dict.fromkeys(_KEY.findall(head))))
    first = next(filter(None, _content(head)), "")
    return _suffices(row_of(first, delimiter_of(first)))


def _suffices(names: Sequence[str]) -> bool:
    """Whether columns of these names can make points."""
    quantities = {column.quantity for name in names if (column := header(name))}
    rated, related = quantities & {"work", "performance", _AMBIGUOUS}, quantities & {"traffic", "intensity", "attainable"}
    return bool(rated) and bool(related) and not _OURS & set(names)


def _content(text: str) -> list[str]:
    """The lines, comments and blank ones empty."""
    return ["" if line.lstrip().startswith("#") or not line.strip() else line for line in text.split("\n")]


@dataclass(frozen=True)
class PlainRow(ImportedPoint):
    """One row as a point, perhaps without all that a point needs, and what it says beside; NaN is what it does not say.

    ``performance`` is by precision id, ``intensity`` by level id; ``canonical`` is the work that the algorithm needs on paper,
    beside the executed one; ``attainable`` is stated, not computed; ``fused`` the share of fused instructions of any precision.
    """

    platform: str = ""
    application: str = ""
    supported: Supported = "yes"
    performance: Mapping[str, float] = field(default_factory=dict)
    intensity: Mapping[str, float] = field(default_factory=dict)
    canonical: float = math.nan
    attainable: float = math.nan
    fused: float = math.nan


@dataclass(frozen=True)
class PlainTable:
    """The rows of a table, and sentences on what was left out."""

    path: str
    rows: tuple[PlainRow, ...]
    warnings: tuple[str, ...] = ()


def read(path: str | PathLike[str]) -> PointTable:
    """The rows that can stand on a roofline.  Raises RooflineError where there is none."""
    table = read_rows(path)
    points = [point for row in table.rows if (point := _point(row, Table(path).stem)) is not None]
    if not points:
        raise damaged(path, "no row has both a rate (work and time, or performance) and traffic or intensity", _ADD)
    left_out = len(table.rows) - len(points)
    warnings = [*table.warnings, *([f"{path}: {left_out} rows lack what a point needs, and are left out"] if left_out else [])]
    return PointTable(str(path), FORMAT, tuple(points), (), tuple(warnings))


def read_rows(path: str | PathLike[str]) -> PlainTable:
    """The rows of a file.  Raises RooflineError with the row and the column of what can't be understood."""
    table, text = Table(path, _NEXT), text_of(path)
    if text.lstrip()[:1] in ("[", "{"):
        try:
            document = document_of(text)
        except (ValueError, RecursionError) as error:
            raise table.damaged(str(error)) from error
        if isinstance(document, Mapping):
            document = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
        if not isinstance(document, list) or not all(isinstance(row, Mapping) for row in document):
            raise table.damaged(f"it is no list of objects, and has none under {', '.join(_LISTS)}")
        rows = [(f"row {number}", row) for number, row in enumerate(document, start=1)]
        names = list(dict.fromkeys(name for row in document for name in row))
    else:
        lines = _content(text)
        start = next(at for at, line in enumerate(lines) if line)
        delimiter = delimiter_of(lines[start])
        names = row_of(lines[start], delimiter)
        read = table.rows(lines, start + 1, delimiter, len(names))
        rows = [(f"line {line}", dict(zip(names, cells, strict=True))) for line, cells in read]
    if not rows:
        raise table.damaged("the table has no rows")
    return plain_rows(table.path, names, rows, table.stem)


def plain_rows(path: str, names: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]], stem: str = "") -> PlainTable:
    """Rows from records: (place, cells by column name).  ``stem`` is what a kernel without a name is called.

    Raises RooflineError for two columns of one meaning, and for cells that can't be understood.
    """
    columns: dict[tuple[object, ...], Header] = {}
    unknown = []
    for name in names:
        column = header(name)
        if column is None:
            unknown.append(name)
            continue
        if column.quantity == _AMBIGUOUS:
            unit = f"{name.strip()[:1]}flop"
            raise damaged(path, f"the column {name!r} may be {_AMBIGUOUS}", f"Call it {unit} for work or {unit}/s for a rate.")
        meaning = (*column[1:2], *column[3:], name if column.quantity == "label" else "")
        if meaning in columns:
            raise damaged(path, f"the columns {columns[meaning].text!r} and {name!r} hold the same", "Leave out one of them.")
        columns[meaning] = column
    if not _suffices(names):
        raise damaged(path, "no column holds work or performance, or none holds traffic, intensity or what is attainable", _ADD)
    warnings = [f"{path}: nothing is known of the columns {listed(unknown)}, which are left out"] if unknown else []
    result = []
    for place, cells in rows:
        row = _row(path, place, list(columns.values()), cells, stem)
        result.append(row)
        for precision, work in row.work.items():
            stated = [(row.performance.get(precision, math.nan), work / row.seconds, "FLOP/s, and its work and time")]
            for level, moved in row.traffic.items():
                stated.append((row.intensity.get(level, math.nan), work / moved, "FLOP/B, and its work and bytes"))
            warnings += [
                f"{path}: {place} states {said:.4g} {of} make {computed:.4g}, which counts"
                for said, computed, of in stated
                if abs(computed - said) > _AGREE * said
            ]
    return PlainTable(path, tuple(result), tuple(warnings))


def _row(path: str, place: str, columns: Sequence[Header], cells: Mapping[str, Any], stem: str) -> PlainRow:
    words, texts = load_words(), dict[str, str]()
    labels: list[str] = []
    numbers: list[tuple[Header, float]] = []
    for column in columns:
        value = cells.get(column.text)
        cell = "" if value is None else str(value).strip()
        if column.quantity == "label":
            name = column.text.strip().lower()
            labels.append(f"{name}={cell}" if cell and name in _PARAMETERS and "=" not in cell else cell)
        elif column.quantity in words.columns.values() and column.quantity not in ("launches", "fma_share"):
            texts[column.quantity] = cell
        else:
            try:
                number = plain_number(cell)
                if number == 0 and column.quantity not in _ZERO_MAY_BE:
                    raise ValueError("zero is not possible here")
            except ValueError as error:
                reason = f"{place}, column {column.text!r}: {error}"
                raise damaged(path, reason, "Correct the cell, or leave it empty.") from error
            if number is not None:
                numbers.append((column, number * column.scale))
    stated = precision_of(texts["precision"].replace(".", " ")) if texts.get("precision") else ANY_PRECISION
    level = level_of(texts.get("level", "")) or load_spec().memory
    support = texts.get("supported", "").lower() or "yes"
    if support not in words.supported:
        raise damaged(path, f"{place} says {support[:40]!r} of its support", f"Write one of {', '.join(words.supported)}.")
    first = {column.quantity: number for column, number in reversed(numbers)}
    amounts: dict[str, dict[str, float]] = {quantity: {} for quantity in ("work", "performance", "traffic", "intensity")}
    roofs: dict[str, ImportedRoof] = {}
    # Measured roofs, unless the column says theoretical; the measured one of two counts.
    for column, number in sorted(numbers, key=lambda one: (one[0].theoretical, one[0].quantity == "bandwidth")):
        of = stated if column.precision == ANY_PRECISION else column.precision
        name = of if column.quantity in _OF_PRECISION else column.of or level
        if column.quantity in amounts and number > 0:
            amounts[column.quantity][name] = number
        elif column.quantity in ("peak", "bandwidth"):
            if column.quantity == "peak" and not (of.startswith("tensor") and column.ceiling == "fma"):
                name = f"{of}.{column.ceiling}"
            kind = "compute" if column.quantity == "peak" else "bandwidth"
            roofs.setdefault(name, ImportedRoof(name, kind, column.text, number, measured=not column.theoretical))
    device = texts.get("device", "")
    platform = texts.get("platform") or device or stem
    used = ("work", "performance", "seconds", "traffic", "intensity")
    return PlainRow(
        name=texts.get("kernel", ""),
        seconds=first.get("seconds", math.nan),
        work=amounts["work"],
        traffic=amounts["traffic"],
        device=device or platform,
        launches=max(1, int(first.get("launches", 1))),
        columns=", ".join(column.text for column, _ in numbers if column.quantity in used),
        note=texts.get("note", ""),
        label=" ".join(filter(None, labels)),
        roofs=tuple(roofs.values()),
        platform=platform,
        application=texts.get("application", ""),
        supported=cast(Supported, words.supported[support]),
        performance=amounts["performance"],
        intensity=amounts["intensity"],
        canonical=first.get("canonical", math.nan),
        attainable=first.get("attainable", math.nan),
        fused=first.get("fma_share", math.nan),
    )


def _point(row: PlainRow, stem: str) -> ImportedPoint | None:
    """A row with all that a point needs, None where it has no rate or no traffic."""
    work, seconds, rates = dict(row.work), row.seconds, False
    if not work and row.performance:
        rates = math.isnan(seconds)
        seconds = 1.0 if rates else seconds
        work = {precision: rate * seconds for precision, rate in row.performance.items()}
    elif work and math.isnan(seconds):
        seconds = next((work[p] / rate for p, rate in row.performance.items() if p in work), math.nan)
    total = sum(work.values())
    traffic = {level: total / intensity for level, intensity in row.intensity.items()}
    traffic.update({} if rates else row.traffic)
    if row.supported != "yes" or not work or not traffic or math.isnan(seconds):
        return None
    shares = {} if math.isnan(row.fused) else dict.fromkeys(work, row.fused)
    name = row.name or row.application or stem
    return replace(row, name=name, seconds=seconds, work=work, traffic=traffic, fma_share=shares, rates=rates)
