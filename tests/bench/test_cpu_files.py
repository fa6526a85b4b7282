"""Ceilings files of CPUs apply to no GPU."""

from __future__ import annotations

from pathlib import Path

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.measuring import FULL, Outcome, Record
from tests.bench.fakes import EPYC, kind

__all__ = ["EPYC", "write"]  # what other rooms take
RATES = {"dram.read": 380e9, "l3.read": 5e12, "fp64.fma": 5.8e12}


def write(path: Path, cpu: Device) -> Path:
    trials = {kind(name): ([rate] * 3, [0.02] * 3, [3.1e9] * 3, 1e9) for name, rate in RATES.items()}
    outcomes = [Outcome(one, (Record(one, "u8", "session", 0, *told),)) for one, told in trials.items()]
    content = document(cpu, outcomes, FULL, Origin({"compiler": "g++ 12"}, {}, ""))
    path.write_text(as_text(content), encoding="utf-8")
    return path
