"""`annotate()`: a report in, the bytes of the annotated copy out, and an account of what could be derived."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from ncu_roofline.base.files import pack_folder
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Kernel, Report, RuleMessage, RuleResult
from ncu_roofline.formats.report.framing import RawFile, open_raw
from ncu_roofline.formats.report.opening import check_content, copied
from ncu_roofline.model import Measurements, Selection, measurements_of
from ncu_roofline.model.explanations import Explanation, explain
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.model.points import with_levels_that_matter
from ncu_roofline.plugin.annotate.append import OWN_IDENTIFIER, Addition, appended, early_results, is_annotated, stripped
from ncu_roofline.plugin.annotate.sections import OVERVIEW, LaunchPlan, Planner, identifier
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.advice import OURS, Lender, collectable
from ncu_roofline.plugin.nvrules.findings import VERDICT
from ncu_roofline.plugin.nvrules.runner import RuleSet, load_rules, rendered_rules, section_identifier

PathName = str | os.PathLike[str]
_FINDINGS = ("error", "optimization", "warning")
_LINK = re.compile(r"@section:([^:@]*):")


@dataclass
class Account:
    """What was written: how many launches got a chart of which precision (id), which rule said how many messages,
    in how many launches a chart has a dot of which level (id), and which of the given ceilings no chart shows.

    ``explanation`` says which work and traffic could be derived, and from what; ``worked`` counts the launches with work of a
    precision, ``early`` the results in which ncu-ui will show n/a, because the file names some of its metrics only behind them.
    """

    explanation: Explanation
    early: int = 0
    worked: Counter[str] = field(default_factory=Counter)
    charts: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    dots: Counter[str] = field(default_factory=Counter)
    unused: str = ""

    def add(self, plan: LaunchPlan, rules: Iterable[RuleResult]) -> None:
        self.worked.update(chart.id for chart in plan.charts)
        self.charts.update(chart.id for chart in plan.drawn)
        self.dots.update({level.id for chart in plan.drawn for level in chart.levels if level.moved})
        for rule in rules:
            self.messages[rule.name] += len(rule.messages)


def annotate(
    path: PathName,
    write: Callable[[Iterator[bytes]], None],
    ceilings: Sequence[Ceilings] = (),
    rules: Sequence[PathName] | None = None,
    watch: Callable[[Iterable[Kernel], int], Iterable[Kernel]] = lambda kernels, _: kernels,
) -> Account:
    """Give ``write`` the bytes of a copy of the report ``path`` with our sections, metrics and the results of ``rules``.

    ``rules`` are folders or files of rules, whose code runs; if not said, those that come with the package, which judge with
    the same ``ceilings``.  ``watch`` gets the kernels and their number and gives them back
    one by one, so it can show how far the work is.  An earlier annotation is replaced, and so is what ncu collected with our
    sections and rules, of which nothing is lost: `append.stripped` brings it back.  Raises RooflineError for
    what is no report, holds no kernel or metric, for ceilings that fit none of its GPUs, and what ``write`` raises.
    """
    with closing(_without_annotation(path)) as raw, _loaded(rules, ceilings) as loaded:
        report = Report(raw)
        check_content("Cannot annotate", report.path, len(report), len(report.metric_names))
        m = measurements_of(report, label=os.fspath(path))
        account = Account(_explained(report, m), early=early_results(raw))
        adviser, shown = Adviser(loaded, report.ncu_version, m), dict[int, set[str]]()

        def additions(kernels: Iterable[Kernel]) -> Iterator[Addition]:
            for i, kernel in enumerate(kernels):
                plan = planner.plan(i)
                stood = plan.replaced
                results, replaced = adviser.advice(kernel, {OVERVIEW, *(identifier(chart.id) for chart in plan.charts)}, stood)
                account.add(plan, results)
                if plan.ceilings is not None:
                    levels = (level.roof for chart in plan.drawn for level in chart.levels)
                    roofs = (*(roof for chart in plan.drawn for roof in chart.roofs), *levels)
                    measured = (_of(roof.measured.ceiling) for roof in roofs if roof.measured)
                    shown.setdefault(id(plan.ceilings), set()).update(measured)
                yield Addition(plan.metrics, plan.sections, results, stood, replaced)

        with np.errstate(all="ignore"):
            planner = Planner(m, ceilings)
            names = list(dict.fromkeys(name for i in range(len(m)) for name, _ in planner.plan(i).metrics))
            write(appended(raw, names, additions(watch(report.kernels, len(report)))))
        account.unused = _unused(ceilings, shown)
    return account


@contextmanager
def _loaded(folders: Sequence[PathName] | None, ceilings: Sequence[Ceilings]) -> Iterator[RuleSet | None]:
    """The rules, usable while the context lasts; None for no folders."""
    if folders is None and ceilings:
        with rendered_rules(render_rules(ceilings=ceilings).items()) as rules:
            yield rules
    else:
        given = [pack_folder("rules")] if folders is None else folders
        yield load_rules(given) if given else None


def _without_annotation(path: PathName) -> RawFile:
    """The report as it was before an earlier run."""
    raw = open_raw(path)
    try:
        if not is_annotated(raw):
            return raw
        former = copied(path, stripped(raw), "copied without its annotation to")
    except BaseException:
        raw.close()
        raise
    raw.close()
    return RawFile(os.fspath(path), former, raw.unpacked)


def _explained(report: Report, m: Measurements) -> Explanation:
    """About the plain precisions, the tensor types in use and all levels."""
    spec = load_spec()
    used = [p.id for p in spec.precisions if p.kind == "tensor" and p.id in m.work and (m.work[p.id].values > 0).any()]
    shown = with_levels_that_matter(m, spec, Selection())
    explained = explain(report, shown, (*spec.core, *used), [level.id for level in spec.levels])
    return replace(explained, notes=(*report.warnings, *explained.notes))


def _unused(ceilings: Sequence[Ceilings], shown: Mapping[int, set[str]]) -> str:
    """A clause for each file of which no chart shows something: the whole file, or what it is of; "" if there is none."""
    clauses = []
    for file in ceilings:
        if id(file) not in shown:
            clauses.append(f"{file.provenance} (other ceilings stand for the GPUs of the report)")
            continue
        # Those of launches are none of a chart, but of a verdict.
        measured = dict.fromkeys(_of(name) for name in file.by_id if name.partition(".")[0] != "launch")
        left = [what for what in measured if what not in shown[id(file)]]
        if left:
            clauses.append(f"{listed(left, 4)} of {file.provenance} (in no chart of this report)")
    return "; ".join(clauses)


def _of(ceiling: str) -> str:
    """The level or precision that a ceiling is of, as people call it; the ceiling's id where there is none."""
    spec = load_spec()
    if level := spec.level_of_ceiling(ceiling):
        return spec.level(level).label
    found = [p for p in spec.precisions if f"{ceiling}.".startswith(f"{p.id}.")]
    return max(found, key=lambda p: len(p.id)).label if found else ceiling


