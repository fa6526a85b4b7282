"""What a rule said about a kernel when it ran offline."""

from __future__ import annotations

from dataclasses import dataclass

from ncu_roofline.report import RuleMessage, RuleResult, Value

DONE = "done"
ERROR = "error"
SKIPPED = "skipped"


@dataclass(frozen=True)
class RuleTable:
    """A table that a rule attached to a message; ``rows`` hold int, float or str."""

    message_id: int
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class RuleOutcome:
    """One rule on one kernel.

    ``status`` is "done", "error" (its last message says which) or "skipped" (``reason`` says why it was not run, as Nsight
    Compute would not have run it).  ``markers`` counts source markers, ``charts`` and ``proposals`` name what the rule asked
    for, ``added`` has the metrics it put into the report.
    """

    identifier: str
    name: str
    section: str
    path: str
    status: str = DONE
    reason: str = ""
    messages: tuple[RuleMessage, ...] = ()
    tables: tuple[RuleTable, ...] = ()
    charts: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    added: tuple[tuple[str, Value], ...] = ()
    markers: int = 0

    def as_result(self) -> RuleResult:
        """The form in which reports store it."""
        return RuleResult(self.identifier, self.name, self.section, self.messages)
