"""The source view in words: what limits a kernel, then where: findings, loops, lines, functions or instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.style import COUNTED, label_of
from ncu_roofline.analyses.source.code import FLOPS, INT32, INTEGERS, INTENSITIES, NOWHERE, OUTSIDE, WITHIN, has_lines
from ncu_roofline.analyses.source.frames import SEEN, WHERE, SourceRoofline, inlined_at
from ncu_roofline.base.texts import clean, listed, one_line, plural, shorten
from ncu_roofline.base.units import UNITS, format_value, intensity_text, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.chips.findings import INTEGER_SHARE, SAMPLES_MIN
from ncu_roofline.chips.ncu import braced
from ncu_roofline.chips.verdict import COMPLETE
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering.document import FORMS, MISSING, Column, Document, Section, Table
from ncu_roofline.rendering.frames import records
from ncu_roofline.rendering.table import RED, YELLOW

Row = Mapping[str, Any]
KEY = tuple(one.name for one in WHERE)


class Measure(NamedTuple):
    """What rows are ranked by or heat bars show: the column of its share; see `data/measures.toml`."""

    share: str
    heading: str
    label: str
    meaning: str
    said: str
    noun: str = ""
    saved: str = ""


EXECUTED = "executed"
MEASURES = read(DATA / "measures.toml", dict[str, Measure])
RANKED = tuple(name for name, one in MEASURES.items() if one.noun)
"""What the rows of texts can be ranked by."""
_USUAL = ("samples", EXECUTED, "traffic")
"""The first that a launch knows is what its rows are ranked by unless somebody says."""


class Launch:
    """One launch of the frames: ``key`` is what its rows have in the columns KEY.

    ``limit``: the sentence of its verdict; ``bound`` the level of memory that binds it, "" if none does.  ``names``: of its
    functions the readable names by the mangled ones.  ``unit``: what its performance counts, flop or op; ``works`` is the
    column of these operations, ``work_unit`` what the column ``work`` counts, ``intensity`` the unit of intensities.
    ``has_lines``: whether there are source lines to show; its instructions stand in their place otherwise.  ``counted``: the
    column of what was executed: of warps, or of threads where nobody counted warps.
    """

    def __init__(self, frames: SourceRoofline, *key: Any) -> None:
        self.frames, self.key = frames, key
        report, launch, kernel, device = key
        nothing: Row = dict.fromkeys(("name", "grid", "block", "verdict", "reason", "limit"), "") | {"seconds": math.nan}
        about = next(iter(records(self._own(frames.roofline.kernel_columns))), nothing)
        self.seconds = float(about["seconds"])
        self.kernel, name = clean(kernel), frames.report_names(report) if report else ""
        self.place = f"launch {launch} of {clean(name)}, {clean(device)}"
        facts = [
            clean(device),
            f"launch {launch} of {one_line(name)}" if report else f"launch {launch}",
            f"grid {about['grid']}, block {about['block']}" if about["grid"] else "",
            format_value(self.seconds, "second", 3) if self.seconds > 0 else "",
        ]
        self.heading = {"kernel": self.kernel, "name": clean(about["name"] or kernel), "facts": list(filter(None, facts))}
        reason = clean(about["reason"])
        self.limit = f"{reason[0].upper()}{reason[1:]}." if reason else ""
        self.bound = about["limit"] if about["verdict"].startswith("memory:") else ""
        self._rows: dict[str, Sequence[Row]] = {}
        tables = map(frames.table, ("functions", "totals", "loops", "instructions", "lines"))
        functions, totals, loops, own, lines = map(self._own, tables)
        self.names = dict(zip(functions["function"].tolist(), functions["name"].tolist(), strict=True))
        self.unit = "op" if "op" in loops["unit"].tolist() else "flop"
        self.intensity = UNITS[COUNTED[self.unit].intensity_unit].symbol
        self.works = INTEGERS if INTEGERS in loops["performance_of"].tolist() else FLOPS
        self.work_unit = next(iter(totals["unit"][totals["quantity"] == FLOPS].tolist()), "flop")
        self.has_lines = has_lines(lines)
        counts = {EXECUTED: own[EXECUTED], "threads": own["threads"], "traffic": _asked(own)}
        self._wholes = {name: float(values[values > 0].sum()) or math.nan for name, values in counts.items()}
        self.counted = next((name for name in (EXECUTED, "threads") if self._wholes[name] > 0), EXECUTED)

    def _own(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        here = np.ones(len(columns["launch"]), dtype=bool)
        for name, value in zip(KEY, self.key, strict=True):
            here &= np.asarray(columns[name] == value, dtype=bool)
        return {name: values[here] for name, values in columns.items()}

    def table(self, name: str) -> dict[str, Any]:
        """Its rows of a table as columns, where they have counts with shares that the frames lack.

        ``share_executed`` is of threads where a report has only these; ``share_traffic`` of all bytes asked of L1, by global
        and by local memory, of which ``share_local`` is the second part.  ``intensity`` is of what performance counts.
        """
        own = self._own(self.frames.table(name))
        if EXECUTED in own:
            with np.errstate(invalid="ignore"):
                own["share_executed"] = np.asarray(own[self.counted] / self._wholes[self.counted])
                own["share_traffic"] = np.asarray(_asked(own) / self._wholes["traffic"])
                own["share_local"] = np.asarray(own["local"] / self._wholes["traffic"])
            own["intensity"] = own[INTENSITIES[self.works]]
        return own

    def rows(self, name: str) -> Sequence[Row]:
        """The same row by row, as Python values."""
        if name not in self._rows:
            self._rows[name] = records(self.table(name))
        return self._rows[name]

    def measure(self, asked: str = "") -> str:
        """What its rows are ranked by: what is ``asked``, unless no function has any of that."""
        functions = self.table("functions")
        there = (name for name in (asked, *_USUAL) if name and np.any(functions[MEASURES[name].share] > 0))
        return next(there, asked or _USUAL[0])


def launches(frames: SourceRoofline) -> list[Launch]:
    """The launches of the frames, the longest first; those without a time come last."""
    tables = map(frames.table, ("functions", "loops", "instructions", "lines"))
    keys = dict.fromkeys(key for table in tables for key in zip(*(table[name].tolist() for name in KEY), strict=True))
    return sorted((Launch(frames, *key) for key in keys), key=lambda one: -_known(one.seconds))


def place_text(file: str, line: int, called: Callable[[str], str]) -> str:
    """``smooth.cu:13``; what code without line is."""
    if line == OUTSIDE:
        return "outside"
    return "no line" if line <= 0 or not file else f"{clean(called(file))}:{line}"


def line_text(row: Row, names: Mapping[str, str]) -> str:
    """The text of a line; of code without lines, which function it is; ``names``: readable ones of functions."""
    text = clean(row["text"])
    return f"in {clean(names.get(row['text'], '')) or text}" if row["line"] == NOWHERE and text else text


def _known(value: float, missing: float = -1.0) -> float:
    return value if math.isfinite(value) else missing


def _asked(counts: Row) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Bytes asked of L1, by local memory too where that was counted; NaN if those of global memory were not."""
    local = counts["local"]
    return np.asarray(counts["requested"] + np.where(np.isfinite(local), local, 0.0))


