"""Counters and opcodes against NVIDIA's own tools and real reports; PTX, whose shapes and types state the work."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from ncu_roofline.chips import Architecture, OpcodeWork, kind_of, load_opcodes, load_spec, load_stalls
from ncu_roofline.chips.fields import SpecError, WeightedSum, parse_capability, parse_release, parse_target, read
from ncu_roofline.chips.formulas import covers, summed
from ncu_roofline.chips.opcodes import KINDS, LONGEST, OTHER, _File, load_opcode_kinds, load_opcode_units
from ncu_roofline.chips.source_counters import STALLED
from ncu_roofline.chips.tables import load_sets
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import libraries
from tests.factory import THREADS, WARPS
from tests.facts import sassing
from tests.facts.sassing import Case, cases
from tests.facts.stated import FACTS

CASES = {case.ptx: case for case in cases()}
RECORDED = sassing.read()
TARGETS = (*sassing.OLD_TARGETS, *sassing.TARGETS)
Capability = tuple[int, int]

SOURCES, ACCUMULATORS, ARITHMETIC = (FACTS["ptx"][name] for name in ("sources", "accumulators", "arithmetic"))


def capability(target: str) -> Capability:
    found = parse_target(target)
    assert found
    return found


def stated(case: Case) -> str:
    """The precision that PTX names: of two 8-bit types, the narrower one's."""
    if "mxf4" in case.ptx:
        return "tensor.fp4"
    found = {SOURCES[one] for one in case.types}
    return "tensor.fp6fp4" if "tensor.fp6fp4" in found else found.pop()


def executed(case: Case, chip: Capability) -> tuple[str, float]:
    """Precision and operations of the tensor instructions that a chip without such ones takes instead; PTX's own elsewhere."""
    precision, work = stated(case), case.work
    if case.family == "wgmma":
        return precision, work
    if precision in ("tensor.fp8", "tensor.fp6fp4") and (9, 0) <= chip < (12, 0):
        return "tensor.fp16", work  # unpacked to FP16
    eights = ".m8n8k" in case.ptx and case.types[0] in ("s8", "u8", "s4", "u4", "b1")
    padded = 2 * work if eights and chip >= (10, 0) else work  # there is no instruction of 8 rows any more
    if (precision == "tensor.int4" and chip >= (9, 0)) or (precision == "tensor.int1" and chip >= (10, 0)):
        return "tensor.int8", padded
    if precision == "tensor.int1" and chip == (9, 0) and ".xor" in case.ptx:
        return precision, 2 * work  # of two ANDs
    return precision, padded


def works(opcodes: dict[str, int], chip: Capability) -> list[tuple[OpcodeWork, int]]:
    table = load_opcodes()
    assert not [one for one in opcodes if table.unknown(one, chip)]
    return [(work, count) for one, count in opcodes.items() if (work := table.work(one, chip))]


def recorded(family: tuple[str, ...], target: str) -> list[tuple[Case, dict[str, int]]]:
    found = [(CASES[ptx], by_target[target]) for ptx, by_target in RECORDED.items() if target in by_target]
    return [(case, opcodes) for case, opcodes in found if case.family in family]


def test_products() -> None:
    """The weights of what one PTX product becomes add up to 2 M N K of the PTX shape, of its types."""
    for target in TARGETS:
        chip, looked_at = capability(target), 0
        for case, opcodes in recorded(("mma", "wgmma"), target):
            tensor = [(work, count) for work, count in works(opcodes, chip) if work.per == "warp"]
            if case.ptx.startswith("mma.sync.aligned.m8n8k4.") and case.types[0] == "f16" and chip >= (8, 0):
                assert not tensor, case.ptx  # made of FFMA on all but Volta and Turing
                continue
            precision, operations = executed(case, chip)
            warps = 4 if case.family == "wgmma" else 1
            assert sum(work.weight * count for work, count in tensor) * warps == operations, (case.ptx, opcodes)
            said = {(w.precision, w.family, w.sparse, w.accumulator, w.proven) for w, _ in tensor}
            of = precision, case.family, case.sparse, ACCUMULATORS[case.accumulator], case.family == "mma"
            assert said == {of}, case.ptx
            looked_at += 1
        assert looked_at >= {(7, 0): 14, (7, 2): 20}.get(chip, 30)


