"""A report, opened with nothing decoded that is not asked for; its results (a kernel, or a range, graph or command list
profiled as a whole), and what the rules said about each.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, overload

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.formats.report.framing import RawFile, cannot_read, made, open_raw, scan, stated, text
from ncu_roofline.formats.report.metrics import (
    Code,
    Instances,
    Layout,
    Metrics,
    Modules,
    Place,
    Value,
    decode_column,
    plain_value,
)
from ncu_roofline.formats.report.session import Process, Session, read_session

_LONGEST_NAME = 1_000_000  # letters; templates of CUTLASS and Eigen make names of some ten thousand
_REGISTERED = 3  # type of an NVTX message whose text is in the string table of its domain
_SHOWN_NAME = 60  # characters of a name at a prompt
TIME_METRIC = "gpu__time_duration.sum"
DEVICE_PREFIX = "device__attribute_"
_ADDRESSES_END = 1 << 64
_FUNCTION_ADDRESSES = "launch__function_pcs"
_NAMED = ("function", "demangled", "mangled", "display_name")
MESSAGE_TYPES = ("none", "ok", "warning", "error", "optimization")
# Releases up to 2022.3 refuse the whole report for a type that they don't know.  Of several values of one field the last one
# counts that a reader knows: this one is written first.
_UNDERSTOOD = {"optimization": "warning"}
SPEEDUP_TYPES = ("unknown", "local", "global")
SEVERITIES = ("default", "low", "high")
Dim3 = tuple[int, int, int]
_LAYOUTS_KEPT = 64  # one or two in nearly all files; bounds the memory where every kernel has its own
_COLUMN_ROWS = 128  # results whose serialized metrics are held at a time
_DEVICE_KEYS = tuple(f"{DEVICE_PREFIX}{key}" for key in ("display_name", "device_index"))
_SHOWN = 12  # kernels at a prompt
# Bytes of a record that says next to nothing (the shortest of 1,643 real ones has 16 kB), and so many in one report: every
# kernel takes memory and a row, whatever it says.
_SHORT, _MOST_SHORT = 1024, 100_000


@dataclass(frozen=True)
class Launch:
    """What a result says about itself besides metrics, sections and rules.

    ``grid`` is in blocks, ``block`` in threads (x, y, z), both None for anything but a single kernel.  ``created`` is in
    seconds since 1970 (UTC), ``clock_locked`` says whether ncu had locked the clocks; None where the report is silent.
    ``nvtx`` has the names of the NVTX ranges around it, outermost first.
    """

    kind: str
    function_name: str
    name: str
    mangled_name: str = ""
    grid: Dim3 | None = None
    block: Dim3 | None = None
    stream: int | None = None
    context: int | None = None
    created: int | None = None
    clock_locked: bool | None = None
    nvtx: tuple[str, ...] = ()


@dataclass(frozen=True)
class Device:
    """The GPU of a result; ``compute_capability`` is (major, minor), ``index`` counts the GPUs of the machine.

    ``attributes`` has the other facts by name without prefix, e.g. ``attributes["multiprocessor_count"]``.
    """

    name: str
    compute_capability: tuple[int, int] | None = None
    index: int | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class FocusMetric:
    """A metric that made a rule speak; ``severity`` is one of SEVERITIES, ``value`` None where it is not stored."""

    name: str
    value: float | None = None
    severity: str = "default"
    info: str = ""


@dataclass(frozen=True)
class RuleMessage:
    """One message of a rule.  ``type`` is one of MESSAGE_TYPES, or the number that a newer release stored.

    ``speedup`` is the estimated speedup in percent, of the kernel's time if ``speedup_type`` is "global", of the use of one
    unit if it is "local"; None if there is none.
    """

    type: str
    text: str
    title: str = ""
    id: int | None = None
    speedup: float | None = None
    speedup_type: str = ""
    focus: tuple[FocusMetric, ...] = ()


@dataclass(frozen=True)
class RuleResult:
    """What one rule said about one kernel; ``section`` is the identifier of the section it belongs to, or ""."""

    identifier: str
    name: str
    section: str = ""
    messages: tuple[RuleMessage, ...] = ()

    @property
    def speedup(self) -> float | None:
        """The largest estimated speedup among the messages, in percent, or None."""
        return max((m.speedup for m in self.messages if m.speedup is not None), default=None)


def _read_rule(result: Any) -> RuleResult:
    """A RuleResult message as a value; tables and charts in its body are left out."""
    messages = []
    for item in result.body.items:
        if not item.HasField("message"):
            continue
        focus = []
        for one in item.focus:
            value = one.value if one.HasField("value") else None
            focus.append(FocusMetric(text(one.name), value, _word(SEVERITIES, one.severity), text(one.info)))
        estimated = item.speedup.HasField("value")
        messages.append(
            RuleMessage(
                **{"text": "", **stated(item.message), "type": _word(MESSAGE_TYPES, [0, *item.message.type][-1])},
                speedup=item.speedup.value if estimated else None,
                speedup_type=_word(SPEEDUP_TYPES, item.speedup.type) if estimated else "",
                focus=tuple(focus),
            )
        )
    return RuleResult(**{"identifier": "", "name": "", **stated(result)}, messages=tuple(messages))


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _number(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else int(word)


def encode_rule(rule: RuleResult) -> bytes:
    """``rule`` as a serialized RuleResult message that all releases read.

    Raises ValueError for a type or severity that is neither a known word nor a number.
    """
    items = []
    for said in rule.messages:
        words = (_UNDERSTOOD[said.type], said.type) if said.type in _UNDERSTOOD else (said.type,)
        types = [_number(MESSAGE_TYPES, word) for word in words]
        told = made("RuleMessage", text=said.text, type=types, id=said.id, title=said.title or None)
        focus, speedup = [], None
        for one in said.focus:
            values = {**vars(one), "severity": _number(SEVERITIES, one.severity), "info": one.info or None}
            focus.append(made("FocusMetric", message_id=said.id, **values))
        if said.speedup is not None:
            speedup = made("Speedup", type=_number(SPEEDUP_TYPES, said.speedup_type or "unknown"), value=said.speedup)
        items.append(made("RuleItem", message=told, focus=focus, speedup=speedup))
    body = made("RuleBody", items=items) if items else None
    result = made("RuleResult", identifier=rule.identifier, name=rule.name, body=body, section=rule.section or None)
    encoded: bytes = result.SerializeToString()
    return encoded


class Kernel:
    """One result of a report; decoded when asked for, and only what is asked for.

    Every property raises RooflineError for damaged bytes, and ValueError once the report is closed.
    """

    def __init__(self, report: Report, place: Place, index: int) -> None:
        self.index = index
        self.kind = place.kind.name
        self.process = place.process
        self._report = report
        self._place = place

    def __repr__(self) -> str:
        try:
            named = (("grid", self.launch.grid), ("block", self.launch.block))
            sizes = [f"{name} {'x'.join(map(str, size))}" for name, size in named if size]
            nanoseconds = self.metrics.get(TIME_METRIC)
            time = [format_value(nanoseconds * 1e-9, "second")] if isinstance(nanoseconds, (int, float)) else []
            said = ", ".join([shorten(clean(self.name), _SHOWN_NAME), *sizes, *time, f"{len(self.metrics.names())} metrics"])
        except (RooflineError, ValueError):  # damaged, or of a closed report: at a prompt nothing may raise
            said = "can't be read"
        return f"<Kernel {self.index}: {said}>"

    @functools.cached_property
    def launch(self) -> Launch:
        """Names, grid, block, stream, NVTX ranges."""
        return _read_launch(self._report._raw, self._place)

    @property
    def function_name(self) -> str:
        """The bare name of the function."""
        return self.launch.function_name

    @property
    def name(self) -> str:
        """The demangled name with its signature; for results of other kinds the name that ncu gives them."""
        return self.launch.name

    @property
    def mangled_name(self) -> str:
        """The name in the binary."""
        return self.launch.mangled_name

    @property
    def nvtx(self) -> tuple[str, ...]:
        """Names of the NVTX ranges around the launch, outermost first."""
        return self.launch.nvtx

    @functools.cached_property
    def metrics(self) -> Metrics:
        """Metrics by full name."""
        return self._report._metrics_at(self._place)

    @property
    def device(self) -> Device | None:
        """The GPU it ran on, as far as its metrics tell; None if they don't name one."""
        return device_of(self.metrics)

    @property
    def sections(self) -> tuple[bytes, ...]:
        """The sections it was collected with, as serialized ProfilerSection messages; not kept, so that memory stays small."""
        return tuple(self._parse("Body").sections)

    @property
    def rule_results(self) -> tuple[RuleResult, ...]:
        """What the rules of ncu said about it."""
        rules = getattr(self._parse("Body"), "rules", ())
        return tuple(_read_rule(self._report._raw.decode("RuleResult", data, self._place.offset)) for data in rules)

    @property
    def code(self) -> Code | None:
        """The module it is from, with cubin and imported sources; None if the report has none.

        Read when asked for; kept is the one that was asked for last in the report.
        """
        module = self.module
        return self._report._modules.find(self.process, module) if module is not None else None

    @property
    def module(self) -> int | None:
        """The number of its module, which with `process` tells modules apart; None if it refers to none.

        The report need not have the module's `code`.
        """
        if self.kind != "kernel":
            return None  # only these refer to one
        source = self._parse("Head").source
        return int(source.reference) if source.HasField("reference") else None

    def base_address(self) -> int | None:
        """The address of its first instruction in bytes, to which those of `Metrics.by_address` are relative; None if unknown.

        Raises RooflineError for damaged bytes.
        """
        # Lists the kernel and the functions that it calls, in an order that does not tell which is which; the scalar is their
        # sum, or from 2025 on how many they are.  Doubles in old releases.
        instances = self.metrics.instances(_FUNCTION_ADDRESSES) if self.metrics.has_name(_FUNCTION_ADDRESSES) else []
        numbers = {value for _, value in instances if isinstance(value, (int, float)) and 0 < value < _ADDRESSES_END}
        listed = {int(value) for value in numbers if value == int(value)}
        if len(listed) == 1:
            return listed.pop()
        code = self.code
        named = {function.address for function in code.functions if function.name == self.mangled_name} if code else set()
        addresses = named & listed if listed else named
        return addresses.pop() if len(addresses) == 1 else None

    def _parse(self, view: str) -> Any:
        return self._report._raw.parse(self._place.kind.view(view), self._place.offset, self._place.length)


