"""NVIDIA's own ncu prints of real reports what is read of them, and opens what is written without complaint."""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ncu_roofline.formats.report import (
    Instances,
    Kernel,
    KernelData,
    ReportData,
    RuleMessage,
    RuleResult,
    Value,
    read_report,
    write_report,
)
from ncu_roofline.formats.wire import bytes_field as field
from tests.report.factory import SESSION, saxpy

pytestmark = pytest.mark.ncu
Run = Callable[..., str]
LAST_OF_IDENTITY = "CC"  # the columns behind it are metrics
NOT_PRINTED = ("group:", "breakdown:")
ADDRESS = re.compile(r"\b0x[0-9a-f]+(?=:)")  # how some correlation ids are printed
COMPLAINTS = re.compile("ERROR|WARNING|FATAL|libprotobuf")
# The first of the releases here that knows a kind of result; older ones find nothing or refuse.
SINCE = {"kernel": "2020.3", "range": "2022.3", "graph": "2024.1", "cmdlist": "2024.1"}
COLUMNS = {
    "Instructions Executed": "inst_executed",
    "Thread Instructions Executed": "thread_inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "smsp__pcsamp_sample_count": "smsp__pcsamp_sample_count",
    "stall_wait": "smsp__pcsamp_warps_issue_stalled_wait",
    "stall_long_sb (Not Issued)": "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
}
FUNCTIONS = "launch__function_pcs"
SAMPLES = "smsp__pcsamp_"  # some fall on code of the driver, of which ncu prints nothing


@pytest.fixture
def ncu(ncu_releases: dict[str, Path], tmp_path: Path) -> Run:
    """What a release (the newest) prints of a report; "" where it doesn't open it."""

    def run(report: Path, *words: str, release: str = max(ncu_releases)) -> str:
        command, home = [ncu_releases[release], "--import", report, *words], {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, env=home, check=False)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

    return run


def table(printed: str) -> list[dict[str, str]]:
    """A page of CSV, whose second line has the units."""
    before = csv.field_size_limit(2**31 - 1)  # a cell may hold every instance of a metric
    header, _, *rows = csv.reader(io.StringIO(printed, newline=""))
    csv.field_size_limit(before)
    return [dict(zip(header, row, strict=True)) for row in rows]


def as_printed(value: Value | None) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.0f}" if value.is_integer() else f"{value:.2f}"
    return "" if value is None else str(value)


def cell(value: Value | None, instances: Instances) -> str:
    if not instances:
        return "no data" if value is None else as_printed(value)
    listed = "; ".join(f"{as_printed(correlation)}: {as_printed(element)}" for correlation, element in instances)
    return f"{as_printed(value)} ({listed})".strip()


def row_of(kernel: Kernel) -> dict[str, str]:
    """What the raw page has of a kernel."""
    launch, device, metrics = kernel.launch, kernel.device, kernel.metrics
    assert device is not None
    said = {"ID": kernel.index, "Process ID": kernel.process.id, "Process Name": kernel.process.name.rpartition("/")[2]}
    said |= {"Host Name": kernel.process.host, "Kernel Name": launch.mangled_name, "Context": launch.context}
    said |= {"Stream": launch.stream, "Block Size": launch.block, "Grid Size": launch.grid}
    names = [name for name in metrics.names() if not name.startswith(NOT_PRINTED)]
    cells = {name: cell(metrics.get(name), metrics.instances(name)) for name in names}
    return {**{key: str(value) for key, value in said.items()}, "CC": "{}.{}".format(*device.compute_capability or ()), **cells}


