"""The source view as text and as a page, without a browser: order, columns, names; data and markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.source import page
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.frames import SourceRoofline, files_apart
from ncu_roofline.analyses.source.page import render_html
from ncu_roofline.analyses.source.text import BY, MEASURES, RANKED, document, hottest
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.rendering.document import FORMS, text_columns
from ncu_roofline.rendering.table import columns_wide, escape
from tests.analyses.source_frames import TEXTS, rows_of, source_frames
from tests.rendering.cases import HOSTILE, SOURCE_TABLES, Markup, changed, longer, made, with_texts

# Escape sequences, changes of direction, tabs and much of them; what is in tables has letters of two columns, too.
PROSE = "\t\33[31msum\33]0;title\7 += \u202etxet\u2066 * x;\r\n" * 40
WIDE = PROSE.replace("*", "\u4e16\u754c *")
WHOLE = source_frames()


@pytest.mark.parametrize("by", ["", *BY])
def test_texts_fit_and_hold_nothing_that_a_terminal_obeys(by: str) -> None:
    wild = source_frames(texts={"smooth.cu": (WIDE,) * 20}, kernel=PROSE, report=PROSE)
    names = ("sass", "opcode", "inlined", "stall", "name", "notes", "message", "advice")
    wild = changed(wild, "line instruction", **dict.fromkeys(names, WIDE))
    wild = changed(wild, "function total finding", **dict.fromkeys(names, PROSE))
    for width in (60, 80, 120, 200):
        lines = text_table(replace(wild, notes=(PROSE,)), width=width, by=by).splitlines()
        assert [line for line in lines if columns_wide(line) > width or not line.isprintable()] == []


@pytest.mark.parametrize("sort", RANKED)
def test_lines_are_in_the_order_asked_for(sort: str) -> None:
    named = re.findall(r"^(\S+\.cuh?:\d+|outside)  ", text_table(WHOLE, by="line", sort=sort, width=200), flags=re.MULTILINE)
    totals = {row["quantity"]: row["sum"] for row in rows_of(WHOLE.total_columns)}
    counted = {"executed": "executed", "traffic": "requested"}  # it asks nothing of local memory
    values = {
        f"{row['file']}:{row['line']}" if row["line"] > 0 else "outside": row[counted[sort]] / totals[counted[sort]]
        if sort in counted
        else row[MEASURES[sort].share]
        for row in rows_of(WHOLE.line_columns)
    }
    assert [values[name] for name in named] == sorted((values[name] for name in named), reverse=True)
    assert len(named) == len([row for row in rows_of(WHOLE.line_columns) if row["executed"]])


def columns_of(shown: str) -> list[str]:
    """The columns of the only table of a text."""
    lines = shown.splitlines()
    head = lines[next(number for number, line in enumerate(lines) if set(line) == {"-"}) - 1]
    return re.split(r" {2,}", head.strip())


@pytest.mark.parametrize("by", BY)
def test_columns_that_had_no_room_are_named_with_the_width_that_shows_them(tmp_path: Path, by: str) -> None:
    for frames in (WHOLE, made("source-spilling", tmp_path)):
        every = columns_of(text_table(frames, by=by, width=400))
        for width in (60, 80, 120, 200):
            shown = text_table(frames, by=by, width=width)
            told = re.search(r"Left out for width: (.*): --width (\d+) shows them\.", " ".join(shown.split()))
            gone = [name for name in every if name not in columns_of(shown)]
            assert (told[1].split(", ") if told else []) == gone
            if told:
                assert set(columns_of(text_table(frames, by=by, width=int(told[2])))) >= set(every)


def test_inner_loops_stand_below_those_around_them() -> None:
    shuffled = {name: values[[1, 3, 0, 2]] for name, values in WHOLE.loop_columns.items()}
    assert text_table(replace(WHOLE, loop_columns=shuffled), by="loop") == text_table(WHOLE, by="loop")


def test_headings_of_markdown_hold_no_markup_of_file_names() -> None:
    file = "<img src=x onerror=alert(1)>*bold*_x_.cu"
    shown = render(changed(WHOLE, "line loop", "file != ''", file=file), "md").decode()
    assert re.findall("^### (.*)", shown, flags=re.MULTILINE)[1:3] == [f"{one} of {escape(file)}" for one in ("Loops", "Lines")]
    assert file not in shown


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30), st.integers(1, 30))
def test_the_listing_is_the_hottest_stretch(weights: list[int], most: int) -> None:
    start, end = hottest(weights, most)
    assert end - start == min(most, len(weights))
    assert sum(weights[start:end]) == max(sum(weights[i : i + end - start]) for i in range(len(weights) - (end - start) + 1))
    assert hottest([0.0] * 10 + [0.3] + [0.0] * 10, 5) == (8, 13)  # the only hot one stands in the middle
    assert [hottest([one, *[0.0] * 9], 5) for one in (0.1, 0.2)] == [(0, 5)] * 2
    assert hottest([0.2, *[0.0] * 9, 0.15, 0.1, *[0.0] * 9], 5) == (8, 13)


def data_of(frames: SourceRoofline, **options: Any) -> dict[str, Any]:
    return Markup(render_html(frames, **options)).data


def test_shares_are_those_of_the_text_and_code_is_told_where_it_is_inlined(tmp_path: Path) -> None:
    frames = made("source-local", tmp_path)
    data = data_of(frames)
    (launch,) = data["launches"]
    loops = {loop["loop"]: loop["shares"] for loop in launch["loops"]}
    table: Any = document(frames, by="loop", rows=0).blocks[0].blocks[0]  # type: ignore[union-attr]
    told = {column.header.lower(): column.cells for column in text_columns(table).values()}
    names, none = [one["label"].lower() for one in data["measures"]], {"in no loop": -1, "outside of the code": -2}
    shown = [none[text] if (text := row["loop"]) in none else int(text.split()[0]) for row in table.rows]
    assert {"samples", "work", "l1 bytes", "local bytes", "excess"} <= told.keys() & set(names)
    for name in told.keys() & set(names):
        assert told[name] == [FORMS["share"](loops[loop][names.index(name)]) for loop in shown], name
    shares, given = dict(zip(MEASURES, launch["instructions"]["shares"], strict=True)), frames.instruction_columns
    assert shares["samples"] == pytest.approx(given["share_samples"].tolist(), rel=6e-6)
    assert sum(shares["executed"]) == pytest.approx(1, rel=1e-5)
    inlined = given["inlined"] == "smooth.cu:13"
    line = next(one for one in launch["lines"] if one["file"] == 0 and one["line"] == 13)
    assert line["within"][0] == pytest.approx(given["share_samples"][inlined].sum(), rel=6e-6)
    chained = {**given, "inlined": np.where(inlined, "smooth.cu:16 < smooth.cu:13 < nonsense < :4", given["inlined"])}
    ((caller,),) = (one["callers"] for one in data_of(replace(frames, instruction_columns=chained))["launches"])
    assert (caller["line"], caller["within"][0]) == (16, line["within"][0])
    files = [f"{letter}.cuh" for letter in "qwertyuiop"]  # in the order of the code
    calls = np.where(given["inlined"] == "", "", " < ".join(f"{file}:7" for file in files)).astype(object)
    data = data_of(replace(frames, instruction_columns={**given, "inlined": calls}))
    assert [data["files"][one["file"]]["label"] for one in data["launches"][0]["callers"]] == files[: page._PLACES]


def test_sources_are_whole_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def files_of(frames: SourceRoofline) -> dict[str, Any]:
        return {file["label"]: file for file in data_of(frames)["files"]}

    texts = {**TEXTS, "smooth.cu": ("\tint\tx;", "x" * 5000, "a\u202eb\x00c\u200b")}
    ((_, lines),) = files_of(source_frames(texts=texts))["smooth.cu"]["parts"]
    assert (lines[0], len(lines[1]) < 500, lines[2]) == ("    int x;", True, "a\ufffdb\ufffdc\ufffd")
    monkeypatch.setattr(page, "_WHOLE", 10)
    monkeypatch.setattr(page, "_AROUND", 0)
    files = files_of(source_frames())
    assert [(first, len(texts)) for first, texts in files["smooth.cu"]["parts"]] == [(5, 2), (10, 4), (15, 1), (17, 1)]
    assert (files["smooth.cu"]["whole"], files["weights.cuh"]["whole"]) == (False, True)
    monkeypatch.setattr(page, "_ROOM", 30)
    parts = [file["parts"] for file in files_of(source_frames()).values()]
    assert sum(len(text) for part in parts for _, texts in part for text in texts) <= 30


def test_many_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = longer(560)
    assert len(frames.instruction_columns["offset"]) > 10_000
    assert len(render_html(frames)) < 5e6
    assert data_of(frames)["launches"][0]["left_out"] == 0
    monkeypatch.setattr(page, "_INSTRUCTIONS", 100)
    (launch,) = data_of(longer(20))["launches"]
    offsets, hottest = launch["instructions"]["offset"], int(WHOLE.instruction_columns["samples"].argmax())
    assert 0 < len(offsets) <= 100
    assert hottest in {offset // 16 % 18 for offset in offsets}
    assert set(launch["stalls"]["row"]) <= set(range(len(offsets)))
    (launch,) = data_of(changed(longer(20), "instruction", "index >= 18", executed=0.0, samples=0.0))["launches"]
    assert (len(launch["instructions"]["offset"]), launch["left_out"]) == (100, 260)


def test_launches_are_in_order_of_time_and_files_without_folders() -> None:
    short, long = (source_frames(kernel=name, launch=number) for number, name in enumerate(("short", "long")))
    kernels = {**long.roofline.kernel_columns, "seconds": np.array([1.0])}
    both = SourceRoofline.joined([short, replace(long, roofline=replace(long.roofline, kernel_columns=kernels))])
    assert [launch["kernel"] for launch in data_of(both)["launches"]] == ["long", "short"]
    paths = ("/home/me/a/src/x.cu", "C:\\work\\b\\src\\x.cu", "y.cuh", "/secret/z.h")
    assert list(files_apart(paths).values()) == ["a/src/x.cu", "b/src/x.cu", "y.cuh", "z.h"]
    assert all(len(name) < 40 for name in files_apart([f"/{'d/' * depth}x.cu" for depth in range(40)]).values())
    frames = replace(source_frames(), texts={f"/home/me/{name}": lines for name, lines in TEXTS.items()})
    for name in TEXTS:
        frames = changed(frames, SOURCE_TABLES, f"file == '{name}'", file=f"/home/me/{name}")
    page_of = render_html(frames)
    assert (b"/home/me" in page_of, b"smooth.cu" in page_of) == (False, True)


def test_nothing_of_a_report_is_markup_and_nothing_must_be_there() -> None:
    page_of = render_html(with_texts(HOSTILE), title=HOSTILE)
    markup = Markup(page_of)
    assert (len(markup.scripts), [tag for tag, _ in markup.elements if tag in ("img", "b")]) == (2, [])
    assert not any(letter.encode() in page_of for letter in ("\u202e", "\x00", "\x1b"))
    assert any("<img src=x" in text for text in markup.data["texts"])
    for options in ({"lines": False}, {"texts": {}}, {"sass": False}, {"sampled": False}, {"code": False}):
        data = data_of(source_frames(**options))
        assert len(data["launches"]) == 1
        assert "texts" not in options or not any(file["parts"] for file in data["files"])
    empty = source_frames()
    for table in SOURCE_TABLES.split():
        columns = {key: values[:0] for key, values in getattr(empty, f"{table}_columns").items()}
        empty = replace(empty, **{f"{table}_columns": columns})
    assert b"No launch here has counts by instruction" in render_html(empty)
    assert b"no launch has counts by instruction" in render(empty, "svg")
    with pytest.raises(ValueError, match="theme"):
        render_html(empty, theme="pink")


def roof_over(chart: dict[str, Any], dot: dict[str, Any]) -> float:
    """The lower of the highest compute roof and the bandwidth roof of the dot's level; loops stand at L1."""
    of = {kind: [roof for roof in chart["roofs"] if roof["kind"] == kind] for kind in ("compute", "bandwidth")}
    slopes = [roof["value"] for roof in of["bandwidth"] if roof["level"] == dot.get("level", "l1")]
    return min([max(roof["value"] for roof in of["compute"]), *(slope * dot["intensity"] for slope in slopes)])


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_no_dot_of_a_real_report_stands_above_a_roof(real_reports: dict[str, Path], every: int) -> None:
    drawn = {"dots": 0, "loops": 0}
    for path in [*real_reports.values()][::every]:
        try:
            frames = source_roofline(path, top=100)
        except RooflineError:
            continue
        page_of = render_html(frames)
        assert len(page_of) < 5e6
        for launch in Markup(page_of).data["launches"]:
            loops = [loop for loop in launch["loops"] if loop["performance"] is not None]
            for kind, dots in {"dots": launch["chart"]["dots"], "loops": loops}.items():
                drawn[kind] += len(dots)
                for dot in dots:
                    assert dot["performance"] <= 1.01 * roof_over(launch["chart"], dot), (path.name, launch["kernel"], dot)
    assert drawn["dots"] > 20 / every
    assert drawn["loops"] > 5 / every or every > 1
