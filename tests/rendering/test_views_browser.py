"""The pages of the other views in a headless Chromium: instructions, comparison, time, phases and run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses.hierarchical.kernels import answers_of
from ncu_roofline.analyses.phases.frames import phase_roofline
from ncu_roofline.analyses.run.frames import run_of
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.formats.traces import read_trace
from tests.analyses.comparison_made import MADE, many, ordinary
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.analyses.test_run import COPY, H100, LATE, MM, SOFTMAX, document
from tests.analyses.test_run import HOSTILE as HOSTILE_RUN
from tests.analyses.time_frames import ordinary as time_frames
from tests.analyses.time_frames import point
from tests.factory import report
from tests.rendering.browser import Open, until
from tests.rendering.test_instruction_view import CONFLICTS, WALLS, roofline_of
from tests.rendering.test_page import HOSTILE
from tests.rendering.test_sweeps import DEMO
from tests.rendering.test_time_view import LATENCY, hostile, several

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def gpp() -> TimeRoofline:
    frame = roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")
    return time_roofline(frame, launch_latency=LATENCY)


def traces(page: Page, chart: str, meta: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        "([id, meta]) => document.getElementById(id).data.filter((one) => one.meta === meta)"
        ".map(({ x, y, marker }) => ({ x: [...x], y: [...y], opacity: marker && marker.opacity }))",
        [chart, meta],
    )
    return found


def saved(page: Page) -> list[dict[str, str]]:
    """The rows of the table as the file that the page gives."""
    with page.expect_download() as download:
        page.locator("#save").click()
    return list(csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines()))


def names(page: Page) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('#table tbody th')].map((cell) => cell.textContent)")
    return found


def column(page: Page, place: int = 1) -> list[str]:
    """The texts of a column of the table of a comparison."""
    return [text.strip() for text in page.locator(f"#table-scroll tbody tr > :nth-child({place})").all_text_contents()]


def test_instructions(open_page: Open, tmp_path: Path) -> None:
    made = roofline_of(tmp_path, global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 10**6), shared_st=(10**6, 10**6))
    page = open_page(made)
    until(page, "chart.data && chart.data.some((trace) => trace.meta === 'dots')")
    walls = "current.roofs.filter((roof) => roof.shown && roof.kind === 'wall').map((roof) => roof.value).sort((a, b) => a - b)"
    bandwidths = "current.roofs.filter((roof) => roof.shown && roof.kind === 'bandwidth').map((roof) => roof.level)"
    insides = "chart.data.filter((trace) => trace.meta === 'dots').flatMap((trace) => trace.marker.color)"
    assert page.evaluate(walls) == pytest.approx(sorted(WALLS.values()))
    assert page.evaluate(bandwidths) == ["l1", "l2", "dram"]
    card = page.evaluate("palette().card")
    assert page.evaluate(insides).count(card) == 1  # open: global loads alone
    assert page.evaluate("chart.layout.xaxis.title.text") == "Warp instructions per transaction [inst/TXN]"
    assert page.evaluate("chart.layout.yaxis.title.text") == "Performance [warp IPS]"
    page.click('[data-precision="inst.shared"]')
    assert page.evaluate(walls) == pytest.approx(sorted(CONFLICTS.values()))
    assert page.evaluate(bandwidths) == ["shared"]


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


@pytest.mark.parametrize("kind", MADE)
def test_no_comparison_overlaps_or_overflows(open_page: Open, tmp_path: Path, kind: str) -> None:
    for theme, widths in (("light", (1400, 800, 390)), ("dark", (800,))):
        page = open_page(MADE[kind](tmp_path), theme=theme)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(_OVERLAPS) == [], (theme, width)
        page.close()


def test_a_comparison_is_sorted_filtered_linked_and_saved(open_page: Open, tmp_path: Path) -> None:
    page = open_page(ordinary(tmp_path), theme="light")
    assert column(page) == ["solver", "pack", "fused", "halo", "advance"]
    for first in ("solver", "halo"):
        page.locator(".sort", has_text="Speed-up").click()
        assert column(page)[0] == first
    page.locator(".sort", has_text="Speed-up").click()
    page.locator("#changed").click()
    assert column(page) == ["solver", "pack", "fused", "halo"]
    assert page.locator("#count").text_content() == "4 of 5 rows"
    rows = saved(page)
    assert [row["kernel"] for row in rows] == ["solver", "pack", "fused", "halo"]
    assert [float(rows[0][f"Time {when} [s]"]) for when in ("before", "after")] == pytest.approx([4e-3, 2e-3])
    assert rows[1]["Time after [s]"] == ""
    page.locator("#query").fill("a")
    page.locator(".sort", has_text="Speed-up").click()
    page.locator("#theme").click()
    assert page.url.partition("#")[2] == "q=a&changed=1&sort=-speed-up&theme=dark"
    page.reload()
    assert column(page) == ["halo", "pack"]
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator("#query").is_hidden()
    odd = open_page(ordinary(tmp_path), "sort=-nothing&theme=pink&changed=yes&q=%3Cimg%3E")
    assert (column(odd), odd.url.partition("#")[2]) == ([], "q=%3Cimg%3E")
    long = open_page(many(tmp_path, 230))
    assert len(column(long)) == 100
    long.locator("#show-more").click()
    assert len(column(long)) == 230


def test_charts_of_time(open_page: Open, gpp: TimeRoofline) -> None:
    page = open_page(gpp)
    points = gpp.points
    [complexity], [time] = traces(page, "complexity", "symbols"), traces(page, "time", "symbols")
    [filled], [opened] = traces(page, "both", "symbols"), traces(page, "both", "open")
    for found, wanted in ((complexity, ("traffic", "work")), (time, ("bandwidth_seconds", "compute_seconds"))):
        assert (found["x"], found["y"]) == tuple(pytest.approx(points[name].tolist(), rel=6e-6) for name in wanted)
    assert (filled["x"], filled["y"]) == (complexity["x"], complexity["y"])
    for axis in ("x", "y"):
        factors = [b / a for a, b in zip(filled[axis], opened[axis], strict=True)]
        assert factors == pytest.approx(points["inefficiency"].tolist(), rel=2e-5)
    assert len(traces(page, "both", "sweep")) == 2
    machine = gpp.machines[gpp.machines["level"] == "dram"].iloc[0]
    for zoom in ({}, {"xaxis.range": [11, 12], "yaxis.range": [12, 13]}):
        page.evaluate("(zoom) => Plotly.relayout('both', zoom)", zoom)
        for name, roof in {"xaxis": machine["bandwidth"], "yaxis": machine["peak"]}.items():
            ranges = (page.evaluate(f"document.getElementById('both').layout.{one}.range") for one in (f"{name}2", name))
            seconds, units = ranges
            assert [10 ** (b - a) for a, b in zip(seconds, units, strict=True)] == pytest.approx([roof] * 2, rel=2e-5)
    text = page.evaluate("document.getElementById('both').data.find((one) => one.meta === 'symbols').hovertext[0]")
    for part in ("nw=1", "FP64, memory-bound", "intensity 2.585 FLOP/B, machine balance 8.529 FLOP/B", "inefficiency 1.03x"):
        assert part in text, part
    assert page.locator("#answer .first").inner_text() == answers_of(gpp)[0].sentences[0]
    assert sorted(float(row["time [s]"]) for row in saved(page)) == pytest.approx(sorted(points["seconds"]), rel=6e-6)
    page.click("[data-sort=intensity]")
    page.locator("#table tbody tr").first.click()
    state, link = page.evaluate("JSON.stringify(state)"), page.url
    page.goto("about:blank")
    page.goto(link)
    assert page.evaluate("JSON.stringify(state)") == state
    page.goto(link.partition("#")[0] + "#symbol=nothing&sort=toString&precision=constructor&gpu=x")
    page.reload()
    assert page.evaluate("JSON.stringify(state)") == page.evaluate("JSON.stringify(freshState())")


def test_choices_of_time(open_page: Open) -> None:
    page = open_page(several())
    corners = [(max(box["x"]), max(box["y"])) for box in traces(page, "complexity", "overhead")]
    assert corners == [pytest.approx((n * LATENCY * 1e12, n * LATENCY * 8e12), rel=2e-5) for n in (1, 3)]
    assert "1 bound by launch overhead" in page.locator("#status").text_content()
    assert names(page) == ["matmul", "stream", "ideal", "single", "tiny"]
    row = page.locator("#absent tbody tr").text_content()
    assert "copy" in row
    assert "500 MB" in row
    page.select_option("[data-pick='Complexity and time of']", "fp32")
    assert page.locator("#both-title").text_content() == "Complexity and time, FP32"
    page.select_option("[data-pick='GPU']", "GPU two")
    assert traces(page, "time", "symbols")[0]["x"][0] == pytest.approx(1e-3)
    page.fill("#query", "mat")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    without = open_page(time_roofline(time_frames([point()])))
    assert traces(without, "complexity", "overhead") == []
    assert "launch latency of this GPU is unknown" in without.locator(".banner[role=note]").text_content()
    wild = open_page(hostile())
    assert wild.locator("script").count() == 3
    assert "<script>alert('kernel')</script>" in names(wild)


def test_phases(open_page: Open, tmp_path: Path) -> None:
    bands = (Group({SM: steps(20, 60)}, until=0.6), Group({DRAM: steps(80, 20)}, until=0.6))
    other = Made(bands, name="k" + HOSTILE.replace("\ud800", ""), seconds=0.9e-3)
    made = phase_roofline(report(tmp_path / "r.ncu-rep", Made(TWO_PHASES).kernel(), other.kernel()))
    page = open_page(made)
    (dots,) = traces(page, "path", "slices")
    assert dots["x"] == pytest.approx(made.points["intensity"].tolist(), rel=1e-5)
    assert dots["y"] == pytest.approx(made.points["performance"].tolist(), rel=1e-5)
    found = traces(page, "bands", "band")
    assert [len(one["y"]) for one in found] == [40] * 4
    dram = made.bands[(made.bands["band"] == "dram") & (made.bands["launch"] == 0)]
    assert found[3]["y"] == pytest.approx(dram["utilisation"].tolist(), rel=1e-5)
    page.locator("[data-slice='7']").click()
    for chart, meta in (("path", "slices"), ("bands", "band")):
        assert [place for place, opacity in enumerate(traces(page, chart, meta)[0]["opacity"]) if opacity == 1] == [7]
    assert "#slice=7" in page.url
    page.locator("[data-pick='Kernel']").select_option("1")
    assert page.locator("#path-card").is_hidden()
    assert "not sampled" in page.evaluate("document.getElementById('bands').layout.annotations[0].text")
    assert "the rest is unknown, not idle" in page.locator("#notes").inner_text()
    linked = open_page(made, "launch=1&slice=2&theme=dark")
    assert linked.locator("tr.chosen").get_attribute("data-slice") == "2"
    for odd in ("launch=99&slice=x", "launch=-1&path=7&slice=1e9", "theme=%3Cscript%3E"):
        assert open_page(made, odd).locator("#table tbody tr").count() == 40
    none = open_page(phase_roofline(report(tmp_path / "none.ncu-rep", Made(()).kernel())))
    assert "No kernel can be drawn over its time" in none.locator(".empty").inner_text()


def test_run(open_page: Open, tmp_path: Path) -> None:
    second = [{**one, "args": {**one["args"], "device": 1}} if one["cat"] == "kernel" else one for one in COPY]
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(document(MM, SOFTMAX, LATE, HOSTILE_RUN, second, gpus=(H100, {**H100, "id": 1}))))
    made = run_of([read_trace(path)], full_paths=False)
    page = open_page(made)
    mine = [row for row in made.operators.to_dict("records") if row["gpu"] == 0]
    (dots,) = traces(page, "roofline", "operators")
    for axis, name in (("x", "intensity"), ("y", "performance")):
        assert sorted(dots[axis]) == pytest.approx(sorted(row[name] for row in mine if row["flops"] > 0), rel=6e-6)
    assert names(page)[0] == "aten::_softmax"
    times = sorted(float(row["time [s]"]) for row in saved(page))
    assert times == pytest.approx(sorted(row["seconds"] for row in mine), rel=6e-6)
    page.fill("#query", "1024,1024")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    page.keyboard.press("Tab")
    page.click("#times button:not([disabled])")
    assert "q=1024%2C1024" in page.url
    assert "operator=" in page.url
    page.click("#reset")
    assert len(names(page)) == 4
    other = open_page(made, "run=1", theme="dark")  # a GPU without dots
    assert names(other) == ["aten::copy_"]
    assert other.is_hidden("#roofline-card")
    other.set_viewport_size({"width": 360, "height": 800})
    until(other, "document.documentElement.scrollWidth <= 360")
    assert open_page(made, "run=length&operator=x&sort=none&theme=odd").is_visible("#roofline-card")
