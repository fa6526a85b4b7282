"""PTX of every tensor shape and type, of scalar and packed arithmetic: a kernel for each, and the work that its name states.

The tensor instructions are those recorded in ``opcodes.json``, the others those of ``ptx.toml``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ncu_roofline.chips.fields import expand
from tests.facts.stated import toml

FOLDER = Path(__file__).parent
BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
BITS |= dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), 8)
"""Bits of an element in registers; FP6 and FP4 stand in bytes except in the MX kinds of FP4 alone."""

FP8, FP6FP4 = ("e4m3", "e5m2"), ("e3m2", "e2m3", "e2m1")
FRAME = "(frame)"
"""Name of the case that does nothing."""
LANES = 32 * 32
"""Bits of one 32-bit register of a warp."""
_IN_REGISTERS = " A in registers"
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")


@dataclass(frozen=True)
class Case:
    """One PTX instruction.

    ``work``: operations, of a warp for mma and wmma, of a warpgroup for wgmma, of a thread for arithmetic, 0 where none or
    unknown.  ``family``: "mma", "wgmma", "tcgen05" or "" for arithmetic.  ``body``: what its kernel does.
    """

    ptx: str
    body: str
    family: str
    work: float
    types: tuple[str, ...]
    accumulator: str = ""
    sparse: bool = False


class _Body:
    """Registers with unknown contents, and stores of what an instruction gives."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def register(self, kind: str) -> str:
        self._count += 1
        self.lines.append(f".reg .{kind} x{self._count};")
        return f"x{self._count}"

    def loaded(self, kind: str) -> str:
        name = self.register(kind)
        self.lines.append(f"ld.global.{kind} {name}, [in+{8 * self._count}];")
        return name

    def many(self, kind: str, count: float) -> str:
        """So many, in braces."""
        return _braces([self.loaded(kind) for _ in range(round(count))])

    def store(self, kind: str, names: list[str]) -> None:
        self.lines += [f"st.global.{kind} [out+{8 * index}], {name};" for index, name in enumerate(names)]


