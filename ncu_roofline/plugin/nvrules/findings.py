"""What rules say of all launches together: one finding per kernel, rule and title, what could save most time first.

As data, as text and as JSON: the answer for each GPU, findings, and what is left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.base.texts import listed, plural
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.verdict import as_percent, as_times
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import RuleMessage
from ncu_roofline.model import Measurements, Roofline, roofline
from ncu_roofline.model.measurements import IntArray
from ncu_roofline.model.selection import WORTH, at_stake, group, rank, time_by_gpu
from ncu_roofline.plugin.nvrules.runner import OURS, SKIPPED, KernelAdvice, plain_text
from ncu_roofline.rendering.table import fitted, wrapped

VERDICT, CLOCKS = f"{OURS}Verdict", f"{OURS}Clocks"
"""The rule whose finding stands for all that a kernel could save, and that on clocks, which are those of a report."""
ADVICE, NOTE, FINE, SILENT = "optimization", "warning", "ok", "none"
_SEVERITY = ("error", ADVICE, NOTE, FINE, SILENT)  # types of messages, what matters most first
RANGES, LONGEST = "ranges", "longest launch"
# A number of a sentence, with its sign, but no digits of a name: 7.4, 1,024, 1e-05, not FP64.
_NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)")
_ID = 12  # characters: one pair alike in a million among a hundred thousand findings
SCHEMA, SCHEMA_VERSION = "ncu-roofline-advice", 1
_TYPES = {ADVICE: "try", NOTE: "note"}
_MOST_REPORTS = 4  # named beside a GPU
_MOST_FINDINGS = 3  # told of a kernel, beside its verdict, where it is brief
_INDENT = "    "

Launch = tuple[str, int]
"""Name of the report, position in it."""


class Kernel(NamedTuple):
    """A kernel on one GPU model with all its launches; NaN where unknown.

    ``name`` is short and unique among the kernels.  ``seconds``: of all launches; ``share``: of the time of all launches on
    this GPU; ``speedup``: its headroom at its present traffic and instructions (a ratio); ``recoverable``: that in seconds;
    ``reason``: the sentence of its verdict.
    """

    name: str
    full_name: str
    device: str
    launches: int
    seconds: float
    share: float
    speedup: float
    recoverable: float
    reason: str = ""

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts as `rank` does."""
        return (*rank(self.seconds, self.recoverable, self.share), self.device, self.name)


