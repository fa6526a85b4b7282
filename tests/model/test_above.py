"""A dot above a roof is explained wherever it is shown, with the numbers and with what can make it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

from ncu_roofline import roofline
from ncu_roofline.analyses.hierarchical.captions import above_note
from ncu_roofline.analyses.hierarchical.picture import figure
from ncu_roofline.analyses.time.frames import time_roofline
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.cli import main
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.model.points import ABOVE
from tests.factory import A100, complete, kernel, report, timing
from tests.instruction_factory import executed

HIGH = 2_000_000_000  # bytes in a millisecond, where DRAM gives 1.5552e9


def drawn(tmp_path: Path, *metrics: Any, **options: Any) -> Any:
    return roofline(report(tmp_path / "r.ncu-rep", *(kernel(one, name=f"k{i}()") for i, one in enumerate(metrics))), **options)


def notes(tmp_path: Path, *metrics: Any, **options: Any) -> list[str]:
    """Of dots above their roof."""
    points = drawn(tmp_path, *metrics, **options).points
    above = points["fraction"] > 1
    assert [ABOVE in note for note in points["notes"]] == above.tolist()
    return [note[note.index(ABOVE) :] for note in points["notes"][above]]


def ceilings(tmp_path: Path, value: float) -> Any:
    path = tmp_path / "ceilings.json"
    entry = {"id": "dram", "value": value, "unit": "B/s", "clock_hz": 1.41e9}
    device = {"name": "NVIDIA A100-SXM4-40GB", "cc": "8.0"}
    path.write_text(json.dumps({"schema": "ert-ceilings", "schema_version": 1, "device": device, "ceilings": [entry]}))
    return read_ceilings(path)


def test_nothing_is_said_below_the_roof(tmp_path: Path) -> None:
    below = drawn(tmp_path, complete())
    assert not any(ABOVE in note for note in (*below.points["notes"], *below.kernels["notes"]))
    assert above_note(below) == ""


def test_a_little_above_never_reads_as_100_percent(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, {**complete(), "dram__bytes.sum": round(1555200 * 1000 * 1.0003)})
    assert note.startswith(f"{ABOVE} 0.03 % above the 1 TFLOP/s attainable at DRAM (theoretical roof), possible if ")


def test_the_numbers_are_in_it(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, {**complete(), "dram__bytes.sum": HIGH})
    assert note.startswith(f"{ABOVE} 128.6 % of the 778 GFLOP/s attainable at DRAM (theoretical roof), possible if ")
    assert "several passes" in note
    assert "too short" not in note
    assert "clock" not in note


def test_a_short_launch_is_one_reason(tmp_path: Path) -> None:
    for note in notes(tmp_path, complete(seconds=1e-5)):
        assert "a launch of 10 µs is too short (below 20 µs)" in note


def test_a_low_clock_is_one_reason(tmp_path: Path) -> None:
    metrics = {**complete(clock=0.7e9), "dram__bytes.sum": HIGH}
    (note,) = notes(tmp_path, metrics)
    assert "above the clock of 700 MHz at which roofs stand (up to 1.41 GHz)" in note


@pytest.mark.parametrize(("share", "reason"), [(1.015, "two honest measurements differ by up to 2%"), (1.2, "in theory 1.56")])
def test_a_measured_roof_may_be_passed_by_a_little(tmp_path: Path, share: float, reason: str) -> None:
    metrics = {**complete(), "dram__bytes.sum": 1_000_000_000}
    (note,) = notes(tmp_path, metrics, ceilings=ceilings(tmp_path, 1e12 / share))
    assert f"{100 * share:.4g} % of the" in note
    assert "(measured roof)" in note
    assert reason in note


def test_a_level_of_a_kernel_without_dots_is_explained_too(tmp_path: Path) -> None:
    seen = drawn(tmp_path, {**A100, **timing(), "dram__bytes.sum": HIGH})
    assert not len(seen.points)
    assert f"{ABOVE} 128.6 % of the 1.56 TB/s of DRAM, possible if " in seen.kernels["notes"][0]
    assert above_note(seen).startswith("1 kernel stands above a roof. k0: 128.6 % of the 1.56 TB/s of DRAM")


def test_the_highest_of_many_speaks_for_them(tmp_path: Path) -> None:
    high = [{**complete(), "dram__bytes.sum": HIGH + i * 10**8} for i in range(30)]
    text = above_note(drawn(tmp_path, *high, complete()))
    assert text.startswith("30 dots stand above a roof. The highest is k29, FP64: ")


@pytest.mark.parametrize("output", ["text", "md", "json", "html"])
@pytest.mark.parametrize("view", ["roofline", "time", "instruction"])
def test_every_format_of_every_view_explains(tmp_path: Path, output: str, view: str) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), **executed(10**6), "dram__bytes.sum": HIGH}))
    target = tmp_path / "out"
    assert main(["render", str(file), "--view", view, "--format", output, "-o", str(target)]) == 0
    written = re.sub(r"<[^>]*>|\s+", " ", target.read_text())
    if (output, view) == ("json", "time"):  # whose rows are of times: what is above a roof there is faster than it
        assert "faster than its roof allows" in written
    else:
        assert re.search(r"128\.6 % of the .*, possible if ", written)


@pytest.mark.parametrize("view", ["roofline", "time"])
def test_the_caption_of_a_picture_explains(tmp_path: Path, view: str) -> None:
    seen = drawn(tmp_path, *({**complete(), "dram__bytes.sum": HIGH} for _ in range(12)))
    made = time_figure(time_roofline(seen)) if view == "time" else figure(seen)
    caption = " ".join(text.get_text() for text in made.findobj(Text))
    assert re.search("12 (dots|kernels) stand above a roof", caption)
    assert "possible if" in caption
