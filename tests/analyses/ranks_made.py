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
UNEVEN, SKIPPED = KERNELS[1:3]


@dataclass(frozen=True)
class Faults:
    """Ranks with a slow GPU (1.4 x the time), a low clock (and 1.4 x the time), twice the work in UNEVEN, without SKIPPED."""

    slow: Container[int] = ()
    clock: Container[int] = ()
    uneven: Container[int] = ()
    skipping: Container[int] = ()


def metrics(rank: int, name: str, faults: Faults) -> Metrics:
    """One launch: a millisecond times the number of the kernel, half a percent of noise; four ranks to a node."""
    noise = random.Random(f"{rank} {name}").gauss(1.0, 0.005)
    load = 2 if rank in faults.uneven and name == UNEVEN else 1
    lag = 1.4 if rank in faults.slow or rank in faults.clock else 1.0
    clock = 1.41e9 / (1.4 if rank in faults.clock else 1.0)
    where = {"domain": 0, "bus": 0x41 + rank % 4, "device": 0}
    return {
        **A100,
        **timing(1e-3 * (KERNELS.index(name) + 1) * load * lag * noise, clock),
        **NO_WORK,
        **flops("d", fma=500_000_000 * load),
        **traffic(10**9 * load, 500_000_000 // 32 * load, 250_000_000 * load),
        **{f"device__attribute_pci_{what}_id": number for what, number in where.items()},
    }


def write_ranks(folder: Path, count: int, faults: Faults | None = None) -> list[Path]:
    """One report per rank, of every kernel three times."""
    found, paths = faults or Faults(), [folder / f"report.{rank}.ncu-rep" for rank in range(count)]
    for rank, path in enumerate(paths):
        names = [name for name in KERNELS if not (rank in found.skipping and name == SKIPPED)] * 3
        session = Session(process=Process(4000 + rank, "/opt/solver", f"node{rank // 4}"), ncu_version="2024.1.0.0")
        write_report(path, ReportData([kernel(metrics(rank, name, found), name) for name in names], session), overwrite=True)
    return paths