# Rows unless somebody says how many; _MANY where their table is the only one.
_FINDINGS, _LOOPS, _LINES, _INSTRUCTIONS, _MANY = 5, 12, 12, 24, 40
_TOLD = 0.005  # a share of the kernel below this is not told
_QUANTITIES = {
    "executed": "warp instructions",
    "active": "active threads",
    "threads": "thread instructions",
    "requested": "L1 bytes",
    "local": "bytes of local memory",
    "shared": "wavefronts of shared memory",
    "work": "operations",
    "opcodes": "names of instructions",
}
_UNPLACED = ("samples", "executed", "work", "requested")
# Told where they fit; the others where they don't.
_COMPARED = ("executed", "threads", "work", "requested", "local", "shared", "opcodes")
_HOT, _WARM = 0.25, 0.1  # shares from which on a row is red or yellow
# The cheap columns go for whole names of places, the others for readable ones.  Bars, which the numbers beside them say again,
# go before numbers; stalls, bytes and what would be saved of them stay longest.
_STEPS = ((32, 5), (20, 1))
_NO_ROOM = "Left out for width: {names}: --width {width} shows them."
_IN_NONE = {NOWHERE: "in no loop", OUTSIDE: "outside of the code"}
_ALL_LANES = 31.95  # reads 32
_UNKNOWN = "-"  # in the place of a performance that can't be told: a note says why
_NAME = 60
_EQUAL = 1e-9  # sums that differ by less of the whole do so by rounding
Block = Table | Section


