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

pytestmark = pytest.mark.browser

LACKING: dict[str, dict[str, Any]] = {
    "all": {},
    "no lines": {"lines": False},
    "no text": {"texts": {}},
    "no nvdisasm": {"sass": False},
    "no samples": {"sampled": False},
    "no code": {"code": False},
}
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


def two_kernels() -> SourceRoofline:
    return SourceRoofline.joined([source_frames(), source_frames(kernel="sharpen", launch=7)])


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


def test_a_loop_shows_its_lines(open_page: Open) -> None:
    page = open_page(source_frames())
    assert lit(page, "source") == []
    page.locator("#chart .dot[data-loop='1']").press("Enter")
    assert lit(page, "source") == ["12", "13"]
    assert lit(page, "instruction") == ["0040", "0050", "0060", "0070", "0080", "0090"]
    assert page.locator("#details h2").text_content() == "Loop 1: smooth.cu:12\u201313"
    assert "16 iterations per entry" in str(page.locator("#details").text_content())
    assert page.locator("#chart .reach").count() == 1
    assert page.locator("#loop-table tr.chosen[data-loop]").count() == 1
    assert page.url.endswith("#loop=1")
    page.locator("#loop-table .link", has_text="lines 10").click()
    assert lit(page, "source") == ["10", "11", "12", "13", "15"]
    page.keyboard.press("Escape")
    assert lit(page, "source") == []
    assert page.locator("#details").is_hidden()


def test_a_line_shows_its_instructions_and_back(open_page: Open) -> None:
    """Also those of code that is inlined at the line; the chain leads from file to file."""
    page = open_page(source_frames())
    line_row(page, 13).click()
    assert lit(page, "instruction") == ["0040", "0050", "0060", "0070", "0080"]
    assert page.url.endswith("#line=13")
    page.locator("#instruction-pane tr", has_text="I2F R4").click()
    assert page.locator("#details h2").text_content() == "0x40 I2F R4, R3"
    assert "smooth.cu:13" in [text.strip() for text in page.locator("#details .link").all_text_contents()]
    assert lit(page, "source") == ["13"]
    page.locator("#details .link", has_text="weights.cuh:3").click()
    assert page.locator("[role=tab][aria-selected=true]").text_content().startswith("weights.cuh")
    assert lit(page, "source") == ["3"]
    assert lit(page, "instruction") == ["0040", "0050"]
    page.locator("#instruction-pane [data-loop='1']").first.click()
    assert page.url.endswith("#loop=1")


def test_heat_is_by_what_is_chosen(open_page: Open) -> None:
    frames = source_frames()
    page = open_page(frames)
    row = frames.lines.set_index(["file", "line"]).loc[("smooth.cu", 13)]
    cell = line_row(page, 13).locator("td").nth(1)
    assert cell.text_content() == f"{100 * row['share_samples']:.0f} %"
    page.locator("[data-by=traffic]").click()
    assert cell.text_content() == f"{100 * row['share_requested']:.0f} %"  # no local memory: all is of global memory
    assert page.locator("#source-pane thead").text_content().count("L1 bytes") == 1
    assert "global and to local memory" in str(page.locator("#meaning").text_content())
    assert "by=traffic" in page.url
    widths = page.evaluate(
        "[...document.querySelectorAll('#instruction-pane .heat')].map((bar) => bar.firstChild.clientWidth / bar.clientWidth)"
    )
    assert max(widths) == pytest.approx(1, abs=0.02)
    without = open_page(source_frames(sampled=False))
    assert without.locator("[data-by=samples]").count() == 0
    assert without.locator("[aria-pressed=true][data-by=work]").count() == 1


