"""Tables of words and bounds: sets of sections, stall reasons, bounds of metrics, headers of libraries, counters of rules."""

from __future__ import annotations

import os
import re
import subprocess
from importlib import resources
from pathlib import Path
from string import Formatter

import pytest

from ncu_roofline.chips import load_instructions, load_spec, load_stalls, load_units
from ncu_roofline.chips.fields import LAST_RELEASE
from ncu_roofline.chips.findings import of_library
from ncu_roofline.chips.tables import load_limits, load_sets
from ncu_roofline.formats.report import read_report
from ncu_roofline.model.extract import spellings

BASIC = ("SpeedOfLight", "LaunchStats", "Occupancy")
MEMORY = tuple(f"MemoryWorkloadAnalysis{part}" for part in ("", "_Chart", "_Tables"))
FULL = (*BASIC, *MEMORY, "SourceCounters", "WarpStateStats", "ComputeWorkloadAnalysis")
ROOFLINE = tuple(f"SpeedOfLight_Hierarchical{p}RooflineChart" for p in ("Double", "Half", "Single", "Tensor"))
CHART = "SpeedOfLight_RooflineChart"
SETS = [
    ((2020, 3), BASIC, "basic"),
    ((2024, 1), (*BASIC, "WorkloadDistribution"), "basic"),
    ((2020, 3), (*FULL, CHART), "full"),
    ((2025, 2), (*FULL, *ROOFLINE, CHART), "full"),
    ((2023, 1), ("SpeedOfLight", CHART, *ROOFLINE), "roofline"),
    ((2021, 1), ("SpeedOfLight", CHART, *ROOFLINE), ""),  # no such set then
    ((2021, 2), ("SourceCounters",), "source"),
    ((2021, 2), ("SchedulerStats", "SourceCounters", "WarpStateStats"), ""),
    ((2024, 2), (ROOFLINE[0], "Occupancy"), ""),
    ((2024, 2), (), ""),
]


