"""A made-up launch as the source view sees it: two nested loops, an inlined function, a called one, code outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.source import frames as columns
from ncu_roofline.analyses.source.frames import TABLES, SourceRoofline
from ncu_roofline.rendering.frames import Column
from tests.analyses.time_frames import ordinary, point

Row = dict[str, Any]
GPU = "NVIDIA A100-SXM4-40GB"
KERNEL, HELPER = "_Z6smoothPKfPfi", "_Z3farf"
SOURCE = """\
#include "weights.cuh"

__device__ __noinline__ float far(float x)
{
    return x * x;
}

__global__ void smooth(const float *in, float *out, int n)
{
    for (int row = threadIdx.x; row < n; row += blockDim.x) {
        float sum = 0;
        for (int k = 0; k < 16; ++k) {
            sum += weight(k) * in[row * 32 + k];
        }
        out[row] = far(sum);
    }
}
"""
HEADER = "__device__ inline float weight(int k)\n{\n    return 0.5f * k;\n}\n"
TEXTS = {"smooth.cu": tuple(SOURCE.splitlines()), "weights.cuh": tuple(HEADER.splitlines())}
WARPS, ROWS, INNER, SECONDS, L1_ROOF, FP32_ROOF = 1000, 64, 16, 2e-3, 9.7e12, 9.7e12
_EMPTY: Row = {"str": "", "float": math.nan, "int": -1}
_DTYPES = {"str": object, "float": np.float64, "int": np.int64}
_SUMMED = tuple(one.name for one in columns.COUNTS)
# function, opcode, the whole instruction, kind, file, line, inlined at, block, loop, executions of a warp, samples, stall.
_CODE: tuple[tuple[str, str, str, str, str, int, str, int, int, int, int, str], ...] = (
    (KERNEL, "S2R", "S2R R0, SR_TID.X", "move", "smooth.cu", 10, "", 0, -1, 1, 4, "wait"),
    (KERNEL, "ISETP", "ISETP.GE.AND P0, PT, R0, R9, PT", "integer", "smooth.cu", 10, "", 0, -1, 1, 2, "wait"),
    (KERNEL, "EXIT", "@P0 EXIT", "control", "smooth.cu", 10, "", 0, -1, 1, 1, "wait"),
    (KERNEL, "MOV", "MOV R7, RZ", "move", "smooth.cu", 11, "", 1, 0, ROWS, 20, "wait"),
    (KERNEL, "I2F", "I2F R4, R3", "conversion", "weights.cuh", 3, "smooth.cu:13", 2, 1, ROWS * INNER, 180, "wait"),
    (KERNEL, "FMUL", "FMUL R4, R4, 0.5", "fp32", "weights.cuh", 3, "smooth.cu:13", 2, 1, ROWS * INNER, 120, "wait"),
    (KERNEL, "IMAD", "IMAD R5, R0, 0x20, R3", "integer", "smooth.cu", 13, "", 2, 1, ROWS * INNER, 90, "wait"),
    (KERNEL, "LDG.E", "LDG.E R6, [R10+0x4]", "memory", "smooth.cu", 13, "", 2, 1, ROWS * INNER, 260, "lg_throttle"),
    (KERNEL, "FFMA", "FFMA R7, R4, R6, R7", "fp32", "smooth.cu", 13, "", 2, 1, ROWS * INNER, 1900, "long_scoreboard"),
    (KERNEL, "BRA", "@!P1 BRA 0x40", "control", "smooth.cu", 12, "", 2, 1, ROWS * INNER, 110, "branch_resolving"),
    (KERNEL, "CALL.REL", "CALL.REL.NOINC `(_Z3farf)", "control", "smooth.cu", 15, "", 3, 0, ROWS, 22, "wait"),
    (KERNEL, "STG.E", "STG.E [R12], R7", "memory", "smooth.cu", 15, "", 3, 0, ROWS, 31, "lg_throttle"),
    (KERNEL, "BRA", "@P2 BRA 0x30", "control", "smooth.cu", 10, "", 3, 0, ROWS, 18, "branch_resolving"),
    (KERNEL, "EXIT", "EXIT", "control", "smooth.cu", 17, "", 4, -1, 1, 1, "wait"),
    (KERNEL, "op 0x1a3", "", "other", "", -1, "", 4, -1, 0, 0, ""),
    (HELPER, "FMUL", "FMUL R7, R7, R7", "fp32", "smooth.cu", 5, "", 0, -1, ROWS, 40, "wait"),
    (HELPER, "RET.REL", "RET.REL.NODEC R20", "control", "smooth.cu", 6, "", 0, -1, ROWS, 25, "branch_resolving"),
    ("", "", "", "other", "", -1, "", -1, -1, 5, 16, "wait"),
)  # fmt: skip
_ADDRESS = {KERNEL: 0x7000_0000, HELPER: 0x7000_4000, "": 0x7FFF_0000}


def table(rows: Sequence[Row], declared: Sequence[Column]) -> dict[str, Any]:
    """Rows as columns; what a row does not say is missing."""
    return {
        one.name: np.array([row.get(one.name, _EMPTY[one.dtype]) for row in rows], dtype=_DTYPES[one.dtype]) for one in declared
    }


def rows_of(columns_of_table: Mapping[str, Any]) -> list[Row]:
    """The rows of a table."""
    return [
        dict(zip(columns_of_table, row, strict=True))
        for row in zip(*(v.tolist() for v in columns_of_table.values()), strict=True)
    ]


def _instruction(place: int, offset: int) -> Row:
    function, opcode, sass, kind, file, line, inlined, block, loop, times, samples, stall = _CODE[place]
    executed = float(times * WARPS)
    threads, weight = 32 * executed, {"FMUL": 1, "FFMA": 2}.get(opcode, 0)
    sectors = {"LDG.E": 32, "STG.E": 4}.get(opcode, 0)
    row: Row = {
        "function": function, "owner": function, "address": _ADDRESS[function] + offset, "offset": offset if function else -1,
        "opcode": opcode, "sass": sass, "kind": kind, "file": file, "line": line, "inlined": inlined, "block": block,
        "loop": loop,
        "executed": executed, "active": threads, "threads": threads, **{f"work_{kind}": 0.0 for kind in columns.WORKS},
        "requested": executed * sectors * 32, "ideal": executed * (4 if sectors else 0) * 32, "local": 0.0,
        "shared": 0.0, "shared_ideal": 0.0, "samples": float(samples), "not_issued": 0.75 * samples,
        "stall": stall, "share_stall": 0.8 if samples else math.nan,
    }  # fmt: skip
    row["work_fp32"] = row["work"] = threads * weight
    row["work_int32"] = threads * (opcode == "IMAD")
    return row


def _instructions() -> list[Row]:
    offsets: dict[str, int] = {}
    rows = []
    for place, code in enumerate(_CODE):
        offset = offsets.get(code[0], 0)
        offsets[code[0]] = offset + 16
        rows.append(_instruction(place, offset))
    return rows


def _summed(rows: Sequence[Row], total: Mapping[str, float]) -> Row:
    """Counts of some instructions with their shares of the kernel's."""
    row: Row = {name: math.fsum(one[name] for one in rows) for name in _SUMMED}
    most = max(rows, key=lambda one: float(one["samples"]), default=None)
    row["stall"], row["share_stall"] = (most["stall"], most["share_stall"]) if most else ("", math.nan)
    return row | _shares(row, total)


