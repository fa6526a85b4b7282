"""The page in a headless Chromium, opened from a file with the network cut: the chart, its table, and how people use both."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ncu_roofline
from ncu_roofline import Roofline, roofline
from ncu_roofline.analyses.hierarchical.kernels import kernels_of, ranked
from ncu_roofline.chips.verdict import as_times
from tests import published
from tests.rendering.browser import Open, column, dots, faded, lines, place, table, until
from tests.rendering.frames import FakeRoofline, make_roofline, many
from tests.rendering.test_page import HOSTILE, hostile
from tests.rendering.test_sweeps import DEMO, NW, sweep

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
STATE = "JSON.stringify([{ ...state, query: '' }, [...state.precisions], [...state.levels], [...state.roofs]])"


@pytest.fixture(scope="module")
def gpp() -> Roofline:
    return roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")


def traces(page: Page, meta: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(
        "(meta) => chart.data.filter((trace) => trace.meta === meta).map(({ x, y, name }) => ({ x: [...x], y: [...y], name }))",
        meta,
    )
    return found


def labels(page: Page) -> list[str]:
    texts: list[str] = page.evaluate("chart.layout.annotations.map((one) => one.text)")
    return texts


def test_dots_roofs_and_every_number_of_them(open_page: Open) -> None:
    made = make_roofline(5)
    page = open_page(made)
    assert (dots(page), lines(page)) == (15, 2 * (2 + 3))
    assert page.evaluate("chart.layout.xaxis.type + chart.layout.yaxis.type") == "loglog"
    for label in ("HBM: 1.555 TB/s", "FP64 FMA: 8.674 TFLOP/s (measured)", "gpp_kernel"):
        assert any(label in text for text in page.locator("#chart .annotation-text").all_text_contents())
    point = made.points[(made.points["kernel"] == "smooth_kernel") & (made.points["level"] == "dram")].iloc[0]
    page.mouse.move(*place(page, "smooth_kernel", "dram"))
    tip = page.locator("#tooltip")
    tip.wait_for(state="visible")
    few = ("smooth_kernel", "DRAM · FP64", f"{point['intensity']:.4g} FLOP/B", f"{point['performance'] / 1e12:.4g} TFLOP/s")
    assert [word for word in few if word not in tip.inner_text()] == []
    assert page.locator("#overlay circle").count() == 3  # rings around the three levels
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    tip.locator("summary").click()
    every = ["GFLOP", "MB", "µs", "GB/s", "GHz", "binding", "work / traffic", "measured roof", "theoretical roof"]
    every += [f"{100 * point['fraction']:.3g} %", "dram__bytes.sum"]
    assert [word for word in every if word not in tip.inner_text()] == []
    assert faded(page) == 12  # the kernel is alone
    assert page.locator("#table tr.chosen").inner_text().startswith("smooth_kernel")
    assert "smooth_kernel(level_type, int, int, double, double)" in page.locator("#details").inner_text()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    page.keyboard.press("Escape")
    assert faded(page) == 0
    page.locator("#table tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert faded(page) == 12


def test_hostile_texts_show_literally(open_page: Open) -> None:
    made = hostile(make_roofline(3))
    for frame in (made.kernels, made.points):
        frame["kernel"] = pd.Series([f"<b>a</b><a href='http://x.invalid'>$x$</a>{HOSTILE}"] * len(frame), dtype=object)
    made.roofs["label"] = "<b>roof</b>&lt;i&gt;"
    page = open_page(made, title=HOSTILE)
    page.locator("#table tbody tr").first.click(position={"x": 40, "y": 5})
    page.locator("#details").wait_for(state="visible")
    assert "<b>a</b>" in page.locator("#details h2").inner_text()
    shown = page.locator("#chart .annotation-text").all_text_contents()
    assert any("<b>roof</b>&lt;i&gt;" in label for label in shown)
    assert any(label.startswith("<b>a</b>") for label in shown)
    assert page.locator("img, #chart .annotation a, #details b, #table b").count() == 0


@pytest.mark.exhaustive
def test_choices_change_what_is_drawn_and_back_undoes_them(open_page: Open) -> None:
    page = open_page(make_roofline(6, ("fp64", "fp32")))
    every, before = dots(page), lines(page)
    page.locator("[data-level=l1]").click()
    page.locator("[data-level=l2]").click()
    assert dots(page) == every // 3
    page.go_back()
    until(page, "state.levels.size === 2")
    assert dots(page) == 2 * every // 3
    page.go_back()
    until(page, "state.levels.size === 3")
    page.locator("[data-precision=fp32]").click()
    assert dots(page) == 3 * 3  # every second kernel works in FP32 too
    assert set(column(page, "precision")) == {"FP32"}
    page.locator("[data-precision=all]").click()
    page.locator("[data-roof='fp64.nofma'][data-origin=measured]").check()
    assert (dots(page), lines(page)) == (every, before + 1)
    page.locator("[data-origins=theoretical]").click()
    assert page.evaluate("chart.data.filter((t) => t.meta === 'roof').every((t) => t.line.dash === 'solid')")
    page.locator("#reset").click()
    assert lines(page) == before
    assert page.evaluate("[...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)") == [
        "Zoom", "Pan", "Zoom in", "Zoom out",
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_the_table_is_sorted_filtered_and_saved(open_page: Open) -> None:
    made = make_roofline(8, odd=True)
    page = open_page(made)
    ranks = page.evaluate("sorted(current.selection.rows).map((row) => row.kernel.launch)")
    assert list(dict.fromkeys(ranks)) == [one.launch for one in ranked(kernels_of(made).values()) if one.status == "ok"]
    for name, value in (("seconds", "row.kernel.seconds"), ("performance", "row.first.performance")):
        page.locator(f"[data-sort={name}]").click()
        found = page.evaluate(f"sorted(current.selection.rows).map((row) => {value})")
        assert found == sorted(found, reverse=True)
    page.locator("#top").select_option("5")
    assert (dots(page), len(table(page))) == (15, 5)
    page.locator("#top").select_option("0")
    page.locator("#query").fill("^(pipe|=cmd)")
    page.locator("#blank").wait_for(state="visible")
    page.locator("#regex").click()
    until(page, "document.querySelectorAll('#table tbody tr').length === 2")
    assert dots(page) == 6
    page.locator("#query").fill("(")
    until(page, "document.getElementById('query').getAttribute('aria-invalid') === 'true'")
    page.locator("#reset").click()
    page.locator("#query").fill("=CMD")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "Roofline-of-sample.ncu-rep.csv"
    [row] = csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines())
    kernel = made.kernels[made.kernels["kernel"].str.startswith("=cmd")].iloc[0]
    point = made.points[(made.points["kernel"] == kernel["kernel"]) & (made.points["level"] == "dram")].iloc[0]
    assert row["Kernel"].startswith("'=cmd|")
    numbers = {"Time [s]": kernel["seconds"], "Share": kernel["time_share"], "AI DRAM": point["intensity"]}
    assert {name: float(row[name]) for name in numbers} == pytest.approx(numbers, rel=6e-6)


@pytest.mark.exhaustive
def test_links_hold_the_choices_and_odd_ones_are_passed_over(open_page: Open) -> None:
    page = open_page(make_roofline(6, ("fp64", "fp32")))
    plain = page.evaluate(STATE)
    for link in (
        "level=", "precision=nothing&level=x,y&top=-3&sort=-nothing&view=1,2,3&kernel=none&gpu=no&theme=neon",
        "view=NaN,1,2,3&view=9,1,0,1&nth=-1&kernel=smooth_kernel&nth=99", "view=0,1,0,1e-300",
        "%E0%A4%A=&=&&constructor=__proto__&sort=toString", "q=" + "x%3Cscript%3E" * 500,
    ):  # fmt: skip
        page.evaluate("(link) => { location.hash = link; }", link)
        until(page, "written === readLink().toString()")
        assert page.evaluate(STATE) == plain
    page.evaluate("(link) => { location.hash = link; }", r"regex=1&q=^((\w|\w)%2B\s?)%2B$x")
    until(page, r"state.query === String.raw`^((\w|\w)+\s?)+$x`")
    assert "press .*" in page.locator("#query-error").inner_text()  # waits for the reader, for it would never end
    page.locator("#reset").click()
    page.locator("[data-precision=fp32]").click()
    page.locator("[data-level=l1]").click()
    page.locator("#query").fill("s")
    until(page, "location.hash.includes('q=s')")
    page.locator("[data-sort=performance]").click()
    page.locator("[data-roof='fp32.nofma'][data-origin=measured]").uncheck()
    page.locator("#table tbody tr").first.click()
    page.locator("#theme").click()
    chosen, link = page.evaluate(STATE), page.url
    for one in ("precision=fp32", "level=", "q=s", "sort=-performance", "kernel=", "theme="):
        assert one in link
    page.goto("about:blank")
    page.goto(link)
    assert (page.evaluate(STATE), page.url, page.locator("#query").input_value()) == (chosen, link, "s")
    assert page.locator("#details").is_visible()


@pytest.mark.exhaustive
def test_bars_instead_of_the_chart(open_page: Open) -> None:
    made = make_roofline(0, zero_flop=3)
    page = open_page(made)
    assert page.locator("#app").is_hidden()
    by_rank = made.kernels.sort_values("recoverable", ascending=False)
    width = "100 * node.getBoundingClientRect().width / node.parentNode.clientWidth"
    found = page.evaluate(f"[...document.querySelectorAll('#usage tbody .units i')].map((node) => {width})")
    expected = [100 * row[f"fraction_{unit}"] for _, row in by_rank.iterrows() for unit in ("sm", "l1", "l2", "dram")]
    assert found == pytest.approx(expected, abs=0.6)
    reasons = [f"{reason}; no dot: without floating-point work" for reason in by_rank["reason"]]
    assert page.locator("#usage tbody tr.why").all_inner_texts() == reasons
    unknown = make_roofline(0, zero_flop=2, usage=False)
    unknown.kernels["seconds"] = float("nan")
    assert "No kernel can be drawn" in open_page(unknown).locator("section.empty").inner_text()


@pytest.mark.exhaustive
def test_verdicts_in_table_details_and_tooltip(open_page: Open) -> None:
    made = make_roofline(4, zero_flop=2, tensor_unknown=1)
    page = open_page(made)
    kernels = made.kernels.set_index("kernel")
    shown = dict(zip(table(page), column(page, "verdict"), strict=True))
    assert shown == {name: kernels.verdict[name] for name in shown}
    headrooms = dict(zip(table(page), column(page, "headroom"), strict=True))
    assert headrooms["smooth_kernel"] == as_times(kernels.headroom["smooth_kernel"])
    assert headrooms["gpp_kernel"] == "\u2013"  # its tensor work is unknown
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    for text in (kernels.verdict["smooth_kernel"], kernels.reason["smooth_kernel"]):
        assert text in page.locator("#tooltip").inner_text()
    page.keyboard.press("Escape")
    page.locator("#table tbody tr", has_text="gpp_kernel").click()
    assert kernels.reason["gpp_kernel"] in page.locator("#details").inner_text()


@pytest.mark.exhaustive
def test_bands_hold_each_launch(open_page: Open) -> None:
    made = make_roofline(3, clocks_differ=0.3, measured=False)
    point = made.points[(made.points["kernel"] == "smooth_kernel") & (made.points["level"] == "dram")].iloc[0]
    page = open_page(made)
    bands = [(min(one["y"]), max(one["y"])) for one in traces(page, "band")]
    compute = made.roofs[made.roofs["roof"] == "fp64.fma"].iloc[0]
    assert len(bands) == 4
    assert any(band == pytest.approx((compute["value_min"], compute["value_max"])) for band in bands)
    page.mouse.click(*place(page, "smooth_kernel", "dram"))
    page.locator("#tooltip summary").click()
    assert f"{point['compute_roof'] / 1e12:.4g} TFLOP/s" in page.locator("#tooltip").inner_text()
    written = f"{compute['value_min'] / 1e12:.4g} to {compute['value_max'] / 1e12:.4g} TFLOP/s"
    assert written in page.locator("#roofs").inner_text()


@pytest.mark.exhaustive
def test_what_is_not_known_is_told_and_not_drawn(open_page: Open, tmp_path: Path) -> None:
    made = make_roofline(4)
    for name in ("attainable", "fraction", "binding_fraction", "clock_profiled", "locality"):
        made.points[name] = float("nan")
    made.points.loc[0, "intensity"] = float("inf")
    page = open_page(FakeRoofline(made.points, made.roofs.iloc[:0], made.kernels))
    assert dots(page) == 11
    assert "1 points without work or traffic" in page.locator("#status").inner_text()
    assert "n/a" in page.locator("#table tbody").inner_text()
    made = make_roofline(3, levels=("l1", "dram"))
    made.points["level"] = made.points["level"].replace("l1", "")
    made.points["precision"] = ""
    page = open_page(made)
    assert (dots(page), page.locator("[data-precision]").all_text_contents()) == (6, ["other"])
    rates = tmp_path / "rates.csv"  # without a time, which is not zero
    rates.write_text("kernel,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs\ntriad,10,0.1,1000,200\n")
    assert open_page(ncu_roofline.roofline(rates)).locator("#status").inner_text() == "1 of 1 kernel, 1 dot"


@pytest.mark.exhaustive
def test_gpus_and_reports_are_chosen(open_page: Open) -> None:
    parts = [make_roofline(3), make_roofline(2, report="b.ncu-rep", seed=2), make_roofline(4, chip="h100", zero_flop=4)]
    page = open_page(
        FakeRoofline(*(pd.concat([getattr(one, name) for one in parts]) for name in ("points", "roofs", "kernels")))
    )
    gpus = [parts[place].points["device"].iloc[0] for place in (0, 2)]
    for pick, name, found in (("GPU", gpus[0], 15), ("Report", "b.ncu-rep", 6), ("GPU", gpus[1], 12)):
        page.locator(f"[data-pick={pick}]").select_option(name)
        assert dots(page) == found
    rows = "[...document.querySelectorAll('#usage tr[data-device]')].filter((row) => row.checkVisibility())"
    assert set(page.evaluate(f"{rows}.map((row) => row.dataset.device)")) == {gpus[1]}


@pytest.mark.exhaustive
def test_precisions(open_page: Open) -> None:
    made = make_roofline(1, ("fp32", "tensor.fp16"), mixed=True, zero_flop=0)
    made.points["compute_roof"] = 4 * made.points["performance"]
    page = open_page(made)
    shown = dict(zip(column(page, "precision"), column(page, "binding_fraction"), strict=True))
    assert (shown["FP32"], shown["Tensor FP16"]) == ("25 %", "25 %")  # each under its own roof
    page.locator("[data-precision=mixed]").click()
    roofs = page.evaluate("currentRoofs().filter((roof) => roof.kind === 'compute').map((roof) => roof.precision)")
    assert set(roofs) == {"fp32", "tensor.fp16"}
    made = make_roofline(4, ("fp64", "fp32"))  # FP32 a hundredth of a percent, far left of the axes
    side = made.points["precision"] == "fp32"
    made.points.loc[side, ["work", "performance", "intensity"]] *= 1e-4
    made.kernels["limit"] = made.points["binds"] = "dram"
    page = open_page(made)
    low, high = page.evaluate("chart.layout.xaxis.range")
    assert high - low < 5.5
    arrows = page.evaluate("chart.data.filter((trace) => trace.meta === 'edge').flatMap(({ customdata }) => customdata)")
    assert {page.evaluate(f"POINTS[{index}].precision") for index in arrows} == {"fp32"}
    assert set(page.evaluate("ORDER.map((kernel) => mainRow(kernel).precision)")) == {"fp64"}  # that with most work
    symbols = page.evaluate("distinct(chart.data.filter(({ meta }) => meta === 'dots').flatMap(({ marker }) => marker.symbol))")
    assert symbols
    assert not [symbol for symbol in symbols if "open" in symbol]
    cut = page.evaluate(
        "(names) => [...shortenApart(names, 16).values()]", [f"DeviceRadix{one}Kernel" for one in ("Up", "Down")]
    )
    assert len(set(cut)) == 2
    assert max(map(len, cut)) <= 16


@pytest.mark.exhaustive
def test_a_value_beyond_the_axes_has_an_arrow_and_roofs_not_used_wait(open_page: Open) -> None:
    made = make_roofline(5, levels=("l1", "l2", "dram", "system"))
    made.points.loc[made.points["level"] == "system", "intensity"] = 1e9
    made.points["binds"] = made.kernels["limit"] = "dram"
    made.roofs.loc[made.roofs["origin"].eq("measured") & made.roofs["kind"].eq("compute"), "origin"] = "unused"
    page = open_page(made)
    low, high = page.evaluate("chart.layout.xaxis.range")
    assert high < 6
    (edge,) = traces(page, "edge")
    assert all(10**low < at < 10**high for at in edge["x"])
    assert "1.00e9 FLOP/B" in page.locator("#chart .annotation-text").all_text_contents()
    assert not page.locator("[data-roof='fp64.fma'][data-origin=unused]").is_checked()
    page.locator("[data-origins=unused]").click()
    assert page.locator("[data-roof='fp64.fma'][data-origin=unused]").is_checked()


@pytest.mark.exhaustive
def test_three_thousand_kernels_stay_fluent(open_page: Open) -> None:
    page = open_page(many(30))
    assert dots(page) == 400  # the first hundred
    assert "the first 100 of 3000" in page.locator("#status").inner_text()
    page.locator("#top").select_option("0")
    assert 750 < dots(page) <= 1500  # of 12000
    assert "zoom in" in page.locator("#status").inner_text()
    indices = "chart.data.filter((trace) => trace.meta === 'dots').flatMap((trace) => [...trace.customdata])"
    shown = set(page.evaluate(indices))
    page.evaluate("Plotly.relayout(chart, { 'xaxis.range': [0, 0.5], 'yaxis.range': [12, 12.5] })")
    until(page, "state.view !== null")
    assert len(set(page.evaluate(indices)) - shown) > 100  # what was below others
    page.locator("#show-more").click()
    assert len(table(page)) == 500
    assert page.evaluate("(() => { const start = performance.now(); update(); return performance.now() - start; })()") < 2000


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


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (390, "light"),
        *(pytest.param(*one, marks=pytest.mark.exhaustive) for one in ((390, "dark"), (800, "light"), (1400, "dark"))),
    ],
)
def test_nothing_overlaps_or_overflows(open_page: Open, width: int, theme: str) -> None:
    made = make_roofline(9, ("fp64", "fp32"), levels=("l1", "shared", "l2", "dram", "system"), zero_flop=3, missing=2)
    advice = [{"kernel": kernel, "title": "DRAM", "text": "fewer bytes"} for kernel in made.kernels["kernel"]]
    page = open_page(made, theme=theme, advice=advice)
    page.set_viewport_size({"width": width, "height": 900})
    until(page, "Math.abs(chart.layout.width - chart.parentElement.clientWidth) < 2")
    for controls in page.locator("#controls").all():
        controls.evaluate("(node) => { node.open = true; }")
    assert page.evaluate(CROWDING) == {"chart": [], "page": [], "out": [], "wide": False, "counts": [True, True]}
    page.evaluate("isolate(ORDER[0].index)")
    assert page.locator("#to-advice").is_visible()
    assert page.evaluate(CROWDING)["wide"] is False


@pytest.mark.exhaustive
def test_paper_and_files(open_page: Open) -> None:
    advice = {"kernel": "smooth_kernel", "rule": "Verdict", "title": "DRAM", "text": "fewer bytes"}
    page = open_page(make_roofline(3), advice=[{**advice, "launches": 12, "share": 0.25, "recoverable": 1e-3}])
    page.locator("#table tbody tr", has_text="smooth_kernel").click()
    page.locator("#to-advice").click()
    assert "Verdict · 12 launches, 25.0 % of the time, could save 1 ms" in page.locator("#advice").inner_text()
    page = open_page(make_roofline(3), theme="dark", advice=[advice])
    page.emulate_media(media="print")
    until(page, "document.documentElement.dataset.theme === 'light'")
    assert page.get_by_text("fewer bytes").is_visible()
    assert page.evaluate("chart.layout.width") <= 700
    for control in (".modebar", "#controls", "#download", "#save", ".side"):
        assert page.locator(control).is_hidden()
    page.emulate_media(media="screen")
    until(page, "document.documentElement.dataset.theme === 'dark'")
    with page.expect_download() as download:
        page.locator("#download").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.exhaustive
def test_the_published_sweep(open_page: Open, gpp: Roofline) -> None:
    page = open_page(gpp)
    found = traces(page, "sweep")
    intensities = (published.INTENSITY_L1, published.INTENSITY_L2, published.INTENSITY_DRAM)
    assert [line["x"] for line in found] == [pytest.approx(level, rel=1e-5) for level in intensities]
    for line in found:
        assert line["y"] == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-5)
    assert {"nw=1", "nw=6"} <= {text for text in labels(page) if text in NW}
    assert table(page, 1) == NW
    (mark,) = traces(page, "mix")
    assert mark["y"] == pytest.approx([5.655e12] * 2, rel=1e-3)
    assert "FMA mix 80 % 5.66 TFLOP/s" in labels(page)
    page.mouse.click(*place(page, "sigma_gpp_gpu", "l1"))
    page.locator("#tooltip summary").click()
    tip = page.locator("#tooltip").inner_text()
    assert [word for word in ("nw=1", "FMA share", "5.655 TFLOP/s") if word not in tip] == []
    page.keyboard.press("Escape")
    page.locator("[data-mix]").uncheck()
    until(page, "!chart.data.some((trace) => trace.meta === 'mix')")
    page = open_page(sweep(3, 4))
    assert len(traces(page, "sweep")) == 9
    page.locator("#table tbody tr").first.click()
    until(page, "state.isolated !== null")
    assert len(traces(page, "sweep")) == 3  # a chosen step keeps its kernel's line
    assert traces(open_page(make_roofline(3)), "sweep") == []
