"""What notebooks show of reports and rooflines."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

from ncu_roofline import read_report, roofline
from tests.factory import complete, kernel, report

HOSTILE = "void k<script>alert(1)</script>(int)"


def test_report_shows_its_launches_escaped(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel(complete(), name=HOSTILE), *[kernel(complete(), name="axpy")] * 24)
    with read_report(path) as opened:
        html = opened._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 1 + 20
    assert "and 5 more" in html


def test_roofline_shows_chart_and_table(tmp_path: Path) -> None:
    result = roofline(report(tmp_path / "r.ncu-rep", kernel(complete(), name=HOSTILE)))
    html = result._repr_html_()
    assert "<script" not in html
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert picture
    assert ElementTree.fromstring(base64.b64decode(picture[1])).tag.endswith("svg")
    assert "DRAM" in html
