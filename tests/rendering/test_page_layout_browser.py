"""How the page is laid out in a browser: what comes first, nothing over anything else, at any width and on paper."""

from __future__ import annotations

import pytest

from tests.rendering.browser import Open, table, until
from tests.rendering.frames import make_roofline

pytestmark = pytest.mark.browser


def test_precisions_of_a_kernel_name_it_once(open_page: Open) -> None:
    page = open_page(make_roofline(4, ("fp64", "fp32")))
    visible = "row.querySelector('th span').checkVisibility({ visibilityProperty: true })"
    shown = page.evaluate(f"[...document.querySelectorAll('#table tbody tr')].map((row) => {visible})")
    names = table(page)
    assert shown == [index == 0 or name != names[index - 1] for index, name in enumerate(names)]
    assert not all(shown)
    header = page.locator("#table thead th").all_inner_texts()
    assert [text.strip("\u25be\u25b4") for text in header[:4]] == ["Kernel", "Verdict", "Headroom", "To compute"]


def test_dots_beyond_the_axes_have_arrows(open_page: Open) -> None:
    roofline = make_roofline(5, levels=("l1", "l2", "dram", "system"))
    side = roofline.points["level"] == "system"
    roofline.points.loc[side, "intensity"] = 1e9
    roofline.points["binds"] = roofline.kernels["limit"] = "dram"
    page = open_page(roofline)
    low, high = page.evaluate("chart.layout.xaxis.range")
    assert high < 6
    arrows = page.evaluate(
        "chart.data.filter((trace) => trace.meta === 'edge').map(({ x, marker }) => [[...x], marker.symbol])"
    )
    assert arrows
    assert set(arrows[0][1]) == {"triangle-right"}
    assert all(10**low < at < 10**high for at in arrows[0][0])
    assert "1.00e9 FLOP/B" in page.locator("#chart .annotation-text").all_text_contents()
    page.evaluate("Plotly.relayout(chart, { 'xaxis.range': [8, 10] })")
    until(page, "state.view !== null")
    assert (
        page.evaluate("chart.data.some((trace) => trace.meta === 'edge')") is False
        or page.evaluate("edges(current).length") == 0
    )


def test_advice_is_below_its_kernel(open_page: Open) -> None:
    mine = {"kernel": "smooth_kernel", "rule": "Verdict", "type": "optimization", "title": "latency", "text": "more blocks"}
    other = {"kernel": "gpp_kernel", "rule": "Verdict", "type": "optimization", "title": "DRAM", "text": "fewer bytes"}
    clock = {"kernel": "smooth_kernel", "rule": "Clocks", "type": "warning", "title": "Clock", "text": "slow", "launches": 1}
    advice = [{**mine, "launches": 12, "share": 0.25, "recoverable": 1e-3}, other, clock]
    page = open_page(make_roofline(3), advice=advice)
    summaries = page.locator("#advice > details > summary").all_inner_texts()
    assert summaries == ["smooth_kernel latency, Clock", "gpp_kernel DRAM"]
    assert not page.get_by_text("more blocks").is_visible()
    page.locator("#table tbody tr", has_text="smooth_kernel").click()
    page.locator("#to-advice").click()
    assert page.get_by_text("more blocks").is_visible()
    assert "Verdict · 12 launches, 25.0 % of the time, could save 1 ms" in page.locator("#advice").inner_text()


# Pairs of texts that cover each other, what sticks out of the window, and whether the page is wider than it.
CROWDING = """() => {
    const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.textContent.trim();
    const boxes = (roots) => [...document.querySelectorAll(roots.join(", "))].filter(seen)
        .map((node) => [node.textContent.trim().slice(0, 40), node.getBoundingClientRect()]);
    const across = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3;
    const meet = (a, b) => across(a, b) && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    const pairs = (list) => list.flatMap(([name, a], i) =>
        list.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => [name, other]));
    const tilted = ([, box]) => box.height > 30 && box.width > 30; // those are more box than text
    const chart = boxes([".annotation-text", ".xtick text", ".ytick text", ".g-xtitle text", ".g-ytitle text"].map((one) => `#chart ${one}`));
    const page = boxes(["#table td > span", "#table th > span", "#table .sort", "#controls button", "#controls label", ".tiles li", "header h1",
        "header .sub span", "header button", "#answer li", "#answer p"]);
    const out = [...document.querySelectorAll("main .card, main .banner, main .tiles, header")].filter((node) => node.checkVisibility())
        .map((node) => [node.id || node.className, node.getBoundingClientRect()]).filter(([, box]) => box.left < -1 || box.right > innerWidth + 1);
    const counts = [chart.length > 10, page.length > 50];
    const wide = document.documentElement.scrollWidth > innerWidth;
    return { chart: pairs(chart.filter((one) => !tilted(one))), page: pairs(page), out: out.map(([name]) => name), wide, counts };
}"""  # noqa: E501


@pytest.mark.sampled("390-light")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800, 390])
def test_nothing_overlaps_or_overflows(open_page: Open, width: int, theme: str) -> None:
    roofline = make_roofline(9, ("fp64", "fp32"), levels=("l1", "shared", "l2", "dram", "system"), zero_flop=3, missing=2)
    advice = [{"kernel": kernel, "title": "DRAM", "text": "fewer bytes"} for kernel in roofline.kernels["kernel"]]
    page = open_page(roofline, theme=theme, advice=advice)
    page.set_viewport_size({"width": width, "height": 900})
    until(page, "Math.abs(chart.layout.width - chart.parentElement.clientWidth) < 2")
    for controls in page.locator("#controls").all():
        controls.evaluate("(node) => { node.open = true; }")
    assert page.evaluate(CROWDING) == {"chart": [], "page": [], "out": [], "wide": False, "counts": [True, True]}
    page.evaluate("isolate(ORDER[0].index)")
    assert page.locator("#to-advice").is_visible()
    assert page.evaluate(CROWDING)["wide"] is False
    box = page.locator("#table-scroll")
    if width != 800:  # there the table scrolls inside its own frame
        assert box.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    hidden = "[...document.querySelectorAll('#table thead th')].filter((cell) => !cell.checkVisibility()).length"
    assert page.evaluate(hidden) == 0


def test_paper(open_page: Open) -> None:
    page = open_page(make_roofline(5), theme="dark", advice=[{"kernel": "gpp_kernel", "title": "DRAM", "text": "fewer bytes"}])
    page.emulate_media(media="print")
    until(page, "document.documentElement.dataset.theme === 'light'")
    assert page.get_by_text("fewer bytes").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("chart.layout.width") <= 700
    for control in (".modebar", "#controls", "#download", "#save", ".side"):
        assert page.locator(control).is_hidden()
    page.emulate_media(media="screen")
    until(page, "document.documentElement.dataset.theme === 'dark'")
    assert not page.get_by_text("fewer bytes").is_visible()
