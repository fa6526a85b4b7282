"""Whatever is not a whole report ends in one sentence that says why; damage never in anything but a `RooflineError`."""

from __future__ import annotations

import os
import random
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Code, CodeFunction, ImportedFile, read_report
from ncu_roofline.formats.report.framing import MAGIC, file_start, frame, message, open_raw, pack_block, scan
from tests.report.factory import block, encoded, file_of, result, saxpy, write

NOT_REPORTS = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello\nworld\n", "it is a text file"),
    "utf-8 text": ("grüße\n".encode() * 2000, "it is a text file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "html": (b"\n<!DOCTYPE html>\n<html></html>", "it is a web page"),
    "gzip": (b"\x1f\x8b\x08\x00data", "compressed with gzip. Unpack"),
    "zip": (b"PK\x03\x04data", "zip archive. Unpack"),
    "zstd": (b"\x28\xb5\x2f\xfd\0", "zstd frame goes on"),
    "sqlite": (b"SQLite format 3\0" + bytes(100), "SQLite database"),
    "csv": (b'"ID","Process ID","Process Name"\n', "CSV that 'ncu --csv' printed"),
    "elf": (b"\x7fELF\x02\x01", "an executable"),
    "binary": (bytes(range(256)), "does not begin with"),
    "one byte": (b"N", "cut off after 1 bytes"),
    "magic only": (MAGIC, "cut off after 4 bytes"),
    "file header only": (file_start(), "cut off after 10 bytes"),
    "newer": (MAGIC + frame(b"\x08\x08") + bytes(8), "format version 8 is newer.* Update ncu-roofline"),
    "older": (MAGIC + frame(b"\x08\x01") + bytes(8), "format version 1 is older"),
    "bad file header": (MAGIC + frame(b"\x08") + bytes(8), "damaged at byte 8"),
    "long file header": (MAGIC + b"\xff\xff\xff\xff" + bytes(8), "file header of 4294967295 bytes"),
}


@pytest.mark.parametrize("name", NOT_REPORTS)
def test_what_is_not_a_report(tmp_path: Path, name: str) -> None:
    data, expected = NOT_REPORTS[name]
    with pytest.raises(RooflineError, match=expected) as caught:
        read_report(write(tmp_path, data))
    assert str(caught.value).startswith(f"Cannot read {tmp_path / 'x.ncu-rep'}: ")
    assert "\n" not in str(caught.value)


def test_nsight_systems(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="Nsight Systems"):
        read_report(write(tmp_path, bytes(range(100)), "x.nsys-rep"))