def _read_launch(raw: RawFile, place: Place) -> Launch:
    """What the result at ``place`` says about itself.  Raises RooflineError for damaged bytes."""
    kind = place.kind.name
    head = raw.parse(place.kind.view("Head"), place.offset, place.length)
    said = stated(head)
    function, demangled, mangled, display = (said.get(name, "") for name in _NAMED)
    longest = max(map(len, (function, demangled, mangled, display)))
    if longest > _LONGEST_NAME:
        raise raw.damaged(place.offset, f"a kernel's name of {longest:,} letters, which no compiler makes")
    launched = head if kind == "kernel" else None
    function_name = name = display or kind
    if kind == "kernel":
        function_name, name = function or demangled, demangled or function
    elif kind == "cmdlist" and len(head.launches) == 1:
        launched = head.launches[0]
    sizes = (getattr(launched, one) if launched is not None and launched.HasField(one) else None for one in ("grid", "block"))
    grid, block = ((size.x, size.y, size.z) if size is not None else None for size in sizes)
    # Names of the NVTX ranges around it: those that were started and ended (on any thread) come before those that its thread
    # pushed, which nest inside a function.
    ranges: list[str] = []
    if parts := b"".join(head.nvtx):  # a message may come in parts
        state = raw.decode("Nvtx", parts, place.offset)
        entries = [(domain.id, entry) for domain in state.start_end for entry in domain.ranges]
        own = (thread for thread in state.threads if thread.id == head.thread_id)
        entries += [(domain.id, entry) for thread in own for domain in thread.domains for entry in domain.stack]
        strings = {(domain.id, string.id): text(string.value) for domain in state.domains for string in domain.strings}
        for domain_id, entry in entries:
            of = entry.attributes.message
            registered = strings.get((domain_id, of.handle), "") if of.type == _REGISTERED else text(of.text)
            ranges.append(text(entry.name) or registered)
    return Launch(
        kind,
        function_name,
        name,
        mangled,
        grid=grid,
        block=block,
        stream=said.get("stream"),
        context=said.get("context"),
        created=said.get("created"),
        clock_locked=head.clock.locked if head.HasField("clock") else None,
        nvtx=tuple(ranges),
    )


