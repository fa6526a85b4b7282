"""Counters, opcodes and sets against NVIDIA's own tools and real reports: names that exist, sums that agree."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ncu_roofline.chips import Architecture, load_opcodes, load_spec, load_stalls
from ncu_roofline.chips.fields import WeightedSum, parse_release
from ncu_roofline.chips.formulas import summed
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.source_counters import STALLED
from ncu_roofline.chips.tables import load_sets
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import libraries
from tests.factory import THREADS, WARPS

SPEC = load_spec()
NO_TENSOR_CORES = {"TU116", "TU117"}
NEWER_THAN_THE_LIBRARY = {"lts__t_sectors_aperture_sysmem": (12, 0)}  # in libraries from CUDA 13.5 on
CHIPS = [(architecture, chip) for architecture in SPEC.architectures for chip in architecture.chips]
OLD = [
    pytest.param(one, chip, id=chip, marks=() if chip == "GA100" else pytest.mark.exhaustive)
    for one, chip in CHIPS
    if one.compute_capability <= (9, 0)
]


def bound(architecture: Architecture, chip: str) -> set[str]:
    """All counters, of work, traffic, peaks and clocks."""
    capability, names = architecture.compute_capability, set[str]()
    for binding in (one for item in (*SPEC.precisions, *SPEC.levels) for one in SPEC.bindings(item, capability)):
        names.update(binding.counters.counters(), binding.peak.counters() if binding.peak else ())
        names |= {f"{binding.clock}__cycles_elapsed"} if binding.clock else set()
    names = {name for name in names if NEWER_THAN_THE_LIBRARY.get(name) != capability}
    return {name for name in names if not (chip in NO_TENSOR_CORES and "ops_path_tensor" in name)}


def printed(binary: Path, home: Path, *words: str) -> str:
    done = subprocess.run([binary, *words], capture_output=True, text=True, env={**os.environ, "HOME": str(home)}, check=False)
    return done.stdout


@pytest.mark.ncu
@pytest.mark.parametrize(("architecture", "chip"), OLD)
def test_ncu_knows_the_counters(architecture: Architecture, chip: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """Of the chips up to Ada and Hopper."""
    if "2024.2" not in ncu_releases:
        pytest.skip("no Nsight Compute 2024.2 among the releases")
    listed = printed(ncu_releases["2024.2"], tmp_path, "--query-metrics", "--chips", chip.lower())
    known = {line.split()[0] for line in listed.splitlines() if "__" in line}
    if not known:
        pytest.skip(f"this Nsight Compute does not know {chip}")
    assert bound(architecture, chip) - known == set()


def test_the_metric_library_knows_the_counters() -> None:
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    known = [(found, bound(architecture, chip)) for architecture, chip in CHIPS if (found := chips.chip(chip))]
    assert len(known) > 10
    for found, wanted in known:
        assert {name for name in wanted if found.verdict(f"{name}.sum") != chips.OK} == set(), found


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_sections_of_real_releases(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for name, binary in ncu_releases.items():
        release = parse_release(name)
        for one in load_sets().of(release):
            chosen = "default" if one.name == "basic" and release < (2024, 1) else one.name
            listed = printed(binary, tmp_path, "--set", chosen, "--list-sections")
            sections = set(re.findall(r"^(\w+) .* yes ", listed, re.MULTILINE))
            assert load_sets().made(release, sections) is one, (name, one.name, sections)


# Bindings against each other.

A100, A40 = "a100-ncu2022.4-full-1.ncu-rep", "a40-ncu2022.1-full-1.ncu-rep"


def counted(path: Path, launch: int, counters: WeightedSum | dict[str, float]) -> float | None:
    """The sum over ``.sum`` metrics of a launch, None if one is missing."""
    terms = counters if isinstance(counters, WeightedSum) else WeightedSum.of(counters)
    metrics = read_report(path).kernels[launch].metrics
    names = [f"{name}.sum" for name in terms.counters()]
    return summed(terms, metrics.__getitem__, ".sum") if all(name in metrics for name in names) else None


@pytest.mark.reports
def test_bindings_agree_where_two_can_be_evaluated(real_reports: dict[str, Path]) -> None:
    a100, a40 = real_reports[A100], real_reports[A40]
    l1, shared = (SPEC.bindings(SPEC.level(level), (8, 6)) for level in ("l1", "shared"))
    of_l2 = SPEC.bindings(SPEC.level("l2"), (8, 0))
    from_l1 = next(b for b in of_l2 if "l1tex__m_l1tex2xbar_write_bytes" in b.counters.counters())
    for launch in (0, 1, 2):  # requests that arrive at L2 against bytes that L1 reads and writes
        assert counted(a100, launch, from_l1.counters) == pytest.approx(counted(a100, launch, of_l2[0].counters), rel=0.05)
    # Total counters of L2 hold more: what passes between its halves.
    total, of_sms, between = (
        counted(a100, 0, {f"lts__t_sectors{of}": 32}) for of in ("", "_srcunit_tex", "_srcunit_ltcfabric")
    )
    assert total > 1.3 * of_sms
    assert of_sms + between == pytest.approx(total, rel=0.01)
    for path in (a100, a40):
        by_bytes, by_sectors = (
            counted(path, 0, {f"dram__{kind}_{way}": each for way in ("read", "write")})
            for kind, each in (("bytes", 1), ("sectors", 32))
        )
        assert by_bytes == pytest.approx(by_sectors, rel=0.01)
    # Wavefronts by operation are the instructions' own; the total exceeds them, and is not zero without any shared memory.
    first, whole = next(one for one in shared if "cache_bypass" in one.counters.text()).counters, {WAVEFRONTS: 128}
    assert counted(a40, 1, first) == 128 * read_report(a40).kernels[1].metrics["memory_l1_wavefronts_shared"]
    assert counted(a40, 1, whole) > counted(a40, 1, first)
    assert (counted(a40, 0, first), counted(a40, 0, whole) > 0) == (0, True)
    # The sum over operations sees a kernel that only stores; 4 sectors of 32 B for each warp.
    values = [value for b in l1 if (value := counted(a40, 0, b.counters)) is not None]
    assert values[0] == pytest.approx(counted(a40, 0, {"lts__t_sectors_srcunit_tex": 32}), rel=0.01)


WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"


@pytest.mark.reports
@pytest.mark.parametrize(("name", "chip", "per_sm"), [(A100, (8, 0), (64, 128)), (A40, (8, 6), (4, 256))])
def test_recorded_peaks_are_the_architecture_s(
    real_reports: dict[str, Path], name: str, chip: tuple[int, int], per_sm: tuple[int, int]
) -> None:
    metrics, architecture = read_report(real_reports[name]).kernels[0].metrics, SPEC.architecture(chip)
    for precision, expected in zip(("fp64", "fp32"), per_sm, strict=True):
        binding = SPEC.bindings(SPEC.precision(precision), chip)[0]
        peak = summed(binding.peak, metrics.__getitem__, ".sum.peak_sustained")
        assert peak / metrics["device__attribute_multiprocessor_count"] == expected
        assert architecture.peak(f"{precision}.fma") == expected
    per_bit, per_slice = (architecture.bandwidth[level].bytes for level in ("dram", "l2"))
    assert per_bit * metrics["device__attribute_global_memory_bus_width"] == metrics["dram__bytes.sum.peak_sustained"]
    assert per_slice == 32 * metrics["lts__t_sectors_srcunit_tex.avg.peak_sustained"]


# Opcodes.

CLOCK, TIME = "smsp__cycles_elapsed.avg.per_second", "gpu__time_duration.sum"
WORKING = re.compile(r"U?[A-Z]*MMA|[FDH](ADD|MUL|FMA)|I(ADD|MAD|MUL|MMA)|H(ADD|MUL|FMA)2")
# Instructions of a warp per cycle of an SM that are 100 % of sm__inst_executed_pipe_UNIT, by compute capability.
PEAKS = {
    (7, 0): {"xu": 0.5},
    (8, 0): {"alu": 2, "fma": 2, "fp64": 1, "xu": 0.5},
    (8, 6): {"alu": 2, "fma": 4, "xu": 0.5},
}


def instances(kernel: Kernel, metric: str) -> dict[str, float]:
    return {str(name): float(value) for name, value in kernel.metrics.instances(metric)} if metric in kernel.metrics else {}


def by_counters(kernel: Kernel, letter: str) -> float | None:
    """What NVIDIA's counters of adds, multiplies and fused ones say, from sums per cycle; None where one is missing."""
    names = [
        f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum.per_cycle_elapsed" for kind in ("add", "mul", "fma")
    ]
    if not all(name in kernel.metrics for name in (*names, CLOCK, TIME)):
        return None
    rates = sum(weight * float(kernel.metrics[name]) for name, weight in zip(names, (1, 1, 2), strict=True))
    return rates * float(kernel.metrics[CLOCK]) * float(kernel.metrics[TIME]) / 1e9


