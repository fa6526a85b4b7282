"""A document said once, for a terminal and as Markdown; names: short ones of kernels (names.toml), and cut for a column."""

from __future__ import annotations

import string
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ncu_roofline.base.texts import MAX_LENGTH, clean, shorten
from ncu_roofline.model.names import matching_brackets, parse, short_names, split_arguments
from ncu_roofline.rendering import document as doc
from ncu_roofline.rendering import table as layout
from ncu_roofline.rendering.document import Column, Document, Note, Table, markdown, terminal
from ncu_roofline.rendering.table import RED, TextColumn, columns_wide, cut, cut_apart, listing, numbered, wrapped
from tests.golden import assert_golden
from tests.rendering.frames import tomllib

NAN = float("nan")
GOLDEN = Path(__file__).parent / "golden"
COLUMNS = (
    Column("kernel", "str", "", "name"),
    Column("gpu", "str", "", "GPU", "GPU", omit=doc.ALIKE),
    Column("launches", "int", "", "launches", omit=1),
    Column("least", "float", "second", "run time", "time", to="most"),
    Column("intensity", "float", "flop/byte", "work / traffic", "{unit}"),
    Column("share", "float", "ratio", "share of the roof at a level", "of {level} roof", 2),
    Column("overhead", "float", "second", "launch overhead", omit=doc.MISSING),
    Column("bound", "str", "", "what limits it", "bound by", missing="unknown", words=str.upper),
)
ROWS = (
    {"kernel": "a|b", "gpu": "V100", "launches": 1, "least": 1e-3, "most": 2e-3, "intensity": 1234.5, "unit": "flop",
     "share": 0.5, "overhead": NAN, "bound": "l2"},
    {"kernel": "c\nd", "gpu": "V100", "launches": 1, "least": 5e-6, "most": 5e-6, "intensity": NAN, "unit": "op",
     "share": None, "overhead": NAN, "bound": ""},
)  # fmt: skip
NO_ROOM = "No room for {names}: a wider terminal, csv and json have them."
TABLE = Table(
    "kernels", COLUMNS, ROWS, [one.name for one in COLUMNS], words={"level": "L2"}, legend="time: of a launch.", tells=NO_ROOM
)
NOTES = [Note("Roofs: measured."), Note("a: short", "kernel")]
LONG = replace(TABLE, rows=[{**row, "kernel": f"{row['kernel']}{'x' * 30}"} for row in ROWS], words={"level": "last-level"})
DOCUMENT = Document("Title", "V100", ["Whole.", "Of a kernel."], [TABLE, ("first line", "- item")], NOTES)


def test_what_is_printed() -> None:
    """What matters least goes first where room is short; the first column keeps some characters whatever the width."""
    columns = [TextColumn(name, ["123456789"] * 2, group=("intensity [FLOP/B]", "FLOP/B"), spare=1) for name in ("L1", "L2")]
    names = TextColumn("kernel", ["solver_of_many_equations", "copy|x"], left=True)
    times = TextColumn("time", ["1 ms", "20 ms"], colours=[RED, ""])
    table = layout.Table((names, times, TextColumn("share", ["<0.1 %", "99 %"], spare=2, own=True), *columns))
    wide = layout.Table((replace(names, cells=["\u6838" * 60, "k"]), times))
    shown = {
        "terminal": terminal(DOCUMENT, width=80),
        "rows and columns without room": terminal(replace(DOCUMENT, blocks=[LONG]), width=60, top=1),
        "Markdown": markdown(DOCUMENT).decode(),
        **{f"table {width}": "\n".join(layout.terminal(table, width)) for width in (80, 62, 50, 32, 24, 1)},
        "table in Markdown": layout.markdown(table),
        "blocks": layout.blocks_text([["a", "b"], [], ["3 µs \N{MULTIPLICATION SIGN} 2 · 日"]], ascii_only=True),
        **{f"wide letters {width}": "\n".join(layout.terminal(wide, width)) for width in (20, 61)},
    }
    assert_golden(GOLDEN / "document.txt", "".join(f"== {name}\n{text.rstrip()}\n\n" for name, text in shown.items()))


