"""Performance portability as text, Markdown and json."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Protocol

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.portability.columns import PORTABILITY_PLATFORMS, PORTABILITY_SUMMARY, TABLES
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.rendering.data import units_of
from ncu_roofline.rendering.frames import Column
from ncu_roofline.rendering.table import (
    Table,
    TextColumn,
    blocks_text,
    bullets,
    escape,
    markdown,
    markdown_document,
    terminal,
    wrapped,
)

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "ncu-roofline-portability"
SCHEMA_VERSION = 1
_HEADERS = ("application", "variant", "platform", "precision", "P", "I", "F", "B", "bound by", "e", "PP")
_LEFT = _HEADERS[:4]
_SPARE = {"precision": 5, "B": 4, "F": 4, "I": 3, "P": 2}  # columns that a narrow terminal does without
_WIDTH_MIN = 60
_NO_LEVEL = ("compute", "stated", "")
_CEILINGS = {
    "fma": "fused multiply-adds (FMA)",
    "nofma": "separate multiplications and additions (no FMA)",
    "divide": "divisions",
    "divide_nofma": "divisions without FMA",
    "mix": "what the share of fused instructions can reach",
}


class PortabilityFrames(Protocol):
    """What is rendered: frames with the columns PORTABILITY_PLATFORMS and PORTABILITY_SUMMARY, and sentences."""

    @property
    def platforms(self) -> pd.DataFrame: ...
    @property
    def summary(self) -> pd.DataFrame: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def render_json(result: PortabilityFrames) -> bytes:
    """Strict JSON: schema, schema_version, units, platforms, summary (one object per row) and warnings; NaN is null."""
    tables = {"platforms": (PORTABILITY_PLATFORMS, result.platforms), "summary": (PORTABILITY_SUMMARY, result.summary)}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "units": units_of(result, TABLES),
    }
    for name, (declared, frame) in tables.items():
        document[name] = [{column.name: _json_value(row[column.name], column) for column in declared} for row in _rows(frame)]
    document["warnings"] = list(result.warnings)
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _json_value(value: Any, column: Column) -> Any:
    if column.dtype == "float":
        return float(value) if math.isfinite(value) else None
    return int(value) if column.dtype == "int" else str(value)


def render_text(result: PortabilityFrames, *, width: int = 120) -> bytes:
    """A table per platform and variant, what it says, and the choices behind it, for ``width`` characters (60 at least)."""
    width, table = max(width, _WIDTH_MIN), _table(result)
    shown = [column.header for column in table.fitted(width).columns]
    absent = ", ".join(column.header for column in table.columns if column.header not in shown)
    less = [f"No room for {absent}: a wider terminal, csv and json have them."] if absent else []
    blocks = [[*terminal(table, width), *wrapped(less, width)], wrapped(_facts(result), width, "  ", whole=True)]
    return (blocks_text(blocks) + "\n").encode("utf-8", "replace")


def render_md(result: PortabilityFrames, *, title: str = "") -> bytes:
    """The same as Markdown with a GitHub table."""
    facts = bullets([*_facts(result), *result.warnings])
    return markdown_document([f"# {escape(title or 'Performance portability')}", markdown(_table(result)), facts])


def _table(result: PortabilityFrames) -> Table:
    """Columns that are empty throughout are left out."""
    rows = [dict(zip(_HEADERS, _cells(row), strict=True)) for row in _rows(result.platforms)]
    columns = [
        TextColumn(name, [row[name] for row in rows], left=name in _LEFT, spare=_SPARE.get(name, 0)) for name in _HEADERS
    ]
    return Table(tuple(column for column in columns if any(column.cells)))


def _cells(row: dict[str, Any]) -> list[str]:
    names = [clean(str(row[name])) for name in ("application", "variant", "platform")]
    share = format_percent(row["portability"])
    if row["status"] != "yes":
        status = "not supported" if row["status"] == "no" else str(row["status"])
        return [*names, "", "", "", "", "", status, format_percent(row["efficiency"]), share]
    return [
        *names,
        precision_label(str(row["precision"])),
        format_value(row["performance"], f"{row['unit']}/s"),
        format_value(row["intensity"], f"{row['unit']}/byte"),
        format_value(row["compute_roof"], f"{row['unit']}/s"),
        format_value(row["bandwidth_roof"], "byte/s"),
        _bound(str(row["bound"])),
        format_percent(row["efficiency"]),
        share,
    ]


def _ceilings(ran: pd.DataFrame) -> str:
    """What compute ceilings are of: of operations that are no FLOPs the precision, whose only roof it is."""
    pairs = zip(ran["unit"], ran["precision"], ran["ceiling"], strict=True)
    names = (_CEILINGS[ceiling] if unit == "flop" else precision_label(precision) for unit, precision, ceiling in pairs)
    return " and ".join(dict.fromkeys(names))


def _bound(bound: str) -> str:
    """What limits a run, by the name of its level."""
    return bound if bound in _NO_LEVEL else level_style(bound).label


def format_percent(value: float) -> str:
    """A ratio in per cent with two digits, as the papers print it; n/a for NaN."""
    return "n/a" if math.isnan(value) else f"{100 * value:.2f} %"


def _facts(result: PortabilityFrames) -> list[str]:
    """Which FLOPs, ceilings, levels and files stand behind the table."""
    frame = result.platforms
    ran = frame[frame["status"] == "yes"]
    units = [UNITS[unit].symbol for unit in dict.fromkeys(ran["unit"])] or ["FLOP"]
    rate, intensity = (" or ".join(f"{unit}/{per}" for unit in units) for per in ("s", "byte"))
    facts = [
        f"P: performance [{rate}], I: intensity [{intensity}], F: compute ceiling [{rate}], B: bandwidth ceiling [byte/s]; "
        "e: efficiency, PP: performance portability [both %].",
        "e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H.",
    ]
    if len(ran):
        counted = " and ".join(f"{unit}s" for unit in units)
        facts.append(f"{str(ran['flops'].iloc[0]).capitalize()} {counted} under the ceiling of {_ceilings(ran)}.")
    names = ReportNames.apart(map(str, ran["source"]))
    for platform, rows in ran.groupby("platform", sort=False):
        origins = [", ".join(dict.fromkeys(rows[name])) for name in ("compute_origin", "bandwidth_origin")]
        levels = ", ".join(level_style(level).label for level in dict.fromkeys(map(str, rows["level"])))
        sources = ", ".join(dict.fromkeys(clean(names(str(source))) for source in rows["source"]))
        facts.append(f"{clean(str(platform))}: compute ceiling {origins[0]}, bandwidth of {levels} {origins[1]}; {sources}")
    return facts
