"""Whether a ceilings file can be believed: its form, the theory recomputed, the spread, what was held back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ncu_roofline.base.forms import inside, number
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.settings import LIMITS, spread_of
from ncu_roofline.bench.telemetry import HARMFUL, names
from ncu_roofline.bench.theory import clock_of, theory, units_of_device
from ncu_roofline.formats.ceilings import CPU, GPU, MEASURE_AGAIN, is_roof, read_document

_SAME = 1e-3


@dataclass(frozen=True)
class Finding:
    """Something about a file: "error" (it can't be believed) or "note" (it should be known); ``ceiling`` "" for the file."""

    severity: str
    ceiling: str
    text: str


def verify(path: str) -> list[Finding]:
    """What there is to say about a file; no "error" means that it can be used.  Raises RooflineError if it is none."""
    content = read_document(path)
    found = [Finding("note", "", text) for text in content.get("warnings") or []]
    kind = CPU if content["device"].get("kind") == CPU else GPU
    try:  # published files name no GPU
        device: Device | None = parse_device({**content["device"], "uuid": content["device"].get("uuid") or "not told"})
    except (ValueError, TypeError):
        device = None
    device = device if device and device.sm_count else None
    if device is None and kind == GPU and not content["device"].get("gpus"):
        found.append(Finding("note", "", "the device is not described well enough to recompute its theory"))
    for entry in content["ceilings"]:
        if entry.get("value") is not None:
            found += [Finding(severity, entry["id"], text) for severity, text in _entry(entry, device, kind)]
    if not any(map(is_roof, content["ceilings"])):
        found += [Finding("note", e["id"], f"no value: {_reasons(e)}") for e in content["ceilings"] if e.get("value") is None]
        found.append(Finding("error", "", f"no ceiling was accepted. {MEASURE_AGAIN}"))
    return found


def _reasons(entry: Mapping[str, Any]) -> str:
    return "; ".join(entry.get("reasons") or ["no reason given"])


def _entry(entry: Mapping[str, Any], device: Device | None, kind_of_device: str) -> list[tuple[str, str]]:
    kind = CeilingKind(entry["id"], str(entry.get("unit")))
    found = []
    if entry.get("cv") is not None:
        found += _spread(entry, kind, kind_of_device)
    if device is not None:
        found += _against_theory(entry, kind, device)
    if entry.get("accepted") is False:
        found.append(("note", f"not accepted: {_reasons(entry)}"))
        return found
    held = set(inside(entry, "throttle", "reasons") or []) & set(names(HARMFUL))
    if held:
        found.append(("error", f"accepted although the GPU was held back: {', '.join(sorted(held))}"))
    if inside(entry, "verified", "checksum") is False:
        found.append(("error", "accepted although its result is wrong"))
    return found


def _spread(entry: Mapping[str, Any], kind: CeilingKind, device: str) -> list[tuple[str, str]]:
    found = []
    value, interval = number(entry.get("value")), entry.get("ci95")
    if not interval or len(interval) != 2 or not number(interval[0]) <= value <= number(interval[1]):
        found.append(("error", "the value lies outside its confidence interval"))
    per_cycle, limit = number(entry.get("cv_per_cycle")), spread_of(kind.domain, device)
    cv = number(entry["cv"]) if math.isnan(per_cycle) else per_cycle
    if entry.get("accepted") is not False and not cv <= limit.within:
        found.append(("error", f"accepted with {cv:.1%} variation, more than {limit.within:.0%}"))
    if number(entry.get("between_session_cv")) > limit.between:
        found.append(("note", f"sessions differ by {number(entry['between_session_cv']):.1%}"))
    return found


def _against_theory(entry: Mapping[str, Any], kind: CeilingKind, device: Device) -> list[tuple[str, str]]:
    peak = theory(kind, units_of_device(device)) if kind.domain != "link" else None
    if peak is None:
        return []
    expected = peak.at(clock_of(entry, kind))
    per_cycle = number(entry.get("per_sm_and_cycle")) * device.sm_count
    fraction = number(entry["value"]) / expected
    # By each trial's own clock, where it is known: a value over the mean clock may be off by as much as the clock swings.
    high = low = fraction
    if not math.isnan(per_cycle):
        high = max(per_cycle / peak.per_cycle, fraction - LIMITS.swing)
        low = min(per_cycle / peak.per_cycle, fraction + LIMITS.swing)
    stated = number(inside(entry, "theory", "at_measured_clock"))
    found = []
    # The file's theory stands at the median clock, this one at the mean.
    if math.isfinite(stated) and abs(stated / expected - 1) > LIMITS.impossible - 1:
        found.append(("error", f"its theory {stated:.4g} is not {expected:.4g}, what {peak.formula} gives"))
    accepted = entry.get("accepted") is not False
    if accepted and high > LIMITS.impossible + _SAME and not peak.uncertain:
        found.append(("error", f"accepted at {fraction:.1%} of theory at the measured clock"))
    if accepted and low < LIMITS.low - _SAME and not entry.get("reasons"):
        found.append(("error", f"{fraction:.1%} of theory at the measured clock, and no reason given"))
    return found
