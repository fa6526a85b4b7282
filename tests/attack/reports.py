"""The reports that are attacked, and how they are taken apart: into messages, and these into fields as they are written."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report import (
    Code,
    CodeFunction,
    FocusMetric,
    ImportedFile,
    KernelData,
    RuleMessage,
    RuleResult,
    Session,
)
from ncu_roofline.formats.report.framing import KINDS, file_start, frame, message, pack_block
from ncu_roofline.formats.sectionfile.section import ROOT, messages
from ncu_roofline.formats.wire import BYTES, VARINT, read_varint, split
from ncu_roofline.plugin.annotate import annotate
from tests.factory import A100, H100, NO_WORK, Metrics, by_address, complete, flops, kernel, opcodes, timing, traffic
from tests.instruction_factory import accesses, executed
from tests.report.factory import blocks_of
from tests.report.factory import encoded as encoded_in
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))  # in the order of their records
MESSAGES = {kind.counter: kind.result_message for kind in KINDS}
RECORDS = {**MESSAGES, "sources": "SourceRecord"}
NUMBERS = ("double", "uint64", "float", "uint32")  # the fields of a value that are numbers
# Bytes in which the schema has a message, by the message and field that hold them; and more names of the same bytes.
_INSIDE = {
    ("BlockHeader", 3): "Session",
    ("BlockHeader", 6): "Process",
    ("FileTable", 1): "ImportedFile",
    ("FunctionTable", 1): "CodeFunction",
    ("KernelResult", 17): ROOT,
    ("RangeResult", 7): ROOT,
    ("GraphResult", 7): ROOT,
    ("CmdlistResult", 7): ROOT,
    ("KernelResult", 19): "RuleResult",
    ("CmdlistResult", 21): "RuleResult",
}
_MORE = {"CmdlistResult": "CmdlistHead"}


def varint(number: int, padding: int = 0) -> bytes:
    """``number`` as protobuf writes it, with so many bytes more than needed."""
    size = max(1, -(-number.bit_length() // 7)) + padding
    return bytes(number >> 7 * place & 127 | (place < size - 1) << 7 for place in range(size))


class Field(NamedTuple):
    """A field as it is written: ``owner`` and ``inner`` are descriptors of the message that it is in, and of that in it."""

    owner: Any
    number: int
    wire: int
    content: bytes
    inner: Any = None

    @property
    def about(self) -> Any:
        """Its descriptor, None where the schema has none."""
        found = self.owner.fields_by_number.get(self.number)
        if found is None and self.owner.name in _MORE:
            return message(_MORE[self.owner.name]).DESCRIPTOR.fields_by_number.get(self.number)
        return found

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.about.name if self.about is not None else self.number}"

    @property
    def text(self) -> bool:
        return self.about is not None and self.inner is None and self.about.type == self.about.TYPE_BYTES

    def encode(self, padding: int = 0) -> bytes:
        tag, length = varint(self.number << 3 | self.wire, padding), varint(len(self.content), padding)
        if self.wire == VARINT:
            return tag + varint(read_varint(self.content, 0)[0], padding)
        return tag + (length if self.wire == BYTES else b"") + self.content


def repeated(about: Any) -> bool:
    """Whether a field may be there several times; by the word that this protobuf has for it."""
    return bool(about.is_repeated) if hasattr(about, "is_repeated") else about.label == about.LABEL_REPEATED


Change = Callable[[Field], bytes]
Order = Callable[[int], int] | None


def edited(data: bytes, owner: Any, change: Change, order: Order = None) -> bytes:
    """A message with ``change`` made of each field, inner ones first; in an ``order`` of their numbers."""
    found = []
    for each in split(data):
        field = Field(owner, each.number, each.wire_type, data[each.content : each.end])
        inner, named = (field.about.message_type if field.about is not None else None), _INSIDE.get((owner.name, each.number))
        if named is not None:
            inner = (messages()[ROOT] if named == ROOT else message(named)).DESCRIPTOR
        if inner is not None:
            field = field._replace(content=edited(field.content, inner, change, order), inner=inner)
        found.append((each.number, change(field)))
    return b"".join(one for _, one in (sorted(found, key=lambda pair: order(pair[0])) if order else found))


class Document:
    """A report that can be changed at will: headers, and records as (counter of the header, message or bytes)."""

    def __init__(self, data: bytes) -> None:
        self.parts: list[tuple[Any, list[tuple[str, Any]]]] = []
        for header, records in blocks_of(data):
            kinds = [name for name in COUNTERS for _ in range(getattr(header, name))]
            made = (
                message(RECORDS[kind]).FromString(one) if kind in RECORDS else one
                for kind, one in zip(kinds, records, strict=True)
            )
            self.parts.append((header, list(zip(kinds, made, strict=True))))

    def encode(self) -> bytes:
        """The report, its headers counting what there is."""
        return file_start() + b"".join(pack_block(*self.counted(*part)) for part in self.parts)

    def counted(self, header: Any, records: list[tuple[str, Any]]) -> tuple[Any, list[bytes]]:
        for name in COUNTERS:
            if (count := sum(kind == name for kind, _ in records)) or header.HasField(name):
                setattr(header, name, count)
        ordered = sorted(records, key=lambda record: COUNTERS.index(record[0]))
        return header, [one if isinstance(one, bytes) else one.SerializeToString() for _, one in ordered]

    def edit(
        self, change: Callable[[Field], bytes], *, headers: bool = True, order: Callable[[int], int] | None = None
    ) -> bytes:
        """The report with ``change`` made of all fields of its messages."""
        blocks = []
        for header, records in self.parts:
            new = [(kind, one if isinstance(one, bytes) else edited(one.SerializeToString(), one.DESCRIPTOR, change, order))
                   for kind, one in records]  # fmt: skip
            counted, whole = self.counted(header, new)
            payload = b"".join(map(frame, whole))
            counted.payload_size = len(payload)
            head = counted.SerializeToString()
            # Its counters and size are the last fields, which count.
            kept = {name: getattr(counted, name) for name in (*COUNTERS, "payload_size") if counted.HasField(name)}
            sizes = type(counted)(**kept).SerializeToString()
            head = edited(head, header.DESCRIPTOR, change, order) + sizes if headers else head
            blocks.append(frame(head) + payload)
        return file_start() + b"".join(blocks)

    @property
    def results(self) -> list[Any]:
        """All results in the order in which they are numbered."""
        return [record for _, records in self.parts for kind in MESSAGES for found, record in records if found == kind]

    @property
    def names(self) -> list[str]:
        """The table of names."""
        return [name.decode("utf-8", "replace") for header, _ in self.parts for name in header.strings.strings]

    def metrics(self, result: Any, name: str) -> list[Any]:
        """The metrics of that name of a result; the last one counts."""
        names = self.names
        return [metric for metric in result.metrics if names[metric.name_id] == name]

    def numbers(self, result: Any) -> dict[str, float]:
        """The metrics of a result that are numbers, by name."""
        names, found = self.names, {}
        for metric in result.metrics:
            kind = next((name for name in NUMBERS if metric.value.HasField(name)), None)
            if kind is not None:
                found[names[metric.name_id]] = float(getattr(metric.value, kind))
        return found

    def put(self, result: Any, name: str, value: float | str | None) -> None:
        """Give a metric of a result this value."""
        for metric in self.metrics(result, name)[-1:]:
            metric.value.Clear()
            if isinstance(value, str):
                metric.value.text = value.encode("utf-8", "replace")
            elif value is not None:
                metric.value.double = value

    def remove(self, result: Any, name: str) -> None:
        """Take a metric of a result away."""
        for metric in self.metrics(result, name):
            result.metrics.remove(metric)


# The bases.
SESSION = Session(
    host="box", os="Linux", ncu_version="2022.3.0.0", command_line="ncu --set full -o o ./app 'a b'", clock_control="none"
)
_DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on"
_CHARTED = {  # what the chart of the sample section reads
    f"{_DFMA}.sum.peak_sustained": 3456.0,
    f"{_DFMA}.sum.per_cycle_elapsed": 350.0,
    "dram__bytes.sum.peak_sustained": 1280.0,
    "dram__bytes.sum.per_second": 2.5e11,
    "dram__cycles_elapsed.avg.per_second": 1.2e9,
}
FOCUS = (FocusMetric("dram", 1.5, info="bytes"), FocusMetric("a", severity="77"))
SAID = (
    RuleMessage("warning", "said", "title", 1, 12.5, "local", FOCUS),
    RuleMessage("99", "later", speedup=1.0, speedup_type="55"),
)
RULE = RuleResult("Rule", "a rule", "Sample", SAID)


def encoded(*kernels: KernelData) -> bytes:
    """A whole report."""
    return encoded_in(kernels, SESSION)


def embedded_section(identifier: str = "Sample", expression: str = f"{_DFMA}.sum * 2 + 1") -> bytes:
    """A roofline chart of FP64 against DRAM, with a metric derived by an expression."""
    peak, work = per_second(f"{_DFMA}.sum.peak_sustained"), per_second(f"{_DFMA}.sum.per_cycle_elapsed")
    bandwidth = per_second("dram__bytes.sum.peak_sustained", clock="dram__cycles_elapsed.avg.per_second")
    roofs, points = (roof(peak, bandwidth),), (point(work, one("dram__bytes.sum.per_second")),)
    return section(chart(roofs=roofs, points=points), Identifier=identifier.encode(), definitions={"derived": expression})


def counted(scale: int) -> Metrics:
    """A kernel of FP64 and FP32 on one A100 with all levels, instructions and units; ``scale`` tells kernels apart."""
    work = flops("d", add=10**6 * scale, mul=10**6, fma=5 * 10**8) | flops("f", add=2 * 10**8, fma=3 * 10**8 * scale)
    memory = {"global_ld": (10**6, 8 * 10**6), "shared_ld": (10**6, 2 * 10**6), "shared_st": (10**5, 10**5)}
    use = {"sm__warps_active.avg.pct_of_peak_sustained_active": 50.0, "launch__waves_per_multiprocessor": 3.5}
    return {**complete(A100, 1e-3 * scale), **work, **executed(5 * 10**7 * scale, 30.0), **accesses("new", **memory), **use}


def _several() -> bytes:
    return encoded(
        kernel(counted(1), "void gpp<double>(double *)", nvtx=("solve", "step")),
        kernel(counted(2), "saxpy(int, float *)", nvtx=("solve",)),
        kernel(counted(3), "_ZN2ns6kernelEv"),
        kernel(counted(1), "void gpp<double>(double *)"),
    )


def _two_chips() -> bytes:
    """With charts, rules, counts by opcode."""
    rows, counts = (embedded_section(), b""), opcodes(DFMA=10**6, FFMA=2 * 10**6, HMMA_16816_F32=10**5, LDG_E_64=10**5, IADD3=9)
    by_opcode = {**H100, **timing(), **traffic(10**8, 10**6, 10**7)}
    return encoded(
        kernel({**complete(), **_CHARTED}, nvtx=("outer", "inner"), rule_results=(RULE,), sections=rows[:1]),
        kernel({**H100, **timing(), **NO_WORK, **flops("f", fma=9), **traffic(1, 2, 3)}, "void f<g<h>, (int)2>(float *)"),
        kernel({**A100, **timing()}, "triton_poi_fused_add_mul_0", sections=rows, clock_locked=True),
        kernel(by_opcode, "gemm", instances=counts),
    )


def _kinds() -> bytes:
    """Results of all kinds, and every field of the schema."""
    counts = {"i": [(1, 2.5), ("A", 3)]}
    others = [KernelData("one", kind=kind, metrics=complete(), instances=counts) for kind in ("range", "graph", "cmdlist")]
    document = Document(encoded(kernel(complete()), *others))
    for result in document.results:
        _fill(result)
        if result.DESCRIPTOR.name == "CmdlistResult":
            size = message("Dim3")(x=8, y=1, z=1)
            launches = message("CmdlistHead")(display_name=b"list", launches=[{"grid": size, "block": size}] * 2)
            result.MergeFromString(launches.SerializeToString())
        result.metrics.add(name_id=len(document.names)).value.uint32 = 5
        result.metrics.add(name_id=len(document.names) + 1).value.float = 2.5
    header = document.parts[0][0]
    document.parts[-1][0].strings.strings.extend([b"other__number.sum", b"other__number.avg"])
    session = message("Session").FromString(header.session[0])
    _fill(session)
    header.session[0] = session.SerializeToString()
    return document.encode()


def _fill(target: Any) -> None:
    """Give every field that is not set a value: 1, or a text."""
    for field in target.DESCRIPTOR.fields:
        if field.message_type is None:
            if repeated(field):
                getattr(target, field.name).append(b"")
            elif not target.HasField(field.name):
                setattr(target, field.name, b"text" if field.type == field.TYPE_BYTES else 1)
        elif field.message_type.name not in ("Value", "MetricResult"):
            inner = getattr(target, field.name)
            if repeated(field) and not inner:
                inner.add()
            for each in inner if repeated(field) else [inner]:
                each.SetInParent()
                _fill(each)


def _code() -> bytes:
    base = 0x7F00_0000_0100
    counts = by_address(base, inst_executed=[64.0] * 9, thread_inst_executed_true=range(9), smsp__pcsamp_sample_count=[2.0] * 9)
    files = (ImportedFile("/home/user/k.cu", "__global__ void k() {\n}\n"), ImportedFile("k.h", ""))
    functions = (CodeFunction("_Z1kv", base, 7), CodeFunction("helper", base + 4096))
    code = Code(b"\x7fELF\2\1\1" + bytes(range(256)), files, functions)
    both = [kernel(complete(), name, mangled_name="_Z1kv", instances=counts, code=code) for name in ("k()", "k2()")]
    return encoded(*both, kernel(complete(), "k3()", code=replace(code, cubin=b"")))


def _annotated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        source, found = Path(folder) / "a.ncu-rep", list[bytes]()
        source.write_bytes(_several())
        annotate(str(source), found.extend, (), [pack_folder("rules")])
        return b"".join(found)


MADE: dict[str, Callable[[], bytes]] = {
    "several": _several, "two chips": _two_chips, "kinds": _kinds, "code": _code, "annotated": _annotated
}  # fmt: skip


@functools.cache
def made() -> Mapping[str, bytes]:
    """The made reports by name, which hold between them every field that the reader knows."""
    return {name: build() for name, build in MADE.items()}


def real(largest: int = 3_000_000) -> Mapping[str, bytes]:
    """The smaller ones of the real reports by file name; none where there are none."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("NCU_ROOFLINE_REPORTS", root.parent / "shared" / "data" / "reports"))
    found = [path for path in sorted(folder.glob("*.ncu-rep")) if path.stat().st_size <= largest]
    return {path.name: path.read_bytes() for path in found}