@pytest.mark.reports
def test_opcodes_of_real_reports(real_reports: dict[str, Path]) -> None:
    """Every one is known, and sums equal NVIDIA's own counters of work and of units; tensor instructions are of whole warps."""
    table, seen, tensor, compared = load_opcodes(), set[str](), set[str](), Counter[str]()
    for name, path in real_reports.items():
        for kernel in read_report(path).kernels:
            by_thread, by_warp = instances(kernel, THREADS), instances(kernel, WARPS)
            if not by_thread:
                continue
            chip = kernel.device.compute_capability
            works = {opcode: table.work(opcode, chip) for opcode in by_thread}
            assert not any(table.unknown(opcode, chip) for opcode in by_thread), name
            does = {opcode for opcode in works if WORKING.match(opcode) and not opcode.startswith("IMAD.MOV")}
            assert all(works[opcode] for opcode in does), name
            seen |= does
            for precision, letter in (("fp64", "d"), ("fp32", "f")):
                of = [work.weight * by_thread[one] for one, work in works.items() if work and work.precision == precision]
                if (counters := by_counters(kernel, letter)) is not None:
                    assert sum(of) == pytest.approx(counters, rel=1e-6, abs=0), (name, precision)
                    compared[precision] += counters > 0
            for opcode in by_warp:
                if (work := table.work(opcode, chip)) and work.per == "warp":
                    assert by_thread[opcode] == 32 * by_warp[opcode], (name, opcode)
                    tensor.add(opcode)
            compared.update(pipes(kernel, chip, by_warp, name) if "full" in name else ())
    known = {"HMMA.16816.F16", "HMMA.1688.F16", "IMMA.8816.S8.S8.SAT"}
    assert known | {"HFMA2.MMA", "DFMA", "IMAD.WIDE.U32"} <= seen
    assert known <= tensor
    assert compared["fp64"] >= 20
    assert min(compared[one] - 4 for one in ("fp32", "alu", "fma", "xu", "pipe fp64")) > 0


