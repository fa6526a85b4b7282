"""The source view in words: what limits a kernel, then where: findings, loops, lines, functions or instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.hierarchical.style import label_of
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.source.columns import INTEGERS
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.launches import EXECUTED, MEASURES, Launch, Row, launches, longest_first
from ncu_roofline.analyses.source.listing import listing
from ncu_roofline.analyses.source.text_cells import share_text
from ncu_roofline.analyses.source.text_tables import (
    How,
    fitted,
    function_table,
    instruction_table,
    left_out,
    line_rows,
    line_table,
    loop_rows,
    loop_table,
    marked,
    only_file,
)
from ncu_roofline.base.texts import clean, listed, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.metric_names import braced
from ncu_roofline.chips.thresholds import COMPLETE, INTEGER_SHARE, SAMPLES_MIN
from ncu_roofline.rendering.table import Table, blocks_text, bullets, escape, markdown, markdown_document, terminal, wrapped

BY = ("loop", "line", "outer-line", "function", "instruction")
"""What a row may be; unless one is chosen the text has loops and lines."""
_WIDTH_MIN = 60
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
_OWN_NAMES = "Opcodes are named by our own table."


@dataclass(frozen=True)
class Part:
    """A table with what stands above and below it; ``name``: what it is in a word or two, "" for a sentence alone."""

    heading: str
    name: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def render_text(
    frames: SourceRoofline, *, width: int = 120, ascii_only: bool = False, by: str = "", rows: int | None = None, sort: str = ""
) -> bytes:
    """The text as UTF-8 without colours."""
    return (text_table(frames, width=width, ascii_only=ascii_only, by=by, rows=rows, sort=sort) + "\n").encode()


def text_table(
    frames: SourceRoofline,
    *,
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    by: str = "",
    rows: int | None = None,
    sort: str = "",
) -> str:
    """All launches for a terminal of ``width`` characters (60 at least); what does not fit is cut or left out.

    ``by``: one of BY, whose table alone is shown; ``rows`` of each table, 0 for all; ``sort`` one of RANKED.
    """
    width = max(width, _WIDTH_MIN)
    blocks: list[Iterable[str]] = []
    for launch in longest_first(launches(frames)):
        head, *said = sentences(launch)
        blocks.append([*wrapped(head, width, "    "), *_below(said, width)])
        blocks += [_lines(part, width, color) for part in parts(launch, by, rows, sort, ascii_only)]
    return blocks_text([*blocks, wrapped(frames.caveats(), width, "  ")], ascii_only)


def _lines(part: Part, width: int, color: bool) -> Iterator[str]:
    yield from wrapped(part.heading, width, "  ")
    yield from _below(part.sentences, width)
    if part.table:
        shown = fitted(part.table, width)
        yield from terminal(shown, width, color=color)
        yield from wrapped(left_out(part.table, shown), width, "  ")
    for note in part.notes:
        yield from wrapped(note, width, "  ")


def _below(sentences: Iterable[str], width: int) -> Iterator[str]:
    """Sentences that belong to the line above."""
    for one in sentences:
        yield from wrapped(one, width, "    ", first="  ")


def render_md(frames: SourceRoofline, *, title: str = "", by: str = "", rows: int | None = None, sort: str = "") -> bytes:
    """The same for GitHub and GitLab, tables complete."""
    blocks = [f"# {escape(title or 'Roofline of source lines and loops')}"]
    for launch in longest_first(launches(frames)):
        head, *said = sentences(launch)
        blocks += [f"## {escape(head)}", bullets(said)]
        for part in parts(launch, by, rows, sort):
            told = f"{escape(part.heading[:-1])}:" if part.heading.endswith(":") else escape(part.heading)
            blocks += [f"### {escape(part.name)}" if part.name else "", told, bullets(part.sentences)]
            blocks += [markdown(marked(part.table)) if part.table else "", bullets(part.notes)]
    return markdown_document([*blocks, bullets(frames.caveats())])


def sentences(launch: Launch) -> list[str]:
    """Which launch it is and what limits it; then where the counts are from and what of them has no line."""
    usage = launch.usage
    time = format_value(usage.seconds, "second", 3) if usage and usage.seconds > 0 else ""
    where = f"launch {launch.launch} of {clean(launch.report_name)}, {clean(launch.device)}"
    head = ", ".join(filter(None, (clean(launch.kernel), time, where)))
    verdict = f"{usage.reason}." if usage and usage.reason else ""
    return [head, *([f"{verdict[0].upper()}{verdict[1:]}"] if verdict else []), *_integer(launch), *_sources(launch)]


def _integer(launch: Launch) -> Iterator[str]:
    """What performance counts where that is integer work; what of a kernel is integer arithmetic, if it is much."""
    rows = [row for row in launch.rows("functions") if row["role"] in ("kernel", "called")]
    counts = launch.counted
    whole = math.fsum(row[counts] for row in rows if row[counts] > 0)
    share = math.fsum(row[counts] * row["share_integer"] for row in rows if row[counts] > 0) / whole if whole > 0 else 0.0
    said = f"{percent(share)} of its {'warp' if counts == EXECUTED else 'thread'} instructions are integer arithmetic"
    if launch.works == INTEGERS:
        other = any(row["work"] > 0 for row in rows)
        why = "which limit it; `work` has its other operations" if other else "as it does no floating-point work"
        yield f"{launch.intensity} and performance count INT32 operations, {why}. {said}."
    elif share >= INTEGER_SHARE:
        yield f"{said}, which `work` leaves out."


def _sources(launch: Launch) -> Iterator[str]:
    functions = [row for row in launch.rows("functions") if row["role"] in ("kernel", "called")]
    count = sum(max(row["instructions"], 0) for row in functions)
    lines = launch.rows("lines")
    named = [row for row in lines if row["line"] > 0]
    samples = [row["samples"] for row in launch.rows("functions") if row["role"] != "inlined" and row["samples"] >= 0]
    facts = [plural(count, "instruction") if count else "code unknown"]
    facts += [plural(len(functions), "function")] if len(functions) > 1 else []
    facts += [_lines_known(named) if named else f"no source lines{' (compile with -lineinfo)' if count else ''}"]
    total = math.fsum(samples)
    few = f" (under {SAMPLES_MIN}: too few to tell where warps wait)" if 0 < total < SAMPLES_MIN else ""
    facts += [f"{total:,.0f} samples{few}" if samples else "no samples"]
    yield f"{'; '.join(facts)}."


def _lines_known(named: Sequence[Row]) -> str:
    texts = any(row["text"] for row in named)
    files = plural(len({row["file"] for row in named}), "file")
    without = "" if texts else ", whose text the report lacks (--source-folder names where it is)"
    return f"{plural(len(named), 'line')} of {files}{without}"


def parts(launch: Launch, by: str = "", rows: int | None = None, sort: str = "", ascii_only: bool = False) -> Iterator[Part]:
    """What is told of a launch: findings, loops, lines and totals, or the table that ``by`` names and totals."""
    how = How(launch.measure(sort), ascii_only=ascii_only)
    if not by:
        yield from _findings(launch, _FINDINGS if rows is None else rows)
    for name in [by] if by else ["loop", "line"]:
        yield from _TABLES[name](launch, replace(how, rows=_most(name, bool(by)) if rows is None else rows))
    yield from _totals(launch)
    if sort and how.measure != sort:
        lacks = f"Nobody counted {MEASURES[sort].noun} of this launch"
        lacks = lacks if math.isnan(launch.most(sort)) else f"This launch has no {MEASURES[sort].noun}"
        yield Part(f"{lacks}: rows are ranked by {MEASURES[how.measure].noun}.")


def _most(name: str, alone: bool) -> int:
    return _MANY if alone else _LOOPS if name == "loop" else _LINES


def _findings(launch: Launch, most: int) -> Iterator[Part]:
    found = launch.rows("findings")
    shown = found[: most or None]
    said: list[str] = []
    advised: set[str] = set()
    for row in shown:
        advice = clean(row["advice"])
        said.append(" ".join(filter(None, (clean(row["message"]), advice if advice not in advised else ""))))
        advised.add(advice)
    more = (f"and {len(found) - len(shown)} more: --all shows them",) if len(found) > len(shown) else ()
    if said:
        yield Part("What to look at, most of the kernel first:", "Findings", sentences=tuple(said), notes=more)


def _loops(launch: Launch, how: How) -> Iterator[Part]:
    rows = [row for row in launch.rows("loops") if row["loop"] >= 0]
    executed = [row for row in rows if row["executed"] != 0]
    if not executed:
        yield Part("No loop is known in its code." if not rows else "No loop of its code was executed.", "Loops")
        return
    notes: dict[str, list[int]] = {}
    for row in executed:
        if row["notes"]:
            notes.setdefault(clean(row["notes"]), []).append(row["loop"])
    said = [f"{_numbered(loops, len(executed))}: {note}." for note, loops in notes.items()]
    idle = len(rows) - len(executed)
    said += _against_l1(launch, executed)
    said += [f"{plural(idle, 'loop')} never executed {'is' if idle == 1 else 'are'} not shown."] if idle else []
    file = only_file(loop_rows(launch, how), launch)
    of = f" of {file}" if file else ""
    made = loop_table(launch, how, file)
    yield Part(f"Loops{of}, with all that is inside them:", f"Loops{of}", made, (*_left_out(len(executed), how), *said))


def _against_l1(launch: Launch, loops: Iterable[Row]) -> Iterator[str]:
    """That loops stand against roofs that are not what binds their kernel."""
    bound = launch.usage.limit if launch.usage and launch.usage.verdict.startswith("memory:") else ""
    if bound in load_spec().chain[1:] and any(loop["performance"] > 0 for loop in loops):
        yield f"Bytes of {label_of(bound)}, which binds the kernel, are known of it alone: loops stand against the roof of L1."


def _numbered(loops: Sequence[int], count: int) -> str:
    """Loops by their numbers."""
    if len(loops) == count > 1:
        return "All loops"
    return f"Loop{'s' if len(loops) > 1 else ''} {listed(map(str, loops))}"


def _lines_of(launch: Launch, how: How, name: str = "lines") -> Iterator[Part]:
    rows = [row for row in launch.rows(name) if row["executed"] != 0 or row["samples"] > 0]
    if not launch.has_lines:  # then instructions are what there is to see
        yield Part("It has no source lines: its instructions stand in their place.")
        yield from _instructions(launch, replace(how, rows=_INSTRUCTIONS if how.rows == _LINES else how.rows))
        return
    inlined = ", with all that is inlined there" if name != "lines" else ""
    file = only_file(line_rows(launch, how, name), launch)
    of = f" of {file}" if file else ""
    about = f"Lines{of} with most {MEASURES[how.measure].noun}{inlined}:"
    yield Part(about, f"Lines{of}", line_table(launch, how, name, file), _left_out(len(rows), how))


def _functions(launch: Launch, how: How) -> Iterator[Part]:
    rows = launch.rows("functions")
    twice = ", those inlined into others counted there, too" if any(row["role"] == "inlined" for row in rows) else ""
    yield Part(f"Functions{twice}:", "Functions", function_table(launch, how), _left_out(len(rows), how))


def _instructions(launch: Launch, how: How) -> Iterator[Part]:
    found = listing(launch, how.measure, how.rows)
    if not found.rows:
        return
    share = math.fsum(value for row in found.rows if math.isfinite(value := row[MEASURES[how.measure].share]))
    names = {row["function"]: row["name"] for row in launch.rows("functions")}
    name = shorten(clean(names[found.function]), 100) if found.function else "code outside of the report"
    about = f"Instructions of {name} in the order of their addresses"
    left = f"{found.before:,} before and {found.behind:,} behind are left out: --all shows them"
    measure = MEASURES[how.measure]
    saved = f", the hottest stretch: better addresses would save {share_text(share)} of the {measure.saved} here"
    part = saved if measure.saved else f", the hottest stretch with {share_text(share)} of the {measure.noun}"
    whole = not found.before + found.behind
    named = () if any(row["sass"] for row in found.rows) else (_OWN_NAMES,)
    made = instruction_table(launch, found.rows, how)
    yield Part(f"{about}{'' if whole else part}:", "Instructions", made, (*(() if whole else (left,)), *named))


_TABLES: dict[str, Callable[[Launch, How], Iterator[Part]]] = {
    "loop": _loops,
    "line": _lines_of,
    "outer-line": partial(_lines_of, name="outer_lines"),
    "function": _functions,
    "instruction": _instructions,
}


def _left_out(count: int, how: How) -> tuple[str, ...]:
    return (f"and {count - how.rows:,} more: --all shows them",) if 0 < how.rows < count else ()


def _totals(launch: Launch) -> Iterator[Part]:
    """Whether the sums fit the kernel's counters, and what of them belongs to no line."""
    rows = launch.rows("totals")
    compared = [row for row in rows if math.isfinite(row["ratio"]) and row["quantity"] != "samples"]  # a note tells of these
    fitting = [row for row in compared if abs(row["ratio"] - 1) <= COMPLETE]
    told = [row for row in fitting if row["quantity"] in (*_COMPARED, launch.works)] or fitting
    misfits = [_misfit(row) for row in compared if row not in fitting]
    heading = f"Sums over instructions fit the kernel's counters (sum / counter: {', '.join(map(_ratio, told))})."
    if not fitting:
        heading = "Sums over instructions do not fit the kernel's counters."
    if not compared:
        heading = "No counter of the kernel tells whether the sums over instructions are complete."
    yield Part(heading, "Sums", notes=(*misfits, *_unplaced(rows)))


