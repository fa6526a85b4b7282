"""A metric library that needs no library, and none at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import BASE, FOREIGN, OK, SUFFIX, UNKNOWN

SYSTEMS_ON_A_CHIP = ("GV11B", "GA10B", "GB10B", "GB20B")
BASES = (
    *("gpu__time_duration", "dram__bytes", "dram__cycles_elapsed", "sm__cycles_elapsed", "smsp__cycles_elapsed"),
    *("lts__t_sectors", "lts__t_bytes", "lts__lts2xbar_cycles_active", "lts__cycles_elapsed"),
    "sm__sass_thread_inst_executed_op_dfma_pred_on",
    "smsp__sass_thread_inst_executed_op_dfma_pred_on",
)
SUFFIXES = (".sum", ".avg.per_second", ".sum.per_second", ".sum.peak_sustained", ".sum.per_cycle_elapsed")


class FakeChip:
    """Knows `BASES`, on systems on a chip without DRAM."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names = tuple(base for base in BASES if not (name in SYSTEMS_ON_A_CHIP and base.startswith("dram")))

    def verdict(self, name: str) -> str:
        base, point, suffix = name.partition(".")
        if ":" in name or base.startswith("derived__"):
            return FOREIGN
        if base not in self.names:
            return UNKNOWN
        return OK if point + suffix in SUFFIXES else SUFFIX if suffix else BASE


@pytest.fixture
def fake_chip() -> type[FakeChip]:
    """What is known of a chip by its name."""
    return FakeChip


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the metric library."""
    monkeypatch.setenv(chips.VARIABLE, "")
    chips.libraries.cache_clear()
    chips.chip.cache_clear()
    yield
    chips.libraries.cache_clear()
    chips.chip.cache_clear()


@pytest.fixture
def library() -> None:
    """Skips aloud where there is no metric library."""
    if not chips.libraries():
        pytest.skip(f"{chips.HOW_TO_GET} (or set {chips.VARIABLE})")
