"""The module that rules import as NvRules."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from ncu_roofline.report import Value
from ncu_roofline.rules import enums
from ncu_roofline.rules.action import IAction, IRange
from ncu_roofline.rules.frontend import VERSION, IContext, IController, IEvaluator, IFrontend, IMessageVault
from ncu_roofline.rules.metric import IMetric, IMutableMetric
from ncu_roofline.rules.nvtx import INvtxDomainInfo, INvtxRange, INvtxState

NAME = "NvRules"

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
