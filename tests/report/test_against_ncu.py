"""Every metric value and instance of every real report is what NVIDIA's own ncu prints."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Instances, Kernel, Value, read_report

pytestmark = [pytest.mark.ncu, pytest.mark.reports]
Printed = list[dict[str, str]]
LAST_OF_IDENTITY = "CC"  # the columns behind it are metrics
NOT_PRINTED = ("group:", "breakdown:")
ADDRESS = re.compile(r"\b0x[0-9a-f]+(?=:)")  # how some correlation ids are printed


@pytest.fixture(scope="module")
def printed(
    real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Printed]:
    """What the newest ncu prints for each report: one row per kernel."""
    newest = ncu_releases[max(ncu_releases)]
    home = tmp_path_factory.mktemp("home")
    with ThreadPoolExecutor(2) as pool:
        outputs = pool.map(lambda path: _raw_page(newest, path, home), real_reports.values())
        return dict(zip(real_reports, outputs, strict=True))


def _raw_page(ncu: Path, report: Path, home: Path) -> Printed:
    words: list[str | Path] = [
        ncu,
        "--import",
        report,
        "--page",
        "raw",
        "--csv",
        "--print-units",
        "base",
        "--print-metric-instances",
        "details",
    ]
    words += ["--print-kernel-base", "mangled"]  # the demangled name is printed without its namespaces
    done = subprocess.run(words, capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    if done.returncode != 0:
        return []
    csv.field_size_limit(2**31 - 1)  # a cell may hold every instance of a metric
    header, _units, *rows = csv.reader(io.StringIO(done.stdout.decode("utf-8", "replace"), newline=""))
    return [dict(zip(header, row, strict=True)) for row in rows]


def _as_printed(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.0f}" if value.is_integer() else f"{value:.2f}"
    return str(value)


def _cell(value: Value | None, instances: Instances) -> str:
    if not instances:
        return "no data" if value is None else _as_printed(value)
    listed = "; ".join(f"{_as_printed(correlation)}: {_as_printed(element)}" for correlation, element in instances)
    return f"{_as_printed(value)} ({listed})".strip()


def _expected(kernel: Kernel) -> dict[str, str]:
    metrics = kernel.metrics
    names = (name for name in metrics.names() if not name.startswith(NOT_PRINTED))
    return {name: _cell(metrics.get(name), metrics.instances(name)) for name in names}


def _for_each_kernel(
    reports: dict[str, Path], printed: dict[str, Printed], check: Callable[[str, Kernel, dict[str, str]], list[str]]
) -> None:
    """Fails with what ``check`` finds over all kernels of the reports that ncu opens; skips aloud what it doesn't open."""
    problems, unopened = list[str](), list[str]()
    for name, path in reports.items():
        if not printed[name]:
            unopened.append(name)
            continue
        with read_report(path) as report:
            assert len(report) == len(printed[name]), name
            for kernel, row in zip(report.kernels, printed[name], strict=True):
                problems += [f"{name} kernel {kernel.index}: {problem}" for problem in check(name, kernel, row)]
    assert not problems, f"{len(problems)} differences, first: " + "\n".join(problems[:10])
    assert len(unopened) < len(reports)
    if unopened:
        pytest.skip(f"everything else agrees, but this ncu does not open {', '.join(unopened)}")


@pytest.mark.exhaustive
def test_values_and_instances(real_reports: dict[str, Path], printed: dict[str, Printed]) -> None:
    def check(_name: str, kernel: Kernel, row: dict[str, str]) -> list[str]:
        expected = _expected(kernel)
        names = list(row)
        shown = {
            name: ADDRESS.sub(lambda found: str(int(found[0], 16)), row[name])
            for name in names[names.index(LAST_OF_IDENTITY) + 1 :]
        }
        lost = [f"{name} is read but not printed" for name in expected.keys() - shown.keys()]
        # A column is printed for every kernel once some kernel has the metric.
        other = [
            f"{name}: printed {cell[:80]!r}, read {expected.get(name, '')[:80]!r}"
            for name, cell in shown.items()
            if cell != expected.get(name, "")
        ]
        return lost + other

    _for_each_kernel(real_reports, printed, check)


@pytest.mark.exhaustive
def test_names_and_launches(real_reports: dict[str, Path], printed: dict[str, Printed]) -> None:
    def check(_name: str, kernel: Kernel, row: dict[str, str]) -> list[str]:
        launch, device = kernel.launch, kernel.device
        assert device is not None
        read = {
            "ID": str(kernel.index),
            "Process ID": str(kernel.process.id),
            "Process Name": kernel.process.name.rpartition("/")[2],
            "Host Name": kernel.process.host,
            "Kernel Name": launch.mangled_name,
            "Context": str(launch.context),
            "Stream": str(launch.stream),
            "Block Size": str(launch.block),
            "Grid Size": str(launch.grid),
            "CC": "{}.{}".format(*device.compute_capability or ()),
        }
        return [f"{key}: printed {row[key]!r}, read {value!r}" for key, value in read.items() if row[key] != value]

    _for_each_kernel(real_reports, printed, check)


def test_columns_are_the_values(real_reports: dict[str, Path]) -> None:
    for name, path in real_reports.items():
        with read_report(path) as report:
            columns = report.columns(report.metric_names)
            for kernel in report.kernels:
                row = {key: column[kernel.index] for key, column in columns.items()}
                values = {key: value for key, value in row.items() if value is not None}
                assert {key: repr(value) for key, value in values.items()} == {
                    key: repr(value) for key, value in kernel.metrics.items()
                }, name


def test_versions_and_devices_are_those_of_the_inventory(real_reports: dict[str, Path]) -> None:
    inventory = next(iter(real_reports.values())).parent / "INVENTORY.csv"
    if not inventory.exists():
        pytest.skip("no INVENTORY.csv beside the reports")
    with inventory.open(encoding="utf-8", newline="") as file:
        expected = {row["file"]: row for row in csv.DictReader(file)}
    for name, path in real_reports.items():
        with read_report(path) as report:
            device = report.device
            assert device is not None
            assert report.devices == (device,)
            assert report.ncu_version == expected[name]["ncu_version"]
            assert len(report) == int(expected[name]["kernels"])
            assert device.name == expected[name]["gpu"]
            assert device.compute_capability == tuple(int(part) for part in expected[name]["compute_capability"].split("."))
