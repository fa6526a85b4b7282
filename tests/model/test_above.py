"""A dot above a roof is explained wherever it is shown; `launches.toml` has what is said of single launches."""

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
from tests.factory import A100, Metrics, complete, kernel, report, timing
from tests.instruction_factory import executed

HIGH = 2_000_000_000  # bytes in a millisecond, where DRAM gives 1.5552e9


def drawn(tmp_path: Path, *metrics: Metrics, **options: Any) -> Any:
    return roofline(report(tmp_path / "r.ncu-rep", *(kernel(one, name=f"k{i}()") for i, one in enumerate(metrics))), **options)


def test_the_sentence_on_all_of_them(tmp_path: Path) -> None:
    below = drawn(tmp_path, complete())
    assert not any(ABOVE in note for note in (*below.points["notes"], *below.kernels["notes"]))
    assert above_note(below) == ""
    without_points = drawn(tmp_path, {**A100, **timing(), "dram__bytes.sum": HIGH})
    assert above_note(without_points).startswith("1 kernel stands above a roof. k0: 128.6 % of the 1.56 TB/s of DRAM")
    many = drawn(tmp_path, *({**complete(), "dram__bytes.sum": HIGH + i * 10**8} for i in range(12)), complete())
    assert above_note(many).startswith("12 dots stand above a roof. The highest is k11, FP64: ")
    for made in (figure(many), time_figure(time_roofline(many))):
        caption = " ".join(text.get_text() for text in made.findobj(Text))
        assert re.search("12 (dots|kernels) stand above a roof.*possible if", caption)


@pytest.mark.parametrize(("share", "reason"), [(1.015, "two honest measurements differ by up to 2%"), (1.2, "in theory 1.56")])
def test_a_measured_roof_may_be_passed_by_a_little(tmp_path: Path, share: float, reason: str) -> None:
    path, device = tmp_path / "ceilings.json", {"name": "NVIDIA A100-SXM4-40GB", "cc": "8.0"}
    entry = {"id": "dram", "value": 1e12 / share, "unit": "B/s", "clock_hz": 1.41e9}
    path.write_text(json.dumps({"schema": "ert-ceilings", "schema_version": 1, "device": device, "ceilings": [entry]}))
    points = drawn(tmp_path, {**complete(), "dram__bytes.sum": 10**9}, ceilings=read_ceilings(path)).points
    note = points.set_index("level").loc["dram", "notes"]
    assert f"{100 * share:.4g} % of the" in note
    assert "(measured roof)" in note
    assert reason in note


@pytest.mark.parametrize("view", ["roofline", "time", "instruction"])
def test_every_view_explains(tmp_path: Path, view: str) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), **executed(10**6), "dram__bytes.sum": HIGH}))
    for output in ("text", "json", "html"):
        target = tmp_path / f"out.{output}"
        assert main(["render", str(file), "--view", view, "--format", output, "-o", str(target)]) == 0
        shown = re.sub(r"<[^>]*>|\s+", " ", target.read_text(encoding="utf-8"))
        # Rows of times: what is above a roof there is faster than it.
        times = (output, view) == ("json", "time")
        assert re.search("faster than its roof allows" if times else r"128\.6 % of the .*, possible if ", shown), output
