"""Text, Markdown, csv, json and parquet of synthetic rooflines; golden files are rewritten with UPDATE_GOLDEN=1."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline import analyses as package
from ncu_roofline.analyses import ANALYSES, FORMATS, Format, format_for, render, text_table
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.analyses.hierarchical.text import roofs_table, works_of
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.units import intensity_text
from ncu_roofline.model import columns
from ncu_roofline.model import roofline as roofline_of
from ncu_roofline.rendering.table import columns_wide, escape
from tests.factory import A100, NO_WORK, complete, flops, kernel, opcodes, report
from tests.rendering.frames import FakeRoofline, make_roofline, shown_rows

GOLDEN = Path(__file__).parent / "golden"
SAMPLE: dict[str, Any] = {
    "n_kernels": 4,
    "precisions": ("fp32", "tensor.fp16"),
    "odd": True,
    "missing": 1,
    "mixed": True,
    "chip": "h100",
}


def check_golden(name: str, data: bytes) -> None:
    """Compares with a file under golden/, or writes it where the environment says UPDATE_GOLDEN."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(data)
    assert path.read_bytes().replace(b"\r\n", b"\n") == data


def csv_rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_golden_files() -> None:
    sample, one, two = (
        make_roofline(**SAMPLE),
        {"levels": ("dram",), "measured": False, "zero_flop": 0},
        {"levels": ("l2", "dram")},
    )
    check_golden("sample.txt", render(sample, "text"))
    check_golden("narrow.txt", render(sample, "text", width=72, ascii_only=True))
    check_golden("sample.md", render(sample, "md", title="Two | pipes"))
    check_golden("sample.json", render(make_roofline(1, **one), "json"))
    for table in ("points", "roofs", "kernels"):
        check_golden(f"{table}.csv", render(make_roofline(2, **two), "csv", table=table))


def test_formats_and_suffixes() -> None:
    assert list(ANALYSES["roofline"].formats) == ["html", "png", "svg", "pdf", "csv", "json", "parquet", "md", "text", "nersc"]
    suffixes = [suffix for row in ANALYSES["roofline"].formats.values() for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert [format_for(name) for name in ("a.PNG", "b.c.json", "x.txt", "x.md", "x.htm", "x", "-", "x.gif")] == [
        "png", "json", "text", "md", "html", "", "", "",
    ]  # fmt: skip


def test_a_suffix_may_have_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "vega", Format((".vl.json",), "a chart"))
    assert [format_for(name) for name in ("x.vl.json", "X.VL.JSON", "x.json", "vl.json")] == ["vega", "vega", "json", "json"]


def test_every_format_but_the_page_renders() -> None:
    roofline = make_roofline(2, odd=True)
    for name, row in ANALYSES["roofline"].formats.items():
        if name != "html" and not (row.needs and find_spec(row.needs) is None):
            width = 80 if name == "text" else "80mm"  # characters, or a length
            data = render(roofline, name, title="t", theme="dark", table="points", width=width)
            assert isinstance(data, bytes)
            assert name in ("png", "pdf", "parquet") or data.decode()


def test_unknown_format_and_table() -> None:
    with pytest.raises(TypeError, match="the title is text, not an object of type int"):
        render(make_roofline(1), "png", title=5)
    with pytest.raises(ValueError, match=r"format must be one of html, .* not 'gif'"):
        render(make_roofline(1), "gif")
    with pytest.raises(ValueError, match="table 'x' is not one of points, roofs, kernels"):
        render(make_roofline(1), "csv", table="x")


def test_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda _: None)
    with pytest.raises(
        RooflineError, match=r"Cannot render parquet: .*pyarrow is not installed.*pip install 'ncu-roofline\[parquet\]'"
    ):
        render(make_roofline(1), "parquet")


