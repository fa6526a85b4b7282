"""Roofs of the instruction roofline as rows: instruction issue, transactions per second, and walls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ncu_roofline.model.kernels import CORE_LEVELS
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.selection import Selection
from ncu_roofline.spec import InstructionSpec, Spec
from ncu_roofline.spec.instruction import EXECUTED, InstructionWall, Kind


@dataclass(frozen=True)
class _Shown:
    """Instruction issue, the levels of every chart, and what has points of a GPU model (columns of the points frame)."""

    points: dict[str, Any]
    select: Selection

    def precisions(self, device: str) -> set[str]:  # noqa: ARG002 - the same roof for every GPU
        return {EXECUTED}

    def levels(self, device: str) -> set[str]:
        core = {level for level in CORE_LEVELS if self.select.wants("", level)}
        return core | set(self.points["level"][self.points["device"] == device])

    def kinds(self, device: str) -> set[str]:
        """Kinds of instruction with points."""
        return set(self.points["precision"][self.points["device"] == device])


def roof_rows(
    roofs: Roofs, spec: Spec, counted: InstructionSpec, points: dict[str, Any], select: Selection
) -> list[dict[str, Any]]:
    """Rows of the roofs frame.  ``spec`` has the kinds of instruction for precisions."""
    shown = _Shown(points, select)
    alone = {kind.level: kind for kind in counted.kinds if kind.bytes != counted.transaction}
    rows = [_row(row, counted, alone) for row in roofs.rows(spec, shown)]
    devices = {row["device"]: row for row in rows}
    for device, row in devices.items():
        kinds = {kind.id for kind in counted.kinds if kind.level not in alone and select.wants(kind.id)}
        kinds |= shown.kinds(device)
        rows += [_wall(row, wall) for wall in counted.walls if wall.kind in kinds]
    return rows


def _row(row: dict[str, Any], counted: InstructionSpec, alone: dict[str, Kind]) -> dict[str, Any]:
    """A row in bytes per second as transactions per second, that of instructions with its name."""
    if row["kind"] == "compute":
        return {**row, "label": counted.issue_label}
    kind = alone.get(row["level"])
    size = kind.bytes if kind else counted.transaction
    scaled = {name: row[name] / size for name in ("value", "value_min", "value_max")}
    label = f"{row['label']}, wavefronts of {size:g} B" if kind else row["label"]
    return {**row, **scaled, "unit": "txn/s", "precision": kind.id if kind else "", "label": label}


def _wall(row: dict[str, Any], wall: InstructionWall) -> dict[str, Any]:
    """A wall for the GPU of another row."""
    where = {name: row[name] for name in ("report", "device", "compute_capability")}
    return {
        **where,
        "roof": wall.id,
        "kind": "wall",
        "precision": wall.kind,
        "level": "",
        "label": wall.short,
        "value": wall.intensity,
        "unit": "inst/txn",
        "value_min": wall.intensity,
        "value_max": wall.intensity,
        "origin": "theoretical",
        "clock": np.nan,
        "clock_basis": "",
        "source": "architecture",
        "metrics": "",
        "notes": "",
    }
