"""Reports of the ranks of one made-up application, with faults put in on purpose."""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.formats.report import ReportData, Session, write_report
from ncu_roofline.formats.report.session import Process
from tests.factory import A100, NO_WORK, Metrics, flops, kernel, timing, traffic

KERNELS = tuple(f"void solve<{number}>(double *)" for number in range(4))
LAUNCHES = 3
UNEVEN = KERNELS[1]
SKIPPED = KERNELS[2]


@dataclass(frozen=True)
class Faults:
    """Ranks with a slow GPU (1.4 x the time), a low clock (and 1.4 x the time), twice the work in UNEVEN, without SKIPPED."""

    slow: Container[int] = ()
    clock: Container[int] = ()
    uneven: Container[int] = ()
    skipping: Container[int] = ()


def metrics(rank: int, name: str, faults: Faults, device: Metrics = A100) -> Metrics:
    """One launch: a millisecond times the number of the kernel, half a percent of noise."""
    noise = random.Random(f"{rank} {name}").gauss(1.0, 0.005)
    load = 2 if rank in faults.uneven and name == UNEVEN else 1
    lag = 1.4 if rank in faults.slow or rank in faults.clock else 1.0
    clock = 1.41e9 / (1.4 if rank in faults.clock else 1.0)
    return {
        **device,
        **timing(1e-3 * (KERNELS.index(name) + 1) * load * lag * noise, clock),
        **NO_WORK,
        **flops("d", fma=500_000_000 * load),
        **traffic(10**9 * load, 500_000_000 // 32 * load, 250_000_000 * load),
        "device__attribute_pci_domain_id": 0,
        "device__attribute_pci_bus_id": 0x41 + rank % 4,
        "device__attribute_pci_device_id": 0,
    }


def write_rank(path: Path, rank: int, faults: Faults | None = None, device: Metrics = A100) -> Path:
    """The report of a rank: every kernel three times; four ranks to a node."""
    found = faults or Faults()
    launches = [
        kernel(metrics(rank, name, found, device), name)
        for _ in range(LAUNCHES)
        for name in KERNELS
        if not (rank in found.skipping and name == SKIPPED)
    ]
    session = Session(process=Process(4000 + rank, "/opt/solver", f"node{rank // 4}"), ncu_version="2024.1.0.0")
    write_report(path, ReportData(launches, session), overwrite=True)
    return path


def write_ranks(folder: Path, count: int, faults: Faults | None = None) -> list[Path]:
    """One report per rank."""
    return [write_rank(folder / f"report.{rank}.ncu-rep", rank, faults) for rank in range(count)]
