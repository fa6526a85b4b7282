"""The page in a headless Chromium, opened from a file with the network cut: the chart, its table, and how people use both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ncu_roofline.analyses.hierarchical.kernels import kernels_of, ranked
from tests.rendering.browser import Open, column, dots, faded, lines, place, table, until
from tests.rendering.frames import make_roofline

if TYPE_CHECKING:
    pass


pytestmark = pytest.mark.browser


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
    assert list(dict.fromkeys(ranks)) == [one.launch for one in ranked(kernels_of(frames).values()) if one.status == "ok"]
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
