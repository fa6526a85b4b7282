"""The page in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import ncu_roofline
from ncu_roofline.analyses.hierarchical.answer import ranked
from ncu_roofline.analyses.hierarchical.usage import usages
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.rendering.test_page import HOSTILE, hostile

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

Open = Callable[..., "Page"]


def until(page: Page, condition: str) -> None:
    """Wait for a JavaScript condition; playwright's own wait evaluates text in the page, which the page's policy forbids."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {condition}")


def dots(page: Page) -> int:
    """Dots drawn that stand for points of kernels (ridge points and arrows at the edges are of other traces)."""
    return (
        int(page.evaluate("document.querySelectorAll('#chart .scatterlayer path.point').length")) - ridges(page) - arrows(page)
    )


def arrows(page: Page) -> int:
    return int(page.evaluate("chart.data.filter((trace) => trace.meta === 'edge').flatMap((trace) => trace.x).length"))


def ridges(page: Page) -> int:
    return int(page.evaluate("chart.data.find((trace) => trace.meta === 'ridge').x.length"))


def lines(page: Page) -> int:
    """Roofs drawn."""
    return int(page.evaluate("chart.data.filter((trace) => trace.meta === 'roof').length"))


def place(page: Page, kernel: str, level: str) -> tuple[float, float]:
    """Window coordinates of a kernel's dot, read from where plotly drew it."""
    found = page.evaluate(
        """([kernel, level]) => {
            const traces = chart.data.map((trace, index) => ({ trace, index })).filter(({ trace }) => trace.meta === "dots");
            const groups = [...document.querySelectorAll("#chart .scatterlayer .trace")];
            for (const { trace, index } of traces) {
                const at = trace.customdata.findIndex((i) => POINTS[i].kernel === kernel && POINTS[i].level === level);
                if (at < 0 || !(trace.marker.opacity > 0.5)) continue;
                const box = groups[index].querySelectorAll("path.point")[at].getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }
            return null;
        }""",
        [kernel, level],
    )
    assert found is not None
    return found[0], found[1]


def table(page: Page, column: int = 0) -> list[str]:
    cells = f"[...document.querySelectorAll('#table tbody tr > :nth-child({column + 1})')]"
    return [str(text) for text in page.evaluate(f"{cells}.map((cell) => cell.textContent.trim())")]


def column(page: Page, name: str) -> list[str]:
    """Cells of the column of this id."""
    return table(page, page.evaluate("(id) => COLUMNS.findIndex((column) => column.id === id)", name))


def faded(page: Page) -> int:
    traces = "chart.data.filter((trace) => trace.meta === 'dots' && trace.marker.opacity < 0.5)"
    return int(page.evaluate(f"{traces}.flatMap((trace) => trace.x).length"))


