"""Instructions, blocks, lines and tables of cubins: ours and those of real reports, against nvdisasm and pyelftools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest

from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.chips.opcodes import load_opcodes
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sass.cubin import Cubin, Elf, Symbol
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, control_flow, decode
from ncu_roofline.formats.sass.line_program import Place
from ncu_roofline.plugin.machine.machine import disassemble
from tests.analyses.source_launches import with_counts
from tests.sass import oracle
from tests.sass.fixtures import ARCHIVE, CHIPS, FOLDER, NAMES, VERSION, compiled, cubin, pack, sources, unpacked, version

_TEXT = re.compile(r"(?:(@!?U?P\w+) )?(\S+) ?(.*)")
_TARGET = re.compile(r"(?:^|, )(0x[0-9a-f]+)$")
_SIZES = {"U8", "S8", "U16", "S16", "64", "96", "128", "256"}
_LOADS = re.compile(r"(LD[GSL]?|ST[GSL]?|LDGSTS)\b")
_CONDITION = re.compile(r"(^|, )!?U?P(T\b|\d)")
MADE_UP = ("7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
ROOT = Path(__file__).resolve().parents[2]
proved = pytest.mark.proved("tests/sass/**/*", ".ci/encodings", "ncu_roofline/formats/sass/*.py", "ncu_roofline/data/*.toml")
OWN = [(chip, name) for chip in CHIPS for name in NAMES]


def weighs_the_same(ours: str, theirs: str, capability: tuple[int, int] | None) -> bool:
    """Whether two opcodes have the same name, work, and size of loads and stores."""
    table = load_opcodes()
    found = [
        (each.partition(".")[0], table.work(each, capability), table.unknown(each, capability),
         _SIZES & set(each.split(".")) if _LOADS.match(each) else None)
        for each in (ours, theirs)
    ]  # fmt: skip
    return found[0] == found[1]


def check(ours: Instruction, text: str, capability: tuple[int, int] | None, end: int) -> None:
    """One instruction against nvdisasm's text of it."""
    match = _TEXT.match(text)
    assert match
    predicate, opcode, operands = match[1], match[2], match[3]
    assert weighs_the_same(ours.opcode, opcode, capability), (ours.opcode, opcode)
    words = iter(opcode.split("."))
    assert all(word in words for word in ours.opcode.split(".")), (ours.opcode, opcode)
    if ours.flow == "branch":
        second = _CONDITION.search(operands) or {"U", "DIV", "CONV"} & set(opcode.split("."))
        assert ours.guarded == bool(predicate or second)
        target = _TARGET.search(operands)
        if target or "`" not in operands:  # else a label: its place is that of the block
            assert ours.target == (int(target[1], 16) if target and int(target[1], 16) < end else None)
    elif not ours.flow:
        assert ours.guarded == bool(predicate)


def check_listing(data: bytes, text: str, *, opcodes: bool = True) -> int:
    """Instructions and lines against nvdisasm's listing; how many have a line."""
    read, expected, lined = Cubin(data), oracle.listing(text), 0
    assert expected.keys() == read.functions.keys()
    for name, function in read.functions.items():
        instructions, lines = decode(function.code, read.capability), read.lines(name)
        assert [one.offset for one in instructions] == sorted(expected[name]) == list(range(0, len(function.code), SIZE))
        for one in instructions:
            said = expected[name][one.offset]
            if opcodes:
                check(one, said.text, read.capability, len(function.code))
            found = tuple((place.file, place.line) for place in lines.at(one.offset))
            if said.printed or lines:
                assert (found if said.printed else found[:1]) == (said.chain if said.printed else said.chain[:1]), (name, one)
            lined += bool(found)
    return lined


