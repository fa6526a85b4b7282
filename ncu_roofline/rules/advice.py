"""Rules on the launches of a report, with the names that charts and tables use for them."""

from __future__ import annotations

import gc
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ncu_roofline.model import Measurements, measurements_of
from ncu_roofline.model.grouping import group
from ncu_roofline.report import Report, RuleMessage
from ncu_roofline.rules.collectable import collectable
from ncu_roofline.rules.lending import Lender
from ncu_roofline.rules.markup import plain_text
from ncu_roofline.rules.outcome import SKIPPED, RuleOutcome
from ncu_roofline.rules.runner import RuleSet

SEVERITY = ("error", "optimization", "warning", "ok", "none")
"""Types of messages, what matters most first."""
WORTH = 0.01
"""What would not change a hundredth of the run time is not worth reading."""
_OBJECTS = 200_000  # new ones between two looks for garbage; Python's default is 700


@dataclass(frozen=True)
class KernelAdvice:
    """What the rules said about one launch; ``kernel`` is its short name, ``seconds`` its run time (NaN if unknown)."""

    report: str
    launch: int
    kernel: str
    name: str
    grid: str
    block: str
    seconds: float
    outcomes: tuple[RuleOutcome, ...]

    def messages(self) -> list[tuple[RuleOutcome, RuleMessage]]:
        """All messages, what matters most first: by type, then by estimated speedup of the whole kernel."""
        found = [(outcome, message) for outcome in self.outcomes for message in outcome.messages]
        return sorted(found, key=lambda pair: _rank(pair[1]))

    def skipped(self) -> tuple[RuleOutcome, ...]:
        """Rules that did not run."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == SKIPPED)


def _rank(message: RuleMessage) -> tuple[int, bool, float]:
    rank = SEVERITY.index(message.type) if message.type in SEVERITY else len(SEVERITY)
    return rank, message.speedup_type != "global", -(message.speedup or 0.0)


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
    gives them back one by one, so it can show how far the work is.  Raises RooflineError for damage.
    """
    m = measurements_of(report) if measurements is None else measurements
    labels = group(m, "launch").label
    lender = Lender(m)

    def advice(row: int) -> KernelAdvice:
        outcomes = rules.run(report.kernels[int(m.launch[row])], collected_only=collected_only, known=lender.of(row))
        return KernelAdvice(
            report=str(m.report[row]),
            launch=int(m.launch[row]),
            kernel=labels[row],
            name=str(m.name[row]),
            grid=str(m.grid[row]),
            block=str(m.block[row]),
            seconds=float(m.seconds[row]),
            outcomes=tuple(collectable(outcome, report.ncu_version) for outcome in outcomes),
        )

    with _rare_collection():
        return tuple([advice(row) for row in watch(range(len(m)))])


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Rules make many small objects that all stay: looking for garbage among them takes a sixth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def worth_telling(
    advice: Sequence[KernelAdvice], whole: Measurements | None = None, share: float = WORTH
) -> tuple[tuple[KernelAdvice, ...], int]:
    """The advice without what is worth less than ``share`` of the run time of all launches, and how many messages less.

    A message is worth the time of all launches of a kernel for which the rule says the same (its title), or the part of it that
    it promises to save.  What has no time, errors of rules and what they could not tell, stays.  ``whole`` holds all launches
    where the advice is on a part of them, the longest for instance: each kernel's launches then stand for all of its own.
    """
    mine = _times((one.name, one.seconds) for one in advice)
    times = mine if whole is None else _times(zip(whole.name.tolist(), whole.seconds.tolist(), strict=True))
    total = math.fsum(times.values())
    worth: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for one, outcome, message in _all_messages(advice):
        stands_for = times[one.name] / mine[one.name] if one.name in mine else 1.0
        worth[one.kernel, outcome.identifier, message.title] += _saved(one, message) * stands_for
    small = {key for key, seconds in worth.items() if seconds < share * total}
    kept = tuple(_without(one, small) for one in advice)
    return kept, sum(1 for _ in _all_messages(advice)) - sum(1 for _ in _all_messages(kept))


def _times(launches: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds of all launches by the kernel's full name, of those that have a time."""
    found: dict[str, float] = {}
    for name, seconds in launches:
        if seconds > 0:
            found[name] = found.get(name, 0.0) + seconds
    return found


def _all_messages(advice: Iterable[KernelAdvice]) -> Iterator[tuple[KernelAdvice, RuleOutcome, RuleMessage]]:
    for one in advice:
        for outcome in one.outcomes:
            for message in outcome.messages:
                yield one, outcome, message


def _saved(one: KernelAdvice, message: RuleMessage) -> float:
    """Seconds: of the launch, or what the message promises of its run time; without end where that is unknown."""
    if not one.seconds > 0 or message.type in ("error", "none"):
        return math.inf
    promised = message.speedup if message.speedup_type == "global" else None
    return one.seconds if promised is None else one.seconds * promised / 100


def _without(one: KernelAdvice, small: Collection[tuple[str, str, str]]) -> KernelAdvice:
    def kept(outcome: RuleOutcome) -> RuleOutcome:
        messages = tuple(m for m in outcome.messages if (one.kernel, outcome.identifier, m.title) not in small)
        return outcome if len(messages) == len(outcome.messages) else replace(outcome, messages=messages)

    return replace(one, outcomes=tuple(map(kept, one.outcomes)))


def advice_rows(advice: Iterable[KernelAdvice]) -> list[dict[str, str]]:
    """Messages as plain text, one dict of kernel, rule, type, title and text each; those without advice ("none") left out."""
    return [
        {
            "kernel": one.kernel,
            "rule": outcome.name,
            "type": message.type,
            "title": message.title,
            "text": plain_text(message.text),
        }
        for one in advice
        for outcome, message in one.messages()
        if message.type != "none"
    ]
