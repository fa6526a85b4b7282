"""The data and the markup of the source view's page, without a browser."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncu_roofline.analyses.source import page
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.analyses.source.frames import SourceRoofline, files_apart
from ncu_roofline.analyses.source.page import render_html
from ncu_roofline.analyses.source.picture import chart_of
from ncu_roofline.analyses.source.text import MEASURES, document, launches
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.rendering.document import FORMS, Document, Table, text_columns
from tests.analyses.source_frames import SOURCE, TEXTS, source_frames
from tests.analyses.time_frames import ordinary, point
from tests.rendering.test_page import HOSTILE, Markup

TABLES = ("line", "outer_line", "loop", "function", "instruction", "stall", "total", "finding")


def data_of(frames: SourceRoofline, **options: Any) -> dict[str, Any]:
    return Markup(render_html(frames, **options)).data


def longer(frames: SourceRoofline, times: int, *, counted: bool = True) -> SourceRoofline:
    """With so many times its instructions, one behind the other; only the first were executed where not all are ``counted``."""
    table = frames.instruction_columns
    made = {name: np.concatenate([values] * times) for name, values in table.items()}
    count = len(table["offset"])
    made["function"][:] = next(name for name in table["function"] if name)
    made["offset"] = 16 * np.arange(times * count)
    if not counted:
        for name in ("executed", "samples"):
            made[name][count:] = 0.0
    return replace(frames, instruction_columns=made)


def with_local(frames: SourceRoofline) -> SourceRoofline:
    """The frames with as many bytes of local memory as of global memory."""
    made = {}
    for name in ("instruction", "line", "loop", "function"):
        table = getattr(frames, f"{name}_columns")
        made[f"{name}_columns"] = {**table, "local": table["requested"]}
    return replace(frames, **made)


def extreme(frames: SourceRoofline) -> SourceRoofline:
    """The frames with counts that only damaged reports have, and loops that are inside of each other."""
    values = np.array([1e308, -1e308, 1e-308, np.inf, -np.inf, -1.0, 0.0, np.nan])
    made = {}
    for name in ("line", "loop", "function", "instruction", "stall", "total"):
        table = getattr(frames, f"{name}_columns")
        numbers = {key for key, column in table.items() if column.dtype == np.float64}
        made[f"{name}_columns"] = {**table, **{key: np.resize(np.roll(values, len(key)), len(table[key])) for key in numbers}}
    loops = made["loop_columns"]
    loops["parent"] = loops["loop"][::-1].copy()
    for key, far in (("intensity", 1e300), ("performance", 1e-300), ("attainable", 1e308)):
        loops[key] = np.resize([far, 1.0, 1 / far], len(loops["loop"]))
    return replace(frames, **made)


def with_texts(frames: SourceRoofline, text: str) -> SourceRoofline:
    """The frames with a text in every column of texts, and in the source."""
    made = {}
    for name in TABLES:
        table = getattr(frames, f"{name}_columns")
        strings = {key for key, values in table.items() if values.dtype == object}
        hostile = {key: np.array([text] * len(table[key]), dtype=object) for key in strings}
        made[f"{name}_columns"] = {**table, **hostile}
    return replace(frames, **made, texts={text: (text,) * 20}, notes=(text,))


def test_data_of_the_page_are_the_frames() -> None:
    frames = source_frames()
    data = data_of(frames, title="a title")
    assert data["title"] == "a title"
    (launch,) = data["launches"]
    rows, given = launch["instructions"], frames.instruction_columns
    assert rows["offset"] == given["offset"].tolist()
    assert [data["texts"][place] for place in rows["text"]] == [
        sass or opcode for sass, opcode in zip(given["sass"], given["opcode"], strict=True)
    ]
    assert rows["executed"] == pytest.approx(given["executed"].tolist())
    shares = dict(zip(MEASURES, rows["shares"], strict=True))
    assert shares["samples"] == pytest.approx(given["share_samples"].tolist(), rel=6e-6)
    assert sum(shares["executed"]) == pytest.approx(1, rel=1e-5)
    labels = [file["label"] for file in data["files"]]
    lines = {(labels[line["file"]], line["line"]): line for line in launch["lines"]}
    for file, line, share in zip(*(frames.line_columns[name] for name in ("file", "line", "share_work")), strict=True):
        got = lines[file, line]["shares"][1]
        assert got is None if np.isnan(share) else got == pytest.approx(share, rel=6e-6)
    loops = {loop["loop"]: loop for loop in launch["loops"]}
    for loop, performance in zip(frames.loop_columns["loop"], frames.loop_columns["performance"], strict=True):
        assert loops[loop]["performance"] == (None if np.isnan(performance) else pytest.approx(performance, rel=6e-6))


def test_shares_are_those_of_the_text_under_the_same_names() -> None:
    frames = with_local(source_frames())
    data = data_of(frames)
    part = document(frames, by="loop", rows=0).blocks[0]
    assert isinstance(part, Document)
    table = part.blocks[0]
    assert isinstance(table, Table)
    told = {column.header.lower(): column.cells for column in text_columns(table).values()}
    names = [one["label"].lower() for one in data["measures"]]
    loops = {row["loop"]: dict(zip(names, row["shares"], strict=True)) for row in data["launches"][0]["loops"]}
    none = {"in no loop": -1, "outside of the code": -2}
    shown = [none[text] if (text := row["loop"]) in none else int(text.split()[0]) for row in table.rows]
    assert {"samples", "work", "l1 bytes", "local bytes", "excess"} <= told.keys() & set(names)
    for name in told.keys() & set(names):
        assert told[name] == [FORMS["share"](loops[loop][name]) for loop in shown], name
    assert 0 < loops[0]["local bytes"] == pytest.approx(loops[0]["l1 bytes"] / 2, rel=1e-5)


def test_code_inlined_at_a_line_is_told_there() -> None:
    frames = source_frames()
    data = data_of(frames)
    (launch,) = data["launches"]
    labels = [file["label"] for file in data["files"]]
    given = frames.instruction_columns
    inlined = given["inlined"] == "smooth.cu:13"
    line = next(one for one in launch["lines"] if (labels[one["file"]], one["line"]) == ("smooth.cu", 13))
    assert inlined.sum() == 2
    assert line["within"][0] == pytest.approx(given["share_samples"][inlined].sum(), rel=6e-6)
    chained = {**given, "inlined": np.where(inlined, "smooth.cu:16 < smooth.cu:13 < nonsense < :4", given["inlined"])}
    (launch,) = data_of(replace(frames, instruction_columns=chained))["launches"]
    (caller,) = launch["callers"]
    assert (caller["line"], caller["within"][0]) == (16, line["within"][0])


def test_sources_are_whole_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {file["label"]: file for file in data_of(source_frames())["files"]}
    assert files["smooth.cu"]["parts"] == [[1, SOURCE.splitlines()]]
    assert files["smooth.cu"]["whole"]
    monkeypatch.setattr(page, "_WHOLE", 10)
    monkeypatch.setattr(page, "_AROUND", 0)
    files = {file["label"]: file for file in data_of(source_frames())["files"]}
    assert [(first, len(texts)) for first, texts in files["smooth.cu"]["parts"]] == [(5, 2), (10, 4), (15, 1), (17, 1)]
    assert not files["smooth.cu"]["whole"]
    assert files["weights.cuh"]["whole"]
    monkeypatch.setattr(page, "_ROOM", 30)
    parts = [file["parts"] for file in data_of(source_frames())["files"]]
    assert sum(len(text) for part in parts for _, texts in part for text in texts) <= 30
    assert not any(file["parts"] for file in data_of(source_frames(texts={}))["files"])


def test_tabs_and_long_lines() -> None:
    texts = {**TEXTS, "smooth.cu": ("\tint\tx;", "x" * 5000, "a\u202eb\x00c\u200b")}
    files = {file["label"]: file for file in data_of(source_frames(texts=texts))["files"]}
    ((_, lines),) = files["smooth.cu"]["parts"]
    assert lines[0] == "    int x;"
    assert len(lines[1]) < 500
    assert lines[2] == "a\ufffdb\ufffdc\ufffd"


def test_many_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = longer(source_frames(), 560)
    assert len(frames.instruction_columns["offset"]) > 10_000
    assert len(render_html(frames)) < 5e6
    assert data_of(frames)["launches"][0]["left_out"] == 0
    monkeypatch.setattr(page, "_INSTRUCTIONS", 100)
    (launch,) = data_of(longer(source_frames(), 20, counted=False))["launches"]
    assert launch["instructions"]["offset"] == sorted(launch["instructions"]["offset"])
    assert (len(launch["instructions"]["offset"]), launch["left_out"]) == (100, 260)
    (launch,) = data_of(longer(source_frames(), 20))["launches"]
    given = source_frames().instruction_columns
    hottest = int(given["samples"].argmax())
    offsets = launch["instructions"]["offset"]
    assert 0 < len(offsets) <= 100
    assert {offset // 16 % 18 for offset in offsets} >= {hottest}
    assert len(set(launch["stalls"]["row"]) - set(range(len(offsets)))) == 0


def test_lines_that_only_call_stand_in_the_order_of_the_code() -> None:
    frames = source_frames()
    files = [f"{letter}.cuh" for letter in "qwertyuiop"]
    inlined = np.where(frames.instruction_columns["inlined"] == "", "", " < ".join(f"{file}:7" for file in files)).astype(
        object
    )
    data = data_of(replace(frames, instruction_columns={**frames.instruction_columns, "inlined": inlined}))
    callers = [data["files"][one["file"]]["label"] for one in data["launches"][0]["callers"]]
    assert callers == files[: page._PLACES]


def test_launches_are_in_order_of_time() -> None:
    short, long = (source_frames(kernel=name, launch=number) for number, name in enumerate(("short", "long")))
    kernels = {**long.roofline.kernel_columns, "seconds": np.array([1.0])}
    both = SourceRoofline.joined([short, replace(long, roofline=replace(long.roofline, kernel_columns=kernels))])
    assert [launch["kernel"] for launch in data_of(both)["launches"]] == ["long", "short"]


def test_names_of_files_say_no_folders() -> None:
    paths = ("/home/me/a/src/x.cu", "C:\\work\\b\\src\\x.cu", "y.cuh", "/secret/z.h")
    assert list(files_apart(paths).values()) == ["a/src/x.cu", "b/src/x.cu", "y.cuh", "z.h"]
    many = [f"/{'d/' * depth}x.cu" for depth in range(40)]
    assert all(len(name) < 40 for name in files_apart(many).values())
    named = {file: f"/home/me/{file}" for file in TEXTS}
    frames = source_frames()
    moved = {}
    for name in ("line", "outer_line", "loop", "function", "instruction", "finding"):
        table = getattr(frames, f"{name}_columns")
        moved[f"{name}_columns"] = {**table, "file": np.array([named.get(one, one) for one in table["file"]], dtype=object)}
    page = render_html(replace(frames, **moved, texts={named[name]: lines for name, lines in TEXTS.items()}))
    assert b"/home/me" not in page
    assert b"smooth.cu" in page


def test_nothing_of_a_report_is_markup() -> None:
    page = render_html(with_texts(source_frames(), HOSTILE), title=HOSTILE)
    markup = Markup(page)
    assert len(markup.scripts) == 2
    assert [tag for tag, _ in markup.elements if tag in ("img", "b")] == []
    for letter in ("\u202e", "\x00", "\x1b"):
        assert letter.encode() not in page
    assert any("<img src=x" in text for text in markup.data["texts"])


def test_frames_without_something() -> None:
    for options in ({"lines": False}, {"texts": {}}, {"sass": False}, {"sampled": False}, {"code": False}):
        data = data_of(source_frames(**options))
        assert len(data["launches"]) == 1
    empty = source_frames()
    tables = {
        f"{name}_columns": {key: values[:0] for key, values in getattr(empty, f"{name}_columns").items()} for name in TABLES
    }
    page = render_html(replace(empty, **tables))
    assert b"No launch here has counts by instruction" in page
    with pytest.raises(ValueError, match="theme"):
        render_html(empty, theme="pink")


def test_no_dot_of_a_real_report_stands_above_a_roof(real_reports: dict[str, Path]) -> None:
    drawn = {"dots": 0, "loops": 0}
    for path in real_reports.values():
        try:
            frames = source_roofline(path, top=100)
        except RooflineError:
            continue
        page = render_html(frames)
        assert len(page) < 5e6
        for launch in Markup(page).data["launches"]:
            found = {
                "dots": launch["chart"]["dots"],
                "loops": [loop for loop in launch["loops"] if loop["performance"] is not None],
            }
            for kind, dots in found.items():
                drawn[kind] += len(dots)
                for dot in dots:
                    assert dot["performance"] <= 1.01 * roof_over(launch["chart"], dot), (path.name, launch["kernel"], dot)
    assert drawn["dots"] > 20
    assert drawn["loops"] > 5


def roof_over(chart: dict[str, Any], dot: dict[str, Any]) -> float:
    """The lower of the highest compute roof and the bandwidth roof of the dot's level; loops stand at L1."""
    compute = max(roof["value"] for roof in chart["roofs"] if roof["kind"] == "compute")
    level = dot.get("level", "l1")
    slopes = [roof["value"] for roof in chart["roofs"] if roof["kind"] == "bandwidth" and roof["level"] == level]
    return min([compute, *(slope * dot["intensity"] for slope in slopes)])


