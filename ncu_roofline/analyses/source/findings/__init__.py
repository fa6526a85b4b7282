"""What is worth looking at in a launch, line by line, each with the share of the kernel that it touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import FINDINGS, WHERE
from ncu_roofline.analyses.source.findings import memory, time, work
from ncu_roofline.analyses.source.findings.examined import About, Examined
from ncu_roofline.analyses.source.findings.work import Called, called_library

CAUSES = (*memory.CAUSES, *work.CAUSES, *time.CAUSES)

_WHOLE = 1 + 1e-9  # a share, rounded


def findings(
    instructions: Mapping[str, Any],
    stalls: Mapping[str, Any],
    loops: Mapping[str, Any],
    about: About,
    called: Sequence[Called] = (),
) -> dict[str, list[Any]]:
    """The findings of one launch, those that touch most first: `columns.FINDINGS` but for where they are from.

    ``instructions``, ``stalls`` and ``loops`` are its frames of those names, ``called`` the functions that are called.  What
    was not counted (NaN) gives no finding, nor do counts that contradict each other.
    """
    launch = Examined(instructions, stalls, loops, about)
    with np.errstate(all="ignore"):
        causes = [*(cause(launch) for cause in CAUSES), called_library(launch, called)] if launch.size else []
        found = [one for cause in causes for one in cause if one.share <= _WHOLE]
    rows = []
    for one in sorted(found, key=lambda one: -one.share):
        top = int(one.site.rows[0])
        at = {name: launch[name][top] for name in ("file", "line", "function", "offset", "loop")}
        rows.append(at | {name: getattr(one, name) for name in ("finding", "share", "of", "message", "advice", "cause")})
    return {column.name: [row[column.name] for row in rows] for column in FINDINGS if column not in WHERE}
