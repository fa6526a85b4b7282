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
from ncu_roofline.analyses.source.text_tables import (
    How,
    fitted,
    function_table,
    hottest_stretch,
    instruction_table,
    left_out,
    line_rows,
    line_table,
    loop_rows,
    loop_table,
    marked,
    only_file,
    share_text,
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
        blocks.append([*wrapped(head, width, "    "), *wrapped(said, width, "    ", first="  ")])
        for part in parts(launch, by, rows, sort, ascii_only):
            lines = [*wrapped(part.heading, width, "  "), *wrapped(part.sentences, width, "    ", first="  ")]
            if part.table:
                shown = fitted(part.table, width)
                lines += [*terminal(shown, width, color=color), *wrapped(left_out(part.table, shown), width, "  ")]
            blocks.append([*lines, *wrapped(part.notes, width, "  ")])
    return blocks_text([*blocks, wrapped(frames.caveats(), width, "  ")], ascii_only)


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
    functions = launch.rows("functions")
    own = [row for row in functions if row["role"] in ("kernel", "called")]
    return [head, *filter(None, (launch.limit, _integer(launch, own), _sources(launch, functions, own)))]


def _integer(launch: Launch, rows: Sequence[Row]) -> str:
    """What performance counts where that is integer work; what of a kernel is integer arithmetic, if it is much."""
    counts = launch.counted
    whole = math.fsum(row[counts] for row in rows if row[counts] > 0)
    share = math.fsum(row[counts] * row["share_integer"] for row in rows if row[counts] > 0) / whole if whole > 0 else 0.0
    said = f"{percent(share)} of its {'warp' if counts == EXECUTED else 'thread'} instructions are integer arithmetic"
    if launch.works == INTEGERS:
        other = any(row["work"] > 0 for row in rows)
        why = "which limit it; `work` has its other operations" if other else "as it does no floating-point work"
        return f"{launch.intensity} and performance count INT32 operations, {why}. {said}."
    return f"{said}, which `work` leaves out." if share >= INTEGER_SHARE else ""


def _sources(launch: Launch, functions: Sequence[Row], own: Sequence[Row]) -> str:
    """How many instructions, functions, lines and samples there are; ``own``: the functions that add up to all."""
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
    few = f" (under {SAMPLES_MIN}: too few to tell where warps wait)" if 0 < total < SAMPLES_MIN else ""
    facts += [f"{total:,.0f} samples{few}" if samples else "no samples"]
    return f"{'; '.join(facts)}."


def parts(launch: Launch, by: str = "", rows: int | None = None, sort: str = "", ascii_only: bool = False) -> Iterator[Part]:
    """What is told of a launch: findings, loops, lines and totals, or the table that ``by`` names and totals."""
    how = How(launch.measure(sort), ascii_only=ascii_only)
    if by:
        yield from _TABLES[by](launch, replace(how, rows=_MANY if rows is None else rows))
    else:
        yield from _findings(launch, _FINDINGS if rows is None else rows)
        yield from _loops(launch, replace(how, rows=_LOOPS if rows is None else rows))
        yield from _lines(launch, replace(how, rows=_LINES if rows is None else rows))
    yield from _totals(launch)
    if sort and how.measure != sort:
        lacks = f"Nobody counted {MEASURES[sort].noun} of this launch"
        lacks = lacks if math.isnan(launch.most(sort)) else f"This launch has no {MEASURES[sort].noun}"
        yield Part(f"{lacks}: rows are ranked by {MEASURES[how.measure].noun}.")


def _findings(launch: Launch, most: int) -> Iterator[Part]:
    found = launch.rows("findings")
    shown = found[: most or None]
    said: list[str] = []
    advised: set[str] = set()
    for row in shown:
        advice = clean(row["advice"])
        said.append(" ".join(filter(None, (clean(row["message"]), advice if advice not in advised else ""))))
        advised.add(advice)
    if said:
        heading = "What to look at, most of the kernel first:"
        yield Part(heading, "Findings", sentences=tuple(said), notes=_more(len(found), len(shown)))


def _more(count: int, shown: int) -> tuple[str, ...]:
    """How many rows are left out of a table that shows so many, 0 for all."""
    return (f"and {count - shown:,} more: --all shows them",) if 0 < shown < count else ()


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
    said = []
    for note, loops in notes.items():
        named = f"Loop{'s' if len(loops) > 1 else ''} {listed(map(str, loops))}"
        said.append(f"{'All loops' if len(loops) == len(executed) > 1 else named}: {note}.")
    bound = launch.usage.limit if launch.usage and launch.usage.verdict.startswith("memory:") else ""
    if bound in load_spec().chain[1:] and any(row["performance"] > 0 for row in executed):
        known = f"Bytes of {label_of(bound)}, which binds the kernel, are known of it alone"
        said.append(f"{known}: loops stand against the roof of L1.")
    if idle := len(rows) - len(executed):
        said.append(f"{plural(idle, 'loop')} never executed {'is' if idle == 1 else 'are'} not shown.")
    file = only_file(loop_rows(launch, how), launch)
    name = f"Loops of {file}" if file else "Loops"
    notes_below = (*_more(len(executed), how.rows), *said)
    yield Part(f"{name}, with all that is inside them:", name, loop_table(launch, how, file), notes_below)


def _lines(launch: Launch, how: How, name: str = "lines") -> Iterator[Part]:
    rows = [row for row in launch.rows(name) if row["executed"] != 0 or row["samples"] > 0]
    if not launch.has_lines:  # then instructions are what there is to see
        yield Part("It has no source lines: its instructions stand in their place.")
        yield from _instructions(launch, replace(how, rows=_INSTRUCTIONS if how.rows == _LINES else how.rows))
        return
    inlined = ", with all that is inlined there" if name != "lines" else ""
    file = only_file(line_rows(launch, how, name), launch)
    called = f"Lines of {file}" if file else "Lines"
    about = f"{called} with most {MEASURES[how.measure].noun}{inlined}:"
    yield Part(about, called, line_table(launch, how, name, file), _more(len(rows), how.rows))


def _functions(launch: Launch, how: How) -> Iterator[Part]:
    rows = launch.rows("functions")
    twice = ", those inlined into others counted there, too" if any(row["role"] == "inlined" for row in rows) else ""
    yield Part(f"Functions{twice}:", "Functions", function_table(launch, how), _more(len(rows), how.rows))


def _instructions(launch: Launch, how: How) -> Iterator[Part]:
    rows, before, behind = hottest_stretch(launch, how.measure, how.rows)
    if not rows:
        return
    measure = MEASURES[how.measure]
    function = rows[0]["function"]
    name = shorten(clean(launch.function_names[function]), 100) if function else "code outside of the report"
    about, notes = f"Instructions of {name} in the order of their addresses", []
    if before + behind:
        share = share_text(math.fsum(value for row in rows if math.isfinite(value := row[measure.share])))
        saved = f": better addresses would save {share} of the {measure.saved} here"
        about += f", the hottest stretch{saved if measure.saved else f' with {share} of the {measure.noun}'}"
        notes.append(f"{before:,} before and {behind:,} behind are left out: --all shows them")
    if not any(row["sass"] for row in rows):
        notes.append("Opcodes are named by our own table.")
    yield Part(f"{about}:", "Instructions", instruction_table(launch, rows, how), tuple(notes))


_TABLES: dict[str, Callable[[Launch, How], Iterator[Part]]] = {
    "loop": _loops,
    "line": _lines,
    "outer-line": partial(_lines, name="outer_lines"),
    "function": _functions,
    "instruction": _instructions,
}


def _totals(launch: Launch) -> Iterator[Part]:
    """Whether the sums fit the kernel's counters, and what of them belongs to no line."""
    rows = launch.rows("totals")
    compared = [row for row in rows if math.isfinite(row["ratio"]) and row["quantity"] != "samples"]  # a note tells of these
    fitting = [row for row in compared if abs(row["ratio"] - 1) <= COMPLETE]
    told = [row for row in fitting if row["quantity"] in (*_COMPARED, launch.works)] or fitting
    heading = f"Sums over instructions fit the kernel's counters (sum / counter: {', '.join(map(_ratio, told))})."
    if not fitting:
        heading = "Sums over instructions do not fit the kernel's counters."
    if not compared:
        heading = "No counter of the kernel tells whether the sums over instructions are complete."
    notes = []
    for row in compared:
        if row not in fitting:
            because = f": {clean(row['notes'])}" if row["notes"] else ""
            notes.append(f"They differ in {_ratio(row)} ({braced(clean(row['metrics']).split(' + '))}){because}.")
    for name, where in (("outside", "Outside of the code that the report holds"), ("unlined", "Without source line")):
        parts = {_quantity(row): row[name] / row["sum"] for row in rows if row["sum"] > 0 and row["quantity"] in _UNPLACED}
        if said := [f"{percent(share)} of {quantity}" for quantity, share in parts.items() if share >= _TOLD]:
            notes.append(f"{where}: {', '.join(said)}.")
    yield Part(heading, "Sums", notes=tuple(notes))


def _ratio(row: Row) -> str:
    ratio = row["ratio"]
    return f"{_quantity(row)} {ratio:.3f}" if 0.001 <= ratio < 1000 else f"{_quantity(row)} {ratio:.3g}"


def _quantity(row: Row) -> str:
    """What a total is of."""
    name = clean(row["quantity"])
    if name.startswith("work_"):
        return f"{name.removeprefix('work_').upper().replace('TENSOR', 'tensor')} operations"
    return _QUANTITIES.get(name, name)
