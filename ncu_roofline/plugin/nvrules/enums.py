"""The enumerations of NvRules.

The numbers are those of releases from 2024 on; earlier ones differ, which is why rules must not write numbers.
"""

from __future__ import annotations

from enum import IntEnum

from ncu_roofline.formats.report.rules import SEVERITIES


class MsgType(IntEnum):
    """Kinds of messages."""

    NONE = 0
    OK = 1
    OPTIMIZATION = 2
    WARNING = 3
    ERROR = 4


class MarkerKind(IntEnum):
    """What a source marker points at."""

    SASS = 0
    SOURCE = 1
    NONE = 2


class Severity(IntEnum):
    """How much a focus metric matters."""

    DEFAULT = 0
    LOW = 1
    HIGH = 2


class SpeedupType(IntEnum):
    """What an estimated speedup is a share of: the use of one unit, or the run time."""

    LOCAL = 0
    GLOBAL = 1


class ValueKind(IntEnum):
    """Types of metric values."""

    UNKNOWN = 0
    ANY = 1
    STRING = 2
    FLOAT = 3
    DOUBLE = 4
    UINT32 = 5
    UINT64 = 6


class MetricType(IntEnum):
    """Kinds of metrics."""

    OTHER = 0
    COUNTER = 1
    RATIO = 2
    THROUGHPUT = 3


class RollupOperation(IntEnum):
    """How a metric sums up its instances."""

    NONE = 0
    AVG = 1
    MAX = 2
    MIN = 3
    SUM = 4


class NameBase(IntEnum):
    """Forms of a kernel's name."""

    FUNCTION = 0
    DEMANGLED = 1
    MANGLED = 2


class WorkloadType(IntEnum):
    """Kinds of profiled results."""

    KERNEL = 0
    RANGE = 1
    GRAPH = 2
    CMDLIST = 3
    SUBGRID_SCHEDULE = 4


SUBTYPES = (
    "none",
    "peak_sustained",
    "peak_sustained_active",
    "peak_sustained_active_per_second",
    "peak_sustained_elapsed",
    "peak_sustained_elapsed_per_second",
    "per_cycle_active",
    "per_cycle_elapsed",
    "per_second",
    "pct_of_peak_sustained_active",
    "pct_of_peak_sustained_elapsed",
    "max_rate",
    "pct",
    "ratio",
)
"""Suffixes of metric names; the position is the number of ``IMetric.MetricSubtype_...``."""


def message_word(number: int) -> str:
    """The word "warning" for ``MsgType.WARNING``, the number itself as text if it is none of them."""
    return MsgType(number).name.lower() if number in MsgType._value2member_map_ else str(int(number))


def severity_word(number: int) -> str:
    """The word that a report stores for a severity."""
    return SEVERITIES[number] if 0 <= number < len(SEVERITIES) else str(int(number))


def speedup_word(number: int) -> str:
    """The word that a report stores for a type of speedup."""
    return SpeedupType(number).name.lower() if number in SpeedupType._value2member_map_ else "unknown"


def old_names(enum: type[IntEnum], prefix: str) -> dict[str, IntEnum]:
    """The attributes under which releases before 2025.3 have an enumeration: ``MsgType_MSG_OK``, ``ValueKind_DOUBLE``."""
    return {f"{prefix}{member.name}": member for member in enum}
