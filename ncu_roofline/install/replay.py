"""How many replay passes a profile will cost, said before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.install.deploy import Pack
from ncu_roofline.install.gpus import Gpu


def passes_text(pack: Pack, sections: Sequence[str], gpu: Gpu | None, light: Sequence[str] = ()) -> str:
    """How often each kernel will run, and why; ``light`` are the sections that --light would collect instead."""
    if gpu is None or gpu.compute_capability is None:
        return "Each kernel is run several times, once per group of counters (no GPU here to say how many)."
    capability = "{}.{}".format(*gpu.compute_capability)
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
    from ncu_roofline.errors import RooflineError
    from ncu_roofline.lint import section_passes, targets_of
    from ncu_roofline.lint.content import Content
    from ncu_roofline.sections.textformat import SectionSyntaxError, parse_document

    try:
        target = targets_of([capability])[0]
        texts = [(name, data) for name, data in pack.files.items() if name.endswith(".section")]
        contents = [Content(name, parse_document(data.decode())) for name, data in texts]
    except (RooflineError, SectionSyntaxError):
        return None
    found = section_passes((one for one in contents if one.section.identifier in sections), target)
    return (found.hardware, found.sass) if found else None
