"""Ordinary rooflines written down row by row, for tests of the time-based one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ncu_roofline import Roofline
from ncu_roofline.model import columns

GPU = "Tesla V100-SXM2-16GB"
EMPTY: dict[str, Any] = {"str": "", "int": -1, "float": float("nan")}
DTYPES = {"str": object, "int": np.int64, "float": np.float64}


def table(rows: Sequence[Mapping[str, Any]], declared: Sequence[columns.Column]) -> dict[str, Any]:
    """Rows as columns; what a row does not say is missing."""
    return {
        one.name: np.array([row.get(one.name, EMPTY[one.dtype]) for row in rows], dtype=DTYPES[one.dtype]) for one in declared
    }


def point(kernel: str = "k", **values: Any) -> dict[str, Any]:
    """A row of points: a gigaflop over half a gigabyte in a millisecond on a machine of 8 TFLOP/s and 1 TB/s, if not said."""
    row: dict[str, Any] = {
        "report": "r", "kernel": kernel, "device": GPU, "compute_capability": "7.0", "precision": "fp64", "level": "dram",
        "launches": 1, "work": 1e9, "unit": "flop", "traffic": 5e8, "seconds": 1e-3, "compute_roof": 8e12,
        "bandwidth_roof": 1e12, "source": "binding",
        **values,
    }  # fmt: skip
    row["intensity"] = row["work"] / row["traffic"]
    row["performance"] = row["work"] / row["seconds"]
    return row


def ordinary(points: list[dict[str, Any]], absent: list[dict[str, Any]] | None = None, **traffic: list[float]) -> Roofline:
    """A Roofline of these points, a kernel for each of their kernels and then the ``absent`` ones; bytes of all by level."""
    kernels: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in points:
        key = tuple(row.get(name) for name in ("report", "launch", "kernel", "device", "step"))
        kernels.setdefault(key, {**{k: v for k, v in row.items() if k not in ("notes", "work")}, "status": "ok"})
    rows = [*kernels.values(), *({"report": "r", "device": GPU, "compute_capability": "7.0", **one} for one in absent or [])]
    total = sum(row["seconds"] for row in rows)
    for row in rows:
        row["time_share"] = row["seconds"] / total
    roofs: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in points:
        common = {name: row[name] for name in ("device", "compute_capability")} | {"origin": "theoretical"}
        for kind, what, unit in (("compute", "precision", "flop/s"), ("bandwidth", "level", "byte/s")):
            about = {"kind": kind, what: row[what], "roof": row[what], "unit": unit, "value": row[f"{kind}_roof"]}
            roofs[row["device"], kind, row[what]] = common | about
    moved = {level: np.array(values) for level, values in traffic.items()}
    declared = (points, columns.POINTS), (list(roofs.values()), columns.ROOFS), (rows, columns.KERNELS)
    return Roofline(*(table(*one) for one in declared), moved)
