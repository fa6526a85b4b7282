"""Running rules on kernels of a report, in the order and under the conditions that Nsight Compute has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from os import PathLike
from pathlib import Path

from ncu_roofline.base.temporary import temporary_folder
from ncu_roofline.formats.report import Kernel
from ncu_roofline.formats.sectionfile import parse_section
from ncu_roofline.plugin.nvrules.action import IAction
from ncu_roofline.plugin.nvrules.context import DONE, ERROR, SKIPPED, IContext, IMessageVault, Recorder, RuleOutcome
from ncu_roofline.plugin.nvrules.loading import Rule, RuleProblem, describe, load


@dataclass(frozen=True)
class RuleSet:
    """Rules, loaded once for many kernels.  Rules are programs: they run with the rights of whoever loads them."""

    rules: tuple[Rule, ...]
    problems: tuple[RuleProblem, ...]

    def run(
        self, kernel: Kernel, *, collected_only: bool = False, known: Mapping[object, object] | None = None
    ) -> tuple[RuleOutcome, ...]:
        """Every rule on one kernel, parents first.

        ``known`` is what a `Lender` knows of it, for rules of ours.  With ``collected_only``, rules of a section that the
        kernel was not profiled with are skipped, as ncu does.
        """
        sections = {section_identifier(section) for section in kernel.sections} if collected_only else None
        action, vault = IAction(kernel, known), IMessageVault()
        outcomes: list[RuleOutcome] = []
        for _, neighbours in groupby(self.rules, key=lambda rule: id(rule.namespace)):
            rules = tuple(neighbours)
            with rules[0].namespace.active():
                outcomes += [self._run(rule, action, vault, sections) for rule in rules]
        return tuple(outcomes)

    def _run(self, rule: Rule, action: IAction, vault: IMessageVault, sections: set[str] | None) -> RuleOutcome:
        recorder = Recorder(rule.identifier, rule.path.parent, rule.parents)
        before = action.added()
        status, reason = SKIPPED, ""
        if sections is not None and rule.section and rule.section not in sections:
            reason = f"section {rule.section} was not collected"
        else:
            status, reason = self._apply(rule, IContext(action, recorder, vault), action, recorder)
        added = {name: value for name, value in action.added().items() if before.get(name) != value}
        return RuleOutcome(
            identifier=rule.identifier,
            name=rule.name,
            section=rule.section,
            path=str(rule.path),
            status=status,
            reason=reason,
            messages=tuple(recorder.messages),
            tables=tuple(recorder.tables),
            charts=tuple(recorder.charts),
            proposals=tuple(recorder.proposals),
            added=tuple(added.items()),
            markers=recorder.markers,
        )

    def _apply(self, rule: Rule, context: IContext, action: IAction, recorder: Recorder) -> tuple[str, str]:
        try:
            if callable(getattr(rule.module, "evaluate", None)):
                rule.module.evaluate(context)
            lacking = self._lacking(action, recorder)
            if lacking:
                return SKIPPED, lacking
            rule.module.apply(context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a rule may raise anything, SystemExit included
            reason = describe(error)
            recorder.add("error", f"Rule {rule.name} returned an error: {reason}")
            return ERROR, reason
        return DONE, ""

    def _lacking(self, action: IAction, recorder: Recorder) -> str:
        """What the rule said that it needs and does not get."""
        metrics = [name for name in recorder.required_metrics if action.metric_by_name(name) is None]
        known = {rule.identifier for rule in self.rules}
        rules = [name for name in recorder.required_rules if name not in known]
        parts = [f"metric {name} was not collected" for name in metrics] + [f"there is no rule {name}" for name in rules]
        return "; ".join(dict.fromkeys(parts))


@lru_cache(maxsize=256)
def section_identifier(section: bytes) -> str:
    """The identifier of a serialized section, "" if it is none; kept, as kernels mostly carry the same, byte for byte."""
    try:
        return parse_section(section).identifier
    except ValueError:
        return ""


def load_rules(folders: Iterable[str | PathLike[str]]) -> RuleSet:
    """The rules in these folders, or single rule files.

    Of several rules with one identifier the first counts.  Raises RooflineError for a folder without any rule; files that
    are broken are listed in ``problems``.
    """
    rules, problems = load([Path(folder) for folder in folders])
    return RuleSet(tuple(_parents_first(rules)), tuple(problems))


@contextmanager
def rendered_rules(texts: Iterable[tuple[str, str]]) -> Iterator[RuleSet]:
    """Rules from the names and texts of their files, usable while the context lasts."""
    with temporary_folder({name: text.encode() for name, text in texts}) as folder:
        yield load_rules((folder,))


def _parents_first(rules: Sequence[Rule]) -> list[Rule]:
    """In the given order, but each rule after those that it names as parents; a circle is cut where it closes."""
    by_id = {rule.identifier: rule for rule in rules}
    ordered: dict[str, Rule] = {}
    visiting: set[str] = set()

    def visit(rule: Rule) -> None:
        if rule.identifier in ordered or rule.identifier in visiting:
            return
        visiting.add(rule.identifier)
        for parent in rule.parents:
            if parent in by_id:
                visit(by_id[parent])
        ordered[rule.identifier] = rule

    for rule in rules:
        visit(rule)
    return list(ordered.values())


def run_rules(
    kernel: Kernel, folders: Iterable[str | PathLike[str]], *, collected_only: bool = False
) -> tuple[RuleOutcome, ...]:
    """The rules of these folders on one kernel; for many kernels load them once with `load_rules`.

    A rule that fails is an outcome of status "error"; the others go on.  Raises RooflineError for a folder without rules.
    """
    return load_rules(folders).run(kernel, collected_only=collected_only)