def _shares(row: Mapping[str, float], total: Mapping[str, float]) -> Row:
    shares: Row = {f"share_{name}": _ratio(row[name], total[name]) for name in ("samples", "work", "requested")}
    shares["share_int32"] = _ratio(row["work_int32"], total["work_int32"])
    shares["share_excess"] = _ratio(row["requested"] - row["ideal"], total["requested"])
    shares["intensity"] = _ratio(row["work"], row["requested"] + row["local"])
    shares["intensity_int32"] = _ratio(row["work_int32"], row["requested"] + row["local"])
    return shares | {"lanes": _ratio(row["active"], row["executed"])}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _grouped(rows: Sequence[Row], total: Mapping[str, float], key: Callable[[Row], tuple[Any, ...]], *names: str) -> list[Row]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [
        {**dict(zip(names, value, strict=True)), "instructions": len(members), **_summed(members, total)}
        for value, members in found.items()
    ]


def _line(row: Row) -> tuple[str, int]:
    return (row["file"], row["line"]) if row["function"] else ("", -2)


def _outer_line(row: Row) -> tuple[str, int]:
    file, _, line = row["inlined"].rpartition(":")
    return (file, int(line)) if line else _line(row)


def _loops(instructions: Sequence[Row], total: Mapping[str, float]) -> list[Row]:
    members = {
        0: [one for one in instructions if one["loop"] >= 0],
        1: [one for one in instructions if one["loop"] == 1],
        -1: [one for one in instructions if one["loop"] < 0 and one["function"]],
        -2: [one for one in instructions if not one["function"]],
    }
    said: dict[int, Row] = {
        0: {"function": KERNEL, "depth": 1, "header": 0x30, "end": 0xD0, "file": "smooth.cu", "first_line": 10, "last_line": 15,
            "entries": float(WARPS), "trips": float(ROWS)},
        1: {"function": KERNEL, "parent": 0, "depth": 2, "header": 0x40, "end": 0xA0, "file": "smooth.cu", "first_line": 12,
            "last_line": 13, "entries": float(WARPS * ROWS), "trips": float(INNER)},
        -1: {"notes": "in no loop"},
        -2: {"notes": "outside of the code that the report holds"},
    }  # fmt: skip
    rows = []
    for loop, inside in members.items():
        row = {"loop": loop, "depth": 0, "instructions": len(inside), **said[loop], **_summed(inside, total)}
        row |= {"performance_of": "work", "unit": "flop"}
        row["performance_least"] = row["work"] / SECONDS
        if row["share_samples"] >= 0.5:
            row["performance"] = row["work"] / (row["share_samples"] * SECONDS)
            row["attainable"] = min(FP32_ROOF, row["intensity"] * L1_ROOF)
        rows.append(row)
    return rows


