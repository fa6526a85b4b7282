"""The page in a headless Chromium, of results that have more or less than others: texts, bars, gaps, many kernels, paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import ncu_roofline
from ncu_roofline.chips.verdict import as_times
from tests.rendering.browser import Open, column, dots, place, table, until
from tests.rendering.frames import FakeRoofline, make_roofline
from tests.rendering.test_page import HOSTILE, hostile

if TYPE_CHECKING:
    from playwright.sync_api import Page


pytestmark = pytest.mark.browser


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
    """The bars of kernels without dots in percent of the room that they have."""
    width = "100 * node.getBoundingClientRect().width / node.parentNode.clientWidth"
    found = page.evaluate(f"[...document.querySelectorAll('#usage tbody .units i')].map((node) => {width})")
    return [float(share) for share in found]


def test_bars_instead_of_the_chart(open_page: Open) -> None:
    roofline = make_roofline(0, zero_flop=3)
    page = open_page(roofline)
    assert page.locator("#app").is_hidden()
    kernels = roofline.kernels.sort_values("seconds", ascending=False)
    by_rank = kernels.sort_values("recoverable", ascending=False)
    expected = [100 * row[f"fraction_{unit}"] for _, row in by_rank.iterrows() for unit in ("sm", "l1", "l2", "dram")]
    assert bar_widths(page) == pytest.approx(expected, abs=0.6)
    look = "getComputedStyle(document.querySelector('#usage tbody .units i')).backgroundColor"
    before = page.evaluate(look)
    page.locator("#theme").click()
    assert page.evaluate(look) != before
    assert page.locator("#usage tbody tr:not(.why)").count() == 3
    assert page.locator("#usage tbody tr.why").all_inner_texts() == [
        f"{reason}; no dot: without floating-point work" for reason in by_rank["reason"]
    ]


@pytest.mark.exhaustive
def test_verdicts_in_table_details_and_tooltip(open_page: Open) -> None:
    roofline = make_roofline(4, zero_flop=2, tensor_unknown=1)
    page = open_page(roofline)
    assert page.locator("#usage tbody .units i").count() == 8
    header = page.evaluate("[...document.querySelectorAll('#table th .sort')].map((cell) => cell.dataset.sort)")
    assert "binds" not in header
    kernels = roofline.kernels.set_index("kernel")
    shown = dict(zip(table(page), table(page, header.index("verdict")), strict=True))
    assert shown == {name: kernels.verdict[name] for name in shown}
    headrooms = dict(zip(table(page), table(page, header.index("headroom")), strict=True))
    assert headrooms["smooth_kernel"] == as_times(kernels.headroom["smooth_kernel"])
    assert headrooms["gpp_kernel"] == "\u2013"  # its tensor work is unknown
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
    for name in ("attainable", "fraction", "binding_fraction", "clock_profiled", "locality"):
        roofline.points[name] = float("nan")
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


@pytest.mark.exhaustive
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


def test_a_precision_beside_others_stands_under_its_own_roof(open_page: Open) -> None:
    roofline = make_roofline(1, ("fp32", "tensor.fp16"), mixed=True, zero_flop=0)
    roofline.points["compute_roof"] = 4 * roofline.points["performance"]
    page = open_page(roofline)
    shown = dict(zip(column(page, "precision"), column(page, "binding_fraction"), strict=True))
    assert {"FP32", "Tensor FP16"} <= shown.keys()
    assert {shown["FP32"], shown["Tensor FP16"]} == {"25 %"}
