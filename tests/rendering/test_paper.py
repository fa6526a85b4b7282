"""Pictures on paper of many sizes: every letter can be read, is inside, and covers no other; what they are made of."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.backends.backend_agg import RendererAgg

from ncu_roofline import instruction_roofline, roofline, time_roofline
from ncu_roofline.analyses import render
from ncu_roofline.analyses.hierarchical.picture import figure
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.rendering.paper import DEFAULT, PRESETS, Paper, PaperError, length, paper_of
from ncu_roofline.rendering.picture import settings
from tests.rendering.frames import make_roofline
from tests.rendering.test_picture import drawn, faults

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json"
SVG = "{http://www.w3.org/2000/svg}"


def frames_of(name: str) -> tuple[Any, Any]:
    """What draws some frames, and the frames."""
    if name == "time":
        return time_figure, time_roofline(roofline(REPORT, CEILINGS), launch_latency=4.2e-6)
    made = {
        "sweep": lambda: roofline(REPORT, CEILINGS, trajectory="nvtx"),
        "bars": lambda: make_roofline(0, missing=4, zero_flop=3),
        "one": lambda: make_roofline(1),
        "many": lambda: make_roofline(30, ("fp64", "fp32", "tensor.fp16"), odd=True, missing=2, levels=("l1", "l2", "dram")),
        "types": lambda: make_roofline(8, ("fp64", "fp32", "fp16", "tensor.fp16", "tensor.tf32", "tensor.int8"), chip="h100"),
    }
    return figure, made[name]()


def cases(papers: Iterable[Any], *default: tuple[Any, str]) -> list[Any]:
    """Every paper with every kind of frames: all but the default ones in the exhaustive run."""
    pairs = product(papers, ("sweep", "bars", "one", "many", "types", "time"))
    return [pytest.param(*pair, marks=[] if pair in default else pytest.mark.exhaustive) for pair in pairs]


@pytest.mark.parametrize(
    ("width", "name"), cases((2.5, 3.3, 5.0, 7.16, 10.0, 14.0), (2.5, "sweep"), (14.0, "types"), (3.3, "bars"))
)
def test_texts_are_large_enough_inside_and_apart_at_any_width(width: float, name: str) -> None:
    make, frames = frames_of(name)
    made, texts = drawn(frames, make, width=f"{width}in", font=8, dpi=100)
    assert made.get_size_inches()[0] == pytest.approx(width)
    assert len(texts) > 8
    assert faults(made, texts) == []


@pytest.mark.parametrize(("preset", "name"), cases(PRESETS, ("slide", "one"), ("column", "time")))
def test_texts_are_large_enough_inside_and_apart_on_each_preset(preset: str, name: str) -> None:
    make, frames = frames_of(name)
    made, texts = drawn(frames, make, preset=preset, dpi=100)
    width, height = made.get_size_inches() * 72
    assert width == pytest.approx(PRESETS[preset].width)
    assert not PRESETS[preset].height or height == pytest.approx(PRESETS[preset].height)
    assert faults(made, texts) == []


def test_the_check_of_texts_sees_faults() -> None:
    made, texts = drawn(make_roofline(2))
    assert faults(made, texts) == []
    texts[0].set_fontsize(5)
    texts[1].set_position((-100, 100))
    assert {fault.rpartition(" is ")[2].rpartition(" has ")[2] for fault in faults(made, texts)} >= {"outside", "5 points"}


@pytest.mark.parametrize(
    ("text", "points"),
    [("3.3in", 237.6), ("84mm", 238.11), ("8.4 cm", 238.11), ("240pt", 240.0), ("800px", 600.0), (".5in", 36.0)],
)
def test_lengths(text: str, points: float) -> None:
    assert length(text) == pytest.approx(points, abs=0.01)


@pytest.mark.parametrize("text", ["", "3.3", "in", "-3in", "1e3in", "3.3 feet", "nan in", "3,3in", "\u0663in"])
def test_no_lengths(text: str) -> None:
    with pytest.raises(PaperError, match=r"is not a length such as 3\.3in"):
        length(text)


def test_a_preset_is_where_to_begin() -> None:
    assert paper_of() == DEFAULT
    assert paper_of(preset="column") == Paper(3.3 * 72, 0.0, 8.0, 300.0)
    assert paper_of(preset="column", font=7, dpi=600) == Paper(3.3 * 72, 0.0, 7.0, 600.0)
    assert paper_of(3.3, "50mm") == Paper(3.3 * 72, pytest.approx(141.73, abs=0.01), DEFAULT.font, DEFAULT.dpi)
    assert paper_of("800px", dpi=200).width == pytest.approx(288)
    assert paper_of("3.3IN").width == paper_of(3.3).width


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"width": "0in"}, "width 0 is not between 1.5 and 60 inches"),
        ({"width": float("nan")}, "width nan is not between"),
        ({"height": "0.1in"}, "height 0.1 is not between 1.5 and 200 inches"),
        ({"font": 5}, "font 5 is not between 6 and 72 points"),
        ({"dpi": 0}, "dpi 0 is not between 36 and 2400 dots per inch"),
        ({"dpi": 2401}, "dpi 2401 is not between 36 and 2400 dots per inch"),
        ({"dpi": 10**400}, "dpi inf is not between 36 and 2400 dots per inch"),
        ({"dpi": "x"}, "dpi 'x' is no number of dots per inch"),
        ({"width": 10**400}, "width inf is not between 1.5 and 60 inches"),
        ({"width": [3]}, r"width \[3\] is no number of inches"),
        ({"preset": "poster"}, "preset 'poster' is not one of column, page, slide"),
        ({"width": "2in", "font": 20}, "width 2in has no room for letters of 20 points"),
    ],
)
def test_papers_that_nobody_can_draw_on(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(PaperError, match=words):
        paper_of(**asked)


def test_a_height_that_is_too_low_and_dots_that_are_too_many() -> None:
    with settings(), pytest.raises(PaperError, match=r"height 1\.5in has no room for the picture"):
        figure(make_roofline(3), height="1.5in", font=14)


@pytest.mark.parametrize("view", ["roofline", "time"])
def test_dots_that_are_too_many_are_refused_before_there_are_any(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    canvases: list[float] = []
    start = RendererAgg.__init__

    def watched(self: RendererAgg, width: float, height: float, dpi: float) -> None:
        canvases.append(width * height)
        start(self, width, height, dpi)

    monkeypatch.setattr(RendererAgg, "__init__", watched)
    frames = {"time": lambda: time_roofline(roofline(REPORT)), "instruction": lambda: instruction_roofline(REPORT)}.get(
        view, lambda: roofline(REPORT)
    )()
    others: list[dict[str, Any]] = [{"width": "60in", "dpi": 2400}, {"width": "60in", "height": "200in", "dpi": 100}]
    for paper in [{"dpi": 2400}, *(others if view == "time" else [])]:
        with pytest.raises(PaperError, match=r"dpi \d+ makes \d+ million dots of it, more than 100"):
            render(frames, "png", **paper)
    assert 0 < max(canvases) < 1e6


@pytest.mark.exhaustive
def test_papers_of_many_inches_and_no_dots() -> None:
    assert b'width="4320pt" height="14400pt"' in render(make_roofline(1), "svg", width="60in", height="200in", font=72)


@pytest.mark.exhaustive
def test_of_a_height_notes_and_panels_give_way_and_are_told() -> None:
    frames = make_roofline(4, ("fp64", "tensor.fp16", "tensor.int8"))
    free, texts = drawn(frames)
    assert sum(axes.get_xscale() == "log" for axes in free.axes) == 3
    low, texts = drawn(frames, width="5in", height="3.6in")
    assert low.get_size_inches().tolist() == pytest.approx([5.0, 3.6])
    assert sum(axes.get_xscale() == "log" for axes in low.axes) == 1
    assert "2 further panels left out" in " ".join(text.get_text() for text in texts)


def test_svg_has_real_text_in_fonts_that_readers_have() -> None:
    frames = make_roofline(3)
    root = ET.fromstring(render(frames, "svg", width="800px"))
    assert float(root.get("width", "").removesuffix("pt")) == pytest.approx(600)
    texts = list(root.iter(f"{SVG}text"))
    said = " ".join("".join(text.itertext()) for text in texts)
    for word in ("Roofline", "FP64 FMA 8.67 TFLOP/s", "Arithmetic intensity [FLOP/B]", *frames.points.kernel.unique()):
        assert word in said
    families = {match for text in texts for match in re.findall(r"font(?:-family)?:[^;]*", text.get("style", ""))}
    if tuple(map(int, matplotlib.__version__.split(".")[:2])) >= (3, 6):  # before, a text had one family
        assert any("DejaVu Sans" in family and family.endswith("sans-serif") for family in families)
    assert not list(root.iter(f"{SVG}use")) or all(
        "DejaVu" not in use.get("{http://www.w3.org/1999/xlink}href", "") for use in root.iter(f"{SVG}use")
    )


def test_pdf_embeds_its_fonts_with_their_letters() -> None:
    data = render(make_roofline(3), "pdf", preset="column")
    assert b"/FontFile2" in data
    assert b"/Type3" not in data
    assert b"/Subtype /Type0" in data or b"/Subtype /TrueType" in data
    assert b"/ToUnicode" in data
    assert b"CreationDate" not in data
