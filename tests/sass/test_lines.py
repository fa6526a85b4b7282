"""Source lines of instructions, against nvdisasm and llvm-dwarfdump, on our own cubins and on those of real reports."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.formats.sass.line_program import Place
from tests.sass.compiling import FOLDER
from tests.sass.fixtures import CHIPS, cubin, sources
from tests.sass.line_readers import by_dwarfdump, by_nvdisasm


@pytest.fixture(scope="module")
def real_cubins(real_reports: dict[str, Path]) -> dict[str, list[bytes]]:
    """By name of the report: its cubins that have a line table."""
    found = {}
    for name, path in real_reports.items():
        codes = {kernel.code.cubin for kernel in read_report(path).kernels if kernel.code}
        if lined := [data for data in sorted(codes) if b"\0.debug_line\0" in data]:
            found[name] = lined
    return found


# Its cubins are as the driver had loaded them, with addresses of the GPU: on the lines of these nvdisasm 13.5 doesn't end.
_NOT_FOR_NVDISASM = "a40-ncu2022.1-full-1.ncu-rep"


def _same_as_nvdisasm(data: bytes, folder: Path) -> int:
    """How many instructions were compared; of them, those with a line."""
    read = Cubin(data)
    lines = {name: read.lines(name) for name in read.functions}
    expected = by_nvdisasm(data, folder)
    assert {name for name, _ in expected} == set(read.functions)
    lined = 0
    for (name, offset), (chain, printed) in expected.items():
        found = tuple((place.file, place.line) for place in lines[name].at(offset))
        if printed or lines[name]:
            assert (found if printed else found[:1]) == (chain if printed else chain[:1]), (name, offset)
        lined += bool(found)
    return lined


def _same_as_dwarfdump(data: bytes, folder: Path) -> int:
    read = Cubin(data)
    expected = by_dwarfdump(data, folder)
    sections = {section: name for name, section in read.sections.items()}
    compared = 0
    for section, lines in expected.items():
        found = read.lines(sections[section])
        for offset, (file, line) in lines.items():
            place = found.at(offset)[0]
            assert (Path(place.file).name, place.line) == (file, line), (sections[section], offset)
            compared += 1
    assert sum(bool(read.lines(name)) for name in read.functions) == len(expected)
    return compared


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["linked", "inlined", "local"])
def test_own_cubins_against_nvdisasm(chip: str, name: str, tmp_path: Path) -> None:
    assert _same_as_nvdisasm(cubin(chip, name), tmp_path) > 30


@pytest.mark.sampled(every=7)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["linked", "inlined", "local"])
def test_own_cubins_against_dwarfdump(chip: str, name: str, tmp_path: Path) -> None:
    assert _same_as_dwarfdump(cubin(chip, name), tmp_path) > 30


@pytest.mark.exhaustive
@pytest.mark.reports
def test_real_cubins_against_nvdisasm(real_cubins: dict[str, list[bytes]], tmp_path: Path) -> None:
    chosen = {name: cubins for name, cubins in real_cubins.items() if name != _NOT_FOR_NVDISASM}
    compared = {name: sum(_same_as_nvdisasm(data, tmp_path) for data in cubins) for name, cubins in chosen.items()}
    assert sum(compared.values()) > 10_000, compared


@pytest.mark.reports
def test_real_cubins_against_dwarfdump(real_cubins: dict[str, list[bytes]], tmp_path: Path) -> None:
    compared = {name: sum(_same_as_dwarfdump(data, tmp_path) for data in cubins) for name, cubins in real_cubins.items()}
    assert sum(compared.values()) > 10_000, compared


@pytest.mark.parametrize("chip", CHIPS)
def test_places_of_inlined_code(chip: str) -> None:
    lines, kernel = _all_lines(cubin(chip, "inlined"), "_Z7stencilPKfPfi")
    header, source = f"{FOLDER}/shapes.h", f"{FOLDER}/stencil.cu"
    deepest = max(lines, key=len)
    assert [(place.file, place.function) for place in deepest] == [
        (header, "_Z5weighff"),
        (header, "_Z5blendffi"),
        (source, ""),
    ]
    texts = {name: text.splitlines() for name, text in sources().items()}
    names = {"_Z5weighff": "weigh(", "_Z5blendffi": "blend("}
    for chain in lines:
        for inner, outer in pairwise(chain):
            statement = "".join(texts[outer.file][outer.line - 1 : outer.line + 1])
            assert names[inner.function] in statement, (inner, outer)
    linked, _ = _all_lines(cubin(chip), kernel)
    assert {place.function for chain in linked for place in chain} == {""}  # nvlink leaves the numbers of names as they were
    assert {tuple(place[:2] for place in chain) for chain in linked} == {tuple(place[:2] for place in chain) for chain in lines}


def _all_lines(data: bytes, name: str) -> tuple[set[tuple[Place, ...]], str]:
    read = Cubin(data)
    lines = read.lines(name)
    return {lines.at(offset) for offset in range(0, len(read.functions[name].code), 16)} - {()}, name


def test_what_has_no_line() -> None:
    read = Cubin(cubin("80"))
    lines = read.lines("_Z7stencilPKfPfi")
    assert lines
    assert lines.at(0) == (Place(f"{FOLDER}/stencil.cu", 4),)
    assert lines.at(len(read.functions["_Z7stencilPKfPfi"].code)) == ()
    slow_path = read.lines("__cuda_sm20_sqrt_rn_f32_slowpath")
    assert not slow_path
    assert slow_path.at(0) == ()
    bare = Cubin(cubin("80", "bare"))
    assert not any(bare.lines(name) for name in bare.functions)
    with pytest.raises(KeyError):
        bare.lines("missing")
