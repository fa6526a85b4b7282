"""The results of our rules in the form in which a report stores them, fit for the release that made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike

from ncu_roofline.annotate.append import OWN_IDENTIFIER
from ncu_roofline.annotate.sections import OVERVIEW, identifier
from ncu_roofline.facts import load_spec
from ncu_roofline.facts.fields import parse_release
from ncu_roofline.model import Measurements
from ncu_roofline.nvrules import Lender, RuleOutcome, RuleSet, collectable, load_rules, section_identifier
from ncu_roofline.report import Kernel, RuleMessage, RuleResult

# The first release that opens reports with messages of type "optimization" for certain; 2022.3 refuses them.
OPTIMIZATION_SINCE = (2024, 1)

_NOT_COLLECTED = "none"  # how our rules name metrics that the report lacks: nothing to be done about that now
_RULE_PREFIX = "NcuRoofline"
_LINK = re.compile(r"@section:([^:@]*):")


class Adviser:
    """Rules, loaded once for all kernels of a report, whose measurements are ``m``."""

    def __init__(self, folders: Iterable[str | PathLike[str]], ncu_version: str, m: Measurements) -> None:
        self._rules: RuleSet = load_rules(folders)
        self._lender = Lender(m)
        self._ncu_version = ncu_version
        self._optimization = (parse_release(ncu_version) or (0, 0)) >= OPTIMIZATION_SINCE

    def results(self, kernel: Kernel, own_sections: Sequence[str]) -> tuple[RuleResult, ...]:
        """What the rules say about a kernel, but for rules whose results the report has already.

        ``own_sections`` are the identifiers of the sections that the kernel gets: results show in these.
        """
        known = {rule.identifier for rule in kernel.rule_results}
        present = {section_identifier(data) for data in kernel.sections} | set(own_sections)
        said = self._rules.run(kernel, known=self._lender.of(kernel.index))
        outcomes = (collectable(one, self._ncu_version) for one in said if one.identifier not in known)
        return tuple(result for outcome in outcomes if (result := self._result(outcome, present)).messages)

    def _result(self, outcome: RuleOutcome, present: set[str]) -> RuleResult:
        return RuleResult(
            identifier=OWN_IDENTIFIER.decode() + outcome.identifier.removeprefix(_RULE_PREFIX),
            name=outcome.name,
            section=_home(outcome.section, present),
            messages=tuple(self._message(message, present) for message in outcome.messages if message.type != _NOT_COLLECTED),
        )

    def _message(self, said: RuleMessage, present: set[str]) -> RuleMessage:
        text = _LINK.sub(lambda link: f"@section:{_home(link.group(1), present)}:", said.text)
        if said.type == "optimization" and not self._optimization:
            return replace(said, type="warning", text=text)
        return replace(said, text=text)


def _home(section: str, present: set[str]) -> str:
    """The section itself if the report has it, else what stands for it."""
    stand_in = next(
        (
            identifier(precision.id)
            for precision in load_spec().precisions
            if precision.section and precision.section == section
        ),
        "",
    )
    return next((one for one in (section, stand_in) if one in present), OVERVIEW)
