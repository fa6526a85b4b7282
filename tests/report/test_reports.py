"""Reports as Python sees them: kernels as a sequence, columns, memory; and what must hold of any bytes, and of real reports."""

from __future__ import annotations

import os
import random
import re
import sys
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Code, ImportedFile, KernelData, ReportData, metrics, read_report, write_report
from ncu_roofline.formats.report.framing import file_start, frame, message, open_raw, pack_block, scan
from tests.report.damaged import recounted
from tests.report.factory import block, encoded, file_of, result, saxpy, write
from tests.report.frames import MAGIC, packed
from tests.report.test_reading import CODE
from tests.report.transcript import transcript

KINDS = ("kernel", "kernel", "range", "graph", "cmdlist")
COUNTS = {"i": [(1, 2), ("A", 3.5)], "launch__function_pcs": [(0, 512)], "inst_executed": [(512, 7), (528, 8)]}
WRITTEN = encoded([saxpy(i, kind=kind, nvtx=("a",), instances=COUNTS, code=CODE) for i, kind in enumerate(KINDS)])


def test_columns_are_the_values_of_kernels_whatever_their_types_and_layouts(tmp_path: Path) -> None:
    def values(i: int) -> dict[str, float | int | str]:
        if i % 7 == 0:
            return {"z": i, f"own{i}": 1}  # more layouts than are kept
        return {"a": i if i % 3 else float(i), "b": str(i), "c": i} if i % 2 else {"c": -1.5 * i, "a": i}

    kernels = [KernelData("k", metrics=values(i)) for i in range(600)]
    with read_report(write(tmp_path, encoded(kernels))) as report:
        for _ in range(2):
            columns = report.columns(report.metric_names)
            for i, kernel in enumerate(kernels):
                row = {name: column[i] for name, column in columns.items() if column[i] is not None}
                assert row == dict(report.kernels[i].metrics) == kernel.metrics
                assert [type(row[name]) for name in kernel.metrics] == list(map(type, kernel.metrics.values()))
        assert report.columns([]) == {}
        assert report.columns(["missing"]) == {"missing": [None] * 600}


def test_kernels_are_a_sequence_until_the_report_is_closed(tmp_path: Path) -> None:
    name = "void k<" + "cutlass::Shape<1, 2>, " * 9_000 + "int>(int *)"
    kernels = [saxpy(0, instances={"only": [(1, 2)]}), saxpy(1, name=name), saxpy(2, metrics={"gpu__time_duration.sum": 2e6})]
    with read_report(write(tmp_path, encoded(kernels))) as report:
        assert [one.index for one in report.kernels] == [0, 1, 2]
        assert [one.index for one in report.kernels[::-2]] == [2, 0]
        assert [one.index for one in report.kernels[1:][:1]] == [1]
        assert (report.kernels[-1].index, report.kernels[1].name) == (2, name)
        with pytest.raises(IndexError):
            report.kernels[3]
        first, found = report.kernels[0], report.kernels[0].metrics
        assert (len(found), len(found.names()), found.get("only"), found.instances("only")) == (9, 10, None, [(1, 2)])
        assert found.sorted_names() == tuple(sorted(found.names()))
        for ask in (found.__getitem__, found.instances, found.by_address, found.instance_count):
            with pytest.raises(KeyError):
                ask("missing" if ask != found.__getitem__ else "only")
        assert repr(report.kernels[2]) == "<Kernel 2: saxpy(int, float *), grid 128x2x1, block 256x1x1, 2 ms, 1 metrics>"
        assert "3 kernels" in repr(report)
        again = first.code
    assert again is None
    report.close()
    with pytest.raises(ValueError, match=f"{re.escape(str(report.path))} is closed"):
        dict(report.kernels[0].metrics)
    assert repr(report.kernels[0]) == "<Kernel 0: can't be read>"


