"""What rules ask of a kernel's code: lines by address, source files, opcodes."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, lru_cache

from ncu_roofline.formats.report import Kernel
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.lines import Lines


class ISourceInfo:
    """A line of a source file."""

    def __init__(self, file_name: str, line: int) -> None:
        self._file_name = file_name
        self._line = line

    def file_name(self) -> str:
        """The path that the compiler noted."""
        return self._file_name

    def line(self) -> int:
        """From 1."""
        return self._line


class KernelCode:
    """The functions of a kernel's module by address, looked at when first asked for; none where the report has no code."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lines: dict[str, Lines] = {}
        self._instructions: dict[str, tuple[Instruction, ...]] = {}

    def source_info(self, address: int) -> ISourceInfo | None:
        """The line that Nsight Compute names for an address, None where it has none."""
        found = self._find(address)
        if found is None:
            return None
        cubin, function, offset = found
        if function.name not in self._lines:
            self._lines[function.name] = _lines(cubin, function.name)
        place = self._lines[function.name].first(offset)
        return ISourceInfo(place.file, place.line) if place else None

    def text(self, address: int) -> str:
        """The instruction at an address, "" where there is no code; of operands see `IAction.sass_by_pc`."""
        found = self._find(address)
        if found is None:
            return ""
        cubin, function, offset = found
        if function.name not in self._instructions:
            self._instructions[function.name] = decode(function.code, function.capability or cubin.capability)
        instructions = self._instructions[function.name]
        if offset // SIZE >= len(instructions):
            return ""
        one = instructions[offset // SIZE]
        text = f"@P {one.opcode}" if one.guarded else one.opcode
        if one.target is not None:
            return f"{text} {address - offset + one.target:#x}"
        return f"{text} -RZ, RZ" if one.constant else text

    def files(self) -> dict[str, str]:
        """The imported source files by name."""
        code = self._kernel.code
        return {file.name: file.text for file in code.files} if code else {}

    def _find(self, address: int) -> tuple[Cubin, Function, int] | None:
        cubin, functions = self._functions
        place = bisect_right(functions, address, key=lambda one: one[0]) - 1
        if cubin is None or place < 0:
            return None
        start, function = functions[place]
        return (cubin, function, address - start) if address - start < len(function.code) else None

    @cached_property
    def _functions(self) -> tuple[Cubin | None, list[tuple[int, Function]]]:
        code = self._kernel.code
        cubin = _cubin(code.cubin) if code and code.cubin else None
        if code is None or cubin is None:
            return None, []
        addresses = {function.name: function.address for function in code.functions}
        base = self._kernel.base_address()
        if base is not None:
            addresses[self._kernel.mangled_name] = base
        known = [(address, cubin.functions[name]) for name, address in addresses.items() if name in cubin.functions]
        return cubin, sorted(known, key=lambda one: one[0])


@lru_cache(maxsize=2)  # kernels of one module mostly follow each other
def _cubin(data: bytes) -> Cubin | None:
    """A cubin, None for what can't be read."""
    try:
        return read_cubin(data)
    except CodeError:
        return None


def _lines(cubin: Cubin, function: str) -> Lines:
    try:
        return cubin.lines(function)
    except CodeError:
        return Lines()
