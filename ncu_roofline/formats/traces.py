"""A run on a timeline: traces of the PyTorch profiler (Kineto), Nsight Systems' SQLite exports and its CSV reports of kernels.

Kineto writes Chrome JSON, often compressed; since 2022 its categories are ``kernel``, ``cpu_op``, ``cuda_runtime``, ..., before
``Kernel``, ``Operator``, ``Runtime``.  Nsight Systems makes tables only where it has data, so that any may be missing; what it
calls PyTorch's operators are NVTX ranges like ``aten::mm, op_id = 3, sizes = [[4, 4], [4, 4]]``.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import open_file, read_file
from ncu_roofline.base.texts import clean, shorten

KERNEL, COPY, FILL = "kernel", "copy", "fill"
RANGE = "cuda_profiler_range"  # the category of what CUPTI's range profiler counted
_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\x00"
_OF_NSYS = (".nsys-rep", ".qdrep")
SUFFIXES = (".json", ".json.gz", ".sqlite", ".csv", *_OF_NSYS)
_HEAD, _CHUNK, _MOST = 65_536, 1 << 20, 4_000_000_000
_LONGEST = 1e17  # microseconds: more than any clock says
_EXPORT = "Export it again, and check that it is complete."
_PROFILE = "Record it with torch.profiler.profile(record_shapes=True) and export_chrome_trace, or with nsys profile."
_TRACE_KEYS = re.compile(rb'"(?:traceEvents|deviceProperties|baseTimeNanoseconds)"\s*:')
_COUNTED_OR_TIMED = re.compile(rb'"cat"\s*:\s*"(cuda_profiler_range|[kK]ernel)"')
_OF_EXPORTS = ("CUPTI_ACTIVITY_KIND_", "StringIds", "NVTX_EVENTS", "TARGET_INFO_", "CUDA_")
_KERNEL_SUMS = ("Instances", "Total Time (ns)", "Name")
_CATEGORIES = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": FILL,
    "memset": FILL,
    "cpu_op": "operator",
    "operator": "operator",
    "user_annotation": "annotation",
    "python_function": "module",
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "runtime"), "launch"),
}
_OPERATOR_TEXT = re.compile(r"(.+?)(?:, (?:seq|op_id) = \d+)+(?:, sizes = (.*))?", re.DOTALL)
_MODULE = "nn.Module: "
# A name with the NVTX range before it: names in C++ have two colons, never one.
_PREFIXED = re.compile(r"(.*[^:]):([^:].*)", re.DOTALL)
PYTORCH = "PyTorch profiler"


class Gpu(NamedTuple):
    """A GPU of a run: its name, compute capability and number of SMs; "", (0, 0) and 0 where the trace does not say."""

    name: str = ""
    compute_capability: tuple[int, int] = (0, 0)
    sm_count: int = 0


Launch = tuple[str, float, float, bool]
"""The thread of a launch, when it began and how long it took (s), and whether it launched a whole CUDA graph."""


@dataclass
class Work:
    """What GPUs did, a row per kernel, copy and fill, in order of time; seconds, NaN where unknown.

    ``count``: how often, more than 1 where a report only has sums.  ``thread``, ``launched`` and ``launching``: where and when
    it was launched and how long the call took, "" and NaN where the trace does not say; ``graph``: as part of a CUDA graph, so
    that one call launched many.
    """

    name: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    device: list[int] = field(default_factory=list)
    stream: list[str] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    thread: list[str] = field(default_factory=list)
    launched: list[float] = field(default_factory=list)
    launching: list[float] = field(default_factory=list)
    graph: list[bool] = field(default_factory=list)

    def add(
        self,
        name: str,
        *,
        kind: str = KERNEL,
        device: int = 0,
        stream: str = "",
        start: float = math.nan,
        seconds: float = math.nan,
        count: int = 1,
        grid: str = "",
        block: str = "",
        launch: Launch | None = None,
        graph: bool = False,
    ) -> None:
        """A row; what it does not say is unknown."""
        thread, launched, launching, captured = launch or ("", math.nan, math.nan, False)
        row = (name, kind, device, stream, start, seconds, count, grid, block, thread, launched, launching, graph or captured)
        for column, value in zip(vars(self).values(), row, strict=True):
            column.append(value)


@dataclass
class Ranges:
    """Operators, or annotations of the user: what a thread was about from a time to another (s).

    ``shapes``, ``types`` and ``values`` have a row per range, an item per argument: lists of sizes, names of types, numbers and
    lists as text; None where they were not recorded.  ``strides`` only where one is 0: of a tensor that is expanded.
    """

    name: list[str] = field(default_factory=list)
    thread: list[str] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    shapes: list[Sequence[Any] | None] = field(default_factory=list)
    types: list[Sequence[str] | None] = field(default_factory=list)
    values: list[Sequence[Any] | None] = field(default_factory=list)
    strides: list[Sequence[Any] | None] = field(default_factory=list)

    def add(self, name: str, thread: str, start: float, end: float, *recorded: Any) -> None:
        """A row; ``recorded``: shapes, types, values and strides, as far as they are known."""
        shapes, types, values, strides = (
            one if isinstance(one, list) and one else None for one in (*recorded, *[None] * 4)[:4]
        )
        strides = strides if any(isinstance(one, list) and 0 in one for one in strides or ()) else None
        row = (name, thread, start, end, shapes, tuple(map(str, types)) if types else None, values, strides)
        for column, value in zip(vars(self).values(), row, strict=True):
            column.append(value)


@dataclass(frozen=True)
class Trace:
    """A run: what its GPUs did, and which operators and annotations asked for it.

    ``span``: from its first launch to the end of its last kernel, copy or fill (s), None where there is no timeline.
    ``modules``: of torch.nn, where they were recorded.  ``rank`` of ``world`` processes: None and 0 where it does not say.
    """

    path: str
    format: str
    work: Work
    operators: Ranges
    annotations: Ranges
    gpus: Mapping[int, Gpu]
    span: tuple[float, float] | None
    modules: Ranges = field(default_factory=Ranges)
    rank: int | None = None
    world: int = 0


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a trace that `read_trace` reads, or one of Nsight Systems that it has a sentence for."""
    head = _head(path)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(_SQLITE) or os.fspath(path).endswith(_OF_NSYS):
        return True
    if text.startswith((b"{", b"[")):
        return bool(_TRACE_KEYS.search(text)) or (b'"ph"' in text and b'"ts"' in text)
    lines = text.decode("utf-8", "replace").splitlines()[:40]  # `nsys stats` may print some before the head of a table
    return any(all(name in line for name in _KERNEL_SUMS) for line in lines)


