"""What rules ask of a kernel's code: the line and the instruction at an address."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, lru_cache

from ncu_roofline.formats.report import Kernel
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.line_program import Lines


class _Module:
    """The code of a module, whose functions are decoded once for all launches; none where it can't be read."""

    def __init__(self, data: bytes) -> None:
        self.listings: dict[object, dict[object, object]] = {}
        self._decoded: dict[str, tuple[Lines, tuple[Instruction, ...]]] = {}
        try:
            self._cubin: Cubin | None = read_cubin(data)
        except CodeError:
            self._cubin = None

    @property
    def functions(self) -> dict[str, Function]:
        return dict(self._cubin.functions) if self._cubin else {}

    def decoded(self, function: Function) -> tuple[Lines, tuple[Instruction, ...]]:
        if function.name not in self._decoded and self._cubin is not None:
            try:
                lines = self._cubin.lines(function.name)
            except CodeError:
                lines = Lines()
            self._decoded[function.name] = lines, decode(function.code, function.capability or self._cubin.capability)
        return self._decoded[function.name]


_module = lru_cache(maxsize=4)(_Module)  # kernels of one module mostly follow each other


class KernelCode:
    """The functions of a kernel's module by address, looked at when first asked for; none where the report has no code."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def line(self, address: int) -> tuple[str, int] | None:
        """File (the path that the compiler noted) and line that Nsight Compute names for an address, None where it has none."""
        found = self._find(address)
        place = found[0].first(found[2]) if found else None
        return (place.file, place.line) if place else None

    def text(self, address: int) -> str:
        """The instruction at an address, "" where there is no code.

        Its opcode, with those modifiers that decide work and bytes, behind "@P" if it depends on a predicate (any).  Of
        operands only where a jump or call goes (an address, last), and "-RZ, RZ" where HFMA2 loads constants.
        """
        found = self._find(address)
        if found is None or found[2] // SIZE >= len(found[1]):
            return ""
        one = found[1][found[2] // SIZE]
        text = f"@P {one.opcode}" if one.guarded else one.opcode
        if one.target is not None:
            return f"{text} {address - found[2] + one.target:#x}"
        return f"{text} -RZ, RZ" if one.constant else text

    @property
    def listings(self) -> dict[object, object]:
        """What rules keep of the code, for all launches whose functions lie at the same addresses."""
        module, starts, functions = self._placed
        where = tuple(zip(starts, (function.name for function in functions), strict=True))
        return module.listings.setdefault(where, {}) if module else {}

    def _find(self, address: int) -> tuple[Lines, tuple[Instruction, ...], int] | None:
        module, starts, functions = self._placed
        place = bisect_right(starts, address) - 1
        if module is None or place < 0 or address - starts[place] >= len(functions[place].code):
            return None
        return (*module.decoded(functions[place]), address - starts[place])

    @cached_property
    def _placed(self) -> tuple[_Module | None, list[int], list[Function]]:
        code = self._kernel.code
        module = _module(code.cubin) if code and code.cubin else None
        if code is None or module is None:
            return None, [], []
        addresses = {function.name: function.address for function in code.functions}
        base = self._kernel.base_address()
        if base is not None:
            addresses[self._kernel.mangled_name] = base
        functions = module.functions
        placed = sorted((address, name) for name, address in addresses.items() if name in functions)
        return module, [address for address, _ in placed], [functions[name] for _, name in placed]
