"""Short kernel names, from names as demanglers and compilers really spell them (names.toml)."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.base.texts import MAX_LENGTH, clean, shorten
from ncu_roofline.model.names import matching_brackets, parse, short_names, split_arguments
from tests.rendering.frames import tomllib

NAMES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("full", "short"), [*(([full], [short]) for full, short in NAMES["alone"]), *NAMES["apart"]])
def test_short_names(full: list[str], short: list[str]) -> None:
    assert short_names(full) == short


@given(st.lists(st.text(max_size=80) | st.text(alphabet=string.ascii_letters + "<>()[]{}:,*& _1", max_size=120), max_size=12))
def test_any_names(full: list[str]) -> None:
    short = short_names(full)
    assert len(short) == len(full)
    assert all(0 < len(name) <= MAX_LENGTH and name.isprintable() for name in short)
    assert len(set(short)) == len(set(full))
    assert short == short_names(full)


def test_hostile_names_end() -> None:
    for name in ("a<" * 3000, "a<" * 2000 + ">" * 2000 + "(int)", "(" * 5000, "::" * 3000, "operator" * 900, "_Z9" * 2000):
        assert len(short_names([name])[0]) <= MAX_LENGTH


def test_parts_of_names() -> None:
    brackets = {"a<b>(c)": {1: 3, 4: 6}, "f<(a > b)>": {2: 8, 1: 9}, "operator<<(x)": {10: 12}}
    assert {text: matching_brackets(text) for text in brackets} == brackets
    assert split_arguments("a, b<c, d>, (e, f)") == ("a", "b<c, d>", "(e, f)")
    assert split_arguments("  ") == ()
    name = parse("void ns::K<A>::run<1, B<2>>(int, char const*) const")
    assert name is not None
    parts = (name.scopes, name.base, name.template, name.arguments)
    assert parts == (("ns", "K<A>"), "run", ("1", "B<2>"), ("int", "char const*"))
    assert clean("a\t\tb\n\u202ec\ud800") == "a b c"
    assert [shorten("abcdefghij", most) for most in (10, 9, 3)] == ["abcdefghij", "abcd...ij", "abc"]
