"""What files `*.frames` give (see test_frames.py) as the frames of an analysis."""

from __future__ import annotations

import json
import math
import sqlite3
from csv import DictReader
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from ncu_roofline import roofline
from ncu_roofline.analyses import portability as analysis
from ncu_roofline.analyses import ranks as ranking
from ncu_roofline.analyses.compare import frames as comparing
from ncu_roofline.analyses.compare.thresholds import evaluate
from ncu_roofline.analyses.instruction import InstructionRoofline, instruction_roofline
from ncu_roofline.analyses.phases.frames import PhaseRoofline, phase_roofline
from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.code import WORKS
from ncu_roofline.analyses.source.findings import findings as findings_on
from ncu_roofline.analyses.source.frames import FINDINGS, INSTRUCTIONS, WHERE
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.chips import kind_of
from ncu_roofline.chips.findings import About, Called, circumstances
from ncu_roofline.chips.spec import named
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.inputs.plain_table import plain_rows
from ncu_roofline.formats.report import Code, CodeFunction, KernelData
from ncu_roofline.formats.traces import read_trace
from ncu_roofline.model import Selection
from tests import factory, instruction_factory, published_report
from tests.analyses import phases_made, ranks_made, source_made, time_frames, traces_made

Given = dict[str, Any]
Frames = SimpleNamespace
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
            for precision, letter in (("fp64", "d"), ("fp32", "f"), ("fp16", "h")):
                metrics |= factory.flops(letter, fma=int(one[precision])) if precision in one else {}
            metrics |= {metric: int(one[name]) for name, metric in TRAFFIC.items() if name in one}
            if "inst" in one:
                metrics |= instruction_factory.executed(int(one["inst"]), one.get("lanes", 32.0))
            metrics |= instruction_factory.accesses(one.get("release", "new"), **one.get("accesses", {}))
            metrics |= {name: int(value) if value == int(value) else value for name, value in one.get("metrics", {}).items()}
            kept = {name: value for name, value in metrics.items() if not name.startswith(tuple(one.get("without", ())))}
            made = factory.kernel(kept, one.get("name", "void kernel<int>(int *)"), mangled_name=one.get("mangled", ""))
            instances = factory.opcodes(**one["opcodes"]) if "opcodes" in one else {}
            found += [replace(made, instances=instances, grid=(one.get("grid", 8), 1, 1))] * one.get("times", 1)
    return found


def written(folder: Path, name: str, kernels: list[Given]) -> Path:
    return factory.report(folder / f"{name}.ncu-rep", *launches(kernels))


def compare(folder: Path, before: Any = (), after: Any = (), states: Any = (), **more: Any) -> comparing.Comparison:
    """``states``: more than two reports; ``verdicts`` of their kernels; ``by`` of their rooflines; ``fail_if``: thresholds."""
    frames = []
    for place, kernels in enumerate(states or (before, after)):
        made = roofline(written(folder, "abcdef"[place], kernels), by=more.get("by", "launch"))
        if verdicts := more.get("verdicts"):
            column = np.array(verdicts[place], dtype=object)
            made = replace(made, kernel_columns={**made.kernel_columns, "verdict": column})
        frames.append(made)
    found = comparing.compare(*frames, settings=comparing.Settings(**more.get("settings", {})))
    return evaluate(found, more.get("fail_if", []))


def run(folder: Path, sql: str = "", csv: str = "", board: str = "", by: str = "operator", **trace: Any) -> Run:
    """A trace as `traces_made.given` takes it, tables of Nsight Systems (``sql``), or its sums (``csv``)."""
    path = folder / f"a.{'sqlite' if sql else 'csv' if csv else 'json'}"
    if sql:
        with sqlite3.connect(path) as database:
            database.executescript(sql)
    elif csv:
        path.write_text(csv)
    else:
        traces_made.write(path, traces_made.given(**trace))
    return run_of([read_trace(path)], board=named(board)[0] if board else None, by=by)


