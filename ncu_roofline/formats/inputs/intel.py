"""One run of an application under Intel's tools: Advisor's survey and roofs; SDE's operations and VTune's traffic and time.

SDE and VTune run it once each, so the parts are of different executions of the same work.  The method is NERSC's "Measuring
Arithmetic Intensity" (docs.nersc.gov).  Layouts are from public documentation and scripts, that of SDE also from a public mix
of version 9.24; its masked counts, and VTune's reports, are unproven on a file of ours.

SDE's instruction mix (``sde -iform 1 -omix FILE``): ``*elements_fp_double_4`` counts instructions on four numbers (compares
among them), an operation on each; fused multiply-adds are among them once and do a second one.  Traffic of level l1 is
``*mem-read-N`` and ``*mem-write-N`` times N bytes.  The block of all threads counts; where there is none, those of the threads
are added.  x87, AMX and dot products of BF16 are not among the elements.  The mix does not say how many numbers a masked
instruction computed, so the work lies between two bounds, and is used where they agree.  Iforms of AVX-512 are the same with
and without a mask.

VTune's reports as CSV: bytes of the memory controllers (``-report hw-events``), and the time (``-report summary``).  A count of
the controllers (``UNC_M_CAS_COUNT.RD`` and ``.WR``; ``UNC_E_RPQ_INSERTS`` and ``UNC_E_WPQ_INSERTS`` of the memory on Knights
Landing's package) is a line of 64 bytes; they count what all of the machine moves.  The time is "Elapsed Time", which leaves
out pauses.

Advisor's survey with trip counts and FLOP gives one point per loop or function, by what it does itself; its columns and its
roofs (``advisor --report=roofs --format=csv``) are in `data/inputs.toml`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import PurePosixPath, PureWindowsPath

from ncu_roofline.base.files import JOINED
from ncu_roofline.base.texts import listed
from ncu_roofline.formats.ceilings import UNNAMED_CPU, Ceiling, Ceilings
from ncu_roofline.formats.inputs.tables import ANY_PRECISION, ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import Table, delimiter_of, lines_of, row_of, text_of
from ncu_roofline.formats.inputs.words import load_words, traffic_of

_BEGIN = re.compile(r"# EMIT_(GLOBAL_)?DYNAMIC_STATS\b(?:.*?\bTID\s+(\d+))?")
_END = re.compile(r"# END_(?:GLOBAL_)?DYNAMIC_STATS\b")
_IMAGES = re.compile(r"# EMIT_IMAGE_ADDRESSES\b")
_IMAGE = re.compile(r"(.+)\s[0-9a-f]+\s+[0-9a-f]+")
_COUNT = re.compile(r"(\S+)\s+(\S+)")
_BYTES = re.compile(r"\*mem-(read|write)-(\d{1,6})")
_ELEMENTS = re.compile(r"\*elements_fp_(single|double)_(\d{1,3})(_masked)?")
_FUSED = re.compile(r"VFN?M(?:ADD|SUB|ADDSUB|SUBADD)(?:132|213|231)?([SP])([SD])(?:_([XYZ]MM)\w*)?")
_READ = re.compile("|".join(one.pattern for one in (_BYTES, _ELEMENTS, _FUSED)) + r"|\*mem-(?:read|write)")
_TYPES = {"S": ("fp32", 32), "D": ("fp64", 64)}
_BITS = {"XMM": 128, "YMM": 256, "ZMM": 512}
_CLOSE = 0.01  # of the work: bounds that are no further apart are one number in any chart
_MIX = "Give SDE's complete output, as `sde -iform 1 -omix FILE -- ./app` writes it."

_LINE = 64.0  # bytes
_TIME = "Elapsed Time"
_EVENT = re.compile(r"(?:Uncore Event Count:)?(UNC_\w+(?:\.\w+)*)(?:\[(UNIT\d+)\])?")
_COUNTERS = {
    "dram": (r"UNC_M_CAS_COUNT\.RD|UNC_MC\d_RDCAS_COUNT_FREERUN", r"UNC_M_CAS_COUNT\.WR|UNC_MC\d_WRCAS_COUNT_FREERUN"),
    "mcdram": ("UNC_E_RPQ_INSERTS", "UNC_E_WPQ_INSERTS"),
}
_METRIC = "Metric Name"  # of a summary, whose next column has the value
_REPORT = (
    "Report with `vtune -report hw-events -group-by=package -column=UNC_M_CAS_COUNT -format=csv`, and the time with "
    "`vtune -report summary -format=csv`."
)

_LOOP = "function_call_sites_and_loops"
_GIGA = 1e9


def joined(tables: Sequence[PointTable]) -> list[PointTable]:
    """Tables of several files, those of one run as one.

    One report of VTune completes all mixes of SDE, which are processes of its run; as many reports as mixes go in pairs, in
    their order; else nobody knows what belongs together, and the tables come back as they are, with a warning.
    """
    mixes = [table for table in tables if table.format == "sde"]
    reports = [table for table in tables if table.format == "vtune"]
    events = [table for table in reports if math.isnan(table.points[0].seconds)]
    times = [table for table in reports if not math.isnan(table.points[0].seconds)]
    kinds = [kind for kind in (events, times) if kind]
    runs = len(kinds[0]) if kinds else 0
    if not kinds or (len(kinds) == 1 and not mixes):
        return list(tables)
    if any(len(kind) != runs for kind in kinds) or (mixes and runs > 1 and len(mixes) != runs):
        count = f"{len(mixes)} mixes of SDE, {len(events)} reports of events and {len(times)} summaries of VTune"
        sentence = f"{count} are not joined, for it is not known which belong together: give those of one run alone."
        return [*tables[:-1], replace(tables[-1], warnings=(*tables[-1].warnings, sentence))]
    return [_of_run(mixes if runs == 1 else mixes[at : at + 1], [kind[at] for kind in kinds]) for at in range(runs)]


def _of_run(mixes: Sequence[PointTable], reports: Sequence[PointTable]) -> PointTable:
    """One point from the files of a run: processes that SDE counted add up, as far as each has counts of a kind."""
    tables = (*mixes, *reports)
    counted, points = [table.points[0] for table in mixes], [table.points[0] for table in tables]

    def added(amounts: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {key: sum(one[key] for one in amounts) for key in amounts[0] if all(key in one for one in amounts)}

    work, traffic = (added([one.work for one in counted]), added([one.traffic for one in counted])) if mixes else ({}, {})
    for table in reports:
        traffic |= table.points[0].traffic
    shares: dict[str, float] = {}
    for precision, done in work.items():
        given = [(one.work[precision], one.fma_share.get(precision, 0.0)) for one in counted]
        fused = sum(one * share / (1 + share) for one, share in given)  # instructions, of which each does two operations
        shares |= {precision: fused / (done - fused)} if done else {}
    notes = [*(one.note for one in points if one.note), *[f"the sum of {len(mixes)} processes"] * (len(mixes) > 1)]
    point = replace(
        points[0],
        seconds=next((one.seconds for one in points if not math.isnan(one.seconds)), math.nan),
        work=work,
        traffic=traffic,
        fma_share=shares,
        columns=", ".join(dict.fromkeys(one.columns for one in points)),
        note="; ".join(notes),
    )
    path, reading = JOINED.join(table.path for table in tables), tuple(text for table in tables for text in table.reading)
    return _table(path, "sde" if mixes else "vtune", point, reading, *tables)


def _table(path: str, tool: str, point: ImportedPoint, reading: tuple[str, ...], *parts: PointTable) -> PointTable:
    """A table with the one point of a run; of what it lacks it is told what gives it."""
    lacks = []
    if tool != "sde":
        mix = "the mix of the same run by Intel SDE as well (`sde -iform 1 -omix FILE -- ./app`)"
        lacks.append(f"{path}: it holds no operations; give {mix}.")
    elif math.isnan(point.seconds):
        total = sum(point.work.values())
        known = listed(f"{total / moved:.3g} FLOP/B at {level}" for level, moved in point.traffic.items() if total and moved)
        about = f", so of its place in a roofline only the intensity is known ({known})" if known else ""
        summary = "give the summary of the same run by VTune as well (`vtune -report summary -format=csv`)"
        lacks.append(f"{path}: it holds no time{about}; {summary}, or write its numbers with seconds into a plain table.")
    return PointTable(path, tool, (point,), warnings=(*reading, *lacks), parts=parts, reading=reading)


def read_sde(path: str | PathLike[str]) -> PointTable:
    """The process as one point without a time.  Raises RooflineError for a mix that is cut off or contradicts itself."""
    mix = Table(path, _MIX)
    counts, image = _counted(mix)
    sizes = [(match[1], int(match[2]), value) for name, value in counts.items() if (match := _BYTES.fullmatch(name))]
    for way in ("read", "write"):
        stated, added = counts.get(f"*mem-{way}"), sum(value for what, _, value in sizes if what == way)
        if stated not in (None, added):
            raise mix.damaged(f"its *mem-{way}-N add up to {added:.0f}, and its *mem-{way} is {stated:.0f}")
    traffic = {"l1": sum(size * value for _, size, value in sizes)} if sizes else {}
    # By type and numbers that one instruction computes: elements, those of them under a mask, fused ones, perhaps masked ones.
    lanes: dict[str, dict[int, list[float]]] = {precision: {} for precision, _ in _TYPES.values()}
    unknown: dict[str, str] = {}  # a fused instruction that ran, and whose width is not known
    for name, count in counts.items():
        if match := _ELEMENTS.fullmatch(name):
            precision, _ = _TYPES[match[1][0].upper()]
            lanes[precision].setdefault(int(match[2]), [0.0] * 4)[1 if match[3] else 0] += count
        elif count and (match := _FUSED.fullmatch(name)):
            precision, bits = _TYPES[match[2]]
            if match[1] == "P" and not match[3]:
                unknown[precision] = name
            else:
                width = 1 if match[1] == "S" else _BITS[match[3]] // bits
                lanes[precision].setdefault(width, [0.0] * 4)[3 if "_MASK" in name else 2] += count
    work, shares, notes, reading = {}, dict[str, float](), [], []
    for precision, widths in lanes.items():
        low = high = fused = 0.0
        for width, (plain, masked, sure, either) in widths.items():
            if sure + either > plain + masked:
                raise mix.damaged(f"it has more fused instructions on {width} numbers of {precision} than instructions")
            sure_at_least = sure + max(0.0, either - masked)
            low += width * (plain + sure_at_least)
            high += width * (plain + masked + sure + either)
            fused += width * sure_at_least
        left_out = ""
        if precision in unknown:
            left_out = f"{unknown[precision]} does not say how wide it is; run SDE with -iform 1"
        elif high - low > _CLOSE * low:
            between = f"it is between {low:.4g} and {high:.4g} FLOP"
            left_out = f"{between}, for the mix does not say how many numbers its masked instructions computed"
        elif widths:
            work[precision] = low
            shares |= {precision: fused / (low - fused)} if low else {}  # of instructions: a fused one does two operations
            if high > low:
                notes.append(f"{precision} work without masked instructions, which did at most {high - low:.4g} FLOP")
        if left_out:
            reading.append(f"{precision} work left out: {left_out}")
    if not (work or traffic or reading):
        raise mix.damaged("its counts hold neither operations nor bytes")
    columns = "*elements_fp_*, VFM*, *mem-read-*, *mem-write-*"
    point = ImportedPoint(
        image or mix.stem, math.nan, work, traffic, shares, UNNAMED_CPU, columns=columns, note="; ".join(notes)
    )
    return _table(mix.path, "sde", point, mix.warnings(reading))


def _counted(mix: Table) -> tuple[dict[str, float], str]:
    """The counts of all threads, and the program that ran.  Blocks of statistics are by thread, "" for all of them."""
    image, begun, images = "", 0, False
    blocks: dict[str, dict[str, float]] = {}
    block: dict[str, float] | None = None
    with closing(lines_of(mix.path)) as lines:
        for number, padded in enumerate(lines, 1):
            line = padded.strip()
            if match := _BEGIN.match(line):
                thread = "" if match[1] else match[2] or "0"
                if thread in blocks:
                    reason = f"line {number} begins the statistics of {f'thread {thread}' if thread else 'all threads'} again"
                    raise mix.damaged(reason, "Give one file per run and region, for whether blocks add up is not known.")
                if block is not None:
                    break
                block = blocks[thread] = {}
                begun = number
            elif _END.match(line) or (line.startswith("# $") and not line.endswith("dynamic-counts")):
                block = None  # the statistics of a function: the sums hold them already
            elif block is not None:
                if not line or line.startswith("#"):
                    continue
                match = _COUNT.fullmatch(line)
                name = match[1] if match else line.split()[0]
                if _READ.fullmatch(name):
                    value = mix.number(name, number, match[2] if match else "")
                    if value is None or value != int(value) or name in block:
                        raise mix.damaged(f"{name} in line {number} has no count, or stands there twice")
                    block[name] = value
            elif line.startswith("# "):
                images = _IMAGES.match(line) is not None or (images and not line.startswith("# END"))
            elif images and not image and (match := _IMAGE.fullmatch(line)):
                program = match[1].strip()
                image = (PureWindowsPath if "\\" in program else PurePosixPath)(program).name
    if block is not None:
        raise mix.damaged(f"the statistics that begin in line {begun} have no end")
    if not blocks:
        raise mix.damaged("it holds no dynamic statistics")
    if "" in blocks:
        return blocks[""], image
    names = dict.fromkeys(name for one in blocks.values() for name in one)
    return {name: sum(one.get(name, 0.0) for one in blocks.values()) for name in names}, image


def read_vtune(path: str | PathLike[str]) -> PointTable:
    """Traffic or time of a run, a point without work.  Raises RooflineError for damaged tables and those with neither."""
    table, lines = Table(path, _REPORT), text_of(path).split("\n")
    headings = _headings(lines, "vtune")
    if len(headings) != 1:
        raise table.damaged(f"it has {len(headings)} headings of tables", "Give one report per file.")
    ((start, delimiter, columns),) = headings
    at = columns.index(_METRIC) if _METRIC in columns else -1
    rows = list(table.rows(lines, start + 1, delimiter, 0 if at >= 0 else len(columns)))
    if at >= 0:
        times = [(line, cells[at + 1]) for line, cells in rows if len(cells) > at + 1 and cells[at].rstrip(":") == _TIME]
        seconds = table.seconds(_TIME, *times[0]) if len(times) == 1 else None
        if not seconds:
            raise table.damaged(f'it has no "{_TIME}", or several')
        return _table(table.path, "vtune", ImportedPoint(table.stem, seconds, device=UNNAMED_CPU, columns=_TIME), ())
    if (by := "".join(columns[:1])).lower() != "package":
        raise table.damaged(f"it is grouped by {by[:40]!r}, so lines of several levels may count the same")
    names = [*filter(None, columns), *(cells[0] for _, cells in rows)]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise table.damaged(f"{twice[0]!r} stands there twice")
    totals: dict[tuple[str, str], float] = {}
    for line, cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            if match := _EVENT.fullmatch(column):
                count = table.number(column, line, cell)
                if count is None:
                    raise table.damaged(f"{column} in line {line} has no number")
                event = (match[1], match[2] or "")
                totals[event] = totals.get(event, 0.0) + count
    traffic, used, reading = {}, set(), []
    for level, ways in _COUNTERS.items():
        loads, stores = ([event for event in totals if re.fullmatch(way, event[0])] for way in ways)
        used |= {name for name, _ in (*loads, *stores)}
        if sorted(unit for _, unit in loads) != sorted(unit for _, unit in stores):
            reading.append(f"{level} traffic left out: its reads and its writes were not counted by the same controllers")
        elif loads:
            traffic[level] = _LINE * sum(totals[event] for event in (*loads, *stores))
    if not rows or not (traffic or reading):
        raise table.damaged("it holds no count of a memory controller")
    if unused := dict.fromkeys(name for name, _ in totals if name not in used):
        reading.append(f"events that are not used: {listed(unused)}")
    counts = ", ".join(sorted(used)) if traffic else ""
    point = ImportedPoint(table.stem, traffic=traffic, device=UNNAMED_CPU, columns=counts)
    return _table(table.path, "vtune", point, table.warnings(reading))


def _headings(lines: Sequence[str], tool: str) -> list[tuple[int, str, list[str]]]:
    """Place, delimiter and cells of the lines by which files of a tool are recognised: the headings of its tables."""
    sign = re.compile(load_words().signs[tool], re.IGNORECASE)
    signs = ((at, delimiter_of(line)) for at, line in enumerate(lines) if sign.search(line))
    return [(at, delimiter, row_of(lines[at], delimiter)) for at, delimiter in signs]


def _plain(column: str) -> str:
    """ "Self GB/s" as self_gb_s."""
    return re.sub(r"[^a-z0-9]+", "_", column.strip().lower()).strip("_")


def read_advisor(path: str | PathLike[str]) -> PointTable:
    """One point per loop and function.  Raises RooflineError for damaged tables and for those without operations and bytes."""
    table, lines = Table(path), text_of(path).split("\n")
    start, delimiter, heading = next(iter(_headings(lines, "advisor")), (0, ",", []))
    places = {_plain(cell): place for place, cell in reversed(list(enumerate(heading)))}
    rows, ways = list(table.rows(lines, start + 1, delimiter, len(heading))), load_words().advisor_traffic
    counts = places.keys() & {"self_gflop", "self_gflops", *chain.from_iterable(way.needed for way in ways)}
    if not rows or not counts or _LOOP not in places:
        next_step = "Collect with `advisor --collect=tripcounts --flop`, and report with --show-all-columns."
        raise table.damaged("its table has no rows, or no columns with operations or bytes", next_step)
    points: list[ImportedPoint] = []
    sampled: list[str] = []
    parent_has_numbers = False
    for line, cells in rows:
        # "< 0.001": below what Advisor writes.
        of = {column: "" if cells[at].startswith("<") else cells[at].replace("\xa0", "") for column, at in places.items()}
        read = ((column, table.number(column, line, of[column])) for column in counts)
        numbers = {column: value for column, value in read if value is not None}
        name = of[_LOOP] or of.get("loop_name") or f"line {line}"
        gflop, rate = numbers.get("self_gflop"), numbers.get("self_gflops")
        seconds = table.seconds("self_elapsed_time", line, of.get("self_elapsed_time", ""))
        if seconds is None and gflop is not None and rate:
            seconds = gflop / rate
        if seconds is None:
            seconds = table.seconds("self_time", line, of.get("self_time", ""))
            sampled += [] if seconds is None else [name]
        used = ["self_gflop"] if gflop is not None else []
        if gflop is None and rate is not None and seconds is not None:
            gflop, used = rate * seconds, ["self_gflops"]
        traffic, counted = traffic_of(numbers, ways)
        used += counted
        floats = set(re.findall(r"float(16|32|64)", of.get("data_types", "").lower()))
        precision = f"fp{floats.pop()}" if len(floats) == 1 else ANY_PRECISION
        child = name.startswith("[child]")
        if child and parent_has_numbers:
            continue  # parts of a vectorised loop count only where the loop itself has no numbers
        parent_has_numbers = parent_has_numbers if child else gflop is not None or bool(traffic)
        points.append(
            ImportedPoint(
                name=name,
                device=UNNAMED_CPU,
                seconds=math.nan if seconds is None else seconds,
                work={} if gflop is None else {precision: gflop * _GIGA},
                traffic=traffic,
                columns=", ".join(heading[places[column]] for column in used),
                note="bytes beyond L1 are from Advisor's cache simulation" if len(traffic) > 1 else "",
            )
        )
    which = f"which is summed over the threads, for {listed(sampled, 3)}"
    said = [f'without "Self Elapsed Time" the time is "Self Time", {which}'] if sampled else []
    return PointTable(table.path, "advisor", tuple(points), warnings=table.warnings(said))


def read_ceilings_roofs(path: str | PathLike[str]) -> Ceilings:
    """The roofs of a CPU that the file does not name.  Raises RooflineError for damaged files and for those without a roof."""
    table = Table(path)
    by_id: dict[str, Ceiling] = {}
    rows = [(number, cells) for number, line in enumerate(text_of(path).split("\n"), 1) if any(cells := row_of(line))]
    heading = ["name", "bandwidth"]
    start = next((at for at, (_, cells) in enumerate(rows) if [cell.lower() for cell in cells[:2]] == heading), len(rows))
    for line, cells in rows[start + 1 :]:
        if len(cells) < 3:
            raise table.damaged(f"line {line} has {len(cells)} of its 3 or more columns")
        value, roof = table.number(cells[0], line, cells[1]), load_words().advisor_roofs.get(cells[0].lower())
        if value and roof:
            unit = "FLOP/s" if "." in roof else "B/s"
            by_id.setdefault(roof, Ceiling(roof, value, unit, math.nan, "", source=f"Intel Advisor's {cells[0]}"))
    if not by_id:
        raise table.damaged("none of its roofs is known here", "Give the report that `advisor --report=roofs` wrote.")
    return Ceilings(table.path, "", "", (0, 0), "", by_id)
