"""The page's data and markup, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline.analyses.hierarchical.kernels import answers_of
from ncu_roofline.analyses.hierarchical.page import render_html
from ncu_roofline.base.texts import block, one_line
from ncu_roofline.base.units import format_value
from ncu_roofline.rendering import page
from ncu_roofline.rendering.page import embed_json, number
from tests.rendering.frames import FakeRoofline, make_roofline

HOSTILE = "<img src=x onerror=alert(1)></script><!--\u2028{{7*7}}{% x %}<b>\"'&amp; \x00\x1b[31m\u202e\ud800"


class Markup(HTMLParser):
    """Elements with their attributes, and the text of each script and of the rest."""

    def __init__(self, source: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._open = ""
        self.feed(source.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.text += data

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def rows(markup: Markup, frame: str) -> list[dict[str, Any]]:
    """A frame as the page's script unpacks it."""
    packed = markup.data[frame]
    columns = {name: packed.get(values, values) if isinstance(values, str) else values for name, values in packed.items()}
    count, texts = columns.pop("rows"), set(columns.pop("text_columns"))
    pool = markup.data["texts"]
    found = []
    for index in range(count):
        row = {name: values[index] if isinstance(values, list) else values for name, values in columns.items()}
        row |= {name: pool[value] for name, value in row.items() if name in texts}
        found.append({**rows(markup, "kernels")[row["owner"]], **row} if frame == "points" else row)
    return found


def hostile(roofline: FakeRoofline) -> FakeRoofline:
    """The same with a hostile text in every text column that is no id."""
    ids = {"level", "precision", "unit", "kind", "origin", "status", "binds", "roof", "roof_origin", "locality_to"}
    frames = [frame.copy() for frame in (roofline.points, roofline.roofs, roofline.kernels)]
    for frame in frames:
        for name in frame.columns:
            if not pd.api.types.is_numeric_dtype(frame[name]) and name not in ids:
                frame[name] = pd.Series([f"{HOSTILE}{name}"] * len(frame), dtype=object)
    return FakeRoofline(*frames)


def test_data_of_the_page_are_the_frames() -> None:
    roofline = make_roofline(7, ("fp64", "fp32"), missing=2)
    markup = Markup(render_html(roofline, title="a title"))
    for name in ("points", "roofs", "kernels"):
        frame = getattr(roofline, name)
        if name == "kernels":  # those that have points
            frame = frame[frame["launch"].isin(roofline.points["launch"])]
        found = rows(markup, name)
        assert len(found) == len(frame)
        for got, expected in zip(found, frame.to_dict("records"), strict=True):
            for column, value in expected.items():
                if isinstance(value, float):
                    assert got[column] is None if value != value else got[column] == pytest.approx(value, rel=6e-6)
                else:
                    assert got[column] == value
    assert [level["id"] for level in markup.data["levels"]] == ["l1", "l2", "dram"]
    assert [p["id"] for p in markup.data["precisions"]] == ["fp64", "fp32"]


def ids_of(markup: Markup) -> list[str]:
    return [str(attributes["id"]) for _, attributes in markup.elements if "id" in attributes]


def test_kernels_are_ranked_among_those_that_have_dots() -> None:
    roofline = make_roofline(3, zero_flop=0)
    roofline.kernels["recoverable"], roofline.kernels["seconds"] = [1.0, 3.0, 2.0], 4.0
    dots = roofline.points[roofline.points["kernel"] != roofline.kernels["kernel"][0]]
    data = Markup(render_html(replace(roofline, points=dots))).data
    assert data["order"] == [0, 1]  # of the two that are left: what could save 3 s, then what could save 2 s


