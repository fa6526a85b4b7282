"""Rules on the launches of a report, with the names that charts and tables use for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ncu_roofline.model import Measurements, measurements_of
from ncu_roofline.model.grouping import group
from ncu_roofline.report import Report, RuleMessage
from ncu_roofline.rules.collectable import collectable
from ncu_roofline.rules.markup import plain_text
from ncu_roofline.rules.outcome import SKIPPED, RuleOutcome
from ncu_roofline.rules.runner import RuleSet

SEVERITY = ("error", "optimization", "warning", "ok", "none")
"""Types of messages, what matters most first."""


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
    return tuple(
        KernelAdvice(
            report=str(m.report[row]),
            launch=int(m.launch[row]),
            kernel=labels[row],
            name=str(m.name[row]),
            grid=str(m.grid[row]),
            block=str(m.block[row]),
            seconds=float(m.seconds[row]),
            outcomes=tuple(
                collectable(outcome, report.ncu_version)
                for outcome in rules.run(report.kernels[int(m.launch[row])], collected_only=collected_only)
            ),
        )
        for row in watch(range(len(m)))
    )


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
