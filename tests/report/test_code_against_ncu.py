"""Addresses, and values by address, are those of the source page of NVIDIA's own ncu; what we write, it disassembles."""

from __future__ import annotations

import csv
import io
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Kernel, KernelData, ReportData, read_report, write_report

pytestmark = [pytest.mark.ncu, pytest.mark.reports, pytest.mark.exhaustive]
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
Page = list[tuple[str, list[dict[str, str]]]]


def source_page(ncu: Path, report: Path, home: Path) -> Page:
    """(mangled name, a row per instruction) of each kernel; empty where this ncu prints nothing."""
    words = [ncu, "--import", report, "--page", "source", "--csv", "--print-kernel-base", "mangled"]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    pages: Page = []
    header: list[str] = []
    for row in csv.reader(io.StringIO(done.stdout.decode("utf-8", "replace"), newline="")):
        if row[:1] == ["Kernel Name"]:
            pages.append((row[1], []))
        elif row[:1] == ["Address"]:
            header = row
        elif pages and len(row) == len(header):
            pages[-1][1].append(dict(zip(header, row, strict=True)))
    return pages


def newest(releases: dict[str, Path]) -> Path:
    return releases[max(releases)]


def pages_of(kernel: Kernel, pages: Iterator[tuple[str, list[dict[str, str]]]]) -> Page:
    """The next pages: of the kernel and the functions that it calls, of all of the module where the report lists none."""
    listed = kernel.metrics.instances(FUNCTIONS) if kernel.metrics.has_name(FUNCTIONS) else ()
    code = kernel.code
    return list(itertools.islice(pages, len(listed) or len(code.functions if code else ())))


def test_addresses_and_values(real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    compared = dict.fromkeys(COLUMNS, 0)
    for path in (path for name, path in real_reports.items() if "full" in name or "custom" in name):
        pages = iter(source_page(newest(ncu_releases), path, tmp_path))
        with read_report(path) as report:
            for kernel in report.kernels:
                functions = pages_of(kernel, pages)
                rows = {int(row["Address"], 16): row for _, page in functions for row in page}
                assert kernel.base_address() == int(dict(functions)[kernel.mangled_name][0]["Address"], 16), path
                for column in COLUMNS.keys() & functions[0][1][0].keys():
                    values = dict(zip(*kernel.metrics.by_address(COLUMNS[column]), strict=True))
                    printed = {address: float(row[column]) for address, row in rows.items()}
                    outside = {address for address in values if address not in rows}
                    assert not outside or COLUMNS[column].startswith(SAMPLES), f"{path} {kernel.index} {column}"
                    values = {address: value for address, value in values.items() if address in rows}
                    assert dict.fromkeys(rows, 0.0) | values == printed, f"{path} {kernel.index} {column}"
                    compared[column] += len(values)
        assert next(pages, None) is None, path
    assert min(compared.values()) > 100, compared


def test_code_that_we_write(real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    original, copy = real_reports["v100-ncu2022.2-full-1.ncu-rep"], tmp_path / "copy.ncu-rep"
    with read_report(original) as report:
        kernels = [
            KernelData(
                one.name,
                one.function_name,
                one.mangled_name,
                metrics=dict(one.metrics),
                instances={name: one.metrics.instances(name) for name in one.metrics.names()},
                sections=one.sections,
                code=one.code,
            )
            for one in report.kernels
        ]
        write_report(copy, ReportData(kernels, report.session))
    pages = [source_page(newest(ncu_releases), path, tmp_path) for path in (original, copy)]
    assert pages[0] == pages[1]
    assert any("IMAD" in row["Source"] for _, rows in pages[0] for row in rows)