def test_nothing_is_fetched_and_the_policy_allows_exactly_the_scripts() -> None:
    source = render_html(make_roofline(30, ("fp64", "fp32"), zero_flop=10))
    assert len(source) < 1.5e6
    markup = Markup(source)
    assert not [tag for tag, found in markup.elements if tag == "link" or {"src", "srcset", "action"} & found.keys()]
    assert {attributes["href"] for _, attributes in markup.elements if "href" in attributes} == {"#table"}
    policy = next(a["content"] for _, a in markup.elements if a.get("http-equiv") == "Content-Security-Policy")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in markup.scripts[1:]]
    assert policy is not None
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert not any(end in page.plotly_js() for end in ("</script", "<script", "<!--"))


def test_texts_of_a_report_never_become_markup() -> None:
    tame = make_roofline(4, missing=1)
    entries = [{"report": "r", "text": "t", "command": "c"}]
    advice = [{"kernel": "k", "rule": "r", "type": "t", "title": "t", "text": "t"}]
    expected = Markup(render_html(tame, title="t", explanations=entries, advice=advice))
    wild = [dict.fromkeys(entry, HOSTILE) for entry in entries], [dict.fromkeys(entry, HOSTILE) for entry in advice]
    source = render_html(hostile(tame), title=HOSTILE, explanations=wild[0], advice=wild[1])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", source.decode().split("<script>")[0])
    found = Markup(source)
    tags = Counter(tag for tag, _ in found.elements)
    assert tags.keys() <= {tag for tag, _ in expected.elements} | {"span", "ul", "li"}
    assert (tags["script"], tags["img"]) == (3, 0)
    assert not [a for _, a in found.elements if any(name.startswith("on") for name in a)]
    assert "{{7*7}}" in found.text
    assert "<img src=x onerror=alert(1)>" in found.text  # as text
    assert found.data["title"].startswith("<img")
    assert one_line("a\x00b\u202ec\nd\ud800") == "a\ufffdb\ufffdc d\ufffd"
    assert block("a\x07\r\nb") == "a\ufffd\nb"
    text = embed_json({"</script><!--&\u2028": "\ud800"})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"</script><!--&\u2028": "\ud800"}


def test_numbers_that_are_none_are_null() -> None:
    assert [number(value) for value in (float("nan"), float("inf"), float("-inf"), None, pd.NA)] == [None] * 5
    roofline = make_roofline(3)
    for name, column in (("points", "intensity"), ("points", "performance"), ("kernels", "seconds"), ("roofs", "value")):
        getattr(roofline, name).loc[0, column] = float("inf")
    assert rows(Markup(render_html(roofline)), "points")[0]["intensity"] is None


def test_sections_come_where_there_is_something_to_tell_and_the_answer_first() -> None:
    explanations = [{"report": "x.ncu-rep", "text": "no L2 counters", "command": "ncu --metrics lts__t_bytes.sum ./app"}]
    roofline = make_roofline(5, zero_flop=2, missing=2, report="/home/somebody/secret/run.ncu-rep")
    roofline.points["notes"] = "a note"
    source = render_html(roofline, explanations=explanations, advice=[{"text": "words of advice"}])
    assert not any(word in source for word in (b"somebody", b"secret"))  # folders say who made it where
    markup = Markup(source)
    ids = ids_of(markup)
    assert {"usage", "lacks", "notes", "advice", "reading", "provenance"} <= set(ids)
    assert ids.index("answer") < ids.index("controls") < ids.index("chart") < ids.index("table")
    [answer] = answers_of(roofline)
    assert len(answer.sentences) > 2
    for text in (
        *answer.sentences, "ncu --metrics lts__t_bytes.sum ./app", "words of advice", "2 kernels without metrics",
        "without metrics of floating-point work", "Profiled at 0.78",
    ):  # fmt: skip
        assert text in markup.text
    bare = Markup(render_html(make_roofline(3, zero_flop=0, clocks=False)))
    assert not {"usage", "lacks", "notes", "advice", "tensor-unknown"} & set(ids_of(bare))
    assert "maximum SM clock" not in bare.text
    told = Markup(render_html(make_roofline(3, tensor_unknown=1)))
    assert "tensor-unknown" in ids_of(told)
    assert "missing from the work shown: gpp_kernel" in told.text
    assert next(row["verdict"] for row in rows(told, "kernels")) == "tensor work unknown"