def document(frames: SourceRoofline, *, title: str = "", by: str = "", rows: int | None = None, sort: str = "") -> Document:
    """All launches, the longest first.

    ``by``: loop, line, outer-line, function or instruction, whose table alone is shown; ``rows`` of each table, 0 for all;
    ``sort``: what rows are ranked by.
    """
    found: list[Document | Section] = []
    for launch in launches(frames):
        said, measure = sentences(launch), launch.measure(sort)
        blocks: list[Block] = []
        if by:
            blocks += _TABLES[by](launch, measure, _MANY if rows is None else rows)
        else:
            blocks += _findings(launch, _FINDINGS if rows is None else rows)
            blocks += _loops(launch, measure, _LOOPS if rows is None else rows)
            blocks += _lines(launch, measure, _LINES if rows is None else rows)
        blocks.append(_totals(launch))
        if sort and measure != sort:
            lacks = f"This launch has no {MEASURES[sort].noun}, as far as they were counted"
            blocks.append(Section(about=f"{lacks}: rows are ranked by {MEASURES[measure].noun}."))
        found.append(Document(said[0], sentences=said, blocks=blocks))
    return Document(title or "Roofline of source lines and loops", blocks=[*found, Section(frames.caveats())])


def sentences(launch: Launch) -> list[str]:
    """Which launch it is and what limits it; what performance counts where that is integer work, or how much of it there is;
    how many instructions, functions, lines and samples there are.
    """
    functions = launch.rows("functions")
    own = [row for row in functions if row["role"] in ("kernel", "called")]  # which add up to all
    time, integer = format_value(launch.seconds, "second", 3) if launch.seconds > 0 else "", ""
    executed = [row for row in own if row[launch.counted] > 0]
    whole = math.fsum(row[launch.counted] for row in executed)
    share = math.fsum(row[launch.counted] * row["share_integer"] for row in executed) / whole if whole > 0 else 0.0
    said = f"{percent(share)} of its {'warp' if launch.counted == EXECUTED else 'thread'} instructions are integer arithmetic"
    if launch.works == INTEGERS:
        other = any(row["work"] > 0 for row in own)
        why = "which limit it; `work` has its other operations" if other else "as it does no floating-point work"
        integer = f"{launch.intensity} and performance count INT32 operations, {why}. {said}."
    elif share >= INTEGER_SHARE:
        integer = f"{said}, which `work` leaves out."
    count = sum(max(row["instructions"], 0) for row in own)
    facts = [plural(count, "instruction") if count else "code unknown"]
    facts += [plural(len(own), "function")] if len(own) > 1 else []
    if named := [row for row in launch.rows("lines") if row["line"] > 0]:
        files = plural(len({row["file"] for row in named}), "file")
        texts = any(row["text"] for row in named)
        without = "" if texts else ", whose text the report lacks (--source-folder names where it is)"
        facts.append(f"{plural(len(named), 'line')} of {files}{without}")
    else:
        facts.append(f"no source lines{' (compile with -lineinfo)' if count else ''}")
    samples = [row["samples"] for row in functions if row["role"] != "inlined" and row["samples"] >= 0]
    total = math.fsum(samples)
    few = f" (under {SAMPLES_MIN}: too few to show where warps wait)" if 0 < total < SAMPLES_MIN else ""
    facts.append(f"{total:,.0f} samples{few}" if samples else "no samples")
    head = ", ".join(filter(None, (launch.kernel, time, launch.place)))
    return [head, *filter(None, (launch.limit, integer, f"{'; '.join(facts)}."))]


def _findings(launch: Launch, most: int) -> Iterator[Section]:
    found, said, advised = launch.rows("findings"), list[str](), set[str]()
    for row in found[: most or None]:
        advice = clean(row["advice"])
        said.append(" ".join(filter(None, (clean(row["message"]), advice if advice not in advised else ""))))
        advised.add(advice)
    if said:
        heading = "What to look at, most of the kernel first:"
        yield Section(said, "Findings", heading, _more(len(found), len(said)), inside=True)


def _more(count: int, shown: int) -> tuple[str, ...]:
    """How many rows are left out of a table that shows so many, 0 for all."""
    return (f"and {count - shown:,} more: --all shows them",) if 0 < shown < count else ()


def _ranked(rows: Sequence[Row], measure: str) -> list[Row]:
    """Those with most of it first; what is not known comes last."""
    share = MEASURES[measure].share
    return sorted(rows, key=lambda row: (-_known(row[share]), -_known(row["share_executed"])))