def test_missing_folder_and_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, encoded([]))
    with pytest.raises(RooflineError, match=r"no such file. Did you mean .*x\.ncu-rep\?"):
        read_report(tmp_path / "x")
    with pytest.raises(RooflineError, match=r"no such file\. Check"):
        read_report(str(tmp_path / "y"))
    with pytest.raises(RooflineError, match="null"):
        read_report("a\0b")
    if sys.platform != "win32":
        with pytest.raises(RooflineError, match="it is a folder"):
            read_report(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ncu_roofline.base.files.open", refuse, raising=False)
    with pytest.raises(RooflineError, match="permission denied"):
        read_report(tmp_path / "x.ncu-rep")


def recounted(path: Path, place: int, sources: int) -> tuple[bytes, int]:
    """The report with so many more sources, and fewer kernels, in the header of one block; where that block's records begin."""
    raw = open_raw(path)
    parts, offset = [], 0
    for index, found in enumerate(scan(raw)):
        if index == place:
            found.header.sources += sources
            found.header.kernels -= sources
            start = len(file_start() + b"".join(parts))
        parts.append(pack_block(found.header, [raw.data[begin : begin + length] for begin, length in found.records]))
        if index == place:
            offset = start + len(parts[-1]) - found.header.payload_size
    raw.close()
    return file_start() + b"".join(parts), offset


CODES = (Code(b"\x7fELF" + bytes(2000)), Code(b"", (), (CodeFunction("f", 16),)), Code(b"", (ImportedFile("a.cu", "int a;"),)))


@pytest.mark.parametrize("code", CODES, ids=["cubin", "functions", "files"])
def test_a_header_that_takes_a_kernel_for_source_code_or_the_other_way_round(tmp_path: Path, code: Code) -> None:
    path = write(tmp_path, encoded([saxpy(0, code=code), saxpy(1)]))
    counts = [found.counts for found in scan(open_raw(path))]
    sorts = {"source code": (-1, 0), "the result of a kernel": (1, 2)}
    wrong = [(place, sort) for place, count in enumerate(counts) for sort, (_, which) in sorts.items() if count[which]]
    assert len(wrong) == 3
    for place, sort in wrong:
        data, offset = recounted(path, place, sorts[sort][0])
        (other,) = set(sorts) - {sort}
        with pytest.raises(RooflineError) as caught:
            read_report(write(tmp_path, data, "wrong.ncu-rep"))
        said = f"wrong.ncu-rep: it is damaged at byte {offset + 4}: the header of its block counts the record there as {other}"
        assert f"{said}, and its fields are of {sort}. " in str(caught.value)


def test_such_a_header_of_a_block_with_both(tmp_path: Path) -> None:
    raw = open_raw(write(tmp_path, encoded([saxpy(0, code=CODES[0]), saxpy(1)])))
    records = [raw.data[begin : begin + length] for found in scan(raw) for begin, length in found.records]
    with read_report(write(tmp_path, file_of(block(records, sources=1, kernels=2)), "right.ncu-rep")) as report:
        assert len(report) == 2
    for sources in (0, 2, 3):
        data = file_of(block(records, sources=sources, kernels=3 - sources))
        with pytest.raises(RooflineError, match="the header of its block counts"):
            read_report(write(tmp_path, data, "wrong.ncu-rep"))


@pytest.mark.reports
def test_such_headers_of_real_reports(tmp_path: Path, real_reports: dict[str, Path]) -> None:
    for path in real_reports.values():
        raw = open_raw(path)
        counts = [found.counts for found in scan(raw)]
        raw.close()
        for sources, which in ((1, 2), (-1, 0)):
            place = next(index for index, count in enumerate(counts) if count[which])
            with pytest.raises(RooflineError, match="the header of its block counts"):
                read_report(write(tmp_path, recounted(path, place, sources)[0]))


def test_a_cut_off_file_says_where_and_what_is_whole(tmp_path: Path) -> None:
    data = encoded([saxpy(i) for i in range(3)])
    blocks = list(scan(open_raw(write(tmp_path, data))))
    third = [found for found in blocks if sum(found.counts)][2]
    for end in (third.start + 2, third.start + 4, third.start + 9, third.payload + 3, third.end - 1):
        with pytest.raises(RooflineError, match=rf"cut off at byte {end}.*\(2 whole kernels before it\)"):
            read_report(write(tmp_path, data[:end]))


def test_whole_kernels_inside_the_cut_block_count(tmp_path: Path) -> None:
    data = file_of(block([b"source", result([]), result([(0, 5)])], sources=1, kernels=2))
    with pytest.raises(RooflineError, match=r"\(1 whole kernel before it\)"):
        read_report(write(tmp_path, data[:-1]))


@pytest.mark.parametrize("garbage", [bytes(4), bytes(5000), b"garbage behind it", b"\x04\0\0\0junk", b"{}"])
def test_trailing_garbage(tmp_path: Path, garbage: bytes) -> None:
    data = encoded([saxpy()])
    with pytest.raises(RooflineError, match=rf"byte {len(data)}\b.*\(1 whole kernel before it\)|cut off"):
        read_report(write(tmp_path, data + garbage))


@pytest.mark.parametrize("change", [-3, -1, 1, 4, 1000])
@pytest.mark.parametrize("last", [True, False])
def test_a_wrong_payload_size(tmp_path: Path, change: int, last: bool) -> None:
    records = [result([(0, 1)]), result([(0, 2)])]
    payload = b"".join(map(frame, records))
    header = message("BlockHeader")(sources=0, kernels=2, payload_size=len(payload) + change)
    data = file_of(frame(header.SerializeToString()) + payload, *(() if last else (block(),)))
    with pytest.raises(RooflineError, match=r"2 records in \d+ bytes, but|cut off"):
        read_report(write(tmp_path, data))


def test_an_absurd_number_of_records(tmp_path: Path) -> None:
    header = message("BlockHeader")(kernels=2**32 - 1, ranges=2**32 - 1, payload_size=0)
    with pytest.raises(RooflineError, match="8589934590 records"):
        read_report(write(tmp_path, file_of(frame(header.SerializeToString()))))


def test_an_absurd_length(tmp_path: Path) -> None:
    data = file_of(block(), struct.pack("<I", 2**32 - 1) + b"\x08\x00")
    with pytest.raises(RooflineError, match=r"cut off at byte \d+, in the block at byte"):
        read_report(write(tmp_path, data))


def test_damage_inside_a_result_shows_when_it_is_read(tmp_path: Path) -> None:
    data = file_of(block([b"\x6a\x7f"], kernels=1))
    with read_report(write(tmp_path, data)) as report:
        for read in (
            lambda: report.kernels[0].metrics,
            lambda: report.kernels[0].name,
            lambda: report.kernels[0].sections,
            lambda: report.columns(["a"]),
            lambda: report.launches(),
            lambda: report.device,
        ):
            with pytest.raises(RooflineError, match=r"damaged at byte \d+.*Copy the file again"):
                read()


def read_everything(path: Path) -> None:
    """All there is; any exception but a `RooflineError` is a bug."""
    try:
        with read_report(path) as report:
            report.columns(report.metric_names)
            str((report.session, report.device, report.devices, report.launches(), report.session.application))
            for kernel in report.kernels:
                str((kernel.nvtx, kernel.rule_results, kernel.sections, kernel.device, kernel.launch))
                str([(name, kernel.metrics.get(name), kernel.metrics.instances(name)) for name in kernel.metrics.names()])
                str([kernel.metrics.by_address(name) for name in kernel.metrics.names()])
                str((kernel.code, kernel.base_address()))
    except RooflineError:
        pass


def flip(data: bytes, generator: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 4))):
        changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def written_report() -> bytes:
    code = Code(b"\x7fELF" + bytes(60), (ImportedFile("k.cu", "text"),), (CodeFunction("saxpy", 512, 1),))
    counts = {"i": [(1, 2), ("A", 3.5)], "launch__function_pcs": [(0, 512)], "inst_executed": [(512, 7), (528, 8)]}
    kernels = [saxpy(i, nvtx=("a",), instances=counts, code=code if i < 2 else None) for i in range(3)]
    return encoded([*kernels, saxpy(kind="range"), saxpy(kind="graph"), saxpy(kind="cmdlist")])