class Adviser:
    """Rules for all kernels of a report, whose measurements are ``m``; without any, results of ours are kept."""

    def __init__(self, rules: RuleSet | None, ncu_version: str, m: Measurements) -> None:
        self._rules, self._ncu_version = rules, ncu_version
        self._lender, self._foreign = Lender(m), disbelieved(m)

    def advice(
        self, kernel: Kernel, own: AbstractSet[str], replaced: AbstractSet[str]
    ) -> tuple[list[RuleResult], AbstractSet[str]]:
        """What the rules say about a kernel that gets sections of the identifiers ``own`` in place of those ``replaced``.

        And the identifiers of its own results that this replaces: results of rules of ours that the report has are replaced by
        what the same rule says now; where it says nothing, and they stood in a section that is replaced, they move.  Of other
        rules, those that have spoken are not asked again.
        A kernel whose counters are not believed gets that as its verdict, in place of all that rules of ours say.
        The verdict stands first, whatever it is; of our other rules findings are told, not what is fine or was not collected.
        """
        present = ({section_identifier(data) for data in kernel.sections} - replaced) | own
        had = {result.identifier: result for result in kernel.rule_results}
        mine = {name for name in had if name.startswith(OURS)}
        if self._rules is not None and (why := self._foreign[kernel.index]):
            message = RuleMessage("warning", f"{why[0].upper()}{why[1:]}.", "Counters not believed")
            return [_adapted(RuleResult(VERDICT, "Roofline Verdict", OVERVIEW, (message,)), present)], mine
        outcomes = self._rules.run(kernel, known=self._lender.of(kernel.index)) if self._rules else []
        results = [collectable(outcome, self._ncu_version).as_result() for outcome in outcomes]
        said = [one for one in results if one.messages and (one.identifier in mine or one.identifier not in had)]
        again = {one.identifier for one in said}
        moved = [had[name] for name in sorted(mine - again) if had[name].section in replaced]
        told = []
        for one in sorted((*said, *moved), key=lambda one: one.identifier != VERDICT):
            if one.identifier != VERDICT and one.identifier.startswith(OURS):
                one = replace(one, messages=tuple(message for message in one.messages if message.type in _FINDINGS))
            told += [_adapted(one, present)] if one.messages else []
        return told, mine & (again | {one.identifier for one in moved})


def _adapted(result: RuleResult, present: AbstractSet[str]) -> RuleResult:
    """The result under an identifier of our own, in sections that are there."""

    def home(section: str) -> str:
        """The section itself if the report has it, else what stands for it."""
        stand_ins = (identifier(one.id) for one in load_spec().precisions if section and one.section == section)
        return next((one for one in (section, next(stand_ins, "")) if one in present), OVERVIEW)

    def there(said: RuleMessage) -> RuleMessage:
        return replace(said, text=_LINK.sub(lambda link: f"@section:{home(link.group(1))}:", said.text))

    name = OWN_IDENTIFIER.decode() + result.identifier.removeprefix(OURS)
    return RuleResult(name, result.name, home(result.section), tuple(map(there, result.messages)))
