"""The page of the time view in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncu_roofline.analyses.hierarchical.kernels import answers_of
from ncu_roofline.analyses.time.frames import time_roofline
from tests.analyses.time_frames import ordinary, point
from tests.rendering.browser import Open, until
from tests.rendering.test_time_view import LATENCY, gpp, hostile, several

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["gpp"]
pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]


def traces(page: Page, chart: str, meta: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        "([id, meta]) => document.getElementById(id).data.filter((one) => one.meta === meta)"
        ".map(({ x, y }) => ({ x: [...x], y: [...y] }))",
        [chart, meta],
    )
    return found


def names(page: Page) -> list[str]:
    return [
        str(text) for text in page.evaluate("[...document.querySelectorAll('#table tbody th')].map((cell) => cell.textContent)")
    ]


def drawn(page: Page, chart: str) -> int:
    return int(page.evaluate(f"document.querySelectorAll('#{chart} .scatterlayer path.point').length"))


def axis(page: Page, name: str) -> list[float]:
    return [float(at) for at in page.evaluate(f"document.getElementById('both').layout.{name}.range")]


def test_three_charts(open_page: Open, gpp: Any) -> None:
    page = open_page(gpp)
    points = gpp.points
    [complexity], [time] = traces(page, "complexity", "symbols"), traces(page, "time", "symbols")
    assert complexity["x"] == pytest.approx(points["traffic"].tolist(), rel=6e-6)
    assert complexity["y"] == pytest.approx(points["work"].tolist(), rel=6e-6)
    assert time["x"] == pytest.approx(points["bandwidth_seconds"].tolist(), rel=6e-6)
    assert time["y"] == pytest.approx(points["compute_seconds"].tolist(), rel=6e-6)
    [filled], [opened] = traces(page, "both", "symbols"), traces(page, "both", "open")
    assert filled == complexity
    assert [b / a for a, b in zip(filled["x"], opened["x"], strict=True)] == pytest.approx(
        points["inefficiency"].tolist(), rel=2e-5
    )
    assert [b / a for a, b in zip(filled["y"], opened["y"], strict=True)] == pytest.approx(
        points["inefficiency"].tolist(), rel=2e-5
    )
    assert [drawn(page, chart) for chart in ("complexity", "time", "both")] == [6, 6, 12]
    assert len(traces(page, "both", "sweep")) == 2


def test_second_axes_follow_a_zoom(open_page: Open, gpp: Any) -> None:
    page = open_page(gpp)
    machine = gpp.machines[gpp.machines["level"] == "dram"].iloc[0]
    scale = {"xaxis": machine["bandwidth"], "yaxis": machine["peak"]}
    for zoom in ({}, {"xaxis.range": [11, 12], "yaxis.range": [12, 13]}):
        page.evaluate("(zoom) => Plotly.relayout('both', zoom)", zoom)
        for name, roof in scale.items():
            seconds, units = axis(page, f"{name}2"), axis(page, name)
            assert [10 ** (b - a) for a, b in zip(seconds, units, strict=True)] == pytest.approx([roof] * 2, rel=2e-5)


def test_overhead_is_drawn_where_it_is_known(open_page: Open) -> None:
    page = open_page(several())
    boxes = traces(page, "complexity", "overhead")
    assert [(max(box["x"]), max(box["y"])) for box in boxes] == [
        pytest.approx((n * LATENCY * 1e12, n * LATENCY * 8e12), rel=2e-5) for n in (1, 3)
    ]
    assert page.locator("main > .banner").count() == 0
    assert "1 bound by launch overhead" in page.locator("#status").text_content()
    without = open_page(time_roofline(ordinary([point()])))
    assert traces(without, "complexity", "overhead") == []
    assert "launch latency of this GPU is unknown" in without.locator(".banner[role=note]").text_content()


def test_choices(open_page: Open) -> None:
    page = open_page(several())
    assert names(page) == ["matmul", "stream", "ideal", "single", "tiny"]
    assert drawn(page, "both") == 8
    page.select_option("[data-pick='Complexity and time of']", "fp32")
    assert (drawn(page, "both"), page.locator("#both-title").text_content()) == (2, "Complexity and time, FP32")
    page.select_option("[data-pick='GPU']", "GPU two")
    assert traces(page, "time", "symbols")[0]["x"][0] == pytest.approx(1e-3)
    page.fill("#query", "mat")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    assert drawn(page, "complexity") == 1
    page.click("#reset")
    assert len(names(page)) == 5


def test_table(open_page: Open) -> None:
    page = open_page(several())
    page.click("[data-sort=intensity]")
    assert names(page)[0] == "matmul"
    page.click("[data-sort=intensity]")
    assert names(page)[-1] == "matmul"
    assert page.locator("[data-sort=intensity]").evaluate("(node) => node === document.activeElement")
    page.locator("#table tbody tr").first.click()
    faint = "document.getElementById('time').data.find((one) => one.meta === 'symbols').marker.opacity"
    assert page.evaluate(f"{faint}.filter((one) => one === 1).length") == 1
    page.keyboard.press("Escape")
    assert page.evaluate(f"{faint}.filter((one) => one === 1).length") == 5
    page.locator("#table tbody tr").first.click()
    told = page.locator("#details .facts > span", has_text="balance").get_attribute("title")
    assert told == "machine balance: compute_roof / bandwidth_roof"


def test_hover_text(open_page: Open, gpp: Any) -> None:
    page = open_page(gpp)
    text = page.evaluate("document.getElementById('both').data.find((one) => one.meta === 'symbols').hovertext[0]")
    for part in (
        "sigma_gpp_gpu",
        "nw=1",
        "FP64, memory-bound",
        "1 launch",
        "intensity 2.585 FLOP/B, machine balance 8.529 FLOP/B",
        "inefficiency 1.03x",
    ):
        assert part in text, part


def test_themes(open_page: Open) -> None:
    page = open_page(several(), theme="dark")
    ground = "document.getElementById('time').layout.paper_bgcolor"
    dark = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(ground) != dark


def test_what_is_left_out_is_listed(open_page: Open) -> None:
    page = open_page(several())
    row = page.locator("#absent tbody tr").text_content()
    assert "copy" in row
    assert "500 MB" in row
    empty = open_page(time_roofline(ordinary([], [{"kernel": "copy", "seconds": 1.0, "status": "zero-flop"}])))
    assert empty.locator("#app").is_hidden()
    assert "No kernel can be drawn" in empty.locator(".empty").text_content()


def test_hostile_names_stay_text(open_page: Open) -> None:
    page = open_page(hostile())
    assert page.locator("script").count() == 3
    assert "<script>alert('kernel')</script>" in names(page)


def test_answer_link_and_file(open_page: Open, gpp: Any) -> None:
    page = open_page(gpp)
    assert page.locator("#answer .first").inner_text() == answers_of(gpp)[0].sentences[0]
    assert page.evaluate(
        "document.getElementById('table-scroll').scrollWidth <= document.getElementById('table-scroll').clientWidth"
    )
    page.click("[data-sort=intensity]")
    page.locator("#table tbody tr").first.click()
    state, link = page.evaluate("JSON.stringify(state)"), page.url
    assert "sort=-intensity" in link
    assert "symbol=" in link
    page.goto("about:blank")
    page.goto(link)
    assert page.evaluate("JSON.stringify(state)") == state
    assert page.locator("#details").is_visible()
    page.go_back()
    page.goto(link.partition("#")[0] + "#symbol=nothing&sort=toString&precision=constructor&gpu=x")
    page.reload()
    assert page.evaluate("JSON.stringify(state)") == page.evaluate("JSON.stringify(freshState())")
    with page.expect_download() as download:
        page.locator("#save").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines()))
    assert sorted(float(row["time [s]"]) for row in rows) == pytest.approx(sorted(gpp.points["seconds"]), rel=6e-6)


def test_a_typed_filter_is_kept(open_page: Open, gpp: Any) -> None:
    page = open_page(gpp)
    page.evaluate(
        """() => {
            const box = document.getElementById("query");
            box.value = "nothing";
            box.dispatchEvent(new Event("input"));
            document.querySelector("[data-sort=work]").click();
            change(() => {});
        }"""
    )
    until(page, "shownPoints().length === 0")
    assert page.input_value("#query") == "nothing"
