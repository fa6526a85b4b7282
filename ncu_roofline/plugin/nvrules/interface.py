"""What rules import as NvRules, on a kernel of a report instead of one that Nsight Compute has just profiled.

It has what NVIDIA's own rules and ours use.  Methods do what NVIDIA's documentation of NvRules says of those of the same names;
comments stand where less can be done here.  Numbers of enumerations are those of releases from 2024 on; earlier ones differ,
which is why rules must not write numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cached_property, partialmethod
from pathlib import Path
from types import ModuleType
from typing import Any

from ncu_roofline.formats.report import FocusMetric, Kernel, RuleMessage, Value
from ncu_roofline.formats.report.reader import SEVERITIES, SPEEDUP_TYPES
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Body, Cubin, module_of
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.model.plausible import PlausibleMetrics

NAME = "NvRules"
VERSION = "2025.4.0"
"""The release whose interface this stand-in has; rules may ask for it."""

MsgType = IntEnum("MsgType", "NONE OK OPTIMIZATION WARNING ERROR", start=0)
MarkerKind = IntEnum("MarkerKind", "SASS SOURCE NONE", start=0)
Severity = IntEnum("Severity", "DEFAULT LOW HIGH", start=0)
SpeedupType = IntEnum("SpeedupType", "LOCAL GLOBAL", start=0)
NameBase = IntEnum("NameBase", "FUNCTION DEMANGLED MANGLED", start=0)
ValueKind = IntEnum("ValueKind", "UNKNOWN ANY STRING FLOAT DOUBLE UINT32 UINT64", start=0)


class IMetric:
    """One metric with its value and instances, which are read when asked for."""

    def __init__(self, name: str, value: Value | None = None, kernel: Kernel | None = None) -> None:
        self._name, self._value, self._kernel = name, value, kernel

    @cached_property
    def _instances(self) -> Sequence[tuple[Any, Any]]:
        return list(self._kernel.metrics.instances(self._name)) if self._kernel else []

    def value(self, idx: int | None = None) -> Value | None:
        found: Value | None = self._value if idx is None else self._instances[idx][1]
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

    def correlation_ids(self) -> IMetric | None:
        """A metric whose instances are what these instances belong to."""
        if all(owner is None for owner, _ in self._instances):
            return None
        ids = IMetric(self._name)
        ids._instances = [(None, owner) for owner, _ in self._instances]
        return ids

    def unit(self) -> str:
        return ""  # our reader does not keep units, nor descriptions

    description = unit

    def _set(self, as_type: Callable[[Any], Value], _kind: int, value: Any) -> bool:
        self._value = as_type(value)  # of a metric that a rule adds; it lives as long as the kernel's rules run
        return True

    set_double, set_uint64, set_string = partialmethod(_set, float), partialmethod(_set, int), partialmethod(_set, str)


class ISourceInfo:
    def __init__(self, file_name: str, line: int) -> None:
        self.file_name, self.line = (lambda: file_name), (lambda: line)


class IAction:
    """A kernel with its metrics, and over them those that rules added.

    Not part of NvRules: ``shared`` is for rules that work the same way: what one of them has read or worked out, the others
    need not do again.  It starts with what is ``known``, and is emptied when a rule adds a metric.  ``listings`` is shared by
    the launches of one module for what they know of its code, and ``by_address`` gives all instances of a metric at once.
    """

    def __init__(self, kernel: Kernel, known: Mapping[object, object] | None = None) -> None:
        self._kernel, self._plausible = kernel, PlausibleMetrics(kernel.metrics)
        self._added: dict[str, IMetric] = {}
        self._found: dict[str, IMetric] = {}
        self.shared: dict[object, object] = dict(known or {})

    @property
    def listings(self) -> dict[object, object]:
        module, starts, bodies = self._code
        where = tuple(zip(starts, (body.name for body in bodies), strict=True))
        found: dict[object, object] = module.kept.setdefault(where, {}) if module else {}
        return found

    def by_address(self, name: str) -> dict[int, float]:
        addresses, values = self._kernel.metrics.by_address(name)
        return {address: value for address, value in zip(addresses, values, strict=True) if value > 0}

    def __len__(self) -> int:
        return len(self.metric_names())

    def __iter__(self) -> Iterator[str]:
        return iter(self.metric_names())

    def __getitem__(self, key: str) -> IMetric:
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
            value = self._plausible.get(name)
            if value is None and self._kernel.metrics.get(name) is not None:
                return None
            self._found[name] = IMetric(name, value, self._kernel)
        return self._found[name]

    def metric_names(self) -> tuple[str, ...]:
        names = self._kernel.metrics.sorted_names()
        return tuple(sorted({*names, *self._added})) if self._added else names

    def add_metric(self, name: str) -> IMetric:
        self._added[name] = IMetric(name)
        self.shared.clear()
        return self._added[name]

    def _add(self, as_type: Callable[[Any], Value], name: str, kind: int, value: Any) -> IMetric:
        metric = self.add_metric(name)
        metric._set(as_type, kind, value)
        return metric

    add_double_metric, add_integer_metric = partialmethod(_add, float), partialmethod(_add, int)
    add_string_metric = partialmethod(_add, str)

    def source_info(self, address: int) -> ISourceInfo | None:
        """File (the path that the compiler noted) and line that Nsight Compute names for an address."""
        body, offset = self._at(address)
        place = body.lines.first(offset) if body else None
        return ISourceInfo(place.file, place.line) if place else None

    def source_files(self) -> dict[str, str]:
        return {file.name: file.text for file in self._kernel.code.files} if self._kernel.code else {}

    def sass_by_pc(self, address: int) -> str:
        """The instruction at an address, "" where there is no code.

        Its opcode, with those modifiers that decide work and bytes, behind "@P" if it depends on a predicate (any).  Of
        operands only where a jump or call goes (an address, last), and "-RZ, RZ" where HFMA2 loads constants.
        """
        body, offset = self._at(address)
        if body is None or offset // SIZE >= len(body.instructions):
            return ""
        one = body.instructions[offset // SIZE]
        text = f"@P {one.opcode}" if one.guarded else one.opcode
        if one.target is not None:
            return f"{text} {address - offset + one.target:#x}"
        return f"{text} -RZ, RZ" if one.constant else text

    def ptx_by_pc(self, _address: int) -> str:
        return ""  # reports hold machine code only

    def _at(self, address: int) -> tuple[Body | None, int]:
        """The function that lies at an address, and how far from its start that is."""
        _, starts, bodies = self._code
        place = bisect_right(starts, address) - 1
        offset = address - starts[place] if place >= 0 else 0
        return (bodies[place], offset) if place >= 0 and offset < len(bodies[place].function.code) else (None, 0)

    @cached_property
    def _code(self) -> tuple[Cubin | None, list[int], list[Body]]:
        """The functions of the kernel's module by address; none where the report has no code, or none that can be read."""
        code = self._kernel.code
        try:
            module = module_of(code.cubin) if code and code.cubin else None
        except CodeError:
            module = None
        if code is None or module is None:
            return None, [], []
        addresses = {function.name: function.address for function in code.functions}
        if (base := self._kernel.base_address()) is not None:
            addresses[self._kernel.mangled_name] = base
        placed = sorted((address, name) for name, address in addresses.items() if name in module.functions)
        return module, [address for address, _ in placed], [module.body(name) for _, name in placed]


