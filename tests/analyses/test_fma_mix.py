"""The FMA-mix ceiling against the published figures: 60 % fused is 80 % of the peak, 5.66 of 7.07 TFLOP/s on a V100.

Yang, Kurth, Williams (2019), equations 6 and 7 and their discussion of GPP at nw = 6: 66 % of the peak.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses.fma_mix import FMA_MIX, fma_mix
from tests import published
from tests.factory import A100, NO_WORK, complete, flops, kernel, report

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


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
