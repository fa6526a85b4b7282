"""What notebooks show of reports and results."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import ncu_roofline
from ncu_roofline import roofline
from tests.factory import complete, kernel, report
from tests.made_up_code import smooth

HOSTILE = "void k<script>alert(1)</script>(int)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A report with a kernel that nobody should believe."""
    return report(tmp_path / "r.ncu-rep", kernel(complete(), name=HOSTILE), *[kernel(complete(), name="axpy")] * 24)


RESULTS: dict[str, tuple[bool, Callable[[Path], Any]]] = {
    "roofline": (True, roofline),
    "time_roofline": (True, lambda path: ncu_roofline.time_roofline(roofline(path, by="kernel"), launch_latency=4e-6)),
    "instruction_roofline": (True, lambda path: ncu_roofline.instruction_roofline(path)),
    "phase_roofline": (True, lambda path: ncu_roofline.phase_roofline(path)),
    "compare": (True, lambda path: ncu_roofline.compare(roofline(path), roofline(path))),
    "ranks": (False, lambda path: ncu_roofline.ranks([path])),
    "portability": (False, lambda _: _portability()),
    "source_roofline": (True, lambda path: ncu_roofline.source_roofline(report(path, smooth()))),
}


def _portability() -> Any:
    import pandas as pd

    columns = {"platform": ["A", "B"], "gflop/s": [1.0, 2.0], "attainable_gflops": [2.0, 4.0]}
    return ncu_roofline.portability(pd.DataFrame({**columns, "application": ["<script>"] * 2}))


@pytest.mark.parametrize("name", RESULTS)
def test_results_show_chart_and_table(name: str, path: Path) -> None:
    pictured, make = RESULTS[name]
    result = make(path)
    html = result._repr_html_()
    assert "<script" not in html
    assert html.count("<table>") == 1
    places = [html.index(tag) for tag in ("<p>", *(["<img"] if pictured else []), "<table>")]
    assert places == sorted(places)
    assert places[0] == 0
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert bool(picture) == pictured
    if picture:
        assert ElementTree.fromstring(base64.b64decode(picture[1])).tag.endswith("svg")


def test_a_roofline_answers_first_and_ranks_its_kernels(tmp_path: Path) -> None:
    short, long = (kernel(complete(seconds=time), name=name) for name, time in (("short", 1e-3), ("long", 5e-3)))
    html = roofline(report(tmp_path / "r.ncu-rep", short, long, long))._repr_html_()
    assert html.startswith("<p>2 kernels, 3 launches, 11 ms: ")
    rows = [re.findall("<td>(.*?)</td>", row) for row in html.split("<tr>")[2:]]
    assert [row[:3] for row in rows] == [["long", "2", "10 ms"], ["short", "1", "1 ms"]]


@pytest.mark.parametrize("name", ["instruction_roofline", "ranks"])
def test_each_name_alone_shows_its_result(name: str, path: Path) -> None:
    """In a process of its own: importing another one may have prepared the way."""
    argument = f"[{str(path)!r}]" if name == "ranks" else repr(str(path))
    code = f"from ncu_roofline import {name}\nprint({name}({argument})._repr_html_().count('<table>'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