def _functions(instructions: Sequence[Row], total: Mapping[str, float]) -> list[Row]:
    said: dict[str, Row] = {
        KERNEL: {"name": "smooth", "role": "kernel", "file": "smooth.cu", "line": 9},
        HELPER: {"name": "far", "role": "called", "file": "smooth.cu", "line": 5},
        "": {"role": "outside"},
    }
    rows = _grouped(instructions, total, lambda one: (one["function"],), "function")
    return [{**row, **said[row["function"]]} for row in rows]


def _stalls(instructions: Sequence[Row]) -> list[Row]:
    return [
        {
            "function": one["function"],
            "offset": one["offset"],
            "reason": reason,
            "samples": part * one["samples"],
            "not_issued": part * one["not_issued"],
        }
        for one in instructions
        if one["samples"]
        for reason, part in ((one["stall"], 0.8), ("selected", 0.2))
    ]


def _totals(instructions: Sequence[Row], total: Mapping[str, float]) -> list[Row]:
    counted = {"executed": "smsp__inst_executed.sum", "work_fp32": "work of the model", "requested": "l1tex__t_sectors"}
    units = {"executed": "inst", "work_fp32": "flop", "requested": "byte", "samples": ""}
    return [
        {
            "quantity": name, "unit": unit, "sum": total[name],
            "outside": math.fsum(one[name] for one in instructions if not one["function"]),
            "unlined": math.fsum(one[name] for one in instructions if one["function"] and one["line"] < 0),
            "counter": total[name] if name in counted else math.nan, "ratio": 1.0 if name in counted else math.nan,
            "metrics": counted.get(name, ""),
        }
        for name, unit in units.items()
    ]  # fmt: skip


