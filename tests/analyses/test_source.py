"""The source view on kernels of our own with made-up counts: sums, loops, lines, functions, and what is missing or hostile."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.frames import COUNTS, TABLES, SourceRoofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Code, CodeFunction
from ncu_roofline.formats.sass.instructions import control_flow, decode
from ncu_roofline.model.selection import Selection
from ncu_roofline.rendering.frames import render_json
from tests import factory
from tests.analyses.source_made import BASE, WARPS, code_of, counts, device, functions, made_report, walk
from tests.sass import fixtures

NESTED, GEMM, STENCIL, KERNEL = "_Z6nestedPKdPdii", "_Z4gemmPKfS0_Pfi", "_Z7stencilPKfPfi", "_Z6kernelPffi"
PER_ROW = [column.name for column in COUNTS]


def made(path: Path, chip: str, mangled: str, **options: object) -> SourceRoofline:
    return source_roofline(made_report(path / "made.ncu-rep", chip, mangled, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", fixtures.CHIPS)
@pytest.mark.parametrize("mangled", [NESTED, GEMM, STENCIL])
def test_every_sum_is_that_of_the_instructions(tmp_path: Path, chip: str, mangled: str) -> None:
    found = made(tmp_path, chip, mangled)
    assert (found.totals.query("quantity == 'executed'")["ratio"] == 1).all()
    for name in PER_ROW:
        total = found.instructions[name].sum(skipna=False)
        outermost = found.loops.query("parent == -1")
        own = found.functions.query("role != 'inlined'")
        for frame in (found.lines, found.outer_lines, outermost, own):
            np.testing.assert_allclose(frame[name].sum(skipna=False), total, err_msg=name)
    np.testing.assert_allclose(found.lines["share_samples"].sum(), 1)


@pytest.mark.parametrize("chip", fixtures.CHIPS)
@pytest.mark.parametrize("trips", [1, 7])
def test_entries_and_trips_are_those_of_the_walk(tmp_path: Path, chip: str, trips: int) -> None:
    found = made(tmp_path, chip, NESTED, trips=trips)
    instructions = decode(functions(chip)[NESTED].code, functions(chip)[NESTED].capability)
    walked = walk(instructions, control_flow(instructions), trips)
    loops = found.loops.query("loop >= 0")
    told = 0
    for loop in loops.itertuples():
        if not math.isnan(loop.entries):
            assert loop.entries == WARPS * walked.entered[loop.header]
            told += 1
            if loop.entries:
                assert loop.trips == walked.rounds[loop.header] / walked.entered[loop.header]
    assert told >= 2


@pytest.mark.parametrize("chip", fixtures.CHIPS)
def test_loops_nest_as_written(tmp_path: Path, chip: str) -> None:
    loops = made(tmp_path, chip, NESTED).loops.query("loop >= 0")
    assert loops["depth"].max() == 3
    deepest = loops[loops["depth"] == 3].iloc[0]
    assert deepest["file"].endswith("gemm.cu")
    text = fixtures.sources()[deepest["file"]].split("\n")
    assert "k < j" in "".join(text[deepest["first_line"] - 1 : deepest["last_line"]])
    parent = loops[loops["loop"] == deepest["parent"]].iloc[0]
    assert parent["first_line"] <= deepest["first_line"] <= deepest["last_line"] <= parent["last_line"]
    assert (loops["share_samples"] <= 1).all()
    assert parent["executed"] > deepest["executed"]


def test_lines_are_innermost_or_where_they_are_inlined(tmp_path: Path) -> None:
    found = made(tmp_path, "80", STENCIL)
    header = found.lines[found.lines["file"].str.endswith("shapes.h")]
    assert header["work_fp32"].sum() > 0
    assert not found.outer_lines["file"].str.endswith("shapes.h").any()
    line = found.outer_lines.query("work_fp32 > 0")
    assert line["text"].str.contains("blend").all()
    assert " < " in "".join(found.instructions["inlined"])


def test_functions_inside_the_section_are_called(tmp_path: Path) -> None:
    found = made(tmp_path, "90", KERNEL, name="local")
    called = found.functions.query("role == 'called'")
    assert len(called) >= 1
    assert called["executed"].sum() > 0
    assert found.functions.query("role == 'kernel'").iloc[0]["executed"] < found.instructions["executed"].sum()


def test_a_loop_has_what_is_called_from_it_alone(tmp_path: Path) -> None:
    found = made(tmp_path, "90", KERNEL, name="local")
    (loop,) = found.loops.query("executed > 0 and loop >= 0").itertuples()
    called = found.functions.query("role == 'called' and executed > 0")["executed"].sum()
    inside = found.instructions.query(f"loop == {loop.loop}")["executed"].sum()
    assert called > 0
    assert loop.executed == inside + called
    assert "with what it calls: " in loop.notes
    assert found.loops["executed"].sum() == found.instructions["executed"].sum()


def test_what_is_also_called_in_unknown_ways_is_in_no_loop(tmp_path: Path) -> None:
    function = functions("90", "local")[KERNEL]
    first = min(offset for offset, _, _ in function.inside) // 16
    _, metrics = counts(function, 5)
    executed = list(metrics["inst_executed"])
    executed[first] += 1  # came by no call that is known
    threads = [32 * number for number in executed]
    extra = factory.by_address(BASE, inst_executed=executed, thread_inst_executed_true=threads)
    found = made(tmp_path, "90", KERNEL, name="local", **extra)
    (loop,) = found.loops.query("executed > 0 and loop >= 0").itertuples()
    assert loop.executed == found.instructions.query(f"loop == {loop.loop}")["executed"].sum()
    assert "without what is not called from here only: " in loop.notes


def test_names_of_opcodes_are_compared(tmp_path: Path) -> None:
    executed = made(tmp_path, "80", GEMM).instructions.groupby("opcode")["executed"].sum()
    told = []
    for renamed in ("FFMA", "HADD2"):
        named = [(renamed if opcode == "FFMA" else opcode, count) for opcode, count in executed.items()]
        totals = made(tmp_path, "80", GEMM, sass__inst_executed_per_opcode=named).totals
        told += totals.query("quantity == 'opcodes'")[["ratio", "notes"]].values.tolist()
    assert told[0] == [1, ""]
    assert told[1][0] == pytest.approx(1 - executed["FFMA"] / executed.sum())
    assert "HADD2 -" in told[1][1]


def test_work_of_a_loop_and_its_roof(tmp_path: Path) -> None:
    found = made(tmp_path, "80", GEMM, trips=50)
    loop = found.loops.iloc[0]
    instructions = decode(functions("80")[GEMM].code, functions("80")[GEMM].capability)
    walked = walk(instructions, control_flow(instructions), 50)
    fused = sum(walked.executed[one.offset] for one in instructions if one.name == "FFMA")
    assert found.instructions["work_fp32"].sum() == 2 * 32 * WARPS * fused
    assert loop["share_samples"] > 0.9
    assert loop["performance"] == pytest.approx(loop["work"] / (loop["share_samples"] * 1e-3))
    assert loop["performance"] <= loop["attainable"]
    assert loop["performance_least"] == loop["work"] / 1e-3
    peak = 108 * 128 * 1.41e9
    roofs = found.roofline.roofs
    l1 = roofs[(roofs["level"] == "l1") & (roofs["kind"] == "bandwidth")]["value"].iloc[0]
    assert loop["attainable"] == pytest.approx(min(peak, loop["intensity"] * l1))
    assert (found.loops.query("loop < 0")["performance"].isna()).all()
    assert (found.loops.query("loop == -1")["notes"] == "no loop").all()


def test_no_dot_above_a_roof(tmp_path: Path) -> None:
    """A loop with half of the samples and all of the work: twice as fast as the kernel, which runs at its roof."""
    chip, function = "80", functions("80")[GEMM]
    _, metrics = counts(function, 50)
    instructions = decode(function.code, function.capability)
    loops = control_flow(instructions).loop_of
    inside = [3 * n if loops[row] >= 0 else 0.0 for row, n in enumerate(metrics["inst_executed"])]
    outside = [sum(inside) * 0.9 if row == 0 else 0.0 for row in range(len(inside))]
    samples = [a + b for a, b in zip(inside, outside, strict=True)]
    listed = factory.by_address(BASE, smsp__pcsamp_sample_count=samples)
    path = made_report(tmp_path / "fast.ncu-rep", chip, GEMM, trips=50, samples=sum(samples), **listed)
    slow = source_roofline(path).loops.iloc[0]
    assert 0.5 < slow["share_samples"] < 0.53
    assert slow["performance"] > slow["performance_least"]
    least = slow["work"] / slow["attainable"]
    fast = {**factory.timing(seconds=1.5 * least)}
    launch = _with(path, fast, tmp_path / "faster.ncu-rep")
    loop = source_roofline(launch).loops.iloc[0]
    assert math.isnan(loop["performance"])
    assert "overlap" in loop["notes"]
    assert loop["performance_least"] <= slow["attainable"]


def _with(path: Path, scalars: factory.Metrics, to: Path) -> Path:
    from ncu_roofline.formats.report import KernelData, read_report

    with read_report(path) as report:
        one = report.kernels[0]
        names = one.metrics.names()
        data = KernelData(
            one.name,
            one.function_name,
            one.mangled_name,
            metrics=dict(one.metrics) | scalars,
            instances={name: one.metrics.instances(name) for name in names if one.metrics.instances(name)},
            code=one.code,
        )
        return factory.report(to, data)


def test_few_samples_give_no_performance(tmp_path: Path) -> None:
    found = made(tmp_path, "80", NESTED, trips=5)
    small = found.loops.query("loop >= 0 and share_samples < 0.5 and work > 0")
    assert small["performance"].isna().all()
    assert all("50 %" in note for note in small["notes"])


@pytest.mark.parametrize("missing", ["inst_executed", "thread_inst_executed_true", "smsp__pcsamp_sample_count"])
def test_what_nobody_counted_is_missing_everywhere(tmp_path: Path, missing: str) -> None:
    stalls = dict.fromkeys(_stalls()) if "pcsamp" in missing else {}
    found = made(tmp_path, "80", GEMM, **{missing: None, **stalls})
    column = {"inst_executed": "executed", "thread_inst_executed_true": "threads"}.get(missing, "samples")
    for frame in (found.instructions, found.lines, found.loops, found.functions):
        assert frame[column].isna().all()
    if column == "threads":
        assert math.isnan(found.loops.iloc[0]["work"])
        assert (found.instructions.query("opcode == 'STG'")["work"] == 0).all()
    if column == "samples":
        assert (found.lines["stall"] == "").all()
        assert found.loops["performance"].isna().all()


def test_lanes_are_those_with_a_true_predicate_where_active_ones_were_not_counted(tmp_path: Path) -> None:
    """As of 2021.2: the frames have a number of lanes, and a note says which."""
    executed = counts(functions("80")[GEMM], 5)[1]["inst_executed"]
    true = factory.by_address(BASE, true=[8 * number for number in executed])["true"]
    found = made(tmp_path, "80", GEMM, thread_inst_executed=None, thread_inst_executed_true=true)
    assert (found.instructions.query("executed > 0")["lanes"] == 8).all()
    assert found.loops.query("loop == 0")["lanes"].tolist() == [8]
    assert any(note.startswith("lanes are those whose predicate is true") for note in found.notes)
    messages = found.findings.query("finding == 'divergence'")["message"]
    assert any("8.0 of 32 lanes" in message or "begin with 8.0" in message for message in messages)
    assert not any("lanes are those" in note for note in made(tmp_path, "80", GEMM).notes)


def _stalls() -> list[str]:
    return [name for name in counts(functions("80")[GEMM], 2)[1] if "stalled" in name]


def test_samples_by_reason_stand_in_for_their_sum(tmp_path: Path) -> None:
    """Releases until 2020.3 have no count of samples."""
    found = made(tmp_path, "80", GEMM, smsp__pcsamp_sample_count=None)
    assert (found.instructions["samples"] == 3 * found.instructions["executed"]).all()
    assert (found.instructions["not_issued"] == found.instructions["executed"]).all()
    hot = found.instructions.query("samples > 0")
    assert set(hot["stall"]) == {"wait"}
    np.testing.assert_allclose(hot["share_stall"], 2 / 3)
    assert set(found.stalls["reason"]) == {"wait", "selected"}
    assert found.stalls["samples"].sum() == found.instructions["samples"].sum()


def test_metrics_of_the_first_release(tmp_path: Path) -> None:
    old = {
        "memory_l2_theoretical_sectors_global": None,
        "memory_l2_sectors_global": [(BASE + 16 * 4, 10.0)],
        "memory_l2_theoretical_sectors_global_ideal": None,
        "memory_l2_sectors_global_ideal": [(BASE + 16 * 4, 5.0)],
    }
    found = made(tmp_path, "80", GEMM, **old)
    assert found.instructions["requested"].iloc[4] == 320
    assert found.lines["share_excess"].max() == 0.5
    assert found.instructions["requested"].sum() == 320
    assert (found.instructions["local"] == 0).all()


def test_addresses_outside_are_a_row_of_their_own(tmp_path: Path) -> None:
    function = functions("80")[GEMM]
    _, metrics = counts(function, 5)
    inside = [(BASE + 16 * row, value) for row, value in enumerate(metrics["inst_executed"])]
    beyond = [(BASE - 16, 100.0), (BASE + len(function.code), 11.0), (64, 1.0)]
    threads = [(address, 32 * value) for address, value in inside + beyond]
    counted = {"inst_executed": inside + beyond, "thread_inst_executed": threads, "thread_inst_executed_true": threads}
    found = made(tmp_path, "80", GEMM, **counted)
    outside = found.lines.query("line == -2").iloc[0]
    assert (outside["executed"], outside["instructions"]) == (112, 3)
    assert found.loops.query("loop == -2").iloc[0]["executed"] == 112
    assert found.functions.query("role == 'outside'").iloc[0]["executed"] == 112
    total = found.totals.query("quantity == 'executed'").iloc[0]
    assert (total["outside"], total["sum"]) == (112, sum(metrics["inst_executed"]) + 112)
    assert list(found.instructions["function"].iloc[-3:]) == ["", "", ""]
    work = found.totals.query("quantity == 'work'").iloc[0]
    assert (work["ratio"], "outside" in work["notes"]) == (1, True)
    np.testing.assert_allclose(found.lines["share_work"].sum(), 1)
    assert math.isnan(outside["work"])


def test_without_lines(tmp_path: Path) -> None:
    found = made(tmp_path, "86", GEMM, name="bare")
    assert found.lines[["line", "text"]].values.tolist() == [[-1, GEMM]]
    assert found.lines["share_samples"].tolist() == [1]
    assert set(found.loops["first_line"]) == {-1}
    assert found.totals.query("quantity == 'executed'")["unlined"].item() == found.instructions["executed"].sum()


def test_without_code_counts_stand_by_address(tmp_path: Path) -> None:
    found = made(tmp_path, "86", GEMM, code=Code(b"", (), ()))
    assert (found.instructions["offset"] == -1).all()
    assert found.lines["line"].tolist() == [-2]
    assert found.instructions["work"].isna().any()
    assert any("machine code" in note for note in found.notes)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_a_cubin_that_is_cut(tmp_path: Path, cut: float) -> None:
    whole = code_of("86", GEMM)
    damaged = Code(whole.cubin[: int(cut * len(whole.cubin))], whole.files, whole.functions)
    found = made(tmp_path, "86", GEMM, code=damaged)
    assert found.instructions["executed"].sum() > 0
    assert any("can't be read" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(25))
def test_cubins_with_other_bytes(tmp_path: Path, seed: int) -> None:
    """Whatever code and line tables say: the counts stay, at their addresses."""
    whole = code_of("75", STENCIL)
    random = np.random.default_rng(seed)
    data = bytearray(whole.cubin)
    for _ in range(1 << seed % 8):
        data[random.integers(len(data))] = random.integers(256)
    found = made(tmp_path, "75", STENCIL, code=Code(bytes(data), whole.files, whole.functions))
    executed = sum(counts(functions("75")[STENCIL], 5)[1]["inst_executed"])
    assert found.instructions["executed"].sum() == executed
    assert found.lines["executed"].sum() == executed
    json.loads(render_json(found, tables=TABLES))


def test_code_whose_address_nobody_knows(tmp_path: Path) -> None:
    whole = code_of("86", GEMM)
    found = made(tmp_path, "86", GEMM, code=Code(whole.cubin, whole.files, ()), launch__function_pcs=None)
    assert (found.instructions["offset"] == -1).all()
    assert any("doesn't tell where" in note for note in found.notes)


def test_functions_on_each_other(tmp_path: Path) -> None:
    """The second of two functions at one address is left out, and no count is told twice."""
    whole = code_of("86", GEMM)
    other = CodeFunction(NESTED, BASE + 16)
    found = made(tmp_path, "86", GEMM, code=Code(whole.cubin, whole.files, (other, *whole.functions)))
    assert found.instructions["address"].is_unique
    assert found.totals.query("quantity == 'executed'")["ratio"].item() == 1


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0, 1e308])
def test_values_that_are_no_counts(tmp_path: Path, odd: float) -> None:
    found = made(tmp_path, "80", GEMM, inst_executed=[(BASE, odd), (BASE + 16, 5.0)])
    assert found.instructions["executed"].isna().all()
    assert any("inst_executed" in note for note in found.notes)
    json.loads(render_json(found, tables=TABLES))


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_counts_that_are_not_what_their_metric_says_they_add_up_to(tmp_path: Path, factor: float) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM, trips=50)
    threads = source_roofline(path).instructions["threads"].sum()
    found = source_roofline(_with(path, {"thread_inst_executed_true": threads * factor}, tmp_path / "other.ncu-rep"))
    assert found.instructions["threads"].isna().all() == (factor > 1)
    assert any("thread_inst_executed_true" in note and "add up" in note for note in found.notes) == (factor > 1)
    assert (found.instructions["executed"] > 0).any()


def test_without_counts_there_is_a_next_step(tmp_path: Path) -> None:
    path = factory.report(tmp_path / "plain.ncu-rep", factory.kernel(factory.complete()))
    with pytest.raises(RooflineError, match="no counts by instruction"):
        source_roofline(path)


def test_mixed_launches_are_told(tmp_path: Path) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM, trips=50)
    found = source_roofline(_with(path, {"smsp__inst_executed.sum": 10.0}, tmp_path / "mixed.ncu-rep"))
    assert any("application replay" in note for note in found.notes)
    assert found.loops["performance"].isna().all()


def test_full_buffer_of_samples_is_told(tmp_path: Path) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM, trips=50)
    samples = source_roofline(path).instructions["samples"].sum()
    full = {"smsp__pcsamp_buffer_size_bytes": int(samples * 64 / 7)}
    found = source_roofline(_with(path, full, tmp_path / "full.ncu-rep"))
    assert any("buffer" in note for note in found.notes)
    assert found.loops["performance"].isna().all()
    assert "buffer" in found.loops["notes"].iloc[0]
    room = {"smsp__pcsamp_buffer_size_bytes": int(2 * samples * 64 / 7)}
    assert source_roofline(_with(path, room, tmp_path / "room.ncu-rep")).notes == ()


def test_which_launches_are_taken(tmp_path: Path) -> None:
    base = {**device("80"), **factory.complete(device("80"))}
    listed = factory.by_address(BASE, inst_executed=[1.0] * 8)
    kernels = [
        factory.kernel({**base, "gpu__time_duration.sum": time}, name, mangled_name=name, instances=instances)
        for time, name, instances in (
            (9e6, "bare", {}),
            (1e6, "alpha", listed),
            (2e6, "alpha", listed),
            (2.5e6, "beta", listed),
        )
    ]
    path = factory.report(tmp_path / "several.ncu-rep", *kernels)

    def taken(**options: Any) -> list[int]:
        return list(dict.fromkeys(source_roofline(path, **options).line_columns["launch"].tolist()))

    assert taken() == [2]
    assert taken(top=5) == [2, 3]
    assert taken(select=Selection(launch=((1, 3),))) == [1, 2, 3]
    assert taken(select=Selection(kernel="beta")) == [3]
    both = source_roofline([path, path], label="x")
    assert set(both.lines["report"]) == {"x"}
    assert len(both.roofline.kernels) == 2


def test_sources_in_folders(tmp_path: Path) -> None:
    bare = code_of("80", GEMM, texts=False)
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM, code=bare)
    assert (source_roofline(path).lines["text"] == "").all()
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "gemm.cu").write_text(next(text for name, text in fixtures.sources().items() if name.endswith("gemm.cu")))
    found = source_roofline(path, folders=[str(folder)])
    assert found.lines["text"].str.contains("__syncthreads").any()
    assert [Path(name).name for name in found.texts] == ["gemm.cu"]


def test_text_of_instructions(tmp_path: Path) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM)
    found = source_roofline(path, disassemble=lambda codes, capability: [{0: f"{len(code)} {capability}"} for code in codes])
    assert found.instructions["sass"].iloc[0] == f"{len(functions('80')[GEMM].code)} (8, 0)"
    assert (found.instructions["sass"].iloc[1:] == "").all()
