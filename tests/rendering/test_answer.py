"""The sentences that answer first: what takes the time, what limits it, which headroom it has, and the ranking behind them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical.captions import roof_note, subtitle
from ncu_roofline.analyses.hierarchical.kernels import answers_of, kernels_of, ranked
from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.chips.verdict import TOO_SHORT, Limit
from ncu_roofline.model import Selection, columns, roofline
from ncu_roofline.rendering.frames import by_gpu, table
from tests.factory import complete, report
from tests.factory import kernel as result
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.test_verdict import verdict as verdict_of

NAN = math.nan


def kernel(name: str, seconds: float, full: float = NAN, **more: Any) -> dict[str, Any]:
    """A row of the kernels, bound by DRAM that is as full as said."""
    verdict = verdict_of(Limit("memory", "dram", "DRAM", full, True, "", False))
    row = {
        "kernel": name, "name": name, "kind": "kernel", "report": "a.ncu-rep", "device": "V100", "status": "ok", "step": -1,
        "launches": 1, "untimed": 0, "seconds": seconds, "verdict": verdict.text, "reason": verdict.reason,
        "headroom": verdict.headroom, "recoverable": seconds * (1 - 1 / verdict.headroom),
    }  # fmt: skip
    return {**row, **more}


def frames(*rows: dict[str, Any]) -> FakeRoofline:
    """Kernels without any dot."""
    whole = make_roofline(1)
    missing = {"str": "", "float": NAN, "int": -1}
    for row in rows:
        judged, short = math.isfinite(row["recoverable"]), row["verdict"] == TOO_SHORT
        row |= {"judged_seconds": judged * row["seconds"], "short_seconds": short * row["seconds"]}
    return FakeRoofline(
        whole.points[:0],
        whole.roofs,
        pd.DataFrame([{one.name: row.get(one.name, missing[one.dtype]) for one in columns.KERNELS} for row in rows]),
    )


def test_the_whole_first_then_the_kernels_by_what_they_could_save() -> None:
    (answer,) = answers_of(frames(kernel("long", 6e-3, 0.95), kernel("wide", 4e-3, 0.5), kernel("tiny", 1e-5, 0.1)))
    assert answer.sentences == (
        "3 kernels, 10 ms: headroom 1.30x at present traffic and instructions.",
        "wide: 40 % of the time, latency-bound, no unit above 60 % (highest: DRAM at 50 % of its roof); "
        "what keeps it was not collected (occupancy, warps, stalls): 2.0x at its present traffic and instructions.",
        "long: 60 % of the time, DRAM-bound at 95 % of its roof: 1.05x at its present traffic.",
    )


def test_the_compute_roofs_are_in_the_first_sentence_where_most_of_the_time_has_one() -> None:
    rows = [kernel("long", 6e-3, 1.0, headroom_compute=12.0), kernel("wide", 4e-3, 1.0, headroom_compute=2.0)]
    first = answers_of(frames(*rows))[0].sentences[0]
    assert first == "2 kernels, 10 ms: headroom 1.00x at present traffic and instructions, 4.0x to the compute roofs."
    most = answers_of(frames(*rows, kernel("copy", 1e-3, 0.9)))[0].sentences[0]
    assert most.endswith(", 4.0x to the compute roofs for 90.9 % of the time.")
    assert "compute roofs" not in answers_of(frames(*rows, kernel("copy", 11e-3, 0.9)))[0].sentences[0]


def test_unknown_headroom_ranks_with_the_whole_time_but_enters_no_sum_and_no_time_comes_last() -> None:
    unknown, untimed = kernel("unknown", 3e-3, verdict="unknown"), kernel("untimed", NAN, 0.1, recoverable=NAN)
    rows = frames(untimed, kernel("half", 4e-3, 0.5), unknown, kernel("full", 9e-3, 1.0))
    assert [one.kernel for one in ranked(kernels_of(rows).values())] == ["unknown", "half", "full", "untimed"]
    (answer,) = answers_of(rows)
    assert answer.sentences[0] == (
        "4 kernels, 16 ms (1 launch without a run time): headroom 1.18x at present traffic and instructions; "
        "unknown for 18.8 % of the time."
    )
    assert (
        answer.sentences[1]
        == "unknown: 19 % of the time, limit unknown: neither work nor traffic nor the use of any unit was collected."
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (kernel("a", 2e-3, 0.99), "1 kernel, 2 ms: headroom 1.01x at present traffic and instructions."),
        (kernel("a", 2e-3, 0.61), "1 kernel, 2 ms: headroom 1.6x at present traffic and instructions."),
        (kernel("a", 2e-3, 1e-4), "1 kernel, 2 ms: headroom 10,000x at present traffic and instructions."),
        (kernel("a", NAN, 0.5), "1 kernel: the run time is not known."),
        (kernel("a", 2e-3), "1 kernel, 2 ms: its headroom is not known."),
        (
            kernel("a", 2e-3, 0.5, launches=7, launch=-1),
            "1 kernel, 7 launches, 2 ms: headroom 2.0x at present traffic and instructions.",
        ),
        (kernel("a", 2e-3, 0.5, kind="application"), "1 application, 2 ms: headroom 2.0x at present traffic and instructions."),
    ],
)
def test_one_row(row: dict[str, Any], said: str) -> None:
    (answer,) = answers_of(frames(row))
    assert answer.sentences[0] == said
    assert len(answer.sentences) == 2
    assert "of the time" not in answer.sentences[1]


def test_launches_are_counted_as_launches_of_their_kernels() -> None:
    launches = [kernel("a", (1 + place) * 1e-3, 0.5, launch=place) for place in range(3)]
    (answer,) = answers_of(frames(*launches, kernel("b", 6e-3, 1.0, launch=3)))
    assert answer.sentences[0] == "2 kernels, 4 launches, 12 ms: headroom 1.33x at present traffic and instructions."
    assert answer.sentences[1].startswith("a: 50 % of the time, in its longest launch, latency-bound")
    some = answers_of(frames(*launches[:2], kernel("a", 3e-3, launch=2)))[0].sentences[0]
    assert some.endswith(": headroom 2.0x at present traffic and instructions; unknown for 50.0 % of the time.")


def test_kernels_and_launches_are_counted_alike_everywhere() -> None:
    rows = frames(*(kernel("a", 1e-3, status="no-work-metrics", launch=place) for place in range(3)))
    text = render(rows, "text").decode()
    assert text.startswith("1 kernel, 3 launches, 3 ms")
    assert "1 kernel, 3 launches without metrics of floating-point work" in text


def test_a_selection_says_of_how_much_it_is(tmp_path: Path) -> None:
    times = {"void a(int)": (4e-3, 2e-3), "void b(int)": (3e-3,), "void c(int)": (1e-3,)}
    path = report(
        tmp_path / "r.ncu-rep", *(result(complete(seconds=one), name) for name, some in times.items() for one in some)
    )
    whole, two = roofline(path, by="kernel"), roofline(path, by="kernel", select=Selection(top=2, top_by="kernel"))
    shares = dict(zip(whole.kernels["kernel"], whole.kernels["time_share"], strict=True))
    assert dict(zip(two.kernels["kernel"], two.kernels["time_share"], strict=True)) == {"a": shares["a"], "b": shares["b"]}
    (answer,) = answers_of(two)
    assert answer.sentences[0].startswith("2 of 3 kernels, 3 of 4 launches, 90 % of the time, 9 ms: ")
    assert answer.sentences[1].startswith("a: 60 % of the time")
    first = answers_of(roofline(path, by="kernel", select=Selection(launch=((0, 0), (2, 3)))))[0].sentences[0]
    assert first.startswith("3 kernels, 3 of 4 launches, 80 % of the time, 8 ms: ")
    assert answers_of(whole)[0].sentences[0].startswith("3 kernels, 4 launches, 10 ms: ")


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_short_launches_have_one_answer_and_enter_no_headline(tmp_path: Path, by: str) -> None:
    micro = "\N{MICRO SIGN}"
    short, longer = result(complete(seconds=8e-6), "void a(int)"), result(complete(seconds=992e-6), "void b(int)")
    (alone,) = answers_of(roofline(report(tmp_path / "a.ncu-rep", short, short), by=by))
    assert alone.sentences[0] == f"1 kernel, 2 launches, 16 {micro}s: too short to judge."
    assert alone.sentences[1].startswith(
        f"a: {'in its longest launch, ' * (by == 'launch')}too short to judge: 8 us a launch; "
    )
    (beside,) = answers_of(roofline(report(tmp_path / "b.ncu-rep", short, longer), by=by))
    (only,) = answers_of(roofline(report(tmp_path / "c.ncu-rep", longer), by=by))
    headroom = only.sentences[0].partition(": ")[2].rstrip(".")
    assert beside.sentences[0] == (f"2 kernels, 1 ms: {headroom}; 0.8 % of the time is in launches too short to judge.")


def test_a_gpu_has_its_own_answer_and_that_with_most_time_comes_first() -> None:
    first, second = answers_of(frames(kernel("a", 1e-3, 0.5), kernel("a", 2e-3, 0.8, device="H100")))
    assert (first.device, second.device) == ("H100", "V100")
    assert first.sentences[0] == "1 kernel, 2 ms: headroom 1.2x at present traffic and instructions."


def test_of_a_sweep_the_last_step_is_judged() -> None:
    steps = [kernel("gpp", time, 0.5, step=place, label=f"nw{place + 1}") for place, time in enumerate((4e-3, 3e-3, 2e-3))]
    (answer,) = answers_of(frames(*steps))
    assert (
        answer.sentences[0]
        == "3 steps, nw1 to nw3: 4 ms to 2 ms, 2x as fast; at nw3 headroom 2.0x at present traffic and instructions."
    )
    assert answer.sentences[1].startswith("gpp, nw3: latency-bound")


def test_frames_without_verdicts_have_no_answer() -> None:
    assert not answers_of(make_roofline(2, usage=False))


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_launches_without_a_run_time_are_counted_and_told(tmp_path: Path, by: str) -> None:
    timeless = {name: value for name, value in complete().items() if name != "gpu__time_duration.sum"}
    launches = [*[result(complete(), "void some(int)")] * 3, result(timeless, "void some(int)"), result(complete())]
    rows = roofline(report(tmp_path / "a.ncu-rep", *launches), by=by)
    assert (rows.kernels["launches"].sum(), rows.kernels["untimed"].sum()) == (5, 1)
    (answer,) = answers_of(rows)
    assert answer.sentences[0].startswith("2 kernels, 5 launches, 4 ms (1 launch without a run time): ")
    if by == "kernel":
        assert {row["kernel"]: row["launches"] for row in kernels_table(rows).rows} == {"some": 4, "kernel": 1}


def test_one_clock_is_told_or_what_it_is_of(tmp_path: Path) -> None:
    clocks = {1.0e9: 8e-3, 1.2e9: 1e-3, 1.3e9: 1e-3}
    launches = [result(complete(seconds=seconds, clock=clock)) for clock, seconds in clocks.items()]
    rows = roofline(report(tmp_path / "a.ncu-rep", *launches))
    assert "SM clock 1.05 GHz (1 to 1.3 GHz)" in subtitle(rows).replace("1.00", "1").replace("1.30", "1.3")
    assert roof_note(rows) == "Roofs: theoretical at profiled clock (median of the launches 1.2 GHz)."
    alike = roofline(report(tmp_path / "b.ncu-rep", launches[1], launches[1]))
    assert roof_note(alike) == "Roofs: theoretical at profiled clock 1.2 GHz."


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_the_model_says_how_much_time_is_recoverable(tmp_path: Path, by: str) -> None:
    busy = result(complete() | {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 40})
    path = report(tmp_path / "a.ncu-rep", result(complete(), name="void counted()"), busy)
    counted, uncounted = roofline(path, by=by).kernels.to_dict("records")
    assert counted["recoverable"] == pytest.approx(counted["seconds"] * (1 - 1 / counted["headroom"]))
    assert counted["recoverable"] > 0
    assert uncounted["verdict"] == "tensor work unknown"
    assert np.isnan(uncounted["recoverable"])


def test_shares_of_several_gpus_are_each_of_its_own_time() -> None:
    rows = frames(kernel("a", 3e-3, 0.5), kernel("b", 1e-3, 0.5), kernel("a", 1e-3, 0.8, device="H100"))
    parts = by_gpu(rows)
    assert {device: list(table(part, "kernels")["time_share"]) for device, part in parts.items()} == {
        "V100": [0.75, 0.25],
        "H100": [1.0],
    }
    one = frames(kernel("a", 3e-3, 0.5))
    assert list(by_gpu(one).values()) == [one]