def test_no_points_is_explained() -> None:
    missing = make_roofline(0, zero_flop=0, missing=3, usage=False)
    missing.kernels["seconds"] = float("nan")
    assert "says what to collect" in Markup(render_html(missing)).text
    assert "There is no kernel here" in Markup(render_html(make_roofline(0, zero_flop=0))).text
    for usage in (True, False):
        text = Markup(render_html(make_roofline(0, zero_flop=2, missing=1, usage=usage))).text
        assert not any(word in text for word in ("No kernel can be drawn", "of it on the chart"))
        words = ("Kernels without dots", "transpose_0", "unmeasured_0", "without floating-point work", "Time", "Share")
        assert all(word in text for word in words)
        assert all((word in text) == usage for word in ("Busiest", "L2 GB/s, %", "Occupancy", "Waves"))


def test_launches_without_dots_are_summed_by_name() -> None:
    roofline = make_roofline(1, zero_flop=130)
    roofline.kernels.loc[roofline.kernels["kernel"] == "transpose_1", "kernel"] = "transpose_0"
    markup = Markup(render_html(roofline))
    assert sum("data-device" in attributes for _, attributes in markup.elements) == 100  # of 129 names
    seconds = roofline.kernels.loc[roofline.kernels["kernel"] == "transpose_0", "seconds"].sum()
    for text in ("29 more kernels, ", "longest of 2", format_value(seconds, "second", 3)):
        assert text in markup.text


def test_unknown_times_stay_unknown() -> None:
    roofline = make_roofline(2, zero_flop=1)
    roofline.kernels["seconds"] = roofline.kernels["time_share"] = float("nan")
    text = Markup(render_html(roofline)).text
    assert "n/an/a" in text  # time and share of the kernel without a dot
    assert " of the time" not in text.partition("What this report lacks")[0].partition("Kernels without dots")[0]


def test_bars_of_the_page() -> None:
    roofline = make_roofline(2, zero_flop=40)
    markup = Markup(render_html(roofline))
    titles = [str(attributes["title"]) for tag, attributes in markup.elements if tag == "i" and "title" in attributes]
    assert len(titles) == 4 * 40
    absent = roofline.kernels[roofline.kernels.status == "zero-flop"]
    first = absent.loc[absent["recoverable"].idxmax()]
    units = {"SM": first.fraction_sm, "L1": first.fraction_l1, "L2": first.fraction_l2, "DRAM": first.fraction_dram}
    assert titles[:4] == [f"{unit} {100 * share:.1f} %" for unit, share in units.items()]


def test_themes_titles_and_the_same_bytes() -> None:
    for theme in page.PAGE_THEMES:
        source = render_html(make_roofline(1), theme=theme)
        assert source == render_html(make_roofline(1), theme=theme)
        assert Markup(source).elements[0][1]["data-theme"] == theme
        assert Markup(source).data["title"] == "Roofline of sample.ncu-rep"
    with pytest.raises(ValueError, match="neon"):
        render_html(make_roofline(1), theme="neon")
    two = make_roofline(2)
    two.kernels["report"], two.points["report"] = ["a", "b", "b"], ["a"] * 3 + ["b"] * 3
    assert Markup(render_html(two)).data["title"] == "Roofline of 2 reports"


def test_plotly_is_the_published_basic_bundle() -> None:
    """As published, byte for byte, with its licence: whoever renews it takes both and states the digest here."""
    folder = Path(page.__file__).parent
    bundle = (folder / "plotly-basic.min.js").read_bytes()
    assert bundle.startswith(b"/**\n* plotly.js (basic - minified) v4.1.1\n")
    assert hashlib.sha256(bundle).hexdigest() == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert (folder / "plotly-basic.LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")
