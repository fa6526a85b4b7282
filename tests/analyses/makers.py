"""What files `*.frames` give (see test_frames.py) as the frames of an analysis."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ncu_roofline import roofline
from ncu_roofline.analyses.compare import frames as comparing
from ncu_roofline.analyses.compare.frames import Comparison, Settings
from ncu_roofline.analyses.compare.thresholds import evaluate
from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.chips.spec import named
from ncu_roofline.formats.report import KernelData
from ncu_roofline.formats.traces import read_trace
from tests import factory, instruction_factory
from tests.analyses import traces_made

Given = dict[str, Any]
GPUS = {
    "A100": factory.A100,
    "H100": factory.H100,
    "V100": factory.V100,
    "L4": {**factory.H100, "device__attribute_display_name": "NVIDIA L4"},
    "H100 wide": {**factory.H100, "device__attribute_global_memory_bus_width": 10240},
}
TRAFFIC = {"l1": "l1tex__t_bytes.sum", "l2_sectors": "lts__t_sectors_srcunit_tex.sum", "dram": "dram__bytes.sum"}


def launches(kernels: list[Given]) -> list[KernelData]:
    """Launches of kernels: one for each of ``ms``, ``times`` as often; not said is what `factory.complete` has.

    ``fp64`` and so on: fused operations; ``idle``: no work and no bytes but those said; ``without``: metrics that begin so.
    """
    found = []
    for one in kernels:
        device, clock = GPUS[one.get("gpu", "A100")], one.get("clock", 1.41e9)
        for ms in one["ms"] if isinstance(one.get("ms"), list) else [one.get("ms", 1.0)]:
            bare = {**device, **factory.timing(ms * 1e-3, clock), **factory.NO_WORK}
            metrics = bare if one.get("idle") else factory.complete(device, ms * 1e-3, clock)
            for precision in ("fp64", "fp32", "fp16"):
                if precision in one:
                    letter = {"fp64": "d", "fp32": "f", "fp16": "h"}[precision]
                    metrics |= factory.flops(letter, fma=int(one[precision]))
            metrics |= {metric: int(one[name]) for name, metric in TRAFFIC.items() if name in one}
            metrics |= {name: int(value) if value == int(value) else value for name, value in one.get("metrics", {}).items()}
            if "inst" in one:
                metrics |= instruction_factory.executed(int(one["inst"]), one.get("lanes", 32.0))
            metrics |= instruction_factory.accesses(one.get("release", "new"), **one.get("accesses", {}))
            kept = {name: value for name, value in metrics.items() if not name.startswith(tuple(one.get("without", ())))}
            names = one.get("name", "void kernel<int>(int *)"), one.get("mangled", "")
            made = factory.kernel(kept, names[0], mangled_name=names[1])
            instances = factory.opcodes(**one["opcodes"]) if "opcodes" in one else {}
            size = {"grid": (one.get("grid", 8), 1, 1), "block": (one.get("block", 128), 1, 1)}
            found += [replace(made, instances=instances, **size)] * one.get("times", 1)
    return found


def written(folder: Path, name: str, kernels: list[Given]) -> Path:
    return factory.report(folder / f"{name}.ncu-rep", *launches(kernels))


def compare(
    folder: Path, before: list[Given] | None = None, after: list[Given] | None = None, states: Any = (), **more: Any
) -> Comparison:
    """``states``: more than two reports; ``verdicts`` of their kernels; ``by`` of their rooflines; ``fail_if``: thresholds."""
    frames = []
    for place, kernels in enumerate(states or (before, after)):
        made = roofline(written(folder, "abcdef"[place], kernels), by=more.get("by", "launch"))
        if verdicts := more.get("verdicts"):
            column = np.array(verdicts[place], dtype=object)
            made = replace(made, kernel_columns={**made.kernel_columns, "verdict": column})
        frames.append(made)
    found = comparing.compare(*frames, settings=Settings(**more.get("settings", {})))
    return evaluate(found, more.get("fail_if", []))


def run(folder: Path, sql: str = "", csv: str = "", board: str = "", by: str = "", **trace: Any) -> Run:
    """A trace as `traces_made.given` takes it, tables of Nsight Systems (``sql``), or its sums (``csv``)."""
    if sql:
        path = folder / "a.sqlite"
        with sqlite3.connect(path) as database:
            database.executescript(sql)
    elif csv:
        path = folder / "a.csv"
        path.write_text(csv)
    else:
        path = traces_made.write(folder / "a.json", traces_made.given(**trace))
    options: Given = {"by": by} if by else {}
    return run_of([read_trace(path)], board=named(board)[0] if board else None, **options)
