"""Comparisons as Markdown, picture and page: what they say and show as data first, then as artists and markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from ncu_roofline.analyses import render
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.picture import comparison_chart, figure
from ncu_roofline.analyses.compare.text import LONGEST, MARKER, main_pair, pairs
from ncu_roofline.analyses.compare.thresholds import evaluate
from ncu_roofline.analyses.hierarchical.style import level_style
from ncu_roofline.rendering.chart import Line, Listing, Panel, Point, Roof, Row, Text
from tests.analyses.comparison_made import MADE, compared, disjoint, many, ordinary, steps, two_gpus
from tests.factory import complete, kernel
from tests.rendering.test_page import HOSTILE, Markup
from tests.rendering.test_picture import drawn, faults
from tests.rendering.test_tables import check_golden

ARROW = "\N{RIGHTWARDS ARROW}"


def hostile(comparison: Comparison) -> Comparison:
    """The same with a hostile text wherever a report's own text stands."""
    texts = {"baseline", "report", "label", "notes"}
    texts |= {f"{one}{when}" for one in ("kernel", "name", "grid", "device", "verdict") for when in ("", "_before")}
    tables = {}
    for table in ("kernel_columns", "level_columns", "summary_columns", "roof_columns", "threshold_columns"):
        tables[table] = {
            name: np.array([f"{HOSTILE}{name}"] * len(values), dtype=object) if name in texts else values
            for name, values in getattr(comparison, table).items()
        }
    return Comparison(**tables)


def headlines(comparison: Comparison) -> list[str]:
    return re.findall("^### (.*)$", render(comparison, "md").decode(), re.MULTILINE)


def listed(comparison: Comparison) -> Sequence[Row]:
    """The kernels in the list of the picture."""
    (listing,) = [block for row in comparison_chart(comparison).rows for block in row if isinstance(block, Listing)]
    return listing.rows


def panels_of(comparison: Comparison) -> list[Panel]:
    """The rooflines of the picture."""
    return [block for row in comparison_chart(comparison).rows for block in row if isinstance(block, Panel)]


def test_golden_markdown(tmp_path: Path) -> None:
    result = evaluate(ordinary(tmp_path), ["time > 1.05 * baseline", "fraction < 0.5"])
    check_golden("compare.md", render(result, "md", title="Nightly | main"))