def test_a_roof_of_work_that_none_did_is_left_out() -> None:
    frames = source_frames()
    charts = []
    for work in (1.0, 0.0, math.nan):
        loops = frames.loop_columns | {"work_fp32": work * frames.loop_columns["work_fp32"]}
        charts += map(chart_of, launches(replace(frames, loop_columns=loops)))
    assert [bool(chart["dots"]) for chart in charts] == [True, False, True]
    assert [sum(roof["kind"] == "compute" for roof in chart["roofs"]) for chart in charts] == [1, 0, 1]


def test_what_looks_mixed_and_is_of_one_kind_is_drawn_as_that() -> None:
    frames = source_frames()
    row = {name: values[0] for name, values in frames.loop_columns.items()}
    about = {name: row[name] for name in ("report", "launch", "kernel", "device")}
    works = (("fp32", 2e9, 1e13), ("fp16", 1e9, 2e13), ("mixed", 3e9, 1.5e13))
    points = [point(**about, precision=one, level="l1", work=work, compute_roof=roof) for one, work, roof in works]
    drawn = []
    for tensor in (0.0, 1.0):
        loops = frames.loop_columns | {"work_tensor": tensor * frames.loop_columns["work_fp32"]}
        (launch,) = launches(replace(frames, roofline=ordinary(points), loop_columns=loops))
        drawn.append(chart_of(launch)["label"])
    assert drawn == ["FP32", "All pipes"]
