"""IMetric of NvRules: a metric of the report, or one that a rule added."""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.formats.report import Instances, Kernel, Value
from ncu_roofline.plugin.nvrules.enums import SUBTYPES, MetricType, RollupOperation, ValueKind, old_names

_ROLLUPS = {"avg": RollupOperation.AVG, "max": RollupOperation.MAX, "min": RollupOperation.MIN, "sum": RollupOperation.SUM}


def _kind(value: Value | None) -> ValueKind:
    if isinstance(value, str):
        return ValueKind.STRING
    if isinstance(value, float):
        return ValueKind.DOUBLE
    return ValueKind.UNKNOWN if value is None else ValueKind.UINT64


def _as_double(value: Value | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _as_uint64(value: Value | None) -> int:
    try:
        return max(int(value), 0) if isinstance(value, (int, float)) else 0
    except (ValueError, OverflowError):  # NaN, infinity
        return 0


class IMetric:
    """One metric with its value and instances, read when asked for."""

    def __init__(self, name: str, value: Value | None = None, kernel: Kernel | None = None) -> None:
        self._name = name
        self._value = value
        self._kernel = kernel
        self._read: list[tuple[Value | None, Value | None]] | None = None if kernel else []

    def __str__(self) -> str:
        return self._name

    def _instances(self) -> Instances:
        if self._read is None:
            self._read = self._kernel.metrics.instances(self._name) if self._kernel else []
        return self._read

    def _at(self, instance: Sequence[int]) -> Value | None:
        return self._instances()[instance[0]][1] if instance and instance[0] is not None else self._value

    def name(self) -> str:
        """The full name."""
        return self._name

    def kind(self, *instance: int) -> ValueKind:
        """Type of the value, or of one instance."""
        return _kind(self._at(instance))

    def has_value(self, kind: ValueKind = ValueKind.ANY) -> bool:
        """Whether there is a scalar (of this type)."""
        return self._value is not None and kind in (ValueKind.ANY, _kind(self._value))

    def as_double(self, *instance: int) -> float:
        """The value as a number; 0 where it is none."""
        return _as_double(self._at(instance))

    def as_uint64(self, *instance: int) -> int:
        """The value as a whole number from 0; 0 where it is none."""
        return _as_uint64(self._at(instance))

    def as_string(self, *instance: int) -> str:
        """The value as text; "" where it is none."""
        value = self._at(instance)
        return value if isinstance(value, str) else ""

    def value(self, idx: int | None = None) -> Value | None:
        """The value in its own type."""
        return self._at(() if idx is None else (idx,))

    def num_instances(self) -> int:
        """Number of instances, such as instructions or units."""
        return len(self._instances())

    def has_correlation_ids(self) -> bool:
        """Whether the instances say what they belong to."""
        return any(correlation is not None for correlation, _ in self._instances())

    def correlation_ids(self) -> IMetric | None:
        """A metric whose instances are what these instances belong to."""
        if not self.has_correlation_ids():
            return None
        ids = IMetric(self._name)
        ids._read = [(None, correlation) for correlation, _ in self._instances()]
        return ids

    def metric_type(self) -> MetricType:
        """What the name says of it."""
        last = self._name.rpartition(".")[2]
        if "throughput" in self._name.partition(".")[0]:
            return MetricType.THROUGHPUT
        if last in ("ratio", "pct", "max_rate") and self._name.split(".")[1:2] == [last]:
            return MetricType.RATIO
        return MetricType.COUNTER if self.rollup_operation() is not None else MetricType.OTHER

    def metric_subtype(self) -> int | None:
        """What the last part of the name says, None for a plain value."""
        last = self._name.rpartition(".")[2]
        return SUBTYPES.index(last) if last in SUBTYPES[1:] else None

    def rollup_operation(self) -> RollupOperation | None:
        """What the part after the counter's name says."""
        return _ROLLUPS.get(self._name.split(".")[1]) if "." in self._name else None

    def unit(self) -> str:
        """Empty: our reader does not keep units."""
        return ""

    def description(self) -> str:
        """Empty: our reader does not keep descriptions."""
        return ""


class IMutableMetric(IMetric):
    """A metric that a rule adds; it lives as long as the kernel's rules run."""

    def _set(self, args: Sequence[Value]) -> bool:
        *instance, _kind_given, value = args
        if not instance:
            self._value = value
            return True
        index = _as_uint64(instance[0])
        found = self._instances()
        found += [(None, None)] * (index + 1 - len(found))
        found[index] = (found[index][0], value)
        return True

    def set_double(self, *args: Value) -> bool:
        """``(kind, value)`` or ``(instance, kind, value)``."""
        return self._set((*args[:-1], float(args[-1])))

    def set_uint64(self, *args: Value) -> bool:
        """``(kind, value)`` or ``(instance, kind, value)``."""
        return self._set((*args[:-1], int(args[-1])))

    def set_string(self, *args: Value) -> bool:
        """``(kind, value)`` or ``(instance, kind, value)``."""
        return self._set((*args[:-1], str(args[-1])))

    def mutable_correlation_ids(self) -> _CorrelationIds:
        """What the instances belong to, to be set."""
        return _CorrelationIds(self)


class _CorrelationIds(IMutableMetric):
    def __init__(self, owner: IMutableMetric) -> None:
        super().__init__(owner.name())
        self._owner = owner

    def _set(self, args: Sequence[Value]) -> bool:
        *instance, _kind_given, value = args
        index = _as_uint64(instance[0]) if instance else 0
        found = self._owner._instances()
        found += [(None, None)] * (index + 1 - len(found))
        found[index] = (value, found[index][1])
        return True


for _enum, _prefix in (
    (ValueKind, "ValueKind_"),
    (MetricType, "MetricType_"),
    (RollupOperation, "RollupOperation_"),
):
    for _name, _member in old_names(_enum, _prefix).items():
        setattr(IMetric, _name, _member)
for _number, _word in enumerate(SUBTYPES):
    setattr(IMetric, f"MetricSubtype_{_word.upper()}", _number)
