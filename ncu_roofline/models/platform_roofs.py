"""The roofs that a run is judged by: from the frames of a roofline, a row of a table, or measured ceilings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncu_roofline.ceilings import Ceiling, Ceilings
from ncu_roofline.importers import ANY_PRECISION
from ncu_roofline.importers.plain_table import PlainRow

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Roof:
    """A roof in SI units, and whether it is measured, theoretical or stated (by a table, as what is attainable)."""

    value: float
    origin: str


def frame_roofs(roofs: pd.DataFrame, precision: str, peak: float) -> dict[str, Roof]:
    """Compute roofs by ceiling; the peak is that of the points, a mean over their launches."""
    mine = roofs[roofs["precision"] == precision]
    result = {}
    for name in dict.fromkeys(mine["roof"]):
        kind = str(name).removeprefix(precision).lstrip(".") or "fma"
        rows = mine[mine["roof"] == name]
        measured = rows[rows["origin"] == "measured"]
        row = (measured if len(measured) else rows).iloc[0]
        result[kind] = Roof(float(row["value"]), str(row["origin"]))
    if not math.isnan(peak):
        measured = len(roofs[(roofs["kind"] == "compute") & (roofs["origin"] == "measured")]) > 0
        unclear = Roof(peak, "measured" if measured else "theoretical")  # of several pipes
        result["fma"] = replace(result.get("fma", unclear), value=peak)
    return result


def origin_of(roofs: pd.DataFrame, roof: str) -> str:
    """Whether a roof of the frame is measured or theoretical."""
    return "measured" if len(roofs[(roofs["roof"] == roof) & (roofs["origin"] == "measured")]) else "theoretical"


def table_roofs(row: PlainRow, ceilings: Ceilings | None, precision: str) -> tuple[dict[str, Roof], dict[str, Roof]]:
    """The roofs of the row; measured ones of a ceilings file go before them."""
    compute, bandwidth = {}, {}
    for roof in row.roofs:
        found = Roof(roof.value, "measured" if roof.measured else "theoretical")
        if roof.kind == "bandwidth":
            bandwidth[roof.id] = found
        else:
            kind = roof.id.removeprefix(precision).removeprefix(ANY_PRECISION).lstrip(".") or "fma"
            compute[kind] = found
    if ceilings:
        for kind in ("fma", "nofma", "divide", "divide_nofma"):
            if ceiling := _measured(ceilings, precision, kind):
                compute[kind] = Roof(ceiling.value, "measured")
        for level in {*row.traffic, *row.intensity}:
            if best := ceilings.bandwidth(level):
                bandwidth[level] = Roof(best.value, "measured")
    return compute, bandwidth


def _measured(ceilings: Ceilings, precision: str, kind: str) -> Ceiling | None:
    """The measured ceiling of a kind; where one side names no precision, it fits the only one of the other."""
    names = [
        precision if precision.startswith("tensor") and kind == "fma" else f"{precision}.{kind}",
        f"{ANY_PRECISION}.{kind}",
    ]
    if precision == ANY_PRECISION:
        stated = [name for name in ceilings.by_id if name.partition(".")[2] == kind]
        names += stated if len(stated) == 1 else []
    return next((found for name in names if (found := ceilings.compute(name))), None)