def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("x.ncu-rep", "run.ncu-repz"):
        write(tmp_path, encoded([]), name)
    refused = {
        tmp_path / "x": r"no such file\. Check the path; did you mean .*x\.ncu-rep\?",
        tmp_path / "run": r"no such file\. Check the path; did you mean .*run\.ncu-repz\?",
        f"{tmp_path}/y": r"no such file\. Check the path\.",
        "a\0b": "null",
        **({} if sys.platform == "win32" else {tmp_path: "it is a folder"}),
        write(tmp_path, bytes(range(100)), "x.nsys-rep"): "Nsight Systems",
    }
    for path, reason in refused.items():
        with pytest.raises(RooflineError, match=reason):
            read_report(path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ncu_roofline.base.files.open", refuse, raising=False)
    with pytest.raises(RooflineError, match="permission denied"):
        read_report(tmp_path / "x.ncu-rep")


# Memory and time.
def test_only_the_code_that_is_asked_for_is_read_and_of_many_sources_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, size = tmp_path / "x.ncu-rep", 8 << 20
    write_report(path, ReportData(saxpy(i, code=Code(bytes([i]) * (size if i else 1))) for i in (0, 1, 2, 3, 1)))
    assert [found.counts[0] for found in scan(open_raw(path))].count(1) == 4  # equal code is written once
    tracemalloc.start()
    with read_report(path) as report:
        assert report.kernels[0].code == Code(b"\0")
        assert tracemalloc.get_traced_memory()[1] < size / 2
        code = report.kernels[1].code
        assert code is report.kernels[4].code
        assert code == Code(b"\1" * size)
    monkeypatch.setattr(metrics, "IMPORTED_BYTES", 3_000_000)
    monkeypatch.setattr(metrics, "CUBIN_BYTES", 10)
    files = tuple(ImportedFile(f"{number}.cu", "x" * 1_000_000) for number in range(20))
    write(tmp_path, encoded([saxpy(code=Code(CODE.cubin, files, CODE.functions))]))
    del code
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with read_report(path) as report:
        assert report.kernels[0].code == Code(CODE.cubin[:11], files[:2], CODE.functions, 18)
    assert tracemalloc.get_traced_memory()[1] - before < 12_000_000
    tracemalloc.stop()


# Any bytes, any change: everything is read, or refused with a `RooflineError`.
@pytest.mark.parametrize("pack", [bytes, packed], ids=["plain", "compressed"])
def test_changed_and_cut_reports(tmp_path: Path, pack: type[bytes]) -> None:
    data, rng = pack(WRITTEN), random.Random(1)
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 4))):
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        transcript(write(tmp_path, bytes(changed)))
    starts = [found.start for found in scan(open_raw(write(tmp_path, WRITTEN)))]  # cut there, a report is whole
    for end in range(len(MAGIC) if pack is packed else 0, len(data), 3):
        if pack is packed or end not in starts[1:]:
            with pytest.raises(RooflineError, match="its zstd frame goes on" if pack is packed else "Cannot read"):
                read_report(write(tmp_path, data[:end]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples."""
    return tmp_path_factory.mktemp("examples")


RECORDS, STRINGS = st.lists(st.binary(max_size=60), max_size=4), st.lists(st.text(max_size=5), max_size=4)
COUNTED = {name: st.integers(0, 2) for name in ("sources", "kernels", "ranges", "cmdlists", "graph_results")}
HEADED = {"process": st.binary(max_size=20), "session": st.lists(st.binary(max_size=40), max_size=2)}
BLOCKS = st.one_of(
    st.binary(max_size=200), st.builds(frame, st.binary(max_size=100)), st.builds(block, RECORDS, STRINGS, **COUNTED, **HEADED)
)
OF_KINDS = st.sampled_from(("kernels", "ranges", "cmdlists", "graph_results")).flatmap(
    lambda kind: st.builds(lambda data: block([data], ["a", "b"], **{kind: 1}), st.binary(max_size=300))
)
MODULES = st.builds(
    lambda data: block([data, result([(0, 1)], source=message("Source")(reference=1))], ["a"], sources=1, kernels=1),
    st.builds(bytes.__add__, st.sampled_from((b"", b"\x08\x01")), st.binary(max_size=300)),
)


@given(st.one_of(st.lists(BLOCKS, max_size=4), st.lists(OF_KINDS, min_size=1, max_size=1), st.tuples(MODULES)))
@example([block([b"\x6a\x02\x08\x05", b"\x6a\x02\x10\x05"], ["a"], kernels=2)])
def test_arbitrary_bytes(folder: Path, blocks: list[bytes]) -> None:
    transcript(write(folder, file_of(*blocks)))


# Blocks taken apart and packed again are the same bytes.
def repacked(path: Path) -> bytes:
    raw = open_raw(path)
    blocks = [pack_block(one.header, [raw[at : at + size] for at, size in one.records]) for one in scan(raw)]
    raw.close()
    return file_start() + b"".join(blocks)


def test_packed_again(tmp_path: Path) -> None:
    header = message("BlockHeader").FromString(b"\xfa\x3f\x03abc" + message("BlockHeader")(kernels=1).SerializeToString())
    header.strings.strings.append(b"a")
    later = file_start() + pack_block(header, [result([(0, 1)])])  # with a field of a later release
    for data in (WRITTEN, later):
        assert repacked(write(tmp_path, data)) == data
    assert "columns: {'a': [1]}" in transcript(tmp_path / "x.ncu-rep")


@pytest.mark.reports
def test_real_reports(real_reports: dict[str, Path]) -> None:
    for path in real_reports.values():
        assert repacked(path) == path.read_bytes(), path.name


@pytest.mark.exhaustive
@pytest.mark.reports
def test_damaged_real_reports(tmp_path: Path, real_reports: dict[str, Path]) -> None:
    rng, by_size = random.Random(2), sorted(real_reports.values(), key=os.path.getsize)
    for path in by_size[:7:3]:
        said = transcript(write(tmp_path, path.read_bytes(), "same.ncu-rep"))
        assert transcript(write(tmp_path, packed(path.read_bytes()), "same.ncu-rep")) == said
    for path in by_size:
        data, counts = path.read_bytes(), [found.counts for found in scan(open_raw(path))]
        for sources, which in ((1, 2), (-1, 0)):
            place = next(index for index, count in enumerate(counts) if count[which])
            damaged = recounted(place, sources=sources, kernels=-sources)(data)
            assert "the header of its block counts" in transcript(write(tmp_path, damaged))
    for path in by_size[:8:2]:
        data = path.read_bytes()
        starts = {found.start for found in scan(open_raw(path))}
        for _ in range(10):
            changed = bytearray(data)
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            transcript(write(tmp_path, bytes(changed)))
        for end in islice((rng.randrange(len(data)) for _ in range(100)), 50):
            assert end in starts or transcript(write(tmp_path, data[:end])).startswith("refused: ")


# Writing.
def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write(tmp_path, b"precious")
    with pytest.raises(RooflineError, match=r"Cannot write .*x\.ncu-rep: the file exists\."):
        write_report(path, ReportData([]))

    def fails() -> object:
        yield saxpy()
        raise ZeroDivisionError

    for name in ("x.ncu-rep", "x.ncu-repz"):
        with pytest.raises(ZeroDivisionError):
            write_report(tmp_path / name, ReportData(fails()), overwrite=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'thread' is not a kind of result: kernel, range, cmdlist, graph"):
        write_report(tmp_path / "x", ReportData([saxpy(kind="thread")]))
    with pytest.raises(RooflineError, match="Cannot write"):
        write_report(tmp_path / "no" / "x.ncu-rep", ReportData([]))
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("x.ncu-rep", b"precious")]
    write_report(path, ReportData([saxpy()]), overwrite=True)
    with read_report(path) as report:
        assert len(report) == 1


def test_many_kernels_stream_through(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    tracemalloc.start()
    write_report(path, ReportData(saxpy(i, sections=(bytes(2000),)) for i in range(1000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 800_000 < 2_000_000 < path.stat().st_size
    with read_report(path) as report:
        assert report.columns(["launch__grid_size"])["launch__grid_size"] == [256 + i for i in range(1000)]