def check_blocks(data: bytes, text: str) -> int:
    """Edges between blocks against nvdisasm's; how many."""
    read, compared = Cubin(data), 0
    for function, (theirs, ends) in oracle.edges(text, read).items():
        instructions = decode(read.functions[function].code, read.capability)
        flow = control_flow(instructions, read.jump_tables(function))
        own_ends = {block.end - SIZE for block in flow.blocks}
        ours = {
            (block.end - SIZE, flow.blocks[one].start)
            for block in flow.blocks
            for one in block.successors
            if instructions[block.end // SIZE - 1].flow != "call" or flow.blocks[one].start == block.end
        }
        # Where only one of both begins a new block, the other has no edge.
        assert {one for one in theirs - ours if one[1] != one[0] + SIZE or one[0] in own_ends} == set()
        assert {one for one in ours - theirs if one[1] != one[0] + SIZE or one[0] in ends} == set()
        assert flow.unresolved == ()
        compared += len(theirs)
    return compared


def check_tables(data: bytes) -> None:
    """Sections, symbols, relocations and code against pyelftools."""
    ours, theirs = Elf(data), oracle.elf_file(data)
    sections = list(theirs.iter_sections())
    assert [(each.name, each.offset, each.size, each.link, each.info) for each in ours.sections] == [
        (each.name, *(each[field] for field in ("sh_offset", "sh_size", "sh_link", "sh_info"))) for each in sections
    ]
    symbols = list(theirs.get_section_by_name(".symtab").iter_symbols())
    found = [(each.name, each.value, each.size) for each in ours.symbols]
    assert found == [(each.name, each["st_value"], each["st_size"]) for each in symbols]
    relocations: dict[int, list[tuple[int, Symbol, int]]] = {}
    for section in sections:
        if section["sh_type"] in ("SHT_REL", "SHT_RELA"):
            relocations.setdefault(section["sh_info"], []).extend(
                (each["r_offset"], ours.symbols[each["r_info_sym"]], each["r_addend"] if each.is_RELA() else 0)
                for each in section.iter_relocations()
            )
    assert {number: list(map(tuple, ours.relocations(number))) for number in relocations} == relocations
    texts = [section.data() for section in sections if section.name.startswith(".text.")]
    assert [each.code for each in Cubin(data).functions.values()] == texts


def test_own_cubins() -> None:
    for chip, name in OWN:
        data = cubin(chip, name)
        assert Cubin(data).capability == (int(chip[:-1]), int(chip[-1]))
        check_tables(data)
        assert check_listing(data, oracle.recorded("listing", chip, name)) > 30 or name == "bare"
        assert check_blocks(data, oracle.recorded("blocks", chip, name)) or name in ("inlined", "bare")


@proved
@pytest.mark.exhaustive
def test_the_answers_are_those_of_the_programs(tmp_path: Path) -> None:
    found = {
        f"{chip}/{name}.{question}": oracle.ask(question, cubin(chip, name), tmp_path).encode()
        for chip, name in OWN
        for question in oracle.QUESTIONS
    }
    for chip in MADE_UP:
        words = [sys.executable, ROOT / ".ci" / "encodings", "--sample", chip]
        found[f"{chip}/made.up"] = subprocess.run(words, capture_output=True, check=True).stdout
    if os.environ.get("UPDATE_GOLDEN"):
        pack(oracle.ANSWERS, found)
    assert found == unpacked(oracle.ANSWERS)


@proved
@pytest.mark.exhaustive
@pytest.mark.parametrize("chip", CHIPS)
def test_recorded_cubins_are_current(chip: str, tmp_path: Path) -> None:
    def content(read: Cubin) -> Counter[tuple[object, ...]]:
        """The functions' code with the lines; not the names, which hold the folder's hash."""
        found: Counter[tuple[object, ...]] = Counter()
        for name, function in read.functions.items():
            lines = read.lines(name)
            chains = [lines.at(offset) for offset in range(0, len(function.code), SIZE)]
            found[function.code, tuple(tuple((PurePosixPath(one.file).name, one.line) for one in each) for each in chains)] += 1
        return found

    if version() != unpacked(ARCHIVE)[VERSION]:
        pytest.skip("the cubins were made by another nvcc, or there is none")
    for name, made in compiled(chip, tmp_path / "kernels").items():
        assert content(Cubin(made)) == content(Cubin(unpacked(ARCHIVE)[name])), name


def test_made_up_code() -> None:
    """Other instructions than the table was written from."""
    for chip in MADE_UP:
        for line in unpacked(oracle.ANSWERS)[f"{chip}/made.up"].decode().splitlines():
            word, predicate, opcode = line.split()
            (ours,) = decode(bytes.fromhex(word)[::-1], parse_capability(chip))
            assert ours.guarded == (predicate != "-") or ours.flow
            if not re.search(r"INVALID|\?|\.\.|\.$|^_", opcode):
                assert weighs_the_same(ours.opcode, opcode, parse_capability(chip)), f"{line} {ours.opcode}"


# Lines.
def test_places_of_inlined_code() -> None:
    header, source = f"{FOLDER}/shapes.h", f"{FOLDER}/stencil.cu"
    names, texts = (
        {"_Z5weighff": "weigh(", "_Z5blendffi": "blend("},
        {name: text.splitlines() for name, text in sources().items()},
    )
    for chip in CHIPS:
        inlined, linked = (all_lines(Cubin(cubin(chip, name)), "_Z7stencilPKfPfi") for name in ("inlined", "linked"))
        deepest = [(place.file, place.function) for place in max(inlined, key=len)]
        assert deepest == [(header, "_Z5weighff"), (header, "_Z5blendffi"), (source, "")]
        for inner, outer in (pair for chain in inlined for pair in pairwise(chain)):
            assert names[inner.function] in "".join(texts[outer.file][outer.line - 1 : outer.line + 1]), (inner, outer)
        assert {place.function for chain in linked for place in chain} == {""}  # nvlink leaves numbers of names as they were
        assert len({tuple(place[:2] for place in chain) for chain in linked ^ inlined}) == len(linked ^ inlined) / 2
    read = Cubin(cubin("80"))
    lines = read.lines("_Z7stencilPKfPfi")
    assert lines
    assert lines.at(0) == (Place(f"{FOLDER}/stencil.cu", 4),)
    assert lines.at(len(read.functions["_Z7stencilPKfPfi"].code)) == ()
    slow_path = read.lines("__cuda_sm20_sqrt_rn_f32_slowpath")
    assert (bool(slow_path), slow_path.at(0)) == (False, ())
    bare = Cubin(cubin("80", "bare"))
    assert not any(bare.lines(name) for name in bare.functions)
    with pytest.raises(KeyError):
        bare.lines("missing")


def all_lines(read: Cubin, name: str) -> set[tuple[Place, ...]]:
    lines = read.lines(name)
    return {lines.at(offset) for offset in range(0, len(read.functions[name].code), SIZE)} - {()}


# Real reports.
REPORTS = [
    "a100-ncu2020.3-full-1", "a100-ncu2021.2-custom-sections-1", "a100-ncu2021.2-full-1", "a100-ncu2022.4-full-1",
    "a40-ncu2022.1-full-1", "a40-ncu2022.4-full-1", "rtx3090-ncu2023.1-full-1",
]  # fmt: skip
OLD_REPORTS = ["v100-ncu2022.2-full-1", "v100-ncu2022.2-full-2"]  # of 7.0, which nvdisasm 13 doesn't know
# Its cubins are as the driver had loaded them, with addresses of the GPU: on the lines of these nvdisasm 13.5 doesn't end.
NO_LISTING = "a40-ncu2022.1-full-1"


def kernels(path: Path) -> Iterator[tuple[Kernel, Cubin]]:
    """The launches whose code the report has."""
    cubins: dict[bytes, Cubin] = {}
    with read_report(path) as report:
        for kernel in report.kernels:
            if kernel.code and (data := kernel.code.cubin):
                yield kernel, cubins.get(data) or cubins.setdefault(data, Cubin(data))


@pytest.mark.reports
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name != REPORTS[1])) for name in REPORTS + OLD_REPORTS]
)
def test_real_code(real_reports: dict[str, Path], name: str) -> None:
    if (path := real_reports.get(f"{name}.ncu-rep")) is None:
        pytest.skip("this report is not in the collection")
    assert path in with_counts(real_reports)
    functions, counted, metric = {}, 0, "sass__inst_executed_per_opcode"
    for kernel, read in kernels(path):
        metrics, base, function = kernel.metrics, kernel.base_address(), read.functions.get(kernel.mangled_name)
        assert kernel.code
        assert {one.symbol: one.name for one in kernel.code.functions}.items() <= dict(enumerate(symbols(read))).items()
        if function is None or base is None:
            continue
        functions[function.code] = read, function
        if not metrics.has_name("inst_executed") or not metrics.has_name(metric):
            continue
        # Counts by address and by opcode are of one pass: the same to the last warp where all counted code is in the cubin.
        addresses, values = metrics.by_address("inst_executed")
        assert base in addresses
        if any(not base <= one < base + len(function.code) for one in addresses):
            continue  # functions that it calls were counted, too
        instructions, ours = decode(function.code, read.capability), Counter[str]()
        for address, value in zip(addresses, values, strict=True):
            ours[instructions[(address - base) // SIZE].name] += int(value)
        theirs = {str(opcode): int(count) for opcode, count in metrics.instances(metric) if count}
        assert not theirs or +ours == theirs, kernel.mangled_name
        counted += bool(theirs)
    assert counted
    for read, function in functions.values() if name in REPORTS else ():
        assert read.capability
        [texts] = disassemble([function.code], read.capability, oracle.nvdisasm())
        instructions = decode(function.code, read.capability)
        assert sorted(texts) == [one.offset for one in instructions] == list(range(0, len(function.code), SIZE))
        for one in instructions:
            check(one, texts[one.offset], read.capability, len(function.code))
        starts = {block.start for block in control_flow(instructions, read.jump_tables(function.name)).blocks}
        assert {one.target for one in instructions if one.flow == "branch" and one.target is not None} <= starts


def symbols(read: Cubin) -> list[str]:
    return [one.name for one in read._elf.symbols]


@pytest.mark.exhaustive
@pytest.mark.reports
def test_tables_and_lines_of_real_cubins(real_reports: dict[str, Path], tmp_path: Path) -> None:
    compared: Counter[str] = Counter()
    for name, path in real_reports.items():
        for data in sorted({kernel.code.cubin for kernel, _ in kernels(path) if kernel.code}):
            check_tables(data)
            compared["cubins"] += 1
            if b"\0.debug_line\0" in data and NO_LISTING not in name:
                compared["lines"] += check_listing(data, oracle.ask("listing", data, tmp_path), opcodes=False)
    assert compared["cubins"] > 5
    assert compared["lines"] > 10_000
