"""The source view, beside source-kernels.frames: sums and loops against a walk through the code; limits; hostile code."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.analyses.source import build
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.code import FLOPS, INTEGERS, WORKS, counts_of
from ncu_roofline.analyses.source.findings import findings
from ncu_roofline.analyses.source.frames import COUNTS, TABLES, SourceRoofline
from ncu_roofline.analyses.source.page import render_html
from ncu_roofline.analyses.source.totals import Demanded, LaunchRoofs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import sass as code_limits
from ncu_roofline.chips.findings import About, about_of
from ncu_roofline.formats.inputs.text import find_source
from ncu_roofline.formats.report import Code, CodeFunction, read_report
from ncu_roofline.formats.report import metrics as report_code
from ncu_roofline.formats.sass import cubin
from ncu_roofline.formats.sass.instructions import control_flow, decode
from ncu_roofline.model.selection import Selection
from ncu_roofline.model.work import placed
from ncu_roofline.rendering.frames import render_json
from tests import factory
from tests.analyses import makers
from tests.analyses.data import first
from tests.analyses.source_made import BASE, WARPS, code_of, counts, device, functions, made_report, walk
from tests.counted import steps
from tests.rendering.test_page import Markup
from tests.sass import fixtures
from tests.sass.made import EXIT, FFMA, made_cubin

NESTED, GEMM, STENCIL = "_Z6nestedPKdPdii", "_Z4gemmPKfS0_Pfi", "_Z7stencilPKfPfi"
KERNEL, COLLATZ = "_Z6kernelPffi", "_Z7collatzPKjPj"
CHIPS = first(["80", *(chip for chip in fixtures.CHIPS if chip != "80")])
STALL = "smsp__pcsamp_warps_issue_stalled_"


def made(path: Path, chip: str = "80", mangled: str = GEMM, **options: Any) -> SourceRoofline:
    return source_roofline(made_report(path / "made.ncu-rep", chip, mangled, **options))


@pytest.mark.parametrize("chip", CHIPS)
def test_every_sum_is_that_of_the_instructions(tmp_path: Path, chip: str) -> None:
    for mangled in (NESTED, GEMM, STENCIL):
        found = made(tmp_path, chip, mangled)
        outermost, own = found.loops.query("parent == -1"), found.functions.query("role != 'inlined'")
        for name in [column.name for column in COUNTS]:
            total = found.instructions[name].sum(skipna=False)
            for frame in (found.lines, found.outer_lines, outermost, own):
                np.testing.assert_allclose(frame[name].sum(skipna=False), total, err_msg=name)
        np.testing.assert_allclose(found.lines["share_samples"].sum(), 1)
        assert (found.totals.query("quantity == 'executed'")["ratio"] == 1).all()


@pytest.mark.parametrize("chip", CHIPS)
def test_loops_are_those_of_the_walk(tmp_path: Path, chip: str) -> None:
    instructions = decode(functions(chip)[NESTED].code, functions(chip)[NESTED].capability)
    for trips in (1, 7):
        walked = walk(instructions, control_flow(instructions), trips)
        loops = made(tmp_path, chip, NESTED, trips=trips).loops.query("loop >= 0")
        known = loops[loops["entries"].notna()]
        assert known["entries"].tolist() == [WARPS * walked.entered[header] for header in known["header"]]
        entered = known[known["entries"] > 0]
        assert entered["trips"].tolist() == [walked.rounds[at] / walked.entered[at] for at in entered["header"]]
        assert len(known) >= 2
    assert loops["depth"].max() == 3
    deepest = loops[loops["depth"] == 3].iloc[0]
    text = fixtures.sources()[deepest["file"]].split("\n")
    assert "k < j" in "".join(text[deepest["first_line"] - 1 : deepest["last_line"]])
    parent = loops[loops["loop"] == deepest["parent"]].iloc[0]
    assert parent["first_line"] <= deepest["first_line"] <= deepest["last_line"] <= parent["last_line"]
    assert parent["executed"] > deepest["executed"]


def test_work_of_a_loop_and_its_roof(tmp_path: Path) -> None:
    """Two operations a lane of each FFMA that the walk meets, in the samples' share of a millisecond, under FP32 and L1."""
    found = made(tmp_path, trips=50)
    loop = found.loops.iloc[0]
    instructions = decode(functions("80")[GEMM].code, functions("80")[GEMM].capability)
    walked = walk(instructions, control_flow(instructions), 50)
    fused = sum(walked.executed[one.offset] for one in instructions if one.name == "FFMA")
    assert found.instructions["work_fp32"].sum() == 2 * 32 * WARPS * fused
    assert (loop["performance"], loop["performance_least"]) == pytest.approx(
        (loop["work"] / (loop["share_samples"] * 1e-3), loop["work"] / 1e-3)
    )
    roofs = found.roofline.roofs.query("level == 'l1' and kind == 'bandwidth'")
    assert loop["attainable"] == pytest.approx(min(108 * 128 * 1.41e9, loop["intensity"] * roofs["value"].iloc[0]))


