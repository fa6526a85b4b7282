"""Plain tables of any tool or paper: one row per platform and run, with units in the names of the columns.

Columns: platform, device, application, kernel, label (or a parameter such as nw), precision, supported, launches; work
(``flops``, ``gflop``) or performance (``gflop/s``, ``performance_gflops``); ``seconds``, ``time_ms``; traffic per level
(``bytes_l2``, ``hbm_gb``) or intensity per level (``ai_l2``, ``intensity_dram``); roofs (``peak_gflops``,
``peak_nofma_gflops``, ``bandwidth_dram_gbs``) or ``attainable_gflops``; ``canonical_flops``; ``fma_share``.
Without a unit a number is in SI units; a column without a level is of the column ``level``, else of DRAM.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ncu_roofline.base.records import document_of
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.spelling import CEILINGS, ceiling_of, is_theoretical, level_of, precision_of, precision_words
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.formats.inputs.text import Table, damaged, delimiter_of, plain_number, row_of, text_of

FORMAT = "plain-table"
_LISTS = ("rows", "points", "kernels", "data")  # keys under which a JSON object may hold the list of rows
_NEXT = "Give a CSV or JSON table with columns such as platform, flops, bytes_dram and seconds."
_ADD = "Add columns such as flops, seconds and bytes_dram."
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
_OURS = {"roof_origin", "binding_fraction"}  # columns of the tables of this program: results, whose bandwidth is no roof
_AGREE = 0.01  # figures printed with three digits agree within this

# Columns of texts, and of numbers without a unit, by what they may be called.
_TEXTS = {
    name: quantity
    for quantity, names in {
        "platform": "platform machine system_name",
        "device": "device gpu chip hardware architecture",
        "application": "application app code benchmark program",
        "kernel": "kernel kernel_name function loop region name",
        "label": "label variant case nw stride step parameter size n",
        "level": "level memory_level",
        "precision": "precision data_type",
        "supported": "supported runs status",
        "launches": "launches calls invocations",
        "fma_share": "fma_share alpha",
        "note": "note notes comment source",
    }.items()
    for name in names.split()
}
# Labels whose numbers say nothing without their name: they become ``nw=6``.
_PARAMETERS = ("nw", "stride", "step", "parameter", "size", "n")
# Words in the names of the other columns, with the kinds of units that go with them.
_QUANTITIES = {
    word: quantity
    for quantity, words in {
        "work": "work",
        "performance": "performance perf",
        "seconds": "time runtime duration walltime elapsed",
        "traffic": "traffic moved",
        "intensity": "ai intensity oi",
        "attainable": "attainable",
        "peak": "peak ceiling roof",
        "bandwidth": "bandwidth bw",
    }.items()
    for word in words.split()
}
_UNITS_OF = {
    "work": ("flop", ""),
    **dict.fromkeys(("performance", "attainable", "peak"), ("flops", "flop", "")),
    "seconds": ("second", ""),
    "traffic": ("byte", ""),
    "intensity": ("",),
    "bandwidth": ("byte/s", "byte", ""),
}
_BY_UNIT = {"flop": "work", "flops": "performance", "byte": "traffic", "second": "seconds", "byte/s": "bandwidth"}
_FILLERS = ("arithmetic", "operational", "executed", "canonical", "total", "run", "memory", "of", "measured", "empirical")
_PREFIX = {
    "": 1.0,
    "k": 1e3,
    "m": 1e6,
    "g": 1e9,
    "t": 1e12,
    "p": 1e15,
    "ki": 2.0**10,
    "mi": 2.0**20,
    "gi": 2.0**30,
    "ti": 2.0**40,
}
_TIME = {
    word: scale
    for scale, words in {
        1.0: "s sec secs second seconds",
        1e-3: "ms msec millisecond milliseconds",
        1e-6: "us usec microsecond microseconds",
        1e-9: "ns nsec nanosecond nanoseconds",
    }.items()
    for word in words.split()
}
_FLOP = re.compile(r"([kmgtp]?)flops?")
_FLOP_RATE = re.compile(r"([kmgtp]?)flops?(?:/s(?:ec|econd)?|ps)")
_BYTES = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)")
_BYTE_RATE = re.compile(r"([kmgtp]?|[kmgt]i)(?:b|bytes?)(?:/s(?:ec|econd)?|s|ps)")
_RATIO = re.compile(r"\bflops?\s*/\s*b(?:yte)?s?\b")
_OF_LEVEL = ("traffic", "intensity", "bandwidth")
_OF_PRECISION = ("work", "performance", "peak", "canonical", "fma_share")
_ZERO_MAY_BE = ("work", "performance", "fma_share", "canonical", "launches")
Supported = Literal["yes", "no", "not run"]
_SUPPORTED: dict[str, Supported] = {
    **dict.fromkeys(("", "yes", "y", "true", "1", "ok", "run", "supported"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0", "unsupported", "fails", "failed"), "no"),
    **dict.fromkeys(("not run", "not measured", "not-run", "skipped", "n/a"), "not run"),
}


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


class AmbiguousHeaderError(ValueError):
    """A column whose unit could mean two things; the text is a sentence part."""


def header(text: str) -> Header | None:
    """What the column called ``text`` holds, None if nothing known.  Raises AmbiguousHeaderError."""
    words = _words(text)
    plain = "_".join(words)
    if plain in _TEXTS:
        return Header(text, _TEXTS[plain])
    if "%" in text or not all(map(_known, words)):
        return None
    kind, scale = _unit(words) or ("", 1.0)
    named = next((_QUANTITIES[word] for word in words if word in _QUANTITIES), "")
    named = named or ("intensity" if _RATIO.search(text.lower()) else "")
    if "canonical" in words and kind in ("flop", ""):
        quantity = "canonical"
    elif named:
        quantity = named if kind in _UNITS_OF[named] else ""
    elif kind == "flop" and scale > 1 and any(word.endswith("flops") for word in words):
        raise AmbiguousHeaderError(f"the column {text!r} may be work or a rate")
    else:
        quantity = _BY_UNIT.get(kind, "")
    if not quantity:
        return None
    name = " ".join(words)
    of_roof = (word for word in words if word not in _QUANTITIES and not (_FLOP.fullmatch(word) or _FLOP_RATE.fullmatch(word)))
    return Header(
        text,
        quantity,
        scale,
        of=level_of(name) if quantity in _OF_LEVEL else "",
        precision=precision_of(name) if quantity in _OF_PRECISION else ANY_PRECISION,
        ceiling=(ceiling_of(" ".join(of_roof)) or "fma") if quantity == "peak" else "",
        theoretical=is_theoretical(text),
    )


def _words(text: str) -> list[str]:
    """Words in lower case; a rate stays one word: "Perf. [GFLOP/s]" and "perf_gflop_per_s" are perf, gflop/s."""
    lower = " ".join(text.lower().split())
    lower = re.sub(r"([a-z])(?: ?_per_| per | ?/) ?s(?:ec|econd)?\b", r"\1/s", lower)
    lower = _RATIO.sub("", lower.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
    return re.findall(r"[a-z0-9]+(?:/s\b)?", lower)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset((*_QUANTITIES, *_TIME, *_FILLERS, *CEILINGS, *precision_words()))


def _known(word: str) -> bool:
    """Whether a word of a header is one of ours; a column with another one means something else, however it begins."""
    return word in _vocabulary() or is_theoretical(word) or bool(level_of(word)) or _unit([word]) is not None


def _unit(words: list[str]) -> tuple[str, float] | None:
    """The kind of a column's unit (flop, flops, byte, byte/s, second) and its size in SI units."""
    for word in reversed(words):
        if word in _TIME:
            return "second", _TIME[word]
        for kind, pattern in (("flops", _FLOP_RATE), ("flop", _FLOP), ("byte", _BYTES), ("byte/s", _BYTE_RATE)):
            if match := pattern.fullmatch(word):
                return kind, _PREFIX[match[1]]
    return None


