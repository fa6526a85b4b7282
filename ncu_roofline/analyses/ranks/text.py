"""Merged ranks as text: a table of kernels, the ranks that stand out and why, and who did not run what."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ncu_roofline.analyses.ranks.columns import RANK_KERNELS, RANK_POINTS, SHOWN
from ncu_roofline.analyses.ranks.frames import ALL_RANKS, MINIMUM_RANKS, Ranks
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import time_text
from ncu_roofline.rendering.document import Document, Table, terminal
from ncu_roofline.rendering.frames import records

_MOST = 20  # lines of a list
_NAMED = 3  # kernels named in a line
_LEGEND = (
    "min, median, max: run time of a rank; max/mean: load imbalance; spread: (max - min) / median; of roof: of the attainable, "
    "all ranks together, at the level that limits most."
)


def render_text(ranks: Ranks, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The text of `ncu-roofline ranks` as UTF-8, for ``width`` characters (60 at least)."""
    return (terminal(document(ranks), width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")


def document(ranks: Ranks) -> Document:
    """The kernels with the point that stands for each, the ranks that stand out and why, and who did not run what."""
    points, of_points = _binding_points(ranks), dict.fromkeys(column.name for column in RANK_POINTS)
    rows = [
        {**(points.get((row["kernel"], row["device"])) or of_points), **row, "outliers": row["outliers"] or None}
        for row in records(ranks.kernel_columns)
    ]
    table = Table("kernels", (*RANK_POINTS, *RANK_KERNELS), rows, SHOWN, legend=_LEGEND)
    return Document("Ranks", heading(ranks), blocks=[table, tuple(_outlier_lines(ranks)), tuple(_missing_lines(ranks))])


def heading(ranks: Ranks) -> str:
    """How many ranks ran what, on which GPUs, for how long, and how the ranks were told."""
    kernels = ranks.kernel_columns
    devices = ", ".join(dict.fromkeys(clean(name) for name in kernels["device"].tolist()))
    seconds = math.fsum(one for one in kernels["seconds"].tolist() if math.isfinite(one))
    facts = [plural(len(ranks.names), "rank"), plural(len(kernels["kernel"]), "kernel")]
    facts += [plural(int(kernels["launches"].sum()), "launch"), devices, f"{time_text(seconds)} of GPU time over all ranks"]
    return f"{', '.join(facts)}. Ranks told by {clean(ranks.origin)}."


def _binding_points(ranks: Ranks) -> dict[tuple[str, str], dict[str, Any]]:
    """For each kernel the point that stands for it: of its busiest precision, at the level that limits it most."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in records(ranks.point_columns):
        before = best.setdefault((row["kernel"], row["device"]), row)
        if _weight(row) > _weight(before):
            best[row["kernel"], row["device"]] = row
    return best


def _weight(point: dict[str, Any]) -> tuple[float, ...]:
    return tuple(number if number == number else -1.0 for number in (point["work"], point["fraction"]))


def _outlier_lines(ranks: Ranks) -> list[str]:
    """Ranks that stand out, those that do in most kernels first; one line per reason."""
    if len(ranks.names) < MINIMUM_RANKS:
        return [f"Outliers are looked for from {MINIMUM_RANKS} ranks on."]
    table, place = ranks.rank_columns, {name: number for number, name in enumerate(ranks.names)}
    groups: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    for row in records({name: values[table["outlier"] != ""] for name, values in table.items()}):
        groups.setdefault((place[row["rank"]], row["outlier"], row["cause"].partition(":")[0]), []).append(row)
    if not groups:
        return ["No rank's time is an outlier (modified z-score above 3.5 and more than 5 % off the median)."]
    ran = Counter(table["rank"].tolist())
    found = sorted((groups[key] for key in sorted(groups)), key=lambda rows: -len(rows))
    lines = ["Outliers in time (modified z-score above 3.5 and more than 5 % off the median):"]
    lines += [_outlier_line(rows, ran[rows[0]["rank"]]) for rows in found[:_MOST]]
    return lines + ([f"- and {len(found) - _MOST} more: see --table ranks."] if len(found) > _MOST else [])


def _outlier_line(rows: Sequence[dict[str, Any]], ran: int) -> str:
    """Where a rank stands out for one reason, of the kernels that it ran."""
    first, ratios = rows[0], [row["seconds_ratio"] for row in rows]
    kernels = [clean(row["kernel"]) for row in rows]
    facts = ", ".join(filter(None, (clean(first["host"]), f"GPU {clean(first['gpu'])}" if first["gpu"] else "")))
    rank = f"- rank {clean(first['rank'])}{facts and f' ({facts})'} is {first['outlier']}"
    what = ", ".join(kernels[:_NAMED])
    if len(kernels) > _NAMED:
        what = f"{len(kernels)} of its {ran} kernels ({what}, ...)"
    where = "" if kernels[0].startswith(ALL_RANKS) else f" in {what}"  # by application there is nothing to name
    times = f"{min(ratios):.2f}" if len(ratios) == 1 else f"{min(ratios):.2f} to {max(ratios):.2f}"
    others = len({row["cause"] for row in rows}) - 1
    like = f" (and {others} like it)" if others else ""
    return f"{rank}{where}: {times} x the median time; {first['cause']}{like}"


def _missing_lines(ranks: Ranks) -> list[str]:
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