def _misfit(row: Row) -> str:
    """A sum that is not what the kernel's counter says."""
    because = f": {clean(row['notes'])}" if row["notes"] else ""
    counters = braced(clean(row["metrics"]).split(" + "))
    return f"They differ in {_ratio(row)} ({counters}){because}."


def _ratio(row: Row) -> str:
    ratio = row["ratio"]
    return f"{_quantity(row)} {ratio:.3f}" if 0.001 <= ratio < 1000 else f"{_quantity(row)} {ratio:.3g}"


def _quantity(row: Row) -> str:
    """What a total is of."""
    name = clean(row["quantity"])
    if name.startswith("work_"):
        return f"{name.removeprefix('work_').upper().replace('TENSOR', 'tensor')} operations"
    return _QUANTITIES.get(name, name)


def _unplaced(rows: Sequence[Row]) -> Iterator[str]:
    """What lies outside of the code, and what has no source line."""
    for name, where in (("outside", "outside of the code that the report holds"), ("unlined", "without source line")):
        said = []
        for row in rows:
            share = row[name] / row["sum"] if row["sum"] > 0 else 0.0
            if share >= _TOLD and row["quantity"] in _UNPLACED:
                said.append(f"{percent(share)} of {_quantity(row)}")
        if said:
            yield f"{where[0].upper()}{where[1:]}: {', '.join(said)}."
