"""Findings by line, on made-up instructions whose numbers are known, and on real reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.analyses.source.build import findings, source_roofline
from ncu_roofline.analyses.source.frames import FINDINGS, INSTRUCTIONS, WHERE, WORKS
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import kind_of
from ncu_roofline.chips.findings import About, Called, about_of, circumstances

WEIGHTS = {"FADD": 1, "FMUL": 1, "FFMA": 2, "DADD": 1, "DMUL": 1, "DFMA": 2, "HMMA": 4096 / 32}
Row = dict[str, Any]


def row(opcode: str, line: int = 10, loop: int = 0, **counts: Any) -> Row:
    """An instruction that a million warps execute with all lanes; per warp: sectors, ideal, wavefronts, needed, spilled."""
    executed = counts.pop("executed", 1e6)
    lanes = counts.pop("lanes", 32)
    per_warp = {"requested": 32 * counts.pop("sectors", 0), "ideal": 32 * counts.pop("ideal", 0)}
    per_warp |= {
        "shared": counts.pop("wavefronts", 0),
        "shared_ideal": counts.pop("needed", 0),
        "local": counts.pop("spilled", 0),
    }
    work = 32 * executed * WEIGHTS.get(opcode.partition(".")[0], 0)
    kind = kind_of(opcode)
    found = {
        "function": "k", "opcode": opcode, "sass": "", "kind": kind, "file": "/src/k.cu", "line": line, "inlined": "",
        "block": loop, "loop": loop, "executed": executed, "active": executed * lanes, "threads": executed * lanes,
        "samples": 0.0,
        **{f"work_{one}": work if one == kind else 0.0 for one in WORKS}, "work": work,
        **{name: executed * value for name, value in per_warp.items()},
    }  # fmt: skip
    return found | counts


def loops_of(rows: tuple[Row, ...]) -> dict[str, list[Any]]:
    """Loops of lines 1 to 99, and of code without lines, each in the ``parent`` that some of its rows name."""
    numbers = sorted({one["loop"] for one in rows})
    parents = {one["loop"]: one["parent"] for one in rows if "parent" in one}
    named = [any(one["loop"] == number and one["file"] for one in rows) for number in numbers]
    return {
        "loop": numbers, "parent": [parents.get(one, -1) for one in numbers],
        "header": [16] * len(numbers), "end": [64] * len(numbers),
        "file": ["/src/k.cu" if lines else "" for lines in named],
        "first_line": [1 if lines else -1 for lines in named],
        "last_line": [99 if lines else -1 for lines in named],
    }  # fmt: skip


def found(*rows: Row, stalls: dict[int, dict[str, float]] | None = None, about: About | None = None) -> list[Row]:
    """The findings on these instructions; ``stalls`` by row and reason."""
    columns: dict[str, Any] = {}
    for one in INSTRUCTIONS:
        if one not in WHERE:
            missing: Any = {"str": "", "float": math.nan, "int": 0}[one.dtype]
            columns[one.name] = [line.get(one.name, missing) for line in rows]
    columns["offset"] = [16 * place for place in range(len(rows))]
    sampled = [(place, reason, n) for place, by in (stalls or {}).items() for reason, n in by.items()]
    columns["samples"] = (
        [sum(n for at, _, n in sampled if at == place) for place in range(len(rows))] if stalls else columns["samples"]
    )
    table = {
        "function": ["k" for _ in sampled],
        "offset": [16 * place for place, _, _ in sampled],
        "reason": [reason for _, reason, _ in sampled],
        "samples": [n for _, _, n in sampled],
    }
    said = findings(columns, table, loops_of(rows), about or About())
    assert list(said) == [one.name for one in FINDINGS if one not in WHERE]
    return [dict(zip(said, values, strict=True)) for values in zip(*said.values(), strict=True)]


def only(kind: str, *rows: Row, stalls: dict[int, dict[str, float]] | None = None, about: About | None = None) -> Row:
    """The one finding of a kind."""
    (one,) = [one for one in found(*rows, stalls=stalls, about=about) if one["finding"] == kind]
    return one


def kinds(*rows: Row, stalls: dict[int, dict[str, float]] | None = None) -> set[str]:
    return {one["finding"] for one in found(*rows, stalls=stalls)}


FFMA = row("FFMA", 11)


def test_a_sector_per_lane() -> None:
    said = only("excess", row("LDG.E", 42, sectors=32, ideal=4), row("STG.E", 43, sectors=4, ideal=4), FFMA)
    assert (said["file"], said["line"], said["offset"], said["loop"]) == ("/src/k.cu", 42, 0, 0)
    assert said["share"] == pytest.approx(32 / 36)
    assert said["of"] == "traffic of global memory at L1"
    assert said["message"] == (
        "k.cu:42 in loop 0 (k.cu:1-99): each lane asks for a sector of its own (strides of 32 bytes or more), 32 per warp "
        "where 4 would do; 4.0 of the 32 bytes of a sector are needed. These loads make 89 % of the kernel's traffic of "
        "global memory at L1; of all that traffic 78 % would be saved."
    )


@pytest.mark.parametrize(
    ("opcode", "sectors", "ideal", "text"),
    [
        ("LDG.E", 5, 4, "5 sectors per warp where 4 would do, as where rows don't begin at a multiple of 32 bytes; 25.6 of"),
        ("LDG.E.64", 16, 8, "in loop 0 (k.cu:1-99): 16 sectors per warp where 8 would do; 16.0 of the 32 bytes"),
        ("LDG.E.128", 32, 16, "in loop 0 (k.cu:1-99): 32 sectors per warp where 16 would do; 16.0 of the 32 bytes"),
        ("LDG", 16, 4, "in loop 0 (k.cu:1-99): 16 sectors per warp where 4 would do; 8.0 of the 32 bytes"),
        ("STG.E", 16, 4, "These stores make 100 %"),
        ("RED.E.ADD", 32, 4, "in loop 0 (k.cu:1-99): 4.0 of the 32 bytes of a sector are needed. These atomics"),
    ],
)
def test_what_sectors_per_warp_tell(opcode: str, sectors: int, ideal: int, text: str) -> None:
    """No stride is named unless each lane has a sector of its own: other patterns ask for as many."""
    assert text in only("excess", row(opcode, 42, sectors=sectors, ideal=ideal), FFMA)["message"]


def test_gaps_between_few_lanes_are_no_scattered_addresses() -> None:
    """16 lanes that read 8 bytes touch up to 8 sectors where neighbours read neighbouring addresses; each load by itself."""
    few = row("LDG.E.64", 42, sectors=6, ideal=4, lanes=16), row("LDG.E.64", 42, sectors=1.5, ideal=1.2, lanes=16)
    said = only("gaps", FFMA, *few)
    assert said["message"] == (
        "k.cu:42 in loop 0 (k.cu:1-99): 21.3 of the 32 bytes of a sector are needed, as 16.0 of 32 lanes take part: whole "
        "warps that access neighbouring addresses have no such gaps. These 2 loads make 100 % of the kernel's traffic of "
        "global memory at L1; gaps are up to 31 % of all that traffic."
    )
    assert said["advice"] == only("divergence", FFMA, *few)["advice"]
    assert "excess" not in kinds(FFMA, *few)


def test_what_gaps_can_not_explain_is_scattered() -> None:
    """A sector for each of 16 lanes: 8 at most are explained by gaps.  Lanes whose predicate is false take no part."""
    few = row("LDG.E.64", 42, sectors=16, ideal=4, lanes=16)
    unknown = {"threads": math.nan}
    for rows in ((FFMA, few), (FFMA, few | {"active": 32e6}), (FFMA | unknown, few | unknown)):
        scattered, gaps = (only(kind, *rows)["message"] for kind in ("excess", "gaps"))
        assert "8.0 of the 32 bytes of a sector are needed. These loads make 100 % of" in scattered
        assert "of all that traffic 50 % would be saved" in scattered
        assert "gaps are up to 25 % of all that traffic" in gaps


def test_excess_is_not_claimed_without_ideal_nor_where_it_is_little() -> None:
    assert "excess" not in kinds(row("LDG.E", sectors=32, ideal=math.nan), FFMA)
    assert "excess" not in kinds(row("LDG.E", sectors=4, ideal=4), FFMA)
    assert "excess" not in kinds(row("LDG.E", sectors=4.1, ideal=4), FFMA)  # 2 % would be saved
    many = [row("FFMA", line) for line in range(100, 700)]
    assert "excess" not in kinds(row("LDG.E", sectors=32, ideal=4), *many)  # 28 sectors in 600 instructions
    assert "excess" in kinds(row("LDG.E", sectors=32, ideal=4), *many[:500])


def test_lines_of_a_loop_are_one_finding_and_loops_are_apart() -> None:
    rows = [row("LDG.E", line, loop, sectors=32 - line, ideal=4) for line, loop in ((1, 0), (2, 0), (3, 0), (4, 1))]
    first, second = (one for one in found(*rows) if one["finding"] == "excess")
    assert first["message"].startswith("k.cu:1 and 2 more lines of loop 0 (k.cu:1-99): ")
    assert first["share"] == pytest.approx((31 + 30 + 29) / (31 + 30 + 29 + 28))
    assert second["message"].startswith("k.cu:4 in loop 1 (k.cu:1-99): ")


def test_shares_are_of_the_lines_that_are_named() -> None:
    """What lies on lines with little of it is left out, so that a line that is named alone has the share that is told."""
    stalls = {0: {"long_scoreboard": 194.0}, 1: {"long_scoreboard": 3.0}, 2: {"selected": 803.0}}
    said = only("stall", row("DADD", 42), row("DADD", 43), FFMA, stalls=stalls)
    assert said["share"] == pytest.approx(0.194)
    assert said["message"].startswith("k.cu:42 in loop 0 (k.cu:1-99): in 19 % of")


def test_one_line_in_two_loops_is_one_finding() -> None:
    """As unrolled loops and what remains of them."""
    rows = [row("LDG.E", 7, 0, sectors=32, ideal=4), row("LDG.E", 7, 1, executed=1e5, sectors=32, ideal=4)]
    assert only("excess", *rows)["share"] == 1


def test_code_without_lines_is_named_by_its_instruction() -> None:
    said = only("excess", row("LDG.E", -1, file="", sectors=32, ideal=4), row("FFMA", -1, file=""))
    assert said["message"].startswith("Loop 0 (0x10-0x30), most at LDG.E at offset 0x0: ")
    said = only("excess", FFMA, row("LDG.E", -1, -1, file="", sectors=32, ideal=4))
    assert said["message"].startswith("LDG.E at offset 0x10: ")
    loads = (row("LDG.E", -1, -1, file="", sectors=sectors, ideal=4) for sectors in (31, 32))
    assert only("excess", FFMA, *loads)["message"].startswith("Code in no loop, most at LDG.E at offset 0x20: ")


def test_code_of_called_functions_says_of_which() -> None:
    called = row("LDG.E", -1, -1, file="", function="far", sectors=32, ideal=4)
    assert only("excess", FFMA, called)["message"].startswith("LDG.E at offset 0x10 of far: ")


def test_names_are_text() -> None:
    said = only("excess", row("LDG.E", 5, file="/a/\x1b[31mred\n.cu", sectors=32, ideal=4), FFMA)["message"]
    assert said.isprintable()


def test_inlined_code_says_where() -> None:
    said = only("excess", row("LDG.E", 5, sectors=32, ideal=4, inlined="/a/b.cuh:9 < /src/k.cu:77"), FFMA)
    assert said["message"].startswith("k.cu:5 (inlined at b.cuh:9 < k.cu:77) in loop 0 (k.cu:1-99): ")
    deep = " < ".join(f"/a/b.cuh:{line}" for line in range(1, 6))
    said = only("excess", row("LDG.E", 5, sectors=32, ideal=4, inlined=deep), FFMA)
    assert "(inlined at b.cuh:1 < b.cuh:2 < ... < b.cuh:5)" in said["message"]


MMA = "/usr/local/cuda/include/crt/mma.hpp"


@pytest.mark.parametrize(
    ("inlined", "place"),
    [
        ("/src/gemm.cu:45", "gemm.cu:45 (in mma.hpp:123) in loop 0"),
        (f"{MMA}:7 < /src/gemm.cu:45 < /src/gemm.cu:90", "gemm.cu:45 (in mma.hpp:123, inlined at gemm.cu:90) in loop 0"),
        ("/src/wmma.cuh:8 < /src/gemm.cu:45", "wmma.cuh:8 (in mma.hpp:123, inlined at gemm.cu:45) in loop 0"),
        ("", "mma.hpp:123 in loop 0"),
        (f"{MMA}:7", "mma.hpp:123 (inlined at mma.hpp:7) in loop 0"),
    ],
)
def test_lines_of_libraries_are_named_by_those_that_use_them(inlined: str, place: str) -> None:
    said = only("excess", row("LDG.E", 123, file=MMA, sectors=32, ideal=4, inlined=inlined), FFMA)
    assert said["message"].startswith(f"{place} (")


def test_lines_of_libraries_that_nobody_knows_the_use_of_come_behind_the_kernels_own() -> None:
    library = row("LDG.E", 40, file="/home/me/.julia/packages/LLVM/src/base.jl", sectors=32, ideal=4)
    said = only("excess", library, row("LDG.E", 42, sectors=8, ideal=4), FFMA)
    assert said["message"].startswith("k.cu:42 and 1 more line, most at base.jl:40, of loop 0 (")


def test_loads_that_feed_tensor_instructions() -> None:
    said = only("tensor-feed", row("LDG.E.64", 42, sectors=16, ideal=8), row("HMMA.16816.F32", 50))
    assert "These loads of a loop with tensor instructions make 100 %" in said["message"]
    assert kinds(row("LDG.E.64", 42, 0, sectors=16, ideal=8), row("HMMA.16816.F32", 50, 1)) >= {"excess"}


@pytest.mark.parametrize(("load", "tensor"), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2)])
def test_loads_that_feed_tensor_instructions_of_loops_around_or_within(load: int, tensor: int) -> None:
    nest = [row("IADD3", 60, loop, parent=loop - 1) for loop in range(3)]
    only("tensor-feed", row("LDG.E.64", 42, load, sectors=16, ideal=8), row("HMMA.16816.F32", 50, tensor), *nest)
    beside = row("IADD3", 60, 4, parent=0), row("IADD3", 60, 3, parent=0), row("IADD3", 60, 0)
    assert "tensor-feed" not in kinds(row("LDG.E.64", 42, 3, sectors=16, ideal=8), row("HMMA.16816.F32", 50, 4), *beside)


@pytest.mark.parametrize(("wavefronts", "ways"), [(32, "32-way bank conflicts"), (2, "2-way bank"), (2.6, ": bank conflicts")])
def test_bank_conflicts(wavefronts: float, ways: str) -> None:
    said = only("bank-conflict", row("LDS", 42, wavefronts=wavefronts, needed=1), row("STS", 43, wavefronts=1, needed=1))
    assert ways in said["message"]
    assert said["share"] == pytest.approx(wavefronts / (wavefronts + 1))
    assert f"take {wavefronts:.2g} times the wavefronts they need" in said["message"]


def test_bank_conflicts_that_cost_little_are_none() -> None:
    many = [row("FFMA", line) for line in range(100, 200)]
    assert "bank-conflict" not in kinds(row("LDS", wavefronts=2, needed=1), *many)
    assert "bank-conflict" not in kinds(row("LDS", wavefronts=2, needed=math.nan), FFMA)
    assert "bank-conflict" not in kinds(row("LDGSTS.E.128", wavefronts=8, needed=1), FFMA)  # what is needed is another question


def test_spills() -> None:
    said = only("spill", row("LDL", 42, spilled=128), row("LDG.E", 43, sectors=12, ideal=12), FFMA)
    assert said["share"] == pytest.approx(128 / (128 + 12 * 32))
    assert said["of"] == "bytes asked of L1"  # requested ones are of global memory alone
    assert "loads and stores of local memory are 25 % of the bytes" in said["message"]


def test_divergence_is_of_inactive_lanes() -> None:
    said = only("divergence", row("MOV", 1), row("IMAD", 42, lanes=8), FFMA, FFMA)
    assert (
        said["message"]
        == "k.cu:42 in loop 0 (k.cu:1-99): 8.0 of 32 lanes are active in 25 % of the kernel's warp instructions."
    )
    predicated = row("IADD3", 42, threads=0.0)
    assert "divergence" not in kinds(row("MOV", 1), predicated, FFMA)
    assert "divergence" not in kinds(row("MOV", 1), row("IMAD", 42, lanes=28), FFMA)


def test_divergence_where_only_lanes_with_a_true_predicate_were_counted() -> None:
    """As before 2022: a block has as many active lanes as its busiest instruction."""
    rows = [row("MOV", 1, 0), row("IADD3", 42, 0, threads=0.0), row("IMAD", 50, 1, lanes=8), row("MOV", 51, 1, lanes=2)]
    said = only("divergence", *(one | {"active": math.nan} for one in rows))
    assert said["line"] == 50
    working = "8.0 of 32 lanes work (their predicate is true; which are active was not counted by instruction) in 50 %"
    assert working in said["message"]


def test_blocks_that_are_no_whole_warps_are_no_divergence() -> None:
    said = only("divergence", *(row("IMAD", line, lanes=16) for line in range(3)))
    assert said["message"] == "Warps begin with 16.0 of 32 lanes: the blocks of this launch are no whole warps."
    assert said["share"] == 1


def test_unfused() -> None:
    said = only("unfused", row("FMUL", 42), row("FADD", 42), row("MOV", 43))
    assert said["share"] == 1
    assert (
        "k.cu:42 in loop 0 (k.cu:1-99): multiplications and additions in FP32 and no fused ones. "
        "100 % of the kernel's operations could" in said["message"]
    )
    assert "unfused" not in kinds(row("FMUL", 42), row("FADD", 43))  # on lines of their own
    assert "unfused" not in kinds(row("FMUL", 42), row("FADD", 42), row("FFMA", 42))  # the compiler fuses
    assert "unfused" not in kinds(row("FMUL", 42), row("DADD", 42))
    half = {"work_fp16": 64e6, "work": 64e6}
    assert "unfused" in kinds(row("HMUL2", 42, **half), row("HADD2", 42, **half))
    assert "unfused" not in kinds(row("HMUL2", 42, **half), row("HADD2.F32", 42))  # it converts
    no_lines = [row(name, -1, file="", block=block) for name, block in (("DMUL", 0), ("DADD", 0), ("DADD", 1))]
    assert only("unfused", *no_lines)["share"] == pytest.approx(2 / 3)


def test_fp64_by_accident() -> None:
    rows = [row("F2F", 42), row("DMUL", 42), row("F2F", 42), *(row("FFMA", line) for line in range(50, 57))]
    said = only("fp64-by-accident", *rows)
    assert said["share"] == pytest.approx(0.3)
    assert "(F2F 67 %, DMUL 33 %): 30 % of its warp instructions" in said["message"]
    assert "conversion" not in kinds(*rows)  # said once
    assert "fp64-by-accident" not in kinds(rows[1], *rows[3:])  # no conversions: it is meant
    assert "fp64-by-accident" not in kinds(*rows[:3], *(row("DFMA", line) for line in range(50, 57)))  # FP64 is the work


def test_conversions_and_integer_divisions() -> None:
    said = only("conversion", row("I2F", 42), FFMA, FFMA)
    assert said["message"] == (
        "k.cu:42 in loop 0 (k.cu:1-99): conversions (I2F 100 %) are 33 % of the kernel's warp instructions; they run at a "
        "quarter of the rate of FP32 or less."
    )
    said = only("conversion", row("I2F", 42), row("MUFU", 42), row("F2I", 42), FFMA)
    assert "as divisions of integers make them" in said["message"]
    assert "conversion" not in kinds(row("HADD2.F32", 42), row("F2FP", 42), FFMA)  # these are fast


def test_integer_arithmetic_of_loops() -> None:
    rows = [row("IMAD", 42), row("IADD3", 43), row("FFMA", 44), row("FFMA", 45)]
    said = only("address", *rows)
    assert said["share"] == pytest.approx(0.5)
    assert "50 % of the loop's own warp instructions (loops inside left out) are integer arithmetic" in said["message"]
    nest = [*rows, *(row("FFMA", 50, 1, parent=0) for _ in range(9))]
    assert "50 % of the loop's own" in only("address", *nest)["message"]
    assert "address" not in kinds(*(one | {"loop": -1} for one in rows))
    assert "address" not in kinds(
        *(one | {"work": 0.0} for one in rows)
    )  # no floating-point code: what integers are for is open
    assert "address" not in kinds(row("LOP3", 42), row("LOP3", 43), row("FFMA", 44))
    assert "address" not in kinds(row("IMAD.MOV.U32", 42), row("IMAD.MOV.U32", 43), row("FFMA", 44))


def test_where_warps_wait_for_memory_fewer_instructions_are_no_advice() -> None:
    rows = [row("IMAD", 42), row("IADD3", 43), row("FFMA", 44), row("I2F", 45)]
    memory = {2: {"long_scoreboard": 900.0, "selected": 100.0}}
    busy = {2: {"long_scoreboard": 100.0, "selected": 500.0, "wait": 400.0}}
    told = {"address", "conversion"}
    assert not told & kinds(*rows, stalls=memory)
    assert told <= kinds(*rows, stalls=busy)


def test_hot_stalls() -> None:
    said = only("stall", row("LDG.E", 41), row("FFMA", 42), stalls={0: {"selected": 700.0}, 1: {"long_scoreboard": 300.0}})
    assert said["share"] == pytest.approx(0.3)
    assert said["of"] == "samples"
    assert (
        "k.cu:42 in loop 0 (k.cu:1-99): in 30 % of the kernel's samples warps wait here for data of earlier loads"
        in said["message"]
    )
    assert said["advice"] == (
        "Start loads earlier and more of them (unroll, prefetch into registers), and keep in registers or shared memory what "
        "is read again."
    )


def test_what_the_counts_show_decides_what_is_said() -> None:
    """Nothing of what the kernel has not: spills, bank conflicts, special functions, bandwidth or warps to spare."""

    def advice(reason: str, *rows: Row, **amounts: float) -> str:
        stalls = {0: {"selected": 700.0}, len(rows): {reason: 300.0}}
        told = found(FFMA, *rows, stalls=stalls, about=About((8, 0), {}, amounts))
        return " ".join(one["advice"] for one in told if one["finding"] == "stall")

    wide = row("STG.E.128", 43, sectors=16, ideal=16)
    assert advice("lg_throttle", wide) == "Put independent arithmetic between them."
    assert "up to 16 bytes at once" in advice("lg_throttle", row("STG.E", 43, sectors=4, ideal=4))
    assert "neighbouring addresses" in advice("lg_throttle", row("LDG.E.128", 43, sectors=32, ideal=16))
    assert "Avoid local memory" in advice("lg_throttle", row("LDL.128", 43, spilled=512))
    assert advice("short_scoreboard", row("S2R", 43)).startswith("Let a thread handle several elements")
    assert "bank conflicts" not in advice("short_scoreboard", row("LDS", 43, wavefronts=1, needed=1))
    assert "Remove bank conflicts." in advice("short_scoreboard", row("LDS", 43, wavefronts=2, needed=1))
    assert "special functions" in advice("short_scoreboard", row("MUFU.RCP", 43))
    assert "special functions" not in advice("short_scoreboard", row("MUFU.RCP", 43, executed=1e3), row("SHFL.BFLY", 44))
    assert advice("drain", row("STG.E", 43, sectors=4, ideal=4), dram=0.96).startswith("Store fewer bytes")
    assert "neighbouring" not in advice("drain", row("LDG.E", 43, sectors=32, ideal=4))
    assert "neighbouring" in advice("drain", row("STG.E", 43, sectors=32, ideal=4))
    assert not advice("short_scoreboard", row("S2R", 43), dram=0.96)  # and so nothing is told
    assert not advice("wait", wide, dram=0.96)
    assert advice("lg_throttle", row("STG.E", 43, sectors=4, ideal=4), dram=0.75).startswith("Move fewer bytes")
    assert advice("long_scoreboard", wide, dram=0.75).startswith("Move fewer bytes")
    room = {"warps": 0.2, "warps_possible": 0.5, "waves": 0.3}
    room |= {"limit_registers": 4.0, "limit_shared": 16.0, "limit_blocks": 16.0, "limit_warps": 8.0}
    assert "An SM holds 20 % of the warps that it can, as the grid has too few blocks" in advice("wait", wide, **room)
    assert "An SM holds 20 % of the warps that it can: more of them" in advice("wait", wide, **room | {"waves": 9.0})
    assert "By registers an SM has room for 50 %" in advice("wait", wide, **room | {"warps": 0.49})
    assert "An SM" not in advice("wait", wide, **room | {"warps": 0.9, "warps_possible": 1.0})
    assert "Let one launch do more" in advice("no_instructions", wide, seconds=5e-6)
    assert "Unroll less" not in advice("no_instructions", wide, seconds=5e-3)


@pytest.mark.parametrize(
    ("waves", "warps", "more", "word"),
    [
        (1.19, 0.62, {}, "last_wave"),  # 864 of 1,024 blocks fit, and equal ones would hold 59 %
        (1.19, 0.40, {}, "few_warps"),  # far less than these
        (1.005, 0.58, {}, "few_warps"),  # few SMs have blocks of the last wave
        (512.0, 0.70, {}, "few_warps"),
        (1.0, 0.58, {}, "few_warps"),
        (0.4, 0.39, {}, "few_blocks"),
        (0.9, 0.4, {}, "few_warps"),  # were they to take equally long SMs would hold enough
        (0.5, 0.7, {"limit_warps": 1.0}, "few_warps"),  # half of the SMs have all that they have room for
        (0.003, 0.06, {}, "few_blocks"),
        (1.19, 0.62, {"limit_warps": None}, "few_warps"),
        (None, 0.62, {}, "few_warps"),
    ],
)
def test_why_an_sm_holds_few_warps(waves: float | None, warps: float, more: dict[str, float | None], word: str) -> None:
    """The words of A100, A40 and GTX 1660 Ti reports: a cause is named only where waves and blocks bear it out."""
    amounts = {"waves": waves, "warps": warps, "warps_possible": 1.0, "limit_registers": 8.0, "limit_shared": 32.0}
    known = amounts | {"limit_blocks": 32.0, "limit_warps": 8.0} | more
    words, filled = circumstances({}, {name: value for name, value in known.items() if value is not None}, False)
    assert words & {"few_blocks", "last_wave", "few_warps", "capped"} == {word}
    assert waves is None or filled["waves"] == f"{waves:.3g}"


def test_the_size_of_blocks_may_be_what_keeps_warps_from_an_sm() -> None:
    """Of 1,024 threads one block fits on an SM of 1,536, whatever registers allow."""
    limits = {"limit_registers": 2.0, "limit_shared": 8.0, "limit_blocks": 16.0, "limit_warps": 1.0}
    words, filled = circumstances({}, {"warps": 0.66, "warps_possible": 0.667, "waves": 9.0} | limits, False)
    assert (words, filled["limits"]) == ({"capped"}, "the size of blocks")
    assert circumstances({}, {"warps": 0.5, "warps_possible": 0.5} | dict.fromkeys(limits, 3.0), False)[1]["limits"] == (
        "registers, shared memory and the size of blocks"
    )


WAITS = {0: {"selected": 700.0}, 1: {"long_scoreboard": 300.0}}


@pytest.mark.parametrize(("capability", "known"), [((7, 0), False), ((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_no_chip_is_told_to_copy_by_what_it_lacks(capability: tuple[int, int], known: bool) -> None:
    about = About(capability)
    assert ("cp.async" in only("stall", FFMA, row("FFMA", 42), row("LDS", 43), stalls=WAITS, about=about)["advice"]) is known
    assert "cp.async" not in only("stall", FFMA, row("FFMA", 42), stalls=WAITS, about=about)["advice"]  # no shared memory
    copies = row("LDS", 43), row("LDGSTS.E.128", 44)
    assert "cp.async" not in only("stall", FFMA, row("FFMA", 42), *copies, stalls=WAITS, about=about)["advice"]
    rows = row("LDG.E.64", 42, sectors=16, ideal=8), row("HMMA.16816.F32", 50)
    advice = only("tensor-feed", *rows, about=about)["advice"]
    assert ("cp.async" in advice, "TMA" in advice) == (known, capability >= (9, 0))


def test_misses_are_told_only_as_they_were_counted() -> None:
    rates = About(hit_rates={"L1": 0.945, "L2": 0.5})
    assert (
        "The kernel's hit rates: 94 % in L1, 50 % in L2."
        in only("stall", FFMA, row("FFMA", 42), stalls=WAITS, about=rates)["message"]
    )
    assert "hit rates" not in only("stall", FFMA, row("FFMA", 42), stalls=WAITS)["message"]
    barrier = {0: {"selected": 700.0}, 1: {"barrier": 300.0}}
    assert "hit rates" not in only("stall", FFMA, row("FFMA", 42), stalls=barrier, about=rates)["message"]


def test_hit_rates_that_can_be() -> None:
    names = {"L1": "l1tex__t_sector_hit_rate.pct", "L2": "lts__t_sector_hit_rate.pct"}
    values = {names["L1"]: 94.5, names["L2"]: 100.1}
    assert about_of((8, 0), values.get) == About((8, 0), {"L1": 0.945, "L2": 1.0})
    assert about_of((8, 0), {names["L1"]: math.nan, names["L2"]: 250.0}.get) == About((8, 0))
    assert about_of((8, 0), {}.get) == About((8, 0))
    busy = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 50.0, "launch__waves_per_multiprocessor": 2}
    assert about_of((8, 0), busy.get, 1e-3) == About((8, 0), {}, {"dram": 0.5, "waves": 2.0, "seconds": 1e-3})


@pytest.mark.parametrize(
    "stalls",
    [
        {1: {"long_scoreboard": 90.0, "selected": 910.0}},  # too small a share
        {1: {"long_scoreboard": 100.0, "selected": 50.0}},  # too few samples
        {1: {"wait": 150.0, "selected": 850.0}},  # every kernel waits so
        {1: {"not_selected": 900.0, "selected": 100.0}},  # enough warps
        {1: {"a_later_reason": 1000.0}},
    ],
)
def test_what_is_no_hot_stall(stalls: dict[int, dict[str, float]]) -> None:
    assert "stall" not in kinds(row("LDG.E", 41), row("FFMA", 42), stalls=stalls)


def test_integer_arithmetic_that_limits_a_kernel() -> None:
    """In its loops and, where no loop holds it, on its lines; without that verdict nothing is said."""
    rows = (
        row("LOP3", 41),
        row("IADD3", 41),
        row("IMAD", 42),
        row("HMMA.16816.F32", 43),
        row("SHF", 60, -1),
        row("ISETP", 90, 1, executed=1e5),
    )
    said = [one for one in found(*rows, about=About((8, 0), bound="int32")) if one["finding"] == "integer"]
    assert [(one["line"], one["loop"]) for one in said] == [(41, 0), (60, -1)]
    assert said[0]["share"] == pytest.approx(3 / 5.1)
    assert said[0]["message"] == (
        "k.cu:41 and 1 more line of loop 0 (k.cu:1-99): 59 % of the kernel's warp instructions are integer arithmetic here "
        "(LOP3 33 %, IADD3 33 %, IMAD 33 %), which limits the kernel: 67 % of it on the ALU pipe and 33 % of it on the FMA "
        "pipe."
    )
    assert said[1]["message"].startswith("k.cu:60: 20 % of")
    assert not {"integer", "address"} & kinds(*rows[:2], row("HMMA.16816.F32", 43), row("FFMA", 43), row("FFMA", 44))
    threads = [one | {"executed": math.nan} for one in rows]
    assert "kernel's thread instructions" in only("integer", *threads[:4], about=About((8, 0), bound="alu"))["message"]
    unknown = only("integer", *rows[:4], about=About((12, 0), bound="int32"))["message"]
    assert unknown.endswith("which limits the kernel.")


def test_indices_are_not_told_twice() -> None:
    rows = row("IADD3", 41), row("IMAD", 41), row("FFMA", 42)
    assert {"address"} == {one["finding"] for one in found(*rows)}
    assert {"integer"} == {one["finding"] for one in found(*rows, about=About((8, 0), bound="int32"))}


def test_waiting_for_arithmetic_is_told_by_unit() -> None:
    """Each with the place where its own instructions are; together they are as many as a reason must have."""
    busy = {0: 150.0, 1: 120.0, 2: 30.0}
    stalls = {place: {"math_pipe_throttle": samples} for place, samples in busy.items()} | {3: {"selected": 700.0}}
    rows = row("IMMA.16832.S8.S8", 41), row("LOP3.LUT", 42), row("IMAD", 43), FFMA
    said = [one for one in found(*rows, stalls=stalls, about=About((8, 6))) if one["finding"] == "stall"]
    assert [(one["line"], one["share"]) for one in said] == [(41, 0.15), (42, 0.12)]
    assert "warps wait here since the tensor pipe is busy (math_pipe_throttle)" in said[0]["message"]
    assert "warps wait here since the ALU pipe is busy" in said[1]["message"]
    few = {**stalls, 3: {"selected": 1700.0}}
    assert "stall" not in kinds(*rows, stalls=few)
    (other,) = (one for one in found(*rows, stalls=stalls, about=About((12, 0))) if one["finding"] == "stall")
    assert other["share"] == pytest.approx(0.3)
    assert "since the arithmetic unit it needs is busy" in other["message"]


def test_most_first() -> None:
    shares = [
        one["share"] for one in found(row("LDG.E", 1, sectors=32, ideal=4), row("IMAD", 2, lanes=4), row("LDL", 3, spilled=99))
    ]
    assert len(shares) > 2
    assert shares == sorted(shares, reverse=True)


def test_nothing_counted_nothing_said() -> None:
    assert found() == []
    counted = ("executed", "active", "threads", "work", "requested", "ideal", "local", "shared", "shared_ideal", "samples")
    empty = dict.fromkeys((*counted, *(f"work_{one}" for one in WORKS)), math.nan)
    codes = ("LDG.E", "LDS", "FMUL", "FADD", "F2F", "DMUL", "IMAD", "LDL")
    assert found(*(row(code) | empty for code in codes)) == []
    assert found(*(row(code) | dict.fromkeys(empty, 0.0) for code in codes)) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e308, -1.0, math.inf, 1e-308])
def test_counts_that_can_not_be(value: float) -> None:
    """No exception, and shares are numbers."""
    codes = ("LDG.E", "LDS", "FMUL", "FADD", "F2F", "I2F", "DMUL", "IMAD", "LDL", "HMMA.16816.F32")
    counted = ("executed", "active", "threads", "requested", "ideal", "local", "shared", "shared_ideal", "work")
    for name in counted:
        for one in found(*(row(code, sectors=8, wavefronts=4) | {name: value} for code in codes)):
            assert one["message"]
            assert 0 <= one["share"] <= 1 + 1e-9


def test_outside_code_is_no_finding() -> None:
    assert found(row("", function="", file="", line=-1, sectors=32, ideal=4, executed=1e6, kind="other")) == []


def test_real_reports(real_reports: dict[str, Path]) -> None:
    """Each finding has a place that is executed or sampled, and a share of what there is."""
    said = 0
    for report in real_reports.values():
        try:
            frames = source_roofline(report, top=100)
        except RooflineError:
            continue
        table, code = frames.finding_columns, frames.instruction_columns
        places = set(zip(code["launch"].tolist(), code["function"].tolist(), code["offset"].tolist(), strict=True))
        for launch, function, offset, share in zip(
            *(table[name].tolist() for name in ("launch", "function", "offset", "share")), strict=True
        ):
            said += 1
            assert (launch, function, offset) in places
            assert 0.03 <= share <= 1 + 1e-9
    assert said > 20


@pytest.mark.parametrize(
    ("name", "said", "advised"),
    [
        ("__cuda_sm20_div_f64_slowpath_v2", "which divides in FP64", "reciprocal"),
        ("__cuda_sm3x_div_rn_noftz_f32_slowpath", "which divides in FP32", "__fdividef"),
        ("__cuda_sm20_div_u64", "which divides integers", "32-bit"),
        ("__internal_accurate_pow", "which raises to a power", "exponent"),
        ("__internal_lgamma_pos", "__internal_lgamma_pos: ", "FP32"),
    ],
)
def test_library_functions_are_told_where_they_are_called(name: str, said: str, advised: str) -> None:
    rows = [row("CALL", 7), row("DFMA", -1, -1, executed=3e6, file=""), row("BRA", 7)]
    (one,) = library(name, rows)
    assert (one["finding"], one["line"], one["of"], one["share"]) == ("called-library", 7, "instructions", 0.6)
    assert said in one["message"]
    assert "60 % of its warp instructions" in one["message"]
    assert advised in one["advice"]


def test_other_functions_are_no_finding() -> None:
    rows = [row("CALL", 7), row("DFMA", -1, -1, executed=3e6, file=""), row("BRA", 7)]
    assert not library("_Z5localff", rows)
    assert not library("__internal_accurate_pow", [*rows, row("BRA", 7, executed=1e9)])


def library(name: str, rows: list[Row]) -> list[Row]:
    """The findings on the function of the second row, which the first calls."""
    columns = {
        one.name: [line.get(one.name, {"str": "", "float": math.nan, "int": 0}[one.dtype]) for line in rows]
        for one in INSTRUCTIONS
        if one not in WHERE
    }
    stalls: dict[str, list[Any]] = {"function": [], "offset": [], "reason": [], "samples": []}
    table = findings(
        columns | {"samples": [math.nan] * len(rows)}, stalls, loops_of(rows), About(), [Called(name, np.array([1]), [0])]
    )
    told = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return [one for one in told if one["finding"] == "called-library"]
