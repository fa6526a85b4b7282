"""What rules import as NvRules, on a kernel of a report instead of one that Nsight Compute has just profiled.

Methods do what NVIDIA's documentation of NvRules says of those of the same names; comments stand where less can be done here.
Numbers of enumerations are those of releases from 2024 on; earlier ones differ, which is why rules must not write numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cached_property, partialmethod
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ncu_roofline.formats.report import FocusMetric, Kernel, RuleMessage, RuleResult, Value
from ncu_roofline.formats.report.rules import SEVERITIES, SPEEDUP_TYPES
from ncu_roofline.model.plausible import PlausibleMetrics
from ncu_roofline.plugin.nvrules.code import KernelCode

NAME = "NvRules"
VERSION = "2025.4.0"
"""The release whose interface this stand-in has; rules may ask for it."""

MsgType = IntEnum("MsgType", "NONE OK OPTIMIZATION WARNING ERROR", start=0)
MarkerKind = IntEnum("MarkerKind", "SASS SOURCE NONE", start=0)
Severity = IntEnum("Severity", "DEFAULT LOW HIGH", start=0)
SpeedupType = IntEnum("SpeedupType", "LOCAL GLOBAL", start=0)
ValueKind = IntEnum("ValueKind", "UNKNOWN ANY STRING FLOAT DOUBLE UINT32 UINT64", start=0)
MetricType = IntEnum("MetricType", "OTHER COUNTER RATIO THROUGHPUT", start=0)
RollupOperation = IntEnum("RollupOperation", "NONE AVG MAX MIN SUM", start=0)
NameBase = IntEnum("NameBase", "FUNCTION DEMANGLED MANGLED", start=0)
WorkloadType = IntEnum("WorkloadType", "KERNEL RANGE GRAPH CMDLIST SUBGRID_SCHEDULE", start=0)
# Suffixes of metric names; the position is the number of ``IMetric.MetricSubtype_...``.
_SUBTYPES = (
    *("none", "peak_sustained", "peak_sustained_active", "peak_sustained_active_per_second", "peak_sustained_elapsed"),
    *("peak_sustained_elapsed_per_second", "per_cycle_active", "per_cycle_elapsed", "per_second"),
    *("pct_of_peak_sustained_active", "pct_of_peak_sustained_elapsed", "max_rate", "pct", "ratio"),
)


def _old_names(owner: type, **enums: type[IntEnum]) -> None:
    """Where releases before 2025.3 have the members: ``IMetric.ValueKind_DOUBLE``."""
    for prefix, enum in enums.items():
        for member in enum:
            setattr(owner, f"{prefix}_{member.name}", member)


class IMetric:
    """One metric with its value and instances, which are read when asked for."""

    def __init__(self, name: str, value: Value | None = None, kernel: Kernel | None = None) -> None:
        self._name, self._value, self._kernel = name, value, kernel
        self._part = 1  # of an instance: 0 what it belongs to, 1 its value

    @cached_property
    def _instances(self) -> list[Any]:
        return list(self._kernel.metrics.instances(self._name)) if self._kernel else []

    def value(self, idx: int | None = None) -> Value | None:
        if idx is None:
            return self._value
        found: Value | None = self._instances[idx][self._part]
        return found

    def name(self) -> str:
        return self._name

    __str__ = name

    def kind(self, *instance: int) -> ValueKind:
        kinds = {str: ValueKind.STRING, float: ValueKind.DOUBLE, type(None): ValueKind.UNKNOWN}
        return kinds.get(type(self.value(*instance)), ValueKind.UINT64)

    def has_value(self, kind: ValueKind = ValueKind.ANY) -> bool:
        return self._value is not None and kind in (ValueKind.ANY, self.kind())

    def as_double(self, *instance: int) -> float:
        value = self.value(*instance)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def as_uint64(self, *instance: int) -> int:
        value = self.value(*instance)
        return max(int(value), 0) if isinstance(value, (int, float)) and math.isfinite(value) else 0

    def as_string(self, *instance: int) -> str:
        value = self.value(*instance)
        return value if isinstance(value, str) else ""

    def num_instances(self) -> int:
        return len(self._instances)

    def has_correlation_ids(self) -> bool:
        return any(instance[0] is not None for instance in self._instances)

    def correlation_ids(self) -> Any:
        return self.mutable_correlation_ids() if self.has_correlation_ids() else None

    def mutable_correlation_ids(self) -> Any:
        """A metric whose instances are what these instances belong to."""
        ids = type(self)(self._name)
        ids._instances, ids._part = self._instances, 0
        return ids

    def metric_type(self) -> MetricType:
        name, *suffixes = self._name.split(".")
        if "throughput" in name:
            return MetricType.THROUGHPUT
        if len(suffixes) == 1 and suffixes[0] in ("ratio", "pct", "max_rate"):
            return MetricType.RATIO
        return MetricType.COUNTER if self.rollup_operation() is not None else MetricType.OTHER

    def metric_subtype(self) -> int | None:
        last = self._name.rpartition(".")[2]
        return _SUBTYPES.index(last) if last in _SUBTYPES[1:] else None

    def rollup_operation(self) -> RollupOperation | None:
        rollup = self._name.partition(".")[2].partition(".")[0]
        return RollupOperation[rollup.upper()] if rollup in ("avg", "max", "min", "sum") else None

    def unit(self) -> str:
        return ""  # our reader does not keep units, nor descriptions

    description = unit


_old_names(IMetric, ValueKind=ValueKind, MetricType=MetricType, RollupOperation=RollupOperation)
for _number, _word in enumerate(_SUBTYPES):
    setattr(IMetric, f"MetricSubtype_{_word.upper()}", _number)


class IMutableMetric(IMetric):
    """A metric that a rule adds; it lives as long as the kernel's rules run.  Setters: ``([instance,] kind, value)``."""

    def _set(self, as_type: Callable[[Any], Value], *args: Any) -> bool:
        value = as_type(args[-1])
        if len(args) < 3 and self._part:
            self._value = value
            return True
        index = int(args[0]) if len(args) > 2 else 0
        self._instances += [[None, None] for _ in range(index + 1 - len(self._instances))]
        self._instances[index][self._part] = value
        return True

    set_double, set_uint64, set_string = partialmethod(_set, float), partialmethod(_set, int), partialmethod(_set, str)


