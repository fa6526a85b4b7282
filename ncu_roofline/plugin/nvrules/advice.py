"""Runs the rules on a report's launches with numbers that the model has computed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.fields import release_text
from ncu_roofline.chips.formulas import OF_ACTIVE, Counted
from ncu_roofline.chips.ncu import OPS_PATH_SINCE
from ncu_roofline.chips.verdict import Share
from ncu_roofline.formats.report import Report
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import OPCODES_SINCE, counts_tensor_operations, release_of
from ncu_roofline.model.measurements import Measurements, Quantity
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, RuleSet

_LINK = re.compile(r"@(?:(?:section|source|sass):(?:[^@:\n]*:)+(?P<text>[^@:\n]*)|url:(?P<label>[^@:\n]*):(?P<url>[^@\s]+))@")
OURS = "NcuRoofline"
"""What the identifiers of our rules begin with."""
# Sections of ours and of Nsight Compute that count tensor operations.
_TENSOR_SECTION = re.compile(r"@section:\w*HierarchicalTensor\w*:")
# What to collect, up to its purpose or the end of the sentence; never past the next word like it, which keeps it linear.
_COLLECT = re.compile(r"\b(?P<verb>[Cc]ollect) (?P<what>(?:(?![Cc]ollect ).)*?)(?= to see |\.(?:\s|$))")
_OPCODES = "counts per opcode (section @section:SourceCounters:SourceCounters@)"
_WHY = f" Operations of tensor cores are counted from Nsight Compute {release_text(OPS_PATH_SINCE)} on, not by {{}}."
Known = dict[object, object]
"""By (name of a rule's method, id or None): what it would work out."""


def plain_text(message: str) -> str:
    """The message without ``@section:id:text@`` and the like: the texts stay, web addresses follow theirs in parentheses."""
    if "@" not in message:
        return message
    return _LINK.sub(lambda link: f"{link['label']} ({link['url']})" if link["url"] else link["text"], message)


def collectable(outcome: RuleOutcome, ncu_version: str) -> RuleOutcome:
    """The outcome of a rule of ours, its messages without metrics and sections that the release can't collect.

    Operations of tensor cores are counted from 2023.3 on; before, counts per opcode tell them.
    """
    release = release_of(ncu_version)
    asks = outcome.identifier.startswith(OURS) and any("ollect " in message.text for message in outcome.messages)
    if release >= OPS_PATH_SINCE or not asks:
        return outcome

    def instead(found: re.Match[str]) -> str:
        parts = found["what"].split(", ")
        kept = [part for part in parts if not (counts_tensor_operations(part) or _TENSOR_SECTION.search(part))]
        if len(kept) == len(parts):
            return found[0]
        kept = [part for part in kept if part != "..."] + ([_OPCODES] if release >= OPCODES_SINCE else [])
        return f"{found['verb']} {', '.join(kept) if kept else 'a report with a later release'}"

    texts = [_COLLECT.sub(instead, message.text) for message in outcome.messages]
    why = _WHY.format(release_text(release))
    pairs = zip(outcome.messages, texts, strict=True)
    return replace(outcome, messages=tuple(one if one.text == text else replace(one, text=text + why) for one, text in pairs))


class Lender:
    """The numbers of all launches of some measurements, taken apart once."""

    def __init__(self, m: Measurements) -> None:
        spec, self._missing = load_spec(), [None] * len(m)
        self._lent: dict[tuple[str, str | None], Sequence[object]] = {}
        adding = {p.id: self._values(m.summands.get(p.id)) for p in spec.precisions if p.unit == "flop" and p.adds}
        # What is not to be added besides, launch by launch.
        twice = [tuple(name for name, values in adding.items() if values[row] is None) for row in range(len(m))]
        for p in spec.precisions:
            self._lent["work", p.id] = self._counted(m.work.get(p.id), self._values(m.fused.get(p.id)), twice)
            self._lent["compute_roof", p.id] = self._values(m.compute.get(p.roof))
        for level in spec.levels:
            self._lent["traffic", level.id] = self._counted(m.traffic.get(level.id), self._missing, [()] * len(m))
            self._lent["bandwidth_roof", level.id] = self._values(m.bandwidth.get(level.id))
            self._lent["rate_share", level.id] = self._values(m.shares.get(level.id))
        for unit in load_units().units:
            quantity = m.units.get(unit.id, Quantity.missing(len(m)))
            facts = zip(self._values(quantity), quantity.is_lower_bound().tolist(), quantity.choice.tolist(), strict=True)
            of_active = [origin.note == OF_ACTIVE for origin in quantity.origins]
            self._lent["busy", unit.id] = [
                None if value is None else Share(value, lower, of_active[choice]) for value, lower, choice in facts
            ]
        self._lent["tensor_gap", None] = m.tensor_gaps.tolist()
        self._lent["tensor_active", None] = [share if math.isfinite(share) else None for share in m.tensor_active.tolist()]

    def of(self, row: int) -> Known:
        """What is known of the launch at position ``row``, None for what is missing; a new dictionary."""
        known: Known = {key: column[row] for key, column in self._lent.items()}
        active = known["tensor_active", None]
        if active is not None:  # else the report may tell of active cycles only
            known["tensor_share", None] = Share(active, False, False)
        return known

    def _values(self, quantity: Quantity | None) -> Sequence[float | None]:
        """The values, None where unknown."""
        found = self._missing if quantity is None else quantity.values.tolist()
        return [value if value is not None and math.isfinite(value) else None for value in found]

    def _counted(
        self, quantity: Quantity | None, fused: Sequence[float | None], twice: Sequence[tuple[str, ...]]
    ) -> Sequence[Counted | None]:
        if quantity is None:
            return self._missing
        origins = [(origin.metrics.split(", "), origin.note, origin.lower_bound) for origin in quantity.origins]
        found: list[Counted | None] = []
        for value, choice, part, names in zip(self._values(quantity), quantity.choice.tolist(), fused, twice, strict=True):
            metrics, note, lower = origins[choice] if choice >= 0 else ([], "", False)
            found.append(None if value is None or choice < 0 else Counted(value, metrics, note, names, part, lower))
        return found


class KernelAdvice(NamedTuple):
    """What the rules said about one launch, by its report and position there; ``seconds``: its run time (NaN if unknown)."""

    report: str
    launch: int
    seconds: float
    outcomes: tuple[RuleOutcome, ...]


def advise(
    report: Report,
    rules: RuleSet,
    measurements: Measurements | None = None,
    *,
    collected_only: bool = False,
    watch: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> tuple[KernelAdvice, ...]:
    """The rules on every launch of ``measurements`` (all of the report, if not given).

    ``collected_only``: as ncu does, only rules of sections that the report was made with.  ``watch`` gets the row numbers and
    gives them back one by one, so it can show how far the work is.  No rule looks at a launch whose counters are not believed.
    Raises RooflineError for damage.
    """
    m = measurements_of(report) if measurements is None else measurements
    foreign, lender, found = disbelieved(m), Lender(m), []
    for row in watch(range(len(m))):
        kernel = report.kernels[int(m.launch[row])]
        outcomes = () if foreign[row] else rules.run(kernel, collected_only=collected_only, known=lender.of(row))
        told = tuple(collectable(outcome, report.ncu_version) for outcome in outcomes)
        found.append(KernelAdvice(str(m.report[row]), int(m.launch[row]), float(m.seconds[row]), told))
    return tuple(found)