@pytest.mark.reports
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_values_instances_and_launches_of_real_reports(real_reports: dict[str, Path], ncu: Run, every: bool) -> None:
    reports = sorted(real_reports.values(), key=os.path.getsize)[: None if every else 1]
    unopened = []
    for path in reports:
        words = ("--print-units", "base", "--print-metric-instances", "details", "--print-kernel-base", "mangled")
        printed = ncu(path, "--page", "raw", "--csv", *words)
        if not printed:
            unopened.append(path.name)
            continue
        with read_report(path) as report:
            for kernel, row in zip(report.kernels, table(printed), strict=True):
                expected, names = row_of(kernel), list(row)
                metrics = {*names[names.index(LAST_OF_IDENTITY) + 1 :]}
                assert expected.keys() <= metrics | {*names[: names.index(LAST_OF_IDENTITY) + 1]}, path
                for name in metrics | (expected.keys() & names):  # a column is there once some kernel has the metric
                    shown = ADDRESS.sub(lambda found: str(int(found[0], 16)), row[name])
                    assert shown == expected.get(name, ""), f"{path.name} kernel {kernel.index}: {name}"
    assert len(unopened) < len(reports)
    if unopened:
        pytest.skip(f"everything else agrees, but this ncu does not open {', '.join(unopened)}")


@pytest.mark.reports
def test_versions_and_devices_are_those_of_the_inventory(real_reports: dict[str, Path]) -> None:
    inventory = next(iter(real_reports.values())).parent / "INVENTORY.csv"
    if not inventory.exists():
        pytest.skip("no INVENTORY.csv beside the reports")
    expected = {row["file"]: row for row in csv.DictReader(inventory.read_text("utf-8").splitlines())}
    for name, path in real_reports.items():
        with read_report(path) as report:
            (device,), row = report.devices, expected[name]
            assert device == report.device
            found = (report.ncu_version, str(len(report)), device.name, "{}.{}".format(*device.compute_capability or ()))
            assert found == tuple(row[key] for key in ("ncu_version", "kernels", "gpu", "compute_capability")), name


