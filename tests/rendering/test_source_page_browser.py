"""The page of the source view in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ncu_roofline.analyses.source.frames import SourceRoofline
from tests.analyses.source_frames import SOURCE, TEXTS, source_frames
from tests.rendering.browser import Open, until
from tests.rendering.test_page import HOSTILE
from tests.rendering.test_source_page import extreme, longer, with_local, with_texts

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]
LACKING: dict[str, dict[str, Any]] = {
    "all": {}, "no lines": {"lines": False}, "no text": {"texts": {}}, "no nvdisasm": {"sass": False},
    "no samples": {"sampled": False}, "no code": {"code": False},
}  # fmt: skip
# What is wider than the window or than what holds it, and texts of the chart that stand on others.
_OVERFLOWS = """() => {
    const shown = (node) => node.getClientRects().length > 0;
    const found = [];
    for (const card of [...document.querySelectorAll(".card, .top, #chart svg")].filter(shown)) {
        if (card.getBoundingClientRect().right > innerWidth + 1) found.push(`outside: ${card.id || card.className}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) found.push(`page is ${document.documentElement.scrollWidth} wide`);
    const upright = (node) => !/rotate\\((?!-?0)/.test(node.getAttribute("transform") || "");
    const texts = [...document.querySelectorAll("#chart text")].filter(upright);
    const boxes = texts.map((node) => [node.textContent, node.getBoundingClientRect()]);
    boxes.forEach(([text, a], index) => {
        for (const [other, b] of boxes.slice(0, index)) {
            const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (wide > 1 && tall > 0.4 * Math.min(a.height, b.height)) found.push(`${text} on ${other}`);
        }
    });
    return found;
}"""


def lit(page: Page, pane: str) -> list[str]:
    """The first cells of the rows that are marked: lines, offsets."""
    return [text.strip() for text in page.locator(f"#{pane}-pane tr.lit th").all_text_contents()]


def in_sight(page: Page, pane: str, selector: str) -> bool:
    """Whether an element of a pane is inside of what is seen of it."""
    return bool(
        page.evaluate(
            """([pane, selector]) => {
                const box = document.getElementById(`${pane}-pane`);
                const [outer, inner] = [box.getBoundingClientRect(), box.querySelector(selector).getBoundingClientRect()];
                return inner.top >= outer.top && inner.bottom <= outer.bottom + 1;
            }""",
            [pane, selector],
        )
    )


def line_row(page: Page, line: int) -> Any:
    return page.locator("#source-pane tbody tr", has=page.locator(f"th:text-is('{line}')"))


def changed(frames: SourceRoofline, table: str, mask: Any, **values: Any) -> SourceRoofline:
    """The frames with other values in some rows of a table."""
    columns = dict(getattr(frames, table))
    for name, value in values.items():
        kind = object if isinstance(value, str) else np.float64 if isinstance(value, float) else np.int64
        columns[name] = columns[name].astype(kind)
        columns[name][mask] = value
    return replace(frames, **{table: columns})


@pytest.mark.sampled("all")
@pytest.mark.parametrize("kind", LACKING)
def test_nothing_overlaps_or_overflows(open_page: Open, kind: str) -> None:
    for theme, widths in (("light", (1700, 1366, 800, 390)), ("dark", (1366,))):
        page = open_page(source_frames(**LACKING[kind]), theme=theme)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            until(page, "document.querySelector('#chart svg').clientWidth === byId('chart').clientWidth")
            assert page.evaluate(_OVERFLOWS) == [], (theme, width)
        page.close()


def test_loops_lines_and_instructions_show_each_other(open_page: Open) -> None:
    frames = source_frames()
    page = open_page(frames)
    page.locator("#chart .dot[data-loop='1']").press("Enter")
    assert lit(page, "source") == ["12", "13"]
    assert lit(page, "instruction") == ["0040", "0050", "0060", "0070", "0080", "0090"]
    assert page.locator("#details h2").text_content() == "Loop 1: smooth.cu:12\u201313"
    assert "16 iterations per entry" in str(page.locator("#details").text_content())
    assert page.url.endswith("#loop=1")
    page.locator("#loop-table .link", has_text="lines 10").click()
    assert lit(page, "source") == ["10", "11", "12", "13", "15"]
    page.keyboard.press("Escape")
    assert lit(page, "source") == []
    line_row(page, 13).click()
    assert lit(page, "instruction") == ["0040", "0050", "0060", "0070", "0080"]
    page.locator("#instruction-pane tr", has_text="I2F R4").click()
    assert page.locator("#details h2").text_content() == "0x40 I2F R4, R3"
    page.locator("#details .link", has_text="weights.cuh:3").click()  # where it is inlined from
    assert (lit(page, "source"), lit(page, "instruction")) == (["3"], ["0040", "0050"])
    page.locator("#source-note .link").click()
    assert page.url.endswith("line=-2.2")
    row = frames.lines.set_index(["file", "line"]).loc[("smooth.cu", 13)]
    page.locator("#finding-list .link").first.click()
    cell = line_row(page, 13).locator("td").nth(1)
    assert cell.text_content() == f"{100 * row['share_samples']:.0f} %"
    page.locator("[data-by=traffic]").click()
    assert cell.text_content() == f"{100 * row['share_requested']:.0f} %"  # no local memory: all is of global memory
    assert page.locator("[data-by=local]").count() == 0
    assert "by=traffic" in page.url
    dots = page.evaluate("view.launch.chart.dots.concat(loopDots()).map((dot) => [dot.performance, dot.attainable])")
    assert len(dots) == 3
    assert all(performance <= attainable for performance, attainable in dots if attainable is not None)


def test_choices_are_in_the_address(open_page: Open) -> None:
    two = SourceRoofline.joined([source_frames(), source_frames(kernel="sharpen", launch=7)])
    page = open_page(two, theme="light")
    page.select_option("#launch", "1")
    assert str(page.locator("#facts").text_content()).startswith("sharpen")
    page.locator("[data-by=work]").click()
    page.locator("[role=tab]", has_text="weights").click()
    page.locator("#source-pane tr.counted").first.click()
    page.locator("#theme").click()
    assert page.url.partition("#")[2] == "kernel=1&by=work&file=weights.cuh&line=3&theme=dark"
    state = page.evaluate("JSON.stringify(state)")
    page.reload()
    assert page.evaluate("JSON.stringify(state)") == state
    page.keyboard.press("Escape")
    page.go_back()
    assert lit(page, "source") == ["3"]
    odd = open_page(two, "kernel=99&by=toString&file=constructor&line=13e9&loop=__proto__&at=0.ffff&theme=pink", theme="light")
    found = odd.evaluate("[state.launch, state.by, fileName(state.file), state.chosen, state.theme]")
    assert found == [0, "samples", "smooth.cu", None, ""]
    assert open_page(two, "at=1.10").locator("#details h2").text_content() == "0x10 RET.REL.NODEC R20"


def test_long_listings_are_made_as_they_are_seen_and_searched_whole(open_page: Open) -> None:
    page = open_page(longer(source_frames(), 560))
    rows = "document.querySelectorAll('#instruction-pane tr[data-row]').length"
    before = page.evaluate(rows)
    assert before < 2000
    page.evaluate("choose({ row: 9000 })")
    assert page.evaluate(rows) > before
    assert in_sight(page, "instruction", "tr.chosen")
    assert page.locator("#instruction-pane tr.chosen th").text_content() == f"{16 * 9000:04x}"
    page.locator("#source-pane").press("/")
    for words, found in (
        ("0X22f00", "1 of 1: 0x22f00"), ("th.cu:13", "1 of 1: smooth.cu:13"), ("Z3farf", "1 of 561: far at smooth.cu:5"),
        ("long_scoreboard", "1 of 560: 0x80"), ("<img", "not found"),
    ):  # fmt: skip
        page.locator("#find").fill(words)
        page.keyboard.press("Enter")
        assert page.locator("#found").text_content() == found
    texts = {**TEXTS, "smooth.cu": (*SOURCE.splitlines(), *(f"// {line}" for line in range(3000)))}
    frames = source_frames(texts=texts)
    moved = {name: {**getattr(frames, name)} for name in ("line_columns", "instruction_columns")}
    for columns in moved.values():
        columns["line"] = np.where(columns["line"] == 15, 2500, columns["line"])
    page = open_page(replace(frames, **moved), "line=2500")
    assert page.locator("#source-pane tr[data-row]").count() < 1000
    assert page.locator("#source-pane tr.chosen .words").text_content() == f"// {2500 - 18}"


def test_what_lacks_is_told(open_page: Open) -> None:
    page = open_page(source_frames(lines=False))
    assert page.locator("#source").is_hidden()
    page.locator("#loop-table .link").nth(1).click()
    assert len(lit(page, "instruction")) == 6
    page = open_page(source_frames(texts={}))
    assert "no text of this file" in str(page.locator("#source-note").text_content())
    assert "3 instructions" in str(line_row(page, 13).text_content())
    page = open_page(source_frames(sampled=False))
    assert page.locator("[data-by=samples]").count() == 0
    assert page.locator("[aria-pressed=true][data-by=work]").count() == 1
    frames = source_frames()
    share = frames.lines.set_index("line").loc[-2, "share_samples"]
    note = open_page(frames).locator("#source-note").text_content()
    assert note == f"Samples: {100 * share:.1f} % outside of the report\u2019s code."
    for table in ("instruction_columns", "line_columns", "loop_columns", "function_columns"):
        frames = changed(frames, table, slice(None), executed=float("nan"))
    assert "Threads" in open_page(frames).locator("#instruction-pane thead th").all_text_contents()


def test_lineless_code_of_several_functions_is_told_apart(open_page: Open) -> None:
    frames = source_frames()
    names = {12: "slow_division", 13: "power"}
    rows = frames.lines.set_index(["file", "line"])
    shares = [rows.loc[("smooth.cu", line), "share_samples"] for line in names]
    for line, name in names.items():
        for table, column in (("line_columns", "text"), ("instruction_columns", "owner")):
            columns = getattr(frames, table)
            mask = (columns["file"] == "smooth.cu") & (columns["line"] == line)
            frames = changed(frames, table, mask, file="", line=-1, **{column: name})
    page = open_page(frames)
    note = str(page.locator("#source-note").text_content())
    for share, name in zip(shares, names.values(), strict=True):
        assert f"{100 * share:.{0 if share >= 0.0995 else 1}f} % in {name}" in note
        page.locator("#source-note .link", has_text=name).click()
        owned = int((frames.instruction_columns["owner"] == name).sum())
        assert page.locator("#instruction-pane tr.lit").count() == owned
    assert f"Samples: {100 * sum(shares):.0f} % is in code without source line" in note


def test_loops_that_lie_on_each_other_are_told_apart_and_all_reached(open_page: Open) -> None:
    page = open_page(changed(source_frames(), "loop_columns", slice(0, 2), intensity=0.5, performance=1e12))
    dot = page.locator("#chart .dot[data-loop='1']")
    assert str(dot.locator("title").text_content()).count("\nLoop ") == 2
    box = dot.locator(".target").bounding_box()
    assert box is not None
    for loop in ("1", "0", "1"):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert page.evaluate("location.hash") == f"#loop={loop}"
    names = page.locator("#chart text.name").all_text_contents()
    assert {"0", "1"} <= {name.partition(":")[0] for name in names} | set(page.locator("#key .link").all_text_contents())


def test_tables_of_loops_fit_and_what_a_narrow_window_lacks_is_told(open_page: Open) -> None:
    frames = changed(with_local(source_frames()), "loop_columns", slice(1, 2), notes="never executed", performance=math.nan)
    page = open_page(frames)
    for width in (1400, 1260, 480):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("byId('loop-table').scrollWidth <= byId('loop-table').clientWidth"), width
        assert page.locator(".narrow").first.is_visible() == (width == 480)
    below = [str(text) for text in page.locator("#loop-table .below").all_text_contents()]
    assert below[1].startswith("Performance 50.7 GFLOP/s, 5.62 % of roof at L1")
    assert "No performance: never executed" in below
    page.locator("[data-by=local]").click()
    assert "Local" in str(page.locator("#loop-table thead").text_content())


def test_hostile_texts_and_extreme_counts(open_page: Open) -> None:
    frames = source_frames()
    texts = {**TEXTS, "smooth.cu": tuple(f"{HOSTILE}{line}" for line in SOURCE.splitlines())}
    page = open_page(replace(frames, texts=texts))
    assert str(line_row(page, 13).locator(".words").text_content()).startswith("<img src=x onerror=alert(1)></script><!--")
    page = open_page(with_texts(frames, HOSTILE))
    for place in range(page.locator("#instruction-pane tr.counted").count()):
        page.evaluate(f"choose({{ row: {place} }})")
    assert (page.locator("img").count(), page.locator("script").count()) == (0, 2)
    page = open_page(extreme(frames))
    for place in page.evaluate("[...view.loops.keys()]"):
        page.evaluate(f"choose({{ loop: {place} }})")
    for chip in page.locator("#measures .chip").all():
        chip.click()
    assert page.evaluate(_OVERFLOWS) == []
    assert "NaN" not in page.evaluate("document.getElementById('chart').innerHTML")


def test_paper(open_page: Open) -> None:
    page = open_page(source_frames(), theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert not page.evaluate("[...document.querySelectorAll('.pane')].some((one) => one.scrollHeight > one.clientHeight + 1)")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
