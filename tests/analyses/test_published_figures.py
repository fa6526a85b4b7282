"""Published figures of the time-based roofline and of the FMA-mix ceiling, and the property that defines the former's 4D chart.

Wang et al. 2020, of a V100; Yang, Kurth, Williams 2019, equations 6 and 7: 60 % fused is 80 % of the peak, 5.66 of 7.07 TFLOP/s
on a V100, and GPP at nw = 6 reaches 66 % of the peak.  More is in time-rooflines.frames.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline import roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.fma_mix import FMA_MIX, fma_mix
from ncu_roofline.analyses.time.frames import time_roofline
from tests import published
from tests.analyses.time_frames import ordinary, point
from tests.factory import A100, NO_WORK, complete, flops, kernel, report

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


def test_published_sweep() -> None:
    """Bound by HBM at nw = 1, by compute at nw = 6; inefficiency is the inverse of the published efficiency."""
    files = DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json"
    points = time_roofline(roofline(*files, by="kernel")).points
    balance = published.FP64_FMA / published.DRAM
    assert points["balance"].tolist() == pytest.approx([balance] * 6)
    expected = ["memory" if one < balance else "compute" for one in published.INTENSITY_DRAM]
    assert (points["bound"].tolist(), expected[0], expected[5]) == (expected, "memory", "compute")
    for row, intensity in zip(points.itertuples(), published.INTENSITY_DRAM, strict=True):
        times = (row.bandwidth_seconds, row.compute_seconds)
        other = row.seconds * min(intensity / balance, balance / intensity)
        assert times == pytest.approx((row.seconds, other) if row.bound == "memory" else (other, row.seconds), rel=1e-9)
    assert (100 / points["inefficiency"]).tolist() == pytest.approx(published.EFFICIENCY, abs=0.02)
    steps = time_roofline(roofline(*files, trajectory="nvtx")).points
    assert steps["label"].tolist() == [f"nw={nw}" for nw in range(1, 7)]
    assert steps["step"].tolist() == list(range(6))
    assert steps["traffic"].tolist() == pytest.approx([run.bytes_dram for run in published.gpp_runs()])


positive = st.floats(1e-3, 1e3)


@given(work=positive, moved=positive, peak=positive, bandwidth=positive, slower=st.floats(1.0, 1e4))
def test_filled_meets_open_exactly_at_the_roofline(
    work: float, moved: float, peak: float, bandwidth: float, slower: float
) -> None:
    """On axes scaled by bandwidth and peak the two symbols are apart by the inefficiency, on both axes alike."""
    work, moved, peak, bandwidth = work * 1e9, moved * 1e8, peak * 1e12, bandwidth * 1e11
    seconds = slower * max(work / peak, moved / bandwidth)
    made = point(work=work, traffic=moved, seconds=seconds, compute_roof=peak, bandwidth_roof=bandwidth)
    (row,) = time_roofline(ordinary([made])).points.to_dict("records")
    across, upwards = row["bandwidth_seconds"] * bandwidth / moved, row["compute_seconds"] * peak / work
    assert (across, upwards, row["inefficiency"]) == pytest.approx((slower,) * 3, rel=1e-9)
    assert max(row["bandwidth_seconds"], row["compute_seconds"]) == pytest.approx(seconds)
    assert row["bound"] == ("compute" if work / moved >= peak / bandwidth else "memory")


def test_rates_without_totals_have_no_percent_of_time(tmp_path: Path) -> None:
    (tmp_path / "gpp.txt").write_text(
        "memroofs 829\nmem_roof_names 'HBM'\ncomproofs 7068\ncomp_roof_names 'FMA'\nAI 2 4\nGFLOPs 1500 3000\nlabels 'a' 'b'\n"
    )
    result = time_roofline(roofline(tmp_path / "gpp.txt", by="kernel"))
    assert list(result.absent["status"]) == ["no-totals"]
    assert not re.search(r"\b0 %|0\.0 %", render(result, "text").decode())


def test_published_mix_of_gpp() -> None:
    frame = fma_mix(roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json"))
    assert list(frame.columns) == [column.name for column in FMA_MIX]
    assert frame["alpha"].tolist() == pytest.approx([0.6] * 6)
    assert frame["beta"].tolist() == pytest.approx([0.8] * 6)
    assert frame["compute_roof"].tolist() == [published.FP64_FMA] * 6
    assert frame["ceiling"].tolist() == pytest.approx([5.66e12] * 6, rel=1e-3)
    last = frame.iloc[-1]
    assert last["performance"] / last["compute_roof"] == pytest.approx(0.66, abs=0.005)
    assert last["fraction"] == pytest.approx(0.66 / 0.8, abs=0.01)
    steps = fma_mix(roofline(DEMO / "gpp-v100.ncu-rep", trajectory="nvtx"))
    assert steps["label"].tolist() == [f"nw={nw}" for nw in range(1, 7)]


def test_alpha_is_of_instructions(tmp_path: Path) -> None:
    """Without any of them there is no mix, and no row."""
    counts = {1.0: {"fma": 10**6}, 0.0: {"add": 10**6}, 0.5: {"add": 10**6, "mul": 10**6, "fma": 2 * 10**6}}
    for alpha, counted in counts.items():
        path = report(tmp_path / "a.ncu-rep", kernel({**complete(A100), **NO_WORK, **flops("d", **counted)}))
        (row,) = fma_mix(roofline(path)).to_dict("records")
        assert row["alpha"] == pytest.approx(alpha)
        assert row["fraction"] == pytest.approx(row["performance"] / (row["compute_roof"] * (1 + alpha) / 2))
    assert fma_mix(roofline(report(tmp_path / "a.ncu-rep", kernel({**complete(A100), **NO_WORK})))).empty