def strict_json(data: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    result: dict[str, Any] = json.loads(data, parse_constant=refuse)
    return result


def test_units_of_rows_that_count_no_flops_stand_in_the_rows() -> None:
    roofline = make_roofline(3, ("fp64", "fp32"))
    roofline.points.loc[0, "unit"] = "op"
    units = strict_json(render(roofline, "json"))["units"]
    assert not {"work", "performance", "intensity", "attainable", "compute_roof"} & set(units)
    assert (units["traffic"], units["bandwidth_roof"]) == ("byte", "byte/s")


def test_json_is_strict_and_complete() -> None:
    roofline = make_roofline(3, ("fp64", "fp32"), odd=True, missing=1, mixed=True)
    roofline.points.loc[0, "intensity"] = float("inf")
    document = strict_json(render(roofline, "json"))
    assert list(document) == ["schema", "schema_version", "units", "points", "roofs", "kernels"]
    assert (document["schema"], document["schema_version"]) == ("ncu-roofline", 2)
    assert document["units"]["performance"] == "flop/s"
    for name, declared in (("points", columns.POINTS), ("roofs", columns.ROOFS), ("kernels", columns.KERNELS)):
        frame = getattr(roofline, name)
        assert len(document[name]) == len(frame)
        assert all(list(row) == [one.name for one in declared] for row in document[name])
    assert document["points"][0]["intensity"] is None
    assert document["points"][2]["locality"] is None
    assert document["points"][1]["performance"] == roofline.points["performance"][1]
    assert document["points"][0]["kernel"] == "cost$_a^{2}$ and $x_y$"


def test_csv_keeps_every_digit_and_leaves_missing_empty() -> None:
    roofline = make_roofline(2, missing=1)
    points = csv_rows(render(roofline, "csv"))
    assert [float(row["intensity"]) for row in points] == roofline.points["intensity"].tolist()
    assert points[2]["locality"] == ""
    kernels = csv_rows(render(roofline, "csv", table="kernels"))
    assert [row["work"] for row in kernels if row["status"] == "no-work-metrics"] == [""]
    assert [float(row["work"]) for row in kernels if row["status"] == "zero-flop"] == [0.0]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'=1"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"), ("    do k = 1", "    do k = 1"), ("  =1+1", "'  =1+1"), ("   ", ""),
    ],
)  # fmt: skip
def test_csv_defuses_formulas_and_keeps_indents(name: str, cell: str) -> None:
    roofline = make_roofline(1)
    roofline.points["kernel"], roofline.points["launch"] = name, -1
    row = csv_rows(render(roofline, "csv"))[0]
    assert (row["kernel"], row["launch"]) == (cell, "-1")


def test_csv_survives_line_ends_quotes_and_surrogates() -> None:
    roofline = make_roofline(1)
    roofline.points["kernel"] = pd.Series(['a"b,\r\nc\ud800'] * 3, dtype=object)
    rows = csv_rows(render(roofline, "csv"))
    assert len(rows) == 3
    assert rows[0]["kernel"] == 'a"b, c'
    assert strict_json(render(roofline, "json"))["points"][0]["kernel"] == 'a"b,\r\nc\ud800'


def test_parquet_round_trip() -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    roofline = make_roofline(2)
    table = pq.read_table(io.BytesIO(render(roofline, "parquet")))
    assert table.column_names == [one.name for one in columns.POINTS]
    assert table.column("intensity").to_pylist() == roofline.points["intensity"].tolist()
    assert table.column("locality").null_count == 2
    assert table.schema.field("work").metadata[b"unit"] == b"flop"


def test_summary_has_one_row_per_kernel_and_precision() -> None:
    frames = make_roofline(3, ("fp32", "tensor.fp16"), mixed=True)
    rows = shown_rows(frames)
    assert len(rows) == 3 + 2 * 2 + 1
    levels = {f"intensity_{level}" for level in ("l1", "l2", "dram")}
    assert all(bool(row["precision"]) == (levels <= row.keys()) for row in rows)
    saved = dict(zip(frames.kernels.kernel, frames.kernels.recoverable, strict=True))
    ranked = [saved[row["kernel"]] for row in rows]
    assert ranked == sorted(ranked, reverse=True)
    both = [row["precision"] for row in rows if row["kernel"] == "gpp_kernel"]
    assert both == ["All pipes", "  FP32", "  Tensor FP16"]  # the sum over pipes is what the verdict is on
    assert [row["status"] for row in rows if not row["precision"]] == ["zero-flop"]