def has_counters(path: str | os.PathLike[str]) -> bool:
    """Whether a trace has counters of CUPTI's range profiler instead of times of kernels; Kineto records either."""
    head, tail = _head(path), b""
    if not is_trace(path) or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return False
    with suppress(OSError, EOFError, zlib.error), open_file(path) as stream:
        packed = stream.peek(2).startswith(_GZIP)
        with gzip.open(stream) if packed else nullcontext(stream) as data:
            for _ in range(_MOST // _CHUNK):
                chunk = data.read(_CHUNK)
                if (match := _COUNTED_OR_TIMED.search(tail + chunk)) or not chunk:
                    return bool(match and match[1] == RANGE.encode())
                tail = chunk[-100:]
    return False


def _head(path: str | os.PathLike[str]) -> bytes:
    try:
        with open_file(path) as stream:
            head = stream.read(_HEAD)
        return zlib.decompressobj(31).decompress(head, _HEAD) if head.startswith(_GZIP) else head
    except (OSError, zlib.error):
        return b""


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """The run of a trace.  Raises RooflineError, also for one without any work of a GPU."""
    head, name = _head(path), os.fspath(path)
    if name.endswith(_OF_NSYS) and not head.startswith(_SQLITE):
        next_step = f"Run `nsys export --type sqlite {name}`, and give {name.rpartition('.')[0]}.sqlite."
        raise _cannot(path, "it is in Nsight Systems' own format", next_step)
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
    trace = (_sqlite if head.startswith(_SQLITE) else _chrome if is_json else _sums)(name)
    if not trace.work.name:
        if has_counters(path):
            reason = "its kernels have counters of CUPTI's range profiler and no times"
            raise _cannot(path, reason, "Give it in the place of a report, and as a run the trace of one without counters.")
        raise _cannot(path, "it holds no kernel, copy or fill of a GPU", "Profile CUDA activities, too. " + _PROFILE)
    return trace


def _cannot(path: str | os.PathLike[str], reason: str, next_step: str = _EXPORT) -> RooflineError:
    return RooflineError("Cannot read trace", path, reason, next_step)


@cache
def _forms() -> tuple[Any, Any, Any]:
    """A document, a list of events and what decodes an event's arguments, by msgspec: some ten times as fast as the standard
    library, and without what nobody asks for.
    """
    from msgspec import Raw, defstruct, field
    from msgspec.json import Decoder

    named = {name: name for name in ("correlation", "device", "stream", "grid", "block")}
    named |= {"shapes": "Input Dims", "shapes_2021": "Input dims", "types": "Input type", "values": "Concrete Inputs"}
    named |= {"strides": "Input Strides", "graph": "graph id", "node": "graph node id"}
    arguments = defstruct("Arguments", [(name, Any, field(default=None, name=key)) for name, key in named.items()], gc=False)
    texts: list[Any] = [("ph", str, ""), ("cat", str | None, None), ("name", str, ""), ("pid", Any, ""), ("tid", Any, "")]
    times: list[Any] = [(name, float | None, None) for name in ("ts", "dur")]
    event = defstruct("Event", [*texts, *times, ("args", Raw, Raw(b"{}"))], gc=False)
    events = list[event]  # type: ignore[valid-type]
    more = [
        (name, Any, field(default=None, name=key)) for name, key in (("gpus", "deviceProperties"), ("ranks", "distributedInfo"))
    ]
    return defstruct("Document", [("events", events, field(name="traceEvents")), *more]), events, Decoder(arguments).decode


def events_of(path: str) -> tuple[list[Any], dict[int, Gpu], Any, Callable[[Any], Any]]:
    """The events of a trace as Chrome JSON, its GPUs, its place among ranks, and what decodes the arguments of an event."""
    import msgspec

    document_form, list_form, decode = _forms()
    try:
        data = read_file(path, _MOST)
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(_MOST + 1)
            if len(data) > _MOST:
                raise _cannot(path, f"it unpacks to more than {_MOST / 1e9:g} GB", "Record a shorter part of the run.")
        data = data.lstrip(b"\xef\xbb\xbf \t\r\n")
        document = msgspec.json.decode(data, type=list_form if data[:1] == b"[" else document_form, strict=False)
    except (OSError, EOFError, zlib.error) as error:
        raise _cannot(path, f"it is cut or damaged, or can't be read ({error})") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _cannot(path, f"it is no JSON of a trace ({shorten(clean(str(error)), 120)})") from error
    events, properties, ranks = (
        (document, 0, 0) if isinstance(document, list) else (document.events, document.gpus, document.ranks)
    )
    gpus = dict[int, Gpu]()
    for row in properties if isinstance(properties, list) else ():
        if isinstance(row, dict) and isinstance(row.get("id"), int) and isinstance(row.get("name"), str):
            major, minor = row.get("computeMajor"), row.get("computeMinor")
            capability = (major, minor) if isinstance(major, int) and isinstance(minor, int) else (0, 0)
            gpus[row["id"]] = Gpu(clean(row["name"]), capability, _number(row.get("numSms")))
    return events, gpus, ranks, decode


def _chrome(path: str) -> Trace:
    import msgspec

    events, gpus, ranks, decode = events_of(path)
    work, operators, annotations, modules = Work(), Ranges(), Ranges(), Ranges()
    launches, processes = dict[str, Launch | None](), dict[str, Any]()  # by number
    rows: list[tuple[str, dict[str, Any]]] = []  # with the number of their launch
    for place, event in enumerate(events):
        events[place] = None  # what is read needs no memory any more
        kind = _CATEGORIES.get((event.cat or "").lower()) if event.ph == "X" else None
        if kind is None or event.ts is None or (kind == "module" and not event.name.startswith(_MODULE)):
            continue
        if not (abs(event.ts) < _LONGEST and 0 <= (event.dur or 0.0) < _LONGEST):
            raise _cannot(path, f"its event {shorten(clean(event.name))} is at {event.ts:g} us for {event.dur or 0.0:g} us")
        start, seconds = event.ts * 1e-6, (event.dur or 0.0) * 1e-6
        try:
            args = decode(event.args)
        except msgspec.MsgspecError:  # no object
            args = decode(b"{}")
        if kind in (KERNEL, COPY, FILL):
            row = {"name": event.name, "kind": kind, "device": _number(args.device), "start": start, "seconds": seconds}
            row |= {"stream": str(args.stream if args.stream is not None else event.tid)}
            row |= {"grid": _size(args.grid), "block": _size(args.block)}
            row |= {"graph": bool(args.graph or args.node)}
            rows.append((str(args.correlation), row))
        elif kind == "launch":
            if args.correlation is not None:  # what two processes launched under one number nobody can tell apart
                number = str(args.correlation)
                launches[number] = (f"{event.pid} {event.tid}", start, seconds, "GraphLaunch" in event.name)
                if processes.setdefault(number, event.pid) != event.pid:
                    processes[number] = launches[number] = None
        else:
            named = {"operator": operators, "module": modules}.get(kind, annotations)
            recorded = (args.shapes or args.shapes_2021, args.types, args.values, args.strides)
            name = event.name.removeprefix(_MODULE) if kind == "module" else event.name
            named.add(name, f"{event.pid} {event.tid}", start, start + seconds, *recorded)
    for number, row in sorted(rows, key=lambda pair: pair[1]["start"]):
        work.add(**row, launch=launches.get(number))
    rank, world = (ranks.get("rank"), ranks.get("world_size")) if isinstance(ranks, dict) else (None, 0)
    rank, world = rank if type(rank) is int and 0 <= rank < 10**9 else None, _number(world)
    return Trace(path, PYTORCH, work, operators, annotations, gpus, _span(work), modules, rank, world)


def _span(work: Work) -> tuple[float, float] | None:
    starts = [time for time in (*work.start, *work.launched) if not math.isnan(time)]
    ends = [start + seconds for start, seconds in zip(work.start, work.seconds, strict=True)]
    return (min(starts), max(ends)) if starts else None


def _number(value: Any) -> int:
    """A small number, 0 for anything else."""
    return value if type(value) is int and 0 <= value < 1_000_000 else 0


def _size(numbers: Any) -> str:
    """A grid or block as ncu writes it: "(64, 1, 1)"."""
    good = isinstance(numbers, (list, tuple)) and len(numbers) == 3 and all(isinstance(number, int) for number in numbers)
    return f"({', '.join(map(str, numbers))})" if good else ""


def _sqlite(path: str) -> Trace:
    """An export of Nsight Systems."""
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        raise _cannot(path, "rows of it are still in its -wal file", "Close the program that writes it, and try again.")
    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            return _tables(path, database)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise _cannot(path, f"its database is damaged or of another program ({error})") from error


def _tables(path: str, database: sqlite3.Connection) -> Trace:
    for (view,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'"):
        if view.startswith(_OF_EXPORTS):
            raise _cannot(path, f"{view} is a view in it, and a table in every export of Nsight Systems")
    columns = {
        table: {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if re.fullmatch(r"\w+", table)
    }
    if not any(table.startswith("CUPTI_ACTIVITY_KIND_") for table in columns):
        fix = "Export it with `nsys export --type sqlite` from a run of `nsys profile --trace cuda,nvtx`."
        raise _cannot(path, "it has no table of what GPUs did (CUPTI_ACTIVITY_KIND_KERNEL)", fix)
    texts = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in columns else {}

    def rows(table: str, *wanted: str) -> Iterable[tuple[Any, ...]]:
        """Columns of a table, None for those that it does not have."""
        if table not in columns:
            return ()
        names = (name if name in columns[table] else "NULL" for name in wanted)
        whole = " AND ".join(f"{name} IS NOT NULL" for name in wanted if name in ("start", "end"))
        return database.execute(f"SELECT {', '.join(names)} FROM {table} {f'WHERE {whole}' if whole else ''}")

    launches: dict[Any, Launch] = {}
    calls = rows("CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId", "globalTid", "start", "end", "nameId")
    for correlation, thread, start, end, name in calls:
        graph = "GraphLaunch" in texts.get(name, "")
        launches[correlation, (thread or 0) >> 24] = (str(thread), start * 1e-9, (end - start) * 1e-9, graph)
    found: list[dict[str, Any]] = []
    sizes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
    kinds = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
    common = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId", "graphNodeId")
    for table, kind, wanted in (
        ("KERNEL", KERNEL, ("demangledName", *sizes)),
        ("GRAPH_TRACE", KERNEL, ("graphExecId", *sizes)),  # graphs as a whole, unless they were traced by node
        ("MEMCPY", COPY, ("copyKind",)),
        ("MEMSET", FILL, ("value",)),
    ):
        found_rows = rows(f"CUPTI_ACTIVITY_KIND_{table}", *common, *wanted)
        for start, end, device, stream, correlation, process, graph, node, *rest in found_rows:
            if not 0 <= end - start < _LONGEST * 1e3:
                raise _cannot(path, f"work of a GPU lasts from {start} to {end} ns")
            row: dict[str, Any] = {"kind": kind, "device": _number(device), "stream": str(stream)}
            row |= {"graph": bool(graph or node), "start": start * 1e-9, "seconds": (end - start) * 1e-9}
            row |= {"launch": launches.get((correlation, (process or 0) >> 24))}
            if table == "GRAPH_TRACE":
                row |= {"name": f"CUDA graph {graph or ''}".strip(), "graph": True}
            elif kind == KERNEL:
                row |= {"name": texts.get(rest[0], str(rest[0])), "grid": _size(rest[1:4]), "block": _size(rest[4:7])}
            else:
                row |= {"name": f"Memcpy {kinds.get(rest[0], '')}".strip() if kind == COPY else "Memset"}
            found.append(row)
    work, operators, annotations, modules = Work(), Ranges(), Ranges(), Ranges()
    for row in sorted(found, key=lambda row: row["start"]):
        work.add(**row)
    ranges = rows("NVTX_EVENTS", "start", "end", "eventType", "text", "textId", "globalTid")
    for start, end, event, text, number, thread in ranges:
        name = text if text is not None else texts.get(number, "")
        if event != 59 or not isinstance(name, str) or not name:  # ranges that are pushed and popped, and so nested
            continue
        if match := _OPERATOR_TEXT.fullmatch(name):
            shapes = None
            with suppress(ValueError, RecursionError):  # as PyTorch writes the sizes of tensors, or cut off
                shapes = json.loads(match[2] or "null")
            operators.add(match[1], str(thread), start * 1e-9, end * 1e-9, shapes)
        else:
            named = modules if name.startswith(_MODULE) else annotations
            named.add(clean(name.removeprefix(_MODULE)), str(thread), start * 1e-9, end * 1e-9)
    gpus, numbers = {}, dict(rows("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId"))  # CUDA may see some of them, in another order
    for number, name, major, minor, count in rows("TARGET_INFO_GPU", "id", "name", "smMajor", "smMinor", "smCount"):
        gpus[numbers.get(number, number)] = Gpu(clean(str(name)), (major or 0, minor or 0), count or 0)
    return Trace(path, "Nsight Systems", work, operators, annotations, gpus, _span(work), modules=modules)


def _sums(path: str) -> Trace:
    """The sums by kernel of `nsys stats --report cuda_gpu_kern_sum` and ``cuda_gpu_kern_gb_sum``: no timeline."""
    try:
        text = read_file(path, _MOST).decode("utf-8-sig", "replace")
    except OSError as error:
        raise _cannot(path, error.strerror or str(error)) from error
    work, annotations = Work(), Ranges()
    lines = text.splitlines()
    head = next((place for place, line in enumerate(lines) if all(name in line for name in _KERNEL_SUMS)), 0)
    try:
        rows = list(csv.DictReader(lines[head:], strict=True))
    except csv.Error as error:
        raise _cannot(path, f"its table is cut or damaged ({error})") from error
    for number, row in enumerate(rows, start=head + 2):
        try:
            if None in row or None in row.values():
                raise ValueError("it has more or fewer cells than the head of the table")
            count, seconds = int(row["Instances"]), float(row["Total Time (ns)"]) * 1e-9
            if not (0 < count < 1e12 and 0 <= seconds < 1e9):
                raise ValueError(f"{count} instances of {seconds} s")
            sizes = [_size([int(part) for part in (row.get(name) or "").split()]) for name in ("GridXYZ", "BlockXYZ")]
        except (KeyError, TypeError, ValueError) as error:
            raise _cannot(path, f"line {number} has no count of instances or no time ({error})") from error
        name, launch = clean(row["Name"] or "", None), None
        if match := _PREFIXED.fullmatch(name):  # the innermost NVTX range around it, as a thread of its own
            name, launch = match[2], (f"line {number}", 0.0, math.nan, False)
            annotations.add(match[1], launch[0], 0.0, 0.0)
        work.add(name, count=count, seconds=seconds, grid=sizes[0], block=sizes[1], launch=launch)
    return Trace(path, "Nsight Systems, sums", work, Ranges(), annotations, {}, None)
