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
    session, said = data.session, message("Session")(process_id=data.session.process.id)
    host = (session.process.host or session.host).encode()
    process = message("Process")(id=session.process.id, host=host, name=session.process.name.encode()).SerializeToString()

    def header(sources: int = 0, of: Any = None) -> Any:
        result = message("BlockHeader")(sources=sources, kernels=0, process=process)
        if of is not None:
            result.session.append(of.SerializeToString())
        return result

    if session.created is not None:
        said.created = session.created
    for system in (said.host, said.target):
        system.os, system.name = session.os.encode(), session.host.encode()
    versions = session.versions or (
        ("Nsight Compute Target", session.ncu_version),
        ("Display Driver Version", session.driver_version),
        ("CUDA Version", session.cuda_version),
    )
    for provider, version in versions:
        if version:
            said.versions.add(provider=provider.encode(), version=version.encode())
    if session.command_line:
        said.command_line = session.command_line.encode()
    for name in ("clock_control", "replay"):
        if getattr(session, name):
            setattr(said.settings, name, getattr(session, name).encode())
    yield file_start()
    yield pack_block(header(of=said), [])
    ids: dict[str, int] = {}  # of names of metrics
    devices = set[Device]()
    modules = dict[Code, int]()
    for kernel in data.kernels:
        device = device_of(kernel.metrics)
        if kernel.code is not None and kernel.code not in modules:
            modules[kernel.code] = _FIRST_MODULE + len(modules)
            yield pack_block(header(sources=1), [_source_record(kernel.code, modules[kernel.code], device)])
        known = len(ids)
        result = _result(kernel, ids, None if kernel.code is None else modules[kernel.code])
        own = header()
        own.strings.strings.extend(name.encode() for name in islice(ids, known, None))
        setattr(own, _KINDS[kernel.kind].counter, 1)
        yield pack_block(own, [result])
        if device is not None and device not in devices:  # once more, for the session page of ncu, which fails without
            devices.add(device)
            said = message("Session")()
            entry = said.devices.add(id=device.index or 0, name=device.name.encode())
            for name, value in device.attributes.items():
                set_value(entry.attributes.add(name=f"{DEVICE_PREFIX}{name}".encode()).value, value)
            yield pack_block(header(of=said), [])


def _source_record(code: Code, number: int, device: Device | None) -> bytes:
    """A module; ncu disassembles for the chip that it names."""
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
    return bytes(record.SerializeToString())


def _result(kernel: KernelData, ids: dict[str, int], module: int | None) -> bytes:
    kind = _KINDS.get(kernel.kind)
    if kind is None:
        raise ValueError(f"{kernel.kind!r} is not a kind of result: {', '.join(_KINDS)}")
    result = message(kind.view("Result"))(thread_id=_THREAD, api_call_id=0, context=kernel.context)
    if kernel.kind == "kernel":  # ncu wants all of these
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
    if kernel.kind != "range":
        result.stream = kernel.stream
    if kernel.kind in ("kernel", "cmdlist"):
        result.rules.extend(encode_rule(rule) for rule in kernel.rule_results)
    if kernel.clock_locked is not None:
        result.clock.requested = result.clock.locked = kernel.clock_locked
    if kernel.nvtx:
        result.nvtx.CopyFrom(pushed(kernel.nvtx, _THREAD))
    result.sections.extend(kernel.sections)
    for name in dict.fromkeys((*kernel.metrics, *kernel.instances)):
        metric = result.metrics.add(name_id=ids.setdefault(name, len(ids)))
        if name in kernel.metrics:
            set_value(metric.value, kernel.metrics[name])
        for correlation, value in kernel.instances.get(name, ()):
            instance = metric.instances.add()
            set_value(instance.value, value)
            if correlation is not None:
                set_value(instance.correlation, correlation)
    return bytes(result.SerializeToString())


def set_value(message: Any, value: Value) -> None:
    """Put a value into a Value message: an int as an unsigned counter if it is in range, any other number as a double."""
    if isinstance(value, str):
        message.text = value.encode()
    elif isinstance(value, int) and 0 <= value < _UINT64_END:
        message.uint64 = int(value)  # protobuf takes no bool
    else:
        message.double = float(value)