def at(values: list[float], share: float) -> float:
    return values[int(share * len(values))]


def phases(folder: Path, groups: Any = (), each: Any = None, first: Any = None, ms: Any = (1.0,), **more: Any) -> PhaseRoofline:
    """Two phases, or ``groups`` with their profiles in equal parts; ``each`` group, and the ``first``, with other values.

    ``ms``: of several launches, and of a ``bare`` one without samples before them; ``metrics``: others of the launch; ``by``;
    ``instances`` in place of the samples of a metric: pairs, or in turn ``values`` at times from 10^9 ns on, a us apart.
    """
    named = [
        {**one, "metrics": {getattr(phases_made, name): partial(at, v) for name, v in one["metrics"].items()}} for one in groups
    ]
    made = [replace(one, **(each or {})) for one in [phases_made.Group(**one) for one in named] or phases_made.TWO_PHASES]
    made[0] = replace(made[0], **(first or {}))
    other = {}
    for name, given in more.get("instances", {}).items():
        values = given["values"] * given["times"] if isinstance(given, dict) else ()
        pairs = [(10**9 + 1000 * place, value) for place, value in enumerate(values)] or list(map(tuple, given))
        other[getattr(phases_made, name, f"profiler__{name}")] = pairs
    kernels = [phases_made.Made(made, seconds=one * 1e-3, metrics=more.get("metrics", {})).kernel(**other) for one in ms]
    bare = launches([{"ms": one, "name": phases_made.Made.name} for one in more.get("bare", [])])
    return phase_roofline(factory.report(folder / "p.ncu-rep", *bare, *kernels), by=more.get("by", "kernel"))


def portability(_: Path, runs: Any = (), choices: Any = None, csv: str = "", by: str = "application", **more: Any) -> Any:
    """Tables of `PlatformRun` (with roofs of 7 TFLOP/s and 0.8 TB/s if they have a performance), or a plain table."""
    if csv:
        read = list(DictReader(csv.strip().splitlines()))
        table = plain_rows("t.csv", list(read[0]), [("row", one) for one in read])
        return analysis.portability(analysis.runs_of_table(table, lambda _: None, by=by))
    origin = more.get("origin", "measured")
    fma, nofma, divide, dram, l2 = (analysis.PlatformRoof(value, origin) for value in (7.0e12, 3.5e12, 0.5e12, 0.8e12, 3.0e12))
    roofs = {
        "performance": 1.6e12,
        "intensity": {"dram": 4.0, "l2": 1.0},
        "compute": {"fma": fma, "nofma": nofma, "divide_nofma": divide},
        "bandwidth": {"dram": dram, "l2": l2},
    }
    made = []
    for one in runs:
        about = {"application": "A", "variant": "", "source": "t.csv", **({} if "supported" in one else roofs), **one}
        made.append(analysis.PlatformRun(**about))
    chosen = {name: tuple(value) if name == "platforms" else value for name, value in (choices or {}).items()}
    return analysis.portability(made, analysis.Choices(**chosen))


def ranks(
    folder: Path, each: Any = (), count: int = 0, faults: Any = None, select: Any = None, **options: Any
) -> ranking.Ranks:
    """Reports of kernels for ``each`` rank, or of a ``count`` of ranks with ``faults`` as `ranks_made` takes them."""
    if count:
        paths = ranks_made.write_ranks(folder, count, ranks_made.Faults(**(faults or {})))
    else:
        paths = [written(folder, f"r{number}", kernels) for number, kernels in enumerate(each)]
    return ranking.ranks(paths, select=Selection(**(select or {})), **options)