def _braces(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _kind(element: str) -> str:
    return element if element in ("f64", "f32") else "b32"


def _product(ptx: str, shape: tuple[int, int, int], types: list[str]) -> Case:
    """A warp's product of matrices in registers (mma, wmma): types of D, A, B and C."""
    (m, n, k), (d, a, b, c), body = shape, types, _Body()
    sparse, quads, wmma = ".sp" in ptx, shape == (8, 8, 4) and types[1] == "f16", ptx.startswith("wmma")
    width = 4 if "::mxf4" in ptx else BITS[a]
    of_a, of_b, of_d = (size * bits / LANES for size, bits in ((m * k, width), (n * k, width), (m * n, BITS[d])))
    if quads:  # one product for each quad pair of the warp
        of_a, of_b, of_d = 2, 2, 8 if d == "f32" else 4
    elif wmma and a == "f16":
        of_a = of_b = 8
    words, source = (2, "f64") if a == "f64" else (1, "b32")
    left, right = body.many(source, of_a / (1 + sparse) / words), body.many(source, of_b / words)
    added = body.many(_kind(c), of_d / words * BITS[c] / BITS[d])
    given = [body.register(_kind(d)) for _ in range(round(of_d / words))]
    after = ["REG", "0x0"] * sparse + ["REG", "{0, 0}", "REG", "{0, 0}"] * ("block_scale" in ptx)
    extra = "".join(f", {body.loaded('b32') if word == 'REG' else word}" for word in after)
    body.lines.append(f"{ptx} {_braces(given)}, {left}, {right}, {added}{extra};")
    body.store(_kind(d), given)
    wider = max(c, d) if wmma else d  # f16 and f32: wmma adds products in the wider of the two
    return Case(ptx, "\n".join(body.lines), "mma", 2.0 * m * n * k * (4 if quads else 1), (a, b), wider, sparse)


def _warpgroup(shown: str, shape: tuple[int, int, int], types: list[str]) -> Case:
    (_, n, k), (d, a, b), body = shape, types, _Body()
    ptx, sparse, registers = shown.removesuffix(_IN_REGISTERS), ".sp" in shown, shown.endswith(_IN_REGISTERS)
    given = [body.loaded(_kind(d)) for _ in range(round(64 * n * BITS[d] / LANES / 4))]
    left = body.many("b32", 4) if registers else body.loaded("b64")
    right = body.loaded("b64")
    meta = f", {body.loaded('b32')}, 0" if sparse else ""
    scales = "" if d == "s32" else ", 1, 1"
    turned = (", 0" if registers else ", 0, 0") if a in ("f16", "bf16") else ""
    body.lines += ["wgmma.fence.sync.aligned;", f"{ptx} {_braces(given)}, {left}, {right}{meta}, 1{scales}{turned};"]
    body.lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    body.store(_kind(d), given)
    return Case(shown, "\n".join(body.lines), "wgmma", 2.0 * 64 * n * k, (a, b), d, sparse)


def _descriptors(ptx: str) -> Case:
    """A product of tcgen05, whose shape is in a descriptor."""
    body, sparse = _Body(), ".sp" in ptx
    body.lines += [".reg .pred yes;", "setp.ne.b32 yes, one, 0;"]
    d, a, b = body.loaded("b32"), body.loaded("b64"), body.loaded("b64")
    meta = f", [{body.loaded('b32')}]" if sparse else ""
    descriptor = body.loaded("b32")
    factors = f", [{body.loaded('b32')}], [{body.loaded('b32')}]" if "block_scale" in ptx else ""
    body.lines.append(f"{ptx} [{d}], {a}, {b}{meta}, {descriptor}{factors}, yes;")
    return Case(ptx, "\n".join(body.lines), "tcgen05", 0, (ptx.partition("kind::")[2].partition(".")[0],), "", sparse)


def _tensor(ptx: str) -> Case:
    if ptx.startswith("tcgen05"):
        return _descriptors(ptx)
    found = _SHAPE.search(ptx)
    assert found
    m, n, k = map(int, found.groups())
    types = [word for word in ptx.removesuffix(_IN_REGISTERS)[found.end() :].split(".") if word in BITS]
    if ptx.startswith("wgmma"):
        return _warpgroup(ptx, (m, n, k), types)
    d, *others = types
    return _product(ptx, (m, n, k), types if len(types) == 4 else [d, "f16", "f16", *others])


def _simple(ptx: str, kind: str, sources: int, work: float, of: str, result: str = "", mixed: str = "") -> Case:
    body = _Body()
    given = [body.loaded(each) for each in [*[kind] * (sources - 1), mixed or kind]]
    d = body.register(result or kind)
    body.lines.append(f"{ptx} {', '.join([d, *given])};")
    body.store(result or kind, [d])
    return Case(ptx, "\n".join(body.lines), "", work, (of,))


@cache
def cases() -> list[Case]:
    """All of them, after one that only loads and stores; which ones a chip takes, its assembler says."""
    frame = _Body()
    frame.store("b32", [frame.loaded("b32")])
    record = json.loads((FOLDER / "opcodes.json").read_text(encoding="utf-8"))["opcodes"]
    tensor = [ptx for ptx in record if ptx.startswith(("mma", "wmma", "wgmma", "tcgen05"))]
    rows = toml(FOLDER / "ptx.toml")["rows"]
    scalar = [_simple(**{**row, "ptx": ptx}) for row in rows for ptx in expand(row["ptx"])]
    return [Case(FRAME, "\n".join(frame.lines), "", 0, ()), *map(_tensor, tensor), *scalar]


def module(version: str, target: str, chosen: list[Case]) -> str:
    """The text of a module with one kernel, ``k<index>``, for each case; line numbers of errors find the case by its kernel."""
    kernels = [
        f".visible .entry k{index}(.param .u64 p, .param .u64 q, .param .u32 r)\n{{\n.reg .b64 in, out;\n.reg .b32 one;\n"
        f"ld.param.u64 in, [p];\nld.param.u64 out, [q];\nld.param.u32 one, [r];\n{case.body}\nret;\n}}"
        for index, case in enumerate(chosen)
    ]
    return f".version {version}\n.target {target}\n.address_size 64\n" + "\n".join(kernels) + "\n"