class _Asked:
    """What answers by methods that only tell what it was made with."""

    def __init__(self, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, lambda *_, answer=answer: answer)


class ISourceInfo(_Asked):
    def __init__(self, file_name: str, line: int) -> None:
        super().__init__(file_name=file_name, line=line)


class INvtxRange(_Asked):
    def __init__(self, name: str) -> None:
        super().__init__(name=name, has_attributes=False)


class INvtxDomainInfo(_Asked):
    """The one domain that stands for all; our reader counts all ranges to those that are pushed and popped."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._ranges = tuple(ranges)
        super().__init__(name=str(self), push_pop_ranges=self._ranges, start_end_ranges=(), start_end_range=None)

    def __str__(self) -> str:
        return "<default domain>"

    def push_pop_range(self, idx: int) -> INvtxRange | None:
        return INvtxRange(self._ranges[idx]) if 0 <= idx < len(self._ranges) else None


class INvtxState(dict[int, INvtxDomainInfo]):
    def domains(self) -> tuple[int, ...]:
        return tuple(self)

    def domain_by_id(self, domain_id: int) -> INvtxDomainInfo | None:
        return self.get(domain_id)


class IAction:
    """A kernel with its metrics, and over them those that rules added.

    Not part of NvRules: ``shared`` is for rules that work the same way: what one of them has read or worked out, the others
    need not do again.  It starts with what is ``known``, and is emptied when a rule adds a metric.  ``listings`` is shared by
    the launches of one module for what they know of its code, and ``by_address`` gives all instances of a metric at once.
    """

    def __init__(self, kernel: Kernel, known: Mapping[object, object] | None = None) -> None:
        self._kernel, self._code = kernel, KernelCode(kernel)
        self._plausible = PlausibleMetrics(kernel.metrics)
        self._added: dict[str, IMutableMetric] = {}
        self._found: dict[str, IMetric] = {}
        self.shared: dict[object, object] = dict(known or {})

    @property
    def listings(self) -> dict[object, object]:
        return self._code.listings

    def by_address(self, name: str) -> dict[int, float]:
        addresses, values = self._kernel.metrics.by_address(name)
        return {address: value for address, value in zip(addresses, values, strict=True) if value > 0}

    def __str__(self) -> str:
        return self.name()

    def __len__(self) -> int:
        return len(self.metric_names())

    def __iter__(self) -> Iterator[str]:
        return iter(self.metric_names())

    def __getitem__(self, key: str) -> IMetric:
        if not isinstance(key, str):
            raise TypeError(f"metrics are found by name, not by {type(key).__name__}")
        metric = self.metric_by_name(key)
        if metric is None:
            raise KeyError(key)
        return metric

    def name(self, base: int = NameBase.FUNCTION) -> str:
        forms = {NameBase.DEMANGLED: self._kernel.name, NameBase.MANGLED: self._kernel.mangled_name}
        return forms.get(NameBase(base), self._kernel.function_name)

    def metric_by_name(self, name: str) -> IMetric | None:
        """None also for a value of the report that can't be."""
        if name in self._added:
            return self._added[name]
        if name not in self._found:
            if not self._kernel.metrics.has_name(name):
                return None
            value = self._plausible.recorded(name)
            if value is not None and not self._plausible.allows(name, value):
                return None
            self._found[name] = IMetric(name, value, self._kernel)
        return self._found[name]

    def metric_names(self) -> tuple[str, ...]:
        names = self._kernel.metrics.sorted_names()
        return tuple(sorted({*names, *self._added})) if self._added else names

    def add_metric(self, name: str) -> IMutableMetric:
        self._added[name] = IMutableMetric(name)
        self.shared.clear()
        return self._added[name]

    def _add(self, as_type: Callable[[Any], Value], name: str, kind: int, value: Any) -> IMetric:
        metric = self.add_metric(name)
        metric._set(as_type, kind, value)
        return metric

    add_double_metric = partialmethod(_add, float)
    add_integer_metric = partialmethod(_add, int)
    add_string_metric = partialmethod(_add, str)

    def added(self) -> dict[str, Value]:
        """The scalars that rules added so far (not part of NvRules)."""
        values = {name: metric.value() for name, metric in self._added.items()}
        return {name: value for name, value in values.items() if value is not None}

    def workload_type(self) -> WorkloadType:
        return WorkloadType[self._kernel.kind.upper()]

    def nvtx_state(self) -> INvtxState | None:
        return INvtxState({0: INvtxDomainInfo(self._kernel.nvtx)}) if self._kernel.nvtx else None

    def rule_results(self) -> tuple[RuleResult, ...]:
        return self._kernel.rule_results

    def source_info(self, address: int) -> ISourceInfo | None:
        line = self._code.line(address)
        return ISourceInfo(*line) if line else None

    def source_files(self) -> dict[str, str]:
        return {file.name: file.text for file in self._kernel.code.files} if self._kernel.code else {}

    def sass_by_pc(self, address: int) -> str:
        return self._code.text(address)

    def ptx_by_pc(self, _address: int) -> str:
        return ""  # reports hold machine code only