class Finding(NamedTuple):
    """What a rule says of a kernel under one title; NaN where unknown.

    ``id`` is the same for the same kernel, rule and title in any report, whatever numbers are in the title; on each GPU it is
    there once.  ``title`` and ``text`` are plain; ``spoken`` says whose numbers they hold: RANGES where the launches say the
    same but for numbers, LONGEST where the longest launch speaks for others, "" where all say the same.  ``launches`` are those
    that it was said of, the longest first.  ``seconds``: of these launches (where rules ran on some only, those stand for all);
    ``share``: of the time of all launches on this GPU.  ``recoverable``: seconds that the rule promises to save; for the
    verdict all that these launches could save.  ``speedup``: what that makes of them, seconds / (seconds - recoverable).
    """

    id: str
    kernel: Kernel
    rule: str
    rule_name: str
    type: str
    title: str
    text: str
    spoken: str
    launches: tuple[Launch, ...]
    seconds: float
    share: float
    recoverable: float

    @property
    def speedup(self) -> float:
        return self.seconds / (self.seconds - self.recoverable) if self.seconds > self.recoverable else math.nan

    def row(self) -> dict[str, Any]:
        """As JSON has it: None for what is unknown."""
        numbers = {name: getattr(self, name) for name in ("seconds", "share", "recoverable", "speedup")}
        return {
            "id": self.id,
            "device": self.kernel.device,
            "kernel": self.kernel.name,
            "name": self.kernel.full_name,
            **{name: getattr(self, name) for name in ("rule", "type", "title", "text", "spoken")},
            "count": len(self.launches),
            "launches": [{"report": report, "launch": launch} for report, launch in self.launches],
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
        }

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts what could save most to the front, kernel by kernel where that is the same.

        A hint without a number is about its launches' part of the seconds that its kernel is ranked by: those that could be
        saved, its whole time where nobody knows.
        """
        kernel, weight = self.kernel, self.recoverable
        if not math.isfinite(weight):
            stake = at_stake(kernel.seconds, kernel.recoverable) if math.isfinite(kernel.seconds) else -1.0
            about_kernel = self.type == ADVICE or self.rule == VERDICT
            part = self.seconds / kernel.seconds if about_kernel and kernel.seconds > 0 else 0.0
            weight = stake * part if stake > 0 and part > 0 else min(0.0, stake)
        untimed, small, *others = kernel.order
        share = -self.share if math.isfinite(self.share) else 0.0
        same = (self.rule != VERDICT, _severity(self.type), share, self.rule, self.title, self.id)
        return (untimed, small, -weight, *others, *same)


class Findings(NamedTuple):
    """All findings worth telling, best first; all kernels, likewise; their roofline, a row each; how many were not worth it.

    ``clocks``: by GPU what is to be known of the clocks that its launches ran at, which is no finding of a kernel.
    """

    found: tuple[Finding, ...]
    kernels: tuple[Kernel, ...]
    roofline: Roofline
    left_out: int
    clocks: Mapping[str, Sequence[str]]


class _Said(NamedTuple):
    """A message on one launch; ``seconds`` of the launch, NaN if unknown."""

    launch: Launch
    seconds: float
    message: RuleMessage

    @property
    def promised(self) -> float:
        """Seconds that the message promises to save, NaN if it doesn't."""
        percent = self.message.speedup if self.message.speedup_type == "global" else None
        known = percent is not None and percent <= 100 and self.seconds > 0  # rules of others may promise more than there is
        return self.seconds * (percent or 0.0) / 100 if known else math.nan

    def worth(self, rule: str) -> float:
        """Seconds: of the launch, or what is promised; without end where that is unknown.  A verdict is about all of it."""
        if not self.seconds > 0 or (self.message.type == "error" and rule != VERDICT):
            return math.inf
        return self.promised if rule != VERDICT and math.isfinite(self.promised) else self.seconds


