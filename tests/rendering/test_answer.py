"""The sentences that answer first: what takes the time, what limits it, which headroom it has; the ranking; notes of rows."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ncu_roofline.analyses.hierarchical.captions import roof_note, row_notes, subtitle
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernels_of, ranked
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.chips.verdict import TOO_SHORT, Limit
from ncu_roofline.model import Selection, columns, roofline
from ncu_roofline.rendering.frames import by_gpu, table
from tests.factory import complete, report
from tests.factory import kernel as launch
from tests.golden import assert_golden
from tests.rendering.frames import FakeRoofline, make_roofline, tomllib
from tests.test_verdict import verdict as verdict_of

NAN = math.nan
HERE = Path(__file__).parent
ANSWERS = tomllib.loads((HERE / "answers.toml").read_text(encoding="utf-8"))


def kernel(kernel: str, seconds: float, full: float = NAN, **more: Any) -> dict[str, Any]:
    """A row of the kernels, bound by DRAM that is as full as said."""
    verdict = verdict_of(Limit("memory", "dram", "DRAM", full, True, "", False))
    row = {
        "kernel": kernel, "name": kernel, "kind": "kernel", "report": "a.ncu-rep", "device": "V100", "status": "ok", "step": -1,
        "launches": 1, "untimed": 0, "seconds": seconds, "verdict": verdict.text, "reason": verdict.reason,
        "headroom": verdict.headroom, "recoverable": seconds * (1 - 1 / verdict.headroom), **more,
    }  # fmt: skip
    judged, short = math.isfinite(row["recoverable"]), row["verdict"] == TOO_SHORT
    return row | {"judged_seconds": judged * row["seconds"], "short_seconds": short * row["seconds"]}


def frames(*rows: dict[str, Any]) -> FakeRoofline:
    """Kernels without any dot."""
    whole, missing = make_roofline(1), {"str": "", "float": NAN, "int": -1}
    kernels = [{one.name: row.get(one.name, missing[one.dtype]) for one in columns.KERNELS} for row in rows]
    return FakeRoofline(whole.points[:0], whole.roofs, pd.DataFrame(kernels))


def test_sentences() -> None:
    said = []
    for name, case in ANSWERS.items():
        answers = answers_of(frames(*(kernel(**row) for row in case["kernels"])))
        said += [f"== {name}", *(line for answer in answers for line in (f"{answer.device}:", *answer.sentences)), ""]
    assert_golden(HERE / "golden" / "answers.txt", "\n".join(said))


def test_ranks_and_shares_of_the_time_of_each_gpu() -> None:
    rows = frames(kernel("none", NAN, 0.1, recoverable=NAN), kernel("full", 9e-3, 1.0), kernel("half", 4e-3, 0.5))
    assert [one.kernel for one in ranked(kernels_of(rows).values())] == ["half", "full", "none"]
    assert not answers_of(make_roofline(2, usage=False))
    rows = frames(*(kernel(**row) for row in ANSWERS["gpus"]["kernels"]))
    shares = {device: list(table(part, "kernels")["time_share"]) for device, part in by_gpu(rows).items()}
    assert shares == {"V100": [0.75, 0.25], "H100": [1.0]}
    one = frames(kernel("a", 3e-3, 0.5))
    assert list(by_gpu(one).values()) == [one]


def test_a_selection_says_of_how_much_it_is(tmp_path: Path) -> None:
    times = {"void a(int)": (4e-3, 2e-3), "void b(int)": (3e-3,), "void c(int)": (1e-3,)}
    launches = [launch(complete(seconds=one), name) for name, some in times.items() for one in some]
    path = report(tmp_path / "r.ncu-rep", *launches)
    two = roofline(path, by="kernel", select=Selection(top=2, top_by="kernel"))
    assert dict(zip(two.kernels["kernel"], two.kernels["time_share"], strict=True)) == pytest.approx({"a": 0.6, "b": 0.3})
    (answer,) = answers_of(two)
    assert answer.sentences[0].startswith("2 of 3 kernels, 3 of 4 launches, 90 % of the time, 9 ms: ")
    assert answer.sentences[1].startswith("a: 60 % of the time")
    for select, start in (
        (Selection(launch=((0, 0), (2, 3))), "3 kernels, 3 of 4 launches, 80 % of the time, 8 ms: "),
        (Selection(), "3 kernels, 4 launches, 10 ms: "),
    ):
        assert answers_of(roofline(path, by="kernel", select=select))[0].sentences[0].startswith(start)


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_launches_that_are_short_or_without_a_run_time(tmp_path: Path, by: str) -> None:
    short, longer = launch(complete(seconds=8e-6), "void a(int)"), launch(complete(seconds=992e-6), "void b(int)")
    (alone,) = answers_of(roofline(report(tmp_path / "a.ncu-rep", short, short), by=by))
    assert alone.sentences[0] == "1 kernel, 2 launches, 16 \N{MICRO SIGN}s: too short to judge."
    longest = "in its longest launch, " * (by == "launch")
    assert alone.sentences[1].startswith(f"a: {longest}too short to judge: 8 us per launch; ")
    (beside,) = answers_of(roofline(report(tmp_path / "b.ncu-rep", short, longer), by=by))
    (only,) = answers_of(roofline(report(tmp_path / "b.ncu-rep", longer), by=by))
    headroom = only.sentences[0].partition(": ")[2].rstrip(".")
    assert beside.sentences[0] == f"2 kernels, 1 ms: {headroom}; 0.8 % of the time is in launches too short to judge."
    timeless = {name: value for name, value in complete().items() if name != "gpu__time_duration.sum"}
    launches = [*[launch(complete(), "void some(int)")] * 3, launch(timeless, "void some(int)"), launch(complete())]
    rows = roofline(report(tmp_path / "a.ncu-rep", *launches), by=by)
    assert (rows.kernels["launches"].sum(), rows.kernels["untimed"].sum()) == (5, 1)
    assert answers_of(rows)[0].sentences[0].startswith("2 kernels, 5 launches, 4 ms (1 launch without a run time): ")
    if by == "kernel":
        assert {row["kernel"]: row["launches"] for row in kernels_table(rows).rows} == {"some": 4, "kernel": 1}
    busy = launch(complete() | {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 40})
    counted, uncounted = roofline(report(tmp_path / "c.ncu-rep", longer, busy), by=by).kernels.to_dict("records")
    assert counted["recoverable"] == pytest.approx(counted["seconds"] * (1 - 1 / counted["headroom"]))
    assert counted["recoverable"] > 0
    assert (uncounted["verdict"], math.isnan(uncounted["recoverable"])) == ("tensor work unknown", True)


def test_one_clock_is_told_or_what_it_is_of(tmp_path: Path) -> None:
    clocks = {1.0e9: 8e-3, 1.2e9: 1e-3, 1.3e9: 1e-3}
    launches = [launch(complete(seconds=seconds, clock=clock)) for clock, seconds in clocks.items()]
    rows = roofline(report(tmp_path / "a.ncu-rep", *launches))
    assert "SM clock 1.05 GHz (1 to 1.3 GHz)" in subtitle(rows).replace("1.00", "1").replace("1.30", "1.3")
    assert roof_note(rows) == "Roofs: theoretical at profiled clock (median of the launches 1.2 GHz)."
    alike = roofline(report(tmp_path / "b.ncu-rep", launches[1], launches[1]))
    assert roof_note(alike) == "Roofs: theoretical at profiled clock 1.2 GHz."


# Notes of points and roofs: all that make a number doubtful, of the others the commonest.

COMMON = ("sectors x 32 B", "wavefronts x 128 B", "sum of sectors x 32 B", "of all units", "read", "written")
BOUNDS = ("lower bound: loads of global memory", "loads only (return path)", "wgmma: unproven", "true of Volta only")


def noted(points: Any, roofs: Any, most: int) -> list[str]:
    return row_notes(SimpleNamespace(points=pd.DataFrame(points), roofs=pd.DataFrame(roofs)), most)  # type: ignore[arg-type]


def test_lower_bounds_survive_then_the_commonest_notes_with_what_they_are_of() -> None:
    notes = [note for index, note in enumerate(COMMON) for _ in range(20 - index)]
    for most in (0, 4, 8):
        shown = noted({"notes": [*notes, *BOUNDS[:3]]}, {"notes": [BOUNDS[3]]}, most)
        assert [note.lower() for note in shown] == [f"{note.lower()}." for note in (*BOUNDS, *COMMON[: max(0, most - 4)])]
    assert noted({"notes": ["c", "a", "a; b", "b", "b"]}, {"notes": []}, 2) == ["B.", "A."]
    points = {"level": ["l1", "l2", "dram"] * 2, "precision": ["fp32"] * 3 + ["fp16"] * 3}
    points["notes"] = ["back; all", "back; all", "all", "back; all; odd", "back; all; odd", "all; odd"]
    roofs = {"level": ["l2", "dram", ""], "label": ["L2", "DRAM", "FP32 FMA"], "notes": ["L2 slices", "top", "clock"]}
    wanted = {"L1, L2: back.", "All.", "FP16: odd.", "L2 slices.", "DRAM: top.", "FP32 FMA: clock."}
    assert set(noted(points, roofs, 9)) == wanted