_old_names(IAction, NameBase=NameBase, WorkloadType=WorkloadType)


class IRange(tuple[IAction, ...]):
    """The one action of a report's result."""

    def num_actions(self) -> int:
        return len(self)

    def action_by_idx(self, idx: int) -> IAction | None:
        return self[idx] if 0 <= idx < len(self) else None

    def actions_by_nvtx(self, _includes: object, _excludes: object) -> tuple[int, ...]:
        return tuple(range(len(self)))  # filters are not applied


class IMessageVault:
    """Dictionaries that rules leave for each other, by the rule's identifier."""

    def __init__(self) -> None:
        self._messages: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def Put(self, rule_id: str, message: Mapping[str, float]) -> None:  # noqa: N802  (the interface's name)
        self._messages[rule_id].update({str(key): float(value) for key, value in message.items()})

    def Get(self, rule_id: str) -> dict[str, float]:  # noqa: N802  (the interface's name)
        return dict(self._messages.get(rule_id, {}))


class RuleTable(NamedTuple):
    """A table that a rule attached to a message; ``rows`` hold int, float or str."""

    message_id: int
    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    title: str = ""


class IFrontend:
    """Keeps what one rule says; ``parents`` are the rules whose words it may hear."""

    def __init__(self, identifier: str, folder: Path, parents: Collection[str], vault: IMessageVault) -> None:
        self._identifier, self._folder, self._parents, self._vault = identifier, folder, parents, vault
        self.messages: list[RuleMessage] = []
        self.tables: list[RuleTable] = []
        self.charts: list[str] = []
        self.markers = 0

    def add(self, kind: str, text: str, title: str = "") -> int:
        """One more message (not part of NvRules); ids count from 1 as in reports."""
        self.messages.append(RuleMessage(kind, text, title, len(self.messages) + 1))
        return len(self.messages)

    def message(self, *args: Any, **named: Any) -> int:
        """``(text, name="")`` or ``(type, text, name="")``; returns the message's id."""
        values = list(args)
        kind = values.pop(0) if values and not isinstance(values[0], str) else named.get("type", MsgType.NONE)
        text = values.pop(0) if values else named["str"]
        title = values.pop(0) if values else named.get("name")
        if values or not isinstance(text, str):
            raise TypeError("message takes a type (optional), a text and a name (optional)")
        word = MsgType(kind).name.lower() if kind in MsgType._value2member_map_ else str(int(kind))
        return self.add(word, text, title or "")

    def _change(self, message_id: int, **changes: Any) -> bool:
        if not 1 <= message_id <= len(self.messages):
            return False
        self.messages[message_id - 1] = replace(self.messages[message_id - 1], **changes)
        return True

    def focus_metric(self, message_id: int, metric_name: str, metric_value: float, severity: int, info: str) -> bool:
        word = SEVERITIES[severity] if 0 <= severity < len(SEVERITIES) else str(int(severity))
        before = [focus for one in self.messages if one.id == message_id for focus in one.focus]
        return self._change(message_id, focus=(*before, FocusMetric(metric_name, float(metric_value), word, info)))

    def speedup(self, message_id: int, type: int, estimated_speedup: float) -> bool:  # noqa: A002  (the interface's name)
        unknown, *words = SPEEDUP_TYPES
        word = words[type] if 0 <= type < len(words) else unknown
        return self._change(message_id, speedup=float(estimated_speedup), speedup_type=word)

    def source_marker(self, *_args: Any, **_named: Any) -> None:
        self.markers += 1  # there is no source page here

    def load_chart_from_file(self, filename: str) -> None:
        if (self._folder / filename).is_file():
            self.charts.append(filename)
        else:
            self.add("error", f"The chart file {filename} could not be loaded")

    def generate_table(
        self, message_id: int, header: Sequence[str], data: Sequence[Sequence[Any]], config: Mapping[str, Any] | None = None
    ) -> None:
        for row in data:
            if len(row) != len(header):
                raise ValueError(f"a row of {len(row)} values in a table of {len(header)} columns")
        for column in zip(*data, strict=True):
            if len({type(value) for value in column}) > 1:
                raise TypeError("a column of a table holds values of several types")
        rows = tuple(tuple(v if isinstance(v, (int, float, str)) else str(v) for v in row) for row in data)
        title = str((config or {}).get("title", ""))
        self.tables.append(RuleTable(message_id, tuple(map(str, header)), rows, title))

    def send_dict_to_children(self, dict: Mapping[str, float]) -> None:  # noqa: A002  (the interface's name)
        self._vault.Put(self._identifier, dict)

    def receive_dict_from_parent(self, parent_id: str) -> dict[str, float]:
        return self._vault.Get(parent_id) if parent_id in self._parents else {}


