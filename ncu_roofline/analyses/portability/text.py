"""Performance portability as text, Markdown and json."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.portability.columns import PORTABILITY_PLATFORMS, SHOWN, TABLES
from ncu_roofline.analyses.portability.frames import Portability
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS
from ncu_roofline.rendering.data import json_rows, units_of
from ncu_roofline.rendering.document import Document, Table, markdown, terminal

SCHEMA = "ncu-roofline-portability"
SCHEMA_VERSION = 1
_OF_RUNS = ("precision", "performance", "intensity", "compute_roof", "bandwidth_roof")
_NO_ROOM = "No room for {names}: a wider terminal, csv and json have them."
_CEILINGS = {
    "fma": "fused multiply-adds (FMA)",
    "nofma": "separate multiplications and additions (no FMA)",
    "divide": "divisions",
    "divide_nofma": "divisions without FMA",
    "mix": "what the share of fused instructions can reach",
}


def render_json(result: Portability) -> bytes:
    """Strict JSON: schema, schema_version, units, platforms, summary (one object per row) and warnings; NaN is null."""
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "units": units_of(result, TABLES),
        **{name: json_rows(result, name, declared) for name, declared in TABLES.items()},
        "warnings": list(result.warnings),
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def document(result: Portability, *, title: str = "", warnings: Sequence[str] = ()) -> Document:
    """A table per platform and variant, and the choices behind it."""
    rows = [
        {**row, **dict.fromkeys(_OF_RUNS), "bound": row["status"]} if row["status"] != "yes" else row
        for row in result.platform_rows
    ]
    table = Table("platforms", PORTABILITY_PLATFORMS, rows, SHOWN, tells=_NO_ROOM)
    return Document(title or "Performance portability", blocks=[table, (*_facts(result), *warnings)])


def render_text(result: Portability, *, width: int = 120) -> bytes:
    """The document for ``width`` characters (60 at least)."""
    return (terminal(document(result), width=width) + "\n").encode("utf-8", "replace")


def render_md(result: Portability, *, title: str = "") -> bytes:
    """The same as Markdown with a GitHub table, and warnings."""
    return markdown(document(result, title=title, warnings=result.warnings))


def _facts(result: Portability) -> list[str]:
    """Which FLOPs, ceilings, levels and files stand behind the table."""
    ran = [row for row in result.platform_rows if row["status"] == "yes"]
    units = [UNITS[unit].symbol for unit in dict.fromkeys(row["unit"] for row in ran)] or ["FLOP"]
    rate, intensity = (" or ".join(f"{unit}/{per}" for unit in units) for per in ("s", "byte"))
    facts = [
        f"P: performance [{rate}], I: intensity [{intensity}], F: compute ceiling [{rate}], B: bandwidth ceiling [byte/s]; "
        "e: efficiency, PP: performance portability [both %].",
        "e = P / min(F, B I), PP = |H| / sum(1/e), over the platforms H.",
    ]
    if ran:
        # Of operations that are no FLOPs the ceiling is that of their precision, whose only roof it is.
        ceilings = [_CEILINGS[row["ceiling"]] if row["unit"] == "flop" else precision_label(row["precision"]) for row in ran]
        counted = " and ".join(f"{unit}s" for unit in units)
        facts.append(f"{ran[0]['flops'].capitalize()} {counted} under the ceiling of {' and '.join(dict.fromkeys(ceilings))}.")
    names = ReportNames.apart(row["source"] for row in ran)
    for platform in dict.fromkeys(row["platform"] for row in ran):
        rows = [row for row in ran if row["platform"] == platform]

        def listed(column: str, text: Callable[[str], str] = str, rows: Sequence[dict[str, Any]] = rows) -> str:
            return ", ".join(dict.fromkeys(text(row[column]) for row in rows))

        levels = listed("level", lambda level: level_style(level).label)
        sources = listed("source", lambda source: clean(names(source)))
        origins = listed("compute_origin"), listed("bandwidth_origin")
        facts.append(f"{clean(platform)}: compute ceiling {origins[0]}, bandwidth of {levels} {origins[1]}; {sources}")
    return facts
