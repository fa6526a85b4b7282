"""From the roofline of all ranks together and that of each rank to tables: per kernel, per point, per rank."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ncu_roofline.model import Roofline
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import Columns, Table, of_rows
from ncu_roofline.models import columns
from ncu_roofline.models.rank_names import RankSource
from ncu_roofline.models.rank_outliers import cause, modified_z, outliers, ratio_to_median

_OUTWARDS = ("dram", "l2", "l1")
_SIGNS = {1.0: "slow", -1.0: "fast", 0.0: ""}
Row = dict[str, Any]
Key = tuple[str, ...]


class RankRows:
    """Numbers by kernel and rank: matrices of shape (kernels, ranks), NaN where a rank did not run a kernel."""

    def __init__(self, whole: Roofline, each: Roofline, names: tuple[str, ...], ranks: Mapping[RankSource, str]) -> None:
        self.whole, self.each, self.names, self.sources = whole, each, names, ranks
        self.places = {name: place for place, name in enumerate(names)}
        # Of an application the label is the rank, so what tells rows apart is the GPU model only.
        self.named = "kernel" if not (whole.kernel_columns["kind"] == "application").any() else "device"
        homes = {key: row for row, key in enumerate(self.keys(whole.kernel_columns))}
        self._row = np.array([homes[key] for key in self.keys(each.kernel_columns)], dtype=np.int64)
        self._column = self.columns_of(each.kernel_columns)
        table = each.kernel_columns
        self.ran = np.isfinite(self._matrix(np.ones(len(self._row))))
        self.seconds, self.work, self.clock, self.launches = (
            self._matrix(table[name].astype(np.float64)) for name in ("seconds", "work", "clock_profiled", "launches")
        )
        self.traffic = {level: self._matrix(values) for level, values in each.traffic.items()}

    def keys(self, table: Columns, *more: str) -> list[Key]:
        """What a row is about, whichever rank it is of."""
        return list(zip(*(table[name].tolist() for name in (self.named, "device", *more)), strict=True))

    def columns_of(self, table: Columns) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The rank of each row, as its position."""
        return np.array([self.places[rank] for rank in table["report"]], dtype=np.int64)

    def _matrix(self, values: FloatArray) -> FloatArray:
        result = np.full((len(self.whole.kernel_columns["kernel"]), len(self.names)), np.nan)
        result[self._row, self._column] = values
        return result

    @cached_property
    def signs(self) -> FloatArray:
        """1 where a rank was too slow, -1 where too fast."""
        return np.vstack([outliers(row) for row in self.seconds])

    def missing(self) -> list[list[str]]:
        """For each kernel the ranks that did not run it: neither on this GPU model nor on another."""
        names = self.whole.kernel_columns["name"] if self.named == "kernel" else np.full(len(self.ran), "")
        somewhere: dict[str, Any] = {}
        for name, ran in zip(names, self.ran, strict=True):
            somewhere[name] = somewhere.get(name, False) | ran
        return [[self.names[i] for i in np.flatnonzero(~somewhere[name])] for name in names]

    def chosen(self, kernel: int, sign: float) -> list[str]:
        """The outliers of a kernel with this sign."""
        return [self.names[i] for i in np.flatnonzero(self.signs[kernel] == sign)]


def kernels_table(rows: RankRows) -> Table:
    """RANK_KERNELS."""
    whole = rows.whole.kernel_columns
    same = ("kernel", "device", "name", "compute_capability", "seconds", "time_share", "work", "status", "notes")
    table = []
    for k, missing in enumerate(rows.missing()):
        launches = rows.launches[k][rows.ran[k]].astype(np.int64)
        seconds = _numbers("seconds", rows.seconds[k])
        known = rows.seconds[k][np.isfinite(rows.seconds[k])]
        slow, fast = rows.chosen(k, 1.0), rows.chosen(k, -1.0)
        table.append(
            {
                **{name: whole[name][k] for name in same},
                "ranks": len(launches),
                "missing": len(missing),
                "missing_ranks": "; ".join(missing),
                "launches": launches.sum(),
                "launches_min": launches.min(),
                "launches_max": launches.max(),
                **seconds,
                "slowest": rows.names[int(np.nanargmax(rows.seconds[k]))] if len(known) else "",
                "imbalance": seconds["seconds_max"] / known.mean() if len(known) else np.nan,
                "imbalance_median": seconds["seconds_max"] / seconds["seconds_median"],
                "spread": (seconds["seconds_max"] - seconds["seconds_min"]) / seconds["seconds_median"],
                **_numbers("work", rows.work[k]),
                "outliers": len(slow) + len(fast),
                "slow_ranks": "; ".join(slow),
                "fast_ranks": "; ".join(fast),
            }
        )
    order = sorted(range(len(table)), key=lambda k: -np.nan_to_num(table[k]["seconds"]))
    return of_rows([table[k] for k in order], columns.RANK_KERNELS)


