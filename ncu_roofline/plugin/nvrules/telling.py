"""What is told of the advice on some reports: findings, and what rules, filters and a budget leave out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ncu_roofline.model import Measurements
from ncu_roofline.plugin.nvrules.advice import KernelAdvice
from ncu_roofline.plugin.nvrules.findings import SILENT, Finding, Findings, Kernel, spoken_of, without_numbers
from ncu_roofline.plugin.nvrules.loading import RuleProblem

FULL, SENTENCE, TITLE, BARE = "full", "sentence", "title", "bare"
"""How much is told of a finding: all; the first sentence of its text; no text; only what tells it apart, and its numbers."""


@dataclass(frozen=True)
class ReportAdvice:
    """The advice on one report, the launches that were asked for, and rule files that could not be used.

    ``notes``: what the rules did not get, since it can't be.
    """

    report: str
    ncu_version: str
    measurements: Measurements
    kernels: tuple[KernelAdvice, ...]
    problems: tuple[RuleProblem, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Silence:
    """What a rule could not tell, and of how many launches; ``alone``: of which it told nothing else."""

    rule: str
    text: str
    launches: int
    alone: bool = True


@dataclass(frozen=True)
class Told:
    """Findings, best first, all kernels, likewise, and what goes with them.

    ``sentences``: the answer for each GPU, that with most time first.  ``reports``: name and release of Nsight Compute of each
    report.  ``places``: the reports of each GPU.  ``silences``: what rules could not tell of the ``launches`` that they looked
    at.  ``skipped``: rules that did not run, and why.  ``minor``: findings worth too little; ``left_out``: others that are not
    among the findings; ``notes_left_out``: likewise notes and silences; ``sentences_left_out``: likewise sentences.
    """

    found: tuple[Finding, ...]
    kernels: tuple[Kernel, ...]
    sentences: Mapping[str, Sequence[str]]
    reports: tuple[tuple[str, str], ...]
    places: Mapping[str, Sequence[str]]
    launches: int
    silences: tuple[Silence, ...]
    skipped: Mapping[str, int]
    notes: tuple[str, ...]
    minor: int
    left_out: int = 0
    notes_left_out: int = 0
    sentences_left_out: int = 0
    detail: str = FULL

    @classmethod
    def of(cls, reports: Sequence[ReportAdvice], findings: Findings, sentences: Mapping[str, Sequence[str]]) -> Told:
        """What there is to tell of all reports."""
        places: dict[str, dict[str, None]] = {}
        for one in reports:
            for device in one.measurements.device:
                places.setdefault(device, {})[one.report] = None
        advice = [kernel for one in reports for kernel in one.kernels]
        several = len(findings.clocks) > 1
        clocks = [f"{device}: {text}" if several else text for device, texts in findings.clocks.items() for text in texts]
        devices = {device: sentences.get(device, ()) for device in (*sentences, *places)}
        return cls(
            found=findings.found,
            kernels=findings.kernels,
            sentences=devices,
            reports=tuple((one.report, one.ncu_version) for one in reports),
            places={device: tuple(places.get(device, ())) for device in devices},
            launches=len(advice),
            silences=_silences(advice),
            skipped=_skipped(advice),
            notes=tuple(dict.fromkeys((*(note for one in reports for note in one.notes), *clocks))),
            minor=findings.left_out,
        )

    def first(self, count: int, detail: str = FULL) -> Told:
        """The same with the first findings only, told in ``detail``."""
        kept = self.found[:count]
        return replace(
            self,
            found=kept,
            kernels=tuple(one.kernel for one in kept),
            left_out=self.left_out + len(self.found) - len(kept),
            detail=detail,
        )

    def brief(self) -> Told:
        """The same without notes and what rules could not tell, and with one count of what is left out."""
        notes = self.notes_left_out + len(self.notes) + len(self.silences) + len(self.skipped)
        findings = self.left_out + self.minor
        return replace(self, notes=(), silences=(), skipped={}, minor=0, left_out=findings, notes_left_out=notes)

    def bare(self) -> Told:
        """Only how much is left out."""
        silent = sum(max(1, len(said)) for said in self.sentences.values())  # a GPU without sentences has nothing to say
        return replace(self.brief().first(0), sentences={}, reports=(), sentences_left_out=self.sentences_left_out + silent)

    @property
    def shortened(self) -> int:
        """How many of the findings are told without all of their text."""
        return sum(self.said_of(one) != one.text for one in self.found)

    def said_of(self, finding: Finding) -> str:
        """The text of a finding in the detail asked for."""
        if self.detail == FULL:
            return finding.text
        return first_sentence(finding.text) if self.detail == SENTENCE else ""


def first_sentence(text: str) -> str:
    """The text up to its first stop."""
    first, stop, _ = text.partition(". ")
    return f"{first}{stop.rstrip()}"


def _silences(advice: Iterable[KernelAdvice]) -> tuple[Silence, ...]:
    """What rules could not say, once for all launches and whatever numbers are in it."""
    found: defaultdict[tuple[str, str, bool], Counter[str]] = defaultdict(Counter)
    for one in advice:
        for outcome in one.outcomes:
            alone = all(message.type == SILENT for message in outcome.messages)
            for message in outcome.messages:
                if message.type == SILENT:
                    found[outcome.identifier, without_numbers(message.text), alone][message.text] += 1
    return tuple(
        Silence(rule, spoken_of(tuple(texts), next(iter(texts)))[0], texts.total(), alone)
        for (rule, _, alone), texts in found.items()
    )


def _skipped(advice: Iterable[KernelAdvice]) -> dict[str, int]:
    """By reason, how many rules did not run."""
    rules: dict[str, set[str]] = {}
    for one in advice:
        for outcome in one.skipped():
            rules.setdefault(outcome.reason, set()).add(outcome.identifier)
    return {reason: len(rules[reason]) for reason in sorted(rules)}
