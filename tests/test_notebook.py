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
from ncu_roofline import read_report, roofline
from tests.factory import complete, kernel, report

HOSTILE = "void k<script>alert(1)</script>(int)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A report with a kernel that nobody should believe."""
    return report(tmp_path / "r.ncu-rep", kernel(complete(), name=HOSTILE), *[kernel(complete(), name="axpy")] * 24)


def test_report_shows_its_launches_escaped(path: Path) -> None:
    with read_report(path) as opened:
        html = opened._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 1 + 20
    assert "and 5 more" in html


RESULTS: dict[str, tuple[bool, Callable[[Path], Any]]] = {
    "roofline": (True, roofline),
    "time_roofline": (True, lambda path: ncu_roofline.time_roofline(roofline(path, by="kernel"), launch_latency=4e-6)),
    "instruction_roofline": (True, lambda path: ncu_roofline.instruction_roofline(path)),
    "compare": (False, lambda path: ncu_roofline.compare(roofline(path), roofline(path))),
    "ranks": (False, lambda path: ncu_roofline.ranks([path])),
    "portability": (False, lambda _: _portability()),
}


def _portability() -> Any:
    import pandas as pd

    columns = {"platform": ["A", "B"], "gflop/s": [1.0, 2.0], "attainable_gflops": [2.0, 4.0]}
    return ncu_roofline.portability(pd.DataFrame({**columns, "application": ["<script>"] * 2}))


@pytest.mark.parametrize("name", RESULTS)
def test_results_show_chart_and_table(name: str, path: Path) -> None:
    pictured, make = RESULTS[name]
    html = make(path)._repr_html_()
    assert "<script" not in html
    assert "<pre>" in html
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert bool(picture) == pictured
    if picture:
        assert ElementTree.fromstring(base64.b64decode(picture[1])).tag.endswith("svg")


def test_everything_the_package_promises_is_there() -> None:
    assert all(getattr(ncu_roofline, name) is not None for name in ncu_roofline.__all__)


@pytest.mark.parametrize("name", ["instruction_roofline", "ranks"])
def test_each_name_alone_shows_its_result(name: str, path: Path) -> None:
    """In a process of its own: importing another one may have prepared the way."""
    argument = f"[{str(path)!r}]" if name == "ranks" else repr(str(path))
    code = f"from ncu_roofline import {name}\nprint({name}({argument})._repr_html_()[:4])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("<img", "<pre")
