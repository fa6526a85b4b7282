"""Writing reports that Nsight Compute opens: for samples, tests and tools that bring their own numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ncu_roofline.base.files import write_atomically
from ncu_roofline.formats.report.framing import KINDS, as_named, file_start, message, pack_block
from ncu_roofline.formats.report.metrics import Code, Value
from ncu_roofline.formats.report.reader import DEVICE_PREFIX, Device, Dim3, RuleResult, device_of, encode_rule, pushed
from ncu_roofline.formats.report.session import Session

_THREAD = 1
_FIRST_MODULE = 1 << 32  # numbers as ncu gives them
_UINT64_END = 1 << 64
_KINDS = {kind.name: kind for kind in KINDS}
# What the format can hold besides metrics, sections and NVTX ranges, by kind.
_CARRIES: dict[str, set[str]] = {
    "kernel": {"rules", "stream"},
    "range": set(),
    "cmdlist": {"rules", "stream"},
    "graph": {"stream"},
}


@dataclass(frozen=True)
class KernelData:
    """One result to be written; ``kind``, names, ``grid`` and ``block`` as in `Launch`.

    ``metrics`` has the scalars: an int becomes an unsigned counter, a float (or an int out of its range) a double, a str text.
    ``instances`` has (correlation id or None, value) pairs; a name that is in it only is a metric without a scalar.
    ``sections`` are serialized ProfilerSection messages.  Names, grid, block and ``code`` are kept by kernels only, rule
    results by kernels and command lists.  Equal ``code`` is written once.
    """

    name: str
    function_name: str = ""
    mangled_name: str = ""
    kind: str = "kernel"
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (1, 1, 1)
    stream: int = 0
    context: int = 0
    metrics: Mapping[str, Value] = field(default_factory=dict)
    instances: Mapping[str, Sequence[tuple[Value | None, Value]]] = field(default_factory=dict)
    sections: Sequence[bytes] = ()
    rule_results: Sequence[RuleResult] = ()
    nvtx: Sequence[str] = ()
    clock_locked: bool | None = None
    code: Code | None = None


@dataclass(frozen=True)
class ReportData:
    """A report to be written.  ``kernels`` is consumed once, so it may be a generator: one kernel is in memory at a time."""

    kernels: Iterable[KernelData]
    session: Session = field(default_factory=Session)


def write_report(path: str | os.PathLike[str], data: ReportData, *, overwrite: bool = False) -> None:
    """Write ``data`` to the file ``path``, which appears only when it is complete; compressed if it is called .ncu-repz.

    Raises RooflineError if it exists (and not ``overwrite``) or can't be written, ValueError for an unknown kind of result.

    >>> from ncu_roofline.formats.report import KernelData, ReportData
    >>> write_report("one.ncu-rep", ReportData(kernels=[KernelData(name="copy", metrics={"gpu__time_duration.sum": 1000.0})]))
    """
    write_atomically(path, as_named(path, encode_report(data)), overwrite=overwrite)


def encode_report(data: ReportData) -> Iterator[bytes]:
    """The bytes of a report, block by block.  Raises ValueError for an unknown kind of result."""
    session = data.session
    host = (session.process.host or session.host).encode()
    process = message("Process")(id=session.process.id, host=host, name=session.process.name.encode()).SerializeToString()
    yield file_start()
    yield pack_block(_header(process, _session(session)), [])
    ids: dict[str, int] = {}  # of names of metrics
    devices = set[Device]()
    modules = dict[Code, int]()
    for kernel in data.kernels:
        device = device_of(kernel.metrics)
        if kernel.code is not None and kernel.code not in modules:
            modules[kernel.code] = _FIRST_MODULE + len(modules)
            yield _code_block(kernel.code, modules[kernel.code], device, process)
        yield _kernel_block(kernel, process, ids, None if kernel.code is None else modules[kernel.code])
        if device is not None and device not in devices:
            devices.add(device)
            yield pack_block(_header(process, _session_device(device)), [])


def _header(process: bytes, session: Any = None) -> Any:
    header = message("BlockHeader")(sources=0, kernels=0, process=process)
    if session is not None:
        header.session.append(session.SerializeToString())
    return header


def _session_device(device: Device) -> Any:
    """The device once more, for the session page of ncu, which fails without."""
    session = message("Session")()
    entry = session.devices.add(id=device.index or 0, name=device.name.encode())
    for name, value in device.attributes.items():
        _set_value(entry.attributes.add(name=f"{DEVICE_PREFIX}{name}".encode()).value, value)
    return session


def _session(session: Session) -> Any:
    result = message("Session")(process_id=session.process.id)
    if session.created is not None:
        result.created = session.created
    for system in (result.host, result.target):
        system.os, system.name = session.os.encode(), session.host.encode()
    versions = session.versions or (
        ("Nsight Compute Target", session.ncu_version),
        ("Display Driver Version", session.driver_version),
        ("CUDA Version", session.cuda_version),
    )
    for provider, version in versions:
        if version:
            result.versions.add(provider=provider.encode(), version=version.encode())
    if session.command_line:
        result.command_line = session.command_line.encode()
    for name in ("clock_control", "replay"):
        if getattr(session, name):
            setattr(result.settings, name, getattr(session, name).encode())
    return result


def _code_block(code: Code, number: int, device: Device | None, process: bytes) -> bytes:
    """A block with a source record; ncu disassembles for the chip that it names."""
    record = message("SourceRecord")(id=number)
    if code.cubin:
        record.cubin = code.cubin
    if device is not None and device.compute_capability is not None:
        major, minor = device.compute_capability
        record.major, record.capability, record.zero = major, major << 16 | minor, 0
    for file in code.files:
        entry = message("ImportedFile")(name=file.name.encode(), text=file.text.encode())
        record.files.files.append(entry.SerializeToString())
    for function in code.functions:
        entry = message("CodeFunction")(name=function.name.encode(), address=function.address)
        if function.symbol is not None:
            entry.symbol = function.symbol
        record.functions.functions.append(entry.SerializeToString())
    header = _header(process)
    header.sources = 1
    return pack_block(header, [record.SerializeToString()])


def _kernel_block(kernel: KernelData, process: bytes, ids: dict[str, int], module: int | None) -> bytes:
    kind = _KINDS.get(kernel.kind)
    if kind is None:
        raise ValueError(f"{kernel.kind!r} is not a kind of result: {', '.join(_KINDS)}")
    result = message(kind.result_message)(thread_id=_THREAD, api_call_id=0, context=kernel.context)
    if kernel.kind == "kernel":
        _set_kernel(result, kernel, module)
    if "stream" in _CARRIES[kernel.kind]:
        result.stream = kernel.stream
    if "rules" in _CARRIES[kernel.kind]:
        result.rules.extend(encode_rule(rule) for rule in kernel.rule_results)
    if kernel.clock_locked is not None:
        result.clock.requested = result.clock.locked = kernel.clock_locked
    if kernel.nvtx:
        result.nvtx.CopyFrom(pushed(kernel.nvtx, _THREAD))
    result.sections.extend(kernel.sections)
    known = len(ids)
    for name in dict.fromkeys((*kernel.metrics, *kernel.instances)):
        metric = result.metrics.add(name_id=ids.setdefault(name, len(ids)))
        if name in kernel.metrics:
            _set_value(metric.value, kernel.metrics[name])
        for correlation, value in kernel.instances.get(name, ()):
            instance = metric.instances.add()
            _set_value(instance.value, value)
            if correlation is not None:
                _set_value(instance.correlation, correlation)
    header = _header(process)
    header.strings.strings.extend(name.encode() for name in islice(ids, known, None))
    setattr(header, kind.counter, 1)
    return pack_block(header, [result.SerializeToString()])


def _set_kernel(result: Any, kernel: KernelData, module: int | None) -> None:
    """The fields that only kernels have; ncu wants all of them."""
    function = kernel.function_name or kernel.name.partition("(")[0]
    result.mangled, result.function = (kernel.mangled_name or function).encode(), function.encode()
    result.demangled = kernel.name.encode()
    result.program = result.kernel_id = 0
    result.dimensions = 3
    result.offset.x = result.offset.y = result.offset.z = 0
    for size, (x, y, z) in ((result.grid, kernel.grid), (result.block, kernel.block)):
        size.x, size.y, size.z = x, y, z
    result.source.SetInParent()
    if module is not None:
        result.source.reference = module


def _set_value(message: Any, value: Value) -> None:
    if isinstance(value, str):
        message.text = value.encode()
    elif isinstance(value, int) and 0 <= value < _UINT64_END:
        message.uint64 = int(value)  # protobuf takes no bool
    else:
        message.double = float(value)