def test_precisions_known_of_some_launches_only_stay_below_their_sum() -> None:
    roofline = make_roofline(1, ("fp32", "tensor.fp16"), mixed=True, zero_flop=0)
    roofline.points.loc[roofline.points.precision == "fp32", "seconds"] *= 3
    assert [row["precision"].strip() for row in shown_rows(roofline)] == ["All pipes", "FP32", "Tensor FP16"]


def test_roofs_of_both_origins() -> None:
    table = roofs_table(make_roofline(3, ("fp32", "tensor.fp16"), mixed=True))
    assert table.rows
    assert all(roof["measured"] and roof["theoretical"] for roof in table.rows)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("precisions", [("fp64",), ("fp32", "tensor.fp16", "tensor.int8")])
def test_text_fits(width: int, precisions: tuple[str, ...]) -> None:
    levels = ("l1", "shared", "l2", "dram", "system")
    text = text_table(make_roofline(6, precisions, odd=True, missing=3, levels=levels, chip="h100"), width=width)
    assert max(map(columns_wide, text.splitlines())) <= width
    assert "\33" not in text


def test_text_of_80_columns_has_what_counts() -> None:
    text = " ".join(text_table(make_roofline(3, zero_flop=2, missing=1), width=80).split())
    for part in ("gpp_kernel", "share", "verdict", "DRAM", "of roof", "transpose_0", "lacks FP64, L2", "FP64 FMA"):
        assert part in text
    plain = text_table(make_roofline(3, zero_flop=2, missing=1, usage=False), width=80)
    for part in ("gpp_kernel", "L2", "DRAM", "of roof", "bound by"):
        assert part in plain


def test_colours_only_on_demand_and_without_effect_on_the_text() -> None:
    roofline = make_roofline(4)
    coloured = text_table(roofline, color=True)
    assert "\33[" in coloured
    assert re.sub("\33\\[\\d+m", "", coloured) == text_table(roofline)
    assert b"\33" not in render(roofline, "text")


def test_ascii_only() -> None:
    assert text_table(make_roofline(6, odd=True), ascii_only=True).isascii()


def test_control_characters_never_reach_a_terminal() -> None:
    roofline = make_roofline(1, missing=1)
    for frame in (roofline.points, roofline.kernels, roofline.roofs):
        for name in frame.columns.intersection(["report", "device", "kernel", "label", "binds", "notes", "missing", "name"]):
            frame[name] = "evil\x1b[31m\x9b\u202e"
    for text in (text_table(roofline), render(roofline, "md").decode(), render(roofline, "csv").decode()):
        assert not {c for c in text if c != "\n" and not c.isprintable()}


def test_intensity_texts() -> None:
    values = {2.584785: "2.58", 0.0913: "0.0913", 1234.5: "1234", 3.1e-5: "3.1e-05", float("nan"): ""}
    assert [intensity_text(value) for value in values] == list(values.values())


def test_launches_of_one_kernel_are_told_apart() -> None:
    roofline = make_roofline(3)
    roofline.points["kernel"] = "same"
    roofline.kernels["kernel"] = "same"
    (header,) = [line.split() for line in text_table(roofline).splitlines() if line.startswith("kernel ")]
    assert header[:2] == ["kernel", "launch"]


@pytest.mark.parametrize(
    ("width", "verdict", "kept"),
    [(120, "latency", " L1 +L2 +DRAM "), (60, "memory: L1/TEX", " L1 +L2 +DRAM "), (72, "memory: L1/TEX", " 7 +[0-9]")],
)
def test_launches_and_the_intensity_at_a_limit_stay(width: int, verdict: str, kept: str) -> None:
    roofline = make_roofline(3)
    for frame in (roofline.points, roofline.kernels):
        frame["kernel"] += "_of_a_long_name"
    roofline.kernels["launches"] = 7
    roofline.kernels["verdict"], roofline.kernels["limit"], roofline.kernels["limit_fraction"] = verdict, "l1", 0.44
    shown = text_table(roofline, width=width)
    assert re.search(kept, shown)
    assert max(map(columns_wide, shown.splitlines())) <= width


