"""The FMA-mix ceiling: the compute peak that a kernel can reach with its own share of fused multiply-adds.

Source: Yang, Kurth, Williams, "Hierarchical Roofline Analysis for GPUs" (2019), equations 6 and 7:

    alpha = fused instructions / (fused + other floating-point instructions)
    beta  = (2 alpha + (1 - alpha)) / 2 = (1 + alpha) / 2

A fused multiply-add does two operations in the slot of one, so instructions of this mix give beta times the FMA peak.  GPP with
alpha = 60 % can reach 80 % of the peak of a V100, 5.66 of 7.07 TFLOP/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_roofline.model import Roofline, roofline_of
from ncu_roofline.model.columns import WHERE
from ncu_roofline.model.roofline import Source
from ncu_roofline.rendering.frames import Column

if TYPE_CHECKING:
    import pandas as pd

_SAME = ("report", "launch", "kernel", "device", "label", "step", "precision")


def fma_mix(roofline: Roofline | Source | Sequence[Source]) -> pd.DataFrame:
    """The FMA mix of each kernel and precision whose report tells fused from other instructions: one row each.

    Give a Roofline, or reports as the function `roofline` takes them; errors are those.

    Columns, units and meaning: `ncu_roofline.analyses.fma_mix.FMA_MIX`; ratios from 0 to 1, rates in FLOP/s, in the order of
    ``roofline.points``.  Tensor types and sums over pipes have no mix and no row; the ceiling is NaN where no compute roof is
    known.

    >>> fma_mix("gpp-v100.ncu-rep")[["kernel", "precision"]].iloc[0].tolist()
    ['sigma_gpp_gpu<1>', 'fp64']
    """
    points = roofline_of(roofline).points
    known = points[points["fma_share"].notna()].drop_duplicates(list(_SAME)).reset_index(drop=True)
    beta = (1.0 + known["fma_share"]) / 2.0
    frame = known.assign(alpha=known["fma_share"], beta=beta, ceiling=known["mix_roof"])
    frame["fraction"] = frame["performance"] / frame["ceiling"]
    result: pd.DataFrame = frame[[column.name for column in FMA_MIX]]
    return result


FMA_MIX = (
    *(column for column in WHERE if column.name != "compute_capability"),
    Column.text("precision", "precision id: fp64, fp32, fp16"),
    Column.number("alpha", "ratio", "fused multiply-adds among add, multiply and fused instructions"),
    Column.number("beta", "ratio", "(1 + alpha) / 2: share of the FMA peak that this mix can reach"),
    Column.number("compute_roof", "flop/s", "FMA peak of this precision, measured where given"),
    Column.number("ceiling", "flop/s", "beta * compute_roof"),
    Column.number("performance", "flop/s", "work / seconds"),
    Column.number("fraction", "ratio", "performance / ceiling"),
)
