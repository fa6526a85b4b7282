"""The chips that sections are checked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, parse_target
from ncu_roofline.formats.sectionfile.section import arch_number


@dataclass(frozen=True)
class Target:
    """A chip (GH100) and its compute capability."""

    chip: str
    capability: tuple[int, int]

    @property
    def arch(self) -> int:
        """The number that sections use."""
        return arch_number(self.capability)


def all_targets() -> tuple[Target, ...]:
    """Every chip known."""
    return tuple(
        Target(chip, architecture.compute_capability)
        for architecture in load_spec().architectures
        for chip in architecture.chips
    )


def default_targets() -> tuple[Target, ...]:
    """One chip for each compute capability: the largest."""
    return tuple(Target(architecture.chips[0], architecture.compute_capability) for architecture in load_spec().architectures)


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The chips that `names` mean: chips (GH100), compute capabilities (9.0, sm_90), products (H100) or "all"; none is default.

    Raises RooflineError for a name that means nothing.
    """
    if not names:
        return default_targets()
    return tuple(dict.fromkeys(target for name in names for target in _meant(name)))


def _meant(name: str) -> Iterable[Target]:
    if name.lower() == "all":
        return all_targets()
    chips = [target for target in all_targets() if target.chip == name.upper()]
    if chips:
        return chips
    capability = parse_target(name)
    for target, products in ((one, load_spec().architecture(one.capability)) for one in default_targets()):
        if target.capability == capability or (products and name.lower() in (product.lower() for product in products.products)):
            return [target]
    reason = "it is neither a chip nor a compute capability nor a product known"
    raise RooflineError("Cannot use --chip", name, reason, "See `ncu-roofline list architectures`.")


def capabilities(targets: Iterable[Target], everyone: Sequence[Target]) -> str:
    """Compute capabilities for people: "8.7 and 12.1", or "every chip checked" for all of them."""
    found = sorted({target.capability for target in targets})
    if len(found) > 1 and len(found) == len({target.capability for target in everyone}):
        return "every chip checked"
    words = [capability_text(one) for one in found]
    return f"compute capability {' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))}"
