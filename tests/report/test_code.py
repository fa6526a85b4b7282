"""The code that a report brings: modules and who refers to them, addresses, values by address."""

from __future__ import annotations

import io
import math
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Code, CodeFunction, ImportedFile, Report, ReportData, read_report, write_report
from ncu_roofline.formats.report import metrics as code_module
from ncu_roofline.formats.report.framing import message, open_raw, scan
from ncu_roofline.formats.wire import bytes_field as field
from ncu_roofline.plugin.annotate import annotate
from tests.factory import by_address
from tests.report.factory import block, encoded, file_of, result, saxpy, write

BASE = 0x7F31_0000_0100
CODE = Code(
    cubin=b"\x7fELF" + bytes(range(200)),
    files=(ImportedFile("/home/u/a.cu", "__global__ void saxpy() {}\n"), ImportedFile("empty.h", "")),
    functions=(CodeFunction("_Z5saxpyv", BASE, 7), CodeFunction("helper", BASE + 4096)),
)


def source(number: int | None, code: Code) -> bytes:
    """A source record."""
    record = message("SourceRecord")(cubin=code.cubin) if code.cubin else message("SourceRecord")()
    if number is not None:
        record.id = number
    for file in code.files:
        record.files.files.append(message("ImportedFile")(name=file.name.encode(), text=file.text.encode()).SerializeToString())
    for one in code.functions:
        entry = message("CodeFunction")(name=one.name.encode(), address=one.address, symbol=one.symbol)
        record.functions.functions.append(entry.SerializeToString())
    return bytes(record.SerializeToString())


def launch(number: int | None = 1) -> bytes:
    """A kernel of module ``number``."""
    return result([(0, 1)], **({} if number is None else {"source": message("Source")(reference=number)}))


def process(number: int) -> dict[str, bytes]:
    """What a block of that process has in its header."""
    return {"process": message("Process")(id=number, name=b"app").SerializeToString()}


def codes(folder: Path, *blocks: bytes) -> list[Code | None]:
    """The code of each kernel of a report of these blocks."""
    with read_report(write(folder, file_of(block(strings=["a"]), *blocks))) as report:
        return [kernel.code for kernel in report.kernels]


# Modules.
def test_code_is_read_back_and_equal_code_is_written_once(tmp_path: Path) -> None:
    other = Code(functions=(CodeFunction("f", 16),))
    kernels = [saxpy(0, code=CODE), saxpy(1, code=replace(CODE)), saxpy(2), saxpy(3, code=other), saxpy(4, code=CODE)]
    path = write(tmp_path, encoded(kernels))
    with read_report(path) as report:
        assert [kernel.code for kernel in report.kernels] == [CODE, CODE, None, other, CODE]
        assert report.kernels[0].code is report.kernels[1].code
    assert sum(found.counts[0] for found in scan(open_raw(path))) == 2


def test_code_that_comes_behind_its_kernel(tmp_path: Path) -> None:
    late = block([source(9, CODE)], sources=1)
    assert codes(tmp_path, block([launch(9)], kernels=1), late) == [CODE]


def test_records_of_one_module_complete_each_other(tmp_path: Path) -> None:
    first = Code(files=CODE.files[:1], functions=CODE.functions[1:])
    second = Code(b"cubin", (replace(CODE.files[0], text="another"), CODE.files[1]), CODE.functions)
    third = Code(b"another cubin")
    records = [source(1, one) for one in (first, second, third)]
    assert codes(tmp_path, block([*records[:2], launch()], sources=2, kernels=1), block(records[2:], sources=1)) == [
        Code(b"cubin", CODE.files, CODE.functions[::-1])
    ]


def test_numbers_count_within_a_process(tmp_path: Path) -> None:
    one, two, nobody = (Code(name) for name in (b"one", b"two", b"nobody's"))
    blocks = [block([source(1, code), launch(1)], sources=1, kernels=1, **process(p)) for p, code in ((5, one), (6, two))]
    other = block([launch(1)], kernels=1, **process(7))
    assert codes(tmp_path, *blocks, other) == [one, two, None]
    assert codes(tmp_path, *blocks, other, block([source(1, nobody)], sources=1)) == [one, two, nobody]