def test_no_dot_above_a_roof(tmp_path: Path) -> None:
    """A loop with half of the samples and all of the work: twice as fast as the kernel, which runs at its roof."""
    function = functions("80")[GEMM]
    _, metrics = counts(function, 50)
    inner = control_flow(decode(function.code, function.capability)).loop_of
    samples = [3 * n if inner[place] >= 0 else 0.0 for place, n in enumerate(metrics["inst_executed"])]
    samples[0] += sum(samples) * 0.9
    listed = factory.by_address(BASE, smsp__pcsamp_sample_count=samples)
    slow = made(tmp_path, trips=50, samples=sum(samples), **listed).loops.iloc[0]
    assert 0.5 < slow["share_samples"] < 0.53
    assert slow["performance"] > slow["performance_least"]
    quick = factory.timing(seconds=1.5 * slow["work"] / slow["attainable"])
    fast = made(tmp_path, trips=50, samples=sum(samples), scalars=quick, **listed).loops.iloc[0]
    assert (math.isnan(fast["performance"]), "overlap" in fast["notes"]) == (True, True)
    assert fast["performance_least"] <= slow["attainable"]


def test_what_is_also_called_in_unknown_ways_is_in_no_loop(tmp_path: Path) -> None:
    function = functions("90", "local")[KERNEL]
    executed = list(counts(function, 5)[1]["inst_executed"])
    executed[min(offset for offset, _, _ in function.inside) // 16] += 1  # came by no call that is known
    extra = factory.by_address(BASE, inst_executed=executed, thread_inst_executed_true=[32 * number for number in executed])
    found = made(tmp_path, "90", KERNEL, name="local", **extra)
    (loop,) = found.loops.query("executed > 0 and loop >= 0").itertuples()
    assert loop.executed == found.instructions.query(f"loop == {loop.loop}")["executed"].sum()
    assert "without what is not called from here only: " in loop.notes


def test_names_of_opcodes_are_compared(tmp_path: Path) -> None:
    executed = made(tmp_path).instructions.groupby("opcode")["executed"].sum()
    for renamed, ratio in (("FFMA", 1), ("HADD2", 1 - executed["FFMA"] / executed.sum())):
        named = [(renamed if opcode == "FFMA" else opcode, count) for opcode, count in executed.items()]
        (row,) = made(tmp_path, sass__inst_executed_per_opcode=named).totals.query("quantity == 'opcodes'").itertuples()
        assert (row.ratio, "HADD2 -" in row.notes) == (pytest.approx(ratio), renamed == "HADD2")


def test_integer_work_is_that_of_the_model(tmp_path: Path) -> None:
    """One operation is one thread's instruction of integer arithmetic or logic; moves, comparisons and jumps are none."""
    for mangled in (COLLATZ, GEMM):
        found = made(tmp_path, "80", mangled)
        rows = found.instructions
        counted = [one.partition(".")[0] in ("IADD3", "IMAD", "LEA", "LOP3", "SHF") for one in rows["opcode"]]
        assert (rows["work_int32"] == 32 * rows["executed"] * counted * ~rows["opcode"].str.startswith("IMAD.MOV")).all()
        totals = found.totals.set_index("quantity")
        assert (totals.loc["work_int32", "unit"], totals.loc["work_int32", "ratio"]) == ("op", 1)
        assert totals.loc["work_int32", "sum"] == rows["work_int32"].sum() > 0
        np.testing.assert_allclose(rows["share_int32"].sum(), 1)


def test_integers_of_a_page_are_those_of_the_frames(tmp_path: Path) -> None:
    """Opcodes have HFMA2, too, by which the compiler sets a register to 0."""
    collatz = made(tmp_path, "80", COLLATZ, trips=50)
    assert collatz.instructions.query("opcode == 'HFMA2.MMA'")["executed"].sum() == WARPS
    (shown,) = Markup(render_html(collatz)).data["launches"]
    drawn, outer = shown["chart"], [loop for loop in shown["loops"] if loop["parent"] < 0]
    assert (drawn["label"], drawn["unit"], shown["works"], shown["work_unit"]) == ("INT32", "op", "int32", "flop")
    assert [roof["label"] for roof in drawn["roofs"] if roof["kind"] == "compute"] == ["INT32"]
    points = collatz.roofline.points.query("precision == 'int32'")
    assert [dot["performance"] for dot in drawn["dots"]] == pytest.approx(points["performance"].tolist())
    dot = next(one for one in drawn["dots"] if one["level"] == drawn["nearest"])
    assert dot["intensity"] == pytest.approx(sum(one["work_int32"] for one in outer) / sum(one["requested"] for one in outer))


def test_what_performance_counts() -> None:
    """The counter has loads of constants among FP16; of code that nobody knows it is as the counters say."""
    both, nan = ("fp32", "int32"), math.nan
    flops = [("", both, 5.0, 9.0), ("alu", both, 5.0, 9.0), ("", both, nan, 9.0), ("", (), 0.0, 0.0), ("", (), 0.0, nan)]
    integers = [("int32", both, 5.0, 9.0), ("", ("fp16", "int32"), 0.0, 9.0), ("", ("int32",), nan, nan)]
    for counted, cases in ((FLOPS, flops), (INTEGERS, integers)):
        for bound, kinds, work, integer in cases:
            each = tuple(Demanded(kind, "op" if kind == "int32" else "flop", kind, 1.0, 1.0, "") for kind in kinds)
            roofs = LaunchRoofs(seconds=1.0, l1=1.0, demanded=each, constants=False, bound=bound)
            assert (roofs.performance_of({FLOPS: work, INTEGERS: integer}), roofs.unit) == (counted, "flop")


def test_what_metrics_tell_about_a_kernel() -> None:
    l1, l2 = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
    busy = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 50.0, "launch__waves_per_multiprocessor": 2}
    assert about_of((8, 0), {l1: 94.5, l2: 100.1}.get) == About((8, 0), {"L1": 0.945, "L2": 1.0})
    assert about_of((8, 0), {l1: math.nan, l2: 250.0}.get) == about_of((8, 0), {}.get) == About((8, 0))
    assert about_of((8, 0), busy.get, 1e-3) == About((8, 0), {}, {"dram": 0.5, "waves": 2.0, "seconds": 1e-3})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e308, -1.0, math.inf, 1e-308, math.nan])
