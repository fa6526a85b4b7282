"""What is written is read back: results of every kind, sessions, devices, rules, NVTX ranges."""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.formats.report import FocusMetric, KernelData, Report, RuleMessage, RuleResult, Session, read_report
from ncu_roofline.formats.report.framing import KINDS, message
from ncu_roofline.formats.report.reader import pushed
from tests.report.factory import DEVICE, SESSION, block, encoded, file_of, result, saxpy, write

RULE = RuleResult(
    "MyRule",
    "My rule",
    "MySection",
    (
        RuleMessage("warning", "text", "title", 3, 12.5, "global", (FocusMetric("dram__bytes.sum", 1.5, "high", "why"),)),
        RuleMessage("ok", "fine"),
    ),
)


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Report]:
    kernels = [
        saxpy(0, instances={"only__instances": [(1, 2.5), (None, 3)], "dram__bytes.sum": [("FADD", "x")]}, nvtx=("a", "b")),
        saxpy(1, sections=(b"\x0a\x01A", b"\x0a\x01B"), rule_results=(RULE,), clock_locked=True),
        saxpy(2, metrics={"dram__bytes.sum": math.nan, "other__metric": math.inf}),
    ]
    with read_report(write(tmp_path, encoded(kernels))) as opened:
        yield opened


def test_metrics_keep_their_types(report: Report) -> None:
    metrics = report.kernels[0].metrics
    assert dict(metrics) == saxpy(0).metrics
    assert {type(metrics[name]) for name in ("dram__bytes.sum", "launch__grid_size", "text__metric")} == {float, int, str}


def test_a_metric_without_scalar_is_not_in_the_mapping(report: Report) -> None:
    metrics = report.kernels[0].metrics
    assert "only__instances" not in metrics
    assert metrics.get("only__instances") is None
    assert "only__instances" in metrics.names()
    assert len(metrics) == len(metrics.names()) - 1
    with pytest.raises(KeyError):
        metrics["only__instances"]


def test_instances(report: Report) -> None:
    metrics = report.kernels[0].metrics
    assert metrics.instances("only__instances") == [(1, 2.5), (None, 3)]
    assert metrics.instances("dram__bytes.sum") == [("FADD", "x")]
    assert metrics.instances("launch__grid_size") == []
    with pytest.raises(KeyError):
        metrics.instances("missing")


def test_columns_have_none_where_a_kernel_lacks_the_metric(report: Report) -> None:
    columns = report.columns(["launch__grid_size", "missing", "text__metric", "dram__bytes.sum", "only__instances"])
    assert columns["launch__grid_size"] == [256, 257, None]
    assert columns["missing"] == columns["only__instances"] == [None, None, None]
    assert columns["text__metric"] == ["a b", "a b", None]
    assert columns["dram__bytes.sum"][:2] == [1e9 + 0.25, 1e9 + 1.25]
    assert repr(columns["dram__bytes.sum"][2]) == "nan"
    assert report.columns([]) == {}


def test_columns_of_many_kernels_with_changing_types_and_layouts(tmp_path: Path) -> None:
    def metrics(i: int) -> dict[str, float | int | str]:
        if i % 7 == 0:
            return {"z": i}
        return {"a": i if i % 3 else float(i), "b": str(i), "c": i} if i % 2 else {"c": -1.5 * i, "a": i}

    kernels = [KernelData("k", metrics=metrics(i)) for i in range(300)]
    with read_report(write(tmp_path, encoded(kernels))) as report:
        columns = report.columns("abcz")
        for i, kernel in enumerate(kernels):
            row = {name: values[i] for name, values in columns.items() if values[i] is not None}
            assert row == kernel.metrics
            assert {name: type(value) for name, value in row.items()} == {
                name: type(value) for name, value in kernel.metrics.items()
            }


def test_infinity_and_nan_are_values(report: Report) -> None:
    metrics = report.kernels[2].metrics
    assert metrics["other__metric"] == math.inf
    assert repr(metrics["dram__bytes.sum"]) == "nan"


