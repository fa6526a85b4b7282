"""The table of texts, its printers, and names of kernels that are cut for a column."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ncu_roofline.rendering.table import (
    BOLD,
    RED,
    Table,
    TextColumn,
    blocks_text,
    bullets,
    columns_wide,
    cut,
    cut_apart,
    listing,
    markdown,
    numbered,
    terminal,
    wrapped,
)

WORDS = st.lists(st.text("abcxyz-", min_size=1, max_size=19), max_size=60).map(" ".join)


def table() -> Table:
    """Two kernels: a name, a time that stays, a share that may go before the work."""
    return Table(
        (
            TextColumn("kernel", ["solver_of_many_equations", "copy|x"], left=True),
            TextColumn("time", ["1 ms", "20 ms"], colours=[RED, ""]),
            TextColumn("share", ["<0.1 %", "99 %"], spare=2, own=True),
            TextColumn("work", ["1", "22222"], spare=1),
        )
    )


def test_everything_where_there_is_room() -> None:
    assert terminal(table(), 60) == [
        "kernel                     time   share   work",
        "----------------------------------------------",
        "solver_of_many_equations   1 ms  <0.1 %      1",
        "copy|x                    20 ms    99 %  22222",
    ]


@pytest.mark.parametrize(
    ("width", "headers", "name"),
    [
        (44, "kernel time share work", "solver_of_ma...uations"),
        (32, "kernel time work", "solver_of...ations"),
        (24, "kernel time", "solver_of...tions"),
    ],
)
def test_what_matters_least_goes_first(width: int, headers: str, name: str) -> None:
    lines = terminal(table(), width)
    assert lines[0].split() == headers.split()
    assert lines[2].split()[0] == name
    assert max(map(len, lines)) == width


def test_the_first_column_keeps_some_characters_whatever_the_width() -> None:
    assert terminal(table(), 1) == ["kernel     time", "-", "sol...ns   1 ms", "copy|x    20 ms"]


def test_colours() -> None:
    head, _, first, second = terminal(table(), 60, color=True)
    assert head.startswith(BOLD)
    assert f"  {RED}1 ms\33[0m" in first
    assert "\33" not in second
    assert "\33" not in "".join(terminal(table(), 60))


def test_a_group_stands_over_its_columns() -> None:
    columns = [TextColumn(name, ["1", "2"], group=("intensity [FLOP/B]", "FLOP/B")) for name in ("L1", "L2")]
    narrow = Table((TextColumn("kernel", ["a", "b"], left=True), *columns))
    assert narrow.head() == ["        FLOP/B", "kernel  L1  L2"]
    wide = Table((narrow.columns[0], *(TextColumn(one.header, ["123456789"] * 2, group=one.group) for one in columns)))
    assert wide.head()[0].split("  ")[-1] == "intensity [FLOP/B]"


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    texts = ("µs", "日本", "e\N{COMBINING ACUTE ACCENT}", "\N{DEVANAGARI LETTER KA}\N{DEVANAGARI VOWEL SIGN U}")
    assert list(map(columns_wide, texts)) == [2, 4, 1, 1]
    assert listing([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}]) == ["A     B", "日本  x", "abcd  y"]
    assert listing([]) == []


def test_markdown_escapes_what_is_not_our_own() -> None:
    assert markdown(table()).splitlines() == [
        "| kernel | time | share | work |",
        "| :-- | --: | --: | --: |",
        r"| solver\_of\_many\_equations | 1 ms | <0.1 % | 1 |",
        "| copy&#124;x | 20 ms | 99 % | 22222 |",
    ]
    assert bullets(["a<b", "c"]) == "- a&#60;b\n- c"


@given(WORDS, st.integers(20, 80), st.sampled_from(["", "  "]), st.booleans())
def test_lines_are_wrapped_as_textwrap_does(text: str, width: int, indent: str, whole: bool) -> None:
    assume(max(map(len, text.split()), default=0) <= width - len(indent))  # longer words are cut where they begin a line
    expected = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    assert wrapped(text, width, indent, whole=whole) == expected


def test_words_longer_than_a_line() -> None:
    assert wrapped("see abcdefghijkl now", 8, "  ") == ["see", "  abcdef", "  ghijkl", "  now"]
    assert wrapped("see abcdefghijkl now", 8, "  ", whole=True) == ["see", "  abcdefghijkl", "  now"]
    assert wrapped(["a b", "", "c"], 8, "  ", first="- ") == ["- a b", "- c"]
    assert wrapped("a b\n\nc", 8) == ["a b c"]


def test_blocks() -> None:
    assert blocks_text([["a", "b"], [], ["3 µs \N{MULTIPLICATION SIGN} 2 · 日"]], ascii_only=True) == "a\nb\n\n3 us x 2 - ?"


@pytest.mark.parametrize("width", [20, 60, 81])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    table = Table(
        (TextColumn("kernel", ["\N{CJK UNIFIED IDEOGRAPH-6838}" * 60, "k"], left=True), TextColumn("time", ["1 s", "2 s"]))
    )
    assert {columns_wide(line) <= width for line in terminal(table, width)} == {True}


SORTS = ["DeviceRadixSortHistogramKernel", "DeviceRadixSortOnesweepKernel", "DeviceRadixSortExclusiveSumKernel"]
NODES = [
    "nodeByPoint5(double *,doubl...ng long *)",
    "nodeByPoint5(double *,unsig...ng long *)",
    "nodeByPoint5(double*,double*,long*)",
]


@pytest.mark.parametrize(
    ("name", "most", "text"),
    [
        ("nodeByPoint5", 24, "nodeByPoint5"),
        ("nodeByPoint5(double*,double*,long*)", 24, "nodeByPoint5(double*..)"),
        ("nodeByPoint5(double*,double*,long*)", 16, "nodeByPoint5(..)"),
        ("nodeByPoint5(double*,double*,long*)", 14, "nodeByPoint5"),
        ("distanceCalculationsKernel", 16, "distance...ernel"),
        ("(anonymous namespace)::f", 12, "(anony...::f"),
    ],
)
def test_parameters_go_first(name: str, most: int, text: str) -> None:
    assert cut(name, most) == text


def test_what_names_share_goes_before_what_tells_them_apart() -> None:
    found = cut_apart(SORTS, 24)
    assert list(found.values()) == ["Device...HistogramKernel", "DeviceR...OnesweepKernel", "Devic...Exclusiv...ernel"]


def test_names_that_no_cut_tells_apart_are_numbered() -> None:
    found = cut_apart(NODES, 20)
    assert list(found.values()) == ["nodeByPoint5(d..) #1", "nodeByPoint5(d..) #2", "nodeByPoint5(d..) #3"]
    assert numbered(found) == [f"{text}: {name}" for name, text in found.items()]


@given(st.lists(st.text("abK(,*) ", min_size=1, max_size=40), unique=True, max_size=6), st.integers(12, 40))
def test_any_names_fit_and_differ(names: list[str], most: int) -> None:
    found = cut_apart(names, most)
    assert list(found) == names
    assert all(len(text) <= most for text in found.values())
    assert len(set(found.values())) == len(names)
    assert all(text == name for name, text in found.items() if len(name) <= most and " #" not in text)


def test_a_name_that_another_goes_on_with() -> None:
    found = cut_apart(["abcdefghijklmnopqrstuvw", "abcdefghijklmnopqrstuvwx"], 12)
    assert list(found.values()) == ["abcdefghi...", "abcdefgh...x"]
