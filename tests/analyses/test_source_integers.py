"""Integer work by instruction: counted as the model counts INT32, and drawn where it limits a kernel or is all that it does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.frames import FLOPS, INTEGERS, SourceRoofline
from ncu_roofline.analyses.source.page import render_html
from ncu_roofline.analyses.source.totals import Demanded, LaunchRoofs
from ncu_roofline.model.selection import Selection
from tests.analyses.source_made import WARPS, made_report
from tests.rendering.test_page import Markup

COLLATZ, GEMM = "_Z7collatzPKjPj", "_Z4gemmPKfS0_Pfi"
COUNTED = {"IADD3": 1, "IMAD": 1, "LEA": 1, "LOP3": 1, "SHF": 1}


@pytest.fixture(scope="module")
def collatz(tmp_path_factory: pytest.TempPathFactory) -> SourceRoofline:
    return source_roofline(made_report(tmp_path_factory.mktemp("made") / "collatz.ncu-rep", "80", COLLATZ, trips=50))


def chart(frames: SourceRoofline) -> dict[str, Any]:
    """What the page draws of the only launch."""
    return launch(frames)["chart"]


def launch(frames: SourceRoofline) -> dict[str, Any]:
    (one,) = Markup(render_html(frames)).data["launches"]
    return one


@pytest.mark.parametrize("mangled", [COLLATZ, GEMM])
def test_work_is_that_of_the_model(tmp_path: Path, mangled: str) -> None:
    """One operation is one thread's instruction of integer arithmetic or logic; moves, comparisons and jumps are none."""
    found = source_roofline(made_report(tmp_path / "made.ncu-rep", "80", mangled))
    rows = found.instructions
    weights = rows["opcode"].map(lambda one: 0 if one.startswith("IMAD.MOV") else COUNTED.get(one.partition(".")[0], 0))
    assert (rows["work_int32"] == 32 * rows["executed"] * weights).all()
    total = found.totals.set_index("quantity").loc["work_int32"]
    assert (total["unit"], total["ratio"]) == ("op", 1)
    assert total["sum"] == rows["work_int32"].sum() > 0
    assert found.totals.set_index("quantity").loc["work", "sum"] == rows["work_fp32"].sum()
    np.testing.assert_allclose(rows["share_int32"].sum(), 1)


def test_integers_are_counted_where_there_is_no_other_work(collatz: SourceRoofline) -> None:
    loop = collatz.loops.iloc[0]
    assert (loop["performance_of"], loop["unit"], loop["work"]) == (INTEGERS, "op", 0)
    assert loop["performance_least"] == pytest.approx(loop["work_int32"] / 1e-3)
    assert loop["notes"] == "asks nothing of L1"
    assert math.isnan(collatz.loops["share_work"].sum(skipna=False))
    rows = collatz.lines.query("requested > 0")
    np.testing.assert_allclose(rows["intensity_int32"], rows["work_int32"] / rows["requested"])
    assert (rows["intensity"] == 0).all()


def test_loads_of_constants_are_not_drawn(collatz: SourceRoofline) -> None:
    """Opcodes have HFMA2, by which the compiler sets a register to 0, and the kernel computes integers alone."""
    assert collatz.instructions.query("opcode == 'HFMA2.MMA'")["executed"].sum() == WARPS
    drawn = chart(collatz)
    assert (drawn["label"], drawn["unit"]) == ("INT32", "op")
    assert [roof["label"] for roof in drawn["roofs"] if roof["kind"] == "compute"] == ["INT32"]
    points = collatz.roofline.points.query("precision == 'int32'")
    assert [dot["performance"] for dot in drawn["dots"]] == pytest.approx(points["performance"].tolist())


def test_kernel_and_loops_of_a_page_count_the_same(collatz: SourceRoofline) -> None:
    shown = launch(collatz)
    dot = next(one for one in shown["chart"]["dots"] if one["level"] == shown["chart"]["nearest"])
    work = sum(loop["work_int32"] for loop in shown["loops"] if loop["parent"] < 0)
    traffic = sum(loop["requested"] for loop in shown["loops"] if loop["parent"] < 0)
    assert dot["intensity"] == pytest.approx(work / traffic)
    assert (shown["works"], shown["work_unit"]) == ("int32", "flop")
    loop = collatz.loops.iloc[-1]
    assert shown["loops"][-1]["intensity"] == pytest.approx(loop["intensity_int32"], rel=1e-6)


def test_texts_say_what_is_counted(collatz: SourceRoofline) -> None:
    for text in (text_table(collatz, width=160), render(collatz, "md").decode()):
        assert "OP/B and performance count INT32 operations, as it does no floating-point work." in text
        assert "INT32 operations 1.000" in text
        assert "FLOP/B" not in text
    other = source_roofline(made_report(Path(collatz.instructions["report"].iloc[0]).parent / "gemm.ncu-rep", "80", GEMM))
    assert "INT32" not in text_table(other, width=160)
    assert chart(other)["label"] == "FP32"


def roofs(bound: str, *kinds: str) -> LaunchRoofs:
    each = tuple(Demanded(kind, "op" if kind == "int32" else "flop", kind, 1.0, 1.0, "") for kind in kinds)
    return LaunchRoofs(seconds=1.0, l1=1.0, demanded=each, constants=False, bound=bound)


@pytest.mark.parametrize(
    ("bound", "kinds", "whole", "counted"),
    [
        ("", ("fp32", "int32"), (5.0, 9.0), FLOPS),
        ("alu", ("fp32", "int32"), (5.0, 9.0), FLOPS),
        ("int32", ("fp32", "int32"), (5.0, 9.0), INTEGERS),
        ("", ("fp16", "int32"), (0.0, 9.0), INTEGERS),  # the counter has loads of constants
        ("", ("fp32", "int32"), (math.nan, 9.0), FLOPS),  # code that nobody knows: what the counters say
        ("", ("int32",), (math.nan, math.nan), INTEGERS),
        ("", (), (0.0, 0.0), FLOPS),
        ("", (), (0.0, math.nan), FLOPS),
    ],
)
def test_what_performance_counts(bound: str, kinds: tuple[str, ...], whole: tuple[float, float], counted: str) -> None:
    assert roofs(bound, *kinds).performance_of({FLOPS: whole[0], INTEGERS: whole[1]}) == counted


def test_the_unit_of_work_is_not_that_of_integers() -> None:
    assert roofs("int32", "fp64", "int32").unit == "flop"
    assert roofs("int32", "int32").unit == "flop"


@pytest.mark.reports
def test_a_kernel_that_int32_limits(real_reports: dict[str, Path]) -> None:
    """A kernel of tensor products whose integer arithmetic is what is full."""
    one = Selection(launch=((1, 1),))
    found = source_roofline(real_reports["a40-ncu2022.1-full-1.ncu-rep"], select=one)
    points = roofline(real_reports["a40-ncu2022.1-full-1.ncu-rep"], select=one).points
    assert set(points["precision"]) == {"int32", "tensor.int8"}
    drawn = chart(found)
    assert [roof["label"] for roof in drawn["roofs"] if roof["kind"] == "compute"] == ["INT32"]
    told = found.loops.query("performance == performance")
    assert len(told) == 2
    np.testing.assert_allclose(
        told["performance"], told["work_int32"] / (told["share_samples"] * found.roofline.kernels["seconds"][0])
    )
    units = found.totals.set_index("quantity")["unit"]
    assert (units["work"], units["work_tensor"], units["work_int32"]) == ("op", "op", "op")
    assert "which limit it" in text_table(found)
