"""A whole run: its time, its operators, what they need and what of their time they would not need at the roofs of the GPU."""

from __future__ import annotations

import bisect
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ncu_roofline.analyses.run.need import LINK, MATRIX, Need, NoFormulaError, load, need, sizes_told
from ncu_roofline.base.files import ReportNames
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.traces import KERNEL, Gpu, Ranges, Trace, Work
from ncu_roofline.model.roofline import frame_of, of_rows
from ncu_roofline.rendering.document import Column

if TYPE_CHECKING:
    from ncu_roofline.chips.spec import Gpu as Board

_text, _integer, _number = Column.text, Column.integer, Column.number
_WHERE = (
    _text("run", "the trace: its path, or of commands its base name"),
    _integer("gpu", "number of the GPU in the trace"),
    _text("device", "name of the GPU; '' where the trace does not say"),
)
_SHAPES: dict[str, Any] = {"most": (24, 44)}
RUNS = (
    _WHERE[0],
    _text("format", "what wrote it"),
    _text("rank", "the process among others of one run; '' where the trace does not say"),
    *_WHERE[1:],
    _number("wall", "second", "from the first launch to the end of the last kernel, copy or fill; NaN without a timeline"),
    _number("busy", "second", "time in which the GPU did something; NaN without a timeline"),
    _number("kernel_seconds", "second", "sum of the times of its kernels: what shares are of"),
    _number("copy_seconds", "second", "sum of the times of copies and fills by its copy engines"),
    _integer("kernels", "kernels"),
    _integer("launches", "kernels, copies and fills"),
    _integer("streams", "streams that these ran in"),
    _number("gaps", "", "times at which the GPU was idle; NaN without a timeline, as what follows"),
    _number("longest_gap", "second", "the longest of them"),
    _text("after_gap", "the operator whose work ended it, or that work"),
    _number("late", "second", "idle time before work that was launched too late to follow at once: the host was the limit"),
    _number("queued", "second", "idle time before work that was launched early enough: it waited for other work or the GPU"),
    _number("delay", "second", "the least time from a launch to its start; NaN where no launch was recorded"),
    _number("launch_call", "second", "what a call that launches takes on the host: the median"),
    _number("short", "ratio", "share of the kernels, by their number, that are shorter than that"),
    _number("launch_seconds", "second", "what launches cost at least, back to back; NaN where not measured"),
    _number("attributed", "ratio", "share of the kernels' time that some operator asked for"),
    _number("graphs", "ratio", "share of it in CUDA graphs, whose kernels cannot be attributed to operators"),
    _number("unrecorded", "ratio", "share of it whose launch was not recorded"),
    _number("modelled", "ratio", "share of the kernels' time whose operators' needs are known"),
    _number("recoverable", "ratio", "share of the kernels' time that these would not need at their roofs"),
)
_ASKED = "the innermost operator that asked for the work; '' where none did"
OPERATORS = (
    *_WHERE,
    _text("operator", _ASKED, "operator", missing="(none)", most=(40, 60)),
    _text("shapes", "sizes of its inputs", "shapes", 1, **_SHAPES),
    _text("types", "their types", "types", 5),
    _text("direction", "forward, backward or optimizer; '' in a run without backward, or where unknown", "pass"),
    _text("group", "annotation or module around it, its kernel or stream, where these are asked for", "within", **_SHAPES),
    _integer("calls", "how often it was called", "calls", 2),
    _integer("kernels", "kernels that it launched", "kernels", 6),
    _number("seconds", "second", "their time", "time"),
    _number("share", "ratio", "of the time of all kernels", "of time"),
    _number("flops", "flop", "operations that it needs", "needs", 3),
    _number("bytes", "byte", "bytes that it needs: what goes in and comes out, each once", "needs bytes", 3),
    _text("precision", "what its operations are of: the compute roof above them; '' for none or where they are unknown"),
    _number("intensity", "flop/byte", "flops / bytes", "FLOP/B", 3),
    _number("performance", "flop/s", "flops / seconds", "FLOP/s", 5),
    _number("bandwidth", "byte/s", "bytes / seconds", "B/s", 5),
    _text("roof", "the roof that binds what it needs: a precision or dram; '' where its need or the roofs are unknown", "roof"),
    _number("least", "second", "its time at that roof", "at the roof", 4),
    _number("fraction", "ratio", "least / seconds", "of roof"),
    _number("recoverable", "ratio", "(seconds - least) / time of all kernels: what would be saved at the roof", "could save"),
    _text("origin", "where the roof is from"),
    _text("why", "why the need is unknown", "unknown because", 2),
)
CHAINS = (
    *_WHERE,
    _text("chain", "operators that follow each other, each working on the result of the one before", "as one", most=(40, 70)),
    _text("shapes", "sizes of the first one's inputs", "shapes", 4, **_SHAPES),
    _integer("calls", "how often they follow each other", "calls", 2),
    _number("seconds", "second", "their time", "time"),
    _number("share", "ratio", "of the time of all kernels", "of time"),
    _number("flops", "flop", "operations that they need", "needs", 3),
    _number("bytes", "byte", "bytes that they need where nothing between them leaves the chip", "needs bytes", 3),
    _text("roof", "the roof that binds this", "roof"),
    _number("least", "second", "their time at that roof", "at the roof", 4),
    _number("recoverable", "ratio", "(seconds - least) / time of all kernels", "could save"),
)
ROOFS = (
    *_WHERE[:2],
    _text("device", "name of the GPU"),
    _text("roof", "dram, or the precision of a compute roof"),
    _number("value", "flop/s", "operations or bytes per second"),
    _text("unit", "flop or byte"),
    _text("origin", "theoretical, or the file it was measured in"),
)
TABLES = {"operators": OPERATORS, "chains": CHAINS, "runs": RUNS, "roofs": ROOFS}
BY = ("operator", "annotation", "module", "kernel", "stream")
# Ranges of PyTorch's autograd, and of its optimizers.
_BACKWARD = re.compile(r"autograd::engine::evaluate_function: |torch::autograd::|aten::\w+_backward|\w+Backward\d*$")
_OPTIMIZER = re.compile(r"Optimizer\.(?:step|zero_grad)#")
_IN_GRAPH, _OUTSIDE, _UNRECORDED = "in a CUDA graph", "launched by no operator", "launch not recorded"
Roofs = Mapping[str, tuple[float, str]]
"""By precision or level: operations or bytes per second, and where that is from."""


