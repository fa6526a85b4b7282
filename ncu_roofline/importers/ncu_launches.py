"""What the rows of a table say about a launch besides its metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncu_roofline.importers.ncu_layout import Header
from ncu_roofline.report import Launch

Dim3 = tuple[int, int, int]

_SIZE = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?")
_CAPABILITY = re.compile(r"(\d+)[.,](\d)")
# "<default domain>:solver:none:none:none:none:none:none": domain, name and six facts on its payload, colour and message.
_RANGE = re.compile(r'"([^"]*)"')
_RANGE_FACTS = 6
_ANONYMOUS = ("(anonymous namespace)", "(anonymous class)")
_OPEN, _CLOSE = "<([{", ">)]}"


def launch_of(header: Header, row: Sequence[str]) -> Launch:
    """The launch that a row belongs to."""

    def cell(name: str) -> str:
        position = header.position(name)
        return row[position].strip() if position is not None and position < len(row) else ""

    name = cell("Kernel Name")
    return Launch(
        kind="kernel",
        function_name=function_of(name),
        name=name,
        mangled_name=name if name.startswith("_Z") else "",
        grid=size_of(cell("Grid Size")),
        block=size_of(cell("Block Size")),
        stream=_whole(cell("Stream")),
        context=_whole(cell("Context")),
        nvtx=tuple(
            one
            for position in header.nvtx
            if position < len(row)
            for one in _ranges(row[position], header.columns[position].startswith("Id:"))
        ),
    )


def capability_of(text: str) -> tuple[int, int] | None:
    """(8, 6) of "8.6", None for anything else."""
    found = _CAPABILITY.fullmatch(text.strip())
    return (int(found.group(1)), int(found.group(2))) if found else None


def size_of(text: str) -> Dim3 | None:
    """(256, 1, 1) of "(256, 1, 1)", None for anything else."""
    found = _SIZE.fullmatch(text)
    return (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else None


def function_of(name: str) -> str:
    """The bare function of a demangled kernel name: ``void a::b<int>(c)`` is b."""
    for anonymous in _ANONYMOUS:
        name = name.replace(anonymous, "{}")
    depth, kept = 0, ""
    for character in name:
        if character == "(" and not depth and kept:
            break
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth = max(depth - 1, 0)
        elif not depth:
            kept += character
    words = kept.replace("::", " ").split()
    return words[-1] if words else name


def _ranges(text: str, numbered: bool) -> list[str]:
    found = [one.partition(":")[2] if numbered else one for one in _RANGE.findall(text)]
    names = [one.rsplit(":", _RANGE_FACTS)[0].partition(":") for one in found]
    return [name or domain for domain, _, name in names]


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