def test_nothing_known_is_explained() -> None:
    roofline = make_roofline(0, zero_flop=0, missing=2, usage=False)
    roofline.kernels["seconds"] = float("nan")
    for name in ("text", "md"):
        text = render(roofline, name).decode()
        assert "No kernel can be drawn." in text.replace("\\", "")
        assert "FP64, L2" in text


def test_nothing_at_all() -> None:
    empty = make_roofline(0, zero_flop=0)
    empty = FakeRoofline(empty.points, empty.roofs.iloc[:0], empty.kernels)
    for name in ("text", "md", "csv", "json"):
        render(empty, name)
    assert "No kernels are left to draw." in text_table(empty)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a&#124;b"),
        ("a`b`", "a&#96;b&#96;"),
        ("<img src=x onerror=alert(1)>", "&#60;img src=x onerror=alert\\(1\\)&#62;"),
        ("a_b*c*", "a\\_b\\*c\\*"),
        ("[x](javascript:y)", "\\[x\\]\\(javascript&#58;y\\)"),
        ("line\nbreak\r\n", "line break"),
        ("@team www.x.org http://y", "&#64;\u200bteam www&#46;x.org http&#58;//y"),
        ("a::b::c", "a&#58;&#58;b&#58;&#58;c"),
        ("- x", "\\- x"),
        ("$x$ &amp;", "&#36;x&#36; &#38;amp;"),
        ("one: two", "one: two"),
    ],
)
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert escape(text) == escaped


_REFERENCES = ("@octocat", "@org/team", "org/repo@0123abc", "user@evil.example")


@pytest.mark.parametrize("reference", _REFERENCES)
def test_markdown_mentions_nobody(reference: str) -> None:
    cmarkgfm = pytest.importorskip("cmarkgfm")
    page = cmarkgfm.github_flavored_markdown_to_html(f"{escape(f'k {reference} x')}\n\n| {escape(reference)} |\n|---|\n")
    assert "<a" not in page
    shown = unescape(re.sub("<[^>]+>", "", page))
    assert reference not in shown
    assert shown.replace("\u200b", "").count(reference) == 2


def test_markdown_leaves_what_refers_to_nothing() -> None:
    assert "\u200b" not in escape('f<T&>(a*, b&) ~ 40 % of the time, #pragma [clone 1] 1.5 a::b "c" !x @ & k$x')


def test_markdown_tables_keep_their_columns() -> None:
    text = render(make_roofline(6, odd=True, missing=1, tensor_unknown=1, clocks_differ=0.1), "md").decode()
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 2
    assert [len({line.count("|") for line in table}) for table in tables] == [1, 1]


@pytest.mark.parametrize("width", [60, 100])
def test_a_narrow_table_keeps_what_matters_of_every_precision(width: int) -> None:
    roofline = make_roofline(3, ("fp64", "fp32", "tensor.fp16"), mixed=True, zero_flop=0)
    lines = text_table(roofline, width=width).splitlines()
    assert max(map(len, lines)) <= width
    rule = next(index for index, line in enumerate(lines) if line and set(line) == {"-"})
    headers = " ".join(lines[rule - 3 : rule])
    assert all(header in headers for header in ("time", "share", "verdict", "of roof", "DRAM", "FLOP/B"))
    assert "performance" in headers or "FLOP/s" in headers
    table = lines[rule + 1 : lines.index("", rule)]
    rows = [line for line in table if re.search(r"(^|  )(FP64|FP32|Tensor FP16|All pipes)  ", line)]
    assert len(rows) == len(shown_rows(roofline))
    assert all(re.search(r"  [\d.e-]+ +[\d.]+ [kMGT](FLOP/s)?  .*(%|n/a)", line) for line in rows)


def test_markdown_tells_launches_of_a_kernel_apart() -> None:
    for roofline in (make_roofline(3, zero_flop=0), make_roofline(0, zero_flop=3)):
        for frame in (roofline.kernels, roofline.points):
            frame["kernel"] = "same"
        lines = [line.split(" | ") for line in render(roofline, "md").decode().splitlines() if line.startswith("| ")]
        place = lines[0].index("launch")
        found = [line[place] for line in lines if line[0] == "| same"]
        assert sorted(found) == sorted(map(str, roofline.kernels["launch"]))
    assert "launch |" not in render(make_roofline(3), "md").decode()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("verdict", ["latency", "memory: L1/TEX", "compute: FP32 FMA"])
