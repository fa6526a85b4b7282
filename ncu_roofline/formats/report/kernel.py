"""One profiled result (a kernel, or a range, graph or command list profiled as a whole), and what the rules said about it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value
from ncu_roofline.formats.report.code import Code
from ncu_roofline.formats.report.framing import RawFile, message, text
from ncu_roofline.formats.report.metrics import Metrics, Place, Source, Value

_LONGEST_NAME = 1_000_000  # bytes; templates of CUTLASS and Eigen make names of some ten thousand
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


def range_names(state: Any, thread_id: int) -> tuple[str, ...]:
    """Names of the ranges of an Nvtx message that enclose a launch by thread ``thread_id``, outermost first.

    Ranges that were started and ended (on any thread) come before those that the thread pushed, which nest inside a function.
    """
    strings = {(domain.id, string.id): text(string.value) for domain in state.domains for string in domain.strings}
    names = [_name(entry, domain.id, strings) for domain in state.start_end for entry in domain.ranges]
    for thread in state.threads:
        if thread.id == thread_id:
            names += [_name(entry, domain.id, strings) for domain in thread.domains for entry in domain.stack]
    return tuple(names)


def _name(entry: Any, domain_id: int, strings: dict[tuple[int, int], str]) -> str:
    said = entry.attributes.message
    if not entry.name and said.type == _REGISTERED:
        return strings.get((domain_id, said.handle), "")
    return text(entry.name) or text(said.text)


def pushed(names: Sequence[str], thread_id: int) -> Any:
    """An Nvtx message that says that thread ``thread_id`` has pushed the ranges ``names``, outermost first."""
    state = message("Nvtx")()
    state.domains.add(id=0, name=b"<default domain>")
    stack = state.threads.add(id=thread_id).domains.add(id=0).stack
    for name in names:
        stack.add(name=name.encode())
    return state


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
    messages = tuple(_read_item(item) for item in result.body.items if item.HasField("message"))
    return RuleResult(text(result.identifier), text(result.name), text(result.section), messages)


def _read_item(item: Any) -> RuleMessage:
    said, speedup = item.message, item.speedup
    estimated = item.HasField("speedup") and speedup.HasField("value")
    return RuleMessage(
        type=_word(MESSAGE_TYPES, said.type[-1] if said.type else 0),
        text=text(said.text),
        title=text(said.title),
        id=said.id if said.HasField("id") else None,
        speedup=speedup.value if estimated else None,
        speedup_type=_word(SPEEDUP_TYPES, speedup.type) if estimated else "",
        focus=tuple(
            FocusMetric(
                text(one.name), one.value if one.HasField("value") else None, _word(SEVERITIES, one.severity), text(one.info)
            )
            for one in item.focus
        ),
    )


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _number(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else int(word)


def encode_rule(rule: RuleResult) -> bytes:
    """``rule`` as a serialized RuleResult message that all releases read.

    Raises ValueError for a type or severity that is neither a known word nor a number.
    """
    result = message("RuleResult")(identifier=rule.identifier.encode(), name=rule.name.encode())
    if rule.section:
        result.section = rule.section.encode()
    for said in rule.messages:
        item = result.body.items.add()
        item.message.text = said.text.encode()
        words = (_UNDERSTOOD[said.type], said.type) if said.type in _UNDERSTOOD else (said.type,)
        item.message.type.extend(_number(MESSAGE_TYPES, word) for word in words)
        if said.title:
            item.message.title = said.title.encode()
        if said.id is not None:
            item.message.id = said.id
        if said.speedup is not None:
            item.speedup.type = _number(SPEEDUP_TYPES, said.speedup_type or "unknown")
            item.speedup.value = said.speedup
        for metric in said.focus:
            focus = item.focus.add(name=metric.name.encode(), severity=_number(SEVERITIES, metric.severity))
            for name, value in (("message_id", said.id), ("value", metric.value), ("info", metric.info.encode() or None)):
                if value is not None:
                    setattr(focus, name, value)
    encoded: bytes = result.SerializeToString()
    return encoded


class Kernel:
    """One result of a report; decoded when asked for, and only what is asked for.

    Every property raises RooflineError for damaged bytes, and ValueError once the report is closed.
    """

    def __init__(self, source: Source, place: Place, index: int) -> None:
        self.index = index
        self.kind = place.kind.name
        self.process = place.process
        self._source = source
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
        return read_launch(self._source.raw, self._place)

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
        return Metrics(self._source.raw, self._source.record(self._place))

    @property
    def device(self) -> Device | None:
        """The GPU it ran on, as far as its metrics tell; None if they don't name one."""
        return device_of(self.metrics)

    @property
    def sections(self) -> tuple[bytes, ...]:
        """The sections it was collected with, as serialized ProfilerSection messages; not kept, so that memory stays small."""
        return tuple(self._parse(self._place.kind.body_message).sections)

    @property
    def rule_results(self) -> tuple[RuleResult, ...]:
        """What the rules of ncu said about it."""
        rules = getattr(self._parse(self._place.kind.body_message), "rules", ())
        return tuple(_read_rule(self._source.raw.decode("RuleResult", data, self._place.offset)) for data in rules)

    @property
    def code(self) -> Code | None:
        """The module it is from, with cubin and imported sources; None if the report has none.

        Read when asked for; kept is the one that was asked for last in the report.
        """
        module = self.module
        return self._source.code.find(self.process, module) if module is not None else None

    @property
    def module(self) -> int | None:
        """The number of its module, which with `process` tells modules apart; None if it refers to none.

        The report need not have the module's `code`.
        """
        if self.kind != "kernel":
            return None  # only these refer to one
        source = self._parse("KernelSource").source
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

    def _parse(self, message: str) -> Any:
        return self._source.raw.parse(message, self._place.offset, self._place.length)


def read_launch(raw: RawFile, place: Place) -> Launch:
    """What the result at ``place`` says about itself.  Raises RooflineError for damaged bytes."""
    kind = place.kind.name
    head = raw.parse(place.kind.head_message, place.offset, place.length)
    function, demangled, mangled, display = (getattr(head, name, b"") for name in _NAMED)
    longest = max(map(len, (function, demangled, mangled, display)))
    if longest > _LONGEST_NAME:
        raise raw.damaged(place.offset, f"a kernel's name of {longest:,} bytes, which no compiler makes")
    launched = head if kind == "kernel" else None
    function_name = name = text(display) or kind
    if kind == "kernel":
        function_name, name = text(function) or text(demangled), text(demangled) or text(function)
    elif kind == "cmdlist" and len(head.launches) == 1:
        launched = head.launches[0]
    state = b"".join(head.nvtx)  # a message may come in parts
    return Launch(
        kind,
        function_name,
        name,
        text(mangled),
        grid=_dim3(launched, "grid"),
        block=_dim3(launched, "block"),
        stream=_optional(head, "stream"),
        context=_optional(head, "context"),
        created=_optional(head, "created"),
        clock_locked=head.clock.locked if head.HasField("clock") else None,
        nvtx=range_names(raw.decode("Nvtx", state, place.offset), head.thread_id) if state else (),
    )


def _dim3(message: Any, name: str) -> Dim3 | None:
    if message is None or not message.HasField(name):
        return None
    size = getattr(message, name)
    return size.x, size.y, size.z


def _optional(message: Any, name: str) -> int | None:
    if name not in message.DESCRIPTOR.fields_by_name or not message.HasField(name):
        return None
    number: int = getattr(message, name)
    return number


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
