"""The results of our rules in the form in which a report stores them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ncu_roofline.chips import load_spec
from ncu_roofline.formats.report import Kernel, RuleMessage, RuleResult
from ncu_roofline.model import Measurements
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.plugin.annotate.append import OWN_IDENTIFIER
from ncu_roofline.plugin.annotate.sections import OVERVIEW, identifier
from ncu_roofline.plugin.nvrules import Lender, RuleSet, collectable, section_identifier
from ncu_roofline.plugin.nvrules.findings import VERDICT

_FINDINGS = ("error", "optimization", "warning")
_RULE_PREFIX = "NcuRoofline"
_LINK = re.compile(r"@section:([^:@]*):")


@dataclass(frozen=True)
class Advice:
    """What a launch gets, and the identifiers of its own rule results that this replaces."""

    results: tuple[RuleResult, ...]
    replaced: frozenset[str]


class Adviser:
    """Rules for all kernels of a report, whose measurements are ``m``; without any, results of ours are kept."""

    def __init__(self, rules: RuleSet | None, ncu_version: str, m: Measurements) -> None:
        self._rules = rules
        self._lender, self._foreign = Lender(m), disbelieved(m)
        self._ncu_version = ncu_version

    def advice(self, kernel: Kernel, own: Sequence[str], replaced: Collection[str]) -> Advice:
        """What the rules say about a kernel that gets sections of the identifiers ``own`` in place of those ``replaced``.

        Results of rules of ours that the report has are replaced by what the same rule says now; where it says nothing, and
        they stood in a section that is replaced, they move.  Of other rules, those that have spoken are not asked again.
        A kernel whose counters are not believed gets that as its verdict, in place of all that rules of ours say.
        The verdict stands first, whatever it is; of our other rules findings are told, not what is fine or was not collected.
        """
        present = ({section_identifier(data) for data in kernel.sections} - set(replaced)) | set(own)
        had = {result.identifier: result for result in kernel.rule_results}
        mine = {name for name in had if name.startswith(_RULE_PREFIX)}
        if self._rules is not None and (why := self._foreign[kernel.index]):
            message = RuleMessage("warning", f"{why[0].upper()}{why[1:]}.", "Counters not believed")
            return Advice((_adapted(RuleResult(VERDICT, "Roofline Verdict", OVERVIEW, (message,)), present),), frozenset(mine))
        outcomes = self._rules.run(kernel, known=self._lender.of(kernel.index)) if self._rules else []
        results = [collectable(outcome, self._ncu_version).as_result() for outcome in outcomes]
        said = [one for one in results if one.messages and (one.identifier in mine or one.identifier not in had)]
        again = {one.identifier for one in said}
        moved = [had[name] for name in sorted(mine - again) if had[name].section in replaced]
        told = [one for one in map(_findings, (*said, *moved)) if one.messages]
        adapted = tuple(_adapted(one, present) for one in sorted(told, key=lambda one: one.identifier != VERDICT))
        return Advice(adapted, frozenset(mine & (again | {one.identifier for one in moved})))


def _findings(result: RuleResult) -> RuleResult:
    """The result, if of a rule of ours without what is no finding."""
    if result.identifier == VERDICT or not result.identifier.startswith(_RULE_PREFIX):
        return result
    return replace(result, messages=tuple(said for said in result.messages if said.type in _FINDINGS))


def _adapted(result: RuleResult, present: set[str]) -> RuleResult:
    """The result under an identifier of our own, in sections that are there."""

    def home(section: str) -> str:
        """The section itself if the report has it, else what stands for it."""
        stand_ins = (
            identifier(precision.id) for precision in load_spec().precisions if section and precision.section == section
        )
        return next((one for one in (section, next(stand_ins, "")) if one in present), OVERVIEW)

    def there(said: RuleMessage) -> RuleMessage:
        return replace(said, text=_LINK.sub(lambda link: f"@section:{home(link.group(1))}:", said.text))

    name = OWN_IDENTIFIER.decode() + result.identifier.removeprefix(_RULE_PREFIX)
    return RuleResult(name, result.name, home(result.section), tuple(map(there, result.messages)))