_old_names(IFrontend, MsgType_MSG=MsgType, MarkerKind=MarkerKind, Severity_SEVERITY=Severity, SpeedupType=SpeedupType)


class IController:
    def __init__(self, vault: IMessageVault) -> None:
        self.proposals: list[str] = []
        self.propose_rule = self.proposals.append
        self.get_message_vault = lambda: vault


class IEvaluator:
    """What a rule needs, said before it runs; without it the rule is not run."""

    def __init__(self) -> None:
        self.metrics: list[str] = []
        self.rules: list[str] = []
        self.require_metric, self.require_rule = self.metrics.append, self.rules.append


class IContext(tuple[IRange, ...]):
    """What a rule gets as handle: one range with one action."""

    def __new__(cls, action: IAction, *_parts: object) -> IContext:
        return super().__new__(cls, (IRange((action,)),))

    def __init__(self, _action: IAction, frontend: IFrontend, vault: IMessageVault) -> None:
        self._frontend, self._controller, self.evaluator = frontend, IController(vault), IEvaluator()

    def frontend(self) -> IFrontend:
        return self._frontend

    def controller(self) -> IController:
        return self._controller

    def num_ranges(self) -> int:
        return len(self)

    def range_by_idx(self, idx: int) -> IRange | None:
        return self[idx] if 0 <= idx < len(self) else None

    def get_version(self) -> str:
        return VERSION

    def handle_exception(self, msg: str) -> bool:
        raise SystemError(msg)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "get_context": lambda h: h,
    "get_evaluator": lambda h: h.evaluator,
    "get_version": lambda _h: VERSION,
    "raise_exception": lambda h, msg: h.handle_exception(msg),
    "require_metrics": lambda handle, metrics: handle.evaluator.metrics.extend(metrics),
    "require_rules": lambda handle, rules: handle.evaluator.rules.extend(rules),
    "metric_instances": lambda metric: [metric.value(index) for index in range(metric.num_instances())],
}
_CLASSES = (
    *(IAction, IContext, IController, IEvaluator, IFrontend, IMessageVault, IMetric, IMutableMetric),
    *(INvtxDomainInfo, INvtxRange, INvtxState, IRange, ISourceInfo, MarkerKind, MsgType),
)


def make_module() -> ModuleType:
    """A module of its own for each set of rules, so that none can change another's."""
    module = ModuleType(NAME, "Stand-in for the module of that name inside Nsight Compute.")
    vars(module).update({one.__name__: one for one in _CLASSES}, **_FUNCTIONS, RuleKind_DEFAULT=0, RuleKind_GUIDED=1)
    return module
