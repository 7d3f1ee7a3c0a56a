"""A browser for pages: Debian's chromium or a relative of it, found on PATH; all tests of a process share it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.machine import lacks

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ABSENT = "no Chromium on PATH, so the page was not opened in a browser; make setup-dev installs one"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        lacks(ABSENT)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()