def recognises(head: str) -> bool:
    """Whether the header line, or the keys of a JSON list, name work or performance, and traffic, intensity or a roof."""
    text = head.lstrip()
    if text.startswith(("[", "{")):
        return '"schema"' not in text and _suffices(list(dict.fromkeys(_KEY.findall(text))))
    lines = _content(head)
    return bool(lines) and _suffices(row_of(lines[0][1], delimiter_of(lines[0][1])))


def _suffices(names: Sequence[str]) -> bool:
    """Whether columns of these names can make points."""
    quantities = set()
    for name in names:
        try:
            column = header(name)
            quantities.add(column.quantity if column else "")
        except AmbiguousHeaderError:  # noqa: PERF203 - enough that it is one of the two
            quantities.add("work")
    rated, related = quantities & {"work", "performance"}, quantities & {"traffic", "intensity", "attainable"}
    return bool(rated) and bool(related) and not _OURS & set(names)


def _content(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.split("\n"), start=1)
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


@dataclass(frozen=True)
class PlainRow:
    """One row in SI units; NaN and absent keys are what it does not say.

    ``work`` and ``performance`` by precision id, ``traffic`` and ``intensity`` by level id; ``canonical`` is the work that the
    algorithm needs on paper, beside the executed one; ``attainable`` is stated, not computed.
    """

    platform: str
    application: str
    kernel: str
    label: str
    device: str
    supported: Supported
    work: Mapping[str, float]
    performance: Mapping[str, float]
    seconds: float
    canonical: float
    attainable: float
    fma_share: float
    launches: int
    traffic: Mapping[str, float]
    intensity: Mapping[str, float]
    roofs: tuple[ImportedRoof, ...]
    columns: str
    note: str


