"""Code that is larger than compilers make it: refused with the reason, before it takes time or memory."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ncu_roofline.formats.sass import CodeError, cubin, line_program
from ncu_roofline.formats.sass.cubin import Cubin
from tests.counted import steps
from tests.sass import fixtures
from tests.sass.made import EXIT, NOTES, made_cubin


def test_many_functions_take_time_in_proportion() -> None:
    def use(count: int) -> Callable[[], object]:
        read = Cubin(made_cubin({f"f{number}": EXIT for number in range(count)}))
        return lambda: [read.jump_tables(name) for name in read.functions]

    assert steps(use(400)) < 5 * steps(use(100))


def test_functions_that_share_their_notes() -> None:
    with pytest.raises(CodeError, match="on each other"):
        Cubin(made_cubin({f"f{number}": EXIT for number in range(300)}, notes=bytes(10_000)))


def all_lines(read: Cubin) -> None:
    for name in read.functions:
        read.lines(name)


@pytest.mark.parametrize(
    ("module", "limit", "value", "reason", "use"),
    [
        (cubin, "CUBIN_BYTES", 1000, "it has more than 1,000 bytes", len),
        (cubin, "TABLE_ROWS", 10, "symbols, and no more than 10 are read", len),
        (line_program, "LINE_BYTES", 100, "more than 100 bytes of it would have to be run", all_lines),
        (cubin, "NOTE_BYTES", 100, "longer than 100 bytes", lambda read: [read.jump_tables(name) for name in read.functions]),
    ],
)
def test_more_than_any_module_has(
    module: object, limit: str, value: int, reason: str, use: Callable[[Cubin], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(CodeError, match=reason):
        use(Cubin(fixtures.cubin("80", "linked")))


def test_relocations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = fixtures.cubin("80", "linked")
    monkeypatch.setattr(cubin, "TABLE_ROWS", len(cubin.Elf(data).symbols))
    with pytest.raises(CodeError, match="relocations, and no more than 75 are read"):
        Cubin(data)


def test_jump_tables_of_a_made_cubin() -> None:
    """That the notes of made cubins are read at all."""
    payload = struct.pack("<III", 16, 0, 1) + struct.pack("<I", 32)
    read = Cubin(made_cubin({"f": EXIT}, notes=struct.pack(NOTES, 4, 0x34, len(payload)) + payload))
    assert read.jump_tables("f") == {16: (32,)}