def standing(_: Path, paths: Any = (), pattern: str = "", values: Any = (), loads: Any = (), waves: Any = ()) -> Frames:
    """Ranks of ``paths`` (or path, host, process, GPU); who stands out of ``values``, and why with other ``loads``; and
    what keeps an SM from warps with these ``waves`` and other amounts."""
    named = [ranking.rank_names([ranking.RankSource(*one) for one in several], pattern) for several in paths]
    numbers = [np.array(one) for one in values]
    same = {"launches": 1.0, "FLOPs": 1.0, "dram bytes": 1.0}
    whole = {"warps_possible": 1.0, "limit_registers": 8.0, "limit_shared": 32.0, "limit_blocks": 32.0, "limit_warps": 8.0}
    held = [circumstances({}, {k: v for k, v in {**whole, **one}.items() if v == v}, False) for one in waves]
    return Frames(
        named=pd.DataFrame([{"ranks": " ".join(names), "origin": origin} for names, origin in named]),
        outliers=pd.DataFrame(
            [{"found": ranking.outliers(one).tolist(), "scores": ranking.modified_z(one).round(4).tolist()} for one in numbers]
        ),
        causes=pd.DataFrame([{"cause": ranking.cause(s, time, {**same, **more}, clock)} for s, time, clock, more in loads]),
        warps=pd.DataFrame([{"words": " ".join(sorted(words)), "waves": "", "limits": "", **filled} for words, filled in held]),
    )


def time(folder: Path, points: Any = (), kernels: Any = (), latencies: Any = None, **more: Any) -> TimeRoofline:
    """Rows of points as `time_frames.point` takes them, or kernels; ``latencies`` of the V100 in a file of ceilings."""
    by, select = more.pop("by", "kernel"), Selection(**more.pop("select", {}))
    made = [time_frames.point(**one) for one in points]
    frame = time_frames.ordinary(made) if made else roofline(written(folder, "r", kernels), by=by, select=select)
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


WEIGHTS = {"FADD": 1, "FMUL": 1, "FFMA": 2, "DADD": 1, "DMUL": 1, "DFMA": 2, "HMMA": 4096 / 32}
EMPTY = {"str": "", "float": math.nan, "int": 0}
NAMES = [one.name for one in FINDINGS if one not in WHERE]


def row(op: str, line: int = 10, loop: int = 0, **counts: Any) -> Given:
    """An instruction that a million warps execute with all lanes; per warp: sectors, ideal, wavefronts, needed, spilled."""
    executed, lanes, kind = counts.pop("executed", 1e6), counts.pop("lanes", 32), kind_of(op)
    per_warp = {"requested": 32 * counts.pop("sectors", 0), "ideal": 32 * counts.pop("ideal", 0)}
    shared = ("shared", "wavefronts"), ("shared_ideal", "needed"), ("local", "spilled")
    per_warp |= {name: counts.pop(short, 0) for name, short in shared}
    work = 32 * executed * WEIGHTS.get(op.partition(".")[0], 0)
    found = {
        "function": "k", "opcode": op, "kind": kind, "file": "/src/k.cu", "line": line, "block": loop, "loop": loop,
        "executed": executed, "active": executed * lanes, "threads": executed * lanes, "samples": 0.0, "work": work,
        **{f"work_{one}": work if one == kind else 0.0 for one in WORKS},
        **{name: executed * value for name, value in per_warp.items()},
    }  # fmt: skip
    return found | counts


def rows(given: list[Any], every: Given) -> list[Given]:
    """Rows of tables with an ``op`` (``times`` as often, on a line each if ``spread``), or of opcodes, on line 11."""
    found = []
    for one in given:
        about = {"op": one, "line": 11} if isinstance(one, str) else dict(one)
        times, spread = about.pop("times", 1), about.pop("spread", False)
        found += [row(**about) | every | ({"line": about["line"] + place} if spread else {}) for place in range(times)]
    return found


def loops_of(lines: list[Given]) -> Given:
    """Loops of lines 1 to 99, and of code without lines, each in the ``parent`` that some of its rows name."""
    numbers = sorted({one["loop"] for one in lines})
    parents = {one["loop"]: one["parent"] for one in lines if "parent" in one}
    named = [any(one["loop"] == number and one["file"] for one in lines) for number in numbers]
    return {
        "loop": numbers, "parent": [parents.get(one, -1) for one in numbers],
        "header": [16] * len(numbers), "end": [64] * len(numbers), "file": ["/src/k.cu" if has else "" for has in named],
        "first_line": [1 if has else -1 for has in named], "last_line": [99 if has else -1 for has in named],
    }  # fmt: skip