def points_table(rows: RankRows) -> Table:
    """RANK_POINTS."""
    whole, each = rows.whole.point_columns, rows.each.point_columns
    of: dict[Key, list[int]] = {}
    for row, key in enumerate(rows.keys(each, "precision", "level")):
        of.setdefault(key, []).append(row)
    spread = ("intensity", "performance", "fraction")
    same = [one.name for one in columns.RANK_POINTS if one.name in whole]
    table = []
    for row, key in enumerate(rows.keys(whole, "precision", "level")):
        members = of.get(key, [])
        numbers = [_numbers(name, each[name][members]) for name in spread]
        ranks = {"ranks": len(members)}
        table.append({**{name: whole[name][row] for name in same}, **ranks, **numbers[0], **numbers[1], **numbers[2]})
    return of_rows(table, columns.RANK_POINTS)


def ranks_table(rows: RankRows) -> Table:
    """RANK_RANKS, kernel by kernel, ranks in their order."""
    about = _about(rows)
    table: list[Row] = []
    for k in range(len(rows.ran)):
        table += _ranks_of(rows, k, about)
    return of_rows(table, columns.RANK_RANKS)


def _ranks_of(rows: RankRows, k: int, about: Mapping[str, Row]) -> list[Row]:
    whole = rows.whole.kernel_columns
    where = {"kernel": whole["kernel"][k], "device": whole["device"][k]}
    ratios = {"seconds": rows.seconds, "work": rows.work, "clock": rows.clock, "launches": rows.launches, **rows.traffic}
    to_median = {name: ratio_to_median(matrix[k]) for name, matrix in ratios.items()}
    level = next((one for one in _OUTWARDS if one in rows.traffic and np.isfinite(rows.traffic[one][k]).any()), "")
    nothing = np.full(len(rows.names), np.nan)
    traffic = rows.traffic[level][k] if level else nothing
    score = modified_z(rows.seconds[k])
    found = []
    for r in np.flatnonzero(rows.ran[k]):
        sign = float(rows.signs[k, r])
        loads = {"launches": to_median["launches"][r], "FLOPs": to_median["work"][r]}
        loads |= {f"{one} bytes": to_median[one][r] for one in rows.traffic}
        row = {
            **where,
            "rank": rows.names[r],
            **about[rows.names[r]],
            "launches": int(rows.launches[k, r]),
            "seconds": rows.seconds[k, r],
            "seconds_ratio": to_median["seconds"][r],
            "score": score[r],
            "outlier": _SIGNS[sign],
            "cause": cause(sign, to_median["seconds"][r], loads, to_median["clock"][r]) if sign else "",
            "work": rows.work[k, r],
            "work_ratio": to_median["work"][r],
            "traffic_level": level,
            "traffic": traffic[r],
            "traffic_ratio": to_median[level][r] if level else np.nan,
            "clock_profiled": rows.clock[k, r],
            "clock_ratio": to_median["clock"][r],
        }
        found.append(row)
    return found


def _about(rows: RankRows) -> dict[str, Row]:
    """What is known of each rank, whatever it ran."""
    sources: dict[str, list[RankSource]] = {}
    for source, rank in rows.sources.items():
        sources.setdefault(rank, []).append(source)
    return {
        rank: {
            "reports": _joined("; ", [one.report for one in several]),
            "host": _joined(" ", [one.host for one in several]),
            "pid": _joined(" ", [str(one.pid) if one.pid else "" for one in several]),
            "gpu": _joined(" ", [one.gpu for one in several]),
        }
        for rank, several in sources.items()
    }


def _joined(separator: str, texts: list[str]) -> str:
    return separator.join(dict.fromkeys(text for text in texts if text))


def _numbers(name: str, values: FloatArray) -> dict[str, float]:
    """Minimum, median and maximum over the ranks that have the number; NaN where none has."""
    known = values[np.isfinite(values)]
    if not len(known):
        return {f"{name}_{what}": np.nan for what in ("min", "median", "max")}
    return {f"{name}_min": known.min(), f"{name}_median": float(np.median(known)), f"{name}_max": known.max()}
