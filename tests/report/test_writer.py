"""Writing: whole files or none, nothing overwritten by accident, one kernel in memory at a time."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import KernelData, ReportData, encode_report, read_report, write_report
from tests.report.factory import SESSION, saxpy


def test_refuses_to_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_text("precious")
    with pytest.raises(RooflineError, match=r"Cannot write .*x\.ncu-rep: the file exists\."):
        write_report(path, ReportData([]))
    assert path.read_text() == "precious"
    write_report(path, ReportData([saxpy()]), overwrite=True)
    with read_report(path) as report:
        assert len(report) == 1


def test_a_failure_half_way_leaves_nothing(tmp_path: Path) -> None:
    def kernels() -> Iterator[KernelData]:
        yield saxpy()
        raise RuntimeError("interrupted")

    path = tmp_path / "x.ncu-rep"
    path.write_text("precious")
    with pytest.raises(RuntimeError, match="interrupted"):
        write_report(path, ReportData(kernels()), overwrite=True)
    assert [found.name for found in tmp_path.iterdir()] == ["x.ncu-rep"]
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="Cannot write"):
        write_report(tmp_path / "no" / "x.ncu-rep", ReportData([]))


def test_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'thread' is not a kind of result: kernel, range, cmdlist, graph"):
        write_report(tmp_path / "x", ReportData([saxpy(kind="thread")]))
    assert not list(tmp_path.iterdir())


def test_the_same_data_gives_the_same_bytes() -> None:
    data = ReportData([saxpy(i) for i in range(3)], SESSION)
    assert b"".join(encode_report(data)) == b"".join(encode_report(data))


def test_numbers_out_of_range_become_doubles(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    metrics = {"big": 2**64, "negative": -3, "largest": 2**64 - 1, "nan": math.nan, "yes": True}
    write_report(path, ReportData([KernelData("k", metrics=metrics)]))
    with read_report(path) as report:
        read = report.kernels[0].metrics
        assert [repr(read[name]) for name in metrics] == ["1.8446744073709552e+19", "-3.0", str(2**64 - 1), "nan", "1"]


def test_many_kernels_stream_through(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    tracemalloc.start()
    write_report(path, ReportData((saxpy(i, sections=(bytes(2000),)) for i in range(3000)), SESSION))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 < 6_000_000 < path.stat().st_size
    with read_report(path) as report:
        assert report.columns(["launch__grid_size"])["launch__grid_size"] == [256 + i for i in range(3000)]
