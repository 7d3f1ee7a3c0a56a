"""Opens a page from disk in a browser, in the size of a desk or of a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.browser import DESK, new_page

PHONE = {"width": 375, "height": 667}


@contextmanager
def opened(
    browser: Browser, folder: Path, scheme: str = "light", size: dict[str, int] = DESK, name: str = "report.html"
) -> Iterator[Page]:
    """Yield the page, which must load without a message on the console and without a second request."""
    page = new_page(browser, scheme, size)
    messages: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.on("request", lambda request: requested.append(request.url))
    page.goto((folder / name).as_uri())
    yield page
    page.close()
    assert messages == []
    assert requested == [(folder / name).as_uri()]
