"""The pack for one release: sections and rules as files, and the replay passes that profiling with them costs."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.plugin.machine.deploy import Pack
from ncu_roofline.plugin.machine.gpus import Gpu


def render_pack(version: str, ceilings: Ceilings | None = None, *, tensor: str = "") -> Pack:
    """Sections and rules for a version of Nsight Compute; for "" such as every release loads.

    ``tensor`` is the type that the section of few passes counts ("": the one that stands for all).  Measured roofs scale with
    the clock of the profiled kernel where the file says what theory gives at the clock they were measured at, else they are
    constants.
    Raises RooflineError for a release without rooflines.
    """
    from ncu_roofline.plugin.generate.dialects import BASE, dialect_of
    from ncu_roofline.plugin.generate.rules import render_rules
    from ncu_roofline.plugin.generate.sections import render_sections

    dialect = dialect_of(version) if version else BASE
    consistent = ceilings is not None and has_theory(ceilings)
    texts = render_sections(dialect, ceilings, clock_consistent=consistent, light_type=tensor)
    texts |= render_rules(dialect, [ceilings] if ceilings else [])
    files = {name: text.encode() for name, text in sorted(texts.items())}
    return Pack(files, version, ceilings.provenance if ceilings else "")


def has_theory(ceilings: Ceilings) -> bool:
    """Whether the file of the ceilings says what theory gives at the clock they were measured at."""
    known = {name for name, one in ceilings.by_id.items() if one.share > 0}
    return any(name.endswith(".fma") or name.startswith("tensor.") for name in known) and "dram.read" in known


def passes_text(pack: Pack, sections: Sequence[str], gpu: Gpu | None, light: Sequence[str] = ()) -> str:
    """How often each kernel will run, and why; ``light`` are the sections that --light would collect instead."""
    if gpu is None or gpu.compute_capability is None:
        return "Each kernel is run several times, once per group of counters (no GPU here to say how many)."
    capability = capability_text(gpu.compute_capability)
    total = _count(pack, sections, capability)
    if total is None:
        return f"Each kernel is run several times, once per group of counters (no metric library here knows {capability})."
    hardware, patched = total
    parts = [f"{hardware} for hardware counters"] if hardware else []
    parts += [f"{patched} with instrumented instructions"] if patched else []
    runs = hardware + patched + 1  # ncu prints one more than the library schedules
    fewer = _count(pack, light, capability) if light else None
    saved = f" --light: {sum(fewer) + 1} times." if fewer and sum(fewer) + 1 < runs else ""
    return f"Each kernel is run {runs} times (replay passes): {', '.join(parts)}, 1 of ncu's own.{saved}"


def _count(pack: Pack, sections: Sequence[str], capability: str) -> tuple[int, int] | None:
    from ncu_roofline.formats.sectionfile.text import SectionSyntaxError, parse_document
    from ncu_roofline.plugin.check import section_passes, targets_of
    from ncu_roofline.plugin.check.content import Content

    try:
        target = targets_of([capability])[0]
        texts = [(name, data) for name, data in pack.files.items() if name.endswith(".section")]
        contents = [Content(name, parse_document(data.decode())) for name, data in texts]
    except (RooflineError, SectionSyntaxError):
        return None
    found = section_passes((content for content in contents if content.section.identifier in sections), target)
    return (found.hardware, found.sass) if found else None
