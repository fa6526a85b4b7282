"""A made-up launch as the source view sees it: two nested loops, an inlined function, a called one, code outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ncu_roofline.analyses.source.code import WORKS
from ncu_roofline.analyses.source.frames import COUNTS, TABLES, SourceRoofline
from tests.analyses.data import read
from tests.analyses.time_frames import ordinary, point, table

Row = dict[str, Any]
DATA = read("source_frames")
GPU = "NVIDIA A100-SXM4-40GB"
KERNEL, HELPER = "_Z6smoothPKfPfi", "_Z3farf"
SOURCE: str = DATA["SOURCE"]
TEXTS = {"smooth.cu": tuple(SOURCE.splitlines()), "weights.cuh": tuple(DATA["HEADER"].splitlines())}
WARPS, SECONDS, L1_ROOF, FP32_ROOF = 1000, 2e-3, 9.7e12, 9.7e12
ADDRESS = {KERNEL: 0x7000_0000, HELPER: 0x7000_4000, "": 0x7FFF_0000}
SUMMED = tuple(one.name for one in COUNTS)
NO_CODE = {"function": "", "offset": -1, "opcode": "", "sass": "", "loop": -1, "block": -1, "file": "", "line": -1}
WORDS = ("function", "opcode", "sass", "kind", "file", "line", "inlined", "block", "loop", "executed", "samples", "stall")


def rows_of(columns_of_table: Mapping[str, Any]) -> list[Row]:
    """The rows of a table."""
    values = (column.tolist() for column in columns_of_table.values())
    return [dict(zip(columns_of_table, row, strict=True)) for row in zip(*values, strict=True)]


def _instruction(said: Sequence[Any], place: int) -> Row:
    row: Row = dict(zip(WORDS, said, strict=True))
    function, opcode, samples, executed = row["function"], row["opcode"], float(row["samples"]), float(row["executed"] * WARPS)
    sectors = {"LDG.E": 32, "STG.E": 4}.get(opcode, 0)
    return {
        **row, **dict.fromkeys([*SUMMED, *(f"work_{kind}" for kind in WORKS)], 0.0),
        "owner": function, "address": ADDRESS[function] + 16 * place, "offset": 16 * place if function else -1,
        "executed": executed, "active": 32 * executed, "threads": 32 * executed,
        "work_fp32": 32 * executed * {"FMUL": 1, "FFMA": 2}.get(opcode, 0), "work_int32": 32 * executed * (opcode == "IMAD"),
        "work": 32 * executed * {"FMUL": 1, "FFMA": 2}.get(opcode, 0),
        "requested": executed * sectors * 32, "ideal": executed * (4 if sectors else 0) * 32,
        "samples": samples, "not_issued": 0.75 * samples, "share_stall": 0.8 if samples else math.nan,
    }  # fmt: skip


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _shares(row: Mapping[str, float], total: Mapping[str, float]) -> Row:
    moved = row["requested"] + row["local"]
    return {
        **{f"share_{name}": _ratio(row[name], total[name]) for name in ("samples", "work", "requested")},
        "share_int32": _ratio(row["work_int32"], total["work_int32"]),
        "share_excess": _ratio(row["requested"] - row["ideal"], total["requested"]),
        "intensity": _ratio(row["work"], moved),
        "intensity_int32": _ratio(row["work_int32"], moved),
        "lanes": _ratio(row["active"], row["executed"]),
    }


def _summed(rows: Sequence[Row], total: Mapping[str, float]) -> Row:
    """Counts of some instructions with their shares of the kernel's."""
    row: Row = {name: math.fsum(one[name] for one in rows) for name in SUMMED}
    most = max(rows, key=lambda one: float(one["samples"]), default={"stall": "", "share_stall": math.nan})
    return row | {name: most[name] for name in ("stall", "share_stall")} | _shares(row, total) | {"instructions": len(rows)}


def _grouped(rows: Sequence[Row], total: Mapping[str, float], key: Callable[[Row], tuple[Any, ...]], *names: str) -> list[Row]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [dict(zip(names, value, strict=True)) | _summed(members, total) for value, members in found.items()]


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
    rows = []
    for loop, inside in members.items():
        row = {"loop": loop, "depth": 0, **DATA["loops"][str(loop)], **_summed(inside, total)}
        row |= {"performance_of": "work", "unit": "flop", "performance_least": row["work"] / SECONDS}
        if row["share_samples"] >= 0.5:
            row["performance"] = row["work"] / (row["share_samples"] * SECONDS)
            row["attainable"] = min(FP32_ROOF, row["intensity"] * L1_ROOF)
        rows.append(row)
    return rows