def pipes(kernel: Kernel, chip: tuple[int, int], by_warp: dict[str, float], about: str) -> list[str]:
    """Units of which a launch has both counts; warps of some kernels race, so that passes differ by several percent."""
    metrics = kernel.metrics
    cycles, sms = metrics.get("sm__cycles_active.avg"), metrics.get("device__attribute_multiprocessor_count")
    if not by_warp or not cycles or not sms:
        return []
    sums, told = Counter[str](), []
    for opcode, count in by_warp.items():
        sums[load_opcode_units().of(opcode, chip)] += count
    for unit, peak in PEAKS.get(chip, {}).items():
        share = metrics.get(f"sm__inst_executed_pipe_{unit}.avg.pct_of_peak_sustained_active")
        if share and sums[unit] > 1e-3 * sum(sums.values()):
            assert sums[unit] == pytest.approx(share / 100 * peak * cycles * sms, rel=0.1), f"{about} {unit}"
            told.append(f"pipe {unit}" if unit == "fp64" else unit)
    return told


@pytest.mark.reports
def test_every_reason_of_real_reports_is_known(real_reports: dict[str, Path]) -> None:
    names = {name for path in real_reports.values() for one in read_report(path).kernels for name in one.metrics.names()}
    reasons = {name.removeprefix(STALLED).removesuffix("_not_issued") for name in names if name.startswith(STALLED)}
    if not reasons:
        pytest.skip("no report with samples")
    assert reasons <= load_stalls().keys()
