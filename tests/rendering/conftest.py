"""The browser that all tests of pages share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ncu_roofline.analyses import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium: started once, each test has a context of its own."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright (pip install playwright)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page of a result, at a ``link`` behind its #; at the end nothing may have been logged, thrown or fetched."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1366, "height": 900}, offline=True, accept_downloads=True)

    def route(request: Any) -> None:
        if request.request.url.startswith(("file:", "data:", "blob:")):
            request.continue_()
        else:
            complaints.append(f"request: {request.request.url}")
            request.abort()

    def open_file(result: Any, link: str = "", **options: Any) -> Page:
        file = tmp_path / "page.html"
        file.write_bytes(render(result, "html", **options))
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.goto(f"{file.as_uri()}#{link}" if link else file.as_uri())
        return page

    context.route("**/*", route)
    yield open_file
    context.close()
    assert complaints == []