def device_of(metrics: Mapping[str, Value]) -> Device | None:
    """The GPU that these metrics describe, or None if they name none."""
    name = metrics.get(f"{DEVICE_PREFIX}display_name")
    if not isinstance(name, str):
        return None
    major, minor, index = (
        metrics.get(f"{DEVICE_PREFIX}{key}") for key in ("compute_capability_major", "compute_capability_minor", "device_index")
    )
    names = metrics.names() if isinstance(metrics, Metrics) else tuple(metrics)
    own = [one for one in names if one.startswith(DEVICE_PREFIX)]
    return Device(
        name=name.rstrip("\0"),
        compute_capability=(major, minor) if isinstance(major, int) and isinstance(minor, int) else None,
        index=index if isinstance(index, int) else None,
        attributes={one.removeprefix(DEVICE_PREFIX): value for one in own if (value := metrics.get(one)) is not None},
    )


class _Kernels(Sequence[Kernel]):
    """Made when looked at and not kept: a report of 10,000 kernels costs the memory of one."""

    def __init__(self, report: Report, indices: Sequence[int]) -> None:
        self._report, self._indices = report, indices

    @overload
    def __getitem__(self, index: int) -> Kernel: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Kernel]: ...

    def __getitem__(self, index: int | slice) -> Kernel | Sequence[Kernel]:
        if isinstance(index, slice):
            return _Kernels(self._report, self._indices[index])
        own = self._indices[index]
        return Kernel(self._report, self._report._places[own], own)

    def __len__(self) -> int:
        return len(self._indices)

    def __repr__(self) -> str:
        more = [f"  ... and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return "\n".join([f"<{len(self)} kernels>", *(f"  {kernel!r}" for kernel in self[:_SHOWN]), *more])


class Report:
    """An open report.  Use it in a ``with`` statement, or `close` it; kernels can't be decoded after that."""

    warnings: tuple[str, ...] = ()  # sentences on what was left out, as tables of importers have

    def __init__(self, raw: RawFile) -> None:
        self.path = raw.path
        self._raw = raw
        self._places: list[Place] = []
        processes: dict[bytes, Process] = {}
        modules: list[tuple[Process, Sequence[tuple[int, int]]]] = []
        names: list[bytes] = []
        sessions: list[bytes] = []
        short = 0
        for block in scan(raw):
            names.extend(block.header.strings.strings)
            sessions.extend(block.header.session)
            named = block.header.process
            if named not in processes:
                processes[named] = Process(**stated(raw.decode("Process", named, block.start)))
            if block.counts[0]:
                modules.append((processes[named], block.records[: block.counts[0]]))
            for kind, offset, length in block.results():
                short += length <= _SHORT
                if short > _MOST_SHORT:
                    few = f"no more than {_SHORT:,} bytes, real ones 16,000 or more: it is damaged or made up"
                    raise cannot_read(raw.path, f"over {_MOST_SHORT:,} of its records of kernels have {few}", "Profile again.")
                self._places.append(Place(kind, offset, length, processes[named]))
        session = raw.decode("Session", b"".join(sessions), 0)  # of all blocks: protobuf merges joined messages
        self.session: Session = read_session(session, next((one for data, one in processes.items() if data), Process()))
        self._session_devices = tuple(map(_session_device, session.devices))
        self._strings = [data.decode("utf-8", "replace") for data in names]
        self._modules = Modules(raw, modules)
        self._names = frozenset(self._strings)
        self._known: dict[tuple[int, ...], Layout] = {}  # by their name ids, each worked out once
        self._layouts: list[Layout | None] = [None] * len(self._places)

    def _metrics_at(self, place: Place) -> Metrics:
        """The metrics of the result at ``place``.  Raises RooflineError for damaged bytes."""
        raw, kind, offset = self._raw, place.kind, place.offset
        data = raw[offset : offset + place.length]
        # A slice is made at twice the speed of iteration.
        ids = tuple(raw.decode(kind.view("NameIds"), data, offset).metrics.ids[:])
        items = raw.decode(kind.view("Metrics"), data, offset).metrics
        if len(ids) != len(items):  # some metric has no name or two, which only damage brings about
            named = [raw.decode("MetricScalar", item, offset) for item in items]
            if not all(metric.HasField("name_id") for metric in named):
                raise raw.damaged(offset, "a metric has no name")
            ids = tuple([metric.name_id for metric in named])
        layout = self._known.get(ids)
        if layout is None:
            beyond = next((name_id for name_id in ids if name_id >= len(self._strings)), None)
            if beyond is not None:
                raise raw.damaged(offset, f"a metric has name {beyond} of a table of {len(self._strings)} names")
            if len(self._known) >= _LAYOUTS_KEPT:
                self._known.clear()
            layout = self._known[ids] = Layout({self._strings[name_id]: position for position, name_id in enumerate(ids)})
        return Metrics(raw, layout, items, offset)

    @property
    def kernels(self) -> Sequence[Kernel]:
        """Its results in the order in which they were profiled."""
        return _Kernels(self, range(len(self._places)))

    @property
    def ncu_version(self) -> str:
        """The release that wrote it, such as "2024.2.1.0", or "" if the report does not say."""
        return self.session.ncu_version

    @property
    def device(self) -> Device | None:
        """The GPU of the first result that names one, else of the session, else None."""
        for kernel in self.kernels:
            device = kernel.device
            if device is not None:
                return device
        return self._session_devices[0] if self._session_devices else None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs of all results, in the order in which they first occur; those of the session if no result names one."""
        columns = self.columns(_DEVICE_KEYS)
        first: dict[tuple[Value | None, ...], int] = {}
        for index, key in enumerate(zip(*columns.values(), strict=True)):
            first.setdefault(key, index)
        found = (self.kernels[index].device for index in first.values())
        return tuple(dict.fromkeys(device for device in found if device is not None)) or self._session_devices

    @property
    def metric_names(self) -> frozenset[str]:
        """The names of all metrics that some kernel may have; the file's table of names, so it may hold a few more."""
        return self._names

    def launches(self) -> list[Launch]:
        """`Kernel.launch` of all `kernels`.  Raises RooflineError for damaged bytes."""
        return [_read_launch(self._raw, place) for place in self._places]

    def names(self, launch: int) -> tuple[str, ...]:
        """`Metrics.names` of a kernel; at no cost if its `columns` were read.  Raises RooflineError for damaged bytes."""
        layout = self._layouts[launch] or self._metrics_at(self._places[launch]).layout
        return tuple(layout.index)

    def columns(self, names: Iterable[str]) -> dict[str, list[Value | None]]:
        """For each metric name its values over all `kernels`, None where a kernel lacks it; the fast way to read many kernels.

        Raises RooflineError for damaged bytes.
        """
        return self.columns_and_instances(names, ())[0]

    def columns_and_instances(
        self, names: Iterable[str], instanced: Iterable[str]
    ) -> tuple[dict[str, list[Value | None]], dict[str, list[Instances]]]:
        """`columns` of ``names``, and in the same pass `Metrics.instances` of the metrics ``instanced``, by name and kernel.

        Meant for counts by name (of an opcode, say).  A kernel without the metric has no instances.  Raises RooflineError for
        damaged bytes.
        """
        result: dict[str, list[Value | None]] = {name: [None] * len(self) for name in names}
        instances: dict[str, list[Instances]] = {name: [[] for _ in range(len(self))] for name in instanced}
        for start in range(0, len(self), _COLUMN_ROWS):
            self._fill(result, instances, range(start, min(start + _COLUMN_ROWS, len(self))))
        return result, instances

    def _fill(self, result: dict[str, list[Value | None]], instances: dict[str, list[Instances]], rows: range) -> None:
        groups: dict[Layout, tuple[list[str], Callable[[Any], Any], list[int], list[Any]]] = {}
        for row in rows:
            metrics = self._metrics_at(self._places[row])
            layout = self._layouts[row] = metrics.layout
            index = layout.index
            if layout not in groups:
                names = [name for name in result if name in index]
                places = [index[name] for name in [*names, *names[:1]]]  # two at least, so that what is picked is a tuple
                groups[layout] = names, operator.itemgetter(*places) if places else tuple, [], []
            _, pick, of, items = groups[layout]
            of.append(row)
            items.append(pick(metrics.serialized))
            for name, column in instances.items():
                if name in index:
                    column[row] = metrics.instances(name)
        offset = self._places[rows.start].offset
        for names, _, of, items in groups.values():
            for name, serialized in zip(names, zip(*items, strict=True), strict=False):
                target = result[name]
                for row, value in zip(of, decode_column(self._raw, serialized, offset), strict=True):
                    target[row] = value

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        try:
            device = self.device
        except (RooflineError, ValueError):  # damaged, or closed: at a prompt nothing may raise
            device = None
        about = [clean(device.name)] if device else []
        about += [f"Nsight Compute {clean(self.ncu_version)}"] if self.ncu_version else []
        kernels = repr(self.kernels).partition("\n")
        said = ", ".join([kernels[0].strip("<>"), *about])
        return f"<Report {clean(os.path.basename(self.path))}: {said}>{kernels[1]}{kernels[2]}"

    def close(self) -> None:
        """Give the file back."""
        self._raw.close()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _session_device(device: Any) -> Device:
    metrics = {text(attribute.name): plain_value(attribute.value) for attribute in device.attributes}
    known = {name: value for name, value in metrics.items() if value is not None}
    known.setdefault(f"{DEVICE_PREFIX}display_name", text(device.name))
    found = device_of(known)
    return found if found is not None else Device(text(device.name))


def read_report(path: str | os.PathLike[str]) -> Report:
    """Open the report ``path``: a `.ncu-rep` of any release from 2019 on, or a `.ncu-repz`, told apart by content.

    Reads the block headers only; the file is checked to be complete to its last byte.  Raises RooflineError, which says what
    the file is instead, or where it is damaged.

    >>> with read_report("gpp-v100.ncu-rep") as report:
    ...     report.device.name, len(report.kernels), report.kernels[0].metrics["dram__bytes.sum"]
    ('Tesla V100-SXM2-16GB', 6, 445530186084)
    """
    raw = open_raw(path)
    try:
        return Report(raw)
    except BaseException:
        raw.close()
        raise