def test_the_set_that_a_report_was_made_with() -> None:
    for release, sections, name in SETS:
        found = load_sets().made(release, iter(sections))
        assert (found.name if found else "") == name, (release, sections)
    for one in load_sets().sets:
        assert set(one.work) <= {"tensor", *(p.id for p in load_spec().precisions)}
        assert set(one.traffic) <= {level.id for level in load_spec().levels}
    for release in ((2020, 1), (2021, 3), (2023, 1), (2024, 3), (2025, 4), (2026, 3), LAST_RELEASE):
        names = [one.name for one in load_sets().of(release)]
        assert len(set(names)) == len(names)
        assert {"basic", "detailed", "full"} <= set(names)


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_sections_of_real_releases(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for name, binary in ncu_releases.items():
        year, number = map(int, name.split("."))
        for one in load_sets().of((year, number)):
            chosen = "default" if one.name == "basic" and year < 2024 else one.name
            words, home = [binary, "--set", chosen, "--list-sections"], {**os.environ, "HOME": str(tmp_path)}
            done = subprocess.run(words, capture_output=True, text=True, env=home, check=False)
            sections = set(re.findall(r"^(\w+) .* yes ", done.stdout, re.MULTILINE))
            assert load_sets().made((year, number), sections) is one, (name, one.name, sections)


BOUNDS = {
    "gpu__time_duration.sum": "time",
    "sm__cycles_elapsed.avg.per_second": "clock",
    "dram__cycles_elapsed.avg.per_second": "memory-clock",
    "sm__cycles_elapsed.max": "count",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": "count",
    "sm__inst_executed.sum": "count",
    "sm__ops_path_tensor_src_fp16.sum.per_second": "count",
    "lts__t_sectors_srcunit_tex_lookup_miss.sum": "difference",
    "lts__t_sectors.sum": "count",
    "dram__bytes.sum": "count",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "count",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "percentage",
    # Others stay as they are.
    "device__attribute_display_name": "",
    "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed": "",  # text
    "derived__mine_bytes.sum": "",
    "someone__bytes.sum": "",
    "my_metric": "",
    "smsp__average_warp_latency_per_inst_issued.ratio": "",
    "lts__t_bytes" + "x" * 1000 + ".sum": "",
}


def test_metrics_have_their_bounds() -> None:
    limits = load_limits()
    assert {name: found.id if (found := limits.bound(name)) else "" for name in BOUNDS} == BOUNDS
    assert limits.slices == 960
    assert limits.seconds == pytest.approx(3.2e7)
    bindings = [one for owner in (*load_spec().precisions, *load_spec().levels) for one in owner.bindings]
    read = spellings([one.counters for one in bindings], [one.peak for one in bindings if one.peak])
    assert [name for name in {*read, *load_units().metrics()} if limits.bound(name) is None] == []


# Of words that ask for it, and of no others: what a sentence is filled with -> the words where it is known.
FILLED = {"dram": ("dram", "no_dram"), "warps": ("few_blocks", "last_wave", "few_warps"), "slow": ("slow",)}
FILLED |= {"warps_possible": ("capped",), "limits": ("capped",), "waves": ("last_wave",)}


def test_why_warps_wait_is_said_in_sentences() -> None:
    for name, stall in load_stalls().items():
        assert name.islower()
        assert not stall.waits.endswith("."), name
        assert f"{stall}".isascii(), name
        for one in (*stall.cause, *stall.advice):
            assert one.text.endswith("."), name
            assert one.text[0].isupper(), name
            for _, field, _, _ in Formatter().parse(one.text):
                assert field is None or set(FILLED[field]) & set(one.where), (name, one.text)
    idle = {name for name, stall in load_stalls().items() if not stall.advice}
    assert idle == {"selected", "not_selected", "misc"}


def test_every_reason_of_real_reports_is_known(real_reports: dict[str, Path]) -> None:
    start, end = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"
    seen = set()
    for path in real_reports.values():
        with read_report(path) as report:
            seen |= {name for kernel in report.kernels for name in kernel.metrics.names() if name.startswith(start)}
    if not seen:
        pytest.skip("no report with samples")
    assert {name.removeprefix(start).removesuffix(end) for name in seen} <= load_stalls().keys()


OF_LIBRARIES = [
    "/usr/local/cuda/include/crt/mma.hpp",
    "mma.hpp",
    "/usr/local/cuda-12.4/targets/x86_64-linux/include/cuda/std/barrier",
    "/home/me/cutlass/include/cutlass/arch/barrier.h",
    "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.3\\include\\cooperative_groups.h",
    "/usr/include/c++/11/bits/stl_algo.h",
    "/opt/nvidia/hpc_sdk/Linux_x86_64/23.1/cuda/12.0/include/cuda_fp16.hpp",
    "/home/me/lib/python3.10/site-packages/triton/language/standard.py",
    "/home/me/.julia/packages/LLVM/WjSQG/src/interop/base.jl",
    "./int.jl",
]
OF_THE_KERNEL = [
    "gemm.cu",
    "/home/me/cutlass/examples/00_basic/basic.cu",  # no header
    "/home/me/cuda/kernels.cuh",
    "src/include/kernel.hpp",
    "/home/me/src/IndexSpaces.jl",
    "model.F90",
    "",
]


def test_headers_of_toolkits_and_libraries() -> None:
    assert [path for path in OF_LIBRARIES if not of_library(path)] == []
    assert [path for path in OF_THE_KERNEL if of_library(path)] == []


def test_the_rule_on_access_patterns_reads_the_counters_of_the_instruction_roofline() -> None:
    known = {counter for kind in load_instructions().kinds for one in kind.formulas() for counter in one.counters()}
    rules = resources.files("ncu_roofline.plugin.generate") / "templates" / "rules"
    text = (rules / "access_pattern.py.j2").read_text(encoding="utf-8")
    pairs = re.search(r"COUNTERS = \((.*?)\n\)", text, re.DOTALL)
    assert pairs
    named = [name.format("ld") for name in re.findall(r'"([a-z_0-9{}]+)"', pairs[1])]
    assert len(named) == 4
    assert set(named) <= known
    for prefix in ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "smsp__sass_inst_executed_op_shared_"):
        assert prefix in text
        assert {f"{prefix}ld", f"{prefix}st"} <= known
