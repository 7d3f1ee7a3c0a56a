"""A browser for the page: Debian's chromium or a relative of it, found on PATH."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from synthetic_run import SyntheticRun

from reports.run.page import write_page
from tests.machine import lacks

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ABSENT = "no Chromium on PATH, so the page was not opened in a browser; make setup-dev installs one"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        lacks(ABSENT)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def complete_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its page."""
    folder = SyntheticRun(seconds=5).write(tmp_path_factory.mktemp("results") / "complete")
    write_page(folder)
    return folder
