"""A page opened from disk, as a reader does, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

PHONE = {"width": 375, "height": 667}
DESK = {"width": 1280, "height": 900}
VIEWS = [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)]


@contextmanager
def opened(
    browser: Browser, folder: Path, scheme: str = "light", size: dict[str, int] = DESK, name: str = "report.html"
) -> Iterator[Page]:
    """The page, which must load without a word on the console and without a second request."""
    page = browser.new_page(color_scheme=scheme, viewport=size)
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