def test_kernels_without_code(tmp_path: Path) -> None:
    records = [source(None, CODE), source(2, CODE), b"", launch(None), launch(1)]
    whole = result([(0, 1)], "RangeResult")
    assert codes(tmp_path, block([*records, whole], sources=3, kernels=2, ranges=1)) == [None, None, None]


def test_records_that_are_written_otherwise(tmp_path: Path) -> None:
    rest = field(4, b"cubin")
    for record in (rest + b"\x08\x01", b"\x08\x81\x80\0" + rest, b"\x08\x02" + rest + b"\x08\x01"):
        assert codes(tmp_path, block([record, launch()], sources=1, kernels=1)) == [Code(b"cubin")], record


def test_text_that_is_not_utf8_and_files_that_were_not_found(tmp_path: Path) -> None:
    files = field(1, field(1, b"caf\xe9.cu") + field(2, b"// \xff")) + field(1, field(1, b"missing.h"))
    functions = field(1, field(1, b"\xff") + b"\x10\x20") + field(1, field(1, b"no address")) + field(1, b"\x10\x20")
    record = b"\x08\x01" + field(8, files) + field(9, functions)
    expected = Code(files=(ImportedFile("caf\ufffd.cu", "// \ufffd"),), functions=(CodeFunction("\ufffd", 32),))
    assert codes(tmp_path, block([record, launch()], sources=1, kernels=1)) == [expected]


@pytest.mark.parametrize(
    "record",
    [
        b"\x08" + b"\xff" * 11,
        b"\x08\x01\x22\xff\xff\xff\xff\x0fcubin",
        b"\x08\x01\x22\x05cub",
        b"\x08\x01" + field(8, b"\x0a\x7f"),
        b"\x08\x01" + field(9, field(1, b"\x0a\x7f")),
        b"\x08\x01" + field(9, b"\x0a\0" * 250_001),
        b"\x08\x01" + field(8, b"\x0a\0" * 250_001),
    ],
)
def test_damage_is_told(tmp_path: Path, record: bytes) -> None:
    with (
        read_report(write(tmp_path, file_of(block([record, launch()], ["a"], sources=1, kernels=1)))) as report,
        pytest.raises(RooflineError, match=r"damaged at byte \d+.*Copy the file again"),
    ):
        report.kernels[0].code  # noqa: B018


def test_only_the_code_that_is_asked_for_is_read(tmp_path: Path) -> None:
    path, size = tmp_path / "x.ncu-rep", 8 << 20
    write_report(path, ReportData(saxpy(i, code=Code(bytes([i]) * (size if i else 1))) for i in range(4)))
    tracemalloc.start()
    with read_report(path) as report:
        small, peak_of_small = report.kernels[0].code, tracemalloc.get_traced_memory()[1]
        large, peak_of_large = report.kernels[1].code, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert small == Code(b"\0")
    assert large == Code(b"\1" * size)
    assert peak_of_small < size / 2 < size < peak_of_large


def test_annotated_copies_keep_the_code(tmp_path: Path) -> None:
    path, copy = write(tmp_path, encoded([saxpy(0, code=CODE), saxpy(1, code=CODE)])), tmp_path / "copy.ncu-rep"
    annotate(str(path), lambda chunks: copy.write_bytes(b"".join(chunks)), (), [])
    assert copy.read_bytes() != path.read_bytes()
    assert [records_of(name) for name in (path, copy)] == [[raw] for raw in records_of(path)] * 2
    with read_report(copy) as report:
        assert [kernel.code for kernel in report.kernels] == [CODE, CODE]


def records_of(path: Path) -> list[bytes]:
    raw = open_raw(path)
    found = [raw.data[at : at + size] for one in scan(raw) for at, size in one.records[: one.counts[0]]]
    raw.close()
    return found


# Addresses.
def base_of(folder: Path, pcs: Sequence[Any] | None, code: Code | None = CODE, scalar: Any = 1) -> int | None:
    metrics = {} if pcs is None else {"launch__function_pcs": scalar}
    instances = {} if pcs is None else {"launch__function_pcs": list(enumerate(pcs))}
    kernel = saxpy(mangled_name="_Z5saxpyv", metrics=metrics, instances=instances, code=code)
    with read_report(write(folder, encoded([kernel]))) as report:
        return report.kernels[0].base_address()


