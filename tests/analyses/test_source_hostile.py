"""The source view on counts that can be none, that contradict each other, and on metrics with hostile names."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import pytest

from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.columns import TABLES
from ncu_roofline.analyses.source.findings import findings
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.sites import About
from ncu_roofline.errors import RooflineError
from ncu_roofline.inputs.source_text import find_source
from ncu_roofline.rendering.data import render_json
from tests import factory
from tests.analyses.source_made import BASE, counts, functions, made_report

GEMM = "_Z4gemmPKfS0_Pfi"


def made(path: Path, chip: str, mangled: str, **options: object) -> SourceRoofline:
    return source_roofline(made_report(path / "made.ncu-rep", chip, mangled, **options))


@pytest.mark.parametrize("odd", [math.nan, -1.0, 1e308, 2.0**64])
def test_counts_that_are_all_none_are_not_called_missing(tmp_path: Path, odd: float) -> None:
    listed = factory.by_address(BASE, inst_executed=[odd] * 8, smsp__pcsamp_sample_count=[odd] * 8)
    path = factory.report(tmp_path / "odd.ncu-rep", factory.kernel(factory.complete(), instances=listed))
    with pytest.raises(RooflineError, match="inst_executed, smsp__pcsamp_sample_count can be no counts") as error:
        source_roofline(path)
    assert "no counts by instruction" not in str(error.value)


ONES, THREADS, MANY = [1.0] * 4, [32.0] * 4, [1.0, 1.0, 1e15, 1.0]
CONTRADICTING = {
    "active": {"inst_executed": ONES, "thread_inst_executed": [33.0] * 4},
    "threads": {"inst_executed": ONES, "thread_inst_executed_true": MANY},
    "threads of active": {"inst_executed": THREADS, "thread_inst_executed": THREADS, "thread_inst_executed_true": MANY},
    "ideal": {"memory_l2_theoretical_sectors_global": ONES, "memory_l2_theoretical_sectors_global_ideal": MANY},
    "shared_ideal": {"memory_l1_wavefronts_shared": ONES, "memory_l1_wavefronts_shared_ideal": MANY},
}


@pytest.mark.parametrize("name", CONTRADICTING)
def test_counts_that_contradict_each_other_are_left_out_and_told(tmp_path: Path, name: str) -> None:
    others = dict.fromkeys(counts(functions("80")[GEMM], 2)[1])
    listed = factory.by_address(BASE, **CONTRADICTING[name])
    found = made(tmp_path, "80", GEMM, **others | listed)
    column = name.partition(" ")[0]
    for frame in (found.instructions, found.lines, found.loops, found.functions):
        assert frame[column].isna().all()
        assert not (frame["lanes"] > 32).any()
    *_, metric = CONTRADICTING[name]
    assert any(f"{metric} is more than " in note for note in found.notes)
    json.loads(render_json(found, tables=TABLES))


def test_samples_by_reason_are_no_more_than_all(tmp_path: Path) -> None:
    found = made(tmp_path, "80", GEMM, smsp__pcsamp_warps_issue_stalled_wait=[(BASE, 1e15)])
    assert set(found.instructions["stall"]) == {""}
    assert len(found.stalls) == 0
    assert any("by stall reason" in note for note in found.notes)


STALL = "smsp__pcsamp_warps_issue_stalled_"


@pytest.mark.parametrize("hostile", ["", "_not_issued", "A" * 3_000_000, "<script>", "\x1b[31mred", "a\u202eb", "long" * 16])
def test_what_is_named_like_a_stall_reason(tmp_path: Path, hostile: str) -> None:
    found = made(tmp_path, "80", GEMM, **{STALL + hostile: [(BASE, 1.0)]})
    assert set(found.stalls["reason"]) == {"wait", "selected"}
    assert any(note.endswith("named like stall reasons, but are none: 1 metric") for note in found.notes)


def test_a_long_reason_takes_no_memory(tmp_path: Path) -> None:
    """An array of texts as wide as the longest of them has the longest once for each row."""
    stalls = {"function": ["k"] * 100, "offset": list(range(100)), "reason": ["wait"] * 99 + ["A" * 1_000_000]}
    found = made(tmp_path, "80", GEMM)
    tracemalloc.start()
    sampled = {**stalls, "samples": [1.0] * 100, "not_issued": [1.0] * 100}
    findings(found.instruction_columns, sampled, found.loop_columns, About())
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_no_more_reasons_than_a_release_could_have(tmp_path: Path) -> None:
    listed = {f"{STALL}r{number}": [(BASE, 0.0)] for number in range(1000)}
    found = made(tmp_path, "80", GEMM, **listed)
    told = [note for note in found.notes if "named like stall reasons" in note]
    assert len(told) == 1
    assert told[0].endswith("804 metrics")


def test_more_lines_than_any_source_has(tmp_path: Path) -> None:
    (tmp_path / "empty.cu").write_bytes(b"\n" * 15_000_000)
    found = find_source("empty.cu", [str(tmp_path)])
    assert found is not None
    assert len(found) == 1_000_000
