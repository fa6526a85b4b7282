"""IAction and IRange of NvRules: the kernel that a rule looks at, with the NVTX ranges around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ncu_roofline.formats.report import Kernel, RuleResult, Value
from ncu_roofline.model.plausible import PlausibleMetrics
from ncu_roofline.plugin.nvrules.code import ISourceInfo, KernelCode
from ncu_roofline.plugin.nvrules.enums import NameBase, ValueKind, WorkloadType, old_names
from ncu_roofline.plugin.nvrules.metric import IMetric, IMutableMetric


class INvtxRange:
    """A range of which only the name is known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """The name."""
        return self._name

    def has_attributes(self) -> bool:
        """Always false."""
        return False


class INvtxDomainInfo:
    """The one domain that stands for all."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._ranges = tuple(ranges)

    def __str__(self) -> str:
        return self.name()

    def name(self) -> str:
        """The name of the default domain."""
        return "<default domain>"

    def push_pop_ranges(self) -> tuple[str, ...]:
        """Names, outermost first."""
        return self._ranges

    def push_pop_range(self, idx: int) -> INvtxRange | None:
        """A range by position."""
        return INvtxRange(self._ranges[idx]) if 0 <= idx < len(self._ranges) else None

    def start_end_ranges(self) -> tuple[str, ...]:
        """Always empty: our reader counts them to the other kind."""
        return ()

    def start_end_range(self, _idx: int) -> None:
        """Always None."""
        return


class INvtxState:
    """The ranges around a kernel."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._domain = INvtxDomainInfo(ranges)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return iter(self.domains())

    def __getitem__(self, key: int) -> INvtxDomainInfo:
        domain = self.domain_by_id(key)
        if domain is None:
            raise KeyError(key)
        return domain

    def domains(self) -> tuple[int, ...]:
        """The ids of the domains."""
        return (0,)

    def domain_by_id(self, domain_id: int) -> INvtxDomainInfo | None:
        """The domain, or None."""
        return self._domain if domain_id == 0 else None


class IAction:
    """One profiled result with its metrics, and over them those that rules added.

    ``shared`` (not part of NvRules) is for rules that work the same way: what one of them has read or worked out, the others
    need not do again.  It starts with what is ``known``, and is emptied when a rule adds a metric.
    """

    def __init__(self, kernel: Kernel, known: Mapping[object, object] | None = None) -> None:
        self._kernel = kernel
        self._code = KernelCode(kernel)
        self._plausible = PlausibleMetrics(kernel.metrics)
        self._added: dict[str, IMutableMetric] = {}
        self._found: dict[str, IMetric] = {}
        self.shared: dict[object, object] = dict(known or {})

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
        """The kernel's name in one of three forms."""
        forms = {NameBase.DEMANGLED: self._kernel.name, NameBase.MANGLED: self._kernel.mangled_name}
        return forms.get(NameBase(base), self._kernel.function_name)

    def metric_by_name(self, name: str) -> IMetric | None:
        """The metric, or None if neither the report nor a rule has it, or if the report has a value that can't be."""
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
        """All names, those that rules added included."""
        names = self._kernel.metrics.sorted_names()
        return tuple(sorted({*names, *self._added})) if self._added else names

    def add_metric(self, name: str) -> IMutableMetric:
        """A new metric without value; it hides one of that name in the report."""
        self._added[name] = IMutableMetric(name)
        self.shared.clear()
        return self._added[name]

    def add_double_metric(self, name: str, kind: ValueKind, value: float) -> IMetric:
        """A new metric with a number."""
        metric = self.add_metric(name)
        metric.set_double(kind, value)
        return metric

    def add_integer_metric(self, name: str, kind: ValueKind, value: int) -> IMetric:
        """A new metric with a whole number."""
        metric = self.add_metric(name)
        metric.set_uint64(kind, value)
        return metric

    def add_string_metric(self, name: str, kind: ValueKind, value: str) -> IMetric:
        """A new metric with text."""
        metric = self.add_metric(name)
        metric.set_string(kind, value)
        return metric

    def added(self) -> dict[str, Value]:
        """The scalars that rules added so far (not part of NvRules)."""
        values = {name: metric.value() for name, metric in self._added.items()}
        return {name: value for name, value in values.items() if value is not None}

    def workload_type(self) -> WorkloadType:
        """Kernel, range, graph or command list."""
        return WorkloadType[self._kernel.kind.upper()]

    def nvtx_state(self) -> INvtxState | None:
        """The NVTX ranges around the kernel, None if there are none."""
        return INvtxState(self._kernel.nvtx) if self._kernel.nvtx else None

    def rule_results(self) -> tuple[RuleResult, ...]:
        """What the rules said when the report was made."""
        return self._kernel.rule_results

    def source_info(self, address: int) -> ISourceInfo | None:
        """The line of an address, None without line table or code."""
        return self._code.source_info(address)

    def source_files(self) -> dict[str, str]:
        """The imported source files by name."""
        return self._code.files()

    def sass_by_pc(self, address: int) -> str:
        """The instruction at an address, "" without code.

        Its opcode, with those modifiers that decide work and bytes, behind "@P" if it depends on a predicate (any).  Of
        operands only where a jump or call goes (an address, last), and "-RZ, RZ" where HFMA2 loads constants.
        """
        return self._code.text(address)

    def ptx_by_pc(self, _address: int) -> str:
        """Always empty: reports hold machine code only."""
        return ""


for _name, _member in {**old_names(NameBase, "NameBase_"), **old_names(WorkloadType, "WorkloadType_")}.items():
    setattr(IAction, _name, _member)


class OneItem:
    """A sequence of one, with the index rules of NvRules: what ranges and actions are for a rule."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return iter((self._item,))

    def __getitem__(self, key: int | slice) -> Any:
        return (self._item,)[key]


class IRange(OneItem):
    """The range that holds the one action."""

    def num_actions(self) -> int:
        """One."""
        return 1

    def action_by_idx(self, idx: int) -> IAction | None:
        """The action for index 0, else None."""
        return self._item if idx == 0 else None

    def actions_by_nvtx(self, _includes: object, _excludes: object) -> tuple[int, ...]:
        """The index of the action; filters are not applied."""
        return (0,)