@pytest.mark.parametrize("code", [None, CODE, Code(), Code(functions=CODE.functions[1:])])
def test_a_kernel_that_calls_nothing_has_one_address(tmp_path: Path, code: Code | None) -> None:
    assert base_of(tmp_path, [BASE], code) == BASE
    assert base_of(tmp_path, [float(BASE)], code, scalar=float(BASE)) == BASE


def test_the_address_is_found_by_name_among_those_of_called_functions(tmp_path: Path) -> None:
    assert base_of(tmp_path, [BASE - 512, BASE, BASE + 4096], scalar=float(3 * BASE)) == BASE
    assert base_of(tmp_path, None) == BASE
    assert base_of(tmp_path, []) == BASE
    loaded_twice = Code(functions=(CodeFunction("_Z5saxpyv", 512), CodeFunction("_Z5saxpyv", BASE)))
    assert base_of(tmp_path, [BASE, BASE + 4096], loaded_twice) == BASE


@pytest.mark.parametrize("code", [None, Code(), Code(functions=CODE.functions[1:])])
def test_an_unknown_address(tmp_path: Path, code: Code | None) -> None:
    for pcs in ([BASE, BASE + 4096], [], None, ["text"], [0], [0.5], [-1.0], [math.nan], [math.inf], [1e300]):
        assert base_of(tmp_path, pcs, code) is None, pcs
    assert base_of(tmp_path, None, Code(functions=(CodeFunction("_Z5saxpyv", 512), CodeFunction("_Z5saxpyv", BASE)))) is None


# Values by address.
def of_instances(folder: Path, *instances: dict[str, dict[str, Any]]) -> tuple[list[int], list[float]]:
    """What `by_address` makes of instances whose ids and values have these fields."""
    record = message("KernelResult")()
    metric = record.metrics.add(name_id=0)
    for one in instances:
        instance = metric.instances.add()
        for name, fields in one.items():
            for key, value in fields.items():
                setattr(getattr(instance, name), key, value)
    with read_report(write(folder, file_of(block([record.SerializeToString()], ["a"], kernels=1)))) as report:
        addresses, values = report.kernels[0].metrics.by_address("a")
    assert (addresses.typecode, values.typecode) == ("Q", "d")
    return addresses.tolist(), values.tolist()


@pytest.mark.parametrize("value", [{"uint64": 2**53}, {"uint32": 7}, {"double": 0.1}, {"float": 0.5}])
@pytest.mark.parametrize("address", [{"uint64": 2**64 - 1}, {"uint32": 2**32 - 1}])
def test_values_of_one_type(tmp_path: Path, address: dict[str, int], value: dict[str, float]) -> None:
    one, again = {"correlation": address, "value": value}, {"correlation": {next(iter(address)): 16}, "value": value}
    expected = next(iter(value.values()))
    assert of_instances(tmp_path, one, again) == ([*address.values(), 16], [expected] * 2)


def test_values_of_several_types_and_what_is_no_number(tmp_path: Path) -> None:
    instances: list[dict[str, dict[str, Any]]] = [
        {"correlation": {"uint64": 32}, "value": {"double": 2.5}},
        {"correlation": {"uint32": 16}, "value": {"uint64": 3}},
        {"correlation": {"uint64": 48}, "value": {"text": b"4"}},
        {"correlation": {"uint64": 64}, "value": {}},
        {"correlation": {"text": b"FADD"}, "value": {"double": 5}},
        {"correlation": {"double": 80.0}, "value": {"double": 6}},
        {"correlation": {}, "value": {"double": 7}},
        {"correlation": {"uint64": 32}, "value": {"float": 8}},
    ]
    assert of_instances(tmp_path, *instances) == ([32, 16, 32], [2.5, 3.0, 8.0])
    for index in range(2, 7):
        assert of_instances(tmp_path, *instances[index : index + 1] * 3) == ([], [])
        assert of_instances(tmp_path, instances[0], instances[index], instances[0]) == ([32, 32], [2.5, 2.5])


