"""Blocks taken apart and packed again are the same bytes, so that a report can be copied with only what is meant to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.framing import file_start, open_raw, pack_block, scan
from tests.report.factory import block, encoded, file_of, result, saxpy, write


def repacked(path: Path) -> bytes:
    raw = open_raw(path)
    blocks = []
    for found in scan(raw):
        records = [raw.data[offset : offset + length] for offset, length in found.records]
        blocks.append(pack_block(found.header, records))
    raw.close()
    return file_start() + b"".join(blocks)


def test_written_report(tmp_path: Path) -> None:
    data = encoded([saxpy(0), saxpy(1, kind="graph")])
    assert repacked(write(tmp_path, data)) == data


def test_unknown_header_fields_survive(tmp_path: Path) -> None:
    raw = open_raw(write(tmp_path, file_of(block([result([(0, 1)])], strings=["a"], kernels=1))))
    found = next(scan(raw))
    found.header.MergeFromString(b"\xfa\x3f\x03abc")
    data = file_start() + pack_block(found.header, [raw.data[o : o + n] for o, n in found.records])
    assert repacked(write(tmp_path, data, "y.ncu-rep")) == data
    with read_report(tmp_path / "y.ncu-rep") as report:
        assert report.columns("a") == {"a": [1]}


@pytest.mark.reports
def test_real_reports(real_reports: dict[str, Path]) -> None:
    for path in real_reports.values():
        assert repacked(path) == path.read_bytes(), path.name
