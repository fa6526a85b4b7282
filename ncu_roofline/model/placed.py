"""Where the functions of a launch lie on the GPU."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ncu_roofline.formats.report import Code, Kernel
from ncu_roofline.formats.sass.cubin import Cubin, Function

_LAST = 2**63


def placed(kernel: Kernel, code: Code, cubin: Cubin, counted: Sequence[int]) -> list[tuple[Function, int]]:
    """The launch's own function, first, and those in which something was counted, with their addresses in bytes.

    ``code`` and ``cubin`` are of the kernel's module, ``counted`` the addresses with counts, sorted.  What the report places
    nowhere, or on another function, is left out; of several addresses of a function all but one.
    """
    addresses = _addresses(code, cubin, counted)
    base = kernel.base_address()
    if base is not None:
        addresses[kernel.mangled_name] = base
    found: list[tuple[Function, int]] = []
    starts: list[int] = []
    ends: list[int] = []  # of what is found, both sorted: no two lie on each other
    for name in dict.fromkeys((kernel.mangled_name, *addresses)):
        address, function = addresses.get(name), cubin.functions.get(name)
        if address is None or function is None or address + len(function.code) >= _LAST:
            continue
        end = address + len(function.code)
        empty = bisect_left(counted, address) == bisect_left(counted, end)
        place = bisect_left(starts, end)
        if (empty and name != kernel.mangled_name) or (place and ends[place - 1] > address):
            continue
        found.append((function, address))
        if end > address:
            starts.insert(place, address)
            ends.insert(place, end)
    return found


def _addresses(code: Code, cubin: Cubin, counted: Sequence[int]) -> dict[str, int]:
    """Where each function lies: of several addresses the first at which something was counted."""
    found: dict[str, int] = {}
    for one in code.functions:
        before = found.setdefault(one.name, one.address)
        function = cubin.functions.get(one.name)
        if function and before != one.address and not _any(counted, before, function) and _any(counted, one.address, function):
            found[one.name] = one.address
    return found


def _any(counted: Sequence[int], address: int, function: Function) -> bool:
    """Whether something was counted in a function that lies there."""
    return bisect_left(counted, address) < bisect_left(counted, address + len(function.code))
