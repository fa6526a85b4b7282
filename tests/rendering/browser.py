"""What tests of pages in a browser ask of a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


Open = Callable[..., "Page"]


def until(page: Page, condition: str) -> None:
    """Wait for a JavaScript condition; playwright's own wait evaluates text in the page, which the page's policy forbids."""
    for _ in range(600):  # half a minute, where the machine is busy
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
