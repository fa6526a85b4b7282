"""Half-precision work of kernels that load constants by HFMA2, with the machine code in the report and without it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.formats.report import Code
from ncu_roofline.formats.sass.instructions import decode
from ncu_roofline.model import Selection
from ncu_roofline.model import work as works
from ncu_roofline.model.roofline import Roofline
from tests.analyses import source_made
from tests.analyses.source_launches import with_counts
from tests.factory import THREADS, WARPS, by_address, flops, kernel, report, timing, traffic

MIXED = "_Z5mixedPKdPKfPK7__half2PK14__nv_bfloat162Pf"
STENCIL, CALLER, POINTERS, STRIDED = "_Z7stencilPKfPfi", "_Z6callerPfi", "_Z8pointersPfi", "_Z7stridedPKfPfi"
EVERYTHING = Selection(launch=((0, 10**6),))
TAKEN = "by the machine code no arithmetic, but loads of constants"


class Launch:
    """A launch of a compiled kernel with made-up counts of all kinds."""

    def __init__(self, mangled: str, chip: str = "80") -> None:
        function = source_made.functions(chip)[mangled]
        instructions = decode(function.code, function.capability)
        _, counts = source_made.counts(function, 3)
        self.mangled, self.chip = mangled, chip
        self.threads: Counter[str] = Counter()
        self.constants = 0.0
        for one, count in zip(instructions, counts["thread_inst_executed_true"], strict=True):
            self.threads[one.opcode] += count
            self.constants += count if one.constant else 0
        listed = list(self.threads.items())
        self.opcodes = {THREADS: listed, WARPS: [(opcode, count / 32) for opcode, count in listed]}
        self.addresses = by_address(source_made.BASE, **counts)

    def named(self, *names: str) -> int:
        return round(sum(count for opcode, count in self.threads.items() if opcode.partition(".")[0] in names))

    def report(self, path: Path, *instances: dict[str, Any], counters: bool = True, code: Code | None = None) -> Path:
        metrics = {**source_made.device(self.chip), **timing(), **traffic(10**9, 10**7, 10**8)}
        if counters:
            metrics |= flops("h", add=self.named("HADD2"), mul=self.named("HMUL2"), fma=self.named("HFMA2"))
            metrics |= flops("f", add=self.named("FADD"), mul=self.named("FMUL"), fma=self.named("FFMA"))
        merged = {name: values for one in instances for name, values in one.items()}
        return report(path / "r.ncu-rep", kernel(metrics, instances=merged, mangled_name=self.mangled, code=code))

    @property
    def code(self) -> Code:
        return source_made.code_of(self.chip, self.mangled)


def at_dram(result: Roofline) -> pd.DataFrame:
    return result.points[result.points["level"] == "dram"].set_index("precision")


@pytest.mark.parametrize(("mangled", "chip"), [(STENCIL, "80"), (STENCIL, "100"), (CALLER, "80")])
def test_code_without_half_precision_arithmetic_does_none(tmp_path: Path, mangled: str, chip: str) -> None:
    """Also with calls, where what is called is known; counters alone, and opcodes alone."""
    launch = Launch(mangled, chip)
    assert launch.constants
    for instances, counters in (((), True), ((launch.opcodes,), False), ((launch.opcodes,), True)):
        without = roofline(launch.report(tmp_path, *instances, counters=counters))
        assert at_dram(without).loc["fp16", "work"] == 4 * launch.constants
        result = roofline(launch.report(tmp_path, *instances, counters=counters, code=launch.code))
        assert set(result.points["precision"]) <= {"fp32"}
        assert TAKEN in result.kernels["notes"].iloc[0]
        assert result.kernels["work"].iloc[0] == launch.named("FADD", "FMUL") + 2 * launch.named("FFMA")


def test_loads_among_arithmetic_are_counted_by_instruction(tmp_path: Path) -> None:
    """One HFMA2 and one HFMA2.BF16 beside three loads of constants: exact with counts, doubtful without."""
    launch = Launch(MIXED)
    real = {"fp16": 4 * launch.threads["HFMA2"], "bf16": 4 * launch.threads["HFMA2.BF16_V2"]}
    assert launch.constants == 3 * launch.threads["HFMA2"] == launch.threads["HFMA2.MMA"]
    doubtful = at_dram(roofline(launch.report(tmp_path, launch.opcodes, counters=False, code=launch.code)))
    assert doubtful.loc["fp16", "work"] == real["fp16"] + 4 * launch.constants
    assert "which its name does not tell" in doubtful.loc["fp16", "notes"]
    for counters in (False, True):
        file = launch.report(tmp_path, launch.opcodes, launch.addresses, counters=counters, code=launch.code)
        exact = at_dram(roofline(file))
        assert {one: exact.loc[one, "work"] for one in real} == real
        assert "without loads of constants" in exact.loc["fp16", "notes"]
        assert "does not tell" not in exact.loc["fp16", "notes"]
        assert exact.loc["fp16", "fma_share"] == 1
        work = source_roofline(file).totals.set_index("quantity").loc["work"]
        assert work["ratio"] == 1
        assert work["counter"] == exact.drop("mixed")["work"].sum()


def test_what_proves_nothing_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed, stencil, pointers = Launch(MIXED), Launch(STENCIL), Launch(POINTERS, "120")
    unplaced = {name: values for name, values in mixed.addresses.items() if name != "launch__function_pcs"}
    others = Code(source_made.fixtures.cubin("75"))  # of which no instruction explains the counts
    for launch, instances, code in (
        (pointers, {}, pointers.code),  # calls through pointers
        (mixed, unplaced, Code(source_made.fixtures.cubin("80"))),  # the report does not say where the kernel lies
        (stencil, {}, Code(b"\x7fELF")),
        (stencil, {}, others),
    ):
        points = at_dram(roofline(launch.report(tmp_path, instances, code=code)))
        assert points.loc["fp16", "work"] == 2 * launch.named("HADD2", "HMUL2") + 4 * launch.named("HFMA2")
        assert "constants (HFMA2" not in points.loc["fp16", "notes"]
    tenfold = {name: [(key, 10 * value) for key, value in one] for name, one in mixed.addresses.items() if "true" in name}
    for more, loads in (({}, mixed.constants), (tenfold, 0)):  # counts of another launch; counters hold both half precisions
        points = at_dram(roofline(mixed.report(tmp_path, mixed.addresses | more, code=mixed.code)))
        assert points.loc["fp16", "work"] == 2 * mixed.named("HADD2") + 4 * (mixed.named("HFMA2") - loads)
        assert points.loc["fp16", "source"] == "binding"
    monkeypatch.setattr(works, "_LARGEST", 100)  # code larger than any is not looked at
    assert "fp16" in at_dram(roofline(stencil.report(tmp_path, code=stencil.code))).index


def test_benchmarks_on_an_h100(h100_reports: Path) -> None:
    """Each loads one constant; lecture-c works in FP64, and was drawn with four times as much work in FP16."""
    for name, precisions in (("lecture-c", {"fp64"}), ("bench.bf16.fma", {"bf16"}), ("bench.int32.mad", {"int32"})):
        (path,) = h100_reports.glob(f"{name}.ncu-rep*")
        assert set(roofline(path).points["precision"]) == precisions


@pytest.mark.reports
def test_real_kernels_load_constants(real_reports: dict[str, Path]) -> None:
    """22 launches of an A100 work in FP64; one kernel in Julia does arithmetic by HADD2, HMUL2 and HFMA2."""
    found = {}
    for path in with_counts(real_reports):
        result = roofline(path, select=EVERYTHING)
        some = result.points.query("precision == 'fp16' and work > 0")
        taken = result.kernels["notes"].str.contains(TAKEN).sum()
        source = source_roofline(path, select=EVERYTHING).instructions
        by_instruction = source[source["kind"] == "fp16"].groupby("launch")["work"].sum()
        work = some.groupby("launch")["work"].first()
        np.testing.assert_allclose(by_instruction[by_instruction > 0], work)
        found[path.name] = (len(work), taken)
    assert {name: counts for name, counts in found.items() if any(counts)} == {
        "a100-ncu2021.2-custom-sections-1.ncu-rep": (0, 4),
        "a100-ncu2021.2-full-1.ncu-rep": (0, 4),
        "a100-ncu2022.4-full-1.ncu-rep": (0, 14),
        "a40-ncu2022.4-full-1.ncu-rep": (1, 0),
    }