def findings(
    advice: Iterable[KernelAdvice], measurements: Measurements, ceilings: Sequence[Ceilings] = (), *, share: float = WORTH
) -> Findings:
    """The findings of advice on some or all launches of ``measurements``; advice on other launches is passed over.

    Left out is what is worth less than ``share`` of the run time of all launches on its GPU: a finding is worth the time that
    it concerns, or the part of it that it promises to save.  What has no time, and errors of rules, stay.
    """
    whole = roofline(measurements, ceilings, by="kernel")
    places = zip(measurements.report.tolist(), measurements.launch.tolist(), strict=True)
    rows: dict[Launch, int] = dict(zip(places, group(measurements, "kernel").index.tolist(), strict=True))
    names = ("device", "seconds", "kernel", "name", "launches", "speedup", "recoverable", "reason")
    columns, kernels = [whole.kernel_columns[name].tolist() for name in names], list[Kernel]()
    totals = time_by_gpu(zip(*columns[:2], strict=True))

    def part_of(seconds: float, device: str) -> float:
        return seconds / totals[device] if totals[device] > 0 else math.nan

    for device, seconds, name, full, launches, speedup, recoverable, reason in zip(*columns, strict=True):
        known = speedup if math.isfinite(recoverable) else math.nan
        own = (launches, seconds, part_of(seconds, device), known, recoverable, reason)
        kernels.append(Kernel(name, full or name, device, *own))
    # Of kernels, by row: how many launches there is advice on, and their seconds.
    advised, advised_seconds = Counter[int](), defaultdict[int, float](float)
    # By row of the kernel, identifier and name of the rule, title without numbers, which message of that title on a launch.
    groups: defaultdict[tuple[int, str, str, str, int], list[_Said]] = defaultdict(list)
    for one in advice:
        row = rows.get((one.report, one.launch))
        if row is None:
            continue
        advised[row] += 1
        advised_seconds[row] += one.seconds if one.seconds > 0 else 0.0
        for outcome in one.outcomes:
            times: Counter[str] = Counter()
            for message in (message for message in outcome.messages if message.type != SILENT):
                title = without_numbers(message.title or outcome.name)
                key = (row, outcome.identifier, outcome.name, title, times[title])
                times[title] += 1
                groups[key].append(_Said((one.report, one.launch), one.seconds, message))

    @cache
    def gains() -> dict[Launch, float]:
        """Seconds that each launch could save, NaN where unknown."""
        columns = roofline(measurements, ceilings, by="launch").kernel_columns
        launches = zip(columns["report"].tolist(), columns["launch"].tolist(), strict=True)
        return dict(zip(launches, columns["recoverable"].tolist(), strict=True))

    kept, clocks, left_out = list[Finding](), defaultdict[str, list[str]](list), 0
    of_clocks: defaultdict[tuple[str, str], list[_Said]] = defaultdict(list)  # by GPU and title
    for (row, rule, rule_name, like, number), said in groups.items():
        # By how much longer all launches of a kernel took than those with advice.
        kernel, factor = kernels[row], kernels[row].seconds / advised_seconds[row] if advised_seconds[row] > 0 else 1.0
        if sum(one.worth(rule) for one in said) * factor < share * totals[kernel.device]:
            left_out += 1
            continue
        said = _longest_first(said)
        if rule == CLOCKS and said[0].message.type == NOTE:
            of_clocks[kernel.device, like] += said
            continue
        first = min((one.message for one in said), key=lambda message: _severity(message.type))
        title, _ = spoken_of([one.message.title or rule_name for one in said], first.title or rule_name)
        text, spoken = spoken_of([one.message.text for one in said], first.text)
        seconds = sum(one.seconds for one in said) * factor
        promised = [one.promised for one in said if math.isfinite(one.promised)]
        recoverable = sum(promised) * factor if promised else math.nan
        if rule == VERDICT:  # as the kernel's row says if these are all its launches, else what each could save
            all_of_it = len(said) == advised[row]
            recoverable = kernel.recoverable if all_of_it else sum(gains()[one.launch] for one in said) * factor
        known_by = "\0".join([kernel.full_name, rule, like, *([str(number)] if number else [])])
        identifier = hashlib.sha256(known_by.encode("utf-8", "replace")).hexdigest()[:_ID]
        words = (rule, rule_name, first.type, title, text, spoken, tuple(one.launch for one in said))
        kept.append(Finding(identifier, kernel, *words, seconds, part_of(seconds, kernel.device), recoverable))
    for (device, _), said in of_clocks.items():
        text, spoken = spoken_of([one.message.text for one in _longest_first(said)])
        clocks[device].append(f"In the longest launch: {text}" if spoken == LONGEST else text)
    found = tuple(sorted(kept, key=lambda one: one.order))
    return Findings(found, tuple(sorted(kernels, key=lambda kernel: kernel.order)), whole, left_out, clocks)


def most_telling(measurements: Measurements, most: int) -> IntArray:
    """Positions of the ``most`` launches to look at: the longest of each kernel, of those with most time, then the others."""
    seconds = np.nan_to_num(measurements.seconds)
    kernels = group(measurements, "kernel")
    order = np.argsort(-seconds, kind="stable")
    longest = order[np.unique(kernels.index[order], return_index=True)[1]]  # of each kernel
    longest = longest[np.argsort(-kernels.total(seconds), kind="stable")]
    chosen: IntArray = np.concatenate([longest, order[~np.isin(order, longest)]])[:most]
    return np.sort(chosen)


def _severity(kind: str) -> int:
    return _SEVERITY.index(kind) if kind in _SEVERITY else len(_SEVERITY)


def _longest_first(said: Iterable[_Said]) -> list[_Said]:
    return sorted(said, key=lambda one: (-one.seconds if one.seconds > 0 else 0.0, one.launch))


@lru_cache(maxsize=4096)
def without_numbers(title: str) -> str:
    """What titles that differ in numbers share."""
    return _NUMBER.sub("#", plain_text(title))


