"""Reports of the kernels of `tests.sass.kernels` with made-up counts: of warps whose loops go round a known number of times.

A warp is walked through the code of a kernel: it takes a jump back until a loop has gone round ``trips`` times, and no other
jump that depends on a predicate; a loop whose only way out is such a jump leaves by it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncu_roofline.formats.report import Code, CodeFunction, ImportedFile
from ncu_roofline.formats.sass.cubin import Cubin, Function
from ncu_roofline.formats.sass.instructions import Flow, Instruction, Loop, control_flow, decode
from tests import factory
from tests.sass import fixtures

BASE = 0x7F0000000000
WARPS = 8
COUNTED = {  # metric -> the accesses that count, or all instructions, and how often an execution does
    "inst_executed": ("", 1),
    "thread_inst_executed": ("", 32),
    "thread_inst_executed_true": ("", 32),
    "memory_l2_theoretical_sectors_global": ("global", 8),
    "memory_l2_theoretical_sectors_global_ideal": ("global", 4),
    "memory_l1_wavefronts_shared": ("shared", 2),
    "memory_l1_wavefronts_shared_ideal": ("shared", 1),
    "smsp__pcsamp_sample_count": ("", 3),
    "smsp__pcsamp_warps_issue_stalled_wait": ("", 2),
    "smsp__pcsamp_warps_issue_stalled_selected": ("", 1),
    "smsp__pcsamp_warps_issue_stalled_wait_not_issued": ("", 1),
    "smsp__pcsamp_warps_issue_stalled_selected_not_issued": ("", 0),
}
_DEVICES = {
    "75": ("Tesla T4", 7, 5),
    "80": ("NVIDIA A100-SXM4-40GB", 8, 0),
    "86": ("NVIDIA GeForce RTX 3090", 8, 6),
    "89": ("NVIDIA GeForce RTX 4090", 8, 9),
    "90": ("NVIDIA H100 PCIe", 9, 0),
    "100": ("NVIDIA B200", 10, 0),
    "120": ("NVIDIA GeForce RTX 5090", 12, 0),
}


@dataclass
class Walk:
    """What a warp did: executions by offset; entries and rounds by the offset of a loop's header."""

    executed: Counter[int] = field(default_factory=Counter)
    entered: Counter[int] = field(default_factory=Counter)
    rounds: Counter[int] = field(default_factory=Counter)


def walk(instructions: tuple[Instruction, ...], flow: Flow, trips: int) -> Walk:
    """Walk a warp from the first instruction to an exit."""
    done, left, stack = Walk(), dict[int, int](), list[int]()
    headers = {loop.header: loop for loop in flow.loops}
    here = before = 0
    for _ in range(100_000):
        one = instructions[here // 16]
        if here in headers:
            _arrive(headers[here], flow, before, done, left, trips)
        done.executed[here] += 1
        before, here = here, here + 16
        if one.flow == "exit" and not one.guarded:
            return done
        if one.flow == "call" and one.target is not None:
            stack.append(here)
            here = one.target
        elif one.flow == "return" and not one.guarded:
            here = stack.pop()
        elif one.flow == "branch" and one.target is not None and (not one.guarded or _taken(one, flow, headers, left)):
            here = one.target
    raise AssertionError("the walk has no end")


def _arrive(loop: Loop, flow: Flow, before: int, done: Walk, left: dict[int, int], trips: int) -> None:
    if flow.block_of[before // 16] in loop.blocks and done.executed[before]:
        left[loop.header] -= 1
    else:
        done.entered[loop.header] += 1
        left[loop.header] = trips - 1
    done.rounds[loop.header] += 1


def _taken(one: Instruction, flow: Flow, headers: dict[int, Loop], left: dict[int, int]) -> bool:
    """Whether a warp takes a jump that depends on a predicate."""
    if one.target in headers and flow.block_of[one.offset // 16] in headers[one.target].blocks:
        return left[one.target] > 0
    around = flow.loop_of[one.offset // 16]
    if around < 0:
        return False
    loop = flow.loops[around]
    leaves = flow.block_of[(one.target or 0) // 16] not in loop.blocks
    return leaves and left.get(loop.header, 1) <= 0


def functions(chip: str, name: str = "linked") -> dict[str, Function]:
    """The functions of a cubin by mangled name."""
    return dict(Cubin(fixtures.cubin(chip, name)).functions)


def counts(function: Function, trips: int) -> tuple[Walk, dict[str, list[float]]]:
    """A walk through a function, and metrics with a value for each of its instructions."""
    instructions = decode(function.code, function.capability)
    found = walk(instructions, control_flow(instructions), trips)
    executed = [float(WARPS * found.executed[one.offset]) for one in instructions]
    kinds = [
        ("shared" if one.name in ("LDS", "STS") else "global" if one.name in ("LDG", "STG") else "") for one in instructions
    ]
    return found, {
        name: [factor * number if kind in ("", mine) else 0.0 for mine, number in zip(kinds, executed, strict=True)]
        for name, (kind, factor) in COUNTED.items()
    }


def made_report(
    path: Path, chip: str, mangled: str, *, trips: int = 5, name: str = "linked", code: Code | None = None, samples: float = 0,
    scalars: factory.Metrics | None = None, **extra: Any,
) -> Path:  # fmt: skip
    """A report of one launch of a kernel, of a millisecond; ``extra``: instances that replace others, None for none.

    ``samples``: what its counter of samples says, unless that is the sum of those that are not replaced; ``scalars``: more
    values.
    """
    function = functions(chip, name)[mangled]
    _, metrics = counts(function, trips)
    executed, sums = Counter[str](), {metric: sum(values) for metric, values in metrics.items()}
    for one, number in zip(decode(function.code, function.capability), metrics["inst_executed"], strict=True):
        executed[one.opcode] += number
    threads = [(opcode, 32 * number) for opcode, number in executed.items()]
    listed = {**factory.by_address(BASE, **metrics), factory.WARPS: list(executed.items()), factory.THREADS: threads, **extra}
    known = {
        **device(chip),
        **factory.timing(),
        "l1tex__t_bytes.sum": 32 * sums["memory_l2_theoretical_sectors_global"],
        "memory_l2_theoretical_sectors_local": 0,  # counted, and nowhere
        "smsp__inst_executed.sum": sums["inst_executed"],
        "smsp__pcsamp_sample_count": int(samples or sums["smsp__pcsamp_sample_count"]),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": sums["memory_l2_theoretical_sectors_global"],
        **(scalars or {}),
    }
    told = {"code": code or code_of(chip, mangled, name), "instances": {n: v for n, v in listed.items() if v is not None}}
    return factory.report(path, factory.kernel(known, f"void {mangled}(int)", mangled_name=mangled, **told))


def device(chip: str) -> factory.Metrics:
    """What a report says of a GPU of the chip."""
    about = zip(("display_name", "compute_capability_major", "compute_capability_minor"), _DEVICES[chip], strict=True)
    return factory.A100 | {f"device__attribute_{name}": value for name, value in about}


def code_of(chip: str, mangled: str, name: str = "linked", *, texts: bool = True) -> Code:
    """What a report says about the module of a kernel at address BASE."""
    files = tuple(ImportedFile(file, text) for file, text in fixtures.sources().items()) if texts else ()
    return Code(fixtures.cubin(chip, name), files, (CodeFunction(mangled, BASE),))
