"""Independent readers: nvdisasm -gi (lines, inlining), llvm-dwarfdump (innermost lines), pyelftools (tables of ELF files)."""

from __future__ import annotations

import bisect
import importlib.util
import io
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

Chain = tuple[tuple[str, int], ...]
"""File and line, the innermost first."""

_LINE = re.compile(r'\t//## File "(.*?)", line (\d+)(?: inlined at .*)?$')
_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s")
_ROW = re.compile(r"0x([0-9a-f]{16})\s+(\d+)\s+\d+\s+(\d+)\s.*?(end_sequence)?$")


def nvdisasm() -> Path:
    """NVIDIA's disassembler, of the package nvidia-cuda-nvdisasm or on PATH."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations or [] if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).glob("cu*/bin/nvdisasm"))]
    if not found and not (found := [Path(one) for one in [shutil.which("nvdisasm")] if one]):
        pytest.skip("no nvdisasm on this machine (pip install nvidia-cuda-nvdisasm): inlined lines stay unproven")
    return found[-1]


def dwarfdump() -> str:
    """LLVM's reader of DWARF."""
    found = shutil.which("llvm-dwarfdump")
    if not found:
        pytest.skip("no llvm-dwarfdump on this machine (package llvm): lines stay unproven")
    return found


def by_nvdisasm(cubin: bytes, folder: Path) -> dict[tuple[str, int], tuple[Chain, bool]]:
    """Function and offset -> the lines, and whether they are printed: of an instruction whose innermost line is that of the one
    before, also that of the function before, nvdisasm prints none, even if it is inlined elsewhere.
    """
    path = folder / "read.cubin"
    path.write_bytes(_readable(cubin))
    text = subprocess.run(
        [nvdisasm(), "-ndf", "-gi", "-c", path], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found: dict[tuple[str, int], tuple[Chain, bool]] = {}
    name, chain, printed = "", (), False
    for line in text.splitlines():
        if line.startswith("//-----"):
            name = ""
        elif match := re.match(r"\.text\.(\S+):$", line):
            name = match[1]
            printed = False
        elif match := _LINE.match(line):
            chain = (*(chain if printed else ()), (match[1], int(match[2])))
            printed = True
        elif name and (match := _INSTRUCTION.match(line)):
            found[name, int(match[1], 16)] = (chain, printed)
            printed = False
    return found


def _readable(cubin: bytes) -> bytes:
    """A cubin of 7.0, which nvdisasm 13.1 no longer takes, as one of 7.5; others as they are."""
    data = bytearray(cubin)
    if data[7] == 0x33 and data[48] == 70:
        struct.pack_into("<I", data, 48, 0x4B054B)
    return bytes(data)


def by_dwarfdump(cubin: bytes, folder: Path) -> dict[int, dict[int, tuple[str, int]]]:
    """Section -> offset of an instruction -> the innermost file (without its folder) and line."""
    path = folder / "read.cubin"
    path.write_bytes(cubin)
    text = subprocess.run([dwarfdump(), "--debug-line", path], capture_output=True, text=True, check=True).stdout
    starts = iter(_starts(cubin))
    found: dict[int, dict[int, tuple[str, int]]] = {}
    files: dict[int, str] = {}
    rows: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        if match := re.match(r"file_names\[\s*(\d+)\]:", line):
            number = int(match[1])
            files = {} if number == 1 else files
        elif match := re.match(r'\s+name: "(.*)"$', line):
            files[number] = match[1]
        elif match := _ROW.match(line):
            rows.append((int(match[1], 16), int(match[3]), int(match[2])))
            if match[4]:
                section, first = next(starts)
                addresses = [address for address, _, _ in rows]
                for address in range(addresses[0], addresses[-1], 16):
                    _, file, source_line = rows[bisect.bisect_right(addresses, address) - 1]
                    found.setdefault(section, {})[address - addresses[0] + first] = (
                        files[file].rpartition("/")[2],
                        source_line,
                    )
                rows = []
    assert next(starts, None) is None
    return found


def _starts(cubin: bytes) -> list[tuple[int, int]]:
    """Section and offset in it of each sequence of the line table, in its order."""
    elf = elf_file(cubin)
    table, symbols = elf.get_section_by_name(".debug_line"), elf.get_section_by_name(".symtab")
    number = next(index for index, section in enumerate(elf.iter_sections()) if section.name == table.name)
    places = []
    for section in elf.iter_sections():
        if section["sh_type"] in ("SHT_REL", "SHT_RELA") and section["sh_info"] == number:
            for each in section.iter_relocations():
                symbol = symbols.get_symbol(each["r_info_sym"])
                value = symbol["st_value"] if symbol["st_value"] < 1 << 32 else 0
                places.append((each["r_offset"], symbol["st_shndx"], value))
    return [place[1:] for place in sorted(places)]


def elf_file(cubin: bytes) -> Any:
    """As pyelftools reads it."""
    pytest.importorskip("elftools", reason="no pyelftools on this machine (pip install pyelftools): ELF tables stay unproven")
    from elftools.elf.elffile import ELFFile

    return ELFFile(io.BytesIO(cubin))