def spoken_of(texts: Sequence[str], first: str = "") -> tuple[str, str]:
    """One text for several, plain, and whose numbers it holds (see `Finding`); that of ``first`` where they differ."""
    first, different = first or texts[0], list(dict.fromkeys(texts))
    if len(different) == 1:
        return plain_text(first), ""
    pieces = [_NUMBER.split(plain_text(text)) for text in different]
    words = pieces[0][::2]
    if any(one[::2] != words for one in pieces):
        return plain_text(first), LONGEST
    ranges = []
    for numbers in zip(*(one[1::2] for one in pieces), strict=True):
        values = sorted(dict.fromkeys(numbers), key=lambda number: float(number.replace(",", "")))
        ranges.append(values[0] if len(values) == 1 else f"{values[0]}\N{EN DASH}{values[-1]}")
    return "".join(part for pair in zip_longest(words, ranges, fillvalue="") for part in pair), RANGES


def advice_rows(found: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings for a page, in their order, each a dict of plain values.

    kernel (short name), device, id, rule (its name), type, title, text; launches: a number; share: a ratio; recoverable:
    seconds; speedup: a ratio; the last three None where unknown.
    """
    shown = ("id", "kernel", "device", "type", "title", "text", "share", "recoverable", "speedup")
    rows = [(one, one.row()) for one in found]
    return [{name: row[name] for name in shown} | {"rule": one.rule_name, "launches": row["count"]} for one, row in rows]


# What is told.


class ReportAdvice(NamedTuple):
    """The advice on one report, and the launches asked for; ``notes``: what the rules did not get, since it can't be."""

    report: str
    ncu_version: str
    measurements: Measurements
    kernels: tuple[KernelAdvice, ...]
    notes: tuple[str, ...] = ()


class Silence(NamedTuple):
    """What a rule could not tell, and of how many launches; ``alone``: of which it told nothing else."""

    rule: str
    text: str
    launches: int
    alone: bool = True


class Told:
    """Findings, best first (the first ``top`` only, unless 0), all kernels, likewise, and what goes with them.

    ``sentences``: the answer for each GPU, that with most time first.  ``places``: the reports of each GPU.  ``silences``: what
    rules could not tell of the ``launches`` that they looked at.  ``skipped``: reasons why rules did not run, and how many.
    ``minor``: findings worth too little; ``left_out``: others that are not among the findings.
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
    sentences; ``findings`` (`Finding.row`), what could save most time first; ``without_advice``: each with rule, text and
    launches (a number); ``notes``, such as that on clocks; ``left_out``: the numbers of findings that are worth too little
    (minor) and of other findings (notes and texts are always 0).
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

    def lines(text: str, indent: str = "", first: str = "") -> list[str]:
        return wrapped(text, width, indent, first=first, whole=True)

    blocks = list[list[str]]()
    for device, places in told.places.items():
        releases = dict.fromkeys(release or "of unknown release" for report, release in told.reports if report in places)
        head = (device or "no GPU named", listed(places, _MOST_REPORTS), f"Nsight Compute {listed(releases, _MOST_REPORTS)}")
        found = _by_kernel(one for one in told.found if one.kernel.device == device)
        rest = [one for one in told.kernels if one.device == device and one.reason and one.share >= WORTH and one not in found]
        sentences = [*told.sentences[device][:1], *([] if found or rest or told.left_out else ["No findings."])]
        blocks.append([line for text in (" \N{MIDDLE DOT} ".join(head), *sentences) for line in lines(text)])
        for kernel in (*found, *rest):
            own = found.get(kernel, [])
            which = f"{kernel.launches} launches" if kernel.launches > 1 else _launch(own[0], len(places) > 1) if own else ""
            which = which and f" ({which})"
            share = f"{as_percent(kernel.share)} of the time, " if kernel.share < 1 else ""
            time = f"{share}{_seconds(kernel.seconds)}" if math.isfinite(kernel.seconds) else "its run time is not known"
            headroom = kernel.reason or "its headroom is not known"
            if math.isfinite(kernel.recoverable):
                less = f"{_seconds(kernel.recoverable)} less"
                headroom = f"headroom {as_times(kernel.speedup)} at its present traffic and instructions, {less}"
            in_full, reason = bool(own) and not brief, f"{kernel.reason}." if kernel.reason else headroom
            about = f"{time}; {headroom}" if in_full else f"{time}: {reason}"
            block = lines(f"{fitted(kernel.name, width - len(which) - 1)}{which}: {about}", _INDENT)
            if in_full:
                for head_line, text in _in_full(kernel, own, whole, len(places) > 1):
                    block += lines(head_line, _INDENT, "  ")
                    block += wrapped(text.split("\n"), width, _INDENT, first=_INDENT, whole=True)  # rules write lists
                fine = [one.title for one in own if one.type == FINE and one.rule != VERDICT and not whole]
                block += lines(f"fine: {'; '.join(fine)}", _INDENT, "  ") if fine else []
            for one in _worth_a_line(own)[:_MOST_FINDINGS] if brief else ():
                gain = ""
                if one.rule == VERDICT:
                    gain = f", {len(set(one.launches))} of {kernel.launches} launches"
                elif one.recoverable > 0 and kernel.seconds > 0:
                    gain = f": about {as_percent(one.recoverable / kernel.seconds)} less time"
                text, *more = wrapped(f"{one.title}{gain}: {one.text}", width - len(" ..."), first="  ", whole=True)
                block.append(f"{text} ..." if more else text)
            blocks.append(block)
    for text, *details in _remarks(told, brief, whole):
        blocks.append([*lines(text), *wrapped(details, width, "  ", first="  ", whole=True)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _in_full(kernel: Kernel, found: Sequence[Finding], whole: bool, several: bool) -> Iterator[tuple[str, str]]:
    """Head and text of each finding of a kernel, its verdict first; of what is fine only the ``whole``."""
    full = [one for one in found if whole or one.type != FINE or one.rule == VERDICT]
    for one in sorted(full, key=lambda one: one.rule != VERDICT):
        launches, facts, text = len(set(one.launches)), [one.rule], one.text
        if one.recoverable > 0 and kernel.seconds > 0 and (one.rule, one.recoverable) != (VERDICT, kernel.recoverable):
            facts.append(f"about {as_percent(one.recoverable / kernel.seconds)} less time, {_seconds(one.recoverable)}")
        if launches < kernel.launches:
            facts.append(f"{launches} of {kernel.launches} launches")
        if one.spoken == LONGEST and text:
            which = "its longest launch" if launches == kernel.launches else "the longest of these"
            text = f"In {which} ({_launch(one, several).removeprefix('launch ')}): {text}"
        yield f"{_TYPES.get(one.type, one.type)}: {one.title} [{'; '.join(facts)}]", text


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


def _seconds(value: float) -> str:
    return format_value(value, "second", 3)


def _remarks(told: Told, brief: bool, whole: bool) -> Iterator[Sequence[str]]:
    """What rules could not say, once for all launches, which did not run, what they did not get, and what is left out."""
    if brief and told.found:
        more = sum(len(_worth_a_line(own)[_MOST_FINDINGS:]) for own in _by_kernel(told.found).values())
        which = f"{plural(more, 'more finding')}, and all" if more else "all findings"
        yield (f"--verbose shows {which} in full.",)
    elif told.silences and whole:
        full = [f"{one.rule} ({one.launches} of {told.launches} launches): {one.text}" for one in told.silences]
        yield "What rules could not determine:", *full
    elif rules := dict.fromkeys(one.rule for one in told.silences if one.alone):
        yield (f"Without advice: {', '.join(rules)}. --all-findings shows why.",)
    if told.skipped:
        which = f"{plural(sum(told.skipped.values()), 'rule')} did not run: {'; '.join(told.skipped)}."
        yield (f"{which} --all-rules runs those of other sections as well.",)
    yield from ((f"{note[0].upper()}{note[1:].removesuffix('.')}.",) for note in told.notes)
    left_out = f"{plural(told.left_out, 'finding')} left out" if told.left_out else ""
    if told.minor:
        which = f"{left_out}, and {told.minor:,}" if left_out else f"{plural(told.minor, 'finding')} left out,"
        yield (f"{which} worth less than {as_percent(WORTH)} of the run time each: --all-findings shows them.",)
    elif left_out:
        yield (f"{left_out}.",)