@dataclass(frozen=True)
class Run:
    """The runs of traces as columns: `RUNS`, `OPERATORS`, `CHAINS` and `ROOFS`; SI units."""

    run_columns: Mapping[str, Any]
    operator_columns: Mapping[str, Any]
    chain_columns: Mapping[str, Any]
    roof_columns: Mapping[str, Any]
    by: str
    notes: tuple[str, ...] = ()
    view: str = "run"
    left_out: bool = False  # whether some trace could not be read
    calls: tuple[Calls, ...] = ()  # of each operator

    operators = frame_of("operator_columns", "The operators, what could save most first.")
    chains = frame_of("chain_columns", "Operators that could be one, likewise.")
    runs = frame_of("run_columns", "A row per trace and GPU.")
    roofs = frame_of("roof_columns", "What the GPUs can do.")


class Calls(NamedTuple):
    """The calls of a row of operators, for who compares runs: the level that their bytes go to, "" for none, and of each its
    kernels, as rows of ``work``; one of what no operator asked for.
    """

    level: str
    work: Work
    kernels: Sequence[Sequence[int]]


class Call(NamedTuple):
    """A call of an operator that launched kernels: which, their time (s), what it needs or why that is unknown."""

    row: int
    seconds: float
    kernels: list[int]
    need: Need | None
    why: str