def _stalls(instructions: Sequence[Row]) -> list[Row]:
    parts = [
        (one, reason, part)
        for one in instructions
        if one["samples"]
        for reason, part in ((one["stall"], 0.8), ("selected", 0.2))
    ]
    return [
        {"function": one["function"], "offset": one["offset"], "reason": reason}
        | {name: part * one[name] for name in ("samples", "not_issued")}
        for one, reason, part in parts
    ]


def _totals(instructions: Sequence[Row], total: Mapping[str, float]) -> list[Row]:
    return [
        {
            "quantity": name, "unit": unit, "sum": total[name], "metrics": metrics,
            "outside": math.fsum(one[name] for one in instructions if not one["function"]),
            "unlined": math.fsum(one[name] for one in instructions if one["function"] and one["line"] < 0),
            "counter": total[name] if metrics else math.nan, "ratio": 1.0 if metrics else math.nan,
        }
        for name, (unit, metrics) in DATA["totals"].items()
    ]  # fmt: skip


def source_frames(
    *, texts: Mapping[str, tuple[str, ...]] | None = None, lines: bool = True, sass: bool = True, sampled: bool = True,
    code: bool = True, kernel: str = "smooth", report: str = "smooth.ncu-rep", launch: int = 3,
) -> SourceRoofline:  # fmt: skip
    """The view of a launch: without source ``texts``, ``lines``, ``sass`` of a disassembler, samples, or any ``code``."""
    known = TEXTS if texts is None else texts
    of_functions = [one[0] for one in DATA["code"]]
    instructions = [_instruction(one, of_functions[:place].count(one[0])) for place, one in enumerate(DATA["code"])]
    for row in instructions:
        row |= {} if lines else {"file": "", "line": -1, "inlined": ""}
        row |= {} if sass else {"sass": ""}
        row |= {} if sampled else {"samples": math.nan, "not_issued": math.nan, "stall": "", "share_stall": math.nan}
        row |= {} if code else NO_CODE
    total: Row = {name: math.fsum(one[name] for one in instructions) for name in SUMMED}
    for row in instructions:
        row |= _shares(row, total)
    line_rows = _grouped(instructions, total, _line, "file", "line")
    outer_rows = _grouped(instructions, total, _outer_line, "file", "line")
    for row in [*line_rows, *outer_rows]:
        text = known.get(row["file"], ())
        row["text"] = text[row["line"] - 1] if 0 < row["line"] <= len(text) else KERNEL if row["line"] == -1 else ""
    loops = [row | ({} if lines else {"file": "", "first_line": -1, "last_line": -1}) for row in _loops(instructions, total)]
    functions = _grouped(instructions, total, lambda one: (one["function"],), "function")
    hot = next((one for one in line_rows if one["line"] == 13), {}) if code else {}
    where = {"file": "smooth.cu", "line": 13, "function": KERNEL, "loop": 1}
    made: dict[str, Sequence[Row]] = {
        "lines": line_rows,
        "outer_lines": outer_rows,
        "loops": loops if code else loops[-1:],
        "functions": [row | DATA["functions"][row["function"]] for row in functions],
        "instructions": instructions,
        "stalls": _stalls(instructions) if sampled else [],
        "totals": _totals(instructions, total),
        "findings": [{**where, **said, "share": hot[f"share_{of}"]} for of, said in DATA["findings"].items() if hot],
    }
    about = {"report": report, "launch": launch, "kernel": kernel, "device": GPU}
    tables = {name: table([{**about, **row} for row in rows], TABLES[name]) for name, rows in made.items()}
    measured = point(compute_capability="8.0", precision="fp32", level="l1", work=total["work"], traffic=total["requested"],
                     seconds=SECONDS, compute_roof=FP32_ROOF, bandwidth_roof=L1_ROOF, **about)  # fmt: skip
    return SourceRoofline(
        **{f"{name.removesuffix('s')}_columns": found for name, found in tables.items()},
        roofline=ordinary([measured]),
        texts=known if lines else {},
        notes=() if sass else ("the report does not tell where its code lies",),
    )