def test_every_shape_and_type_is_there() -> None:
    seen: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for case in (CASES[ptx] for ptx in RECORDED if CASES[ptx].family in ("mma", "wgmma")):
        seen[case.family].add((stated(case), case.sparse))
    types, dense_only = set(SOURCES.values()) | {"tensor.fp4"}, {"tensor.fp64", "tensor.int1"}
    both = {(one, sparse) for one in types for sparse in (False, True) if not (sparse and one in dense_only)}
    not_of_wgmma = {"tensor.fp64", "tensor.int4", "tensor.fp4", "tensor.fp6fp4"}
    assert seen == {"mma": both, "wgmma": {pair for pair in both if pair[0] not in not_of_wgmma}}


def test_tcgen05_is_unknown() -> None:
    table, names = load_opcodes(), set()
    for target in ("sm_100a", "sm_103a", "sm_110a"):
        found, chip = recorded(("tcgen05",), target), capability(target)
        assert len(found) > 20
        for case, opcodes in found:
            tensor = [one for one in opcodes if "MMA" in one]
            assert tensor, case.ptx
            assert all(table.unknown(one, chip) and table.work(one, chip) is None for one in tensor)
            names |= {one.partition(".")[0] for one in tensor}
    assert names == {"UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"}


def test_scalars() -> None:
    """Integers: at least one operation each, and of 32-bit ones but for their constants exactly one an instruction."""
    for target in TARGETS:
        chip, seen = capability(target), defaultdict[str, int](int)
        for case, opcodes in recorded(("",), target):
            done, kind = works(opcodes, chip), case.types[0]
            seen["cvt" if case.ptx == "cvt.f32.f16" else "fp" if kind in ARITHMETIC else kind] += 1
            if kind in ARITHMETIC:
                precision, times = ARITHMETIC[kind]
                if kind.endswith("16x2") and not case.ptx.startswith("fma") and any("HFMA2" in one for one in opcodes):
                    times = 2  # packed sums and products made by a fused multiply-add, which its opcode counts as
                assert {(work.precision, work.per, work.conversion) for work, _ in done} == {(precision, "thread", False)}
                assert sum(work.weight * count for work, count in done) == times * case.work, (case.ptx, opcodes)
                assert {work.fused for work, _ in done} == {"FMA" in one for one in opcodes}
            elif kind == "none":
                assert not [work for work, _ in done if work.precision != "int32"], (case.ptx, opcodes)
            elif case.ptx == "cvt.f32.f16":
                assert done == [(OpcodeWork("fp16", 0, "thread", conversion=True), 1)]
            elif kind == "int32":
                integers = [(work.weight, count) for work, count in done if work.precision == "int32"]
                if chip == (7, 0) and case.ptx.startswith(("min", "max")):
                    assert not integers  # a comparison and a selection
                else:
                    assert {weight for weight, _ in integers} == {1}, (case.ptx, opcodes)
        assert min(seen["fp"] - 19, seen["int32"] - 30, seen["none"]) > 0
        assert seen["cvt"] == 1


ODD = ("", ".", "....", "HMMA", "HMMA.", "HMMA..F32", "hmma.16816.f32", "HMMA.16816\0.F32", "\ud800", "FADD*", "HMMA.٣")
LONG = ("HMMA" * 10**6, "HMMA" + ".F32" * 10**6, "A" * LONGEST, "*MMA" * 40)