Vault = defaultdict[str, dict[str, float]]


class IFrontend:
    """Keeps what one rule says; ``parents`` are the rules whose words it may hear, of those that each left in the ``vault``."""

    def __init__(self, identifier: str, folder: Path, parents: Collection[str], vault: Vault) -> None:
        self._own, self._folder, self._parents, self._vault = vault[identifier], folder, parents, vault
        self.messages: list[RuleMessage] = []
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
        if not (self._folder / filename).is_file():
            self.add("error", f"The chart file {filename} could not be loaded")

    def generate_table(self, *_args: Any, **_named: Any) -> None:
        """Tables are shown nowhere."""

    def send_dict_to_children(self, dict: Mapping[str, float]) -> None:  # noqa: A002  (the interface's name)
        self._own.update({str(key): float(value) for key, value in dict.items()})

    def receive_dict_from_parent(self, parent_id: str) -> dict[str, float]:
        return {**self._vault[parent_id]} if parent_id in self._parents else {}


# Where releases before 2025.3 have the members: ``IMetric.ValueKind_DOUBLE``.
for _owner, _prefix, _enum in (
    (IMetric, "ValueKind", ValueKind),
    (IAction, "NameBase", NameBase),
    (IFrontend, "MsgType_MSG", MsgType),
    (IFrontend, "MarkerKind", MarkerKind),
    (IFrontend, "Severity_SEVERITY", Severity),
    (IFrontend, "SpeedupType", SpeedupType),
):
    for _member in _enum:
        setattr(_owner, f"{_prefix}_{_member.name}", _member)


class IController:
    def propose_rule(self, _identifier: str) -> None:
        """All rules run anyway."""


class IEvaluator:
    """What a rule needs, said before it runs; without it the rule is not run."""

    def __init__(self) -> None:
        self.metrics: list[str] = []
        self.rules: list[str] = []
        self.require_metric, self.require_rule = self.metrics.append, self.rules.append


class IRange(tuple[Any, ...]):
    """The one action of a report's result; `IContext`, the handle that a rule gets: one range."""

    def num_actions(self) -> int:
        return len(self)

    def action_by_idx(self, idx: int) -> Any:
        return self[idx] if 0 <= idx < len(self) else None

    num_ranges, range_by_idx = num_actions, action_by_idx


class IContext(IRange):
    def __new__(cls, action: IAction, *_parts: object) -> IContext:
        return super().__new__(cls, (IRange((action,)),))

    def __init__(self, _action: IAction, frontend: IFrontend) -> None:
        self.evaluator, self.frontend, self.controller = IEvaluator(), (lambda: frontend), IController

    def get_version(self) -> str:
        return VERSION

    def handle_exception(self, msg: str) -> bool:
        raise SystemError(msg)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "get_context": lambda h: h,
    "get_evaluator": lambda h: h.evaluator,
    "get_version": lambda h: h.get_version(),
    "raise_exception": lambda h, msg: h.handle_exception(msg),
    "require_metrics": lambda handle, metrics: handle.evaluator.metrics.extend(metrics),
    "require_rules": lambda handle, rules: handle.evaluator.rules.extend(rules),
    "metric_instances": lambda metric: [metric.value(index) for index in range(metric.num_instances())],
}
_CLASSES = (IAction, IContext, IController, IEvaluator, IFrontend, IMetric, IRange, ISourceInfo, MarkerKind, MsgType)


def make_module() -> ModuleType:
    """A module of its own for each set of rules, so that none can change another's."""
    module = ModuleType(NAME, "Stand-in for the module of that name inside Nsight Compute.")
    vars(module).update({one.__name__: one for one in _CLASSES}, **_FUNCTIONS, RuleKind_DEFAULT=0, RuleKind_GUIDED=1)
    return module