def test_headlines(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
    assert headlines(ordinary(tmp_path / "a")) == [
        f"1.36x faster: 7.4 ms {ARROW} 5.45 ms \\(26.4 % less time\\); 1 kernel slower; 1 kernel new; 1 kernel gone"
    ]
    assert headlines(steps(tmp_path / "b"))[-2:] == [
        f"4.00x faster: 4 ms {ARROW} 1 ms \\(75.0 % less time\\)",
        f"2.00x faster: 2 ms {ARROW} 1 ms \\(50.0 % less time\\)",
    ]
    assert headlines(disjoint(tmp_path / "c")) == ["Nothing in common; 1 kernel new; 1 kernel gone"]
    (found,) = headlines(two_gpus(tmp_path / "d"))
    assert found.startswith("Another GPU: shares of the roof are compared, times are not; ")


def test_one_scale_for_faster_and_slower(tmp_path: Path) -> None:
    there = [kernel(complete(seconds=time), "void solver(int)") for time in (4e-3, 2e-3)]
    faster, slower = compared(tmp_path, (there[0],), (there[1],)), compared(tmp_path, (there[1],), (there[0],))
    assert headlines(faster) == [f"2.00x faster: 4 ms {ARROW} 2 ms \\(50.0 % less time\\)"]
    assert headlines(slower) == [f"2.00x slower: 2 ms {ARROW} 4 ms \\(100 % more time\\)"]
    for result, word in ((faster, "faster"), (slower, "slower")):
        assert [row.end for row in listed(result)] == [f"2.00x {word}"]
        assert f"2.00x {word}: " in render(result, "text").decode()
    small = replace(slower, kernel_columns={**slower.kernel_columns, "time_change": np.array([0.004])})
    assert [row.end for row in listed(small)] == ["1.004x slower"]


def test_the_notes_do_not_say_the_headline_again(tmp_path: Path) -> None:
    for make in MADE.values():
        text = render(make(tmp_path), "md").decode()
        assert "-&#62;" not in text
        assert not re.search("^- [0-9.]+x (faster|slower)", text, re.MULTILINE)
        assert not re.search("^- (the same|nothing in common|times not)", text, re.MULTILINE)


def test_what_matters_comes_before_the_fold(tmp_path: Path) -> None:
    lines = render(ordinary(tmp_path), "md").decode().splitlines()
    fold = lines.index("<details>")
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    before = [line.split(" | ")[0].removeprefix("| ") for line in lines[:fold] if line.startswith("| ")]
    assert before == ["kernel", ":--", "solver", "pack", "fused", "halo"]
    assert names[len(before) :] == ["kernel", ":--", "advance"]
    assert lines[0] == MARKER


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


def test_hostile_texts_stay_texts_in_markdown(tmp_path: Path) -> None:
    text = render(hostile(ordinary(tmp_path)), "md", title=HOSTILE).decode()
    assert not re.search(r"<(?!!-- ncu-roofline compare -->|/?details>|/?summary>)", text)


def test_dots_before_and_after_at_the_level_that_binds(tmp_path: Path) -> None:
    result = ordinary(tmp_path)
    (panel,) = panels_of(result)
    names = {mark.key: mark.labels[0] for mark in panel.marks if isinstance(mark, Text)}
    assert set(names.values()) == {"solver 2.00x faster", "halo 1.12x slower", "advance same"}
    dots = [mark for mark in panel.marks if isinstance(mark, Point) and names[mark.name].startswith("solver")]
    after, before = dots
    assert (after.fill, before.fill) == ("full", "none")
    assert (before.x, after.x) == pytest.approx((8e9 / 5.6e9, 8e9 / 2e8))
    assert (before.y, after.y) == pytest.approx((8e9 / 4e-3, 8e9 / 2e-3))
    assert ((before.x, before.y), (after.x, after.y)) in [mark.places for mark in panel.marks if isinstance(mark, Line)]
    roofs = {mark.labels[-1]: mark for mark in panel.marks if isinstance(mark, Roof)}
    frame = result.roofs[result.roofs.step == 1].set_index("roof").value
    assert roofs["FP64 FMA"].value == frame["fp64.fma"]
    assert {level_style("dram"), after.hue} <= {roof.hue for roof in roofs.values() if roof.kind == "bandwidth"}


def test_kernels_are_ranked_by_time_saved_or_lost(tmp_path: Path) -> None:
    rows = listed(ordinary(tmp_path))
    assert [row.name for row in rows] == ["solver", "pack", "fused", "halo", "advance"]
    assert [row.end for row in rows] == ["2.00x faster", "gone", "new", "1.12x slower", "same"]
    times, _ = rows[0].scales
    assert times.dots == pytest.approx((1.0, 0.5))
    assert times.text == f"4 ms {ARROW} 2 ms"
    assert rows[0].below == f"memory: DRAM {ARROW} latency"


def test_between_gpus_only_shares_of_roofs_are_drawn(tmp_path: Path) -> None:
    assert panels_of(two_gpus(tmp_path)) == []
    for row in listed(two_gpus(tmp_path)):
        (shares,) = row.scales
        assert all(0 < share < 1 for share in shares.dots or ())
    _, texts = drawn(two_gpus(tmp_path), figure)
    assert not any("run time" in text or " ms" in text for text in map(str, texts))


def test_of_several_states_the_last_is_drawn(tmp_path: Path) -> None:
    pair = main_pair(pairs(steps(tmp_path)))
    assert pair
    assert (pair.whole["step"], pair.whole["against"]) == (3, "baseline")
    markup = Markup(render(steps(tmp_path), "html"))
    headings = [column["heading"] for column in markup.data["columns"]]
    assert [name for name in headings if name.endswith("[s]")] == [
        "Time before [s]", "Time after [s]", "saved [s]",
    ]  # fmt: skip
    assert [column["values"][0] for column in markup.data["columns"][3:5]] == pytest.approx([4e-3, 1e-3])


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        pytest.param(kind, points, marks=[] if (kind, points) == ("ordinary", 515) else pytest.mark.exhaustive)
        for kind in MADE
        for points in (240, 515, 800)
    ],
)
def test_no_text_touches_another_or_leaves_the_picture(tmp_path: Path, kind: str, points: float) -> None:
    assert faults(*drawn(MADE[kind](tmp_path), figure, points=points)) == []