def run_of(
    traces: Sequence[Trace],
    ceilings: Sequence[Ceilings] = (),
    *,
    by: str = "operator",
    operators: Sequence[str] = (),
    board: Board | None = None,
    full_paths: bool = True,
) -> Run:
    """The operators of traces under the roofs of their GPUs: measured ones of ``ceilings``, else theory.

    ``by``: what rows are apart for beside the operator: one of `BY`.  ``operators``: files with more formulas;
    ``board``: the GPU where a trace does not name one, or names one that no table has.
    """
    formulas, spoken = load(operators), ReportNames.apart([trace.path for trace in traces])
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    notes: list[str] = []
    for trace in traces:
        name, work = trace.path if full_paths else spoken(trace.path), trace.work
        asked = _innermost(trace.operators, trace)
        groups = _groups(trace, asked, by)
        if by == "module" and not trace.modules.name:
            notes.append(f"{name} has no modules, which torch.profiler.profile(with_stack=True) records")
        for number in dict.fromkeys(work.device):
            gpu = trace.gpus.get(number, Gpu())
            roofs, latency = _machine(gpu, ceilings, board)
            where = {"run": name, "gpu": number, "device": gpu.name or (board.names[0] if board else "")}
            mine = [row for row, device in enumerate(work.device) if device == number]
            kernels = [row for row in mine if work.kind[row] == KERNEL]
            total = sum(work.seconds[row] for row in kernels) or math.nan
            calls = _calls(trace, kernels, asked, formulas)
            rows = _operators(trace, calls, roofs, total, groups)
            tables["operators"] += [{**where, **row} for row in rows]
            tables["chains"] += [{**where, **row} for row in _chains(trace, calls, roofs, total)]
            tables["runs"].append({**where, **_facts(trace, mine, rows, latency, asked)})
            units = {key: "byte" if key == load_spec().memory else "flop" for key in roofs}
            tables["roofs"] += [
                {**where, "roof": key, "value": value, "unit": units[key], "origin": origin}
                for key, (value, origin) in roofs.items()
            ]
            if not roofs:
                called = f"{gpu.name} is in no table" if gpu.name else "the trace names no GPU"
                notes.append(f"{name}: {called}, so that there are no roofs; name one with --board")
    for name in ("operators", "chains"):  # of what is unknown all could go, for all that is known
        tables[name].sort(key=lambda row: -row["share"] if math.isnan(row["recoverable"]) else -row["recoverable"])
    made = {name: of_rows(rows, TABLES[name]) for name, rows in tables.items()}
    told = tuple(row["members"] for row in tables["operators"])
    return Run(made["runs"], made["operators"], made["chains"], made["roofs"], by, tuple(dict.fromkeys(notes)), calls=told)


# Which operator asked for which work


def _innermost(ranges: Ranges, trace: Trace, of: re.Pattern[str] | None = None) -> list[int]:
    """For each row of the work the innermost range around its launch, on the same thread; -1 where there is none.

    Ranges of a thread are nested: that is the one which begins last among those that hold the time; ``of`` ranges with such
    names, if given.  What a CUDA graph launches is in no operator: other ones asked for it when it was captured.
    """
    threads: dict[str, tuple[list[float], list[int], list[int]]] = defaultdict(lambda: ([], [], []))
    parent: dict[int, int] = {}
    whole = (row for row, name in enumerate(ranges.name) if not of or of.match(name))
    for row in sorted(whole, key=lambda row: (ranges.start[row], -ranges.end[row])):
        starts, rows, around = threads[ranges.thread[row]]
        while around and ranges.end[around[-1]] <= ranges.start[row]:
            around.pop()
        parent[row] = around[-1] if around else -1
        around.append(row)
        starts.append(ranges.start[row])
        rows.append(row)
    found = []
    hidden = trace.work.graph if ranges is trace.operators else [False] * len(trace.work.graph)
    for thread, time, graph in zip(trace.work.thread, trace.work.launched, hidden, strict=True):
        starts, rows, _ = threads.get(thread, ([], [], []))
        place = bisect.bisect_right(starts, time) - 1 if thread and not graph else -1
        row = rows[place] if place >= 0 else -1
        while row >= 0 and ranges.end[row] < time:
            row = parent[row]
        found.append(row)
    return found


def _groups(trace: Trace, asked: Sequence[int], by: str) -> list[tuple[str, str]]:
    """For each row of the work whether it is of the way forward or back, and the group of rows that it belongs to."""
    work = trace.work
    directions = [""] * len(asked)
    if any(map(_BACKWARD.match, set(trace.operators.name))):
        back, stepping = _innermost(trace.operators, trace, _BACKWARD), _innermost(trace.annotations, trace, _OPTIMIZER)
        for row, operator in enumerate(asked):
            known = "forward" if operator >= 0 else ""
            directions[row] = "backward" if back[row] >= 0 else "optimizer" if stepping[row] >= 0 else known
    groups = [""] * len(asked)
    if by in ("annotation", "module"):
        ranges = trace.annotations if by == "annotation" else trace.modules
        groups = [ranges.name[row] if row >= 0 else "" for row in _innermost(ranges, trace)]
    elif by == "stream":
        groups = [f"stream {stream}" if stream else "" for stream in work.stream]
    if by == "kernel" or not trace.span:
        groups = [group or name for name, group in zip(work.name, groups, strict=True)]
    return list(zip(directions, groups, strict=True))