def test_intensities_and_share_of_the_roof_stay_at_any_width(width: int, verdict: str) -> None:
    levels = ("l1", "shared", "l2", "dram", "system")
    roofline = make_roofline(6, ("fp32", "tensor.fp16"), mixed=True, levels=levels, chip="h100", aggregated=True)
    roofline.kernels["verdict"] = verdict
    roofline.kernels["limit"] = "fp32.fma" if "FP32" in verdict else "l1"
    found = text_table(roofline, width=width)
    assert max(map(columns_wide, found.splitlines())) <= width
    above = found[: found.index("\n----")].splitlines()[-3:]
    assert {"L1", "Shared", "L2", "DRAM", "System", "roof"} <= set(" ".join(above).split())


def test_wider_tables_show_more() -> None:
    roofline = make_roofline(6, ("fp32", "tensor.fp16"), mixed=True, levels=("l1", "l2", "dram"), aggregated=True)
    widths = (60, 80, 100, 140, 240)
    names = ("time", "share", "verdict", "headroom", "to compute", "could save", "at its limit", "FMA", "of mix", "of roof")
    heads = [re.split("-{9,}", text_table(roofline, width=width))[0] for width in widths]
    shown = [{name for name in names if name in head} for head in heads]
    assert [len(one) for one in shown] == sorted(len(one) for one in shown)
    assert "could save" not in shown[1]  # goes before the rest
    assert {"could save", "at its limit"} <= shown[-1]


@pytest.mark.reports
def test_intensities_of_real_reports_stay(real_reports: dict[str, Path]) -> None:
    drawn = 0
    for path in real_reports.values():
        frames = roofline_of(path).by_kernel
        levels = {level_style(level).label for level in frames.points["level"]}
        for width in (60, 80, 100, 120) if levels else ():
            lines = text_table(frames, width=width).splitlines()
            rule = next(place for place, line in enumerate(lines) if re.fullmatch("-{9,}", line))
            above = " ".join(lines[lines.index("", 0, rule) : rule]).split()
            assert {*levels, "of", "roof"} <= set(above), (path.name, width)
            assert max(map(len, lines)) <= width
            drawn += 1
    assert drawn > 40


def test_a_precision_and_the_part_that_is_all_of_it_are_one_row(tmp_path: Path) -> None:
    a40 = {**A100, "device__attribute_display_name": "NVIDIA A40", "device__attribute_compute_capability_minor": 6}
    metrics = {**complete(a40), **NO_WORK}
    one = kernel(metrics, instances=opcodes(HMMA_16816_F16=10**6))
    found = roofline_of(report(tmp_path / "r.ncu-rep", one))
    assert set(found.points["precision"]) == {"tensor.fp16", "tensor.fp16.acc16"}
    assert [[row["precision"] for row in works] for works in works_of(found).values()] == [["tensor.fp16.acc16"]]
    both = kernel(metrics, instances=opcodes(HMMA_16816_F32=10**6, HMMA_16816_F16=10**6))
    assert len(shown_rows(roofline_of(report(tmp_path / "s.ncu-rep", both)))) > 1


def test_a_precision_beside_others_stands_under_its_own_roof(tmp_path: Path) -> None:
    work = {**flops("d", fma=10**9), **flops("f", fma=round(0.017 * 64 * 108 * 1.41e6))}
    found = roofline_of(
        report(tmp_path / "r.ncu-rep", kernel({**complete(), **work, "dram__bytes.sum": round(0.22 * 1555.2e6)}))
    )
    (works,) = works_of(found).values()
    shares = {row["precision"]: row["fraction"] for row in works}
    assert shares["fp32"] == pytest.approx(0.017, rel=1e-3)
    assert shares["fp64"] == pytest.approx(2e12 / 9.74592e12)
    assert shares["mixed"] == pytest.approx(0.22)