def test_hollow_is_before_and_filled_is_after(tmp_path: Path) -> None:
    made, _ = drawn(ordinary(tmp_path), figure)
    marks = {gid: made.findobj(lambda one, gid=gid: one.get_gid() == gid) for gid in ("before", "after")}
    ground = made.get_facecolor()
    assert {to_rgba(line.get_markerfacecolor()) for line in marks["before"]} == {ground}
    assert ground not in {to_rgba(line.get_markerfacecolor()) for line in marks["after"]}
    assert made.findobj(lambda one: one.get_gid() == "arrow")


@pytest.mark.exhaustive
def test_pages_are_small_and_fetch_nothing(tmp_path: Path) -> None:
    data = render(many(tmp_path), "html")
    assert len(data) < 500_000
    markup = Markup(data)
    assert b"Plotly." not in data
    assert b"plotly.js" not in data
    assert not [tag for tag, found in markup.elements if tag == "link" or {"src", "srcset", "action"} & found.keys()]
    policy = next(a["content"] for _, a in markup.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in markup.scripts[1:]]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert len(digests) == 1
    assert policy.startswith("default-src 'none'")


def test_the_page_says_all_that_changed(tmp_path: Path) -> None:
    markup = Markup(render(evaluate(ordinary(tmp_path), ["time > 1.05 * baseline"]), "html"))
    text = " ".join(markup.text.split())
    assert f"1.36x faster: 7.4 ms {ARROW} 5.45 ms (26.4 % less time); 1 kernel slower; 1 kernel new; 1 kernel gone" in text
    assert "tripped: time > 1.05 * baseline: halo" in text
    assert "New: 200 \N{MICRO SIGN}s (fused). Gone: 500 \N{MICRO SIGN}s (pack)." in text
    columns = {column["label"]: column for column in markup.data["columns"]}
    assert columns["Kernel"]["texts"] == ["solver", "pack", "fused", "halo", "advance"]
    assert columns["Verdict"]["texts"][0] == f"memory: DRAM {ARROW} latency"
    assert columns["Speed-up"]["values"] == [pytest.approx(2.0), None, None, pytest.approx(1 / 1.12), pytest.approx(1.0)]
    assert markup.data["changed"] == [True, True, True, True, False]


def test_the_chart_of_a_page_is_text_in_the_colours_of_its_theme(tmp_path: Path) -> None:
    source = render(ordinary(tmp_path), "html").decode()
    charts = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        assert re.search(r"<text[^>]*>solver", chart)
        assert set(re.findall(r"(?:fill|stroke): (#[0-9a-f]+)", chart)) == set()
    ids = Counter(re.findall(r' id="([^"]+)"', "".join(charts)))
    assert set(ids.values()) == {1}
    used = set(re.findall(r"var\((--hue-[0-9a-f]+)\)", source))
    assert used <= set(re.findall(r"(--hue-[0-9a-f]+): ", source))


def test_hostile_texts_stay_texts_on_the_page(tmp_path: Path) -> None:
    tame = evaluate(ordinary(tmp_path), ["time > 1.05 * baseline"])
    allowed = {tag for tag, _ in Markup(render(tame, "html")).elements}
    found = Markup(render(hostile(tame), "html", title=HOSTILE))
    tags = Counter(tag for tag, _ in found.elements)
    assert tags.keys() <= allowed
    assert (tags["script"], tags["img"]) == (2, 0)
    assert not [a for _, a in found.elements if any(name.startswith("on") for name in a)]
    source = render(hostile(tame), "html", title=HOSTILE).decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", source.split("<script>")[0])
