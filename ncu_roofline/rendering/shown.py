"""Which rows of the kernels have dots, and why others have none: of the kinds of work that somebody asked for."""

from __future__ import annotations

import math

from ncu_roofline.rendering.panels import Frames, column, optional, rows
from ncu_roofline.rendering.style import precision_label, view_of

ZERO = frozenset({"zero-flop", "zero-asked"})  # work was counted, and is none: nothing is lacking
_KEY = ("report", "launch", "kernel", "step", "device")
_ACTIVE = 0.01  # of the cycles: a tensor pipe that worked more did so for work that counts


def statuses(frames: Frames) -> list[str]:
    """The status of each row of the kernels; "ok" only of rows with points.

    Beside those of the frame: "zero-asked" (all work asked for was counted and is zero), "uncounted-asked" (it was not
    counted) and "unshown" (it is there, but at none of the levels chosen).
    """
    found = column(frames, "kernels", "status")
    if view_of(frames) not in ("roofline", "instruction"):
        return found
    drawn = set(rows(frames, "points", *_KEY))
    active = optional(frames, "kernels", "tensor_active", math.nan)
    return [
        _without_point(frames, index, active[index]) if status == "ok" and key not in drawn else status
        for index, (status, key) in enumerate(zip(found, rows(frames, "kernels", *_KEY), strict=True))
    ]


def _without_point(frames: Frames, row: int, active: float) -> str:
    asked: tuple[str, ...] = getattr(frames, "asked", ())
    if not asked:
        return "unshown"
    counted = [
        float(values[row])
        for precision, values in getattr(frames, "work", {}).items()
        if any(precision == one or precision.startswith(f"{one}.") for one in asked) and math.isfinite(values[row])
    ]
    if any(work > 0 for work in counted):
        return "unshown"
    tensor = any(one.split(".")[0] == "tensor" for one in asked)
    return "uncounted-asked" if not counted or (tensor and active >= _ACTIVE) else "zero-asked"


def asked_work(frames: Frames) -> str:
    """What was asked for, in words: ``tensor or FP32 work``."""
    names = ["tensor" if one == "tensor" else precision_label(one) for one in getattr(frames, "asked", ())]
    return f"{' or '.join(names)} work"
