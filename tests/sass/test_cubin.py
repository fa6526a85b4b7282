"""Functions of cubins and what they call; damaged or hostile files, and such as are larger than compilers make them."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.formats.sass import CodeError, line_program
from ncu_roofline.formats.sass import cubin as module
from ncu_roofline.formats.sass.cubin import Cubin, Elf, Function, Reach, jump_tables, module_of
from ncu_roofline.formats.sass.instructions import FLOWS, decode
from ncu_roofline.formats.sass.line_program import Texts
from tests.counted import steps
from tests.sass.fixtures import NAMES, cubin
from tests.sass.made import EXIT, NOTES, made_cubin

_SECTION = struct.Struct("<IIQQQQIIQQ")
_ROW = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "each")
_TABLE, _COUNT = 40, 60  # where the header has the place of the section table and its length
CALLER, APART, STENCIL = "_Z6callerPfi", "_Z5apartfi", "_Z7stencilPKfPfi"
INLINED, LINKED = cubin("80", "inlined"), cubin("80")


@pytest.mark.parametrize(
    ("abi", "flags", "capability"),
    [
        ((0x33, 7), 0x500550, (8, 0)),
        ((0x41, 8), 0x6005704, (8, 7)),
        ((0x41, 8), 0x6005A04, (9, 0)),  # 90a
        ((0x41, 8), 0x6006402, (10, 0)),  # 100a, 100f
        ((0x41, 8), 0x6006E02, (11, 0)),
        ((0x41, 8), 0x6007902, (12, 1)),
        ((0x42, 9), 0x5004, None),
    ],
)
def test_capability(abi: tuple[int, int], flags: int, capability: tuple[int, int] | None) -> None:
    data = bytearray(LINKED)
    data[7:9] = abi
    struct.pack_into("<I", data, 48, flags)
    assert Cubin(bytes(data)).capability == capability


def test_calls_functions_inside_and_what_code_can_come_to() -> None:
    linked = Cubin(LINKED)
    calls = {name: {callee for _, callee in each.calls} for name, each in linked.functions.items()}
    assert APART in calls[CALLER]
    assert any("near" in name for name in calls[CALLER])
    assert calls["_Z8pointersPfi"] == {"vprintf"}
    slow_paths = {name for each in calls.values() for name in each if "div_rn" in name}
    assert slow_paths == {"__cuda_sm3x_div_rn_noftz_f32_slowpath", "__cuda_sm3x_div_rn_noftz_f32_slowpath__1"}
    assert slow_paths < linked.functions.keys()
    (kernel,) = Cubin(cubin("80", "local")).functions.values()
    local, slow_path = kernel.inside
    assert "_Z5localff" in local[2]
    assert local[0] + local[1] == slow_path[0]
    assert slow_path[0] + slow_path[1] <= len(kernel.code)
    assert not kernel.calls
    reach = Reach(linked, {"HFMA2"})
    assert {CALLER, APART} < (reach.within(CALLER) or set())
    assert (reach.within(APART), reach.within(STENCIL)) == ({APART}, {STENCIL})
    assert Reach(Cubin(cubin("120")), {"HFMA2"}).within("_Z8pointersPfi") is None  # a call that tells nothing
    with pytest.raises(KeyError):
        reach.within("nothing")
    for function in linked.functions.values():  # only what is asked for is decoded
        every = decode(function.code, function.capability)
        some = tuple(one for one in every if one.name == "HFMA2" or one.flow in FLOWS.values())
        assert decode(function.code, function.capability, {"HFMA2"}) == some
    assert [one.name for one in decode(b"\x0e\x70" + bytes(14), (8, 0), {"HFMA2"})] == ["op 0x00e"]
    again = module_of(bytes(bytearray(LINKED)))
    assert module_of(LINKED) is again
    assert again.body(STENCIL).instructions is module_of(LINKED).body(STENCIL).instructions


def test_circles_end_and_very_many_functions_are_not_followed() -> None:
    call = (0x144 | 4 << 9 | 7 << 12 | 2**40).to_bytes(8, "little") + (7 << 23 | 2**14).to_bytes(8, "little")

    def reach(calls: dict[str, list[str]]) -> Reach:
        """Functions of one call after the other, ``CALL.REL`` to addresses that relocations fill in."""
        made = {name: tuple((16 * place, one) for place, one in enumerate(each)) for name, each in calls.items()}
        functions = {name: Function(name, call * len(each), (8, 0), calls=each) for name, each in made.items()}
        found: Any = SimpleNamespace(functions=functions)
        return Reach(found, ())

    assert reach({"a": ["b"], "b": ["a", "vprintf"]}).within("a") == {"a", "b"}
    chain = [f"f{number}" for number in range(200)]
    long = reach({one: [other] for one, other in pairwise(chain)} | {chain[-1]: []})
    assert long.within("f0") is None
    assert long.within("f150") == set(chain[150:])


def test_jump_tables() -> None:
    payload = struct.pack("<IIII", 16, 0, 1, 32)
    read = Cubin(made_cubin({"f": EXIT}, notes=struct.pack(NOTES, 4, 0x34, len(payload)) + payload))
    assert read.jump_tables("f") == {16: (32,)}
    table = bytes.fromhex("04341400 50010000 00000000 02000000 10020000 60010000")
    assert jump_tables(table) == {0x150: (0x210, 0x160)}
    assert jump_tables(table[:-4]) == jump_tables(bytes.fromhex("0434 0c00 50010000 00000000 ffffffff")) == {}

    def use(count: int) -> Callable[[], object]:
        many = Cubin(made_cubin({f"f{number}": EXIT for number in range(count)}))
        return lambda: [many.jump_tables(name) for name in many.functions]

    assert steps(use(400)) < 5 * steps(use(100))  # in proportion


# Damage.
def use(data: bytes) -> Cubin:
    """Everything that can be asked of a cubin."""
    read = Cubin(data)
    for name, function in read.functions.items():
        read.jump_tables(name)
        lines = read.lines(name)
        for offset in range(0, len(function.code), 16):
            lines.at(offset)
    return read


def changed(place: int, new: bytes) -> bytes:
    return INLINED[:place] + new + INLINED[place + len(new) :]


def with_section(data: bytes, name: str, **changes: int) -> bytes:
    """The file with other values in a section's row."""
    (table,) = struct.unpack_from("<Q", data, _TABLE)
    place = table + 64 * next(number for number, section in enumerate(Elf(data).sections) if section.name == name)
    row = dict(zip(_ROW, _SECTION.unpack_from(data, place), strict=True))
    return data[:place] + _SECTION.pack(*(row | changes).values()) + data[place + 64 :]


