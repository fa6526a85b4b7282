"""What rules import as NvRules: IContext, IFrontend and IController, and what writes down what a rule says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ncu_roofline.formats.report import FocusMetric, RuleMessage, RuleResult, Value
from ncu_roofline.plugin.nvrules import enums
from ncu_roofline.plugin.nvrules.action import IAction, INvtxDomainInfo, INvtxRange, INvtxState, IRange, OneItem
from ncu_roofline.plugin.nvrules.code import ISourceInfo
from ncu_roofline.plugin.nvrules.enums import (
    MarkerKind,
    MsgType,
    Severity,
    SpeedupType,
    message_word,
    old_names,
    severity_word,
    speedup_word,
)
from ncu_roofline.plugin.nvrules.metric import IMetric, IMutableMetric

DONE = "done"
ERROR = "error"
SKIPPED = "skipped"
VERSION = "2025.4.0"
"""The release whose interface this stand-in has; rules may ask for it."""
_MESSAGE_ENUMS = (
    (MsgType, "MsgType_MSG_"),
    (MarkerKind, "MarkerKind_"),
    (Severity, "Severity_SEVERITY_"),
    (SpeedupType, "SpeedupType_"),
)
NAME = "NvRules"


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


@dataclass
class Recorder:
    """What one rule says, as it says it.  ``parents`` are the rules whose words it may hear."""

    identifier: str
    folder: Path
    parents: tuple[str, ...] = ()
    messages: list[RuleMessage] = field(default_factory=list)
    tables: list[RuleTable] = field(default_factory=list)
    charts: list[str] = field(default_factory=list)
    proposals: list[str] = field(default_factory=list)
    required_metrics: list[str] = field(default_factory=list)
    required_rules: list[str] = field(default_factory=list)
    markers: int = 0

    def add(self, kind: str, text: str, title: str = "") -> int:
        """One more message; ids count from 1 as in reports."""
        self.messages.append(RuleMessage(kind, text, title, len(self.messages) + 1))
        return len(self.messages)

    def change(self, message_id: int, **changes: Any) -> bool:
        """Complete a message; false if there is none of that id."""
        if not 1 <= message_id <= len(self.messages):
            return False
        self.messages[message_id - 1] = replace(self.messages[message_id - 1], **changes)
        return True


class IMessageVault:
    """Dictionaries that rules leave for each other, by the rule's identifier."""

    def __init__(self) -> None:
        self._messages: dict[str, dict[str, float]] = {}

    def Put(self, rule_id: str, message: Mapping[str, float]) -> None:  # noqa: N802  (the interface's name)
        """Add to a rule's dictionary."""
        self._messages.setdefault(rule_id, {}).update({str(key): float(value) for key, value in message.items()})

    def Get(self, rule_id: str) -> dict[str, float]:  # noqa: N802  (the interface's name)
        """A copy of a rule's dictionary, empty if it left none."""
        return dict(self._messages.get(rule_id, {}))


class IFrontend:
    """Takes what a rule says."""

    def __init__(self, recorder: Recorder, vault: IMessageVault) -> None:
        self._recorder = recorder
        self._vault = vault

    def message(self, *args: Any, **named: Any) -> int:
        """``(text, name="")`` or ``(type, text, name="")``; returns the message's id."""
        values = list(args)
        kind = values.pop(0) if values and not isinstance(values[0], str) else named.get("type", MsgType.NONE)
        text = values.pop(0) if values else named["str"]
        title = values.pop(0) if values else named.get("name")
        if values or not isinstance(text, str):
            raise TypeError("message takes a type (optional), a text and a name (optional)")
        return self._recorder.add(message_word(kind), text, title or "")

    def focus_metric(self, message_id: int, metric_name: str, metric_value: float, severity: int, info: str) -> bool:
        """Attach a metric to a message."""
        metric = FocusMetric(metric_name, float(metric_value), severity_word(severity), info)
        known = 1 <= message_id <= len(self._recorder.messages)
        focus = self._recorder.messages[message_id - 1].focus if known else ()
        return self._recorder.change(message_id, focus=(*focus, metric))

    def speedup(self, message_id: int, type: int, estimated_speedup: float) -> bool:  # noqa: A002  (the interface's name)
        """Attach an estimated speedup in percent to a message."""
        return self._recorder.change(message_id, speedup=float(estimated_speedup), speedup_type=speedup_word(type))

    def source_marker(self, *_args: Any, **_named: Any) -> None:
        """Counted only: there is no source page here."""
        self._recorder.markers += 1

    def load_chart_from_file(self, filename: str) -> None:
        """Noted by name; a file that is not there becomes an error message."""
        if (self._recorder.folder / filename).is_file():
            self._recorder.charts.append(filename)
        else:
            self._recorder.add("error", f"The chart file {filename} could not be loaded")

    def generate_table(
        self, message_id: int, header: Sequence[str], data: Sequence[Sequence[Any]], config: Mapping[str, Any] | None = None
    ) -> None:
        """Attach a table, row by row, to a message.  Raises ValueError and TypeError for one that is no rectangle or mixed."""
        for row in data:
            if len(row) != len(header):
                raise ValueError(f"a row of {len(row)} values in a table of {len(header)} columns")
        for column in zip(*data, strict=True):
            if len({type(value) for value in column}) > 1:
                raise TypeError("a column of a table holds values of several types")
        rows = tuple(tuple(v if isinstance(v, (int, float, str)) else str(v) for v in row) for row in data)
        title = str((config or {}).get("title", ""))
        self._recorder.tables.append(RuleTable(message_id, tuple(map(str, header)), rows, title))

    def send_dict_to_children(self, dict: Mapping[str, float]) -> None:  # noqa: A002  (the interface's name)
        """Leave numbers for the rules that name this one as parent."""
        self._vault.Put(self._recorder.identifier, dict)

    def receive_dict_from_parent(self, parent_id: str) -> dict[str, float]:
        """The numbers that a parent left, none if it is no parent or did not run."""
        return self._vault.Get(parent_id) if parent_id in self._recorder.parents else {}


