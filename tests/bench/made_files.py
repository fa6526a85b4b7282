"""Ceilings files as `bench run` writes them, without running anything: an H200 with a few ceilings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], None]

SM_CLOCK, MEMORY_CLOCK, SM_COUNT = 1980.0, 3201.0, 132
RATES = {"dram.read": (4.35e12, "B/s"), "fp64.fma": (33e12, "FLOP/s"), "launch.stream": (4e5, "s")}


def entry(name: str, rate: float, unit: str) -> dict[str, Any]:
    """A ceiling whose interval is 0.03 % to both sides; of a latency ``rate`` is launches per second."""
    value = 1 / rate if unit == "s" else rate
    on_sm = name.startswith("fp")
    return {
        "id": name,
        "kind": {"B/s": "bandwidth", "s": "latency"}.get(unit, "compute"),
        "level": "dram" if unit == "B/s" else None,
        "unit": unit,
        "value": value,
        "ci95": [value * (1 - 3e-4), value * (1 + 3e-4)],
        "cv": 1e-3,
        "trials": 93,
        "sessions": 3,
        "between_session_cv": 1e-4,
        "accepted": True,
        "verdict": "ok",
        "reasons": [],
        "variant": {"kernel": "best"},
        "clock": {"sm_mhz_mean": SM_CLOCK, "mem_mhz": MEMORY_CLOCK},
        "power_w": 600.0,
        "per_sm_and_cycle": value / (SM_CLOCK * 1e6 * SM_COUNT) if on_sm else None,
        "variants": [{"kernel": "best", "session": 1, "value": value, "values": [value] * 3, "sm_mhz": [SM_CLOCK] * 3}],
    }


def document(number: int, speed: float = 1.0, host: str = "") -> dict[str, Any]:
    """The file of GPU ``number`` whose rates are ``speed`` times the usual ones."""
    absent = {"id": "tensor.fp8.mma", "kind": "compute", "level": None, "unit": "FLOP/s", "value": None, "accepted": False}
    return {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "tool": {"name": "ncu-roofline", "version": "0.1.0", "build": {"compiler": "nvcc 13.0.88"}},
        "host": {"name": host or f"node{number // 4}", "cpu": "a CPU", "time_utc": "2026-01-02T03:04:05Z"},
        "device": {
            "index": number % 4,
            "name": "NVIDIA H200",
            "uuid": f"GPU-{number:08d}",
            "pci_bus_id": "00000000:1B:00.0",
            "cc": "9.0",
            "sm_count": SM_COUNT,
            "driver": "580.65",
        },
        "settings": {"data": "random"},
        "ceilings": [
            *(entry(name, rate * speed, unit) for name, (rate, unit) in RATES.items()),
            {**absent, "verdict": "emulated", "reasons": ["emulated"]},
        ],
        "warnings": [],
    }


def write(path: Path, number: int, speed: float = 1.0, host: str = "", change: Change = lambda _content: None) -> Path:
    """A file with `document`, changed."""
    content = document(number, speed, host)
    change(content)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path
