"""The page of a comparison in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ncu_roofline.analyses.compare.frames import Comparison
from tests.analyses.comparison_made import MADE, compared, many, ordinary
from tests.factory import complete, kernel
from tests.rendering.browser import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

Open = Callable[..., "Page"]
# Texts inside the chart that is shown, and elements of the page, that stand on others, or outside of where they belong.
_OVERLAPS = """() => {
    const shown = (node) => node.getClientRects().length > 0;
    const svg = [...document.querySelectorAll(".charts svg")].find(shown);
    const found = [];
    if (svg) {
        const frame = svg.getBoundingClientRect();
        const upright = (node) => !/rotate\\((?!-0|0)/.test(node.getAttribute("transform") || "");
        const texts = [...svg.querySelectorAll("text")].filter(upright);
        const boxes = texts.map((node) => [node.textContent, node.getBoundingClientRect()]);
        boxes.forEach(([text, a], index) => {
            if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push(`outside: ${text}`);
            for (const [other, b] of boxes.slice(0, index)) {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 1 && tall > 0.35 * Math.min(a.height, b.height)) found.push(`${text} on ${other}`);
            }
        });
    }
    const cards = [...document.querySelectorAll(".card, .top")].filter(shown);
    for (const card of cards) {
        const box = card.getBoundingClientRect();
        if (box.right > innerWidth + 1) found.push(`card outside: ${card.id || card.className}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) found.push(`page is ${document.documentElement.scrollWidth} wide`);
    return found;
}"""


@pytest.fixture
def window() -> dict[str, int]:
    """Of every page."""
    return {"width": 1400, "height": 900}


def column(page: Page, place: int = 1) -> list[str]:
    """The texts of a column of the table."""
    return [text.strip() for text in page.locator(f"#table-scroll tbody tr > :nth-child({place})").all_text_contents()]


@pytest.mark.sampled("steps")
@pytest.mark.parametrize("kind", MADE)
def test_nothing_overlaps_or_overflows(open_page: Open, tmp_path: Path, kind: str) -> None:
    for theme, widths in (("light", (1400, 800, 390)), ("dark", (800,))):
        page = open_page(MADE[kind](tmp_path), theme=theme)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(_OVERLAPS) == [], (theme, width)
        page.close()


def test_sorting_filtering_and_what_changed(open_page: Open, tmp_path: Path) -> None:
    page = open_page(ordinary(tmp_path))
    assert column(page) == ["solver", "pack", "fused", "halo", "advance"]
    page.locator(".sort", has_text="Speed-up").click()
    assert column(page)[:3] == ["solver", "advance", "halo"]
    assert page.locator("th[aria-sort=descending]").count() == 1
    page.locator(".sort", has_text="Speed-up").click()
    assert column(page)[:3] == ["halo", "advance", "solver"]
    page.locator(".sort", has_text="Speed-up").click()
    page.locator("#changed").click()
    assert column(page) == ["solver", "pack", "fused", "halo"]
    assert page.locator("#count").text_content() == "4 of 5 rows"
    page.locator("#query").fill("SOLVER<double")
    until(page, "document.querySelectorAll('#table-scroll tbody tr').length === 1")
    assert column(page) == ["solver"]


def test_choices_are_in_the_address(open_page: Open, tmp_path: Path) -> None:
    """A reload and a link show the same view, and back goes back."""
    page = open_page(ordinary(tmp_path), theme="light")
    assert "#" not in page.url
    page.locator("#query").fill("a")
    page.locator("#changed").click()
    page.locator(".sort", has_text="Speed-up").click()
    page.locator("#theme").click()
    link = page.url.partition("#")[2]
    assert link == "q=a&changed=1&sort=-speed-up&theme=dark"
    before = column(page)
    assert before == ["halo", "pack"]
    page.reload()
    assert column(page) == before
    assert page.locator("#query").input_value() == "a"
    assert page.locator("#changed").get_attribute("aria-pressed") == "true"
    assert page.locator("th[aria-sort=descending]").text_content().startswith("Speed-up")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    other = open_page(ordinary(tmp_path), link, theme="light")
    assert column(other) == before
    other.locator(".sort", has_text="Change").click()
    other.go_back()
    assert other.locator("th[aria-sort$=cending]").text_content().startswith("Speed-up")
    odd = open_page(ordinary(tmp_path), "sort=-nothing&theme=pink&changed=yes&q=%3Cimg%3E")
    assert column(odd) == []
    assert odd.url.endswith("#q=%3Cimg%3E")


def long_names(folder: Path) -> Comparison:
    """Six states, called what people call them."""
    states = tuple((kernel(complete(seconds=5e-3 - 5e-4 * step), "void sigma_gpp_gpu_39(int)"),) for step in range(6))
    made = compared(folder, *states)
    renamed = {name: f"rtx4060-ncu2024.2-custom-{name}" for name in [*made.summary["report"], *made.summary["baseline"]]}
    tables = {}
    for name in ("kernel_columns", "level_columns", "summary_columns"):
        table = getattr(made, name)
        called = {key: np.array([renamed[one] for one in table[key]], dtype=object) for key in ("report", "baseline")}
        tables[name] = {**table, **called}
    return replace(made, **tables)


def test_columns_of_many_states_fit(open_page: Open, tmp_path: Path) -> None:
    """Those between the first and the last are in the list of comparisons; on a phone every row is a card."""
    page = open_page(long_names(tmp_path))
    fits = "[...document.querySelectorAll('.scroll')].every((node) => node.scrollWidth <= node.clientWidth)"
    assert page.evaluate(fits)
    assert page.locator("#table-scroll thead th", has_text="custom-").count() == 0
    for width in (390, 600):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(fits), width
        assert all(box["x"] + box["width"] <= width for cell in page.locator("#steps td").all() if (box := cell.bounding_box()))


def test_the_file_has_what_is_shown(open_page: Open, tmp_path: Path) -> None:
    page = open_page(ordinary(tmp_path))
    page.locator("#changed").click()
    with page.expect_download() as download:
        page.locator("#save").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [row["kernel"] for row in rows] == ["solver", "pack", "fused", "halo"]
    assert float(rows[0]["Time before [s]"]) == pytest.approx(4e-3)
    assert float(rows[0]["Time after [s]"]) == pytest.approx(2e-3)
    assert rows[1]["Time after [s]"] == ""
    assert download.value.suggested_filename.endswith(".csv")


@pytest.mark.exhaustive
def test_long_tables_come_in_parts(open_page: Open, tmp_path: Path) -> None:
    page = open_page(many(tmp_path, 230))
    assert len(column(page)) == 100
    page.locator("#show-more").click()
    assert len(column(page)) == 230
    assert page.locator("#show-more").is_hidden()


def test_themes(open_page: Open, tmp_path: Path) -> None:
    """The chart follows the theme: its letters are light on dark ground, and the other way round."""
    page = open_page(ordinary(tmp_path), theme="light")
    colour = "getComputedStyle(document.querySelector('.chart-wide svg text')).fill"
    light = page.evaluate(colour)
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(colour) != light


def test_on_paper(open_page: Open, tmp_path: Path) -> None:
    page = open_page(ordinary(tmp_path), theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator(".chart-medium").is_visible()
    assert page.locator(".chart-wide").is_hidden()
    assert page.locator("#query").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
