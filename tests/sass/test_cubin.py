"""Functions of cubins: against pyelftools, on our own and real ones; and damaged or hostile files."""

from __future__ import annotations

import contextlib
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, Elf
from ncu_roofline.formats.sass.line_program import Texts
from tests.sass.fixtures import CHIPS, NAMES, cubin
from tests.sass.line_readers import elf_file

_SECTION = struct.Struct("<IIQQQQIIQQ")
_TABLE, _COUNT = 40, 60  # where the header has the place of the section table and its length


def _same_as_pyelftools(data: bytes) -> None:
    ours, theirs = Elf(data), elf_file(data)
    sections = list(theirs.iter_sections())
    assert [(each.name, each.offset, each.size, each.link, each.info) for each in ours.sections] == [
        (each.name, *(each[field] for field in ("sh_offset", "sh_size", "sh_link", "sh_info"))) for each in sections
    ]
    symbols = list(theirs.get_section_by_name(".symtab").iter_symbols())
    assert [(each.name, each.value, each.size) for each in ours.symbols] == [
        (each.name, each["st_value"], each["st_size"]) for each in symbols
    ]
    relocations: dict[int, list[tuple[int, int, int]]] = {}
    for section in sections:
        if section["sh_type"] in ("SHT_REL", "SHT_RELA"):
            relocations.setdefault(section["sh_info"], []).extend(
                (each["r_offset"], each["r_info_sym"], each["r_addend"] if each.is_RELA() else 0)
                for each in section.iter_relocations()
            )
    for number, expected in relocations.items():
        assert [tuple(each) for each in ours.relocations(number)] == expected
    texts = [section for section in sections if section.name.startswith(".text.")]
    assert [each.code for each in Cubin(data).functions.values()] == [section.data() for section in texts]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chip", CHIPS)
def test_own_cubins_against_pyelftools(chip: str, name: str) -> None:
    _same_as_pyelftools(cubin(chip, name))


@pytest.mark.reports
def test_real_cubins_against_pyelftools(real_reports: dict[str, Path]) -> None:
    cubins = {k.code.cubin for path in real_reports.values() for k in read_report(path).kernels if k.code and k.code.cubin}
    assert len(cubins) > 5
    for data in cubins:
        _same_as_pyelftools(data)
        assert Cubin(data).capability


@pytest.mark.parametrize("chip", CHIPS)
def test_capability(chip: str) -> None:
    assert Cubin(cubin(chip)).capability == (int(chip[:-1]), int(chip[-1]))


@pytest.mark.parametrize(("abi", "version", "flags", "capability"), [(0x33, 7, 0x500550, (8, 0)), (0x42, 9, 0x5004, None)])
def test_capability_in_other_flags(abi: int, version: int, flags: int, capability: tuple[int, int] | None) -> None:
    data = bytearray(cubin("80"))
    data[7:9] = abi, version
    struct.pack_into("<I", data, 48, flags)
    assert Cubin(bytes(data)).capability == capability


def test_calls_and_functions_inside() -> None:
    linked = Cubin(cubin("80"))
    names = {name for _, name in linked.functions["_Z6callerPfi"].calls}
    assert "_Z5apartfi" in names
    assert any("near" in name for name in names)
    assert {name for _, name in linked.functions["_Z8pointersPfi"].calls} == {"vprintf"}
    slow_paths = {name for each in linked.functions.values() for _, name in each.calls if "div_rn" in name}
    assert slow_paths == {"__cuda_sm3x_div_rn_noftz_f32_slowpath", "__cuda_sm3x_div_rn_noftz_f32_slowpath__1"}
    assert slow_paths < linked.functions.keys()
    (kernel,) = Cubin(cubin("80", "local")).functions.values()
    local, slow_path = kernel.inside
    assert "_Z5localff" in local[2]
    assert local[0] + local[1] == slow_path[0]
    assert slow_path[0] + slow_path[1] <= len(kernel.code)
    assert not kernel.calls


def _use(data: bytes) -> Cubin:
    """Everything that can be asked of a cubin."""
    read = Cubin(data)
    for name, function in read.functions.items():
        lines = read.lines(name)
        for offset in range(0, len(function.code), 16):
            lines.at(offset)
    return read


