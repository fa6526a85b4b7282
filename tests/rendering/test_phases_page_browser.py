"""The page of the view of phases in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncu_roofline.analyses.phases.frames import PhaseRoofline, phase_roofline
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.factory import report
from tests.rendering.browser import Open
from tests.rendering.test_page import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]


@pytest.fixture
def phases(tmp_path: Path) -> PhaseRoofline:
    bands = (Group({SM: steps(20, 60)}, until=0.6), Group({DRAM: steps(80, 20)}, until=0.6))
    other = Made(bands, name="k" + HOSTILE.replace("\ud800", ""), seconds=0.9e-3)
    return phase_roofline(report(tmp_path / "r.ncu-rep", Made(TWO_PHASES).kernel(), other.kernel()))


def traces(page: Page, chart: str, meta: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        "([id, meta]) => document.getElementById(id).data.filter((one) => one.meta === meta)"
        ".map(({ x, y, marker }) => ({ x: [...x], y: [...y], opacity: marker && marker.opacity }))",
        [chart, meta],
    )
    return found


def test_charts_hold_what_the_frames_do(phases: PhaseRoofline, open_page: Open) -> None:
    page = open_page(phases)
    (dots,) = traces(page, "path", "slices")
    points = phases.points
    assert dots["x"] == pytest.approx(points["intensity"].tolist(), rel=1e-5)
    assert dots["y"] == pytest.approx(points["performance"].tolist(), rel=1e-5)
    bands = traces(page, "bands", "band")
    assert [len(one["y"]) for one in bands] == [40] * 4
    dram = phases.bands[(phases.bands["band"] == "dram") & (phases.bands["launch"] == 0)]
    assert bands[3]["y"] == pytest.approx(dram["utilisation"].tolist(), rel=1e-5)
    assert page.locator("#table tbody tr").count() == 40


def test_a_row_chooses_its_slice_everywhere(phases: PhaseRoofline, open_page: Open) -> None:
    page = open_page(phases)
    page.locator("[data-slice='7']").click()
    (dots,) = traces(page, "path", "slices")
    assert [place for place, opacity in enumerate(dots["opacity"]) if opacity == 1] == [7]
    assert [place for place, opacity in enumerate(traces(page, "bands", "band")[0]["opacity"]) if opacity == 1] == [7]
    assert "#slice=7" in page.url
    page.keyboard.press("Escape")
    assert "slice=" not in page.url
    page.locator("[data-slice='3']").focus()
    page.keyboard.press("Enter")
    assert page.locator("tr.chosen").get_attribute("data-slice") == "3"


def test_a_dot_chooses_its_slice(phases: PhaseRoofline, open_page: Open) -> None:
    page = open_page(phases)
    page.locator("#path .scatterlayer path.point").nth(30).click(force=True)
    assert page.locator("tr.chosen").count() == 1


def test_another_kernel_has_bands_only_and_tells_why(phases: PhaseRoofline, open_page: Open) -> None:
    page = open_page(phases)
    page.locator("[data-pick='Kernel']").select_option("1")
    assert page.locator("#path-card").is_hidden()
    assert "not sampled" in page.evaluate("document.getElementById('bands').layout.annotations[0].text")
    assert "the rest is unknown, not idle" in page.locator("#notes").inner_text()
    page.locator("[data-pick='Kernel']").select_option("0")
    assert page.locator("#path-card").is_visible()


def test_links_lead_to_the_same_view(phases: PhaseRoofline, open_page: Open) -> None:
    page = open_page(phases, "launch=1&slice=2&theme=dark")
    assert page.locator("tr.chosen").get_attribute("data-slice") == "2"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    for odd in ("launch=99&slice=x", "launch=-1&path=7&slice=1e9", "theme=%3Cscript%3E"):
        assert open_page(phases, odd).locator("#table tbody tr").count() == 40


def test_a_report_without_samples_has_a_page(tmp_path: Path, open_page: Open) -> None:
    page = open_page(phase_roofline(report(tmp_path / "none.ncu-rep", Made(()).kernel())))
    assert "No kernel can be drawn over its time" in page.locator(".empty").inner_text()
    assert page.locator("#app").is_hidden()