def _findings(lines: Sequence[Row]) -> list[Row]:
    hot = next(one for one in lines if (one["file"], one["line"]) == ("smooth.cu", 13))
    where = {"file": "smooth.cu", "line": 13, "function": KERNEL, "loop": 1}
    return [
        {**where, "finding": "excess", "offset": 0x70, "share": hot["share_requested"], "of": "traffic of global memory at L1",
         "message": "Line 13: 4.0 of 32 B of each sector are used: 99 % of the kernel's L1 traffic.",
         "advice": "Let neighbouring threads read neighbouring addresses."},
        {**where, "finding": "stall", "offset": 0x80, "share": hot["share_samples"], "of": "samples",
         "message": "Line 13: warps wait for data of global memory.", "advice": "Start loads earlier."},
    ]  # fmt: skip


def source_frames(
    *, texts: Mapping[str, tuple[str, ...]] | None = None, lines: bool = True, sass: bool = True, sampled: bool = True,
    code: bool = True, kernel: str = "smooth", report: str = "smooth.ncu-rep", launch: int = 3,
) -> SourceRoofline:  # fmt: skip
    """The view of a launch: without source ``texts``, ``lines``, ``sass`` of a disassembler, samples, or any ``code``."""
    known = TEXTS if texts is None else texts
    instructions = _instructions()
    for row in instructions:
        row |= {} if lines else {"file": "", "line": -1, "inlined": ""}
        row |= {} if sass else {"sass": ""}
        row |= {} if sampled else {"samples": math.nan, "not_issued": math.nan, "stall": "", "share_stall": math.nan}
        row |= (
            {}
            if code
            else {"function": "", "offset": -1, "opcode": "", "sass": "", "loop": -1, "block": -1, "file": "", "line": -1}
        )
    total: Row = {name: math.fsum(one[name] for one in instructions) for name in _SUMMED}
    for row in instructions:
        row |= _shares(row, total)
    line_rows = _grouped(instructions, total, _line, "file", "line")
    outer_rows = _grouped(instructions, total, _outer_line, "file", "line")
    for row in [*line_rows, *outer_rows]:
        text = known.get(row["file"], ())
        row["text"] = text[row["line"] - 1] if 0 < row["line"] <= len(text) else KERNEL if row["line"] == -1 else ""
    loops = _loops(instructions, total)
    for row in loops:
        row |= {} if lines else {"file": "", "first_line": -1, "last_line": -1}
    made: dict[str, Sequence[Row]] = {
        "lines": line_rows,
        "outer_lines": outer_rows,
        "loops": loops if code else loops[-1:],
        "functions": _functions(instructions, total),
        "instructions": instructions,
        "stalls": _stalls(instructions) if sampled else [],
        "totals": _totals(instructions, total),
        "findings": _findings(line_rows) if lines and code else [],
    }
    where = {"report": report, "launch": launch, "kernel": kernel, "device": GPU}
    tables = {name: table([{**where, **row} for row in rows], TABLES[name]) for name, rows in made.items()}
    measured = point(kernel, report=report, launch=launch, device=GPU, compute_capability="8.0", precision="fp32", level="l1",
                     work=total["work"], traffic=total["requested"], seconds=SECONDS, compute_roof=FP32_ROOF,
                     bandwidth_roof=L1_ROOF)  # fmt: skip
    frames = SourceRoofline(
        **{f"{name.removesuffix('s')}_columns": found for name, found in tables.items()},
        roofline=ordinary([measured]),
        texts=known if lines else {},
        notes=(),
    )
    return replace(frames, notes=("the report does not tell where its code lies",)) if not sass else frames