def _calls(trace: Trace, kernels: Sequence[int], asked: Sequence[int], formulas: Mapping[str, Any]) -> list[Call]:
    """The calls that launched these kernels, in order of time; kernels without an operator are calls of row -1."""
    work, ranges = trace.work, trace.operators
    rows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for kernel in kernels:
        rows[asked[kernel], kernel if asked[kernel] < 0 else 0].append(kernel)
    known: dict[Any, tuple[Need | None, str]] = {}
    told = sizes_told(ranges.name, ranges.shapes)
    found = []
    for (row, _), mine in rows.items():
        seconds = sum(work.seconds[kernel] for kernel in mine)
        if row < 0:
            why = _IN_GRAPH if work.graph[mine[0]] else _OUTSIDE if work.thread[mine[0]] else _UNRECORDED
            found.append(Call(row, seconds, mine, None, why if trace.span else "no timeline"))
            continue
        names = frozenset(work.name[kernel] for kernel in mine)
        recorded = (ranges.shapes[row], ranges.types[row], ranges.values[row])
        key = (ranges.name[row], *map(str, recorded), str(ranges.strides[row]), names)
        if key not in known:
            try:
                known[key] = need(formulas, ranges.name[row], *recorded, names, ranges.strides[row], told), ""
            except NoFormulaError as error:
                known[key] = None, str(error)
        found.append(Call(row, seconds, mine, *known[key]))
    return found


