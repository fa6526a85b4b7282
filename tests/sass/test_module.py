"""Modules and their functions: read once, whoever asks."""

from __future__ import annotations

from ncu_roofline.formats.sass.cubin import module_of
from tests.sass import fixtures

CUBIN = fixtures.cubin("80", "linked")


def test_a_module_is_read_once() -> None:
    assert module_of(CUBIN) is module_of(bytes(bytearray(CUBIN)))
    name = next(iter(module_of(CUBIN).functions))
    assert module_of(CUBIN).body(name).instructions is module_of(CUBIN).body(name).instructions