def test_launch(report: Report) -> None:
    first, second, _ = report.launches()
    assert (first.kind, first.function_name, first.name) == ("kernel", "saxpy", "saxpy(int, float *)")
    assert (first.grid, first.block, first.stream, first.context) == ((128, 2, 1), (256, 1, 1), 7, 1)
    assert (first.clock_locked, second.clock_locked) == (None, True)
    kernel = report.kernels[0]
    assert kernel.launch == first
    assert (kernel.kind, kernel.function_name, kernel.name, kernel.mangled_name) == (
        "kernel",
        "saxpy",
        "saxpy(int, float *)",
        "saxpy",
    )
    assert "saxpy" in repr(kernel)
    assert "3 kernels" in repr(report)


def test_nvtx_ranges_are_outermost_first(report: Report) -> None:
    assert report.kernels[0].nvtx == ("a", "b")
    assert report.kernels[1].nvtx == ()


def test_an_instance_that_says_name_and_number_twice(tmp_path: Path) -> None:
    instance = message("Instance")
    wrong, right, other = [
        instance(correlation={"text": name}, value={"double": number}).SerializeToString()
        for name, number in ((b"FADD", 9.0), (b"FADD", 1.0), (b"FMUL", 2.0))
    ]
    metric = b"\x08\x00" + b"".join(b"\x1a" + bytes([len(one)]) + one for one in (wrong + right, other))
    data = file_of(block([b"\x6a" + bytes([len(metric)]) + metric], ["counts"], kernels=1))
    with read_report(write(tmp_path, data)) as report:
        assert report.columns_and_instances((), ("counts",))[1] == {"counts": [[("FADD", 1.0), ("FMUL", 2.0)]]}


def test_nvtx_in_parts_is_one(tmp_path: Path) -> None:
    domains = message("Nvtx")(domains=[{"id": 5, "name": b"domain"}])
    parts = [result([], thread_id=1, nvtx=state) for state in (pushed(("a", "b"), 1), domains)]
    with read_report(write(tmp_path, file_of(block([b"".join(parts)], kernels=1)))) as report:
        assert report.kernels[0].nvtx == ("a", "b")


def test_nvtx_of_other_threads_is_ignored_and_start_end_ranges_come_first(tmp_path: Path) -> None:
    state = message("Nvtx")()
    state.domains.add(id=5, name=b"domain").strings.add(id=77, value=b"registered")
    for thread, name in ((1, b"mine"), (2, b"theirs")):
        state.threads.add(id=thread).domains.add(id=0).stack.add(name=name)
    started = state.start_end.add(id=5).ranges.add(id=1)
    started.attributes.message.type, started.attributes.message.handle = 3, 77
    data = file_of(block([result([], thread_id=1, nvtx=state)], kernels=1))
    with read_report(write(tmp_path, data)) as report:
        assert report.kernels[0].nvtx == ("registered", "mine")


def test_sections_and_rules(report: Report) -> None:
    assert report.kernels[1].sections == (b"\x0a\x01A", b"\x0a\x01B")
    assert report.kernels[1].rule_results == (RULE,)
    assert RULE.speedup == 12.5
    assert report.kernels[0].sections == ()
    assert report.kernels[0].rule_results == ()


def test_session(report: Report) -> None:
    assert report.session == SESSION
    assert report.ncu_version == "2022.3.0.0"
    assert report.session.application == ("./app", "12")
    assert report.kernels[0].process == SESSION.process


@pytest.mark.parametrize(
    ("line", "application"),
    [
        ("", ()),
        ("ncu", ()),
        ("ncu -o x", ()),
        ("ncu -f --set=full -c10 --nvtx --section A ./app -k x", ("./app", "-k", "x")),
        ("ncu -k it's ./app", ("./app",)),
    ],
)
def test_application(line: str, application: tuple[str, ...]) -> None:
    assert Session(command_line=line).application == application


def test_device(report: Report) -> None:
    device = report.device
    assert device is not None
    assert (device.name, device.compute_capability, device.index) == ("NVIDIA A100-PCIE-40GB", (8, 0), 0)
    assert device.attributes["multiprocessor_count"] == 108
    assert len(device.attributes) == len(DEVICE)
    assert report.kernels[1].device == device
    assert report.kernels[2].device is None
    assert report.devices == (device,)