def _table(launch: Launch, measure: str, name: str, rows: Sequence[Row], texts: Sequence[Row], **more: Any) -> Table:
    """Rows with the measure as bars and numbers, then, but of instructions, other shares; of integer work where that counts."""
    share = MEASURES[measure].share

    def heat(row: Row) -> str:
        return RED if row[share] >= _HOT else YELLOW if row[share] >= _WARM else ""

    others = {"work": 6, "traffic": 2, "local": 4, "excess": 2} if name != "instructions" else {}
    others = {INT32: 3} | others if others and launch.works == INTEGERS else others
    if not any(row["share_local"] > 0 for row in rows):
        others.pop("local", None)
    shares = [Column("bar", "str", "", "", " ", 9, form="bar", colour=heat)]
    for each, spare in ({measure: 0} | {one: spare for one, spare in others.items() if one != measure}).items():
        colour = heat if each == measure else None
        heading = MEASURES[each].heading
        shares.append(Column(MEASURES[each].share, "float", "ratio", "", heading, spare, "share", omit=MISSING, colour=colour))
    lanes, cells = any(row["lanes"] < _ALL_LANES for row in rows), []
    for row, known in zip(rows, texts, strict=True):
        stall = f" {100 * row['share_stall']:.0f} %" if math.isfinite(row["share_stall"]) else ""
        common = {
            "bar": row[share],
            "intensity": intensity_text(row["intensity"]),
            "lanes": _count(row["lanes"]) if lanes else "",
            "stall": clean(row["stall"]).replace("_", " ") + stall if row["stall"] else "",
        }
        cells.append({**row, **common, **known})
    texts_of = [replace(column, words=str) for column in SEEN[name]]  # ready texts, some of which begin with blanks
    columns = [column for each in texts_of for column in (shares if each.name == "shares" else [each])]
    shown, words = [column.name for column in columns], {"intensity": launch.intensity}
    return Table(name, columns, cells, shown, words=words, tells=_NO_ROOM, steps=_STEPS, **more)


def _count(value: float) -> str:
    """A number in three digits; "" for a missing one."""
    if not math.isfinite(value):
        return ""
    return f"{value:.3g}" if value < 1000 else format_value(value, "inst", 3).removesuffix("inst").replace(" ", "")


def _only_file(rows: Sequence[Row], launch: Launch) -> str:
    """What the source file of these rows is called, if there is one only: rows need not repeat it."""
    files = {row["file"] for row in rows if row["file"]}
    return clean(launch.frames.called(files.pop())) if len(files) == 1 else ""


def _loops(launch: Launch, measure: str, most: int) -> Iterator[Block]:
    """The loops as a tree, those with most of the measure first; the code in none comes last."""
    every = launch.rows("loops")
    executed = [row for row in every if row["executed"] != 0]
    loops, rest = ([row for row in executed if (row["loop"] >= 0) is inside] for inside in (True, False))
    idle = sum(row["loop"] >= 0 for row in every) - len(loops)
    inside: dict[int, list[Row]] = {}
    for row in _ranked(loops, measure):
        inside.setdefault(row["parent"], []).append(row)
    if not inside:
        yield Section(title="Loops", about="No loop of its code was executed." if idle else "No loop is known in its code.")
        return
    found, left = list[Row](), inside.get(NOWHERE, [])[::-1]
    while left:
        found.append(left.pop())
        left += reversed(inside.pop(found[-1]["loop"], []))
    rows = [*found, *sorted(rest, key=lambda row: -row["loop"])][: most or None]
    kernel = next((row["function"] for row in launch.rows("functions") if row["role"] == "kernel"), "")
    file, told, texts = _only_file(rows, launch), any(math.isfinite(row["performance"]) for row in rows), []
    for row in rows:
        first, last, speed = row["first_line"], row["last_line"], _UNKNOWN
        if math.isfinite(row["performance"]):
            speed = format_value(row["performance"], f"{launch.unit}/s", 3)
        where, lines = f"{row['header']:#x}-{row['end'] - SIZE:#x}", f"{first}-{last}" if last > first else str(first)
        if first > 0:
            called = clean(launch.frames.called(row["file"]))
            where = f"line{'s' if last > first else ''} {lines}" if called == file else f"{called}:{lines}"
        function = f" in {shorten(clean(row['function']))}" if row["function"] != kernel else ""
        name = f"{'  ' * min(row['depth'] - 1, 8)}{row['loop']} {where}{function}"
        cells = {"loop": name if row["loop"] >= 0 else _IN_NONE[row["loop"]]}
        cells["trips"] = _count(row["trips"]) if row["loop"] >= 0 else ""
        cells["performance"] = speed if told else ""
        cells["of roof at L1"] = percent(row["performance"] / row["attainable"]) if row["attainable"] > 0 else ""
        texts.append(cells)
    legend, notes = [*_more(len(loops), most)], dict[str, list[str]]()
    for row in loops:
        if row["notes"]:
            notes.setdefault(clean(row["notes"]), []).append(str(row["loop"]))
    for note, some in notes.items():
        named = f"Loop{'s' if len(some) > 1 else ''} {listed(some)}"
        legend.append(f"{'All loops' if len(some) == len(loops) > 1 else named}: {note}.")
    if launch.bound in load_spec().chain[1:] and any(row["performance"] > 0 for row in loops):
        known = f"Bytes of {label_of(launch.bound)}, which binds the kernel, are known of it alone"
        legend.append(f"{known}: loops stand against the roof of L1.")
    if idle:
        legend.append(f"{plural(idle, 'loop')} never executed {'is' if idle == 1 else 'are'} not shown.")
    title = f"Loops of {file}" if file else "Loops"
    about = f"{title}, with all that is inside them:"
    yield _table(launch, measure, "loops", rows, texts, title=title, about=about, legend=tuple(legend))


