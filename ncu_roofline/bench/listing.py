"""What `bench list` shows: ceilings, their variants, where they apply, what was never run on hardware."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.bench.catalogue import CeilingKind, catalogue, kind_of
from ncu_roofline.bench.gpus import proven
from ncu_roofline.bench.runner import Variant

UNPROVEN = "unproven on hardware"
NO_KERNEL = "not measured, data-sheet peak only"

Row = dict[str, str | list[str]]


def rows(variants: Sequence[Variant] | None, capabilities: Sequence[str] = ()) -> list[Row]:
    """One row per ceiling; ``variants`` None where there is no program to ask, ``capabilities`` the GPUs that are meant."""
    kinds = list(catalogue())
    known = {kind.id for kind in kinds}
    for variant in variants or ():
        if variant.ceiling not in known:
            known.add(variant.ceiling)
            kinds.append(kind_of(variant.ceiling, variant.unit))
    return [_row(kind, variants, capabilities) for kind in kinds]


def _row(kind: CeilingKind, variants: Sequence[Variant] | None, capabilities: Sequence[str]) -> Row:
    row: Row = {"ceiling": kind.id, "unit": kind.unit, "measures": kind.about, "quick": "yes" if kind.quick else "no"}
    if variants is not None:
        own = [variant for variant in variants if variant.ceiling == kind.id]
        row["variants"] = list(dict.fromkeys(v.name for v in own if not v.reason and _on_any(v, capabilities)))
        row["applies to"] = _where(own, "", capabilities)
        row["emulated on"] = _where(own, "emulated", capabilities)
    row["status"] = _status(kind.id, capabilities) if kind.measured else NO_KERNEL
    return row


def _on_any(variant: Variant, capabilities: Sequence[str]) -> bool:
    return not capabilities or any(variant.on(text) for text in capabilities)


def _where(variants: Sequence[Variant], reason: str, capabilities: Sequence[str]) -> list[str]:
    chosen = [variant for variant in variants if variant.reason == reason]
    if capabilities:
        return [text for text in capabilities if any(variant.on(text) for variant in chosen)]
    if any(not variant.capabilities for variant in chosen):
        return ["all"]
    found = {text for variant in chosen for text in variant.capabilities}
    return sorted(found, key=lambda text: tuple(map(int, text.split("."))))


def _status(ceiling: str, capabilities: Sequence[str]) -> str:
    where = [text for text, ids in proven().items() if ceiling in ids and (not capabilities or text in capabilities)]
    return f"run on {', '.join(sorted(where))}" if where else UNPROVEN
