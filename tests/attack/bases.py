"""The reports that are attacked: made ones that hold, between them, every field the reader knows, and real ones."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.report import (
    Code,
    CodeFunction,
    FocusMetric,
    ImportedFile,
    KernelData,
    ReportData,
    RuleMessage,
    RuleResult,
    Session,
    encode_report,
)
from ncu_roofline.formats.report.framing import message
from ncu_roofline.plugin.annotate import annotate
from tests.attack.document import Document
from tests.attack.fields import repeated
from tests.factory import A100, H100, NO_WORK, Metrics, by_address, complete, flops, kernel, opcodes, timing, traffic
from tests.instruction_factory import accesses, executed
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

_DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on"
_CHARTED = {  # what the chart of the sample section reads
    f"{_DFMA}.sum.peak_sustained": 3456.0,
    f"{_DFMA}.sum.per_cycle_elapsed": 350.0,
    "dram__bytes.sum.peak_sustained": 1280.0,
    "dram__bytes.sum.per_second": 2.5e11,
    "dram__cycles_elapsed.avg.per_second": 1.2e9,
}
SESSION = Session(
    host="box", os="Linux", ncu_version="2022.3.0.0", command_line="ncu --set full -o out ./app 'a b'", clock_control="none"
)
LARGEST_REAL = 3_000_000  # bytes


def encoded(*kernels: KernelData) -> bytes:
    """A whole report."""
    return b"".join(encode_report(ReportData(kernels, SESSION)))


def embedded_section(identifier: str = "Sample", expression: str = f"{_DFMA}.sum * 2 + 1") -> bytes:
    """A roofline chart of FP64 against DRAM, with a metric derived by an expression."""
    peak, work = per_second(f"{_DFMA}.sum.peak_sustained"), per_second(f"{_DFMA}.sum.per_cycle_elapsed")
    bandwidth = per_second("dram__bytes.sum.peak_sustained", clock="dram__cycles_elapsed.avg.per_second")
    roofs, points = (roof(peak, bandwidth),), (point(work, one("dram__bytes.sum.per_second")),)
    return section(chart(roofs=roofs, points=points), Identifier=identifier.encode(), definitions={"derived": expression})


def rule() -> RuleResult:
    """What a rule said."""
    said = RuleMessage(
        "warning", "said", "title", id=1, speedup=12.5, speedup_type="local", focus=(FocusMetric("dram", 1.5, info="bytes"),)
    )
    return RuleResult("Rule", "a rule", "Sample", (said,))


def counted(scale: int = 1, **more: float) -> Metrics:
    """A kernel of FP64 and FP32 on one A100 with all levels, instructions and units; ``scale`` tells kernels apart."""
    return {
        **complete(A100, seconds=1e-3 * scale),
        **flops("d", add=10**6 * scale, mul=10**6, fma=5 * 10**8),
        **flops("f", add=2 * 10**8, fma=3 * 10**8 * scale),
        **executed(5 * 10**7 * scale, 30.0),
        **accesses("new", global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 2 * 10**6), shared_st=(10**5, 10**5)),
        "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
        "launch__waves_per_multiprocessor": 3.5,
        **more,
    }


def _several() -> bytes:
    kernels = [
        kernel(counted(1), "void gpp<double>(double *)", nvtx=("solve", "step")),
        kernel(counted(2), "saxpy(int, float *)", nvtx=("solve",)),
        kernel(counted(3), "_ZN2ns6kernelEv"),
        kernel(counted(1), "void gpp<double>(double *)"),
    ]
    return encoded(*kernels)


def _two_chips() -> bytes:
    rows = (section_data := embedded_section(), b"")
    return encoded(
        kernel({**complete(), **_CHARTED}, nvtx=("outer", "inner"), rule_results=(rule(),), sections=(section_data,)),
        kernel({**H100, **timing(), **NO_WORK, **flops("f", fma=9), **traffic(1, 2, 3)}, "void f<g<h>, (int)2>(float *)"),
        kernel({**A100, **timing()}, "triton_poi_fused_add_mul_0", sections=rows, clock_locked=True),
    )


def _kinds() -> bytes:
    """Results of all kinds, and every field of the schema."""
    others = [
        KernelData("one", kind=kind, metrics=complete(), instances={"i": [(1, 2.5), ("A", 3)]})
        for kind in ("range", "graph", "cmdlist")
    ]
    document = Document.of(encoded(kernel(complete()), *others))
    for result in document.results:
        _fill(result)
        if result.DESCRIPTOR.name == "CmdlistResult":
            size = message("Dim3")(x=8, y=1, z=1)
            launches = message("CmdlistHead")(display_name=b"list", launches=[{"grid": size, "block": size}] * 2)
            result.MergeFromString(launches.SerializeToString())
        result.metrics.add(name_id=document.name_id("other__number.sum")).value.uint32 = 5
        result.metrics.add(name_id=document.name_id("other__number.avg")).value.float = 2.5
    header = document.parts[0].header
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
            for one_inner in inner if repeated(field) else [inner]:
                one_inner.SetInParent()
                _fill(one_inner)


def _opcodes() -> bytes:
    counts = opcodes(DFMA=10**6, FFMA=2 * 10**6, HMMA_16816_F32=10**5, LDG_E_64=10**5, IADD3=3 * 10**5)
    busy = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 9}
    metrics = {**H100, **timing(), **traffic(10**8, 10**6, 10**7), **busy}
    return encoded(kernel(metrics, "gemm", instances=counts), kernel(metrics, "gemm2", instances=counts))


def _code() -> bytes:
    base = 0x7F00_0000_0100
    counts = by_address(base, inst_executed=[64.0] * 9, thread_inst_executed_true=range(9), group__samples=(1.0, 0.0, 7.0))
    code = Code(
        cubin=b"\x7fELF\2\1\1" + bytes(range(256)),
        files=(ImportedFile("/home/user/k.cu", "__global__ void k() {\n}\n"), ImportedFile("k.h", "")),
        functions=(CodeFunction("_Z1kv", base, 7), CodeFunction("helper", base + 4096)),
    )
    both = [kernel(complete(), name, mangled_name="_Z1kv", instances=counts, code=code) for name in ("k()", "k2()")]
    return encoded(*both, kernel(complete(), "k3()", code=replace(code, cubin=b"")))


def _annotated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        source, target = Path(folder) / "a.ncu-rep", Path(folder) / "b.ncu-rep"
        source.write_bytes(_several())
        annotate(str(source), lambda chunks: target.write_bytes(b"".join(chunks)), (), [pack_folder("rules")])
        return target.read_bytes()


MADE = {
    "several": _several,
    "two chips": _two_chips,
    "kinds": _kinds,
    "opcodes": _opcodes,
    "code": _code,
    "annotated": _annotated,
}


@functools.cache
def made() -> Mapping[str, bytes]:
    """The made reports by name."""
    return {name: build() for name, build in MADE.items()}


def real() -> Mapping[str, bytes]:
    """The smaller ones of the real reports by file name; none where there are none."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("NCU_ROOFLINE_REPORTS", root.parent / "shared" / "data" / "reports"))
    found = [path for path in sorted(folder.glob("*.ncu-rep")) if path.stat().st_size <= LARGEST_REAL]
    return {path.name: path.read_bytes() for path in found}
