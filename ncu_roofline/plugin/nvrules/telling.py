"""What is told of the advice on some reports, as text and as JSON: the answer for each GPU, findings, and what is left out."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ncu_roofline.base.texts import listed
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.verdict import as_percent, as_times
from ncu_roofline.model import Measurements
from ncu_roofline.model.selection import WORTH
from ncu_roofline.plugin.nvrules.advice import KernelAdvice
from ncu_roofline.plugin.nvrules.findings import (
    FINE,
    LONGEST,
    NOTE,
    SILENT,
    VERDICT,
    Finding,
    Findings,
    Kernel,
    spoken_of,
    without_numbers,
)
from ncu_roofline.plugin.nvrules.runner import SKIPPED, RuleProblem
from ncu_roofline.rendering.table import fitted, wrapped

SCHEMA, SCHEMA_VERSION = "ncu-roofline-advice", 1
_TYPES = {"optimization": "try", "warning": "note"}
_MOST_REPORTS = 4  # named beside a GPU
_MOST_FINDINGS = 3  # told of a kernel, beside its verdict, where it is brief
_INDENT = "    "


class ReportAdvice(NamedTuple):
    """The advice on one report, the launches that were asked for, and rule files that could not be used.

    ``notes``: what the rules did not get, since it can't be.
    """

    report: str
    ncu_version: str
    measurements: Measurements
    kernels: tuple[KernelAdvice, ...]
    problems: tuple[RuleProblem, ...]
    notes: tuple[str, ...] = ()


class Silence(NamedTuple):
    """What a rule could not tell, and of how many launches; ``alone``: of which it told nothing else."""

    rule: str
    text: str
    launches: int
    alone: bool = True


class Told:
    """Findings, best first (the first ``top`` only, unless 0), all kernels, likewise, and what goes with them.

    ``sentences``: the answer for each GPU, that with most time first.  ``reports``: name and release of Nsight Compute of each
    report.  ``places``: the reports of each GPU.  ``silences``: what rules could not tell of the ``launches`` that they looked
    at.  ``skipped``: reasons why rules did not run, and how many.  ``minor``: findings worth too little; ``left_out``: others
    that are not among the findings.
    """

    def __init__(
        self, reports: Sequence[ReportAdvice], findings: Findings, sentences: Mapping[str, Sequence[str]], top: int = 0
    ) -> None:
        self.found, self.kernels, self.minor = findings.found[: top or None], findings.kernels, findings.left_out
        self.left_out = len(findings.found) - len(self.found)
        if top:
            self.kernels = tuple(one.kernel for one in self.found)
        self.places: dict[str, dict[str, None]] = {device: {} for device in sentences}
        for one in reports:
            for device in one.measurements.device:
                self.places.setdefault(device, {})[one.report] = None
        self.sentences = {device: sentences.get(device, ()) for device in self.places}
        self.reports = [(one.report, one.ncu_version) for one in reports]
        several = len(findings.clocks) > 1
        clocks = [f"{device}: {text}" if several else text for device, texts in findings.clocks.items() for text in texts]
        self.notes = list(dict.fromkeys((*(note for one in reports for note in one.notes), *clocks)))
        advice = [kernel for one in reports for kernel in one.kernels]
        self.launches = len(advice)
        silent: defaultdict[tuple[str, str, bool], Counter[str]] = defaultdict(Counter)  # once, whatever numbers are in it
        skipped: defaultdict[str, set[str]] = defaultdict(set)
        for outcome in (outcome for kernel in advice for outcome in kernel.outcomes):
            if outcome.status == SKIPPED:
                skipped[outcome.reason].add(outcome.identifier)
            texts = [message.text for message in outcome.messages if message.type == SILENT]
            for text in texts:
                silent[outcome.identifier, without_numbers(text), len(texts) == len(outcome.messages)][text] += 1
        self.skipped = {reason: len(skipped[reason]) for reason in sorted(skipped)}
        self.silences = [
            Silence(rule, spoken_of(tuple(texts))[0], texts.total(), alone) for (rule, _, alone), texts in silent.items()
        ]


def as_json(told: Told) -> str:
    """The advice as one strict JSON document.

    The keys: ``schema``, ``schema_version``; ``reports``: each with report and ncu_version; ``gpus``: each with device and
    sentences; ``findings``, what could save most time first; ``without_advice``: each with rule, text and launches (a number);
    ``notes``, such as that on clocks; ``left_out``: the numbers of findings that are worth too little (minor) and of other
    findings (notes and texts are always 0).

    A finding has what `Finding` has, null for what is unknown; ``kernel`` is its short name, ``name`` the full one,
    ``launches`` have report and launch (position in the report), ``count`` is their number.
    """
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "reports": [{"report": report, "ncu_version": release} for report, release in told.reports],
        "gpus": [{"device": device, "sentences": list(said)} for device, said in told.sentences.items()],
        "findings": [one.row() for one in told.found],
        "without_advice": [{"rule": one.rule, "text": one.text, "launches": one.launches} for one in told.silences],
        "notes": [*told.notes, *(f"{count} rules did not run: {reason}" for reason, count in told.skipped.items())],
        "left_out": {"minor": told.minor, "findings": told.left_out, "notes": 0, "texts": 0},
    }
    return json.dumps(document, allow_nan=False, indent=2)


def as_text(told: Told, width: int, *, brief: bool = False, whole: bool = False) -> str:
    """The advice in lines of at most ``width`` characters, but for longer words.

    ``brief``: of a kernel its verdict, and a line for each of the findings that could save most.  ``whole``: in full also what
    is fine, and what rules could not tell.
    """
    blocks = [block for device in told.sentences for block in _gpu(told, device, width, brief, whole)]
    for text, *details in _remarks(told, brief, whole):
        blocks.append([*_lines(text, width), *wrapped(details, width, "  ", first="  ", whole=True)])
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def _gpu(told: Told, device: str, width: int, brief: bool, whole: bool) -> Iterator[list[str]]:
    """The head of a GPU, and a block for each of its kernels."""
    places = told.places[device]
    releases = dict.fromkeys(release or "of unknown release" for report, release in told.reports if report in places)
    head = (device or "no GPU named", listed(places, _MOST_REPORTS), f"Nsight Compute {listed(releases, _MOST_REPORTS)}")
    found = _by_kernel(one for one in told.found if one.kernel.device == device)
    silent = [one for one in told.kernels if one.device == device and one.reason and one.share >= WORTH and one not in found]
    sentences = [*told.sentences[device][:1], *([] if found or silent or told.left_out else ["Nothing to say."])]
    yield [line for text in (" \N{MIDDLE DOT} ".join(head), *sentences) for line in _lines(text, width)]
    several, notes = len(places) > 1, set[tuple[str, str]]()
    for kernel, own in found.items():
        which = f"{kernel.launches} launches" if kernel.launches > 1 else _launch(own[0], several)
        name = f"{fitted(kernel.name, width - len(which) - 4)} ({which})"
        yield _short(kernel, name, own, width) if brief else _in_full(kernel, name, own, width, whole, several, notes)
        notes |= {(one.rule, one.title) for one in own if one.type == NOTE}
    for kernel in silent:
        which = f" ({kernel.launches} launches)" if kernel.launches > 1 else ""
        name = f"{fitted(kernel.name, width - len(which) - 4)}{which}"
        yield _lines(f"{name}: {_time(kernel)}: {kernel.reason}.", width, _INDENT)


def _in_full(
    kernel: Kernel,
    name: str,
    found: Sequence[Finding],
    width: int,
    whole: bool,
    several: bool,
    notes: Collection[tuple[str, str]],
) -> list[str]:
    """A kernel with its findings; of ``notes`` (rule and title) that others have in full, the first sentence is enough."""
    full = [one for one in found if whole or one.type != FINE or one.rule == VERDICT]
    lines = _lines(f"{name}: {_time(kernel)}; {_headroom(kernel)}", width, _INDENT)
    for one in sorted(full, key=lambda one: one.rule != VERDICT):
        launches, facts, text = len(set(one.launches)), [one.rule], one.text
        if one.recoverable > 0 and kernel.seconds > 0 and (one.rule, one.recoverable) != (VERDICT, kernel.recoverable):
            facts.append(f"about {as_percent(one.recoverable / kernel.seconds)} less time, {_seconds(one.recoverable)}")
        if launches < kernel.launches:
            facts.append(f"{launches} of {kernel.launches} launches")
        if not whole and (one.rule, one.title) in notes:
            first, stop, _ = text.partition(". ")
            text = f"{first}{stop.rstrip()}"
        if one.spoken == LONGEST and text:
            which = "its longest launch" if launches == kernel.launches else "the longest of these"
            text = f"In {which} ({_launch(one, several).removeprefix('launch ')}): {text}"
        head = f"{_TYPES.get(one.type, one.type)}: {one.title} [{'; '.join(facts)}]"
        lines += _lines(head, width, _INDENT, first="  ")
        lines += wrapped(text.split("\n"), width, _INDENT, first=_INDENT, whole=True)  # rules write lists
    fine = [one.title for one in found if one not in full]
    return lines + (_lines(f"fine: {'; '.join(fine)}", width, _INDENT, first="  ") if fine else [])


def _short(kernel: Kernel, name: str, found: Sequence[Finding], width: int) -> list[str]:
    """A kernel with its verdict, and a line for each of the findings that could save most."""
    said = f"{kernel.reason}." if kernel.reason else _headroom(kernel)
    lines = _lines(f"{name}: {_time(kernel)}: {said}", width, _INDENT)
    for one in _worth_a_line(found)[:_MOST_FINDINGS]:
        gain = ""
        if one.rule == VERDICT:
            gain = f", {len(set(one.launches))} of {kernel.launches} launches"
        elif one.recoverable > 0 and kernel.seconds > 0:
            gain = f": about {as_percent(one.recoverable / kernel.seconds)} less time"
        text, *more = _lines(f"{one.title}{gain}: {one.text}", width - len(" ..."), first="  ")
        lines.append(f"{text} ..." if more else text)
    return lines


def _worth_a_line(found: Sequence[Finding]) -> list[Finding]:
    """Findings of a kernel beside its verdict, those that promise most first."""
    first = next((one for one in found if one.rule == VERDICT), None)
    return sorted(
        (one for one in found if one is not first and one.type != FINE),
        key=lambda one: (one.type == NOTE, one.rule == VERDICT, -one.recoverable if one.recoverable > 0 else 0.0),
    )


def _launch(finding: Finding, several: bool) -> str:
    """The longest launch of a finding, with its report where there are several."""
    report, number = finding.launches[0]
    return f"launch {number} of {report}" if several else f"launch {number}"


def _by_kernel(found: Iterable[Finding]) -> dict[Kernel, list[Finding]]:
    """Findings of one kernel each, kernels in their order."""
    kernels: defaultdict[Kernel, list[Finding]] = defaultdict(list)
    for one in found:
        kernels[one.kernel].append(one)
    return {kernel: kernels[kernel] for kernel in sorted(kernels, key=lambda kernel: kernel.order)}


def _time(kernel: Kernel) -> str:
    """What share of the time it takes, and how long that is."""
    if not math.isfinite(kernel.seconds):
        return "its run time is not known"
    share = f"{as_percent(kernel.share)} of the time, " if kernel.share < 1 else ""
    return f"{share}{_seconds(kernel.seconds)}"


def _headroom(kernel: Kernel) -> str:
    """What could be saved of its time."""
    if not math.isfinite(kernel.recoverable):
        return kernel.reason or "its headroom is not known"
    return f"{as_times(kernel.speedup)} at its present traffic and instructions, {_seconds(kernel.recoverable)} less"


def _seconds(value: float) -> str:
    return format_value(value, "second", 3)


def _lines(text: str, width: int, indent: str = "", *, first: str = "") -> list[str]:
    return wrapped(text, width, indent, first=first, whole=True)


def _remarks(told: Told, brief: bool, whole: bool) -> Iterator[Sequence[str]]:
    """What rules could not say, once for all launches, which did not run, what they did not get, and what is left out."""
    if brief and told.found:
        more = sum(len(_worth_a_line(own)[_MOST_FINDINGS:]) for own in _by_kernel(told.found).values())
        which = f"{more:,} more finding{'' if more == 1 else 's'}, and all" if more else "all findings"
        yield (f"--verbose shows {which} in full.",)
    elif told.silences and whole:
        full = [f"{one.rule} ({one.launches} of {told.launches} launches): {one.text}" for one in told.silences]
        yield "What rules could not tell:", *full
    else:
        silent: Counter[str] = Counter()  # by rule, launches of which it told nothing
        for one in told.silences:
            silent[one.rule] += one.launches if one.alone else 0
        rules = [
            rule if count >= told.launches else f"{rule} ({count} of {told.launches} launches)"
            for rule, count in silent.items()
            if count
        ]
        if rules:
            yield (f"Without advice: {', '.join(rules)}. --all-findings shows why.",)
    if told.skipped:
        count = sum(told.skipped.values())
        which = f"{count} rule{' did' if count == 1 else 's did'} not run: {'; '.join(told.skipped)}."
        yield (f"{which} --all-rules runs those of other sections as well.",)
    yield from ((f"{note[0].upper()}{note[1:].removesuffix('.')}.",) for note in told.notes)
    left_out = f"{told.left_out:,} finding{'' if told.left_out == 1 else 's'} left out" if told.left_out else ""
    if told.minor:
        alone = f"{told.minor:,} finding{' is' if told.minor == 1 else 's are'} left out,"
        which = f"{left_out}, and {told.minor:,}" if left_out else alone
        yield (f"{which} worth less than {as_percent(WORTH)} of the run time each: --all-findings shows them.",)
    elif left_out:
        yield (f"{left_out}.",)
