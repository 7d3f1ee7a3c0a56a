"""A browser for pages, Chromium or Chrome on PATH. All tests of a process share it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from tests.machine import lacks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ABSENT = "no Chromium on PATH, so the page was not opened in a browser; make setup-dev installs one"
DESK = {"width": 1280, "height": 900}


def new_page(browser: Browser, scheme: Literal["light", "dark"] = "light", size: dict[str, int] = DESK) -> Page:
    """Open a page as a tab of one window. A window for each page would take a third more CPU."""
    context = browser.contexts[0] if browser.contexts else browser.new_context()
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    return page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser, without a window on the screen. The test is skipped if there is no browser."""
    from playwright.sync_api import sync_playwright

    executables = [path for path in map(shutil.which, BROWSERS) if path is not None]
    if not executables:
        lacks(ABSENT)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=executables[0], args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()