@dataclass(frozen=True)
class PlainTable:
    """The rows of a table, and sentences on what was left out."""

    path: str
    rows: tuple[PlainRow, ...]
    warnings: tuple[str, ...] = ()


def read(path: str | PathLike[str]) -> PointTable:
    """The rows that can stand on a roofline.  Raises RooflineError where there is none."""
    table, stem = read_rows(path), Path(path).stem
    points = [point for row in table.rows if (point := _point(row, stem)) is not None]
    if not points:
        raise damaged(path, "no row has both a rate (work and time, or performance) and traffic or intensity", _ADD)
    left_out = len(table.rows) - len(points)
    warnings = [*table.warnings, *([f"{path}: {left_out} rows lack what a point needs, and are left out"] if left_out else [])]
    return PointTable(str(path), FORMAT, tuple(points), (), tuple(warnings))


def read_rows(path: str | PathLike[str]) -> PlainTable:
    """The rows of a file.  Raises RooflineError with the row and the column of what can't be understood."""
    text = text_of(path)
    warnings: list[str] = []
    is_json = text.lstrip()[:1] in ("[", "{")
    rows = list(_json_rows(path, text) if is_json else _csv_rows(path, text, warnings))
    if not rows:
        raise damaged(path, "the table has no rows", _NEXT)
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    table = plain_rows(str(path), names, rows, Path(path).stem)
    return replace(table, warnings=(*warnings, *table.warnings))


def _csv_rows(path: str | PathLike[str], text: str, warnings: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = _content(text)
    delimiter = delimiter_of(lines[0][1])
    names = row_of(lines[0][1], delimiter)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise damaged(path, f"the column {min(repeated)!r} stands there twice", "Give each column a name of its own.")
    for number, row in enumerate(Table(path, _NEXT).rows(lines[1:], delimiter), start=1):
        if len(row.cells) != len(names):
            reason = row.swallowed or f"row {number} has {len(row.cells)} cells, and the header {len(names)}"
            raise damaged(path, reason, "Fill the row up, and quote cells that hold the separator.")
        if row.swallowed:
            warnings.append(f"{path}: {row.swallowed}")
        yield f"row {number}", dict(zip(names, row.cells, strict=True))


def _json_rows(path: str | PathLike[str], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        document = document_of(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error), _NEXT) from error
    if isinstance(document, Mapping):
        document = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
    if not isinstance(document, list):
        raise damaged(path, f"it is no list of rows, and has none under {', '.join(_LISTS)}", _NEXT)
    for number, row in enumerate(document, start=1):
        if not isinstance(row, Mapping):
            raise damaged(path, f"row {number} is no object", _NEXT)
        yield f"row {number}", {str(name): value for name, value in row.items()}


def plain_rows(path: str, names: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]], stem: str = "") -> PlainTable:
    """Rows from records: (place, cells by column name).  ``stem`` is what a kernel without a name is called."""
    columns, unknown = _columns(path, names)
    if not _suffices(names):
        raise damaged(path, "no column holds work or performance, or none holds traffic, intensity or what is attainable", _ADD)
    warnings = [f"{path}: nothing is known of the columns {listed(unknown)}, which are left out"] if unknown else []
    result = []
    for place, cells in rows:
        row = _Cells(path, place, columns, cells).row(stem)
        warnings += _contradictions(f"{path}: {place}", row)
        result.append(row)
    return PlainTable(path, tuple(result), tuple(warnings))


