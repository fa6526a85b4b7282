"""What code can come to, by its calls."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.formats.sass.cubin import Cubin, Function, Reach
from ncu_roofline.formats.sass.instructions import decode
from tests.sass import fixtures

CALLER, APART = "_Z6callerPfi", "_Z5apartfi"
FLOWS = ("branch", "indirect", "call", "return", "exit")


def reach(chip: str) -> Reach:
    return Reach(Cubin(fixtures.cubin(chip)), {"HFMA2"})


def test_functions_that_are_called_and_calls_that_tell_nothing() -> None:
    found = reach("80")
    within = found.within(CALLER)
    assert within
    assert {CALLER, APART} < within
    assert found.within(APART) == {APART}
    assert found.within("_Z7stencilPKfPfi") == {"_Z7stencilPKfPfi"}
    assert reach("120").within("_Z8pointersPfi") is None
    with pytest.raises(KeyError):
        found.within("nothing")


def test_only_what_is_asked_for_is_decoded() -> None:
    cubin = Cubin(fixtures.cubin("80"))
    for function in cubin.functions.values():
        every = decode(function.code, function.capability)
        some = decode(function.code, function.capability, {"HFMA2"})
        assert some == tuple(one for one in every if one.name == "HFMA2" or one.flow in FLOWS)
    unknown = decode(b"\x0e\x70" + bytes(14), (8, 0), {"HFMA2"})
    assert [one.name for one in unknown] == ["op 0x00e"]


def made(calls: dict[str, list[str]]) -> Any:
    """A cubin of functions of one call after the other, ``CALL.REL`` to addresses that relocations fill in."""
    call = (0x144 | 4 << 9 | 7 << 12 | 2**40).to_bytes(8, "little") + (7 << 23 | 2**14).to_bytes(8, "little")
    functions = {
        name: Function(name, call * len(callees), (8, 0), calls=tuple((16 * place, one) for place, one in enumerate(callees)))
        for name, callees in calls.items()
    }
    return SimpleNamespace(functions=functions)


def test_circles_end_and_very_many_functions_are_not_followed() -> None:
    circle: Cubin = made({"a": ["b"], "b": ["a", "vprintf"]})
    assert Reach(circle, ()).within("a") == {"a", "b"}
    chain = [f"f{number}" for number in range(200)]
    long: Cubin = made({one: [other] for one, other in pairwise(chain)} | {chain[-1]: []})
    assert Reach(long, ()).within("f0") is None
    assert Reach(long, ()).within("f150") == set(chain[150:])