def test_bit_flips(tmp_path: Path) -> None:
    data, generator = written_report(), random.Random(1)
    for _ in range(400):
        read_everything(write(tmp_path, flip(data, generator)))


def test_truncation_anywhere_is_noticed_on_opening(tmp_path: Path) -> None:
    data = written_report()
    path = write(tmp_path, data)
    starts = {found.start for found in scan(open_raw(path))}  # a file cut between two blocks is a whole report
    for end in range(len(data)):
        if end not in starts or end == min(starts):
            with pytest.raises(RooflineError):
                read_report(write(tmp_path, data[:end]))


@pytest.mark.exhaustive
@pytest.mark.reports
def test_damaged_real_reports(tmp_path: Path, real_reports: dict[str, Path]) -> None:
    generator = random.Random(2)
    small = sorted(real_reports.values(), key=os.path.getsize)[:8:2]
    for path in small:
        data = path.read_bytes()
        starts = {found.start for found in scan(open_raw(path))}
        for _ in range(50):
            read_everything(write(tmp_path, flip(data, generator)))
        for _ in range(50):
            end = generator.randrange(len(data))
            if end not in starts:
                with pytest.raises(RooflineError):
                    read_report(write(tmp_path, data[:end]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples."""
    return tmp_path_factory.mktemp("examples")


BLOCKS = st.one_of(
    st.binary(max_size=200),
    st.builds(frame, st.binary(max_size=100)),
    st.builds(
        lambda records, strings, **counts: block(records, strings, **counts),
        st.lists(st.binary(max_size=60), max_size=4),
        st.lists(st.text(max_size=5), max_size=4),
        sources=st.integers(0, 2),
        kernels=st.integers(0, 4),
        ranges=st.integers(0, 1),
        process=st.binary(max_size=20),
        session=st.lists(st.binary(max_size=40), max_size=2),
    ),
)


@given(st.lists(BLOCKS, max_size=4))
@example([block([b"\x6a\x02\x08\x05", b"\x6a\x02\x10\x05"], ["a"], kernels=2)])
def test_arbitrary_bytes(folder: Path, blocks: list[bytes]) -> None:
    read_everything(write(folder, file_of(*blocks)))


@given(st.binary(max_size=300))
def test_arbitrary_records(folder: Path, data: bytes) -> None:
    for kind in ("kernels", "ranges", "cmdlists", "graph_results"):
        read_everything(write(folder, file_of(block([data], ["a", "b"], **{kind: 1}))))


@given(st.binary(max_size=300), st.booleans())
def test_arbitrary_source_records(folder: Path, data: bytes, numbered: bool) -> None:
    launch = result([(0, 1)], source=message("Source")(reference=1))
    records = [b"\x08\x01" + data if numbered else data, launch]
    read_everything(write(folder, file_of(block(records, ["a"], sources=1, kernels=1))))
