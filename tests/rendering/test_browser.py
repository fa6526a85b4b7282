"""Pages of all views in a headless Chromium, opened from a file with the network cut: what a reader does and sees (clicks),
that charts are the frames, and that nothing overlaps.

A file of clicks:

    #: Anything about what follows.
    $ open groups theme=dark link=level=l2       the page of a case (cases.toml), with options of `render`
    $ click #reset                               so do fill, press, select, check, uncheck (a selector, then a text)
    $ dot smooth_kernel dram                     the mouse goes to a dot; "hit" clicks it
    $ show dots(), state.levels.size             values of JavaScript, printed below with four digits
    $ text #tooltip                              what an element says; "saved SELECTOR" the file that a click gives

Besides: back, reload, until CONDITION, link TEXT, media print, width PIXELS, run JAVASCRIPT.
"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import published
from tests.golden import assert_golden
from tests.rendering.cases import made, options_of, rounded

if TYPE_CHECKING:
    from playwright.sync_api import Page


Open = Callable[..., "Page"]
ASKED = Path(__file__).with_name("asked.js").read_text(encoding="utf-8")


def asked(page: Page, expression: str) -> Any:
    return page.evaluate(f"(() => {{ {ASKED} return ({expression}); }})()")


def until(page: Page, condition: str) -> None:
    """Wait for a JavaScript condition; playwright's own wait evaluates text in the page, which the page's policy forbids."""
    for _ in range(600):  # half a minute, where the machine is busy
        if asked(page, condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {condition}")


def saved(page: Page, selector: str) -> str:
    """The text of the file that a click gives."""
    with page.expect_download() as download:
        page.locator(selector).evaluate("(one) => one.click()")  # it may be in a menu
    return Path(download.value.path()).read_text(encoding="utf-8")


def played(script: str, open_page: Open, folder: Path) -> str:
    """A file with what is seen of its steps."""
    page: Any = None
    lines = list[str]()
    for line in script.splitlines():
        if not line.startswith("$ "):
            lines += [*([""] if lines else []), line] if line.startswith("#:") else []
            continue
        name, _, rest = line[2:].partition(" ")
        lines.append(line)
        if name == "open":
            case, *options = shlex.split(rest)
            if page:
                page.close()
            page = open_page(made(case, folder), **options_of(options))
        elif name in ("show", "run"):
            found = asked(page, f"[{rest}]") if name == "show" else asked(page, f"(() => {{ {rest}; }})()")
            lines += [value if isinstance(value, str) else rounded(value) for value in found or ()]
        elif name in ("text", "saved"):
            seen = page.locator(rest).inner_text() if name == "text" else saved(page, rest)
            lines += [text for text in seen.splitlines() if text.strip()]
        elif name in ("dot", "hit"):
            at = asked(page, "place({}, {})".format(*map(json.dumps, shlex.split(rest))))
            (page.mouse.click if name == "hit" else page.mouse.move)(*at)
        elif name == "until":
            until(page, rest)
        elif name in ("back", "reload"):
            page.go_back() if name == "back" else page.reload()
        elif name == "media":
            page.emulate_media(media=rest)
        elif name == "width":
            page.set_viewport_size({"width": int(rest), "height": 900})
        elif name == "link":
            page.evaluate("(link) => { location.hash = link; }", rest)
        else:
            selector, *words = shlex.split(rest)
            where = page.locator(selector).first
            action = {"select": where.select_option}.get(name) or getattr(where, name)
            page.keyboard.press(selector) if name == "press" and not words else action(*words)
    return "\n".join(lines) + "\n"


pytestmark = pytest.mark.browser
HERE = Path(__file__).parent
LONG = pytest.mark.exhaustive
CLICKS = [pytest.param(one, marks=[LONG] * (one.stem != "roofline"), id=one.stem) for one in sorted(HERE.glob("clicks/*"))]


@pytest.mark.parametrize("path", CLICKS)
def test_what_is_seen(path: Path, open_page: Open, tmp_path: Path) -> None:
    assert_golden(path, played(path.read_text(encoding="utf-8"), open_page, tmp_path))


def traces(page: Page, chart: str, meta: str) -> list[dict[str, Any]]:
    return list(asked(page, f"of('{meta}', '{chart}').map(({{ x, y }}) => ({{ x: [...x], y: [...y] }}))"))


@LONG
def test_charts_are_the_frames(open_page: Open, tmp_path: Path) -> None:
    page = open_page(made("gpp", tmp_path))
    lines = traces(page, "chart", "sweep")
    levels = (published.INTENSITY_L1, published.INTENSITY_L2, published.INTENSITY_DRAM)
    assert [line["x"] for line in lines] == [pytest.approx(level, rel=1e-5) for level in levels]
    assert [line["y"] for line in lines] == [pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-5)] * 3
    frames = made("time-gpp", tmp_path)
    page = open_page(frames)
    points, machine = frames.points, frames.machines[frames.machines["level"] == "dram"].iloc[0]
    for chart, names in (("complexity", ("traffic", "work")), ("time", ("bandwidth_seconds", "compute_seconds"))):
        (found,) = traces(page, chart, "symbols")
        assert (found["x"], found["y"]) == tuple(pytest.approx(points[name].tolist(), rel=6e-6) for name in names)
    (filled,), (opened,) = traces(page, "both", "symbols"), traces(page, "both", "open")
    for axis in ("x", "y"):
        factors = [b / a for a, b in zip(filled[axis], opened[axis], strict=True)]
        assert factors == pytest.approx(points["inefficiency"].tolist(), rel=2e-5)
    for zoom in ({}, {"xaxis.range": [11, 12], "yaxis.range": [12, 13]}):
        page.evaluate("(zoom) => Plotly.relayout('both', zoom)", zoom)
        for name, roof in {"xaxis": machine["bandwidth"], "yaxis": machine["peak"]}.items():
            seconds, units = (page.evaluate(f"byId('both').layout.{one}.range") for one in (f"{name}2", name))
            assert [10 ** (b - a) for a, b in zip(seconds, units, strict=True)] == pytest.approx([roof] * 2, rel=2e-5)
    frames = made("phases", tmp_path)
    page = open_page(frames)
    (dots,) = traces(page, "path", "slices")
    assert dots["x"] == pytest.approx(frames.points["intensity"].tolist(), rel=1e-5)
    assert dots["y"] == pytest.approx(frames.points["performance"].tolist(), rel=1e-5)
    dram = frames.bands[(frames.bands["band"] == "dram") & (frames.bands["launch"] == 0)]
    assert traces(page, "bands", "band")[3]["y"] == pytest.approx(dram["utilisation"].tolist(), rel=1e-5)
    frames = made("run", tmp_path)
    page = open_page(frames)
    mine = [row for row in frames.operators.to_dict("records") if row["gpu"] == 0]
    (dots,) = traces(page, "roofline", "operators")
    for axis, name in (("x", "intensity"), ("y", "performance")):
        assert sorted(dots[axis]) == pytest.approx(sorted(row[name] for row in mine if row["flops"] > 0), rel=6e-6)
    rows = list(csv.DictReader(saved(page, "#save").splitlines()))
    assert sorted(float(row["time [s]"]) for row in rows) == pytest.approx(sorted(row["seconds"] for row in mine), rel=6e-6)


COMPARED = ("compared", "compared-steps", "compared-gpus", "compared-disjoint", "compared-many")
SOURCES = ("source", "source-no-lines", "source-no-text", "source-no-samples", "source-no-code", "source-extreme")


WIDTHS = {("crowded", *COMPARED): {"light": (1400, 800, 390), "dark": (800,)}}
WIDTHS |= {SOURCES: {"light": (1700, 1366, 800, 390), "dark": (1366,)}}
MORE = [pytest.param(case, themes, marks=LONG) for cases, themes in WIDTHS.items() for case in cases]


@pytest.mark.parametrize(("case", "themes"), [("crowded", {"light": (390,)}), *MORE])
def test_nothing_overlaps_or_overflows(open_page: Open, tmp_path: Path, case: str, themes: dict[str, tuple[int, ...]]) -> None:
    frames = made(case, tmp_path)
    names = frames.kernels["kernel"] if case == "crowded" else ()
    advice = [{"kernel": name, "title": "DRAM", "text": "fewer bytes"} for name in names]
    for theme, widths in themes.items():
        page = open_page(frames, theme=theme, advice=advice)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            if case == "crowded":
                until(page, "Math.abs(chart.layout.width - chart.parentElement.clientWidth) < 2")
                page.evaluate("document.querySelectorAll('#controls').forEach((node) => { node.open = true; })")
            elif case in SOURCES:
                until(page, "document.querySelector('#chart svg').clientWidth === byId('chart').clientWidth")
            assert asked(page, "crowding()") == [], (theme, width)
        page.close()