def _lines(launch: Launch, measure: str, most: int, name: str = "lines") -> Iterator[Block]:
    """The lines with most of the measure."""
    if not launch.has_lines:  # then instructions are what there is to see
        yield Section(about="It has no source lines: its instructions stand in their place.")
        yield from _instructions(launch, measure, _INSTRUCTIONS if most == _LINES else most)
        return
    every = [row for row in _ranked(launch.rows(name), measure) if row["executed"] != 0 or row["samples"] > 0]
    rows = every[: most or None]
    file = _only_file(rows, launch)
    title = f"Lines of {file}" if file else "Lines"
    inlined = ", with all that is inlined there" if name != "lines" else ""
    about = f"{title} with most {MEASURES[measure].noun}{inlined}:"
    places = (place_text(row["file"], row["line"], launch.frames.called).removeprefix(f"{file}:") for row in rows)
    texts = [{"line": place, "source": line_text(row, launch.names)} for place, row in zip(places, rows, strict=True)]
    yield _table(launch, measure, "lines", rows, texts, title=title, about=about, legend=_more(len(every), most))


def _functions(launch: Launch, measure: str, most: int) -> Iterator[Block]:
    """The kernel, what it calls and what is inlined into it."""
    every = _ranked(launch.rows("functions"), measure)
    twice = ", those inlined into others counted there, too" if any(row["role"] == "inlined" for row in every) else ""
    rows = every[: most or None]
    texts = [
        {
            "function": _IN_NONE[OUTSIDE] if row["role"] == "outside" else shorten(clean(row["name"]), _NAME),
            "role": clean(row["role"]),
            "instructions": f"{row['instructions']:,}" if row["instructions"] >= 0 else "",
            "line": place_text(row["file"], row["line"], launch.frames.called) if row["line"] > 0 else "",
        }
        for row in rows
    ]
    more = {"title": "Functions", "about": f"Functions{twice}:", "legend": _more(len(every), most)}
    yield _table(launch, measure, "functions", rows, texts, **more)


