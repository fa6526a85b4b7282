"""What rules say of all launches together: one finding per kernel, rule and title, what could save most time first."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import RuleMessage
from ncu_roofline.model import Measurements, Roofline, roofline
from ncu_roofline.model.measurements import IntArray
from ncu_roofline.model.selection import WORTH, at_stake, group, rank, time_by_gpu
from ncu_roofline.plugin.nvrules.advice import OURS, KernelAdvice, plain_text

VERDICT, CLOCKS = f"{OURS}Verdict", f"{OURS}Clocks"
"""The rule whose finding stands for all that a kernel could save, and that on clocks, which are those of a report."""
ADVICE, NOTE, FINE, SILENT = "optimization", "warning", "ok", "none"
_SEVERITY = ("error", ADVICE, NOTE, FINE, SILENT)  # types of messages, what matters most first
RANGES, LONGEST = "ranges", "longest launch"
# A number of a sentence, with its sign, but no digits of a name: 7.4, 1,024, 1e-05, not FP64.
_NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)")
_ID = 12  # characters: one pair alike in a million among a hundred thousand findings

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
    def weight(self) -> float:
        """The seconds that it is ranked by: its whole time where nobody knows what could be saved; -1 without a time."""
        return at_stake(self.seconds, self.recoverable) if math.isfinite(self.seconds) else -1.0

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
    speedup: float
    recoverable: float

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

        A hint without a number is about its launches' part of the kernel's seconds.
        """
        weight = self.recoverable
        if not math.isfinite(weight):
            about_kernel = self.type == ADVICE or self.rule == VERDICT
            part = self.seconds / self.kernel.seconds if about_kernel and self.kernel.seconds > 0 else 0.0
            weight = self.kernel.weight * part if self.kernel.weight > 0 and part > 0 else min(0.0, self.kernel.weight)
        untimed, small, *kernel = self.kernel.order
        share = -self.share if math.isfinite(self.share) else 0.0
        same = (self.rule != VERDICT, _severity(self.type), share, self.rule, self.title, self.id)
        return (untimed, small, -weight, *kernel, *same)


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
        if rule == VERDICT and self.seconds > 0:
            return self.seconds
        if not self.seconds > 0 or self.message.type == "error":
            return math.inf
        return self.promised if math.isfinite(self.promised) else self.seconds


class _Key(NamedTuple):
    """Row of the kernel, identifier and name of the rule, title without numbers, which message of that title on a launch."""

    row: int
    rule: str
    rule_name: str
    title: str
    number: int


def findings(
    advice: Iterable[KernelAdvice], measurements: Measurements, ceilings: Sequence[Ceilings] = (), *, share: float = WORTH
) -> Findings:
    """The findings of advice on some or all launches of ``measurements``; advice on other launches is passed over.

    Left out is what is worth less than ``share`` of the run time of all launches on its GPU: a finding is worth the time that
    it concerns, or the part of it that it promises to save.  What has no time, and errors of rules, stay.
    """
    whole = _Whole(measurements, ceilings, advice)
    groups: defaultdict[_Key, list[_Said]] = defaultdict(list)
    for one in whole.advice:
        launch = (one.report, one.launch)
        for outcome in one.outcomes:
            times: Counter[str] = Counter()
            for message in (message for message in outcome.messages if message.type != SILENT):
                title = without_numbers(message.title or outcome.name)
                key = _Key(whole.rows[launch], outcome.identifier, outcome.name, title, times[title])
                times[title] += 1
                groups[key].append(_Said(launch, one.seconds, message))
    kept, clocks = list[Finding](), defaultdict[str, list[str]](list)
    of_clocks: defaultdict[tuple[str, str], list[_Said]] = defaultdict(list)  # by GPU and title
    left_out = 0
    for key, said in groups.items():
        kernel = whole.kernels[key.row]
        if sum(one.worth(key.rule) for one in said) * whole.stands_for(key.row) < share * whole.totals[kernel.device]:
            left_out += 1
        elif key.rule == CLOCKS and said[0].message.type == NOTE:
            of_clocks[kernel.device, key.title] += said
        else:
            kept.append(whole.finding(key, _longest_first(said)))
    for (device, _), said in of_clocks.items():
        text, spoken = spoken_of([one.message.text for one in _longest_first(said)])
        clocks[device].append(f"In the longest launch: {text}" if spoken == LONGEST else text)
    found = tuple(sorted(kept, key=lambda one: one.order))
    kernels = tuple(sorted(whole.kernels, key=lambda kernel: kernel.order))
    return Findings(found, kernels, whole.roofline, left_out, clocks)