def _with_section(data: bytes, name: str, **changes: int) -> bytes:
    """The file with other values in a section's row."""
    changed = bytearray(data)
    (table,) = struct.unpack_from("<Q", data, _TABLE)
    number = next(number for number, section in enumerate(Elf(data).sections) if section.name == name)
    row = dict(
        zip(
            ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "each"),
            _SECTION.unpack_from(data, table + 64 * number),
            strict=True,
        )
    )
    _SECTION.pack_into(changed, table + 64 * number, *(row | changes).values())
    return bytes(changed)


def _with_lines(data: bytes, change: Callable[[bytearray], None]) -> bytes:
    """The file with a changed line table."""
    section = next(section for section in Elf(data).sections if section.name == ".debug_line")
    content = bytearray(data[section.offset : section.offset + section.size])
    change(content)
    return data[: section.offset] + bytes(content) + data[section.offset + section.size :]


def _program(content: bytearray, *steps: int) -> None:
    """Other steps after the first address."""
    start = 10 + struct.unpack_from("<I", content, 6)[0] + 11
    content[start : start + len(steps)] = bytes(steps)


HUGE = (0xFF,) * 9 + (0x01,)
HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "no 64-bit little-endian ELF"),
    "header": (lambda data: data[:40], "no 64-bit little-endian ELF"),
    "32 bits": (lambda data: data[:4] + b"\1" + data[5:], "no 64-bit little-endian ELF"),
    "another machine": (lambda data: data[:18] + b"\x3e\0" + data[20:], "NVIDIA"),
    "sections outside": (lambda data: data[:40] + b"\xff" * 8 + data[48:], "damaged or cut off"),
    "no count": (lambda data: data[:60] + b"\0\0" + data[62:], "damaged or cut off"),
    "many sections": (lambda data: data[:60] + b"\xfe\xfe" + data[62:], "cut off"),
    "no names": (lambda data: data[:62] + b"\xfe\xfe" + data[64:], "damaged or cut off"),
    "symbols outside": (lambda data: _with_section(data, ".symtab", offset=1 << 62), "outside"),
    "code outside": (lambda data: _with_section(data, ".text._Z7stencilPKfPfi", size=1 << 63), "outside"),
    "compressed": (lambda data: _with_section(data, ".debug_line", flags=0x800), "compressed"),
    "strings missing": (lambda data: _with_section(data, ".strtab", size=0), "cut off"),
    "odd table": (lambda data: _with_section(data, ".symtab", size=25), "cut off"),
    "version 5": (lambda data: _with_lines(data, lambda line: struct.pack_into("<H", line, 4, 5)), "version 5"),
    "line range": (lambda data: _with_lines(data, lambda line: struct.pack_into("<B", line, 13, 0)), "damaged"),
    "opcode base": (lambda data: _with_lines(data, lambda line: struct.pack_into("<B", line, 14, 0)), "damaged"),
    "length": (lambda data: _with_lines(data, lambda line: struct.pack_into("<I", line, 0, 0xFFFFFFFF)), "cut off"),
    "header length": (lambda data: _with_lines(data, lambda line: struct.pack_into("<I", line, 6, 1 << 31)), "damaged"),
    "advance": (lambda data: _with_lines(data, lambda line: _program(line, 2, *HUGE, 1)), "outside the function"),
    "long number": (lambda data: _with_lines(data, lambda line: _program(line, 2, *(0xFF,) * 12)), "damaged"),
    "line": (lambda data: _with_lines(data, lambda line: _program(line, 3, *HUGE[:8], 0x3F, 1)), "damaged"),
    "file": (lambda data: _with_lines(data, lambda line: _program(line, 4, 99, 1)), "damaged"),
    "caller": (lambda data: _with_lines(data, lambda line: _program(line, 0, 3, 0x90, 9, 0, 1)), "damaged"),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_cubins(change: str) -> None:
    make, reason = HOSTILE[change]
    with pytest.raises(CodeError, match=reason):
        _use(make(cubin("80", "inlined")))


def test_every_cut_is_told() -> None:
    data = cubin("80", "inlined")
    (table,), (count,) = struct.unpack_from("<Q", data, _TABLE), struct.unpack_from("<H", data, _COUNT)
    for length in range(0, table + 64 * count, 41):
        with pytest.raises(CodeError):
            _use(data[:length])


