"""Writing reports that Nsight Compute opens: for samples, tests and tools that bring their own numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ncu_roofline.base.files import write_atomically
from ncu_roofline.formats.report.framing import KINDS, as_named, file_start, made, pack_block
from ncu_roofline.formats.report.metrics import Code, Value
from ncu_roofline.formats.report.reader import DEVICE_PREFIX, Device, Dim3, RuleResult, device_of, encode_rule
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
    session = data.session
    host = session.process.host or session.host
    process = made("Process", id=session.process.id, host=host, name=session.process.name).SerializeToString()

    def header(sources: int = 0, of: Any = None) -> Any:
        said = None if of is None else [of.SerializeToString()]
        return made("BlockHeader", sources=sources, kernels=0, process=process, session=said)

    system = made("System", os=session.os, name=session.host)
    versions = session.versions or (
        ("Nsight Compute Target", session.ncu_version),
        ("Display Driver Version", session.driver_version),
        ("CUDA Version", session.cuda_version),
    )
    settings = made("Settings", clock_control=session.clock_control or None, replay=session.replay or None)
    said = made(
        "Session",
        process_id=session.process.id,
        created=session.created,
        host=system,
        target=system,
        versions=[made("Version", provider=provider, version=version) for provider, version in versions if version],
        settings=settings if settings.ListFields() else None,
        command_line=session.command_line or None,
    )
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
            entry = made("SessionDevice", id=device.index or 0, name=device.name)
            for name, value in device.attributes.items():
                set_value(entry.attributes.add(name=f"{DEVICE_PREFIX}{name}".encode()).value, value)
            said = made("Session", devices=[entry])
            yield pack_block(header(of=said), [])


def _source_record(code: Code, number: int, device: Device | None) -> bytes:
    """A module; ncu disassembles for the chip that it names."""
    chip: dict[str, int] = {}
    if device is not None and device.compute_capability is not None:
        major, minor = device.compute_capability
        chip = {"major": major, "capability": major << 16 | minor, "zero": 0}
    files = [made("ImportedFile", name=one.name, text=one.text).SerializeToString() for one in code.files]
    functions = [made("CodeFunction", **vars(one)).SerializeToString() for one in code.functions]
    record = made(
        "SourceRecord",
        id=number,
        cubin=code.cubin or None,
        files=made("FileTable", files=files) if files else None,
        functions=made("FunctionTable", functions=functions) if functions else None,
        **chip,
    )
    return bytes(record.SerializeToString())


def _result(kernel: KernelData, ids: dict[str, int], module: int | None) -> bytes:
    kind = _KINDS.get(kernel.kind)
    if kind is None:
        raise ValueError(f"{kernel.kind!r} is not a kind of result: {', '.join(_KINDS)}")
    result = made(kind.view("Result"), thread_id=_THREAD, api_call_id=0, context=kernel.context)
    if kernel.kind == "kernel":  # ncu wants all of these
        function = kernel.function_name or kernel.name.partition("(")[0]
        names = {"mangled": kernel.mangled_name or function, "function": function, "demangled": kernel.name}
        grid, block, offset = (made("Dim3", x=x, y=y, z=z) for x, y, z in (kernel.grid, kernel.block, (0, 0, 0)))
        sizes = {"dimensions": 3, "offset": offset, "grid": grid, "block": block}
        source = made("Source", reference=module)
        result.MergeFrom(made(kind.view("Result"), program=0, kernel_id=0, **names, **sizes, source=source))
    if kernel.kind != "range":
        result.stream = kernel.stream
    if kernel.kind in ("kernel", "cmdlist"):
        result.rules.extend(encode_rule(rule) for rule in kernel.rule_results)
    if kernel.clock_locked is not None:
        result.clock.requested = result.clock.locked = kernel.clock_locked
    if kernel.nvtx:
        stack = [made("NvtxPushed", name=name) for name in kernel.nvtx]
        thread = made("NvtxThread", id=_THREAD, domains=[made("NvtxPushPop", id=0, stack=stack)])
        result.nvtx.CopyFrom(made("Nvtx", domains=[made("NvtxDomain", id=0, name="<default domain>")], threads=[thread]))
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
