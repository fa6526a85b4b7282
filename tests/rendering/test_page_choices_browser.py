"""What a reader does with the page in a browser: links to a view, steps back, pinned numbers, the table as a file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.rendering.browser import Open, dots, faded, place, until
from tests.rendering.frames import make_roofline

pytestmark = pytest.mark.browser


def test_link_holds_the_choices(open_page: Open) -> None:
    page = open_page(make_roofline(6, ("fp64", "fp32")))
    page.locator("[data-precision=fp32]").click()
    page.locator("[data-level=l1]").click()
    page.locator("#query").fill("s")
    until(page, "location.hash.includes('q=s')")
    page.locator("[data-sort=performance]").click()
    page.locator("[data-roof='fp32.nofma'][data-origin=measured]").uncheck()
    page.locator("#table tbody tr").first.click()
    page.locator("#theme").click()
    state = "JSON.stringify([state, [...state.precisions], [...state.levels], [...state.roofs]])"
    chosen, link = page.evaluate(state), page.url
    assert all(
        word in link for word in ("precision=fp32", "level=", "q=s", "sort=-performance", "without=", "kernel=", "theme=dark")
    )
    page.goto("about:blank")
    page.goto(link)
    assert page.evaluate(state) == chosen
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("#details").is_visible()
    assert page.locator("#query").input_value() == "s"
    assert page.url == link


def test_roofs_that_are_not_used_are_drawn_on_request(open_page: Open) -> None:
    result = make_roofline(6)
    peak = result.roofs["origin"].eq("measured") & result.roofs["kind"].eq("compute")
    result.roofs.loc[peak, "origin"] = "unused"
    page = open_page(result)
    roof = page.locator("[data-roof='fp64.fma'][data-origin=unused]")
    assert not roof.is_checked()
    assert page.locator("[data-roof='fp64.fma'][data-origin=theoretical]").is_checked()
    page.locator("[data-origins=unused]").click()
    assert roof.is_checked()


def test_back_goes_back_one_choice(open_page: Open) -> None:
    page = open_page(make_roofline(6))
    every = dots(page)
    page.locator("[data-level=l1]").click()
    page.locator("[data-level=l2]").click()
    assert dots(page) == every // 3
    page.go_back()
    until(page, "state.levels.size === 2")
    assert dots(page) == 2 * every // 3
    page.go_back()
    until(page, "state.levels.size === 3")
    assert dots(page) == every
    page.go_forward()
    until(page, "state.levels.size === 2")


def test_links_that_would_hang_the_page(open_page: Open) -> None:
    """A view without an extent is passed over; a regular expression waits for the reader."""
    page = open_page(make_roofline(4))
    page.evaluate("() => { location.hash = 'view=0,1,0,1e-300'; }")
    until(page, "written === readLink().toString()")
    assert page.evaluate("state.view") is None
    slow = r"regex=1&q=^((\w|\w)%2B\s?)%2B$x"
    page.evaluate("(link) => { location.hash = link; }", slow)
    until(page, r"state.query === String.raw`^((\w|\w)+\s?)+$x`")
    assert "press .*" in page.locator("#query-error").inner_text()
    page.reload()
    assert page.locator("#regex").get_attribute("aria-pressed") == "false"
    page.locator("#query").fill("^.+$")
    page.locator("#regex").click()
    assert page.locator("#query-error").inner_text() == ""
    assert "4 of 4 kernels" in page.locator("#status").inner_text()


def test_links_that_make_no_sense_are_passed_over(open_page: Open) -> None:
    page = open_page(make_roofline(3))
    state = "JSON.stringify([{ ...state, query: '' }, [...state.precisions], [...state.levels]])"
    plain = page.evaluate(state)
    for link in (
        "level=",
        "precision=nothing&level=x,y&top=-3&sort=-nothing&view=1,2,3&kernel=none&gpu=no&theme=neon",
        "view=NaN,1,2,3&view=9,1,0,1&nth=-1&kernel=smooth_kernel&nth=99",
        "%E0%A4%A=&=&&constructor=__proto__&sort=toString",
        "q=" + "x%3Cscript%3E" * 500,
    ):
        page.evaluate("(link) => { location.hash = link; }", link)
        until(page, "written === readLink().toString()")
        assert page.evaluate(state) == plain
    page.evaluate("() => { location.hash = 'level=l1'; }")
    until(page, "state.levels.size === 1")
    page.evaluate("() => { location.hash = 'table'; }")  # the link that skips to the table
    page.wait_for_timeout(100)
    assert page.evaluate("state.levels.size") == 1


def test_a_pinned_tooltip_stays_and_closes(open_page: Open) -> None:
    page = open_page(make_roofline(5))
    tip = page.locator("#tooltip")
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    page.mouse.move(3, 3)
    assert "smooth_kernel" in tip.inner_text()
    tip.locator(".title").click(click_count=3)
    assert "smooth_kernel" in page.evaluate("getSelection().toString()")
    page.locator("h1").click()  # elsewhere
    assert tip.is_hidden()
    assert faded(page) == 12  # the kernel is alone still
    page.locator("#chart").focus()
    page.keyboard.press("ArrowRight")
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() != first
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "tooltip"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # its button
    assert tip.is_hidden()
    assert page.evaluate("document.activeElement.id") == "chart"


def test_csv_of_the_filtered_table(open_page: Open) -> None:
    roofline = make_roofline(8, odd=True)
    page = open_page(roofline)
    page.locator("#query").fill("=cmd")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "Roofline-of-sample.ncu-rep.csv"
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    [row] = csv.DictReader(lines)
    assert row["Kernel"].startswith("'=cmd|")
    kernel = roofline.kernels[roofline.kernels["kernel"].str.startswith("=cmd")].iloc[0]
    assert float(row["Time [s]"]) == pytest.approx(kernel["seconds"], rel=6e-6)
    assert float(row["Share"]) == pytest.approx(kernel["time_share"], rel=6e-6)
    point = roofline.points[(roofline.points["kernel"] == kernel["kernel"]) & (roofline.points["level"] == "dram")].iloc[0]
    assert float(row["AI DRAM"]) == pytest.approx(point["intensity"], rel=6e-6)