@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4), st.sampled_from(NAMES)
)
def test_changed_bytes(changes: list[tuple[float, int]], name: str) -> None:
    data = bytearray(cubin("90", name))
    for place, value in changes:
        data[int(place * len(data))] = value
    _tried(bytes(data))


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=12)), min_size=1, max_size=3))
def test_changed_line_tables(changes: list[tuple[float, bytes]]) -> None:
    def change(content: bytearray) -> None:
        for place, value in changes:
            start = int(place * (len(content) - 12))
            content[start : start + len(value)] = value

    _tried(_with_lines(cubin("80", "inlined"), change))


def _tried(data: bytes) -> None:
    """Nothing but CodeError may come of it."""
    with contextlib.suppress(CodeError):
        _use(data)


def _made(names: bytes, sections: list[tuple[int, int, int, int, int]]) -> bytes:
    """A cubin of sections (place of the name, type, flags, offset, size); the first but one has the names, at byte 64."""
    rows = [(0, 0, 0, 0, 0), (0, 3, 0, 64, len(names)), *sections]
    table = b"".join(_SECTION.pack(name, kind, flags, 0, offset, size, 1, 0, 1, 24) for name, kind, flags, offset, size in rows)
    ident = b"\x7fELF\2\1\1\x41\x08".ljust(16, b"\0")
    place = 64 + len(names)
    return struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, place, 0x5004, 64, 0, 0, 64, len(rows), 1) + names + table


def _long_names() -> bytes:
    """60,000 sections, whose names of a megabyte overlap."""
    return _made(b".text." + b"x" * 1_000_000 + b"\0", [(number, 1, 4, 0, 0) for number in range(60_000)])


def _same_code() -> bytes:
    """60,000 functions that share a megabyte of code."""
    names = b"".join(b".text.%d\0" % number for number in range(60_000)) + b"\0" * 1_000_000
    places = [0]
    for number in range(60_000 - 1):
        places.append(places[-1] + len(b".text.%d\0" % number))
    return _made(names, [(place, 1, 4, 64, 1_000_000) for place in places])


def _same_symbols() -> bytes:
    """A table of as many symbols as fit, all of one long name."""
    names = b"\0" + b"x" * 500_000 + b"\0"
    return _made(names + b"\1\0\0\0\2" + b"\0" * 1_000_000, [(0, 2, 0, 64 + len(names), 24 * 40_000)])


def _many_rows() -> bytes:
    """A line table of a million rows at one address."""
    return _longer_lines(b"\1" * 1_000_000)


def _deep_rows() -> bytes:
    """A line table in which every row is inlined at the one before."""
    return _longer_lines(
        b"\1" + b"".join(bytes((0, 4, 0x90, number & 127 | 128, number >> 7, 0, 1)) for number in range(1, 10_000))
    )


def _longer_lines(steps: bytes) -> bytes:
    """A cubin whose first sequence of lines begins with further steps."""
    data = cubin("80", "inlined")
    section = next(section for section in Elf(data).sections if section.name == ".debug_line")
    content = bytearray(data[section.offset : section.offset + section.size])
    place = 10 + struct.unpack_from("<I", content, 6)[0] + 11
    content[place:place] = steps
    struct.pack_into("<I", content, 0, len(content) - 4)
    return _with_section(data, ".debug_line", offset=len(data), size=len(content)) + content


def test_deep_inlining_is_refused() -> None:
    with pytest.raises(CodeError, match="inlined in each other"):
        _use(_deep_rows())


def test_many_rows_are_read() -> None:
    assert _use(_many_rows()).functions


@pytest.mark.sampled("_same_code", "_long_names", "_same_symbols")
@pytest.mark.parametrize("make", [_long_names, _same_code, _same_symbols, _many_rows])
def test_memory_and_time_are_bounded(make: Callable[[], bytes]) -> None:
    data = make()
    tracemalloc.start()
    begun = time.process_time()
    _tried(data)
    assert time.process_time() - begun < 10
    assert tracemalloc.get_traced_memory()[1] < 60 * len(data)
    tracemalloc.stop()


def test_a_name_ends_where_its_table_does() -> None:
    texts = Texts(b"name\0")
    assert texts.at(0) == "name"
    with pytest.raises(CodeError, match="cut off"):
        texts.at(0, 3)