def test_counts_that_can_not_be(value: float) -> None:
    """No exception, and shares are numbers; where nothing at all is known nothing is said."""
    codes = ("LDG.E", "LDS", "FMUL", "FADD", "F2F", "I2F", "DMUL", "IMAD", "LDL", "HMMA.16816.F32")
    given = {"rows": [{"op": code, "sectors": 8, "wavefronts": 4} for code in codes]}
    counted = [column.name for column in COUNTS if column.name != "not_issued"]
    for name in counted:
        for one in makers.told(given, {name: value}):
            assert one["message"]
            assert 0 <= one["share"] <= 1 + 1e-9
    every = dict.fromkeys([*counted, *(f"work_{one}" for one in WORKS)], math.nan)
    assert makers.told(given, every) == []


def test_which_launches_are_taken(tmp_path: Path) -> None:
    """Of those with counts the longest launch of the longest kernels, or those that are chosen."""
    base, listed = {**device("80"), **factory.complete(device("80"))}, factory.by_address(BASE, inst_executed=[1.0] * 8)
    given = (9e6, "bare", {}), (1e6, "alpha", listed), (2e6, "alpha", listed), (2.5e6, "beta", listed)
    kernels = [factory.kernel({**base, "gpu__time_duration.sum": t}, n, mangled_name=n, instances=i) for t, n, i in given]
    path, chosen = factory.report(tmp_path / "several.ncu-rep", *kernels), Selection(launch=((1, 3),))
    cases: list[tuple[dict[str, Any], list[int]]] = [({}, [2]), ({"top": 5}, [2, 3]), ({"select": chosen}, [1, 2, 3])]
    for options, taken in [*cases, ({"select": Selection(kernel="beta")}, [3])]:
        assert list(dict.fromkeys(source_roofline(path, **options).lines["launch"])) == taken
    both = source_roofline([path, path], label="x")
    assert (set(both.lines["report"]), len(both.roofline.kernels)) == ({"x"}, 2)
    with pytest.raises(RooflineError, match="no counts by instruction"):
        source_roofline(makers.written(tmp_path, "plain", [{}]))


