"""What reports say: of the writer, of traps met in real files, each as the smallest file that has it, and of damaged ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import Code, CodeFunction, FocusMetric, ImportedFile, RuleMessage, RuleResult, metrics
from ncu_roofline.formats.report.framing import message
from ncu_roofline.formats.report.reader import pushed
from ncu_roofline.formats.wire import bytes_field as field
from tests.golden import assert_golden
from tests.report.damaged import DAMAGED
from tests.report.factory import DEVICE, block, encoded, file_of, result, saxpy, write
from tests.report.transcript import transcript

GOLDEN = Path(__file__).with_name("golden")
KINDS = ("kernel", "range", "cmdlist", "graph")
FOCUS = (FocusMetric("dram__bytes.sum", 1.5, "high", "why"), FocusMetric("a", severity="77"))
SAID = (RuleMessage("warning", "text", "title", 3, 12.5, "global", FOCUS), RuleMessage("ok", "fine"))
RULE = RuleResult("MyRule", "My rule", "MySection", (*SAID, RuleMessage("optimization", "do"), RuleMessage("99", "later")))
BASE = 0x7F31_0000_0100
CODE = Code(
    cubin=b"\x7fELF" + bytes(range(20)),
    files=(ImportedFile("/home/u/a.cu", "__global__ void saxpy() {}\n"), ImportedFile("empty.h", "")),
    functions=(CodeFunction("_Z5saxpyv", BASE, 7), CodeFunction("helper", BASE + 4096)),
)
CALLED = Code(functions=CODE.functions[1:])
TWICE = Code(functions=(CodeFunction("_Z5saxpyv", 512), CodeFunction("_Z5saxpyv", BASE)))


def source(number: int | None, code: Code = CODE) -> bytes:
    """A source record."""
    numbered = {} if number is None else {"id": number}
    record = message("SourceRecord")(**numbered, **({"cubin": code.cubin} if code.cubin else {}))
    for file in code.files:
        record.files.files.append(message("ImportedFile")(name=file.name.encode(), text=file.text.encode()).SerializeToString())
    for one in code.functions:
        entry = message("CodeFunction")(name=one.name.encode(), address=one.address, symbol=one.symbol)
        record.functions.functions.append(entry.SerializeToString())
    return bytes(record.SerializeToString())


def launch(number: int | None = 1) -> bytes:
    """A kernel of a module."""
    return result([(0, 1)], **({} if number is None else {"source": message("Source")(reference=number)}))


def of(process: int) -> dict[str, bytes]:
    """What a block of a process has in its header."""
    return {"process": message("Process")(id=process, name=b"app").SerializeToString()}


def module(*records: bytes) -> bytes:
    """A report of records of a module and a kernel of it."""
    return file_of(block([*records, launch()], ["a"], sources=len(records), kernels=1))


def one(message: Any, *strings: str, **counts: int) -> bytes:
    """A report of one result."""
    return file_of(block([bytes(message.SerializeToString())], strings, **(counts or {"kernels": 1})))


def values(**numbers: float) -> Any:
    """A kernel with a metric of each type of numbers."""
    record = message("KernelResult")()
    record.grid.x = record.grid.y = record.grid.z = 2**64 - 1
    for name_id, (name, value) in enumerate(numbers.items()):
        setattr(record.metrics.add(name_id=name_id).value, name, value)
    return record


def counted(*some: tuple[dict[str, Any], dict[str, Any]]) -> bytes:
    """A kernel with a metric of instances whose ids and values have these fields."""
    record = message("KernelResult")()
    metric = record.metrics.add(name_id=0)
    for correlation, value in some:
        metric.instances.add(correlation=correlation, value=value)
    return bytes(record.SerializeToString())


def instances(*kernels: bytes) -> bytes:
    """A report of these."""
    return file_of(block(kernels, ["a"], kernels=len(kernels)))


def based(pcs: list[Any] | None, code: Code | None = CODE, scalar: Any = 1) -> bytes:
    """A report with these addresses of the functions of a kernel."""
    metrics = {} if pcs is None else {"launch__function_pcs": scalar}
    counts = {} if pcs is None else {"launch__function_pcs": list(enumerate(pcs))}
    return encoded([saxpy(mangled_name="_Z5saxpyv", metrics=metrics, instances=counts, code=code)])


def twice_said() -> bytes:
    wrong, right, other = [
        message("Instance")(correlation={"text": name}, value={"double": number}).SerializeToString()
        for name, number in ((b"FADD", 9.0), (b"FADD", 1.0), (b"FMUL", 2.0))
    ]
    metric = b"\x08\x00" + field(3, wrong + right) + field(3, other)
    return file_of(block([field(13, metric)], ["counts"], kernels=1))


def ranges() -> bytes:
    state = message("Nvtx")()
    state.domains.add(id=5, name=b"domain").strings.add(id=77, value=b"registered")
    for thread, name in ((1, b"mine"), (2, b"theirs")):
        state.threads.add(id=thread).domains.add(id=0).stack.add(name=name)
    started = state.start_end.add(id=5).ranges.add(id=1)
    started.attributes.message.type, started.attributes.message.handle = 3, 77
    return file_of(block([result([], thread_id=1, nvtx=state)], kernels=1))


def sessions() -> bytes:
    parts = [message("Session")() for _ in range(3)]
    parts[0].versions.add(provider=b"CUDA Version", version=b"12.4")
    parts[1].versions.add(provider=b"Nsight Compute Target", version=b"2024.2.1.0 (build 1)")
    parts[2].command_line = b"ncu --replay-mode=range ./app"
    parts[2].devices.add(id=0, name=b"NVIDIA A40")
    return file_of(*(block(session=[part.SerializeToString()]) for part in parts), block([result([])], kernels=1))


def odd_rule() -> bytes:
    rule = message("RuleResult")(identifier=b"R", name=b"R")
    rule.body.items.add().message.type.append(101)
    unknown = b"\xfa\x3f\x03abc"  # field 1023
    record = result([(0, 1)], rules=[rule.SerializeToString() + unknown]) + unknown
    return file_of(block([record], strings=["a"], kernels=1))


def all_kinds() -> bytes:
    records = [b"source", b"graph data", result([(0, 1)])]
    records += [result([(0, n)], kind=kind) for n, kind in ((2, "RangeResult"), (3, "CmdlistResult"), (4, "GraphResult"))]
    counts = dict.fromkeys(("sources", "graphs", "kernels", "ranges", "cmdlists", "graph_results"), 1)
    return file_of(block(records, strings=["a"], **counts))


def command_list() -> bytes:
    head = message("CmdlistHead")(display_name=b"MyList")
    head.launches.add().grid.x = 5
    return one(head, cmdlists=1)


def several_devices() -> bytes:
    other = {**DEVICE, "device__attribute_device_index": 1, "device__attribute_display_name": "NVIDIA H100"}
    del other["device__attribute_compute_capability_major"]
    return encoded([saxpy(metrics=metrics) for metrics in (DEVICE, other, DEVICE, {})])


ODD = {"big": 2**64, "negative": -3, "largest": 2**64 - 1, "nan": math.nan, "infinite": -math.inf, "yes": True}
COUNTS = {"only__instances": [(1, 2.5), (None, 3)], "dram__bytes.sum": [("FADD", "x")], "none": []}
A, B = (block([result([(number, number + 1)])], strings=[name], kernels=1) for number, name in enumerate("ab"))
NEWER = b"\x6a\x07\x08\x02\x12\x03\xfa\x3f\x00"  # a metric whose value has a type that only field 1023 holds
OF_WINDOWS = {"process": message("Process")(id=1, name=b"C:\\app.exe\0", host=b"\xff\xfe").SerializeToString()}
MODULES = [block([source(1, Code(name)), launch(1)], sources=1, kernels=1, **of(p)) for p, name in ((5, b"one"), (6, b"two"))]
FIRST, SECOND = Code(files=CODE.files[:1], functions=CODE.functions[1:]), Code(b"cubin", CODE.files[::-1], CODE.functions)
NOT_UTF8 = (
    field(8, field(1, field(1, b"caf\xe9.cu") + field(2, b"// \xff")) + field(1, field(1, b"missing.h")))
    + field(9, field(1, field(1, b"\xff") + b"\x10\x20") + field(1, field(1, b"no address")) + field(1, b"\x10\x20"))
)  # fmt: skip
UINT, TEXT = {"uint64": 32}, {"text": b"FADD"}

# What is written.  Golden text beside this file.
WRITTEN: dict[str, bytes] = {
    "kernels": encoded([
        saxpy(0, instances=COUNTS, nvtx=("a", "b")),
        saxpy(1, sections=(b"\x0a\x01A", b"\x0a\x01B"), rule_results=(RULE,), clock_locked=True, code=CODE),
        saxpy(2, metrics=ODD, code=replace(CODE)),
        saxpy(3, metrics={}, code=CALLED),
    ]),
    "nothing": encoded([]),
    "several devices": several_devices(),
    **{kind: encoded([saxpy(kind=kind, nvtx=("r",), sections=(b"\x0a\x01A",), rule_results=(RULE,), clock_locked=False)])
       for kind in KINDS},
}  # fmt: skip
TRAPS: dict[str, bytes] = {
    "names that arrive in later blocks": file_of(
        block([result([(0, 1.5), (1, 2.5)])], strings=["a"], kernels=1), block(strings=["b"])
    ),
    "the last of repeated names counts, also where it has no value or the name is in the table twice": file_of(
        block([result([(0, 1), (1, 5), (0, 2)]), result([(0, 1), (2, 3)]), result([(2, 1), (0, None)])], list("aba"), kernels=3)
    ),
    "metrics in another order or number": file_of(
        block([result([(0, 1), (1, 2)]), result([(1, 3), (0, 4)]), result([(1, 5)])], list("ab"), kernels=3)
    ),
    "blocks of two files": file_of(A, B),
    "a module behind its kernel": file_of(block(strings=["a"]), block([launch(9)], kernels=1), block([source(9)], sources=1)),
    "modules and graphs before results of all kinds": all_kinds(),
    "a command list of one launch": command_list(),
    "a session in several blocks": sessions(),
    "unknown fields and types of rules": odd_rule(),
    "unknown and rare types of values": file_of(
        block([values(float=3, uint32=3).SerializeToString() + NEWER], ["float", "uint32", "newer"], kernels=1)
    ),
    "enormous numbers": one(values(uint64=2**64 - 1, double=1e308), "a", "b"),
    "a name out of the table": file_of(block([result([(0, 1), (7, 1)])], strings=["a"], kernels=1)),
    "a metric without a name": file_of(block([result([(0, 1)]) + b"\x6a\x00"], strings=["a"], kernels=1)),
    "a name without end": one(message("KernelHead")(demangled=b"a" * 1_000_001)),
    "damage inside a result": file_of(block([b"\x6a\x7f"], ["a"], kernels=1)),
    "an empty record": file_of(block([b"", message("KernelHead")(stream=7).SerializeToString()], kernels=2)),
    "an instance that says name and number twice": twice_said(),
    "ranges in parts": file_of(
        block([b"".join(result([], thread_id=1, nvtx=one) for one in (pushed("ab", 1), message("Nvtx")(domains=[{"id": 5}])))],
              kernels=1)
    ),
    "ranges of other threads, and started ones": ranges(),
    "text that ends with NUL or is not UTF-8": file_of(block([result([], function=b"k")], kernels=1, **OF_WINDOWS)),
    # Modules.
    "records of one module complete each other": module(source(1, FIRST), source(1, SECOND), source(1, Code(b"another"))),
    "numbers count within a process": file_of(block(strings=["a"]), *MODULES, block([launch(1)], kernels=1, **of(7))),
    "a module of no process": file_of(*MODULES, block([launch()], ["a"], kernels=1, **of(7)), block([source(1)], sources=1)),
    "kernels without code": file_of(
        block([source(None), source(2), b"", launch(None), launch(1), result([(0, 1)], "RangeResult")], ["a"],
              sources=3, kernels=2, ranges=1)
    ),
    "a number behind the rest": module(field(4, b"cubin") + b"\x08\x01"),
    "a number in more bytes": module(b"\x08\x81\x80\0" + field(4, b"cubin")),
    "a number said twice": module(b"\x08\x02" + field(4, b"cubin") + b"\x08\x01"),
    "a module that is not UTF-8, and files that were not found": module(b"\x08\x01" + NOT_UTF8),
    "a number without end": module(b"\x08" + b"\xff" * 11),
    "a cubin longer than its record": module(b"\x08\x01\x22\xff\xff\xff\xff\x0fcubin"),
    "a cubin cut off": module(b"\x08\x01\x22\x05cub"),
    "damaged files": module(b"\x08\x01" + field(8, b"\x0a\x7f")),
    "a damaged function": module(b"\x08\x01" + field(9, field(1, b"\x0a\x7f"))),
    "a group": module(b"\x08\x01\x1b"),
    "too many functions": module(b"\x08\x01" + field(9, b"\x0a\0" * 101)),
    "too many files": module(b"\x08\x01" + field(8, b"\x0a\0" * 101)),
    "as many fields as there may be": module(b"\x08\x01" * 100),
    "a field too many": module(b"\x08\x01" * 101),
    # Where a kernel begins: the one address that is listed, else the one listed by its name.
    "one address": based([BASE]),
    "one address and no code": based([BASE], None),
    "one address and code of others": based([BASE], CALLED),
    "an address as a double": based([float(BASE)], scalar=float(BASE)),
    "addresses of called functions": based([BASE - 512, BASE, BASE + 4096], scalar=float(3 * BASE)),
    "no list of addresses": based(None),
    "an empty list of addresses": based([]),
    "an address of two": based([BASE, BASE + 4096], TWICE),
    "two addresses by name": based(None, TWICE),
    "two addresses and no code": based([BASE, BASE + 4096], None),
    "two addresses of others": based([BASE, BASE + 4096], CALLED),
    **{f"the address {address}": based([address], None)
       for address in ("text", 0, 0.5, -1.0, math.nan, math.inf, 2.0**64, 1)},
    # Values by address.
    "values of one type": instances(
        *(counted(({address: 16}, {value: 3}), ({address: 2**32 - 1}, {value: 7}))
          for address in ("uint64", "uint32") for value in ("uint64", "uint32", "double", "float")),
        counted(({"uint64": 2**64 - 1}, {"uint64": 2**53})),
        counted((UINT, {"double": 0.1})),
    ),
    "values of several types": instances(
        counted((UINT, {"double": 2.5}), ({"uint32": 16}, {"uint64": 3}), (UINT, {"float": 8}))
    ),
    "no numbers by address": instances(*(
        counted(*some, odd, *some) for some in ([], [(UINT, {"double": 2.5})])
        for odd in ((UINT, TEXT), (UINT, {}), (TEXT, {"double": 5}), ({"double": 8.0}, {"double": 6}), ({}, {"double": 7}))
    )),
    "the last metric of a name with its instances": instances(counted((UINT, {"uint64": 0})) + counted((UINT, {"uint64": 5}))),
}  # fmt: skip


def broken(change: Callable[[bytes], bytes]) -> bytes:
    return change(encoded([saxpy(0, code=CODE), saxpy(1), saxpy(2)]))


@pytest.mark.parametrize(
    ("name", "cases"),
    [("written", WRITTEN), ("traps", TRAPS), ("damaged", {name: broken(change) for name, change in DAMAGED.items()})],
)
def test_what_a_report_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cases: dict[str, bytes]) -> None:
    monkeypatch.setattr(metrics, "_MOST_ENTRIES", 100)
    said = [f"=== {case}\n{transcript(write(tmp_path, data))}\n" for case, data in cases.items()]
    assert_golden(GOLDEN / f"{name}.txt", "".join(said))
