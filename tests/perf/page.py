"""CPU time of a browser's main thread: to load the page of a report and that of 3,000 kernels, and for what a reader does.

    CHROMIUM=/usr/bin/chromium python -m tests.perf.page

CPU time, as the wall clock of a busy machine says little; of a deed the least of several.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import CDPSession, sync_playwright

from ncu_roofline.analyses import render
from tests.rendering.cases import gpp
from tests.rendering.conftest import ARGUMENTS
from tests.rendering.frames import many

AIMS = {"load a report": 0.6, "load 3,000 kernels": 1.2}
AIM, REPEATS = 0.2, 5
DEEDS = {
    "filter": ("change(() => { state.query = 'e'; }, true)", "change(() => { state.query = 's'; }, true)"),
    "level off or on": ("change(() => flip(state.levels, 'l2'))",),
    "zoom": (
        "Plotly.relayout(chart, { 'xaxis.range': [0, 1], 'yaxis.range': [11, 13] })",
        "change(() => { state.view = null; })",
    ),
    "one kernel alone": ("isolate(ORDER[3].index)",),
}
SHOWN = "new Promise((done) => {{ {}; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))); }})"


def cpu(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def main() -> int:
    found = dict[str, float]()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        for name, frames in zip(AIMS, (gpp(), many(30)), strict=True):
            started = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
            page = started.new_page(viewport={"width": 1400, "height": 900})
            session, file = page.context.new_cdp_session(page), Path(folder, "page.html")
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            file.write_bytes(render(frames, "html"))
            before = cpu(session)
            page.goto(file.as_uri())
            found[name] = cpu(session) - before
        page.evaluate("change(() => { state.top = 0; })")
        for name, deeds in DEEDS.items():
            for deed in deeds * REPEATS:
                before = cpu(session)
                page.evaluate(SHOWN.format(deed))
                found[name] = min(found.get(name, 1e9), cpu(session) - before)
    for name, seconds in found.items():
        print(f"{name:20} {seconds:6.3f} s, aim {AIMS.get(name, AIM)} s")
    return int(any(seconds > AIMS.get(name, AIM) for name, seconds in found.items()))


if __name__ == "__main__":
    sys.exit(main())
