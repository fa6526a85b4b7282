"""The pack for one release: sections and rules as files."""

from __future__ import annotations

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.install.deploy import Pack


def render_pack(version: str, ceilings: Ceilings | None = None) -> Pack:
    """Sections and rules for a version of Nsight Compute; for "" such as every release loads.

    Raises RooflineError for a release without rooflines.
    """
    from ncu_roofline.generate import render_rules, render_sections
    from ncu_roofline.generate.dialects import BASE, dialect_of

    dialect = dialect_of(version) if version else BASE
    texts = {**render_sections(dialect, ceilings), **render_rules(dialect, ceilings)}
    files = {name: text.encode() for name, text in sorted(texts.items())}
    return Pack(files, version, ceilings.provenance if ceilings else "")
