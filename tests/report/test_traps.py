"""Traps met in real files, each as the smallest file that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Report, read_report
from ncu_roofline.formats.report.framing import message
from tests.report.factory import block, file_of, result, write


def open_blocks(folder: Path, *blocks: bytes) -> Report:
    return read_report(write(folder, file_of(*blocks)))


def test_names_that_arrive_in_later_blocks(tmp_path: Path) -> None:
    first = block([result([(0, 1.5), (1, 2.5)])], strings=["a"], kernels=1)
    with open_blocks(tmp_path, first, block(strings=["b"])) as report:
        assert dict(report.kernels[0].metrics) == {"a": 1.5, "b": 2.5}


def test_the_last_of_repeated_names_counts(tmp_path: Path) -> None:
    # Also where the name is in the table twice, and where the last one has no value.
    records = [result([(0, 1), (1, 5), (0, 2)]), result([(0, 1), (2, 3)]), result([(2, 1), (0, None)])]
    with open_blocks(tmp_path, block(records, strings=["a", "b", "a"], kernels=3)) as report:
        assert [dict(kernel.metrics) for kernel in report.kernels] == [{"a": 2, "b": 5}, {"a": 3}, {}]
        assert report.columns(["a"]) == {"a": [2, 3, None]}


def test_metrics_in_another_order_or_number(tmp_path: Path) -> None:
    records = [result([(0, 1), (1, 2)]), result([(1, 3), (0, 4)]), result([(1, 5)])]
    with open_blocks(tmp_path, block(records, strings=["a", "b"], kernels=3)) as report:
        assert report.columns("ab") == {"a": [1, 4, None], "b": [2, 3, 5]}


def test_a_source_behind_its_result(tmp_path: Path) -> None:
    source = message("Source")(reference=9).SerializeToString()
    blocks = block([result([(0, 1)])], strings=["a"], kernels=1), block([source], sources=1)
    with open_blocks(tmp_path, *blocks) as report:
        assert [dict(kernel.metrics) for kernel in report.kernels] == [{"a": 1}]


def test_sources_and_graphs_before_results_of_all_kinds_in_one_block(tmp_path: Path) -> None:
    records = [b"source", b"graph data", result([(0, 1)])]
    records += [
        result([(0, value)], kind=kind) for value, kind in ((2, "RangeResult"), (3, "CmdlistResult"), (4, "GraphResult"))
    ]
    header = {"sources": 1, "graphs": 1, "kernels": 1, "ranges": 1, "cmdlists": 1, "graph_results": 1}
    with open_blocks(tmp_path, block(records, strings=["a"], **header)) as report:
        assert [(k.kind, k.metrics["a"]) for k in report.kernels] == [("kernel", 1), ("range", 2), ("cmdlist", 3), ("graph", 4)]
        assert report.columns("a") == {"a": [1, 2, 3, 4]}


def test_session_details_split_over_blocks(tmp_path: Path) -> None:
    parts = [message("Session")() for _ in range(3)]
    parts[0].versions.add(provider=b"CUDA Version", version=b"12.4")
    parts[1].versions.add(provider=b"Nsight Compute Target", version=b"2024.2.1.0 (build 1)")
    parts[2].command_line = b"ncu --replay-mode=range ./app"
    with open_blocks(tmp_path, *(block(session=[part.SerializeToString()]) for part in parts)) as report:
        session = report.session
        assert (session.cuda_version, session.ncu_version, session.replay) == ("12.4", "2024.2.1.0", "range")


def test_unknown_fields_and_enum_values(tmp_path: Path) -> None:
    unknown = b"\xfa\x3f\x03abc"  # field 1023
    rule = message("RuleResult")(identifier=b"R", name=b"R")
    rule.body.items.add().message.type.append(101)
    record = result([(0, 1)], rules=[rule.SerializeToString() + unknown]) + unknown
    with open_blocks(tmp_path, block([record], strings=["a"], kernels=1)) as report:
        assert dict(report.kernels[0].metrics) == {"a": 1}
        assert report.kernels[0].rule_results[0].messages[0].type == "101"


def test_unknown_and_rare_types_of_values(tmp_path: Path) -> None:
    record = message("KernelResult")()
    for name_id, field in enumerate(("float", "uint32")):
        setattr(record.metrics.add(name_id=name_id).value, field, 3)
    newer = b"\x6a\x07\x08\x02\x12\x03\xfa\x3f\x00"  # a metric whose value has a type that only field 1023 holds
    blocks = block([record.SerializeToString() + newer], strings=["float", "uint32", "newer"], kernels=1)
    with open_blocks(tmp_path, blocks) as report:
        assert dict(report.kernels[0].metrics) == {"float": 3.0, "uint32": 3}
        assert report.columns(["float", "uint32", "newer"]) == {"float": [3.0], "uint32": [3], "newer": [None]}


def test_a_name_id_out_of_range_names_the_offset(tmp_path: Path) -> None:
    with open_blocks(tmp_path, block([result([(0, 1), (7, 1)])], strings=["a"], kernels=1)) as report:
        with pytest.raises(RooflineError, match=r"x\.ncu-rep: it is damaged at byte \d+: a metric has name 7 of a table of 1"):
            report.kernels[0].metrics["a"]
        with pytest.raises(RooflineError, match="name 7"):
            report.columns(["a"])


def test_a_metric_without_a_name(tmp_path: Path) -> None:
    with (
        open_blocks(tmp_path, block([result([(0, 1)]) + b"\x6a\x00"], strings=["a"], kernels=1)) as report,
        pytest.raises(RooflineError, match="no name"),
    ):
        report.columns(["a"])


def test_blocks_of_two_files_load_as_one(tmp_path: Path) -> None:
    one = block([result([(0, 1)])], strings=["a"], kernels=1)
    two = block([result([(1, 2)])], strings=["b"], kernels=1)
    with open_blocks(tmp_path, one, two) as report:
        assert report.columns("ab") == {"a": [1, None], "b": [None, 2]}


def test_joined_files_are_an_error_that_says_so(tmp_path: Path) -> None:
    data = file_of(block())
    with pytest.raises(RooflineError, match=f"a second report begins at byte {len(data)}"):
        read_report(write(tmp_path, data + data))


def test_enormous_grids_and_counters(tmp_path: Path) -> None:
    record = message("KernelResult")()
    record.grid.x = record.grid.y = record.grid.z = 2**64 - 1
    record.metrics.add(name_id=0).value.uint64 = 2**64 - 1
    with open_blocks(tmp_path, block([record.SerializeToString()], strings=["a"], kernels=1)) as report:
        assert report.kernels[0].launch.grid == (2**64 - 1,) * 3
        assert report.columns("a") == {"a": [2**64 - 1]}


def test_many_layouts(tmp_path: Path) -> None:
    records = [result([(i, i), ((i + 1) % 100, 1000 + i)]) for i in range(100)]
    with open_blocks(tmp_path, block(records, strings=[f"m{i}" for i in range(100)], kernels=100)) as report:
        for _ in range(2):
            column = report.columns(["m5"])["m5"]
            assert [(i, value) for i, value in enumerate(column) if value is not None] == [(4, 1004), (5, 5)]
