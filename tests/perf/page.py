"""CPU time that a page of 3,000 kernels takes of a browser's main thread: to load, and for each thing a reader does.

    CHROMIUM=/usr/bin/chromium python -m tests.perf.page

CPU time, as the wall clock of a busy machine says little.  Aims: 2 s to load, 0.2 s for what a reader does.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

from ncu_roofline.analyses import render
from tests.rendering.conftest import ARGUMENTS
from tests.rendering.frames import many

AIMS = {"load": 2.0}
AIM = 0.2
REPEATS = 5
DEEDS = {
    "filter": ("change(() => { state.query = 'e'; }, true)", "change(() => { state.query = 's'; }, true)"),
    "level off or on": ("change(() => flip(state.levels, 'l2'))",),
    "zoom": (
        "Plotly.relayout(chart, { 'xaxis.range': [0, 1], 'yaxis.range': [11, 13] })",
        "change(() => { state.view = null; })",
    ),
    "one kernel alone": ("isolate(ORDER[3].index)",),
}


def cpu(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def cost(session: CDPSession, page: Page, deed: str) -> float:
    """Seconds of a deed up to the frame that shows it."""
    before = cpu(session)
    page.evaluate(
        f"new Promise((done) => {{ {deed}; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))); }})"
    )
    return cpu(session) - before


def measured(file: Path) -> dict[str, float]:
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        page = playwright.chromium.launch(executable_path=path, args=ARGUMENTS).new_page(
            viewport={"width": 1400, "height": 900}
        )
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = cpu(session)
        page.goto(file.as_uri())
        found = {"load": cpu(session) - before}
        page.evaluate("change(() => { state.top = 0; })")
        for name, deeds in DEEDS.items():
            found[name] = min(cost(session, page, deed) for deed in deeds * REPEATS)
        return found


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_bytes(render(many(30), "html"))
        found = measured(file)
    for name, seconds in found.items():
        print(f"{name:20} {seconds:6.3f} s, aim {AIMS.get(name, AIM)} s")
    return int(any(seconds > AIMS.get(name, AIM) for name, seconds in found.items()))


if __name__ == "__main__":
    sys.exit(main())