def most_telling(measurements: Measurements, most: int) -> IntArray:
    """Positions of the ``most`` launches to look at: the longest of each kernel, of those with most time, then the others."""
    seconds = np.nan_to_num(measurements.seconds)
    kernels = group(measurements, "kernel")
    order = np.argsort(-seconds, kind="stable")
    longest = order[np.unique(kernels.index[order], return_index=True)[1]]  # of each kernel
    longest = longest[np.argsort(-kernels.total(seconds), kind="stable")]
    chosen: IntArray = np.concatenate([longest, order[~np.isin(order, longest)]])[:most]
    return np.sort(chosen)


class _Whole:
    """All launches by kernel (``rows``), and of which of them there is advice."""

    def __init__(self, measurements: Measurements, ceilings: Sequence[Ceilings], advice: Iterable[KernelAdvice]) -> None:
        self._measurements, self._ceilings = measurements, ceilings
        self.roofline = roofline(measurements, ceilings, by="kernel")
        places = zip(measurements.report.tolist(), measurements.launch.tolist(), strict=True)
        self.rows: dict[Launch, int] = dict(zip(places, group(measurements, "kernel").index.tolist(), strict=True))
        names = ("device", "seconds", "kernel", "name", "launches", "speedup", "recoverable", "reason")
        columns = [self.roofline.kernel_columns[name].tolist() for name in names]
        self.totals = time_by_gpu(zip(*columns[:2], strict=True))
        self.kernels = []
        for device, seconds, name, full, launches, speedup, recoverable, reason in zip(*columns, strict=True):
            known = speedup if math.isfinite(recoverable) else math.nan
            own = (launches, seconds, self._share(seconds, device), known, recoverable, reason)
            self.kernels.append(Kernel(name, full or name, device, *own))
        self.advice = [one for one in advice if (one.report, one.launch) in self.rows]
        self._advised = Counter(self.rows[one.report, one.launch] for one in self.advice)
        self._seconds: defaultdict[int, float] = defaultdict(float)
        for one in self.advice:
            self._seconds[self.rows[one.report, one.launch]] += one.seconds if one.seconds > 0 else 0.0

    def _share(self, seconds: float, device: str) -> float:
        return seconds / self.totals[device] if self.totals[device] > 0 else math.nan

    def stands_for(self, row: int) -> float:
        """By how much longer all launches of a kernel took than those with advice."""
        return self.kernels[row].seconds / self._seconds[row] if self._seconds[row] > 0 else 1.0

    @cached_property
    def _gains(self) -> dict[Launch, float]:
        """Seconds that each launch could save, NaN where unknown."""
        columns = roofline(self._measurements, self._ceilings, by="launch").kernel_columns
        launches = zip(columns["report"].tolist(), columns["launch"].tolist(), strict=True)
        return dict(zip(launches, columns["recoverable"].tolist(), strict=True))

    def finding(self, key: _Key, said: Sequence[_Said]) -> Finding:
        """What was said of launches, the longest first, as one finding."""
        kernel, factor = self.kernels[key.row], self.stands_for(key.row)
        first = min((one.message for one in said), key=lambda message: _severity(message.type))
        title, _ = spoken_of([one.message.title or key.rule_name for one in said], first.title or key.rule_name)
        text, spoken = spoken_of([one.message.text for one in said], first.text)
        seconds = sum(one.seconds for one in said) * factor
        promised = [one.promised for one in said if math.isfinite(one.promised)]
        recoverable = sum(promised) * factor if promised else math.nan
        if key.rule == VERDICT:  # as the kernel's row says if these are all its launches, else what each could save
            all_of_it = len(said) == self._advised[key.row]
            recoverable = kernel.recoverable if all_of_it else sum(self._gains[one.launch] for one in said) * factor
        speedup = seconds / (seconds - recoverable) if seconds > recoverable else math.nan
        known_by = "\0".join([kernel.full_name, key.rule, key.title, *([str(key.number)] if key.number else [])])
        number = hashlib.sha256(known_by.encode("utf-8", "replace")).hexdigest()[:_ID]
        words = (key.rule, key.rule_name, first.type, title, text, spoken, tuple(one.launch for one in said))
        return Finding(number, kernel, *words, seconds, self._share(seconds, kernel.device), speedup, recoverable)


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
