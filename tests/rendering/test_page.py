"""The data and the markup of pages, without a browser; what they say is in the texts of cases.toml."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.hierarchical.page import render_html
from ncu_roofline.base.texts import block, one_line
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering import page
from ncu_roofline.rendering.page import embed_json, number
from tests.analyses.comparison_made import many
from tests.rendering.cases import HOSTILE, Markup, limited, timed_odd
from tests.rendering.frames import FakeRoofline, make_roofline


def rows(markup: Markup, frame: str) -> list[dict[str, Any]]:
    """A frame as the page's script unpacks it."""
    packed = markup.data[frame]
    columns = {name: packed.get(values, values) if isinstance(values, str) else values for name, values in packed.items()}
    count, texts = columns.pop("rows"), set(columns.pop("text_columns"))
    found = []
    for index in range(count):
        row = {name: values[index] if isinstance(values, list) else values for name, values in columns.items()}
        row |= {name: markup.data["texts"][value] for name, value in row.items() if name in texts}
        found.append({**rows(markup, "kernels")[row["owner"]], **row} if frame == "points" else row)
    return found


def hostile(roofline: FakeRoofline) -> FakeRoofline:
    """The same with a hostile text in every text column that is no id."""
    ids = {"level", "precision", "unit", "kind", "origin", "status", "binds", "roof", "roof_origin", "locality_to"}
    frames = [frame.copy() for frame in vars(roofline).values()]
    for frame in frames:
        for name in set(frame.select_dtypes(exclude="number")) - ids:
            frame[name] = pd.Series([f"{HOSTILE}{name}"] * len(frame), dtype=object)
    return FakeRoofline(*frames)


def hostile_comparison(comparison: Comparison) -> Comparison:
    """The same with a hostile text wherever a report's own text stands."""
    texts = {"baseline", "report", "label", "notes"}
    texts |= {f"{one}{when}" for one in ("kernel", "name", "grid", "device", "verdict") for when in ("", "_before")}
    tables = {table: dict(getattr(comparison, table)) for table in vars(comparison) if table.endswith("_columns")}
    for columns in tables.values():
        for name in texts & columns.keys():
            columns[name] = np.array([f"{HOSTILE}{name}"] * len(columns[name]), dtype=object)
    return replace(comparison, **tables)


def test_data_of_the_page_are_the_frames() -> None:
    roofline = make_roofline(7, ("fp64", "fp32"), missing=2)
    roofline.points.loc[0, "intensity"] = float("inf")
    markup = Markup(render_html(roofline, title="a title"))
    for name in ("points", "roofs", "kernels"):
        frame = getattr(roofline, name)
        if name == "kernels":  # those that have points
            frame = frame[frame["launch"].isin(roofline.points["launch"])]
        for got, expected in zip(rows(markup, name), frame.to_dict("records"), strict=True):
            for column, value in expected.items():
                if isinstance(value, float):
                    known = value == value and value != float("inf")
                    assert got[column] == pytest.approx(value, rel=6e-6) if known else got[column] is None
                else:
                    assert got[column] == value
    assert [level["id"] for level in markup.data["levels"]] == ["l1", "l2", "dram"]
    assert [p["id"] for p in markup.data["precisions"]] == ["fp64", "fp32"]
    assert [number(value) for value in (float("nan"), float("inf"), float("-inf"), None, pd.NA)] == [None] * 5
    few = make_roofline(3, zero_flop=0)
    few.kernels["recoverable"], few.kernels["seconds"] = [1.0, 3.0, 2.0], 4.0
    dots = few.points[few.points["kernel"] != few.kernels["kernel"][0]]
    data = Markup(render_html(replace(few, points=dots))).data
    assert data["order"] == [0, 1]  # of the two that are left: what could save 3 s, then what could save 2 s


@pytest.mark.parametrize("compared", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_nothing_is_fetched_and_the_policy_allows_exactly_the_scripts(tmp_path: Path, compared: bool) -> None:
    frames = many(tmp_path) if compared else make_roofline(30, ("fp64", "fp32"), zero_flop=10)
    source = render(frames, "html")
    assert len(source) < (5e5 if compared else 1.5e6)
    markup = Markup(source)
    assert not [tag for tag, found in markup.elements if tag == "link" or {"src", "srcset", "action"} & found.keys()]
    links = {str(found["href"]) for tag, found in markup.elements if tag == "a" and "href" in found}
    assert links == {"#table"}
    policy = next(a["content"] for _, a in markup.elements if a.get("http-equiv") == "Content-Security-Policy")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in markup.scripts[1:]]
    assert policy is not None
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert (len(digests), b"plotly.js" in source) == ((1, False) if compared else (2, True))
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert not any(end in page.plotly_js() for end in ("</script", "<script", "<!--"))