def test_several_devices(tmp_path: Path) -> None:
    other = {**DEVICE, "device__attribute_device_index": 1, "device__attribute_display_name": "NVIDIA H100"}
    del other["device__attribute_compute_capability_major"]
    with read_report(write(tmp_path, encoded([saxpy(metrics=m) for m in (DEVICE, other, DEVICE)]))) as report:
        assert [(d.name, d.compute_capability) for d in report.devices] == [
            ("NVIDIA A100-PCIE-40GB", (8, 0)),
            ("NVIDIA H100", None),
        ]


def test_the_session_names_the_device_where_no_result_does(tmp_path: Path) -> None:
    session = message("Session")()
    session.devices.add(id=0, name=b"NVIDIA A40")
    data = file_of(block(session=[session.SerializeToString()]), block([result([])], kernels=1))
    with read_report(write(tmp_path, data)) as report:
        assert [d.name for d in (report.device, *report.devices) if d] == ["NVIDIA A40", "NVIDIA A40"]


def test_a_report_without_any_result(tmp_path: Path) -> None:
    with read_report(write(tmp_path, encoded([]))) as report:
        assert len(report) == len(report.kernels) == len(report.launches()) == 0
        assert report.device is None
        assert report.columns(["a"]) == {"a": []}


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_of_result(tmp_path: Path, kind: str) -> None:
    written = saxpy(kind=kind, nvtx=("r",), sections=(b"\x0a\x01A",), rule_results=(RULE,), clock_locked=False)
    with read_report(write(tmp_path, encoded([written]))) as report:
        kernel = report.kernels[0]
        assert kernel.kind == kernel.launch.kind == kind
        assert dict(kernel.metrics) == dict(written.metrics)
        assert report.columns(["launch__grid_size"]) == {"launch__grid_size": [256]}
        assert (kernel.nvtx, kernel.sections, kernel.launch.context) == (("r",), (b"\x0a\x01A",), 1)
        assert kernel.launch.clock_locked is False
        assert kernel.rule_results == ((RULE,) if kind in ("kernel", "cmdlist") else ())
        assert kernel.name == (written.name if kind == "kernel" else kind)
        assert kernel.launch.grid == (written.grid if kind == "kernel" else None)


def test_a_command_list_with_one_launch_has_its_grid(tmp_path: Path) -> None:
    head = message("CmdlistHead")(display_name=b"MyList")
    head.launches.add().grid.x = 5
    with read_report(write(tmp_path, file_of(block([head.SerializeToString()], cmdlists=1)))) as report:
        launch = report.kernels[0].launch
        assert (launch.name, launch.grid, launch.block) == ("MyList", (5, 0, 0), None)


def test_kernels_are_a_sequence(report: Report) -> None:
    assert [k.index for k in report.kernels] == [0, 1, 2]
    assert [k.index for k in report.kernels[::-2]] == [2, 0]
    assert [k.index for k in report.kernels[1:][:1]] == [1]
    assert report.kernels[-1].index == 2
    with pytest.raises(IndexError):
        report.kernels[3]


def test_a_closed_report_says_so(tmp_path: Path) -> None:
    report = read_report(write(tmp_path, encoded([saxpy()])))
    report.close()
    report.close()
    with pytest.raises(ValueError, match=f"{re.escape(str(report.path))} is closed"):
        dict(report.kernels[0].metrics)


def test_text_that_is_not_utf8_or_ends_with_nul(tmp_path: Path) -> None:
    process = message("Process")(id=1, name=b"C:\\app.exe\0", host=b"\xff\xfe").SerializeToString()
    with read_report(write(tmp_path, file_of(block([result([], function=b"k")], kernels=1, process=process)))) as report:
        assert report.kernels[0].process.name == "C:\\app.exe"
        assert report.session.process.host == "\ufffd\ufffd"


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in the file system")
def test_a_pipe(tmp_path: Path) -> None:
    pipe, data = tmp_path / "pipe", encoded([saxpy()])
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    with read_report(pipe) as report:
        assert dict(report.kernels[0].metrics) == dict(saxpy().metrics)
    writer.join()