def test_sources_in_folders_and_texts_of_instructions(tmp_path: Path) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM, code=code_of("80", GEMM, texts=False))
    assert (source_roofline(path).lines["text"] == "").all()
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "gemm.cu").write_text(next(text for name, text in fixtures.sources().items() if name.endswith("gemm.cu")))
    told = lambda codes, capability: [{0: f"{len(code)} {capability}"} for code in codes]  # noqa: E731
    found = source_roofline(path, folders=[str(folder)], disassemble=told)
    assert found.lines["text"].str.contains("__syncthreads").any()
    assert [Path(name).name for name in found.texts] == ["gemm.cu"]
    first, *others = found.instructions["sass"]
    assert (first, set(others)) == (f"{len(functions('80')[GEMM].code)} (8, 0)", {""})
    with pytest.raises(TypeError, match=r"disassemble must give the texts .* not None"):
        source_roofline(path, disassemble=lambda *_: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("seed", first(range(7, 30), 2))
def test_cubins_with_other_bytes(tmp_path: Path, seed: int) -> None:
    """Whatever code and line tables say: the counts stay, at their addresses."""
    whole, random = code_of("75", STENCIL), np.random.default_rng(seed)
    data = bytearray(whole.cubin)
    for _ in range(1 << seed % 8):
        data[random.integers(len(data))] = random.integers(256)
    found = made(tmp_path, "75", STENCIL, code=Code(bytes(data), whole.files, whole.functions))
    executed = sum(counts(functions("75")[STENCIL], 5)[1]["inst_executed"])
    assert found.instructions["executed"].sum() == found.lines["executed"].sum() == executed
    json.loads(render_json(found, tables=TABLES))


@pytest.mark.parametrize("broken", [(None, 1.0), ("here", 1.0), (BASE, "many")])
def test_metrics_with_values_that_stand_nowhere_are_left_out_whole(tmp_path: Path, broken: tuple[object, object]) -> None:
    listed = factory.by_address(BASE, **counts(functions("80")[GEMM], 5)[1])["inst_executed"]
    found = made(tmp_path, inst_executed=[*listed[:-1], broken])
    assert (found.instructions["executed"].isna().all(), found.instructions["threads"].sum() > 0) == (True, True)
    assert [note.partition(": ")[2] for note in found.notes] == ["inst_executed"]
    nowhere = dict.fromkeys(counts(functions("80")[GEMM], 5)[1]) | {"inst_executed": [(None, 1.0)]}
    with pytest.raises(RooflineError, match=r"inst_executed are no counts: .* or without address"):
        made(tmp_path, **nowhere)


def test_a_long_reason_takes_no_memory(tmp_path: Path) -> None:
    """An array of texts as wide as the longest of them has the longest once for each row; a name of 3 MB is no reason."""
    found = made(tmp_path, **{f"{STALL}{'A' * 3_000_000}": [(BASE, 1.0)], f"{STALL}a\u202eb": [(BASE, 1.0)]})
    assert set(found.stalls["reason"]) == {"wait", "selected"}
    tracemalloc.start()
    findings(found.instruction_columns, {"wait": {0: 1.0}, "A" * 1_000_000: {1: 1.0}}, found.loop_columns, About())
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    many = {f"{STALL}r{number}": [(BASE, 0.0)] for number in range(1000)}
    with read_report(made_report(tmp_path / "made.ncu-rep", "80", GEMM, **many)) as report:
        assert 0 < len(counts_of(report.kernels[0].metrics).stalls) <= 200


def sized(path: Path, contents: dict[str, bytes], places: int) -> Path:
    """A report of a launch that has these functions behind each other, and counts at so many addresses."""
    starts = np.cumsum([0, *map(len, contents.values())]).tolist()
    at = tuple(CodeFunction(name, BASE + start) for name, start in zip(contents, starts, strict=False))
    module, listed = Code(made_cubin(contents), (), at), factory.by_address(BASE, inst_executed=[1.0] * places)
    scalars = {**device("80"), **factory.timing()}
    return factory.report(path, factory.kernel(scalars, "k0", mangled_name=next(iter(contents)), code=module, instances=listed))


FIVE = {f"f{number}": EXIT for number in range(5)}


@pytest.mark.parametrize(
    ("contents", "places", "limit", "told"),
    [
        ({"k": FFMA * 99 + EXIT}, 8, 100, "it has 100 instructions, and no more than 99 are read; counts stand"),
        ({"k": FFMA * 9 + EXIT}, 15, 15, "it has 15 instructions"),  # with those outside of the code
        (FIVE, 5, 5, "it has 5 functions, and no more than 4 are read"),
    ],
)
def test_code_that_is_too_large_leaves_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes], places: int, limit: int, told: str
) -> None:
    path, name = sized(tmp_path / "made.ncu-rep", contents, places), "FUNCTIONS" if contents is FIVE else "INSTRUCTIONS"
    monkeypatch.setattr(code_limits, name, limit)
    assert source_roofline(path).notes == ()
    cubin.module_of.cache_clear()
    monkeypatch.setattr(code_limits, name, limit - 1)
    monkeypatch.setattr(cubin, "decode", None)  # not even begun
    found = source_roofline(path)
    assert (len(found.instructions), found.instructions["executed"].sum()) == (places, places)
    assert any(told in one for one in found.notes)