def _operators(
    trace: Trace, calls: Sequence[Call], roofs: Roofs, total: float, within: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    work, ranges = trace.work, trace.operators
    groups: dict[tuple[str, ...], list[Call]] = {}
    for call in calls:
        row = call.row
        own = ("", "", "")
        if row >= 0:
            of_tensors = dict.fromkeys(one.removeprefix("c10::") for one in ranges.types[row] or () if one[:6] != "Scalar")
            own = ranges.name[row], _shapes_text(ranges.shapes[row]), ", ".join(filter(None, of_tensors))
        groups.setdefault((*own, *within[call.kernels[0]], call.why), []).append(call)
    found = []
    for (name, shapes, types, direction, group, why), members in groups.items():
        seconds = sum(call.seconds for call in members)
        needs = [call.need for call in members if call.need]
        flops, moved = (sum(getattr(one, name) for one in needs) if needs else math.nan for name in ("flops", "bytes"))
        # What the calls need together, and the roof that binds it with the time at it.
        level = load_spec().memory if needs and needs[0].kind != LINK else ""
        wanted = [(level, moved)] if level else []
        wanted += [(needs[0].precision, flops)] if needs and needs[0].precision else []
        least, roof = _least(dict(wanted), roofs)
        kernels = [call.kernels for call in members]
        launches = sum(work.count[kernel] for kernel in chain.from_iterable(kernels))
        found.append(
            {
                "members": Calls(level, work, kernels),
                "operator": name,
                "shapes": shapes,
                "types": types,
                "direction": direction,
                "group": group,
                "why": why,
                "flops": flops,
                "precision": needs[0].precision if needs else "",
                "bytes": moved,
                "roof": roof,
                "least": least,
                "origin": roofs[roof][1] if roof else "",
                "calls": len(members) if name else launches,
                "kernels": launches,
                "seconds": seconds,
                "share": seconds / total,
                "intensity": flops / moved if flops > 0 else math.nan,
                "performance": flops / seconds if flops > 0 and seconds > 0 else math.nan,
                "bandwidth": moved / seconds if seconds > 0 else math.nan,
                "fraction": least / seconds if seconds > 0 else math.nan,
                "recoverable": max(seconds - least, 0.0) / total if least >= 0 else math.nan,
            }
        )
    return found


def _least(amounts: Mapping[str, float], roofs: Roofs) -> tuple[float, str]:
    """The time (s) of some work at the roof that binds it, and which that is; NaN and "" where one is unknown."""
    if not amounts or not all(name in roofs for name in amounts):
        return math.nan, ""
    return max((amount / roofs[name][0], name) for name, amount in amounts.items())


# Operators that could be one


def _chains(trace: Trace, calls: Sequence[Call], roofs: Roofs, total: float) -> list[dict[str, Any]]:
    """Operators of a thread, each working on the result of the one before, as one whose results between stay on the chip.

    A chain has one matrix product at most, or two around a softmax, as attention; it begins anew at the next one.
    """
    groups: dict[tuple[tuple[str, str], ...], list[list[Call]]] = defaultdict(list)
    ranges = trace.operators
    for calls_of in _chained(trace, [call for call in calls if call.need]):
        groups[tuple((ranges.name[call.row], _shapes_text(ranges.shapes[call.row])) for call in calls_of)].append(calls_of)
    found = []
    for names, members in groups.items():
        whole = list(chain.from_iterable(members))
        seconds = sum(call.seconds for call in whole)
        between = sum(call.need.out_bytes for calls_of in members for call in calls_of[:-1] if call.need)
        times: dict[str, float] = defaultdict(float)
        for call in whole:
            if call.need and call.need.precision:
                times[call.need.precision] += call.need.flops
        moved = sum(call.need.bytes for call in whole if call.need) - 2 * between
        least, roof = _least({**times, load_spec().memory: moved}, roofs)
        if not roof:
            continue
        found.append(
            {
                "chain": " + ".join(name.removeprefix("aten::") for name, _ in names),
                "shapes": names[0][1],
                "calls": len(members),
                "seconds": seconds,
                "share": seconds / total,
                "flops": sum(times.values()),
                "bytes": moved,
                "roof": roof,
                "least": least,
                "recoverable": max(seconds - least, 0.0) / total,
            }
        )
    return found


def _chained(trace: Trace, calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Chains of at least two calls, each of which works on the result of the one before, as far as sizes tell.

    A copy ends a chain: of several copies of one size nobody knows which follows which.
    """
    ranges = trace.operators
    open_ones: dict[str, list[Call]] = {}  # by thread
    for call in sorted(calls, key=lambda call: ranges.start[call.row]):
        thread, now = ranges.thread[call.row], call.need
        before = open_ones.get(thread, [])
        last = before[-1].need if before else None
        goes_on = False
        if now and last and "copy" not in ranges.name[before[-1].row]:
            products = sum(bool(one.need and one.need.kind == MATRIX) for one in before)
            attention = products == 1 and any("softmax" in ranges.name[one.row] for one in before)
            goes_on = bool(last.inputs) and math.prod(last.out) in now.inputs and (now.kind != MATRIX or attention)
        if not goes_on:
            if len(before) > 1:
                yield before
            before = []
        open_ones[thread] = [*before, call] if now and now.kind != LINK else []
    yield from (found for found in open_ones.values() if len(found) > 1)


def _shapes_text(shapes: Any) -> str:
    """Sizes as a person writes them: "[16, 5185, 5185]"; what has none is left out."""
    return " ".join(str(shape).replace(" ", "") for shape in shapes or () if shape)


# The run as a whole


def _facts(
    trace: Trace, mine: Sequence[int], rows: Sequence[Mapping[str, Any]], latency: float, asked: Sequence[int]
) -> dict[str, Any]:
    work = trace.work
    kernels = sum(work.seconds[row] for row in mine if work.kind[row] == KERNEL)
    launches = sum(work.count[row] for row in mine)
    counted = sum(work.count[row] for row in mine if work.kind[row] == KERNEL)
    known = [row for row in mine if not math.isnan(work.launched[row])]
    calls = [work.launching[row] for row in known if not work.graph[row] and work.launching[row] >= 0]
    call = statistics.median(calls) if calls else math.nan
    short = (
        sum(work.kind[row] == KERNEL and work.seconds[row] < call for row in mine) / counted if calls and counted else math.nan
    )
    delay = max(min((work.start[row] - work.launched[row] for row in known), default=math.nan), 0.0)

    def share(told: Callable[[Mapping[str, Any]], bool]) -> float:
        return sum(row["seconds"] for row in rows if told(row)) / kernels if kernels else math.nan

    could_go = [row["recoverable"] for row in rows if not math.isnan(row["recoverable"])]
    return {
        "format": trace.format,
        "rank": "" if trace.rank is None else str(trace.rank),
        **_busy(trace, mine, delay, asked),
        "kernel_seconds": kernels,
        "copy_seconds": sum(work.seconds[row] for row in mine if work.kind[row] != KERNEL),
        "kernels": counted,
        "launches": launches,
        "streams": len({work.stream[row] for row in mine}),
        "delay": delay,
        "launch_call": call,
        "short": short,
        "launch_seconds": launches * latency,
        "attributed": share(lambda row: bool(row["operator"])),
        "graphs": share(lambda row: row["why"] == _IN_GRAPH),
        "unrecorded": share(lambda row: row["why"] == _UNRECORDED),
        "modelled": share(lambda row: not math.isnan(row["bytes"])),
        "recoverable": sum(could_go) if could_go else math.nan,
    }


def _busy(trace: Trace, mine: Sequence[int], delay: float, asked: Sequence[int]) -> dict[str, Any]:
    """The time of a GPU in a timeline, and that in which it was idle: by whether what ended it could have begun at once, as its
    launch, and the least ``delay`` of one (s), came before."""
    work, names = trace.work, ("busy", "gaps", "longest_gap", "late", "queued")
    if not trace.span:
        return {"wall": math.nan, "after_gap": "", **dict.fromkeys(names, math.nan)}
    until, end_of_all = trace.span
    found: dict[str, Any] = {"wall": end_of_all - until, "after_gap": "", **dict.fromkeys(names, 0.0)}
    for row in sorted(mine, key=lambda row: work.start[row]):
        start, end = work.start[row], work.start[row] + work.seconds[row]
        if (gap := start - until) > 0:
            found["gaps"] += 1
            ready = work.launched[row] + delay  # NaN where that was not recorded
            found["late"] += gap if ready > until else 0.0
            found["queued"] += gap if ready <= until else 0.0
            if gap > found["longest_gap"]:
                after = trace.operators.name[asked[row]] if asked[row] >= 0 else work.name[row]
                found |= {"longest_gap": gap, "after_gap": after}
        found["busy"] += max(end - max(start, until), 0.0)
        until = max(until, end)
    found["gaps"] += end_of_all > until
    return found


def _machine(gpu: Gpu, ceilings: Sequence[Ceilings], board: Board | None) -> tuple[Roofs, float]:
    """What a GPU can do, and what a launch costs at least on it (s): what was measured, else published; nothing, or NaN, where
    nobody knows it.  Name and compute capability are those of the board where the trace does not say them."""
    spec = load_spec()
    found: dict[str, tuple[float, str]] = {}
    known = find_gpu(gpu.name, gpu.sm_count or None) or board
    if known and (architecture := spec.architecture(known.compute_capability)):
        found[spec.memory] = (known.dram, f"theory, {known.id}")
        for precision in spec.precisions:
            clock = known.tensor_clock if precision.kind == "tensor" and precision.id != "tensor.fp64" else known.core_clock
            if peak := architecture.peak(precision.roof, known.names[0]):
                found[precision.id] = (peak * known.sm_count * clock, f"theory, {known.id}")
    named = gpu.name or (known.names[0] if known else "")
    capability = gpu.compute_capability if any(gpu.compute_capability) or not known else known.compute_capability
    fitting = [one for one in ceilings if one.applies_to(named, capability)]
    for one in fitting:
        for precision in spec.precisions:
            if (ceiling := one.compute(precision.roof)) and not ceiling.impossible:
                found[precision.id] = (ceiling.value, one.provenance)
        if (memory := one.bandwidth(spec.memory)) and not memory.impossible:
            found[spec.memory] = (memory.value, one.provenance)
    own = spec.architecture(capability)
    latencies = [measured.value for one in fitting if (measured := one.launch_latency())]
    latencies += [cost for part, cost in (own.launching.items() if own else ()) if part in named]
    return found, latencies[0] if latencies else math.nan
