"""What files `*.frames` give (see test_frames.py) as the frames of an analysis."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ncu_roofline import roofline
from ncu_roofline.analyses import portability as analysis
from ncu_roofline.analyses import ranks as ranking
from ncu_roofline.analyses.compare import frames as comparing
from ncu_roofline.analyses.compare.frames import Comparison, Settings
from ncu_roofline.analyses.compare.thresholds import evaluate
from ncu_roofline.analyses.instruction import InstructionRoofline, instruction_roofline
from ncu_roofline.analyses.phases.frames import PhaseRoofline, phase_roofline
from ncu_roofline.analyses.portability import Choices, PlatformRoof, PlatformRun, Portability
from ncu_roofline.analyses.ranks import Ranks
from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.chips.spec import named
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.inputs.plain_table import plain_rows
from ncu_roofline.formats.report import KernelData
from ncu_roofline.formats.traces import read_trace
from ncu_roofline.model import Selection
from tests import factory, instruction_factory, published_report
from tests.analyses import phases_made, ranks_made, time_frames, traces_made

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
            if "inst" in one:
                metrics |= instruction_factory.executed(int(one["inst"]), one.get("lanes", 32.0))
            metrics |= instruction_factory.accesses(one.get("release", "new"), **one.get("accesses", {}))
            metrics |= {name: int(value) if value == int(value) else value for name, value in one.get("metrics", {}).items()}
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


PROFILES = {
    "DRAM": phases_made.DRAM,
    "FP64": phases_made.FP64,
    "SM": phases_made.SM,
    "L2": phases_made.L2,
    "BLOCKS": phases_made.BLOCKS,
}


def profile(values: list[float]) -> phases_made.Profile:
    """A value for each of so many equal parts of the launch's time."""
    return lambda share: values[int(share * len(values))]


def phases(folder: Path, groups: Any = (), each: Any = None, first: Any = None, ms: Any = 1.0, **more: Any) -> PhaseRoofline:
    """Two phases, or ``groups`` with their profiles in equal parts; ``each`` group, and the ``first``, with other values.

    ``ms``: of several launches, and of a ``bare`` one without samples before them; ``metrics``: others of the launch; ``by``.
    """
    named = [{**one, "metrics": {PROFILES[name]: profile(v) for name, v in one["metrics"].items()}} for one in groups]
    made = [phases_made.Group(**one) for one in named] or list(phases_made.TWO_PHASES)
    made = [replace(one, **(each or {})) for one in made]
    made[0] = replace(made[0], **(first or {}))
    times = ms if isinstance(ms, list) else [ms]
    kernels = [phases_made.Made(made, seconds=one * 1e-3, metrics=more.get("metrics", {})).kernel() for one in times]
    bare = [factory.kernel(factory.complete(seconds=one * 1e-3), kernels[0].name) for one in more.get("bare", [])]
    return phase_roofline(factory.report(folder / "p.ncu-rep", *bare, *kernels), by=more.get("by", "kernel"))


def portability(folder: Path, runs: Any = (), choices: Any = None, csv: str = "", by: str = "", **more: Any) -> Portability:
    """Tables of `PlatformRun` (with roofs of 7 TFLOP/s and 0.8 TB/s if they have a performance), or a plain table."""
    if csv:
        (folder / "t.csv").write_text(csv)
        table = plain_rows("t.csv", *_rows_of(csv))
        return analysis.portability(analysis.runs_of_table(table, lambda _: None, **({"by": by} if by else {})))
    origin = more.get("origin", "measured")
    fma, nofma, divide, dram, l2 = (PlatformRoof(value, origin) for value in (7.0e12, 3.5e12, 0.5e12, 0.8e12, 3.0e12))
    roofs = {
        "performance": 1.6e12,
        "intensity": {"dram": 4.0, "l2": 1.0},
        "compute": {"fma": fma, "nofma": nofma, "divide_nofma": divide},
        "bandwidth": {"dram": dram, "l2": l2},
    }
    made = []
    for one in runs:
        about = {"application": "A", "variant": "", "source": "t.csv", **({} if "supported" in one else roofs), **one}
        made.append(PlatformRun(**about))
    chosen = {name: tuple(value) if name == "platforms" else value for name, value in (choices or {}).items()}
    return analysis.portability(made, Choices(**chosen))


def _rows_of(csv: str) -> tuple[list[str], list[tuple[str, dict[str, str]]]]:
    head, *lines = (line.split(",") for line in csv.strip().splitlines())
    return head, [("row", dict(zip(head, line, strict=True))) for line in lines]


def ranks(folder: Path, each: Any = (), count: int = 0, faults: Any = None, select: Any = None, **options: Any) -> Ranks:
    """Reports of kernels for ``each`` rank, or of a ``count`` of ranks with ``faults`` as `ranks_made` takes them."""
    if count:
        paths = ranks_made.write_ranks(folder, count, ranks_made.Faults(**(faults or {})))
    else:
        paths = [written(folder, f"r{number}", kernels) for number, kernels in enumerate(each)]
    return ranking.ranks(paths, select=Selection(**(select or {})), **options)


def time(
    folder: Path,
    points: Any = (),
    kernels: Any = (),
    latencies: Any = None,
    by: str = "kernel",
    select: Any = None,
    **more: Any,
) -> TimeRoofline:
    """Rows of points as `time_frames.point` takes them, or kernels; ``latencies`` of the V100 in a file of ceilings."""
    if points:
        frame = time_frames.ordinary([time_frames.point(**one) for one in points])
    else:
        frame = roofline(written(folder, "r", kernels), by=by, select=Selection(**(select or {})))
    if latencies:
        document = published_report.gpp_ceilings()
        kept = [one for one in document["ceilings"] if one["unit"] != "s"]
        kept += [{"id": f"launch.{name}", "value": value, "unit": "s", "accepted": True} for name, value in latencies.items()]
        (folder / "c.json").write_text(json.dumps({**document, "ceilings": kept}))
        more["ceilings"] = [read_ceilings(folder / "c.json")]
    return time_roofline(frame, **more)


def instruction(folder: Path, kernels: Any, select: Any = None, **options: Any) -> InstructionRoofline:
    """Kernels on a V100 at 1.53 GHz with 40 million warp instructions, if not said."""
    ordinary = {"gpu": "V100", "clock": 1.53e9, "inst": 40e6}
    path = written(folder, "r", [{**ordinary, **one} for one in kernels])
    return instruction_roofline(path, select=Selection(**(select or {})), **options)
