"""Made-up ceilings files: of GPUs of the table at a share of their peaks, of a CPU, and of hostile makers."""

from __future__ import annotations

from typing import Any

from ncu_roofline.bench.catalogue import as_json, data_sheet, table, theory
from ncu_roofline.bench.device import device_of
from ncu_roofline.chips.spec import named

SHARES = (0.99, 0.93, 0.985, 0.91, 0.97)
HOSTILE = (
    "\33[31mred\33[0m",
    "$\\frac{1}{0}$",
    "x_{3}^{$",
    "a" * 300,
    "\u202eevil",
    "<script>&amp;",
    "\N{CJK UNIFIED IDEOGRAPH-6F22}",
)


def entry(name: str, value: float | None, unit: str, **more: Any) -> dict[str, Any]:
    """An accepted ceiling as `bench run` writes it; what ``more`` says replaces."""
    return {
        "id": name,
        "kind": {"B/s": "bandwidth", "s": "latency"}.get(unit, "compute"),
        "level": None,
        "unit": unit,
        "value": value,
        "accepted": value is not None,
        "verdict": "ok" if value is not None else "unsupported",
        "reasons": [],
        "cv": 0.003,
        "clock": {"sm_mhz_mean": 1710.0, "sm_mhz_min": 1695.0},
        "power_w": 480.0,
        **more,
    }


def document(name: str, entries: list[dict[str, Any]], **device: Any) -> dict[str, Any]:
    """A file of these entries."""
    return {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "tool": {"name": "ncu-roofline", "version": "1.0.0"},
        "host": {"name": "node1", "time_utc": "2026-11-22T10:00:00Z"},
        "device": {"name": name, "cc": "9.0", "driver": "580.65.06", "power_limit_w": 700.0, **device},
        "settings": {"data": "random"},
        "ceilings": entries,
        "warnings": [],
    }


def gpu_file(name: str) -> dict[str, Any]:
    """All ceilings of a GPU of the table that have a theory, at 91 to 99 % of it, and the host link and launches."""
    gpu = named(name)[0]
    kinds = {kind.id: kind for kind in data_sheet()}
    entries = []
    for index, one in enumerate(sorted(table(gpu), key=lambda one: not one.startswith("dram"))):
        peak = theory(kinds[one], device_of(gpu))
        assert peak is not None
        share = SHARES[index % len(SHARES)] * (0.6 if peak.slow else 1.0)
        clock = 0.95 * peak.vendor_clock if kinds[one].domain == "sm" else peak.vendor_clock
        told = as_json(peak, clock, share * peak.at(clock), share)
        entries.append(entry(one, share * peak.at(clock), kinds[one].unit, theory=told, power_w=350.0 + 20 * (index % 17)))
    if not any(one["id"] == "l2.read" for one in entries):
        entries.append(entry("l2.read", 5.5e12, "B/s"))
    entries += [entry("host.h2d", 55e9, "B/s"), entry("launch.stream", 2.1e-6, "s"), entry("fp64.div", 9e12, "FLOP/s")]
    major, minor = gpu.compute_capability
    return document(gpu.names[0], entries, cc=f"{major}.{minor}", sm_count=gpu.sm_count)


def cpu_file() -> dict[str, Any]:
    """A CPU: three caches, two precisions, no compute capability and no theory."""
    rates = {"l1.read": 6.1e12, "l2.read": 2.9e12, "l3.read": 0.9e12, "dram.read": 1.9e11, "dram.copy": 1.7e11}
    entries = [entry(name, value, "B/s", power_w=None) for name, value in rates.items()]
    arithmetic = {"fp64.fma": 2.1e12, "fp64.nofma": 1.04e12, "fp32.fma": 4.2e12, "fp32.nofma": 2.1e12}
    entries += [entry(name, value, "FLOP/s", power_w=None) for name, value in arithmetic.items()]
    made = document("AMD EPYC 7763 64-Core Processor", entries, kind="cpu", driver=None, power_limit_w=None)
    del made["device"]["cc"]
    return made


def hostile_file() -> dict[str, Any]:
    """Names that a terminal, a formula or a page would obey, or that are far too long; values that are none."""
    entries = [entry(f"fp64.{name}", 1e12 * (1 + index), "FLOP/s") for index, name in enumerate(HOSTILE)]
    entries += [entry(f"{name}.read", 1e11 * (3 + index), "B/s", verdict=name) for index, name in enumerate(HOSTILE)]
    entries += [
        entry("fp16.fma", float("nan"), "FLOP/s"),
        entry("bf16.fma", 3e12, "FLOP/s", clock=[], theory="none", burst=7, power_w="much"),
        entry("tensor.fp16.mma", 5e12, "FLOP/s", accepted=False, verdict=HOSTILE[0] * 20, reasons=[HOSTILE[3]]),
    ]
    made = document(" ".join(HOSTILE), entries, driver=HOSTILE[1], sm_count=HOSTILE[0])
    return {**made, "status": HOSTILE[1], "warnings": [*HOSTILE]}