def test_keys(open_page: Open) -> None:
    page = open_page(source_frames())
    page.locator("#source-pane").focus()
    page.keyboard.press("ArrowDown")
    assert lit(page, "source") == ["5"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert lit(page, "source") == ["10"]
    page.keyboard.press("ArrowUp")
    assert lit(page, "source") == ["6"]
    page.locator("#instruction-pane").focus()
    page.keyboard.press("ArrowDown")
    assert page.url.endswith("#at=0.0")
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[role=tab][aria-selected=true]").text_content().startswith("weights.cuh")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tab"


def test_choices_are_in_the_address(open_page: Open) -> None:
    """A reload and a link show the same view, back goes back, and what an address holds is not trusted."""
    page = open_page(two_kernels(), theme="light")
    assert "#" not in page.url
    page.select_option("#launch", "1")
    assert str(page.locator("#facts").text_content()).startswith("sharpen")
    page.locator("[data-by=work]").click()
    page.locator("[role=tab]", has_text="weights").click()
    page.locator("#source-pane tr.counted").first.click()
    page.locator("#theme").click()
    link = page.url.partition("#")[2]
    assert link == "kernel=1&by=work&file=weights.cuh&line=3&theme=dark"
    state = page.evaluate("JSON.stringify(state)")
    page.reload()
    assert page.evaluate("JSON.stringify(state)") == state
    assert lit(page, "source") == ["3"]
    page.keyboard.press("Escape")
    page.go_back()
    assert lit(page, "source") == ["3"]
    fresh = "kernel=99&by=toString&file=constructor&line=13e9&loop=__proto__&at=0.ffff&theme=pink"
    odd = open_page(two_kernels(), fresh, theme="light")
    assert odd.evaluate("[state.launch, state.by, fileName(state.file), state.chosen, state.theme]") == [
        0,
        "samples",
        "smooth.cu",
        None,
        "",
    ]
    at = open_page(two_kernels(), "at=1.10")
    assert at.locator("#details h2").text_content() == "0x10 RET.REL.NODEC R20"


def test_findings_lead_to_their_lines(open_page: Open) -> None:
    """Place, colon, what is found, the share of what the sentence counts, and advice once."""
    frames = source_frames()
    told = str(frames.finding_columns["message"][0]).replace(
        "Line 13", "smooth.cu:13 and 2 more lines of loop 1 (smooth.cu:12-13)"
    )
    frames = changed(frames, "finding_columns", slice(0, 1), message=told, advice="Wait less.")
    page = open_page(changed(frames, "finding_columns", slice(1, 2), message="Warps wait.", advice="Wait less."))
    page.locator("#finding-list .link").first.click()
    assert lit(page, "source") == ["13"]
    items = [str(text) for text in page.locator("#finding-list li").all_text_contents()]
    assert items[0].startswith("smooth.cu:13 and 2 more lines of loop 1 (smooth.cu:12-13): 4.0 of 32 B")
    assert "of traffic of global memory at L1" in items[0]
    assert items[1].startswith("smooth.cu:13 (loop 1): Warps wait. ")
    assert [item.endswith("Wait less.") for item in items] == [True, False]


def test_long_listings_are_made_as_they_are_seen(open_page: Open) -> None:
    """10,000 instructions: only parts of the rows are there, and each is found."""
    page = open_page(longer(source_frames(), 560))
    assert page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart") < 10_000  # of a busy machine
    rows = "document.querySelectorAll('#instruction-pane tr[data-row]').length"
    height = "document.getElementById('instruction-pane').scrollHeight"
    before, tall = page.evaluate(rows), page.evaluate(height)
    assert before < 2000
    page.evaluate("choose({ row: 9000 })")
    assert page.evaluate(rows) > before
    assert in_sight(page, "instruction", "tr.chosen")
    assert page.locator("#instruction-pane tr.chosen th").text_content() == f"{16 * 9000:04x}"
    assert page.evaluate(height) == pytest.approx(tall, abs=2)


def test_long_sources(open_page: Open) -> None:
    texts = {**TEXTS, "smooth.cu": (*SOURCE.splitlines(), *(f"// {line}" for line in range(3000)))}
    frames = source_frames(texts=texts)
    moved = {name: {**getattr(frames, name)} for name in ("line_columns", "instruction_columns")}
    for table in moved.values():
        table["line"] = np.where(table["line"] == 15, 2500, table["line"])
    page = open_page(replace(frames, **moved), "line=2500")
    assert page.locator("#source-pane tr[data-row]").count() < 1000
    assert in_sight(page, "source", "tr.chosen")
    assert page.locator("#source-pane tr.chosen .words").text_content() == f"// {2500 - 18}"


def test_without_lines_or_text(open_page: Open) -> None:
    page = open_page(source_frames(lines=False))
    assert page.locator("#source").is_hidden()
    page.locator("#loop-table .link").nth(1).click()
    assert len(lit(page, "instruction")) == 6
    page = open_page(source_frames(texts={}))
    assert "no text of this file" in str(page.locator("#source-note").text_content())
    assert "3 instructions" in str(line_row(page, 13).text_content())


def test_what_is_in_no_line_is_told(open_page: Open) -> None:
    frames = source_frames()
    page = open_page(frames)
    share = frames.lines.set_index("line").loc[-2, "share_samples"]
    assert page.locator("#source-note").text_content() == f"Samples: {100 * share:.1f} % outside of the report\u2019s code."
    page.locator("#source-note .link").click()
    assert page.locator("#instruction-pane tr.lit").count() == 1
    assert page.url.endswith("#line=-2.2")


def changed(frames: SourceRoofline, table: str, mask: Any, **values: Any) -> SourceRoofline:
    """The frames with other values in some rows of a table."""
    columns = dict(getattr(frames, table))
    for name, value in values.items():
        kind = object if isinstance(value, str) else np.float64 if isinstance(value, float) else np.int64
        columns[name] = columns[name].astype(kind)
        columns[name][mask] = value
    return replace(frames, **{table: columns})


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
    told = [f"{100 * share:.{0 if share >= 0.0995 else 1}f} %" for share in shares]
    assert all(f"{share} in {name}" in note for share, name in zip(told, names.values(), strict=True))
    assert f"Samples: {100 * sum(shares):.0f} % is in code without source line" in note
    owners = frames.instruction_columns["owner"]
    for name in names.values():
        page.locator("#source-note .link", has_text=name).click()
        assert str(page.locator("#details h2").text_content()) == f"{name}, without source line"
        assert page.locator("#instruction-pane tr.lit").count() == int((owners == name).sum())


def test_local_memory_is_shown_where_there_is_some(open_page: Open) -> None:
    assert open_page(source_frames()).locator("[data-by=local]").count() == 0
    page = open_page(with_local(source_frames()))
    page.locator("[data-by=local]").click()
    assert "Local" in str(page.locator("#loop-table thead").text_content())


def test_threads_stand_for_warps_that_nobody_counted(open_page: Open) -> None:
    frames = source_frames()
    for table in ("instruction_columns", "line_columns", "loop_columns", "function_columns"):
        frames = changed(frames, table, slice(None), executed=float("nan"))
    page = open_page(frames)
    assert "Threads" in page.locator("#instruction-pane thead th").all_text_contents()
    assert page.locator("[data-by=executed]").count() == 1
    assert "n/a" not in str(page.locator("#instruction-pane tbody").first.text_content())


def test_loops_whose_dots_lie_on_each_other_are_all_reached(open_page: Open) -> None:
    frames = changed(source_frames(), "loop_columns", slice(0, 2), intensity=0.5, performance=1e12)
    page = open_page(frames)
    dots = "[1, 1.01, 99].map((intensity) => ({ intensity, performance: 1e12 }))"
    sizes = page.evaluate(f"[...discSizes({dots}, new Projection({{ x: [-2, 2], y: [11, 13] }}, 300, 300)).values()]")
    assert sizes[0] == sizes[2] < sizes[1]
    dot = page.locator("#chart .dot[data-loop='1']")
    assert str(dot.locator("title").text_content()).count("\nLoop ") == 2
    box = dot.locator(".target").bounding_box()
    assert box is not None
    place = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for loop in ("1", "0", "1"):
        page.mouse.click(*place)
        assert page.evaluate("location.hash") == f"#loop={loop}"
    page.locator("#chart .dot[data-loop='0']").press("Enter")
    assert page.url.endswith("#loop=0")


def test_loops_are_told_apart_in_the_chart_however_near_they_lie(open_page: Open) -> None:
    """By their numbers at least, beside their dots or in the key."""
    frames = changed(source_frames(), "loop_columns", slice(0, 2), intensity=0.5, performance=1e12)
    page = open_page(frames)
    for width in (1366, 390):
        page.set_viewport_size({"width": width, "height": 900})
        until(page, "document.querySelector('#chart svg').clientWidth === byId('chart').clientWidth")
        names = page.locator("#chart text.name").all_text_contents()
        told = {name.partition(":")[0] for name in names} | set(page.locator("#key .link").all_text_contents())
        assert {"0", "1"} <= told, width
    crowded = "namesOfLoops(loopDots(), new Projection({ x: [-2, 2], y: [11, 13] }, 20, 20), new Floor(20, 20))[1].length"
    assert page.evaluate(crowded) > 0
    page.evaluate("drawKey(view.launch.chart, loopDots().slice(0, 1), 0)")
    page.locator("#key .link", has_text="0").click()
    assert page.url.endswith("#loop=0")


def test_tables_of_loops_fit_and_what_a_narrow_window_lacks_is_told(open_page: Open) -> None:
    page = open_page(
        changed(with_local(source_frames()), "loop_columns", slice(1, 2), notes="never executed", performance=math.nan)
    )
    for width in (1400, 1260, 480):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("byId('loop-table').scrollWidth <= byId('loop-table').clientWidth"), width
        hidden = page.evaluate(
            "[...document.querySelectorAll('.pane th')].some((head) => head.textContent && !head.clientWidth)"
        )
        assert hidden == page.locator(".narrow").first.is_visible() == (width == 480)
        panes = ("#instruction-pane", "#instruction-pane th:last-child")
        pane, opcode = (page.locator(one).first.bounding_box() for one in panes)
        assert pane
        assert opcode
        assert opcode["x"] + 60 < pane["x"] + pane["width"], width
    below = [str(text) for text in page.locator("#loop-table .below").all_text_contents()]
    assert below[1].startswith("Performance 50.7 GFLOP/s, 5.62 % of roof at L1")
    assert "No performance: never executed" in below
    columns = "[...document.querySelectorAll('#loop-table thead th')].map((head) => head.textContent)"
    assert {"Samples", "Local bytes", "Trips"} <= set(page.evaluate(columns))
    bare = open_page(changed(source_frames(sampled=False), "loop_columns", slice(None), trips=math.nan))
    assert bare.evaluate(columns) == ["Loop", "", "Work", "L1 bytes", "FLOP/B"]
    assert set(
        bare.evaluate("[...document.querySelectorAll('#loop-table tr:not(.below)')].map((row) => row.cells.length)")
    ) == {5}


def test_a_search_finds_what_is_not_drawn(open_page: Open) -> None:
    """In all files and in all instructions, by the keyboard alone; after the last place the first."""
    page = open_page(longer(source_frames(), 560))
    drawn = page.locator("#instruction-pane tr[data-row]").count()
    page.locator("#source-pane").press("/")
    page.keyboard.type("0X22f00")
    assert page.locator("#found").text_content() == "1 place, Enter goes there"
    page.keyboard.press("Enter")
    assert page.locator("#found").text_content() == "1 of 1: 0x22f00"
    assert in_sight(page, "instruction", "tr.chosen")
    assert page.locator("#instruction-pane tr[data-row]").count() > drawn
    for words, places, found in _FINDS:
        page.locator("#find").fill(words)
        page.keyboard.press("Enter")
        assert page.locator("#found").text_content() == f"1 of {places}: {found}", words
    page.locator("#find").fill("float")
    lines = []
    for key in ("Enter", "Enter", "Shift+Enter", "Shift+Enter"):
        page.keyboard.press(key)
        lines.append(str(page.locator("#found").text_content()).partition(": ")[2])
    assert lines[0] == lines[2] != lines[1]
    assert lines[3] not in lines[:3]
    page.locator("#find").fill("weight(int")
    page.keyboard.press("Enter")
    assert page.locator("[role=tab][aria-selected=true]").text_content().startswith("weights.cuh")
    assert in_sight(page, "source", "tr.chosen")
    page.locator("#find").fill("<img")
    page.keyboard.press("Enter")
    assert page.locator("#found").text_content() == "not found"


# What is looked for, how many places there are, and the first.
_FINDS = (
    ("0040", 1, "0x40"),
    ("13", 1, "smooth.cu:13"),
    ("th.cu:13", 1, "smooth.cu:13"),
    ("Z3farf", 560 + 1, "far at smooth.cu:5"),
    ("long_scoreboard", 560, "0x80"),
)


def test_what_a_search_finds_is_in_sight(open_page: Open) -> None:
    """With the field itself, in a narrow window as well, and in a line that is wider than its pane."""
    far = f"{' ' * 200}gamma"
    texts = {**TEXTS, "smooth.cu": tuple(far if number == 13 else line for number, line in enumerate(TEXTS["smooth.cu"], 1))}
    page = open_page(source_frames(texts=texts))
    page.set_viewport_size({"width": 480, "height": 900})
    page.locator("#find").fill("gamma")
    page.keyboard.press("Enter")
    assert page.evaluate("byId('finder').getBoundingClientRect().top") == 0
    pane, words = page.evaluate(
        """[byId("source-pane"), [...CSS.highlights.get("found")][0]].map((one) => {
            const box = one.getBoundingClientRect();
            return [box.left, box.right];
        })"""
    )
    assert pane[0] <= words[0] < words[1] <= pane[1]
    page.keyboard.press("Escape")
    assert page.evaluate("byId('finder').getBoundingClientRect().top") != 0


def test_findings_link_their_loops(open_page: Open) -> None:
    page = open_page(source_frames())
    page.locator("#finding-list .link", has_text="loop 1").first.click()
    assert page.url.endswith("#loop=1")


def test_hostile_texts_stay_text(open_page: Open) -> None:
    frames = source_frames()
    texts = {**TEXTS, "smooth.cu": tuple(f"{HOSTILE}{line}" for line in SOURCE.splitlines())}
    page = open_page(replace(frames, texts=texts))
    assert page.locator("script").count() == 2
    assert str(line_row(page, 13).locator(".words").text_content()).startswith("<img src=x onerror=alert(1)></script><!--")
    page = open_page(with_texts(frames, HOSTILE))
    for place in range(page.locator("#instruction-pane tr.counted").count()):
        page.evaluate(f"choose({{ row: {place} }})")
    assert page.locator("img").count() == 0


def test_themes_and_paper(open_page: Open) -> None:
    page = open_page(source_frames(), theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator("#measures").is_hidden()
    cut = "[...document.querySelectorAll('.pane')].some((pane) => pane.scrollHeight > pane.clientHeight + 1)"
    assert not page.evaluate(cut)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("#source-pane tr.counted").count() == 8
    long = open_page(longer(source_frames(), 100))
    long.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert 40 <= long.locator("#instruction-pane tr[data-row]").count() < 250


def test_no_dot_stands_above_its_roof(open_page: Open) -> None:
    """In pixels of the chart: dots and diamonds against the lowest roof over them."""
    page = open_page(source_frames())
    dots = page.evaluate("view.launch.chart.dots.concat(loopDots()).map((dot) => [dot.performance, dot.attainable])")
    assert len(dots) == 3
    assert all(performance <= attainable for performance, attainable in dots if attainable is not None)
    top = "Math.min(...[...document.querySelectorAll('#chart .roof')].map((roof) => roof.getBoundingClientRect().top))"
    assert page.evaluate(
        f"[...document.querySelectorAll('#chart .dot')].every((dot) => dot.getBoundingClientRect().top > {top})"
    )


def test_extreme_counts(open_page: Open) -> None:
    """Nothing throws, and no dot stands outside of the chart."""
    page = open_page(extreme(source_frames()))
    for place in page.evaluate("[...view.loops.keys()]"):
        page.evaluate(f"choose({{ loop: {place} }})")
    for place in range(page.evaluate("view.count")):
        page.evaluate(f"choose({{ row: {place} }})")
    for chip in page.locator("#measures .chip").all():
        chip.click()
    assert page.evaluate(_OVERFLOWS) == []
    assert "NaN" not in page.evaluate("document.getElementById('chart').innerHTML")
    outside = """() => {
        const frame = document.querySelector("#chart .frame").getBoundingClientRect();
        return [...document.querySelectorAll("#chart .disc, #chart .diamond")].map((node) => node.getBoundingClientRect())
            .filter((box) => box.right < frame.left || box.left > frame.right || box.top > frame.bottom).length;
    }"""
    assert page.evaluate(outside) == 0
