"""Sweeps and FMA mixes on the page, in a headless Chromium: lines, labels, tooltip, switch, table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import Roofline, roofline
from tests import published
from tests.rendering.browser import Open, place, table, until
from tests.rendering.frames import make_roofline
from tests.rendering.test_sweeps import sweep

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]
DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
NW = [f"nw={nw}" for nw in range(1, 7)]


@pytest.fixture(scope="module")
def gpp() -> Roofline:
    return roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")


def traces(page: Any, meta: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        "(meta) => chart.data.filter((trace) => trace.meta === meta).map(({ x, y, name }) => ({ x: [...x], y: [...y], name }))",
        meta,
    )
    return found


def notes(page: Any) -> list[str]:
    texts: list[str] = page.evaluate("chart.layout.annotations.map((each) => each.text)")
    return texts


def test_lines_join_the_published_points(open_page: Open, gpp: Roofline) -> None:
    page = open_page(gpp)
    lines = traces(page, "sweep")
    assert [line["x"] for line in lines] == [
        pytest.approx(level, rel=1e-5) for level in (published.INTENSITY_L1, published.INTENSITY_L2, published.INTENSITY_DRAM)
    ]
    for line in lines:
        assert line["y"] == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-5)
        assert line["name"] == "sigma_gpp_gpu"
    assert [line["x"] for line in traces(page, "link")] == [[]]


@pytest.mark.parametrize(("height", "named"), [(900, 5), (1200, 6)])
def test_steps_are_named_where_there_is_room(open_page: Open, gpp: Roofline, height: int, named: int) -> None:
    page = open_page(gpp)
    page.set_viewport_size({"width": 1366, "height": height})
    until(page, "Math.abs(chart.layout.height - chart.parentElement.clientHeight) < 2")
    found = [text for text in notes(page) if text in NW]
    assert {"nw=1", "nw=6"} <= set(found)
    assert len(found) == len(set(found)) >= named


def test_steps_are_in_the_table_and_the_tooltip(open_page: Open, gpp: Roofline) -> None:
    page = open_page(gpp)
    assert table(page, 1) == NW
    header = page.locator("#table thead").inner_text()
    assert "FMA" in header
    assert "% of mix" in header
    page.mouse.click(*place(page, "sigma_gpp_gpu", "l1"))
    page.locator("#tooltip summary").click()
    tip = page.locator("#tooltip").inner_text()
    assert "nw=1" in tip
    assert "FMA share" in tip
    assert "5.655 TFLOP/s" in tip


def test_mix_can_be_turned_off(open_page: Open, gpp: Roofline) -> None:
    page = open_page(gpp)
    (mark,) = traces(page, "mix")
    assert mark["y"] == pytest.approx([5.655e12] * 2, rel=1e-3)
    assert "FMA mix 80 % 5.66 TFLOP/s" in notes(page)
    page.locator("[data-mix]").uncheck()
    until(page, "!chart.data.some((trace) => trace.meta === 'mix')")
    assert not [text for text in notes(page) if text.startswith("FMA mix")]
    page.locator("[data-mix]").check()
    until(page, "chart.data.some((trace) => trace.meta === 'mix')")


def test_a_chosen_step_keeps_its_kernels_line(open_page: Open) -> None:
    page = open_page(sweep(3, 4))
    assert len(traces(page, "sweep")) == 9
    page.locator("#table tbody tr").first.click()
    until(page, "state.isolated !== null")
    assert len(traces(page, "sweep")) == 3


def test_without_a_sweep_there_is_no_line_and_no_column(open_page: Open) -> None:
    page = open_page(make_roofline(3))
    assert traces(page, "sweep") == []
    assert "Step" not in page.locator("#table thead").inner_text()
