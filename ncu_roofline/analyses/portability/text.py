"""Performance portability as text, Markdown and json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.portability.columns import PORTABILITY_PLATFORMS, SHOWN, TABLES
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean
from ncu_roofline.base.units import UNITS
from ncu_roofline.rendering.data import json_rows, units_of
from ncu_roofline.rendering.document import Document, Table, markdown, terminal

if TYPE_CHECKING:
    import pandas as pd

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
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "units": units_of(result, TABLES),
        **{name: json_rows(result, name, declared) for name, declared in TABLES.items()},
        "warnings": list(result.warnings),
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def document(result: PortabilityFrames, *, title: str = "", warnings: Sequence[str] = ()) -> Document:
    """A table per platform and variant, and the choices behind it."""
    rows: list[dict[str, Any]] = [
        {str(key): value for key, value in row.items()} for row in result.platforms.to_dict("records")
    ]
    for row in rows:
        if row["status"] != "yes":
            row.update(dict.fromkeys(_OF_RUNS), bound=row["status"])
    table = Table("platforms", PORTABILITY_PLATFORMS, rows, SHOWN, tells=_NO_ROOM)
    return Document(title or "Performance portability", blocks=[table, (*_facts(result), *warnings)])


def render_text(result: PortabilityFrames, *, width: int = 120) -> bytes:
    """The document for ``width`` characters (60 at least)."""
    return (terminal(document(result), width=width) + "\n").encode("utf-8", "replace")


def render_md(result: PortabilityFrames, *, title: str = "") -> bytes:
    """The same as Markdown with a GitHub table, and warnings."""
    return markdown(document(result, title=title, warnings=result.warnings))


def _ceilings(ran: pd.DataFrame) -> str:
    """What compute ceilings are of: of operations that are no FLOPs the precision, whose only roof it is."""
    pairs = zip(ran["unit"], ran["precision"], ran["ceiling"], strict=True)
    names = (_CEILINGS[ceiling] if unit == "flop" else precision_label(precision) for unit, precision, ceiling in pairs)
    return " and ".join(dict.fromkeys(names))


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
