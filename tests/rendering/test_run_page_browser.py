"""The page of a run in a headless Chromium, opened from a file with the network cut."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.formats.traces import read_trace
from tests.analyses.test_run import COPY, H100, HOSTILE, LATE, MM, SOFTMAX, document
from tests.rendering.browser import Open, until

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]


@pytest.fixture
def made(tmp_path: Path) -> Run:
    """Two GPUs: one with dots, one with a copy only."""
    second = [{**one, "args": {**one["args"], "device": 1}} if one["cat"] == "kernel" else one for one in COPY]
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(document(MM, SOFTMAX, LATE, HOSTILE, second, gpus=(H100, {**H100, "id": 1}))))
    return run_of([read_trace(path)], full_paths=False)


def rows(page: Any) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('#table tbody th')].map((cell) => cell.textContent)")
    return found


def test_dots_bars_and_rows_are_those_of_the_frames(open_page: Open, made: Run, tmp_path: Path) -> None:
    page = open_page(made)
    mine = [row for row in made.operators.to_dict("records") if row["gpu"] == 0]
    dots = page.evaluate("roofline.data.filter(({ meta }) => meta === 'operators').map(({ x, y }) => [[...x], [...y]])[0]")
    drawn = [(row["intensity"], row["performance"]) for row in mine if row["flops"] > 0]
    assert sorted(dots[0]) == pytest.approx(sorted(x for x, _ in drawn), rel=6e-6)
    assert sorted(dots[1]) == pytest.approx(sorted(y for _, y in drawn), rel=6e-6)
    assert len(page.query_selector_all("#times button")) == len(mine) + 1  # and how busy the GPU was
    assert rows(page)[0] == "aten::_softmax"
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "rows.csv")
    saved = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert sorted(float(row["time [s]"]) for row in saved) == pytest.approx(sorted(row["seconds"] for row in mine), rel=6e-6)


def test_choices_are_in_the_address(open_page: Open, made: Run) -> None:
    page = open_page(made)
    page.fill("#query", "1024,1024")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    page.keyboard.press("Tab")
    page.click("#times button:not([disabled])")
    assert "Show all operators" in page.inner_text("#details")
    assert "q=1024%2C1024" in page.url
    assert "operator=" in page.url
    page.keyboard.press("Escape")
    assert page.is_hidden("#details")
    page.click("[data-sort=calls]")
    assert "sort=" in page.url
    page.click("#reset")
    assert len(rows(page)) == 4


def test_a_gpu_without_dots_has_its_bars(open_page: Open, made: Run) -> None:
    page = open_page(made, "run=1")
    assert rows(page) == ["aten::copy_"]
    assert page.is_hidden("#roofline-card")
    page.select_option("select[data-pick=GPU]", "0")
    assert page.is_visible("#roofline-card")
    assert open_page(made, "run=length&operator=x&sort=none&theme=odd").is_visible("#roofline-card")


@pytest.mark.parametrize("width", [480, 360])
def test_a_phone_need_not_scroll_sideways(open_page: Open, made: Run, width: int) -> None:
    page = open_page(made, theme="dark")
    page.set_viewport_size({"width": width, "height": 800})
    until(page, f"document.documentElement.scrollWidth <= {width}")
