"""Cubins of functions that no compiler made."""

from __future__ import annotations

import struct
from collections.abc import Mapping

EXIT = struct.pack("<QQ", 0x794D, 0x000FEA0003800000)
FFMA = struct.pack("<QQ", 0x7223, 0x000FC80000000000)
NOTES = "<BBH"
"""What an entry of ``.nv.info`` begins with: form, attribute, bytes that follow."""
_CODE, _TEXTS = (1, 6), (3, 0)  # types and flags of sections


def made_cubin(functions: Mapping[str, bytes], notes: bytes = b"") -> bytes:
    """A cubin for 8.0 of these functions by name; all have the same ``notes``, at one place of the file."""
    sections = [("", (0, 0), b"")] + [(f".text.{name}", _CODE, code) for name, code in functions.items()]
    sections += [(f".nv.info.{name}", (1, 0), notes) for name in functions if notes]
    names = b"\0"
    places = []
    for name, _, _ in [*sections, (".shstrtab", _TEXTS, b"")]:
        places.append(len(names))
        names += name.encode() + b"\0"
    sections.append((".shstrtab", _TEXTS, names))
    content, rows, shared = bytearray(64), b"", {}
    for place, (_, (kind, flags), data) in zip(places, sections, strict=True):
        offset = shared.get(data) if data is notes else None
        if offset is None:
            offset = shared[data] = len(content)
            content += data
        rows += struct.pack("<IIQQQQIIQQ", place, kind, flags, 0, offset, len(data), 0, 0, 1, 0)
    ident = b"\x7fELF\2\1\1\x33\x07".ljust(16, b"\0")
    numbers = (2, 190, 1, 0, 0, len(content), 80, 64, 0, 0, 64, len(sections), len(sections) - 1)
    return struct.pack("<16sHHIQQQIHHHHHH", ident, *numbers) + bytes(content[64:]) + rows