def test_more_lines_addresses_inlined_levels_and_sources_than_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.cu").write_bytes(b"\n" * 15_000_000)
    assert len(find_source("empty.cu", [str(tmp_path)]) or ()) == 1_000_000
    path = sized(tmp_path / "made.ncu-rep", {"k": EXIT}, 30)
    monkeypatch.setattr(build, "INSTRUCTIONS", 29)
    with pytest.raises(RooflineError, match="launch 0 has counts at 30 addresses, and no more than 29 are shown") as error:
        source_roofline(path)
    assert str(path) in str(error.value)
    monkeypatch.undo()
    cubin.module_of.cache_clear()
    monkeypatch.setattr(cubin, "INLINED_LEVELS", 50)
    found = made(tmp_path)
    assert any("more than 50 levels of inlined code" in one for one in found.notes)
    assert ((found.lines["line"] < 0).all(), found.instructions["executed"].sum() > 0) == (True, True)
    monkeypatch.undo()
    cubin.module_of.cache_clear()
    monkeypatch.setattr(report_code, "IMPORTED_BYTES", 10)
    assert any("sources of a module are read up to 64 MB: without" in one for one in made(tmp_path).notes)


def test_many_functions_are_placed_in_proportion_and_disassembled_in_two_steps(tmp_path: Path) -> None:
    def place(count: int) -> int:
        with read_report(sized(tmp_path / "made.ncu-rep", {f"f{number}": EXIT for number in range(count)}, count)) as opened:
            kernel = opened.kernels[0]
            module = kernel.code
            assert module is not None
            read, addresses = cubin.Cubin(module.cubin), [BASE + 16 * number for number in range(count)]
            assert len(placed(kernel, module, read, addresses)) == count
            return steps(lambda: placed(kernel, module, read, addresses))

    assert place(400) < 5 * place(100)
    sizes = []

    def texts(codes: Any, _: object) -> Any:
        sizes.append(len(codes))
        return [{0: "EXIT"} for _ in codes]

    found = source_roofline(tmp_path / "made.ncu-rep", disassemble=texts)
    assert (sizes, set(found.instructions["sass"])) == ([1, 99], {"EXIT"})
