"""Which notes of points and roofs stand below a chart: all that make a number doubtful, of the others the commonest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses.hierarchical.captions import row_notes
from tests.factory import A100, NO_WORK, complete, flops, kernel, report, timing

COMMON = ("sectors x 32 B", "wavefronts x 128 B", "sum of sectors x 32 B", "of all units", "read", "written")
BOUNDS = (
    "lower bound: loads of global memory",
    "loads only (return path)",
    "wgmma: unproven",
    "tensor instructions, true of Volta only",
)


def frames(points: list[str], roofs: list[str]) -> SimpleNamespace:
    return SimpleNamespace(points=pd.DataFrame({"notes": points}), roofs=pd.DataFrame({"notes": roofs}))


@pytest.mark.parametrize("most", [0, 4, 8])
def test_lower_bounds_survive(most: int) -> None:
    notes = [note for index, note in enumerate(COMMON) for _ in range(20 - index)]
    shown = row_notes(frames([*notes, *BOUNDS[:3]], [BOUNDS[3]]), most)  # type: ignore[arg-type]
    assert [note.rstrip(".").lower() for note in shown[:4]] == [note.lower() for note in BOUNDS]
    assert [note.rstrip(".").lower() for note in shown[4:]] == [note.lower() for note in COMMON[: max(0, most - 4)]]


def test_of_many_notes_the_commonest() -> None:
    shown = row_notes(frames(["c", "a", "a; b", "b", "b"], []), 2)  # type: ignore[arg-type]
    assert shown == ["B.", "A."]


def test_a_note_says_of_what_it_is() -> None:
    levels = ["l1", "l2", "dram"] * 2
    points = {"level": levels, "precision": ["fp32"] * 3 + ["fp16"] * 3, "notes": ["back; all", "back; all", "all"] * 2}
    points["notes"][3:] = [f"{note}; odd" for note in points["notes"][3:]]
    roofs = {"level": ["l2", "dram", ""], "label": ["L2", "DRAM", "FP32 FMA"], "notes": ["L2 slices", "top", "clock"]}
    found = SimpleNamespace(points=pd.DataFrame(points), roofs=pd.DataFrame(roofs))
    shown = set(row_notes(found, 9))  # type: ignore[arg-type]
    assert shown == {"L1, L2: back.", "All.", "FP16: odd.", "L2 slices.", "DRAM: top.", "FP32 FMA: clock."}


def test_a_rare_lower_bound_of_a_report(tmp_path: Path) -> None:
    rare = {**A100, **timing(), **NO_WORK, **flops("d", fma=10**6), "dram__bytes.sum": 1e6}
    rare |= {f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum": 1e6 for op in ("ld", "st")}
    path = report(tmp_path / "r.ncu-rep", *[kernel(complete(), f"f{i}(int)") for i in range(9)], kernel(rare, "rare(int)"))
    assert any("lower bound: loads and stores of global memory only" in note.lower() for note in row_notes(roofline(path), 0))
