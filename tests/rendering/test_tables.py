"""Formats and data of rooflines, Markdown, tables of real reports; what a comparison says first, and how long it may be."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline import analyses as package
from ncu_roofline.analyses import ANALYSES, FORMATS, Format, format_for, render, text_table
from ncu_roofline.analyses.compare.text import LONGEST, MARKER
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.hierarchical.text import works_of
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.model import columns
from ncu_roofline.model import roofline as roofline_of
from ncu_roofline.rendering.chart import Listing, Point
from ncu_roofline.rendering.table import escape
from tests.analyses.comparison_made import MADE, compared, many, ordinary
from tests.factory import A100, NO_WORK, complete, flops, kernel, opcodes, report
from tests.rendering.cases import LATENCY, chart_of, timed
from tests.rendering.frames import make_roofline


def csv_rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def strict_json(data: bytes) -> dict[str, Any]:
    return json.loads(data, parse_constant=lambda constant: pytest.fail(constant))  # type: ignore[no-any-return]


def test_formats_and_suffixes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(ANALYSES["roofline"].formats) == ["html", "png", "svg", "pdf", "csv", "json", "parquet", "md", "text", "nersc"]
    suffixes = [suffix for row in ANALYSES["roofline"].formats.values() for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    names = {"a.PNG": "png", "b.c.json": "json", "x.txt": "text", "x.md": "md", "x.htm": "html", "x": "", "-": "", "x.gif": ""}
    assert {name: format_for(name) for name in names} == names
    monkeypatch.setitem(FORMATS, "vega", Format((".vl.json",), "a chart"))  # two parts
    assert [format_for(name) for name in ("x.vl.json", "X.VL.JSON", "x.json", "vl.json")] == ["vega", "vega", "json", "json"]


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda _: None)
    for form, options, error, words in (
        ("png", {"title": 5}, TypeError, "the title is text, not an object of type int"),
        ("gif", {}, ValueError, r"format must be one of html, .* not 'gif'"),
        ("csv", {"table": "x"}, ValueError, "table 'x' is not one of points, roofs, kernels"),
        ("parquet", {}, RooflineError, r"Cannot render parquet: .*pyarrow is not installed.*'ncu-roofline\[parquet\]'"),
    ):
        with pytest.raises(error, match=words):
            render(make_roofline(1), form, **options)


def test_data_formats_hold_the_frames() -> None:
    """All columns of all tables in every digit, what is missing empty or null, units where all rows have them."""
    roofline = make_roofline(3, ("fp64", "fp32"), odd=True, missing=1, mixed=True)
    roofline.points.loc[0, "intensity"] = float("inf")
    document = strict_json(render(roofline, "json"))
    assert list(document) == ["schema", "schema_version", "units", "points", "roofs", "kernels"]
    assert (document["schema"], document["schema_version"]) == ("ncu-roofline", 2)
    assert (document["units"]["performance"], document["units"]["traffic"]) == ("flop/s", "byte")
    for name, declared in (("points", columns.POINTS), ("roofs", columns.ROOFS), ("kernels", columns.KERNELS)):
        rows, frame = csv_rows(render(roofline, "csv", table=name)), getattr(roofline, name)
        assert len(document[name]) == len(rows) == len(frame)
        for got, cells, row in zip(document[name], rows, frame.to_dict("records"), strict=True):
            assert list(got) == list(cells) == [one.name for one in declared]
            for one in declared:
                value, infinite = row[one.name], one.name == "intensity" and row[one.name] == float("inf")
                missing = one.dtype == "float" and (infinite or value != value)
                assert got[one.name] == (None if missing else value)
                if one.dtype == "float":
                    assert (cells[one.name] == "") == (value != value)
                    assert value != value or float(cells[one.name]) == value
    roofline.points.loc[0, "unit"] = "op"  # then units stand in the rows
    units = strict_json(render(roofline, "json"))["units"]
    assert not {"work", "performance", "intensity", "attainable", "compute_roof"} & set(units)
    assert (units["traffic"], units["bandwidth_roof"]) == ("byte", "byte/s")


def test_parquet() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    roofline = make_roofline(2)
    table = parquet.read_table(io.BytesIO(render(roofline, "parquet")))
    assert table.column_names == [one.name for one in columns.POINTS]
    assert table.column("intensity").to_pylist() == roofline.points["intensity"].tolist()
    assert (table.column("locality").null_count, table.schema.field("work").metadata[b"unit"]) == (2, b"flop")
    table = parquet.read_table(io.BytesIO(render(timed(), "parquet", table="machines")))
    assert table.column("latency").to_pylist() == [LATENCY] * len(table)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'=1"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"), ("    do k = 1", "    do k = 1"), ("  =1+1", "'  =1+1"), ("   ", ""),
        ('a"b,\r\nc\ud800', 'a"b, c'),
    ],
)  # fmt: skip
def test_csv_defuses_formulas_and_keeps_indents(name: str, cell: str) -> None:
    roofline = make_roofline(1)
    roofline.points["kernel"], roofline.points["launch"] = pd.Series([name] * 3, dtype=object), -1
    rows = csv_rows(render(roofline, "csv"))
    assert (len(rows), rows[0]["kernel"], rows[0]["launch"]) == (3, cell, "-1")
    assert strict_json(render(roofline, "json"))["points"][0]["kernel"] == name


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a&#124;b"), ("a`b`", "a&#96;b&#96;"), ("a_b*c*", "a\\_b\\*c\\*"), ("- x", "\\- x"), ("one: two", "one: two"),
        ("<img src=x onerror=alert(1)>", "&#60;img src=x onerror=alert\\(1\\)&#62;"), ("line\nbreak\r\n", "line break"),
        ("[x](javascript:y)", "\\[x\\]\\(javascript&#58;y\\)"), ("a::b::c", "a&#58;&#58;b&#58;&#58;c"),
        ("@team www.x.org http://y", "&#64;\u200bteam www&#46;x.org http&#58;//y"), ("$x$ &amp;", "&#36;x&#36; &#38;amp;"),
    ],
)  # fmt: skip
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize("reference", ["@octocat", "@org/team", "org/repo@0123abc", "user@evil.example"])
def test_markdown_mentions_nobody(reference: str) -> None:
    assert "\u200b" not in escape('f<T&>(a*, b&) ~ 40 % of the time, #pragma [clone 1] 1.5 a::b "c" !x @ & k$x')
    cmarkgfm = pytest.importorskip("cmarkgfm")
    page = cmarkgfm.github_flavored_markdown_to_html(f"{escape(f'k {reference} x')}\n\n| {escape(reference)} |\n|---|\n")
    assert "<a" not in page
    shown = unescape(re.sub("<[^>]+>", "", page))
    assert reference not in shown
    assert shown.replace("\u200b", "").count(reference) == 2


@pytest.mark.reports
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_intensities_of_real_reports_stay(real_reports: dict[str, Path], every: int) -> None:
    drawn = 0
    for path in [*real_reports.values()][::every]:
        frames = roofline_of(path).by_kernel
        levels = {level_style(level).label for level in frames.points["level"]}
        for width in (60, 80, 100, 120) if levels else ():
            lines = text_table(frames, width=width).splitlines()
            rule = next(place for place, line in enumerate(lines) if re.fullmatch("-{9,}", line))
            above = " ".join(lines[lines.index("", 0, rule) : rule]).split()
            assert {*levels, "of", "roof"} <= set(above), (path.name, width)
            assert max(map(len, lines)) <= width
            drawn += 1
    assert drawn > 40 / every


def test_a_precision_and_the_part_that_is_all_of_it_are_one_row(tmp_path: Path) -> None:
    a40 = {**A100, "device__attribute_display_name": "NVIDIA A40", "device__attribute_compute_capability_minor": 6}
    one = kernel({**complete(a40), **NO_WORK}, instances=opcodes(HMMA_16816_F16=10**6))
    found = roofline_of(report(tmp_path / "r.ncu-rep", one))
    assert set(found.points["precision"]) == {"tensor.fp16", "tensor.fp16.acc16"}
    assert [[row["precision"] for row in works] for works in works_of(found).values()] == [["tensor.fp16.acc16"]]


def test_a_precision_beside_others_stands_under_its_own_roof(tmp_path: Path) -> None:
    work = {**flops("d", fma=10**9), **flops("f", fma=round(0.017 * 64 * 108 * 1.41e6))}
    one = kernel({**complete(), **work, "dram__bytes.sum": round(0.22 * 1555.2e6)})
    (works,) = works_of(roofline_of(report(tmp_path / "r.ncu-rep", one))).values()
    shares = {row["precision"]: row["fraction"] for row in works}
    assert (shares["fp32"], shares["mixed"]) == pytest.approx((0.017, 0.22), rel=1e-3)
    assert shares["fp64"] == pytest.approx(2e12 / 9.74592e12)  # 108 SMs of 32 lanes, 2 FLOP each, at 1.41 GHz


def test_one_scale_for_faster_and_slower(tmp_path: Path) -> None:
    there = [kernel(complete(seconds=time), "void solver(int)") for time in (4e-3, 2e-3)]
    faster, slower = compared(tmp_path, (there[0],), (there[1],)), compared(tmp_path, (there[1],), (there[0],))
    small = replace(slower, kernel_columns={**slower.kernel_columns, "time_change": np.array([0.004])})
    for result, end in ((faster, "2.00x faster"), (slower, "2.00x slower"), (small, "1.004x slower")):
        chart: Any = chart_of(result)
        assert [row.end for blocks in chart.rows for one in blocks if isinstance(one, Listing) for row in one.rows] == [end]
        assert result is small or f"{end}: " in render(result, "text").decode()


def test_what_matters_comes_before_the_fold_and_is_said_once(tmp_path: Path) -> None:
    lines = render(ordinary(tmp_path), "md").decode().splitlines()
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith(("| ", "<details>"))]
    fold = names.index("<details>")
    assert (lines[0], names[:fold]) == (MARKER, ["kernel", ":--", "solver", "pack", "fused", "halo"])
    assert [name for name in names[fold:] if name != "<details>"] == ["kernel", ":--", "advance"]
    for make in MADE.values():
        text = render(make(tmp_path), "md").decode()
        assert "-&#62;" not in text
        assert not re.search("^- ([0-9.]+x (faster|slower)|the same|nothing in common|times not)", text, re.MULTILINE)


@pytest.mark.parametrize("count", [400, 2500])
def test_a_comment_is_never_too_long_and_says_so(tmp_path: Path, count: int) -> None:
    result = many(tmp_path, 40)
    kernels = {name: np.resize(values, count) for name, values in result.kernel_columns.items()}
    kernels["kernel"] = np.array([f"kernel_{index}_{'x' * 60}" for index in range(count)], dtype=object)
    data = render(replace(result, kernel_columns=kernels), "md")
    assert len(data) <= LONGEST == 65_536
    rows = sum(line.startswith("| kernel\\_") for line in data.decode().splitlines())
    left_out = re.search(r"^([\d,]+) more left out: a comment holds 65,536 characters", data.decode(), re.MULTILINE)
    assert rows + (int(left_out[1].replace(",", "")) if left_out else 0) == count
    assert bool(left_out) == (count > 1000)
    assert data.decode().count("<details>") == data.decode().count("</details>") == 2


def test_dots_before_and_after_stand_at_the_level_that_binds(tmp_path: Path) -> None:
    chart: Any = chart_of(ordinary(tmp_path))
    after, before, *_ = (mark for mark in chart.rows[0][0].marks if isinstance(mark, Point))
    assert (after.fill, before.fill) == ("full", "none")
    assert (before.x, before.y) == pytest.approx((8e9 / 5.6e9, 8e9 / 4e-3))  # operations over bytes of DRAM, over seconds
    assert (after.x, after.y) == pytest.approx((8e9 / 2e8, 8e9 / 2e-3))
