"""The site of all pages: search works from the disk, and no page asks the network for anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import new_page

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_search_works_from_the_disk_without_a_network(site: Path, browser):
    page = new_page(browser)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.get_by_role("textbox", name="Search").click()
    page.get_by_role("textbox", name="Search").press_sequentially("coordinated omission")
    first = page.locator(".md-search-result__item a").first
    first.wait_for()
    assert "lab.html" in [
        href.partition("?")[0].rpartition("/")[2]
        for href in page.locator(".md-search-result__item a").evaluate_all("links => links.map(link => link.href)")
    ]
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()
