"""A dot above a roof is explained wherever it is shown; `launches.toml` has what is said of single launches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.text import Text

from ncu_roofline import roofline
from ncu_roofline.analyses.hierarchical.captions import above_note
from ncu_roofline.analyses.hierarchical.picture import figure
from ncu_roofline.analyses.time.frames import time_roofline
from ncu_roofline.analyses.time.picture import time_figure
from ncu_roofline.model.points import ABOVE
from tests.cli.command import Command
from tests.factory import A100, Metrics, complete, kernel, report, timing
from tests.instruction_factory import executed

HIGH = 2_000_000_000  # bytes in a millisecond, where DRAM gives 1.5552e9


def drawn(tmp_path: Path, *metrics: Metrics) -> Any:
    return roofline(report(tmp_path / "r.ncu-rep", *(kernel(one, name=f"k{i}()") for i, one in enumerate(metrics))))


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


def test_every_view_and_format_explains(tmp_path: Path, run: Command) -> None:
    file = report(tmp_path / "r.ncu-rep", kernel({**complete(), **executed(10**6), "dram__bytes.sum": HIGH}))
    for output, view in ((o, v) for o in ("text", "json", "html") for v in ("roofline", "time", "instruction")):
        target = tmp_path / f"{view}.{output}"
        assert run("render", file, "--view", view, "--format", output, "-o", target).code == 0
        shown = re.sub(r"<[^>]*>|\s+", " ", target.read_text(encoding="utf-8"))
        # Rows of times: what is above a roof there is faster than it.
        times = (output, view) == ("json", "time")
        assert re.search("faster than its roof allows" if times else r"128\.6 % of the .*, possible if ", shown), output
