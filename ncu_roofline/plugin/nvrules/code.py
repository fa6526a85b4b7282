"""What rules ask of a kernel's code: the line and the instruction at an address."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, lru_cache

from ncu_roofline.formats.report import Kernel
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.line_program import Lines


class KernelCode:
    """The functions of a kernel's module by address, looked at when first asked for; none where the report has no code."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lines: dict[str, Lines] = {}
        self._instructions: dict[str, tuple[Instruction, ...]] = {}

    def line(self, address: int) -> tuple[str, int] | None:
        """File (the path that the compiler noted) and line that Nsight Compute names for an address, None where it has none."""
        found = self._find(address)
        if found is None:
            return None
        cubin, function, offset = found
        if function.name not in self._lines:
            try:
                self._lines[function.name] = cubin.lines(function.name)
            except CodeError:
                self._lines[function.name] = Lines()
        place = self._lines[function.name].first(offset)
        return (place.file, place.line) if place else None

    def text(self, address: int) -> str:
        """The instruction at an address, "" where there is no code.

        Its opcode, with those modifiers that decide work and bytes, behind "@P" if it depends on a predicate (any).  Of
        operands only where a jump or call goes (an address, last), and "-RZ, RZ" where HFMA2 loads constants.
        """
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
