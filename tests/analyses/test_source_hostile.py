"""The source view on counts that can be none, that contradict each other, and on metrics with hostile names."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from ncu_roofline.analyses.source.build import findings, source_roofline
from ncu_roofline.analyses.source.code import counts_of
from ncu_roofline.analyses.source.frames import TABLES, SourceRoofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.findings import About
from ncu_roofline.formats.inputs.text import find_source
from ncu_roofline.formats.report import CodeFunction, read_report
from ncu_roofline.rendering.frames import render_json
from tests import factory
from tests.analyses.source_made import BASE, code_of, counts, functions, made_report

GEMM = "_Z4gemmPKfS0_Pfi"
OTHERS = [name for name in counts(functions("80")[GEMM], 5)[1] if name != "inst_executed"]


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
    assert any(note.endswith(f": {metric}") for note in found.notes)
    json.loads(render_json(found, tables=TABLES))


def test_samples_by_reason_are_no_more_than_all(tmp_path: Path) -> None:
    found = made(tmp_path, "80", GEMM, smsp__pcsamp_warps_issue_stalled_wait=[(BASE, 1e15)])
    assert set(found.instructions["stall"]) == {""}
    assert len(found.stalls) == 0
    assert any("by stall reason" in note for note in found.notes)


SAMPLES = "smsp__pcsamp_sample_count"


def listed(name: str) -> list[tuple[int, float]]:
    """What a made-up report has of a metric."""
    pairs: list[tuple[int, float]] = factory.by_address(BASE, **counts(functions("80")[GEMM], 5)[1])[name]
    return pairs


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_samples_that_are_not_those_of_the_counter_tell_no_performance(tmp_path: Path, times: float) -> None:
    lost = {name: None for name in counts(functions("80")[GEMM], 5)[1] if STALL in name}
    found = made(tmp_path, "80", GEMM, **lost, **{SAMPLES: [(at, times * value) for at, value in listed(SAMPLES)]})
    assert [note for note in found.notes if f"are {times:.3g} times those of the kernel's counter" in note] == [*found.notes]
    hottest = found.loops.sort_values("share_samples").iloc[-1]
    assert hottest["share_samples"] > 0.5
    assert (math.isnan(hottest["performance"]), hottest["notes"]) == (True, "samples don't fit the kernel's counter of them")
    assert found.totals.set_index("quantity")["notes"]["samples"]


@pytest.mark.parametrize("broken", [(None, 1.0), ("here", 1.0), (BASE, "many")])
def test_metrics_with_values_that_stand_nowhere_are_left_out_whole(tmp_path: Path, broken: tuple[object, object]) -> None:
    found = made(tmp_path, "80", GEMM, inst_executed=[*listed("inst_executed")[:-1], broken])
    assert found.instructions["executed"].isna().all()
    assert found.instructions["threads"].sum() > 0
    assert [note.partition(": ")[2] for note in found.notes] == ["inst_executed"]


def test_a_launch_whose_counts_have_no_address_is_not_called_uncounted(tmp_path: Path) -> None:
    nowhere = dict.fromkeys(counts(functions("80")[GEMM], 5)[1]) | {"inst_executed": [(None, 1.0)]}
    with pytest.raises(RooflineError, match=r"inst_executed can be no counts: .* or without address"):
        made(tmp_path, "80", GEMM, **nowhere)


def test_a_function_at_two_addresses_is_shown_at_one(tmp_path: Path) -> None:
    """Where it has counts at both, those at the other stand by address."""
    name = next(one for one in functions("80") if one != GEMM)
    places = [CodeFunction(GEMM, BASE), *(CodeFunction(name, BASE + offset) for offset in (1 << 20, 1 << 21))]
    executed = [*listed("inst_executed"), (BASE + (1 << 20), 1.0), (BASE + (1 << 21), 2.0)]
    code = replace(code_of("80", GEMM), functions=tuple(places))
    found = made(tmp_path, "80", GEMM, code=code, **dict.fromkeys(OTHERS), inst_executed=executed)
    assert set(found.functions["function"]) == {GEMM, name, ""}
    assert found.functions.set_index("function").loc["", "executed"] in (1, 2)
    once = made(tmp_path, "80", GEMM, code=code, **dict.fromkeys(OTHERS), inst_executed=executed[:-1])
    assert once.notes == ()
    assert set(once.functions["function"]) == {GEMM, name}


def test_options_that_no_launch_could_fit_are_wrong(tmp_path: Path) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM)
    for top in (0, -1):
        with pytest.raises(ValueError, match="top must be 1 or more"):
            source_roofline(path, top=top)
    with pytest.raises(TypeError, match=r"disassemble must give the texts .* not None"):
        source_roofline(path, disassemble=lambda *_: None)  # type: ignore[arg-type, return-value]


STALL = "smsp__pcsamp_warps_issue_stalled_"


@pytest.mark.parametrize("hostile", ["", "_not_issued", "A" * 3_000_000, "<script>", "\x1b[31mred", "a\u202eb", "long" * 16])
def test_what_is_named_like_a_stall_reason(tmp_path: Path, hostile: str) -> None:
    found = made(tmp_path, "80", GEMM, **{STALL + hostile: [(BASE, 1.0)]})
    assert set(found.stalls["reason"]) == {"wait", "selected"}


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
    with read_report(made_report(tmp_path / "made.ncu-rep", "80", GEMM, **listed)) as report:
        assert 0 < len(counts_of(report.kernels[0].metrics).stalls) <= 200


def test_more_lines_than_any_source_has(tmp_path: Path) -> None:
    (tmp_path / "empty.cu").write_bytes(b"\n" * 15_000_000)
    found = find_source("empty.cu", [str(tmp_path)])
    assert found is not None
    assert len(found) == 1_000_000