def test_opcodes_by_hand() -> None:
    table = load_opcodes()
    for opcode, chip, precision, weight in map(str.split, FACTS["weights"]):
        work = table.work(opcode, parse_capability(chip))
        assert (work.precision, work.weight) == (precision, int(weight)), opcode
    for opcode in FACTS["no_work"].split():
        assert (table.work(opcode, (8, 0)), table.unknown(opcode, (8, 0))) == (None, False), opcode
    for chip, *opcodes in map(str.split, FACTS["unknown"]):
        for opcode in opcodes:
            assert table.work(opcode, parse_capability(chip)) is None, opcode
            assert table.unknown(opcode, parse_capability(chip)), opcode
    for text in ODD:
        assert table.work(text, (8, 0)) is None or not table.unknown(text, (8, 0)), text
    for text in LONG:
        assert table.work(text, (8, 0)) is None
        assert table.unknown(text, (8, 0)) == ("MMA" in text)
    assert table.work("FADD" + "." * (LONGEST - 4), (8, 0))


def test_wrong_tables(tmp_path: Path) -> None:
    head = 'neutral = []\nunknown = ["*MMA*"]\n[shapes]\n884 = [8, 8, 4]\n'
    for said, rows in FACTS["wrong"].items():
        (tmp_path / "opcodes.toml").write_text(head + rows, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            read(tmp_path / "opcodes.toml", _File)
        assert "opcodes.toml" in str(caught.value)
        assert said in str(caught.value)


def test_kinds_and_units() -> None:
    """The tables of opcodes agree wherever an opcode does work."""
    for kind, opcodes in FACTS["kinds"].items():
        assert {kind_of(opcode) for opcode in opcodes.split()} == {kind}
    assert kind_of("op 0x1a3") == kind_of("") == OTHER
    made = {name for by_target in RECORDED.values() for opcodes in by_target.values() for name in opcodes}
    assert {name for name in made if kind_of(name) == OTHER} == set()
    table = load_opcode_kinds()
    assert {*table.names.values(), *table.modifiers.values(), OTHER} == set(KINDS)
    units = load_opcode_units()
    for chip, expected in FACTS["units"].items():
        assert {opcode: units.of(opcode, parse_capability(chip)) for opcode in expected} == expected
    for row in load_opcodes().rows:
        for name, modifiers in row.opcodes:
            kind = kind_of(".".join((name, *(modifier.rstrip("*") for modifier in modifiers))))
            expected = {"nothing": "move", "conversion": "conversion", "products": "tensor"}.get(row.does, row.precision)
            assert kind == {"int32": "integer"}.get(expected, expected), name
        if row.precision.startswith("tensor."):  # counters or opcodes tell of its precision on chips where it applies
            spec = load_spec()
            chips = [one.compute_capability for one in spec.architectures if covers(row.capabilities, one.compute_capability)]
            assert chips
            assert all(spec.bindings(spec.precision(row.precision), chip) for chip in chips), row


@pytest.mark.exhaustive
def test_the_record_is_what_the_assembler_gives(tmp_path: Path) -> None:
    """Of wgmma, whose registers take the assembler long, some N."""
    tools = sassing.toolkit()
    if tools is None:
        pytest.skip("no nvcc (set NVCC), or no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    if not sassing.version(*tools).startswith("ptxas 13.0."):
        pytest.skip("the record is of CUDA 13.0")
    some = [case for case in cases() if case.family != "wgmma" or any(f"n{n}k" in case.ptx for n in (8, 40, 128))]
    some, wanted = cases() if os.environ.get("UPDATE_GOLDEN") else some, {case.ptx for case in some}
    found = {target: sassing.opcodes_of(*tools, target, tmp_path, some) for target in sassing.TARGETS}
    if os.environ.get("UPDATE_GOLDEN"):
        sassing.write(found, sassing.version(*tools))
    for target, of_target in found.items():
        assert of_target == {ptx: each[target] for ptx, each in RECORDED.items() if target in each and ptx in wanted}, target


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
    environment = {**os.environ, "HOME": str(home)}
    return subprocess.run([binary, *words], capture_output=True, text=True, env=environment, check=False).stdout


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
    for unit, peak in FACTS["ptx"]["pipes"].get("{}.{}".format(*chip), {}).items():
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