def test_texts_of_a_report_never_become_markup(tmp_path: Path) -> None:
    tame, compared = make_roofline(4, missing=1), limited(tmp_path)
    keys = {"explanations": ("report", "text", "command"), "advice": ("kernel", "rule", "type", "title", "text")}
    pages = ((tame, hostile(tame), keys, 3), (compared, hostile_comparison(compared), {}, 2))
    for before, after, beside, scripts in pages:
        quiet, wild = ({key: [dict.fromkeys(names, text)] for key, names in beside.items()} for text in ("t", HOSTILE))
        expected = {tag for tag, _ in Markup(render(before, "html", title="t", **quiet)).elements}
        source = render(after, "html", title=HOSTILE, **wild)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", source.decode().split("<script>")[0])
        found = Markup(source)
        tags = Counter(tag for tag, _ in found.elements)
        assert tags.keys() <= expected | {"span", "ul", "li"}
        assert (tags["script"], tags["img"]) == (scripts, 0)
        assert not [a for _, a in found.elements if any(name.startswith("on") for name in a)]
        assert all(text in found.text for text in ("{{7*7}}", "<img src=x onerror=alert(1)>"))  # as texts
        assert found.data["title"].startswith("<img")
    markdown = render(hostile_comparison(compared), "md", title=HOSTILE).decode()
    assert not re.search(r"<(?!!-- ncu-roofline compare -->|/?details>|/?summary>)", markdown)
    assert all(b"<script>alert" not in render(timed_odd(), form) for form in ("html", "svg"))
    assert (one_line("a\x00b\u202ec\nd\ud800"), block("a\x07\r\nb")) == ("a\ufffdb\ufffdc d\ufffd", "a\ufffd\nb")
    text = embed_json({"</script><!--&\u2028": "\ud800"})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"</script><!--&\u2028": "\ud800"}


def test_launches_without_dots_are_summed_by_name() -> None:
    roofline = make_roofline(1, zero_flop=130)
    roofline.kernels.loc[roofline.kernels["kernel"] == "transpose_1", "kernel"] = "transpose_0"
    markup = Markup(render_html(roofline))
    assert sum("data-device" in attributes for _, attributes in markup.elements) == 100  # of 129 names
    seconds = roofline.kernels.loc[roofline.kernels["kernel"] == "transpose_0", "seconds"].sum()
    for text in ("29 more kernels, ", "longest of 2", format_value(seconds, "second", 3)):
        assert text in markup.text


def test_themes_titles_and_the_same_bytes() -> None:
    for theme in page.PAGE_THEMES:
        source = render_html(make_roofline(1), theme=theme)
        assert source == render_html(make_roofline(1), theme=theme)
        assert Markup(source).elements[0][1]["data-theme"] == theme
    assert Markup(source).data["title"] == "Roofline of sample.ncu-rep"
    with pytest.raises(ValueError, match="neon"):
        render_html(make_roofline(1), theme="neon")


def test_plotly_is_the_published_basic_bundle() -> None:
    """As published, byte for byte, with its licence: whoever renews it takes both and states the digest here."""
    folder = Path(page.__file__).parent
    bundle = (folder / "plotly-basic.min.js").read_bytes()
    assert bundle.startswith(b"/**\n* plotly.js (basic - minified) v4.1.1\n")
    assert hashlib.sha256(bundle).hexdigest() == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert (folder / "plotly-basic.LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")


def test_charts_on_the_page_of_a_comparison(tmp_path: Path) -> None:
    source = render(limited(tmp_path), "html").decode()
    charts = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    assert [bool(re.search(r"<text[^>]*>solver", chart)) for chart in charts] == [True] * 3
    assert not re.search(r"(?:fill|stroke): (#[0-9a-f]+)", "".join(charts))  # colours are those of the theme
    assert set(Counter(re.findall(r' id="([^"]+)"', "".join(charts))).values()) == {1}
    assert set(re.findall(r"var\((--hue-[0-9a-f]+)\)", source)) <= set(re.findall(r"(--hue-[0-9a-f]+): ", source))
