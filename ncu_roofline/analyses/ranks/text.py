"""Merged ranks as text: a table of kernels, the ranks that stand out and why, and who did not run what."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from ncu_roofline.analyses.hierarchical.captions import plural
from ncu_roofline.analyses.ranks.columns import RANK_KERNELS, RANK_POINTS, SHOWN
from ncu_roofline.analyses.ranks.frames import MINIMUM_RANKS
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import time_text
from ncu_roofline.rendering.document import Document, Table, terminal
from ncu_roofline.rendering.frames import records

_MOST = 20  # lines of a list
_NAMED = 3  # kernels named in a line
_ALL = "all ranks"
_LEGEND = (
    "min, median, max: run time of a rank; max/mean: load imbalance; spread: (max - min) / median; of roof: of the attainable, "
    "all ranks together, at the level that limits most."
)


class RankFrames(Protocol):
    """What is drawn: tables with the columns RANK_KERNELS, RANK_POINTS and RANK_RANKS."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def origin(self) -> str: ...
    @property
    def kernel_columns(self) -> dict[str, Any]: ...
    @property
    def point_columns(self) -> dict[str, Any]: ...
    @property
    def rank_columns(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class _Stands:
    """A rank that stands out in some kernels for one reason."""

    rank: str
    outlier: str
    cause: str
    where: str
    kernels: tuple[str, ...]
    ratios: tuple[float, ...]
    ran: int


def render_text(ranks: RankFrames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The text of `ncu-roofline ranks` as UTF-8, for ``width`` characters (60 at least)."""
    return (terminal(document(ranks), width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")


def document(ranks: RankFrames) -> Document:
    """The kernels with the point that stands for each, the ranks that stand out and why, and who did not run what."""
    points, of_points = _binding_points(ranks), dict.fromkeys(column.name for column in RANK_POINTS)
    rows = [
        {**(points.get((row["kernel"], row["device"])) or of_points), **row, "outliers": row["outliers"] or None}
        for row in records(ranks.kernel_columns)
    ]
    table = Table("kernels", (*RANK_POINTS, *RANK_KERNELS), rows, SHOWN, legend=_LEGEND)
    return Document("Ranks", heading(ranks), blocks=[table, tuple(_outlier_lines(ranks)), tuple(_missing_lines(ranks))])


def heading(ranks: RankFrames) -> str:
    """How many ranks ran what, on which GPUs, for how long, and how the ranks were told."""
    kernels = ranks.kernel_columns
    devices = ", ".join(dict.fromkeys(clean(name) for name in kernels["device"].tolist()))
    seconds = math.fsum(one for one in kernels["seconds"].tolist() if math.isfinite(one))
    facts = [plural(len(ranks.names), "rank"), plural(len(kernels["kernel"]), "kernel")]
    facts += [plural(int(kernels["launches"].sum()), "launch"), devices, f"{time_text(seconds)} of GPU time over all ranks"]
    return f"{', '.join(facts)}. Ranks told by {clean(ranks.origin)}."


def _binding_points(ranks: RankFrames) -> dict[tuple[str, str], dict[str, Any]]:
    """For each kernel the point that stands for it: of its busiest precision, at the level that limits it most."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in records(ranks.point_columns):
        before = best.setdefault((row["kernel"], row["device"]), row)
        if _weight(row) > _weight(before):
            best[row["kernel"], row["device"]] = row
    return best


def _weight(point: dict[str, Any]) -> tuple[float, ...]:
    return tuple(number if number == number else -1.0 for number in (point["work"], point["fraction"]))


def _outlier_lines(ranks: RankFrames) -> list[str]:
    if len(ranks.names) < MINIMUM_RANKS:
        return [f"Outliers are looked for from {MINIMUM_RANKS} ranks on."]
    found = _standing_out(ranks)
    if not found:
        return ["No rank's time is an outlier (modified z-score above 3.5 and more than 5 % off the median)."]
    lines = ["Outliers in time (modified z-score above 3.5 and more than 5 % off the median):"]
    lines += [_outlier_line(one) for one in found[:_MOST]]
    return lines + ([f"- and {len(found) - _MOST} more: see --table ranks."] if len(found) > _MOST else [])


def _outlier_line(one: _Stands) -> str:
    times = f"{min(one.ratios):.2f}" if len(one.ratios) == 1 else f"{min(one.ratios):.2f} to {max(one.ratios):.2f}"
    if one.kernels[0].startswith(_ALL):  # by application there is nothing to name
        return f"- rank {one.rank}{one.where} is {one.outlier}: {times} x the median time; {one.cause}"
    names = ", ".join(one.kernels[:_NAMED])
    what = names if len(one.kernels) <= _NAMED else f"{len(one.kernels)} of its {one.ran} kernels ({names}, ...)"
    return f"- rank {one.rank}{one.where} is {one.outlier} in {what}: {times} x the median time; {one.cause}"


def _standing_out(ranks: RankFrames) -> list[_Stands]:
    """Ranks that stand out, those that do in most kernels first; one entry per reason."""
    table = ranks.rank_columns
    ran = Counter(table["rank"].tolist())
    rows = [row for row in records({name: table[name][table["outlier"] != ""] for name in table}) if row["outlier"]]
    order = {name: place for place, name in enumerate(ranks.names)}

    def reason(row: dict[str, Any]) -> tuple[int, str, str]:
        return order[row["rank"]], row["outlier"], row["cause"].partition(":")[0]

    found = []
    for (place, outlier, _), group in groupby(sorted(rows, key=reason), key=reason):
        members = list(group)
        causes = dict.fromkeys(row["cause"] for row in members)
        several = f" (and {len(causes) - 1} like it)" if len(causes) > 1 else ""
        kernels = tuple(clean(row["kernel"]) for row in members)
        ratios = tuple(row["seconds_ratio"] for row in members)
        rank = ranks.names[place]
        cause = f"{next(iter(causes))}{several}"
        found.append(_Stands(clean(rank), outlier, cause, _where(members[0]), kernels, ratios, ran[rank]))
    return sorted(found, key=lambda one: -len(one.kernels))


def _where(row: dict[str, Any]) -> str:
    facts = [clean(row["host"]), f"GPU {clean(row['gpu'])}" if row["gpu"] else ""]
    return f" ({', '.join(fact for fact in facts if fact)})" if any(facts) else ""


def _missing_lines(ranks: RankFrames) -> list[str]:
    absent = [
        (clean(row["kernel"]), row["missing_ranks"].split("; "), row["missing"])
        for row in records(ranks.kernel_columns)
        if row["missing"]
    ]
    lines = [f"- {kernel} did not run on {plural(count, 'rank')}: {_runs(names)}" for kernel, names, count in absent[:_MOST]]
    return lines + ([f"- and {len(absent) - _MOST} more kernels: see --table kernels."] if len(absent) > _MOST else [])


def _runs(names: Sequence[str]) -> str:
    """4, 6-9: consecutive numbers as ranges."""
    parts: list[list[str]] = []
    for name in names:
        last = parts[-1][-1] if parts else ""
        if name.isdecimal() and last.isdecimal() and int(name) == int(last) + 1:
            parts[-1].append(name)
        else:
            parts.append([name])
    texts = [f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(part) for part in parts]
    shown = ", ".join(clean(text) for text in texts[:_MOST])
    return shown + (", ..." if len(texts) > _MOST else "")
