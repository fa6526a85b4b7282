"""What changed between runs: the comparison of their operators, with wall time and how busy the GPUs were."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ncu_roofline.analyses.compare import columns
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.model.roofline import of_rows
from ncu_roofline.rendering.frames import records

TABLES = {**columns.TABLES, "summary": columns.RUN_SUMMARY}
NEEDED = (
    "FLOPs and bytes are what operators need by their shapes and types, not what was measured: they tell the share of the "
    "roof, and not what limits a kernel"
)


class RunComparison(Comparison):
    """A comparison whose rows are the operators of traces, and kernels that no operator asked for; launches are calls."""

    view: ClassVar[str] = "run-comparison"
    of_run: ClassVar[bool] = True
    nouns: ClassVar[tuple[str, ...]] = ("operator", "call", "calls")
    notes: ClassVar[tuple[str, ...]] = (NEEDED,)


def of_runs(compared: Comparison, wholes: Sequence[Mapping[str, float]]) -> RunComparison:
    """The same as one of runs; ``wholes``: wall time (s) and busy (a ratio) of each, in their order."""
    rows = []
    for row in records(compared.summary_columns):
        before = wholes[0 if row["against"] == "baseline" else row["step"] - 1]
        rows.append({**row, **{f"{name}_before": value for name, value in before.items()}, **wholes[row["step"]]})
        rows[-1]["notes"] = _worded(row["notes"])
    kernels = {**compared.kernel_columns, "notes": compared.kernel_columns["notes"].copy()}
    kernels["notes"][:] = list(map(_worded, kernels["notes"]))
    tables = {**vars(compared), "kernel_columns": kernels, "summary_columns": of_rows(rows, TABLES["summary"])}
    return RunComparison(**tables)


def _worded(notes: str) -> str:
    """Notes on kernels and launches of reports as those of a run; names in them stay."""
    words = {"kernels": "operators", "launches": "calls", "launch ": "call ", "reports": "traces"}
    parts = notes.split("; ")
    for number, part in enumerate(parts):
        if not part.startswith("before it was "):
            parts[number] = re.sub("|".join(words), lambda found: words[found[0]], part)
    return "; ".join(parts)