def test_texts_of_a_terminal() -> None:
    texts = ("µs", "日本", "e\N{COMBINING ACUTE ACCENT}", "\N{DEVANAGARI LETTER KA}\N{DEVANAGARI VOWEL SIGN U}")
    assert list(map(columns_wide, texts)) == [2, 4, 1, 1]  # wide characters take two columns, and marks none
    assert listing([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}]) == ["A     B", "日本  x", "abcd  y"]
    assert listing([]) == []
    assert doc.sparkline([0.0, 0.5, 1.0, NAN], 4) == "\u2581\u2585\u2588?"
    assert doc.sparkline([0.0, 1.0, 1.0, NAN], 2) == "\u2585\u2588"  # means where room is short
    assert wrapped("see abcdefghijkl now", 8, "  ") == ["see", "  abcdef", "  ghijkl", "  now"]
    assert wrapped("see abcdefghijkl now", 8, "  ", whole=True) == ["see", "  abcdefghijkl", "  now"]
    assert wrapped(["a b", "", "c"], 8, "  ", first="- ") == ["- a b", "- c"]
    assert wrapped("a b\n\nc", 8) == ["a b c"]


@given(st.lists(st.floats(0, 1)))
def test_bars_are_as_long_as_shares(shares: list[float]) -> None:
    found = doc.bars(shares)
    pairs = sorted(zip(shares, map(len, found), strict=True))
    assert [length for _, length in pairs] == sorted(length for _, length in pairs)
    assert [bool(bar) for bar in found] == [share > 0 for share in shares]
    assert max(map(len, found), default=0) in (0, 8)


WORDS = st.lists(st.text("abcxyz-", min_size=1, max_size=19), max_size=60).map(" ".join)


@given(WORDS, st.integers(20, 80), st.sampled_from(["", "  "]), st.booleans())
def test_lines_are_wrapped_as_textwrap_does(text: str, width: int, indent: str, whole: bool) -> None:
    assume(max(map(len, text.split()), default=0) <= width - len(indent))  # longer words are cut where they begin a line
    expected = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    assert wrapped(text, width, indent, whole=whole) == expected


NODES = ("double *,doubl...ng long *", "double *,unsig...ng long *", "double*,double*,long*")


@pytest.mark.parametrize(
    ("names", "most", "texts"),
    [
        (["nodeByPoint5"], 24, ["nodeByPoint5"]),
        (["nodeByPoint5(double*,double*,long*)"], 24, ["nodeByPoint5(double*..)"]),  # parameters go first
        (["nodeByPoint5(double*,double*,long*)"], 16, ["nodeByPoint5(..)"]),
        (["nodeByPoint5(double*,double*,long*)"], 14, ["nodeByPoint5"]),
        (["distanceCalculationsKernel"], 16, ["distance...ernel"]),
        (["(anonymous namespace)::f"], 12, ["(anony...::f"]),
        # What names share goes before what tells them apart; what no cut does has numbers.
        ([f"DeviceRadixSort{one}Kernel" for one in ("Histogram", "Onesweep", "ExclusiveSum")], 24,
         ["Device...HistogramKernel", "DeviceR...OnesweepKernel", "Devic...Exclusiv...ernel"]),
        ([f"nodeByPoint5({one})" for one in NODES], 20, [f"nodeByPoint5(d..) #{number}" for number in (1, 2, 3)]),
        (["abcdefghijklmnopqrstuvw", "abcdefghijklmnopqrstuvwx"], 12, ["abcdefghi...", "abcdefgh...x"]),
    ],
)  # fmt: skip
def test_names_are_cut_apart(names: list[str], most: int, texts: list[str]) -> None:
    found = cut_apart(names, most)
    assert list(found.values()) == texts
    assert len(names) > 1 or cut(names[0], most) == texts[0]
    assert numbered(found) == [f"{text}: {name}" for name, text in found.items() if "#" in text]


@given(st.lists(st.text("abK(,*) ", min_size=1, max_size=40), unique=True, max_size=6), st.integers(12, 40))
def test_any_names_fit_and_differ(names: list[str], most: int) -> None:
    found = cut_apart(names, most)
    assert list(found) == names
    assert all(len(text) <= most for text in found.values())
    assert len(set(found.values())) == len(names)
    assert all(text == name for name, text in found.items() if len(name) <= most and " #" not in text)


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