def _columns(path: str, names: Sequence[str]) -> tuple[list[Header], list[str]]:
    """What is known of the columns, and the names of the others.  Raises RooflineError for two of one meaning."""
    known: list[Header] = []
    by_meaning: dict[tuple[object, ...], Header] = {}
    unknown = []
    for name in names:
        try:
            column = header(name)
        except AmbiguousHeaderError as error:
            unit = name.strip()
            raise damaged(path, str(error), f"Call it {unit[:1]}flop for work or {unit[:1]}flop/s for a rate.") from error
        if column is None:
            unknown.append(name)
            continue
        meaning = (column.quantity, column.of, column.precision, column.ceiling, column.theoretical)
        first = by_meaning.setdefault(meaning, column)
        if first is not column and column.quantity != "label":
            raise damaged(path, f"the columns {first.text!r} and {name!r} hold the same", "Leave out one of them.")
        known.append(column)
    return known, unknown


class _Cells:
    """The cells of a row by column; ``place`` says where it stands, for messages."""

    def __init__(self, path: str, place: str, columns: Sequence[Header], cells: Mapping[str, Any]) -> None:
        self._path, self._place, self._cells = path, place, cells
        self._columns: dict[str, list[Header]] = {}
        for column in columns:
            self._columns.setdefault(column.quantity, []).append(column)
        self._all = columns

    def row(self, stem: str) -> PlainRow:
        """The row in SI units.  Raises RooflineError for a cell that can't be understood."""
        text, number = self._text, self._number
        precision = precision_of(text("precision").replace(".", " ")) if text("precision") else ANY_PRECISION
        device, launches = text("device"), number("launches")
        platform = text("platform") or device or stem
        return PlainRow(
            platform=platform,
            application=text("application"),
            kernel=text("kernel"),
            label=self._label(),
            device=device or platform,
            supported=self._supported(),
            work=self._by_precision("work", precision),
            performance=self._by_precision("performance", precision),
            seconds=number("seconds"),
            canonical=number("canonical"),
            attainable=number("attainable"),
            fma_share=number("fma_share"),
            launches=int(launches) if launches >= 1 else 1,
            traffic=self._by_level("traffic"),
            intensity=self._by_level("intensity"),
            roofs=self._roofs(precision),
            columns=self._used(),
            note=text("note"),
        )

    def _of(self, quantity: str) -> list[Header]:
        return self._columns.get(quantity, [])

    def _cell(self, column: Header) -> str:
        cell = self._cells.get(column.text)
        return "" if cell is None else str(cell).strip()

    def _text(self, quantity: str) -> str:
        return next((self._cell(column) for column in self._of(quantity)), "")

    def _label(self) -> str:
        """All label columns; a parameter with its name: "nw=6 stride=2"."""
        parts = []
        for column in self._of("label"):
            text, name = self._cell(column), column.text.strip().lower()
            parts.append(f"{name}={text}" if text and name in _PARAMETERS and "=" not in text else text)
        return " ".join(filter(None, parts))

    def _value(self, column: Header) -> float:
        """The number of a cell in SI units, NaN for an empty one.  Raises RooflineError."""
        reason, number = "", None
        try:
            number = plain_number(self._cell(column))
        except ValueError as error:
            reason = str(error)
        if isinstance(cell := self._cells.get(column.text), bool):
            reason = f"{cell} is no number"
        elif number == 0 and column.quantity not in _ZERO_MAY_BE:
            reason = "zero can't be meant"
        elif number is not None and math.isinf(number * column.scale):
            reason = "it is too large"
        if reason:
            place = f"{self._place}, column {column.text!r}"
            raise damaged(self._path, f"{place}: {reason}", "Correct the cell, or leave it empty.")
        return math.nan if number is None else number * column.scale

    def _number(self, quantity: str) -> float:
        """The number of the first column that has one, NaN if none has."""
        values = [value for column in self._of(quantity) if not math.isnan(value := self._value(column))]
        return values[0] if values else math.nan

    def _by_precision(self, quantity: str, stated: str) -> dict[str, float]:
        """Numbers by precision id; columns that name none are of the one that the row states."""
        values = {_precision(column, stated): self._value(column) for column in self._of(quantity)}
        return {key: value for key, value in values.items() if value > 0}

    def _level(self, column: Header) -> str:
        return column.of or level_of(self._text("level")) or load_spec().memory

    def _by_level(self, quantity: str) -> dict[str, float]:
        values = {self._level(column): self._value(column) for column in self._of(quantity)}
        return {key: value for key, value in values.items() if not math.isnan(value)}

    def _roofs(self, stated: str) -> tuple[ImportedRoof, ...]:
        """Measured roofs, unless the column says theoretical; the measured one of two counts."""
        roofs: dict[str, ImportedRoof] = {}
        for column in sorted((*self._of("peak"), *self._of("bandwidth")), key=lambda column: column.theoretical):
            value, of = self._value(column), _precision(column, stated)
            compute = of if of.startswith("tensor") and column.ceiling == "fma" else f"{of}.{column.ceiling}"
            name, kind = (compute, "compute") if column.quantity == "peak" else (self._level(column), "bandwidth")
            if not math.isnan(value):
                roofs.setdefault(name, ImportedRoof(name, kind, column.text, value, measured=not column.theoretical))
        return tuple(roofs.values())

    def _supported(self) -> Supported:
        """Whether the application runs there.  Raises RooflineError for a word that says neither."""
        text = self._text("supported").lower()
        if text not in _SUPPORTED:
            known = ", ".join(word for word in _SUPPORTED if word)
            raise damaged(self._path, f"{self._place} says {text[:40]!r} of its support", f"Write one of {known}.")
        return _SUPPORTED[text]

    def _used(self) -> str:
        """The columns with numbers that this row fills."""
        quantities = ("work", "performance", "seconds", "traffic", "intensity")
        return ", ".join(column.text for column in self._all if column.quantity in quantities and self._cell(column))


def _precision(column: Header, stated: str) -> str:
    return stated if column.precision == ANY_PRECISION else column.precision


def _contradictions(place: str, row: PlainRow) -> list[str]:
    stated = []
    for precision, work in row.work.items():
        stated.append((row.performance.get(precision, math.nan), work / row.seconds, "FLOP/s", "time"))
        stated += [
            (row.intensity.get(level, math.nan), work / moved, "FLOP/B", "bytes") for level, moved in row.traffic.items()
        ]
    return [
        f"{place} states {said:.4g} {unit}, and its work and {other} make {computed:.4g}, which counts"
        for said, computed, unit, other in stated
        if abs(computed - said) > _AGREE * said
    ]


def _point(row: PlainRow, stem: str) -> ImportedPoint | None:
    """A row as a point of a roofline, None where it has no rate or no traffic."""
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
    return ImportedPoint(
        name=row.kernel or row.application or stem,
        label=row.label,
        seconds=seconds,
        work=work,
        traffic=traffic,
        fma_share={} if math.isnan(row.fma_share) else dict.fromkeys(work, row.fma_share),
        device=row.device,
        launches=row.launches,
        rates=rates,
        columns=row.columns,
        note=row.note,
        roofs=row.roofs,
    )