def with_lines(change: Callable[[bytearray], None]) -> bytes:
    """The file with a changed line table, behind everything else."""
    section = next(section for section in Elf(INLINED).sections if section.name == ".debug_line")
    content = bytearray(INLINED[section.offset : section.offset + section.size])
    change(content)
    return with_section(INLINED, ".debug_line", offset=len(INLINED), size=len(content)) + content


def field(form: str, place: int, value: int) -> bytes:
    """Another number in the header of the line table."""
    return with_lines(lambda line: struct.pack_into(f"<{form}", line, place, value))


def header(change: Callable[[bytearray], bytes]) -> bytes:
    """Other bytes at the end of the header of the line table."""

    def rewrite(line: bytearray) -> None:
        stop = 10 + struct.unpack_from("<I", line, 6)[0]
        line[stop - 40 : stop] = change(line[stop - 40 : stop])

    return with_lines(rewrite)


def program(*rows: int, insert: bool = False) -> bytes:
    """Other steps after the first address of the line program, or more of them."""

    def change(line: bytearray) -> None:
        start = 10 + struct.unpack_from("<I", line, 6)[0] + 11
        line[start : start if insert else start + len(rows)] = bytes(rows)
        struct.pack_into("<I", line, 0, len(line) - 4)

    return with_lines(change)


HUGE = (0xFF,) * 9 + (0x01,)
DEEP = [step for n in range(1, 10_000) for step in (0, 4, 0x90, n & 127 | 128, n >> 7, 0, 1)]  # each inlined at the one before


def hostile() -> dict[str, tuple[bytes, str]]:
    """Damaged cubins, and why they are refused."""
    return {
        "empty": (b"", "no 64-bit little-endian ELF"),
        "header": (INLINED[:40], "no 64-bit little-endian ELF"),
        "32 bits": (changed(4, b"\1"), "no 64-bit little-endian ELF"),
        "another machine": (changed(18, b"\x3e\0"), "NVIDIA"),
        "sections outside": (changed(40, b"\xff" * 8), "damaged or cut off"),
        "no count": (changed(60, b"\0\0"), "damaged or cut off"),
        "many sections": (changed(60, b"\xfe\xfe"), "cut off"),
        "no names": (changed(62, b"\xfe\xfe"), "damaged or cut off"),
        "symbols outside": (with_section(INLINED, ".symtab", offset=1 << 62), "outside"),
        "code outside": (with_section(INLINED, f".text.{STENCIL}", size=1 << 63), "outside"),
        "compressed": (with_section(INLINED, ".debug_line", flags=0x800), "compressed"),
        "strings missing": (with_section(INLINED, ".strtab", size=0), "cut off"),
        "odd table": (with_section(INLINED, ".symtab", size=25), "cut off"),
        "version 5": (field("H", 4, 5), "version 5"),
        "line range": (field("B", 13, 0), "damaged"),
        "opcode base": (field("B", 14, 0), "damaged"),
        "length": (field("I", 0, 0xFFFFFFFF), "cut off"),
        "header length": (field("I", 6, 1 << 31), "damaged"),
        "a folder that is not there": (header(lambda end: end.replace(b"shapes.h\0\1", b"shapes.h\0\x09")), "damaged"),
        "names without end": (header(lambda end: b"x" * len(end)), "cut off"),
        "constant advances": (program(*b"\x08" * 300, 1, insert=True), "outside the function"),
        "advance": (program(2, *HUGE, 1), "outside the function"),
        "long number": (program(2, *(0xFF,) * 12), "damaged"),
        "line": (program(3, *HUGE[:8], 0x3F, 1), "damaged"),
        "file": (program(4, 99, 1), "damaged"),
        "caller": (program(0, 3, 0x90, 9, 0, 1), "damaged"),
        "deep inlining": (program(1, *DEEP, insert=True), "inlined in each other"),
        "shared notes": (made_cubin({f"f{number}": EXIT for number in range(300)}, notes=bytes(10_000)), "on each other"),
    }