for _enum, _prefix in _MESSAGE_ENUMS:
    for _name, _member in old_names(_enum, _prefix).items():
        setattr(IFrontend, _name, _member)


class IController:
    """The rule's way to other rules."""

    def __init__(self, recorder: Recorder, vault: IMessageVault) -> None:
        self._recorder = recorder
        self._vault = vault

    def propose_rule(self, rule: str) -> None:
        """Noted."""
        self._recorder.proposals.append(rule)

    def get_message_vault(self) -> IMessageVault:
        """The dictionaries of all rules of this kernel."""
        return self._vault


class IEvaluator:
    """What a rule needs, said before it runs."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def require_metric(self, metric: str) -> None:
        """Noted; without the metric the rule is not run."""
        self._recorder.required_metrics.append(metric)

    def require_rule(self, rule: str) -> None:
        """Noted; without the rule this one is not run."""
        self._recorder.required_rules.append(rule)


class IContext(OneItem):
    """What a rule gets as handle: one range with one action."""

    def __init__(self, action: IAction, recorder: Recorder, vault: IMessageVault) -> None:
        super().__init__(IRange(action))
        self._frontend = IFrontend(recorder, vault)
        self._controller = IController(recorder, vault)
        self.evaluator = IEvaluator(recorder)

    def num_ranges(self) -> int:
        """One."""
        return 1

    def range_by_idx(self, idx: int) -> IRange | None:
        """The range for index 0, else None."""
        return self._item if idx == 0 else None

    def frontend(self) -> IFrontend:
        """Where messages go."""
        return self._frontend

    def controller(self) -> IController:
        """Where proposals go."""
        return self._controller

    def get_version(self) -> str:
        """The release that this stand-in resembles."""
        return VERSION

    def handle_exception(self, msg: str) -> bool:
        """Raise it."""
        raise SystemError(msg)


_CLASSES = (
    IAction,
    IContext,
    IController,
    IEvaluator,
    IFrontend,
    IMessageVault,
    IMetric,
    IMutableMetric,
    INvtxDomainInfo,
    INvtxRange,
    INvtxState,
    IRange,
    ISourceInfo,
    enums.MarkerKind,
    enums.MsgType,
)


def get_context(h: IContext) -> IContext:
    """The context behind a handle."""
    return h


def get_evaluator(h: IContext) -> IEvaluator:
    """The evaluator behind a handle."""
    return h.evaluator


def get_version(_h: IContext) -> str:
    """The release that this stand-in resembles."""
    return VERSION


def raise_exception(_h: IContext, msg: str) -> None:
    """What a rule sees in ncu when it calls this: SystemError."""
    raise SystemError(msg)


def require_metrics(handle: IContext, metrics: Iterable[str]) -> None:
    """The rule needs all of these."""
    for metric in metrics:
        get_evaluator(handle).require_metric(metric)


def require_rules(handle: IContext, rules: Iterable[str]) -> None:
    """The rule needs all of these."""
    for rule in rules:
        get_evaluator(handle).require_rule(rule)


def metric_instances(metric: IMetric) -> list[Value | None]:
    """The values of all instances."""
    return [metric.value(index) for index in range(metric.num_instances())]


_FUNCTIONS = (get_context, get_evaluator, get_version, raise_exception, require_metrics, require_rules, metric_instances)


def make_module() -> ModuleType:
    """A module of its own for each set of rules, so that none can change another's."""
    module = ModuleType(NAME, "Stand-in for the module of that name inside Nsight Compute.")
    for one in (*_CLASSES, *_FUNCTIONS):
        setattr(module, one.__name__, one)
    setattr(module, "RuleKind_DEFAULT", 0)  # noqa: B010  (no attribute of ModuleType)
    setattr(module, "RuleKind_GUIDED", 1)  # noqa: B010
    return module