def test_no_instances_and_no_such_metric(tmp_path: Path) -> None:
    with read_report(write(tmp_path, encoded([saxpy(instances=by_address(BASE, none=(), some=(1, 2)))]))) as report:
        metrics = report.kernels[0].metrics
        for name in ("none", "dram__bytes.sum"):
            assert [list(column) for column in metrics.by_address(name)] == [[], []]
        assert [list(column) for column in metrics.by_address("some")] == [[BASE, BASE + 16], [1.0, 2.0]]
        with pytest.raises(KeyError):
            metrics.by_address("absent")


def test_the_last_metric_of_a_name_counts(tmp_path: Path) -> None:
    record = message("KernelResult")()
    for value in (0, 5):
        instance = record.metrics.add(name_id=0).instances.add()
        instance.correlation.uint64, instance.value.uint64 = 16, value
    with read_report(write(tmp_path, file_of(block([record.SerializeToString()], ["a"], kernels=1)))) as report:
        assert [list(column) for column in report.kernels[0].metrics.by_address("a")] == [[16], [5.0]]


# Real reports.
def reports(paths: dict[str, Path]) -> list[Report]:
    return [read_report(path) for path in paths.values()]


def symbols(cubin: bytes) -> dict[int | None, str]:
    """The names of the symbol table of an ELF file by their index."""
    elf = pytest.importorskip("elftools.elf.elffile").ELFFile(io.BytesIO(cubin))
    table = elf.get_section_by_name(".symtab")
    return {index: symbol.name for index, symbol in enumerate(table.iter_symbols())}


@pytest.mark.reports
def test_real_reports_have_code_where_they_have_counts_by_address(real_reports: dict[str, Path]) -> None:
    counted = 0
    for report in reports(real_reports):
        with report:
            for kernel in report.kernels:
                metrics = kernel.metrics
                if "inst_executed" not in metrics.names() or not metrics.instances("inst_executed"):
                    continue
                counted += 1
                code, base, addresses = kernel.code, kernel.base_address(), metrics.by_address("inst_executed")[0]
                assert code is not None
                assert code.cubin.startswith(b"\x7fELF"), report.path
                assert base in addresses, report.path
                functions = {one.symbol: one.name for one in code.functions}
                assert functions.items() <= symbols(code.cubin).items(), report.path
                called = len(metrics.instances("launch__function_pcs")) - 1 if "launch__function_pcs" in metrics.names() else 0
                assert called or min(addresses) == base
    assert counted > 30


@pytest.mark.exhaustive
@pytest.mark.reports
def test_values_by_address_of_real_reports_are_their_instances(real_reports: dict[str, Path]) -> None:
    seen = 0
    for report in reports(real_reports):
        with report:
            for metrics in (kernel.metrics for kernel in report.kernels):
                for name in metrics.names():
                    expected = [(a, v) for a, v in metrics.instances(name) if isinstance(a, int) and not isinstance(v, str)]
                    assert list(zip(*metrics.by_address(name), strict=True)) == expected, f"{report.path} {name}"
                    seen += len(expected)
    assert seen > 100_000


def test_sources_are_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer is counted, and never read."""
    monkeypatch.setattr(code_module, "IMPORTED_BYTES", 3_000_000)
    files = tuple(ImportedFile(f"{number}.cu", "x" * 1_000_000) for number in range(20))
    path = write(
        tmp_path, file_of(block(strings=["a"]), block([source(1, replace(CODE, files=files)), launch()], sources=1, kernels=1))
    )
    with read_report(path) as report:
        tracemalloc.start()
        found = report.kernels[0].code
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert found is not None
    assert (found.files, found.unread, found.functions) == (files[:2], 18, CODE.functions)
    assert peak < 12_000_000


@pytest.mark.parametrize("field_number", [8, 9])
def test_modules_of_countless_entries(tmp_path: Path, field_number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_module, "_MOST_ENTRIES", 100)
    record = source(1, Code(b"cubin")) + field(field_number, field(1, b"") * 101)
    with pytest.raises(RooflineError, match="a module of more than 100 entries"):
        codes(tmp_path, block([record, launch()], sources=1, kernels=1))


def test_no_more_of_a_cubin_is_read_than_tells_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_module, "CUBIN_BYTES", 10)
    (found,) = codes(tmp_path, block([source(1, CODE), launch()], sources=1, kernels=1))
    assert found is not None
    assert found.cubin == CODE.cubin[:11]