def test_hostile_cubins() -> None:
    def told(data: bytes) -> str:
        try:
            return f"nothing of {use(data)}"
        except CodeError as error:
            return str(error)

    assert {case: said for case, (data, reason) in hostile().items() if reason not in (said := told(data))} == {}


@pytest.mark.parametrize(
    ("where", "limit", "value", "reason"),
    [
        (module, "CUBIN_BYTES", 1000, "it has more than 1,000 bytes"),
        (module, "TABLE_ROWS", 10, "symbols, and no more than 10 are read"),
        (module, "TABLE_ROWS", 75, "relocations, and no more than 75 are read"),
        (line_program, "LINE_BYTES", 100, "more than 100 bytes of it would have to be run"),
        (module, "NOTE_BYTES", 100, "longer than 100 bytes"),
    ],
)
def test_more_than_any_module_has(where: object, limit: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, limit, value)
    with pytest.raises(CodeError, match=reason):
        use(LINKED)


def test_every_cut_is_told() -> None:
    (table,), (count,) = struct.unpack_from("<Q", INLINED, _TABLE), struct.unpack_from("<H", INLINED, _COUNT)
    for length in range(0, table + 64 * count, 41):
        with pytest.raises(CodeError):
            use(INLINED[:length])
    texts = Texts(b"name\0")
    assert texts.at(0) == "name"
    with pytest.raises(CodeError, match="cut off"):  # a name ends where its table does
        texts.at(0, 3)


def tried(data: bytes) -> None:
    """Nothing but CodeError may come of it."""
    with contextlib.suppress(CodeError):
        use(data)


PLACES = st.floats(0, 1, exclude_max=True)
CHANGES = st.lists(st.tuples(PLACES, st.binary(min_size=1, max_size=12)), min_size=1, max_size=4)


@given(CHANGES, st.sampled_from((*NAMES, "lines")))
def test_changed_bytes(changes: list[tuple[float, bytes]], name: str) -> None:
    def change(content: bytearray) -> None:
        for place, new in changes:
            start = int(place * (len(content) - 12))
            content[start : start + len(new)] = new

    if name == "lines":
        tried(with_lines(change))
        return
    data = bytearray(cubin("90", name))
    change(data)
    tried(bytes(data))


def made(names: bytes, sections: list[tuple[int, int, int, int, int]]) -> bytes:
    """A cubin of sections (place of the name, type, flags, offset, size); the first but one has the names, at byte 64."""
    rows = [(0, 0, 0, 0, 0), (0, 3, 0, 64, len(names)), *sections]
    table = b"".join(_SECTION.pack(name, kind, flags, 0, offset, size, 1, 0, 1, 24) for name, kind, flags, offset, size in rows)
    head = (b"\x7fELF\2\1\1\x41\x08".ljust(16, b"\0"), 2, 190, 1, 0, 0, 64 + len(names), 0x5004, 64, 0, 0, 64, len(rows), 1)
    return struct.pack("<16sHHIQQQIHHHHHH", *head) + names + table


def same_code() -> bytes:
    """60,000 functions that share a megabyte of code."""
    texts = [b".text.%d\0" % number for number in range(60_000)]
    places = [0]
    for text in texts[:-1]:
        places.append(places[-1] + len(text))
    return made(b"".join(texts) + b"\0" * 1_000_000, [(place, 1, 4, 64, 1_000_000) for place in places])


BOMBS: dict[str, Callable[[], bytes]] = {
    "names that overlap": lambda: made(b".text." + b"x" * 10**6 + b"\0", [(number, 1, 4, 0, 0) for number in range(60_000)]),
    "functions of the same code": same_code,
    "symbols of one long name": lambda: made(
        b"\0" + b"x" * 500_000 + b"\0\1\0\0\0\2" + b"\0" * 10**6, [(0, 2, 0, 64 + 500_002, 24 * 40_000)]
    ),
    "rows at one address": lambda: program(*b"\1" * 10**5, insert=True),
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_is_bounded(name: str) -> None:
    data = BOMBS[name]()
    tracemalloc.start()
    tried(data)
    assert tracemalloc.get_traced_memory()[1] < 60 * len(data)
    tracemalloc.stop()
    if name.startswith("rows"):
        assert use(data).functions
