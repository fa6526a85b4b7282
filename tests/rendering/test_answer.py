"""The sentences that answer first: what takes the time, what limits it, what is to be gained, and the ranking behind them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical.answer import answers_of, ranked
from ncu_roofline.analyses.hierarchical.captions import roof_note, subtitle
from ncu_roofline.analyses.hierarchical.kernel_table import kernel_columns
from ncu_roofline.analyses.hierarchical.summary import summary
from ncu_roofline.analyses.hierarchical.usage import usages
from ncu_roofline.facts.verdict import Limit, judge
from ncu_roofline.model import Selection, columns, roofline
from ncu_roofline.rendering.by_gpu import by_gpu
from ncu_roofline.rendering.frames import table
from tests.factory import complete, report
from tests.factory import kernel as result
from tests.rendering.frames import FakeRoofline, make_roofline

NAN = math.nan


def kernel(name: str, seconds: float, full: float = NAN, **more: Any) -> dict[str, Any]:
    """A row of the kernels, bound by DRAM that is as full as said."""
    verdict = judge([Limit("memory", "dram", "DRAM", full, True, "")])
    row = {
        "kernel": name, "name": name, "kind": "kernel", "report": "a.ncu-rep", "device": "V100", "status": "ok", "step": -1,
        "launches": 1, "untimed": 0, "seconds": seconds, "verdict": verdict.text, "reason": verdict.reason,
        "speedup": verdict.speedup, "recoverable": seconds * (1 - 1 / verdict.speedup),
    }  # fmt: skip
    return {**row, **more}


def frames(*rows: dict[str, Any]) -> FakeRoofline:
    """Kernels without any dot."""
    whole = make_roofline(1)
    missing = {"str": "", "float": NAN, "int": -1}
    return FakeRoofline(
        whole.points[:0],
        whole.roofs,
        pd.DataFrame([{one.name: row.get(one.name, missing[one.dtype]) for one in columns.KERNELS} for row in rows]),
    )


def test_the_whole_first_then_the_kernels_by_what_they_could_save() -> None:
    (answer,) = answers_of(frames(kernel("long", 6e-3, 0.95), kernel("wide", 4e-3, 0.5), kernel("tiny", 1e-5, 0.1)))
    assert answer.sentences == (
        "3 kernels, 10 ms: at most 1.30x faster all together.",
        "wide: 40 % of the time, latency-limited, as nothing is full: nearest is DRAM at 50 % of its roof; "
        "what keeps it was not collected (occupancy, warps, stalls); at most 2.0x faster.",
        "long: 60 % of the time, memory-bound by DRAM at 95 % of its roof; at most 1.1x faster.",
    )
    assert answer.whole == pytest.approx(10.01 / (10.01 - 0.3 - 2 - 0.009))


def test_unknown_gain_counts_with_the_whole_time_and_no_time_comes_last() -> None:
    unknown, untimed = kernel("unknown", 3e-3, verdict="unknown"), kernel("untimed", NAN, 0.1, recoverable=NAN)
    rows = frames(untimed, kernel("half", 4e-3, 0.5), unknown, kernel("full", 9e-3, 1.0))
    assert [one.kernel for one in ranked(usages(rows).values())] == ["unknown", "half", "full", "untimed"]
    (answer,) = answers_of(rows)
    assert answer.sentences[0] == (
        "4 kernels, 16 ms (1 launch without a run time): at most 1.1x faster by the kernels whose limit is known; "
        "of 18.8 % of the time the limit is not known."
    )
    assert (
        answer.sentences[1]
        == "unknown: 19 % of the time, limit unknown: neither work nor traffic nor the use of any unit was collected."
    )
    assert math.isnan(answer.whole)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (kernel("a", 2e-3, 0.99), "1 kernel, 2 ms: nothing to gain short of doing less."),
        (kernel("a", 2e-3, 0.61), "1 kernel, 2 ms: at most 1.6x faster."),
        (kernel("a", 2e-3, 1e-4), "1 kernel, 2 ms: over 100x away from any limit."),
        (kernel("a", NAN, 0.5), "1 kernel: the run time is not known."),
        (kernel("a", 2e-3), "1 kernel, 2 ms: what limits it is not known."),
        (kernel("a", 2e-3, 0.5, launches=7, launch=-1), "1 kernel, 7 launches, 2 ms: at most 2.0x faster."),
        (kernel("a", 2e-3, 0.5, kind="application"), "1 application, 2 ms: at most 2.0x faster."),
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
    assert answer.sentences[0] == "2 kernels, 4 launches, 12 ms: at most 1.33x faster all together."
    assert answer.sentences[1].startswith("a: 50 % of the time, in its longest launch, latency-limited")
    some = answers_of(frames(*launches[:2], kernel("a", 3e-3, launch=2)))[0]  # of one launch nobody knows what it could gain
    assert math.isnan(some.whole)


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


def test_of_a_short_kernel_no_speed_up_is_promised() -> None:
    short = " (too short to tell: launching alone takes a few \N{MICRO SIGN}s)."
    (alone,) = answers_of(frames(kernel("a", 8e-6, 0.02, launches=2)))
    assert alone.sentences[0] == f"1 kernel, 2 launches, 8 \N{MICRO SIGN}s: at most 50x faster{short}"
    (beside,) = answers_of(frames(kernel("a", 8e-6, 0.02), kernel("b", 9e-6, 0.9)))
    assert beside.sentences[1].endswith(f"at most 50x faster{short}")
    assert "too short" not in beside.sentences[2]
    assert "too short" not in answers_of(frames(kernel("a", 25e-6, 0.02)))[0].sentences[0]


def test_a_gpu_has_its_own_answer_and_that_with_most_time_comes_first() -> None:
    first, second = answers_of(frames(kernel("a", 1e-3, 0.5), kernel("a", 2e-3, 0.8, device="H100")))
    assert (first.device, second.device) == ("H100", "V100")
    assert first.sentences[0] == "1 kernel, 2 ms: at most 1.2x faster."


def test_of_a_sweep_the_last_step_is_judged() -> None:
    steps = [kernel("gpp", time, 0.5, step=place, label=f"nw{place + 1}") for place, time in enumerate((4e-3, 3e-3, 2e-3))]
    (answer,) = answers_of(frames(*steps))
    assert answer.sentences[0] == "3 steps, nw1 to nw3: 4 ms to 2 ms, 2x as fast; at nw3 at most 2.0x faster."
    assert answer.sentences[1].startswith("gpp, nw3: latency-limited")


def test_frames_without_verdicts_have_no_answer() -> None:
    assert answers_of(make_roofline(2, usage=False)) == ()


@pytest.mark.parametrize("by", ["launch", "kernel"])
def test_launches_without_a_run_time_are_counted_and_told(tmp_path: Path, by: str) -> None:
    timeless = {name: value for name, value in complete().items() if name != "gpu__time_duration.sum"}
    launches = [*[result(complete(), "void some(int)")] * 3, result(timeless, "void some(int)"), result(complete())]
    rows = roofline(report(tmp_path / "a.ncu-rep", *launches), by=by)
    assert (rows.kernels["launches"].sum(), rows.kernels["untimed"].sum()) == (5, 1)
    (answer,) = answers_of(rows)
    assert answer.sentences[0].startswith("2 kernels, 5 launches, 4 ms (1 launch without a run time): ")
    if by == "kernel":
        head, *others = kernel_columns(summary(rows))
        counts = next(one.cells for one in others if one.header == "launches")
        assert dict(zip(head.cells, counts, strict=True)) == {"some": "4", "kernel": "1"}


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
    assert counted["recoverable"] == pytest.approx(counted["seconds"] * (1 - 1 / counted["speedup"]))
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
