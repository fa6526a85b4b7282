"""The pack for one release: sections and rules as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.install.deploy import Pack


def render_pack(version: str, ceilings: Ceilings | None = None, *, tensor: str = "") -> Pack:
    """Sections and rules for a version of Nsight Compute; for "" such as every release loads.

    ``tensor`` is the type that the section of few passes counts ("fp16" unless named).  Measured roofs scale with the clock of
    the profiled kernel where the file says what theory gives at the clock they were measured at, else they are constants.
    Raises RooflineError for a release without rooflines.
    """
    from ncu_roofline.generate.dialects import BASE, dialect_of
    from ncu_roofline.generate.rules import render_rules
    from ncu_roofline.generate.sections import render_sections

    dialect = dialect_of(version) if version else BASE
    consistent = ceilings is not None and has_theory(ceilings)
    texts = render_sections(dialect, ceilings, clock_consistent=consistent, light_type=tensor or "fp16")
    texts |= render_rules(dialect, [ceilings] if ceilings else [])
    files = {name: text.encode() for name, text in sorted(texts.items())}
    return Pack(files, version, ceilings.provenance if ceilings else "")


def has_theory(ceilings: Ceilings) -> bool:
    """Whether the file of the ceilings says what theory gives at the clock they were measured at."""
    try:
        entries = json.loads(Path(ceilings.path).read_text(encoding="utf-8-sig"))["ceilings"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    known = {one["id"] for one in entries if isinstance(one, dict) and _at_clock(one) and one.get("id") in ceilings.by_id}
    return any(name.endswith(".fma") or name.startswith("tensor.") for name in known) and "dram.read" in known


def _at_clock(entry: dict[str, Any]) -> bool:
    theory = entry.get("theory")
    value = theory.get("at_measured_clock") if isinstance(theory, dict) else None
    return isinstance(value, (int, float)) and value > 0
