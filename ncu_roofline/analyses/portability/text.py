"""Performance portability as text, Markdown, csv and json."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.analyses.portability.columns import PORTABILITY_PLATFORMS, PORTABILITY_SUMMARY
from ncu_roofline.rendering.data import csv_text
from ncu_roofline.rendering.frames import Column
from ncu_roofline.rendering.table import escape
from ncu_roofline.texts import clean
from ncu_roofline.units import format_value

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "ncu-roofline-portability"
SCHEMA_VERSION = 1
_HEADERS = ("application", "variant", "platform", "precision", "P", "I", "F", "B", "bound by", "e", "PP")
_LEFT = 4


class Result(Protocol):
    """What is rendered: frames with the columns PORTABILITY_PLATFORMS and PORTABILITY_SUMMARY, and sentences."""

    @property
    def platforms(self) -> pd.DataFrame: ...
    @property
    def summary(self) -> pd.DataFrame: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def render_json(result: Result) -> bytes:
    """Strict JSON: schema, schema_version, units, platforms, summary (one object per row) and warnings; NaN is null."""
    tables = {"platforms": (PORTABILITY_PLATFORMS, result.platforms), "summary": (PORTABILITY_SUMMARY, result.summary)}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "units": {column.name: column.unit for declared, _ in tables.values() for column in declared if column.unit},
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


def render_csv(result: Result) -> bytes:
    """The platforms frame: one line per platform and variant, SI units, an empty cell for what is missing."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.name for column in PORTABILITY_PLATFORMS])
    for row in _rows(result.platforms):
        writer.writerow([_csv_value(row[column.name], column) for column in PORTABILITY_PLATFORMS])
    return buffer.getvalue().encode("utf-8", "replace")


def _csv_value(value: Any, column: Column) -> str:
    if column.dtype == "float":
        return "" if math.isnan(value) else repr(float(value))
    return csv_text(value)


def render_text(result: Result) -> bytes:
    """A table per platform and variant, what it says, and the choices behind it."""
    header, rows = _table(result)
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [_line(row, widths) for row in (header, ["-" * width for width in widths], *rows)]
    return ("\n".join([*lines, "", *_facts(result)]) + "\n").encode("utf-8", "replace")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if i < _LEFT else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def render_md(result: Result, *, title: str = "") -> bytes:
    """The same as Markdown with a GitHub table."""
    header, rows = _table(result)
    lines = [f"# {escape(title or 'Performance portability')}", ""]
    lines += [f"| {' | '.join(row)} |" for row in (header, [":--" if i < _LEFT else "--:" for i in range(len(header))])]
    lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
    lines += ["", *(f"- {escape(fact)}" for fact in _facts(result)), *(f"- {escape(one)}" for one in result.warnings)]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _table(result: Result) -> tuple[list[str], list[list[str]]]:
    """Header and cells; columns that are empty throughout are left out."""
    rows = [_cells(row) for row in _rows(result.platforms)]
    keep = [i for i in range(len(_HEADERS)) if any(row[i] for row in rows)]
    return [_HEADERS[i] for i in keep], [[row[i] for i in keep] for row in rows]


def _cells(row: dict[str, Any]) -> list[str]:
    names = [clean(str(row[name])) for name in ("application", "variant", "platform")]
    share = format_percent(row["portability"])
    if row["status"] != "yes":
        words = {"no": "not supported", "missing": "missing", "not run": "not run"}
        return [*names, "", "", "", "", "", words[str(row["status"])], format_percent(row["efficiency"]), share]
    return [
        *names,
        precision_label(str(row["precision"])),
        format_value(row["performance"], "flop/s"),
        format_value(row["intensity"], "flop/byte"),
        format_value(row["compute_roof"], "flop/s"),
        format_value(row["bandwidth_roof"], "byte/s"),
        str(row["bound"]),
        format_percent(row["efficiency"]),
        share,
    ]


def format_percent(value: float) -> str:
    """A ratio in per cent with two digits, as the papers print it; n/a for NaN."""
    return "n/a" if math.isnan(value) else f"{100 * value:.2f} %"


def _facts(result: Result) -> list[str]:
    """Which FLOPs, ceilings, levels and files stand behind the table."""
    frame = result.platforms
    ran = frame[frame["status"] == "yes"]
    facts = ["e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H."]
    if len(ran):
        facts.append(f"{str(ran['flops'].iloc[0]).capitalize()} FLOPs under the ceiling {ran['ceiling'].iloc[0]}.")
    for platform, rows in ran.groupby("platform", sort=False):
        origins = [", ".join(dict.fromkeys(rows[name])) for name in ("compute_origin", "bandwidth_origin")]
        levels = ", ".join(dict.fromkeys(rows["level"]))
        sources = ", ".join(dict.fromkeys(clean(str(source)) for source in rows["source"]))
        facts.append(f"{clean(str(platform))}: compute ceiling {origins[0]}, bandwidth of {levels} {origins[1]}; {sources}")
    return facts
