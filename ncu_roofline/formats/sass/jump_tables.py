"""Where indirect jumps may go, as the compiler notes it for each function in its section ``.nv.info``."""

from __future__ import annotations

import struct

_ATTRIBUTE = struct.Struct("<BBH")
_WORD = struct.Struct("<I")
_WITH_PAYLOAD = 4
"""The form of attributes that are followed by as many bytes as they say; others hold their value themselves."""
_BRANCH_TARGETS = 0x34


def jump_tables(notes: bytes) -> dict[int, tuple[int, ...]]:
    """Targets by the offset of the jump, both in bytes from the beginning of the code; what is damaged is left out."""
    found: dict[int, tuple[int, ...]] = {}
    place = 0
    while place + _ATTRIBUTE.size <= len(notes):
        form, attribute, size = _ATTRIBUTE.unpack_from(notes, place)
        place += _ATTRIBUTE.size
        if form == _WITH_PAYLOAD:
            if attribute == _BRANCH_TARGETS:
                found.update(_tables(notes[place : place + size]))
            place += size
    return found


def _tables(payload: bytes) -> dict[int, tuple[int, ...]]:
    """Tables: offset of the jump, zero, number of targets, targets."""
    words = [word for (word,) in _WORD.iter_unpack(payload[: len(payload) // _WORD.size * _WORD.size])]
    found = {}
    place = 0
    while place + 3 <= len(words):
        jump, _, count = words[place : place + 3]
        place += 3
        if count > len(words) - place:
            break
        found[jump] = tuple(words[place : place + count])
        place += count
    return found