def test_chart_is_drawn(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    assert dots(page) == 15
    assert lines(page) == 2 * (2 + 3)
    assert page.locator("#chart .scatterlayer path.js-line").count() >= lines(page)
    assert page.evaluate("chart.layout.xaxis.type + chart.layout.yaxis.type") == "loglog"
    labels = page.locator("#chart .annotation-text").all_text_contents()
    assert any("HBM: 1.555 TB/s" in label for label in labels)
    assert any("FP64 FMA: 8.674 TFLOP/s (measured)" in label for label in labels)
    assert any("gpp_kernel" in label for label in labels)


@pytest.mark.exhaustive
def test_labels_lie_along_their_lines(open_page: Open) -> None:
    page = open_page(make_roofline(3))
    before = page.evaluate("chart.layout.annotations.filter((a) => a.text.startsWith('HBM')).map((a) => a.textangle)")
    page.evaluate("Plotly.relayout(chart, { 'xaxis.range': [0, 1], 'yaxis.range': [11, 14] })")
    after = page.evaluate("chart.layout.annotations.filter((a) => a.text.startsWith('HBM')).map((a) => a.textangle)")
    steepness = page.evaluate(
        "(() => { const box = document.querySelector('#chart .nsewdrag').getBoundingClientRect();"
        " return -Math.atan2(box.height / 3, box.width) * 180 / Math.PI; })()"
    )
    assert before
    assert after
    assert after != before
    assert all(angle == pytest.approx(steepness, abs=1.0) for angle in after)


@pytest.mark.exhaustive
def test_labels_do_not_overlap(open_page: Open) -> None:
    page = open_page(make_roofline(30, ("fp64", "fp32")))
    overlaps = page.evaluate(
        """() => {
            const level = chart.layout.annotations.map((a, i) => (Math.abs(a.textangle) < 1 ? i : -1)).filter((i) => i >= 0);
            const boxOf = (i) => document.querySelector(`#chart .annotation[data-index="${i}"] text`).getBoundingClientRect();
            const meet = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
            const boxes = level.map(boxOf);
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => meet(a, b))).length;
        }"""
    )
    assert page.locator("#chart .annotation").count() > 10
    assert overlaps == 0


def test_hover_tells_little_and_a_click_pins_every_number(open_page: Open) -> None:
    roofline = make_roofline(5)
    page = open_page(roofline)
    point = roofline.points[(roofline.points["kernel"] == "smooth_kernel") & (roofline.points["level"] == "dram")].iloc[0]
    page.mouse.move(*place(page, "smooth_kernel", "dram"))
    tip = page.locator("#tooltip")
    tip.wait_for(state="visible")
    text = tip.inner_text()
    assert "smooth_kernel" in text
    assert "DRAM · FP64" in text
    assert f"{point['intensity']:.4g} FLOP/B" in text
    assert f"{point['performance'] / 1e12:.4g} TFLOP/s" in text
    box = tip.bounding_box()
    assert box is not None
    assert box["height"] < 200
    assert page.locator("#overlay circle").count() == 3  # rings around the three levels
    assert page.locator("#table tr.hot").count() == 1
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    tip.locator("summary").click()
    text = tip.inner_text()
    assert f"{100 * point['fraction']:.3g} %" in text
    expected = ["GFLOP", "MB", "µs", "GB/s", "GHz", "binding", "work / traffic", "measured roof", "theoretical roof", "DRAM"]
    assert [word for word in [*expected, "dram__bytes.sum"] if word not in text] == []
    page.mouse.move(3, 3)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    assert page.locator("#overlay circle").count() == 0


@pytest.mark.exhaustive
def test_hover_on_a_roof(open_page: Open) -> None:
    page = open_page(make_roofline(1, measured=False))
    x, y = page.evaluate(
        """() => {
            const line = document.querySelector("#chart .scatterlayer .trace path.js-line");
            const box = line.getBoundingClientRect(), area = document.querySelector("#chart .nsewdrag").getBoundingClientRect();
            return [area.right - 30, box.top + box.height / 2];
        }"""
    )
    page.mouse.move(x, y)
    page.locator("#tooltip").wait_for(state="visible")
    text = page.locator("#tooltip").inner_text()
    assert re.search(r"FP64 (no )?FMA", text)
    assert "TFLOP/s" in text
    assert "1.095 GHz" in text
    assert "theoretical" in text


def test_click_isolates_and_escape_restores(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    page.mouse.click(*place(page, "smooth_kernel", "l1"))
    page.locator("#details").wait_for(state="visible")
    assert faded(page) == 12
    assert "smooth_kernel(level_type, int, int, double, double)" in page.locator("#details").inner_text()
    assert page.locator("#table tr.chosen").inner_text().startswith("smooth_kernel")
    page.mouse.click(*place(page, "smooth_kernel", "l1"))
    assert faded(page) == 0
    page.mouse.click(*place(page, "smooth_kernel", "l1"))
    page.keyboard.press("Escape")
    assert faded(page) == 0
    assert page.locator("#details").is_hidden()


def test_table_isolates_by_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    row = page.locator("#table tbody tr", has_text="spmv_csr")
    row.hover()
    assert page.locator("#overlay circle").count() == 3
    row.click()
    assert faded(page) == 12
    page.locator("#restore").click()
    assert faded(page) == 0
    page.locator("#table tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert faded(page) == 12
    assert page.evaluate("document.activeElement.classList.contains('chosen')")


def test_toggles(open_page: Open) -> None:
    page = open_page(make_roofline(6, ("fp64", "fp32")))
    every = dots(page)
    page.locator("[data-level=l2]").click()
    assert dots(page) == every - every // 3
    assert page.locator("[data-level=l2]").get_attribute("aria-pressed") == "false"
    page.locator("[data-level=l2]").click()
    page.locator("[data-precision=fp32]").click()
    assert dots(page) == 3 * 3  # every second kernel works in FP32 too
    assert set(column(page, "precision")) == {"FP32"}
    page.locator("[data-precision=all]").click()
    assert dots(page) == every
    before = lines(page)
    page.locator("[data-roof='fp64.nofma'][data-origin=measured]").check()
    assert lines(page) == before + 1
    page.locator("[data-roof='fp64.nofma'][data-origin=measured]").uncheck()
    page.locator("[data-origins=theoretical]").click()
    assert page.evaluate("chart.data.filter((t) => t.meta === 'roof').every((t) => t.line.dash === 'solid')")
    page.locator("#reset").click()
    assert lines(page) == before


def test_sort(open_page: Open) -> None:
    frames = make_roofline(8)
    page = open_page(frames)
    ranks = page.evaluate("sorted(current.selection.rows).map((row) => row.kernel.launch)")
    assert list(dict.fromkeys(ranks)) == [one.launch for one in ranked(usages(frames).values()) if one.status == "ok"]
    page.locator("[data-sort=seconds]").click()
    times = page.evaluate("sorted(current.selection.rows).map((row) => row.kernel.seconds)")
    assert times == sorted(times, reverse=True)
    header = page.locator("[data-sort=kernel]")
    header.click()
    names = table(page)
    assert names == sorted(names, key=str.lower)
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Kernel")
    page.locator("[data-sort=kernel]").press("Enter")
    assert table(page) == names[::-1]
    page.locator("[data-sort=performance]").click()
    speeds = page.evaluate("sorted(current.selection.rows).map((row) => row.first.performance)")
    assert speeds == sorted(speeds, reverse=True)


def test_filter_is_shared(open_page: Open) -> None:
    page = open_page(make_roofline(8))
    page.locator("#query").fill("REDUCE")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    assert dots(page) == 3
    page.locator("#query").fill("^(smooth|spmv)")
    page.locator("#blank").wait_for(state="visible")
    page.locator("#regex").click()
    until(page, "document.querySelectorAll('#table tbody tr').length === 2")
    assert dots(page) == 6
    page.locator("#query").fill("(")
    until(page, "document.getElementById('query').getAttribute('aria-invalid') === 'true'")
    page.locator("#reset").click()
    assert dots(page) == 24
    page.locator("#top").select_option("5")
    assert dots(page) == 15
    assert len(table(page)) == 5


@pytest.mark.exhaustive
def test_theme_and_download(open_page: Open) -> None:
    page = open_page(make_roofline(3), theme="light")
    light = page.evaluate("chart.layout.plot_bgcolor")
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("chart.layout.plot_bgcolor") != light
    with page.expect_download() as download:
        page.locator("#download").click()
    assert download.value.suggested_filename == "Roofline-of-sample.ncu-rep.svg"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "Roofline of sample.ncu-rep" in text


@pytest.mark.exhaustive
def test_zoom_stays_until_double_click(open_page: Open) -> None:
    page = open_page(make_roofline(3))
    home = page.evaluate("chart.layout.xaxis.range")
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 300, steps=4)
    page.mouse.up()
    until(page, "state.view !== null")
    zoomed = page.evaluate("chart.layout.xaxis.range")
    assert zoomed[1] - zoomed[0] < home[1] - home[0]
    page.locator("[data-level=l1]").click()
    assert page.evaluate("chart.layout.xaxis.range") == zoomed
    page.mouse.dblclick(box["x"] + 15, box["y"] + 15)
    until(page, "state.view === null")
    assert page.evaluate("chart.layout.xaxis.range") == home


def test_plotly_offers_no_upload(open_page: Open) -> None:
    page = open_page(make_roofline(1))
    names = page.evaluate("[...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)")
    assert names == ["Zoom", "Pan", "Zoom in", "Zoom out"]


def test_hostile_texts_show_literally(open_page: Open) -> None:
    roofline = hostile(make_roofline(3))
    for frame in (roofline.kernels, roofline.points):
        frame["kernel"] = pd.Series([f"<b>a</b><a href='http://x.invalid'>$x$</a>{HOSTILE}"] * len(frame), dtype=object)
    roofline.roofs["label"] = "<b>roof</b>&lt;i&gt;"
    page = open_page(roofline, title=HOSTILE)
    page.locator("#table tbody tr").first.click(position={"x": 40, "y": 5})
    page.locator("#details").wait_for(state="visible")
    assert "<b>a</b>" in page.locator("#details h2").inner_text()
    labels = page.locator("#chart .annotation-text").all_text_contents()
    assert any("<b>roof</b>&lt;i&gt;" in label for label in labels)
    assert any(label.startswith("<b>a</b>") for label in labels)
    assert page.locator("img, #chart .annotation a, #details b, #table b").count() == 0


@pytest.mark.exhaustive
def test_without_points(open_page: Open) -> None:
    unknown = make_roofline(0, zero_flop=2, usage=False)
    unknown.kernels["seconds"] = float("nan")
    page = open_page(unknown)
    assert "No kernel can be drawn" in page.locator("section.empty").inner_text()
    assert page.locator("#app").is_hidden()  # roofs alone say nothing of a kernel
    nothing = make_roofline(0, zero_flop=0)
    bare = open_page(FakeRoofline(nothing.points, nothing.roofs.iloc[:0], nothing.kernels))
    assert bare.locator("#app").is_hidden()
    assert "There is no kernel here" in bare.locator("section.empty").inner_text()


def bar_widths(page: Page) -> list[float]:
    """Percent of peak of each bar drawn, trace by trace, measured against the axis."""
    found: list[float] = page.evaluate(
        """() => {
            const area = document.querySelector("#usage-chart .nsewdrag, #usage-chart .bglayer .bg").getBoundingClientRect();
            return [...document.querySelectorAll("#usage-chart .barlayer .point path")]
                .map((path) => 100 * path.getBoundingClientRect().width / area.width);
        }"""
    )
    return found


def test_bars_instead_of_the_chart(open_page: Open) -> None:
    roofline = make_roofline(0, zero_flop=3)
    page = open_page(roofline)
    assert page.locator("#app").is_hidden()
    kernels = roofline.kernels.sort_values("seconds", ascending=False)
    expected = [100 * share for unit in ("sm", "l1", "l2", "dram") for share in kernels[f"fraction_{unit}"]]
    assert bar_widths(page) == pytest.approx(expected, abs=0.6)
    ticks = page.locator("#usage-chart .xtick text").all_text_contents()
    assert ticks == ["0", "20", "40", "60", "80", "100"]
    assert page.locator("#usage-chart .ytick text").all_text_contents() == kernels["kernel"].tolist()
    assert page.locator("#usage-chart .xtitle").text_content() == "% of peak"
    before = page.evaluate("getComputedStyle(document.querySelector('#usage-chart .barlayer .point path')).fill")
    page.locator("#theme").click()
    after = page.evaluate("getComputedStyle(document.querySelector('#usage-chart .barlayer .point path')).fill")
    assert before != after
    assert page.locator("#usage tbody tr:not(.why)").count() == 3
    assert page.locator("#usage tbody tr.why").all_inner_texts() == [
        f"{reason}; no dot: without floating-point work" for reason in kernels["reason"]
    ]


@pytest.mark.exhaustive
def test_verdicts_in_table_details_and_tooltip(open_page: Open) -> None:
    roofline = make_roofline(4, zero_flop=2, tensor_unknown=1)
    page = open_page(roofline)
    assert page.locator("#usage-chart .barlayer .point").count() == 8
    header = page.evaluate("[...document.querySelectorAll('#table th .sort')].map((cell) => cell.dataset.sort)")
    assert "binds" not in header
    kernels = roofline.kernels.set_index("kernel")
    shown = dict(zip(table(page), table(page, header.index("verdict")), strict=True))
    assert shown == {name: kernels.verdict[name] for name in shown}
    gains = dict(zip(table(page), table(page, header.index("gain")), strict=True))
    assert gains["smooth_kernel"] == f"{kernels.speedup['smooth_kernel']:.1f}x"
    assert gains["gpp_kernel"] == "\u2013"  # its tensor work is unknown
    page.mouse.move(*place(page, "smooth_kernel", "dram"))
    page.locator("#tooltip").wait_for(state="visible")
    assert kernels.verdict["smooth_kernel"] in page.locator("#tooltip").inner_text()
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    assert kernels.reason["smooth_kernel"] in page.locator("#tooltip").inner_text()
    page.keyboard.press("Escape")
    page.locator("#table tbody tr", has_text="gpp_kernel").click()
    assert kernels.reason["gpp_kernel"] in page.locator("#details").inner_text()


@pytest.mark.exhaustive
def test_bands_hold_each_launch(open_page: Open) -> None:
    roofline = make_roofline(3, clocks_differ=0.3, measured=False)
    point = roofline.points[(roofline.points["kernel"] == "smooth_kernel") & (roofline.points["level"] == "dram")].iloc[0]
    page = open_page(roofline)
    bands = page.evaluate(
        "chart.data.filter((trace) => trace.meta === 'band').map((trace) => [Math.min(...trace.y), Math.max(...trace.y)])"
    )
    assert len(bands) == 4
    compute = roofline.roofs[roofline.roofs["roof"] == "fp64.fma"].iloc[0]
    assert any((low, high) == pytest.approx((compute["value_min"], compute["value_max"])) for low, high in bands)
    assert compute["value_min"] <= point["compute_roof"] <= compute["value_max"]
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    page.locator("#tooltip summary").click()
    assert f"{point['compute_roof'] / 1e12:.4g} TFLOP/s" in page.locator("#tooltip").inner_text()
    listed = page.locator("#roofs").inner_text()
    assert f"{compute['value_min'] / 1e12:.4g} to {compute['value_max'] / 1e12:.4g} TFLOP/s" in listed


@pytest.mark.exhaustive
def test_without_roofs_and_with_missing_numbers(open_page: Open) -> None:
    roofline = make_roofline(4)
    for column in ("attainable", "fraction", "binding_fraction", "clock_profiled", "locality"):
        roofline.points[column] = float("nan")
    roofline.points.loc[0, "intensity"] = float("inf")
    page = open_page(FakeRoofline(roofline.points, roofline.roofs.iloc[:0], roofline.kernels))
    assert dots(page) == 11
    assert "1 points without work or traffic" in page.locator("#status").inner_text()
    assert "n/a" in page.locator("#table tbody").inner_text()


@pytest.mark.exhaustive
def test_points_of_no_known_level_or_precision(open_page: Open) -> None:
    roofline = make_roofline(3, levels=("l1", "dram"))
    roofline.points["level"] = roofline.points["level"].replace("l1", "")
    roofline.points["precision"] = ""
    page = open_page(roofline)
    assert dots(page) == 6
    page.locator("#table tbody tr").first.click()
    assert "other" in page.locator("#details thead").inner_text()
    assert page.locator("[data-precision]").all_text_contents() == ["other"]


@pytest.mark.exhaustive
def test_two_devices_and_two_reports(open_page: Open) -> None:
    other = make_roofline(2, report="other.ncu-rep", seed=2)
    parts = [make_roofline(3), other, make_roofline(4, chip="h100", report="h.ncu-rep")]
    frames = [pd.concat([getattr(part, name) for part in parts], ignore_index=True) for name in ("points", "roofs", "kernels")]
    page = open_page(FakeRoofline(*frames))
    first = page.evaluate("state.device")
    assert dots(page) == (15 if "A100" in first else 12)
    page.locator("[data-pick=GPU]").select_option(parts[0].points["device"].iloc[0])
    assert dots(page) == 15
    page.locator("[data-pick=Report]").select_option("other.ncu-rep")
    assert dots(page) == 6
    page.locator("[data-pick=GPU]").select_option(parts[2].points["device"].iloc[0])
    assert dots(page) == 12


@pytest.mark.exhaustive
def test_mixed_brings_the_roofs_of_its_parts(open_page: Open) -> None:
    page = open_page(make_roofline(4, ("fp32", "tensor.fp16"), mixed=True))
    page.locator("[data-precision=mixed]").click()
    assert dots(page) == 2 * 3
    roofs = page.evaluate("currentRoofs().filter((roof) => roof.kind === 'compute').map((roof) => roof.precision)")
    assert set(roofs) == {"fp32", "tensor.fp16"}


def many(copies: int) -> FakeRoofline:
    """A hundred kernels over and over, each time with names of their own and a little elsewhere."""
    few = make_roofline(100, ("fp32",), levels=("l1", "l2", "dram", "system"), zero_flop=5)
    frames = []
    for frame in (few.points, few.kernels):
        parts = [frame.assign(kernel=[f"{name} ({copy})" for name in frame["kernel"]]) for copy in range(copies)]
        frames.append(pd.concat(parts, ignore_index=True))
    points, kernels = frames
    away = np.random.default_rng(1).uniform(0.4, 2.5, len(points))
    return FakeRoofline(
        points.assign(intensity=points["intensity"] * away, performance=points["performance"] / away), few.roofs, kernels
    )


def test_three_thousand_kernels_stay_fluent(open_page: Open) -> None:
    page = open_page(many(30))
    assert dots(page) == 400  # the first hundred
    assert "the first 100 of 3000" in page.locator("#status").inner_text()
    page.locator("#top").select_option("0")
    few = dots(page)
    assert 750 < few <= 1500  # of 12000
    assert "zoom in" in page.locator("#status").inner_text()
    shown = set(page.evaluate("chart.data.filter((trace) => trace.meta === 'dots').flatMap((trace) => [...trace.customdata])"))
    page.evaluate("Plotly.relayout(chart, { 'xaxis.range': [0, 0.5], 'yaxis.range': [12, 12.5] })")
    until(page, "state.view !== null")
    near = set(page.evaluate("chart.data.filter((trace) => trace.meta === 'dots').flatMap((trace) => [...trace.customdata])"))
    assert len(near - shown) > 100  # what was below others
    assert len(table(page)) == 100
    page.locator("#show-more").click()
    assert len(table(page)) == 500
    redraw = "(() => { const start = performance.now(); update(); return performance.now() - start; })()"
    assert page.evaluate(redraw) < 2000  # a tenth of it on a quiet machine


@pytest.mark.exhaustive
def test_phone(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "chart.layout.width < 390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert dots(page) == 15


@pytest.mark.exhaustive
def test_print(open_page: Open, tmp_path: Path) -> None:
    page = open_page(make_roofline(5), theme="dark")
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.exhaustive
def test_a_time_that_nobody_knows_is_not_zero(open_page: Open, tmp_path: Path) -> None:
    table_of_rates = tmp_path / "rates.csv"
    table_of_rates.write_text("kernel,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs\ntriad,10,0.1,1000,200\n")
    status = open_page(ncu_roofline.roofline(table_of_rates)).locator("#status").inner_text()
    assert status == "1 of 1 kernel, 1 dot"