def _instructions(launch: Launch, measure: str, most: int) -> Iterator[Block]:
    """Instructions in the order of their addresses, those of loops moved to the right.

    They are the ``most`` neighbours with most of the measure, of the function with most of it.
    """
    said, functions = MEASURES[measure], dict[str, list[Row]]()
    for row in launch.rows("instructions"):
        functions.setdefault(row["function"], []).append(row)
    if not functions:
        return
    weights = {name: [_known(row[said.share], 0.0) for row in rows] for name, rows in functions.items()}
    function = max(functions, key=lambda name: (sum(weights[name]), bool(name)))
    own = sorted(functions[function], key=lambda row: int(row["address"]))
    start, end = hottest([_known(row[said.share], 0.0) for row in own], most)
    rows = own[start:end]
    name = shorten(clean(launch.names[function]), 100) if function else "code outside of the report"
    about, notes = f"Instructions of {name} in the order of their addresses", []
    if len(rows) < len(own):
        share = FORMS["share"](math.fsum(_known(row[said.share], 0.0) for row in rows))
        saved = f": better addresses would save {share} of the {said.saved} here"
        about += f", the hottest stretch{saved if said.saved else f' with {share} of the {said.noun}'}"
        notes.append(f"{start:,} before and {len(own) - end:,} behind are left out: --all shows them")
    if not any(row["sass"] for row in rows):
        notes.append("Opcodes are named by our own table.")
    depths = {row["loop"]: row["depth"] for row in launch.rows("loops")}
    alone = not any(math.isfinite(row["executed"]) for row in rows)  # then threads are all that was counted
    texts, called = [], launch.frames.called
    for row in rows:
        inlined = inlined_at(row["inlined"]) if row["line"] > 0 else ()
        chain = [place_text(row["file"], row["line"], called)] if row["line"] > 0 else []
        texts.append(
            {
                "offset": f"{row['offset'] if row['offset'] >= 0 else row['address']:05x}",
                "executed": _count(row["executed"]),
                "threads": _count(row["threads"]) if alone else "",
                "loop": str(row["loop"]) if row["loop"] >= 0 else "",
                "line": WITHIN.join([*chain, *(f"{clean(called(file))}:{clean(line)}" for file, line in inlined)]),
                "instruction": "  " * min(depths.get(row["loop"], 0), 8) + clean(row["sass"] or row["opcode"]),
            }
        )
    yield _table(launch, measure, "instructions", rows, texts, title="Instructions", about=f"{about}:", legend=tuple(notes))


def hottest(weights: Sequence[float], most: int) -> tuple[int, int]:
    """Where the ``most`` neighbours with the largest sum begin and end; of equal ones where the heaviest is in the middle."""
    if not 0 < most < len(weights):
        return 0, len(weights)
    sums = [0.0, *accumulate(weights)]
    found = [sums[start + most] - sums[start] for start in range(len(weights) - most + 1)]
    least = max(found) - _EQUAL * sums[-1]
    equal = [one for one, total in enumerate(found) if total >= least]
    heaviest = max(range(equal[0], equal[0] + most), key=weights.__getitem__)
    start = min(equal, key=lambda one: abs(one + (most - 1) // 2 - heaviest))
    return start, start + most


_TABLES: dict[str, Callable[[Launch, str, int], Iterator[Block]]] = {
    "loop": _loops,
    "line": _lines,
    "outer-line": partial(_lines, name="outer_lines"),
    "function": _functions,
    "instruction": _instructions,
}
BY = tuple(_TABLES)
"""What a row may be; unless one is chosen the text has loops and lines."""


def _totals(launch: Launch) -> Section:
    """Whether the sums fit the kernel's counters, and what of them belongs to no line."""
    rows = launch.rows("totals")
    called = {row["quantity"]: _QUANTITIES.get(row["quantity"], clean(row["quantity"])) for row in rows}
    for name in called:
        if name.startswith("work_"):
            called[name] = f"{clean(name).removeprefix('work_').upper().replace('TENSOR', 'tensor')} operations"

    def ratio(row: Row) -> str:
        value = row["ratio"]
        return f"{called[row['quantity']]} {value:.3f}" if 0.001 <= value < 1000 else f"{called[row['quantity']]} {value:.3g}"

    compared = [row for row in rows if math.isfinite(row["ratio"]) and row["quantity"] != "samples"]  # a note tells of these
    fitting = [row for row in compared if abs(row["ratio"] - 1) <= COMPLETE]
    told = [row for row in fitting if row["quantity"] in (*_COMPARED, launch.works)] or fitting
    heading = f"Sums over instructions fit the kernel's counters (sum / counter: {', '.join(map(ratio, told))})."
    if not fitting:
        heading = "Sums over instructions do not fit the kernel's counters."
    if not compared:
        heading = "No counter of the kernel shows whether the sums over instructions are complete."
    notes = []
    for row in compared:
        if row not in fitting:
            because = f": {clean(row['notes'])}" if row["notes"] else ""
            notes.append(f"They differ in {ratio(row)} ({braced(clean(row['metrics']).split(' + '))}){because}.")
    for name, where in (("outside", "Outside of the code that the report holds"), ("unlined", "Without source line")):
        parts = {row["quantity"]: row[name] / row["sum"] for row in rows if row["sum"] > 0 and row["quantity"] in _UNPLACED}
        if said := [f"{percent(share)} of {called[quantity]}" for quantity, share in parts.items() if share >= _TOLD]:
            notes.append(f"{where}: {', '.join(said)}.")
    return Section(title="Sums", about=heading, legend=tuple(notes))