def told(given: Given, every: Given) -> list[Given]:
    """The findings on rows: with ``stalls`` (row, reason, samples); a reason that the last of them ``waits`` for; a ``called``
    function behind the first; a ``capability``, ``hits``, what is ``bound``, and ``amounts``."""
    lines = rows(given["rows"], every | given.get("every", {}))
    stalls = given.get("stalls", [])
    if "waits" in given:
        lines = rows(["FFMA"], every) + lines
        stalls = [[0, "selected", 700.0], [len(lines) - 1, given["waits"], 300.0]]
    columns = {one.name: [line.get(one.name, EMPTY[one.dtype]) for line in lines] for one in INSTRUCTIONS if one not in WHERE}
    columns["offset"] = [16 * place for place in range(len(lines))]
    if stalls:
        columns["samples"] = [sum(samples for at, _, samples in stalls if at == place) for place in range(len(lines))]
    sampled = {reason: {at: samples for at, same, samples in stalls if same == reason} for _, reason, _ in stalls}
    chip, hits, amounts = tuple(given.get("capability", (0, 0))), given.get("hits", {}), given.get("amounts", {})
    called = [Called(given["called"], np.array([1]), [0])] if "called" in given else []
    return findings_on(columns, sampled, loops_of(lines), About(chip, hits, amounts, given.get("bound", "")), called)


def findings(_: Path, only: str = "", each: Any = (), every: Any = None, **case: Any) -> Frames:
    """The findings of a ``kind`` on ``rows``, or on those of ``each`` of several cases; one without any has an empty row."""
    found = []
    for place, one in enumerate(each or [case]):
        mine = [said for said in told(one, every or {}) if only in ("", said["finding"])]
        found += [{"case": place, **said} for said in mine or [dict.fromkeys(NAMES, "")]]
    return Frames(findings=pd.DataFrame(found))


def source(folder: Path, chip: str = "80", kernel: str = "gemm", trips: int = 5, cubin: str = "linked", **more: Any) -> Any:
    """A kernel of `source_made`, of a mangled name or a part of it, with made-up counts and ``scalars``.

    ``without``: metrics; ``per``: metrics as so many times the executions; ``only``: of its instructions; ``instances``, more
    of them: offset and value; ``placed``: functions at offsets, not its own; ``cut``: part of the module; ``show``: options.
    """
    functions, base = source_made.functions(chip, cubin), source_made.BASE
    mangled = next(name for name in functions if kernel in name)
    _, counted = source_made.counts(functions[mangled], trips)
    extra: Given = dict.fromkeys(counted if "only" in more else more.get("without", ()))
    scaled = {name: [value * factor for value in counted["inst_executed"]] for name, factor in more.get("per", {}).items()}
    extra |= factory.by_address(base, **scaled, **more.get("only", {})) if scaled or "only" in more else {}
    for name, values in more.get("instances", {}).items():
        extra[name] = [*(extra.get(name) or ()), *((base + at, value) for at, value in values)]
    whole = source_made.code_of(chip, mangled, cubin)
    placed = [(next(name for name in functions if part in name), at) for part, at in more.get("placed", [[mangled, 0]])]
    places = tuple(CodeFunction(name, base + at) for name, at in placed)
    code = Code(whole.cubin[: int(more.get("cut", 1) * len(whole.cubin))], whole.files, places)
    given = {"trips": trips, "name": cubin, "code": code, "scalars": more.get("scalars")}
    path = source_made.made_report(folder / "made.ncu-rep", chip, mangled, **given, **extra)
    return source_roofline(path, **more.get("show", {}))