# Code.
def source_pages(printed: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """(mangled name, a row per instruction) of each function of a source page."""
    pages: list[tuple[str, list[dict[str, str]]]] = []
    header: list[str] = []
    for row in csv.reader(io.StringIO(printed, newline="")):
        if row[:1] == ["Kernel Name"]:
            pages.append((row[1], []))
        elif row[:1] == ["Address"]:
            header = row
        elif pages and len(row) == len(header):
            pages[-1][1].append(dict(zip(header, row, strict=True)))
    return iter(pages)


SOURCE = ("--page", "source", "--csv", "--print-kernel-base", "mangled")


@pytest.mark.exhaustive
@pytest.mark.reports
def test_addresses_and_values(real_reports: dict[str, Path], ncu: Run) -> None:
    compared = dict.fromkeys(COLUMNS, 0)
    for path in (path for name, path in real_reports.items() if "full" in name or "custom" in name):
        pages = source_pages(ncu(path, *SOURCE))
        with read_report(path) as report:
            for kernel in report.kernels:
                # Of the kernel and the functions that it calls, of all of the module where the report lists none.
                listed = kernel.metrics.instances(FUNCTIONS) if kernel.metrics.has_name(FUNCTIONS) else ()
                functions = list(itertools.islice(pages, len(listed) or len(kernel.code.functions if kernel.code else ())))
                rows = {int(row["Address"], 16): row for _, page in functions for row in page}
                assert kernel.base_address() == int(dict(functions)[kernel.mangled_name][0]["Address"], 16), path
                for column in COLUMNS.keys() & functions[0][1][0].keys():
                    values = dict(zip(*kernel.metrics.by_address(COLUMNS[column]), strict=True))
                    assert values.keys() <= rows.keys() or COLUMNS[column].startswith(SAMPLES), f"{path} {column}"
                    for address, row in rows.items():
                        assert values.get(address, 0.0) == float(row[column]), f"{path} {kernel.index} {column}"
                    compared[column] += len(values.keys() & rows.keys())
        assert next(pages, None) is None, path
    assert min(compared.values()) > 100, compared


@pytest.mark.exhaustive
@pytest.mark.reports
def test_code_that_is_written(real_reports: dict[str, Path], ncu: Run, tmp_path: Path) -> None:
    original, copy = real_reports["v100-ncu2022.2-full-1.ncu-rep"], tmp_path / "copy.ncu-rep"
    with read_report(original) as report:
        write_report(copy, ReportData([copied(one) for one in report.kernels], report.session))
    pages = [list(source_pages(ncu(path, *SOURCE))) for path in (original, copy)]
    assert pages[0] == pages[1]
    assert any("IMAD" in row["Source"] for _, rows in pages[0] for row in rows)


def copied(one: Kernel) -> KernelData:
    counts = {name: one.metrics.instances(name) for name in one.metrics.names()}
    of = {"metrics": dict(one.metrics), "instances": counts, "sections": one.sections, "code": one.code}
    return KernelData(one.name, one.function_name, one.mangled_name, **of)  # type: ignore[arg-type]


# What is written.
def roofline_section() -> bytes:
    """A section with a header table and a roofline chart of one roof and one point."""
    table = field(2, field(1, b"dram__bytes.sum") + field(2, b"My traffic"))
    value = field(2, field(1, b"sm__cycles_elapsed.avg.per_second"))
    roof = field(1, value) + field(2, value)
    chart = field(1, b"My chart") + field(4, roof)
    return field(1, b"MySection") + field(2, b"My section") + field(4, table) + field(5, field(1, field(6, chart)))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_what_is_written_is_shown(ncu: Run, ncu_releases: dict[str, Path], tmp_path: Path, every: bool) -> None:
    said = (RuleMessage("warning", "Do this."), RuleMessage("optimization", "Do that.", "Title", 1, 12.5, "global"))
    rule = RuleResult("MyRule", "My rule", "MySection", said)
    metrics = {**saxpy().metrics, "sm__cycles_elapsed.avg.per_second": 1e9, "gpu__time_duration.sum": 12345.5, "my__own": 7}
    more = {"nvtx": ("outer", "inner"), "sections": (roofline_section(),), "clock_locked": True, "rule_results": (rule,)}
    for kind, since in SINCE.items() if every else [("kernel", max(ncu_releases))]:
        path = tmp_path / f"{kind}.ncu-rep"
        one = saxpy(kind=kind, metrics=metrics, instances={"only__instances": [(1, 2.5), (2, 3)]}, **more)
        write_report(path, ReportData([one, one], SESSION))
        for release in (each for each in ncu_releases if each >= since):
            raw = ncu(path, "--page", "raw", "--csv", "--print-units", "base", release=release)
            all_of_it = ("--print-details", "all") if release >= "2024" else ("--details-all",)
            details = ncu(path, "--page", "details", *all_of_it, release=release)
            session = ncu(path, "--page", "session", release=release) if release >= "2024" else ""  # older ones have none
            assert not COMPLAINTS.findall(raw + details + session), (kind, release)
            _, row = table(raw)
            assert (row["ID"], row["Process Name"], row["Host Name"]) == ("1", "app", "box")
            assert row["Kernel Name"] == ("saxpy(int, float *)" if kind == "kernel" else kind)
            assert float(row["dram__bytes.sum"].replace(",", "")) == 1e9 + 0.25
            assert float(row["gpu__time_duration.sum"].replace(",", "")) == 12345.5
            assert [row[name] for name in ("launch__grid_size", "my__own", "text__metric")] == ["256", "7", "a b"]
            shown = ["Section: My section", "outer", "inner", *(["My traffic", "Do this."] if kind == "kernel" else [])]
            later = ["My chart", *(["OPT   Est. Speedup: 12.5%"] if kind == "kernel" else [])]
            assert [text for text in shown + later * (release >= "2024") if text not in details] == [], (kind, release)
            assert details.index("outer") < details.index("inner")
            wanted = ("NVIDIA A100-PCIE-40GB", "/home/user/app", SESSION.command_line, "550.54") if session else ()
            assert [text for text in wanted if text not in session] == [], (kind, release)
    words = ("--csv", "--print-metric-instances", "details", "--print-nvtx-rename", "kernel")
    newest = ncu(tmp_path / "kernel.ncu-rep", "--page", "raw", *words)
    assert "(1: 2.50; 2: 3)" in newest
    assert "inner/saxpy" in newest  # the innermost range, hence the last of `Kernel.nvtx`
