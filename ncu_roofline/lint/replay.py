"""Replay passes that sections cost, as NVIDIA's metric library schedules them."""

from __future__ import annotations

from collections.abc import Iterable

from ncu_roofline.lint.chips import Passes, passes
from ncu_roofline.lint.content import Content
from ncu_roofline.lint.targets import Target
from ncu_roofline.sections.definitions import parse_expression


def metrics_to_collect(content: Content, target: Target) -> tuple[str, ...]:
    """Metrics that a section makes Nsight Compute collect on a chip, in order, derived ones replaced by their inputs."""
    defined = content.defined_on(target.arch)
    result: dict[str, None] = {}
    for name in content.collected_on(target.arch):
        try:
            names = parse_expression(defined[name].expression).names if name in defined else (name,)
        except ValueError:
            names = ()
        result.update(dict.fromkeys(names))
    return tuple(result)


def section_passes(contents: Iterable[Content], target: Target) -> Passes | None:
    """Passes of sections collected together; None where no library knows the chip."""
    names = (name for content in contents for name in metrics_to_collect(content, target))
    return passes(target.chip, dict.fromkeys(names))
