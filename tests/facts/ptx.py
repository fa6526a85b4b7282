"""PTX of every tensor shape and type, of scalar and packed arithmetic, a kernel for each, and what work it states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
BITS |= dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), 8)
"""Bits of an element in registers; FP6 and FP4 stand in bytes except in the MX kinds of FP4 alone."""

FP8, FP6FP4 = ("e4m3", "e5m2"), ("e3m2", "e2m3", "e2m1")
FRAME = "(frame)"
"""Name of the case that does nothing."""
LANES = 32 * 32
"""Bits of one 32-bit register of a warp."""


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
        name = f"x{self._count}"
        self.lines.append(f".reg .{kind} {name};")
        return name

    def loaded(self, kind: str) -> str:
        name = self.register(kind)
        self.lines.append(f"ld.global.{kind} {name}, [in+{8 * self._count}];")
        return name

    def many(self, kind: str, count: float) -> list[str]:
        return [self.loaded(kind) for _ in range(round(count))]

    def store(self, kind: str, names: list[str]) -> None:
        self.lines += [f"st.global.{kind} [out+{8 * index}], {name};" for index, name in enumerate(names)]

    def text(self) -> str:
        return "\n".join(self.lines)


def _braces(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _kind(element: str) -> str:
    return "f64" if element == "f64" else "f32" if element == "f32" else "b32"


def _matrices(
    ptx: str, counts: tuple[float, float, float], types: tuple[str, str, str], after: str = "", added: str = ""
) -> str:
    """The body of a warp-wide product of matrices in registers; ``counts`` of 32-bit registers of A, B and D."""
    body = _Body()
    words = 2 if types[0] == "f64" else 1
    source, kind = "f64" if words == 2 else "b32", _kind(types[2])
    a, b = (body.many(source, count / words) for count in counts[:2])
    added = added or types[2]
    c = body.many(_kind(added), counts[2] / words * BITS[added] / BITS[types[2]])
    d = [body.register(kind) for _ in range(round(counts[2] / words))]
    extra = "".join(f", {body.loaded('b32') if word == 'REG' else word}" for word in after.split("; ") if word)
    body.lines.append(f"{ptx} {_braces(d)}, {_braces(a)}, {_braces(b)}, {_braces(c)}{extra};")
    body.store(kind, d)
    return body.text()


def _mma(
    shape: tuple[int, int, int],
    types: tuple[str, str, str],
    *,
    sparse: str = "",
    words: str = "",
    end: str = "",
    after: str = "",
    bits: int = 0,
    added: str = "",
) -> Case:
    """``added``: type of C where it is not that of D."""
    m, n, k = shape
    a, b, accumulator = types
    name = f"mma{sparse}.sync.aligned.m{m}n{n}k{k}.row.col{words}.{accumulator}.{a}.{b}.{added or accumulator}{end}"
    width = bits or BITS[a]
    counts = m * k * width / LANES / (2 if sparse else 1), n * k * width / LANES, m * n * BITS[accumulator] / LANES
    copies = 4 if shape == (8, 8, 4) and a == "f16" else 1  # one product for each quad pair of the warp
    if copies > 1:
        counts = (2, 2, 8 if accumulator == "f32" else 4)
    extra = ("REG; 0x0; " if sparse else "") + after
    body = _matrices(name, counts, (a, b, accumulator), extra, added)
    return Case(name, body, "mma", 2.0 * m * n * k * copies, (a, b), accumulator, bool(sparse))


def _dense() -> Iterator[Case]:
    for accumulator in ("f16", "f32"):
        for k, m in ((4, 8), (8, 16), (16, 16)):
            yield _mma((m, 8, k), ("f16", "f16", accumulator))
    yield _mma((8, 8, 4), ("f16", "f16", "f32"), added="f16")
    for k in (8, 16):
        yield _mma((16, 8, k), ("bf16", "bf16", "f32"))
    for k in (4, 8):
        yield _mma((16, 8, k), ("tf32", "tf32", "f32"))
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        yield _mma((m, 8, k), ("f64", "f64", "f64"))
    for bits, kinds in ((8, ("s8", "u8")), (4, ("s4", "u4"))):
        for (m, k), a, b in product(((8, 128), (16, 128), (16, 256)), kinds, kinds):
            yield _mma((m, 8, k // bits), (a, b, "s32"))
            if a == b:
                yield _mma((m, 8, k // bits), (a, b, "s32"), words=".satfinite")
    for (m, k), operation in product(((8, 128), (16, 128), (16, 256)), (".xor.popc", ".and.popc")):
        yield _mma((m, 8, k), ("b1", "b1", "s32"), end=operation)
    for k, a, b, accumulator in product((16, 32), FP8, FP8, ("f16", "f32")):
        yield _mma((16, 8, k), (a, b, accumulator))


def _sparse() -> Iterator[Case]:
    for word in (".sp", ".sp::ordered_metadata"):
        for k, a, accumulator in product((16, 32), ("f16", "bf16"), ("f16", "f32")):
            if (a, accumulator) != ("bf16", "f16"):
                yield _mma((16, 8, k), (a, a, accumulator), sparse=word)
        for k in (8, 16):
            yield _mma((16, 8, k), ("tf32", "tf32", "f32"), sparse=word)
        for bits, kinds in ((8, ("s8", "u8")), (4, ("s4", "u4"))):
            for k, a, b in product((256, 512), kinds, kinds):
                yield _mma((16, 8, k // bits), (a, b, "s32"), sparse=word)
        for a, b, accumulator in product(FP8, FP8, ("f16", "f32")):
            yield _mma((16, 8, 64), (a, b, accumulator), sparse=word)


def _narrow() -> Iterator[Case]:
    """FP8, FP6 and FP4 of the kinds that came with 12.0, without and with block scales, dense and sparse."""
    every = FP8 + FP6FP4
    scales = "REG; {0, 0}; REG; {0, 0}"
    for sparse in ("", ".sp::ordered_metadata"):
        k = 64 if sparse else 32
        for a, b, accumulator in product(every, every, ("f16", "f32")):
            yield _mma((16, 8, k), (a, b, accumulator), sparse=sparse, words=".kind::f8f6f4")
        for a, b in product(every, every):
            words = ".kind::mxf8f6f4.block_scale.scale_vec::1X"
            yield _mma((16, 8, k), (a, b, "f32"), sparse=sparse, words=words, end=".ue8m0", after=scales)
        for kind, vector, scale in (("mxf4", 2, "ue8m0"), ("mxf4nvf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")):
            words = f".kind::{kind}.block_scale.scale_vec::{vector}X"
            types = ("e2m1", "e2m1", "f32")
            yield _mma((16, 8, 2 * k), types, sparse=sparse, words=words, end=f".{scale}", after=scales, bits=4)


def _wmma(shape: tuple[int, int, int], types: tuple[str, str, str], end: str = "", added: str = "") -> Case:
    m, n, k = shape
    a, b, c = types
    between = f"{c}.{added or c}" if a == "f16" else f"{c}.{a}.{b}.{c}"
    operation, _, saturate = end.partition("|")
    name = f"wmma.mma{operation}.sync.aligned.row.col.m{m}n{n}k{k}.{between}{saturate}"
    counts = (m * k * BITS[a] / LANES, n * k * BITS[b] / LANES, m * n * BITS[c] / LANES)
    if a == "f16":
        counts = (8, 8, counts[2])
    accumulator = max(c, added) if added else c  # f16 and f32: products are added in the wider of the two
    return Case(name, _matrices(name, counts, types, "", added), "mma", 2.0 * m * n * k, (a, b), accumulator)


def _warp_matrices() -> Iterator[Case]:
    shapes = ((16, 16, 16), (8, 32, 16), (32, 8, 16))
    for shape in shapes:
        yield _wmma(shape, ("f16", "f16", "f16"))
        yield _wmma(shape, ("f16", "f16", "f32"))
        yield _wmma(shape, ("f16", "f16", "f32"), added="f16")
        yield _wmma(shape, ("f16", "f16", "f16"), added="f32")
        yield _wmma(shape, ("bf16", "bf16", "f32"))
        yield _wmma(shape, ("s8", "s8", "s32"))
        yield _wmma(shape, ("u8", "u8", "s32"), "|.satfinite")
    yield _wmma((16, 16, 8), ("tf32", "tf32", "f32"))
    for rounding in ("", ".rz", ".rm", ".rp"):
        yield _wmma((8, 8, 4), ("f64", "f64", "f64"), f"|{rounding}")
    yield _wmma((8, 8, 32), ("s4", "s4", "s32"))
    yield _wmma((8, 8, 32), ("u4", "u4", "s32"))
    yield _wmma((8, 8, 128), ("b1", "b1", "s32"), ".xor.popc")
    yield _wmma((8, 8, 128), ("b1", "b1", "s32"), ".and.popc")


def _wgmma(n: int, types: tuple[str, str, str], *, sparse: bool = False, registers: bool = False) -> Case:
    a, b, accumulator = types
    k = 256 // BITS[a] * (2 if sparse else 1)
    end = ".and.popc" if a == "b1" else ""
    name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}.{accumulator}.{a}.{b}{end}"
    body = _Body()
    kind = _kind(accumulator)
    d = body.many(kind, 64 * n * BITS[accumulator] / LANES / 4)
    left = _braces(body.many("b32", 4)) if registers else body.loaded("b64")
    right = body.loaded("b64")
    meta = f", {body.loaded('b32')}, 0" if sparse else ""
    scales = "" if accumulator == "s32" else ", 1, 1"
    turned = (", 0" if registers else ", 0, 0") if a in ("f16", "bf16") else ""
    body.lines += ["wgmma.fence.sync.aligned;", f"{name} {_braces(d)}, {left}, {right}{meta}, 1{scales}{turned};"]
    body.lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    body.store(kind, d)
    shown = name + (" A in registers" if registers else "")
    return Case(shown, body.text(), "wgmma", 2.0 * 64 * n * k, (a, b), accumulator, sparse)


def _warpgroups() -> Iterator[Case]:
    floats = [("f16", "f16", "f16"), ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32")]
    floats += [(a, b, c) for a, b, c in product(FP8, FP8, ("f16", "f32"))]
    integers = [(a, b, "s32") for a, b in product(("s8", "u8"), ("s8", "u8"))]
    few = (8, 16, 24, *range(32, 257, 16))
    for sparse in (False, True):
        for types in floats:
            every = types[0] == types[1] and types[0] != "e5m2"
            for n in range(8, 257, 8) if every else (8, 256):
                yield _wgmma(n, types, sparse=sparse)
        for types in integers:
            for n in few if types[0] == types[1] == "s8" else (8, 256):
                yield _wgmma(n, types, sparse=sparse)
        for types in (*floats[:5], integers[0]):
            yield _wgmma(64, types, sparse=sparse, registers=True)
    for n in few:
        yield _wgmma(n, ("b1", "b1", "s32"))


def _tcgen05() -> Iterator[Case]:
    scaled = ("mxf8f6f4", "mxf4", "mxf4nvf4")
    for kind, sparse, group in product(("f16", "tf32", "f8f6f4", "i8", *scaled), ("", ".sp"), (1, 2)):
        scale = ".block_scale" + (".scale_vec::4X" if kind == "mxf4nvf4" else "") if kind in scaled else ""
        name = f"tcgen05.mma{sparse}.cta_group::{group}.kind::{kind}{scale}"
        body = _Body()
        body.lines += [".reg .pred yes;", "setp.ne.b32 yes, one, 0;"]
        d, a, b = body.loaded("b32"), body.loaded("b64"), body.loaded("b64")
        meta = f", [{body.loaded('b32')}]" if sparse else ""
        descriptor = body.loaded("b32")
        factors = f", [{body.loaded('b32')}], [{body.loaded('b32')}]" if scale else ""
        body.lines.append(f"{name} [{d}], {a}, {b}{meta}, {descriptor}{factors}, yes;")
        yield Case(name, body.text(), "tcgen05", 0, (kind,), "", bool(sparse))


def _simple(
    ptx: str, kind: str, sources: int, work: float, types: tuple[str, ...], *, result: str = "", mixed: str = ""
) -> Case:
    """``sources`` registers of ``kind`` (the last of them ``mixed``, if given) into one of ``result``."""
    body = _Body()
    kinds = [kind] * sources
    if mixed:
        kinds[-1] = mixed
    given = [body.loaded(each) for each in kinds]
    d = body.register(result or kind)
    body.lines.append(f"{ptx} {', '.join([d, *given])};")
    body.store(result or kind, [d])
    return Case(ptx, body.text(), "", work, types)


def _floating_point() -> Iterator[Case]:
    for kind, wide, words in (("f32", 1, ("", ".ftz")), ("f64", 1, ("",)), ("b16", 1, ("",)), ("b32", 2, ("",))):
        for name in {"f32": ("f32",), "f64": ("f64",), "b16": ("f16", "bf16"), "b32": ("f16x2", "bf16x2")}[kind]:
            yield from (_simple(f"add.rn{word}.{name}", kind, 2, wide, (name,)) for word in words)
            yield from (_simple(f"sub.rn{word}.{name}", kind, 2, wide, (name,)) for word in words)
            yield from (_simple(f"mul.rn{word}.{name}", kind, 2, wide, (name,)) for word in words)
            yield from (_simple(f"fma.rn{word}.{name}", kind, 3, 2 * wide, (name,)) for word in words)
    for name, sources, work in (("add", 2, 2), ("mul", 2, 2), ("fma", 3, 4)):
        yield _simple(f"{name}.rn.f32x2", "b64", sources, work, ("f32x2",))
    for half in ("f16", "bf16"):
        yield _simple(f"fma.rn.f32.{half}", "b16", 3, 2, (f"f32.{half}",), result="f32", mixed="f32")
        yield _simple(f"add.rn.f32.{half}", "b16", 2, 1, (f"f32.{half}",), result="f32", mixed="f32")
        yield _simple(f"cvt.f32.{half}", "b16", 1, 0, ("conversion",), result="f32")
    for name, kind in (("f32", "f32"), ("f64", "f64"), ("f16", "b16"), ("f16x2", "b32"), ("bf16x2", "b32")):
        yield _simple(f"min.{name}", kind, 2, 0, ("none",))
        yield _simple(f"max.{name}", kind, 2, 0, ("none",))
    for name in ("rcp.approx.ftz", "sqrt.approx.ftz", "lg2.approx.ftz", "ex2.approx.ftz", "tanh.approx", "cvt.rni.f32"):
        yield _simple(f"{name}.f32", "f32", 1, 0, ("none",))
    yield _simple("cvt.rn.f16.f32", "f32", 1, 0, ("none",), result="b16")
    yield _simple("cvt.f64.f32", "f32", 1, 0, ("none",), result="f64")
    for kind in ("f32", "f64"):
        yield _simple(f"set.lt.u32.{kind}", kind, 2, 0, ("none",), result="b32")
    yield _simple("set.lt.u32.f16x2", "b32", 2, 0, ("none",))


def _integers() -> Iterator[Case]:
    one = ("int32",)
    for name in ("add.s32", "sub.s32", "mul.lo.s32", "mul.hi.s32", "mul.hi.u32", "min.s32", "max.u32", "and.b32", "or.b32"):
        yield _simple(name, "b32", 2, 1, one)
    for name in ("xor.b32", "shl.b32", "shr.u32", "shr.s32"):
        yield _simple(name, "b32", 2, 1, one)
    for name in ("not.b32", "popc.b32", "clz.b32", "bfind.s32", "brev.b32", "abs.s32", "neg.s32"):
        yield _simple(name, "b32", 1, 1, one)
    for name in ("mad.lo.s32", "mad.hi.u32", "dp4a.s32.s32", "dp4a.u32.u32", "dp2a.lo.s32.s32", "sad.s32", "shf.l.wrap.b32"):
        yield _simple(name, "b32", 3, 1, one)
    yield _simple("bfe.u32", "b32", 3, 1, one)
    yield _simple("prmt.b32", "b32", 3, 0, ("none",))
    yield _simple("mul.wide.s32", "b32", 2, 1, one, result="b64")
    yield _simple("mad.wide.u32", "b32", 3, 1, one, result="b64", mixed="b64")
    for name in ("add.s64", "sub.s64", "mul.lo.s64", "and.b64"):
        yield _simple(name, "b64", 2, 1, one)
    for name in ("add.u16x2", "min.s16x2"):
        yield _simple(name, "b32", 2, 1, one)
    yield _simple("set.lt.u32.s32", "b32", 2, 0, ("none",))


def cases() -> list[Case]:
    """All of them, after one that only loads and stores; which ones a chip takes, its assembler says."""
    frame = _Body()
    frame.store("b32", [frame.loaded("b32")])
    groups = (
        [Case(FRAME, frame.text(), "", 0, ())],
        _dense(),
        _sparse(),
        _narrow(),
        _warp_matrices(),
        _warpgroups(),
        _tcgen05(),
        _floating_point(),
        _integers(),
    )
    return [case for group in groups for case in group]


def module(version: str, target: str, chosen: list[Case]) -> str:
    """The text of a module with one kernel, ``k<index>``, for each case; line numbers of errors find the case by its kernel."""
    kernels = [
        f".visible .entry k{index}(.param .u64 p, .param .u64 q, .param .u32 r)\n{{\n.reg .b64 in, out;\n.reg .b32 one;\n"
        f"ld.param.u64 in, [p];\nld.param.u64 out, [q];\nld.param.u32 one, [r];\n{case.body}\nret;\n}}"
        for index, case in enumerate(chosen)
    ]
    return f".version {version}\n.target {target}\n.address_size 64\n" + "\n".join(kernels) + "\n"
