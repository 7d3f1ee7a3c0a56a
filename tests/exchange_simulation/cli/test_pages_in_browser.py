"""Each kind of page, made of recorded folders, in a real Chromium: to be read, and to be touched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator

from exchange_simulation.cli.main import main
from exchange_simulation.reports.drawing.canvas import WIDTH
from tests.browser import DESK, new_page
from tests.exchange_simulation.cli.test_recorded_results import unpack

PAGES = {
    "run-zeromq": "report.html",
    "compare": "comparison.html",
    "nagle": "comparison.html",
    "sweep": "comparison.html",
    "capacity": "capacity.html",
    "bench-request-reply": "bench.html",
    "suite": "bench.html",
}
TOUCHED = {name: page for name, page in PAGES.items() if name not in {"run-zeromq", "compare", "nagle"}}
"""The other pages have too few points for a chart; test_page_in_browser.py touches a longer run's page."""
HEIGHTS = {"run-zeromq": 1800, "compare": 2500, "sweep": 2500, "nagle": 3000, "capacity": 2500, "suite": 4000}
"""The greatest height of a page on the desk screen, in px, with all details closed."""
SIZES = {"desk": DESK, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = unpack(tmp_path_factory.mktemp("recorded"))
    for name in PAGES:
        done = CliRunner().invoke(main, ["report", str(results / name), "--no-spark"])
        assert done.exit_code == 0, done.output
    return results


@pytest.mark.parametrize(("name", "file"), PAGES.items())
def test_nothing_is_wider_than_the_screen(browser: Browser, reported: Path, name: str, file: str) -> None:
    page = new_page(browser, size=SIZES["phone"])
    page.goto((reported / name / file).as_uri())
    for size, scheme in product(("phone", "desk"), ("light", "dark")):
        page.set_viewport_size(SIZES[size])
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size]["width"], (size, scheme)
        if size == "desk" and name in HEIGHTS:
            assert page.evaluate("document.documentElement.scrollHeight") <= HEIGHTS[name]
    page.close()


@pytest.mark.parametrize(("name", "file"), TOUCHED.items())
def test_the_pointer_shows_on_every_chart_the_numbers_behind_it(
    browser: Browser, reported: Path, name: str, file: str
) -> None:
    page = new_page(browser)
    page.goto((reported / name / file).as_uri())
    for details in page.locator("details").all():
        details.evaluate("one => one.open = true")
    charts = page.locator("figure:has(svg[data-values])").all()
    assert len(charts) > 0
    assert len(charts) == page.locator("figure svg[data-x]").count(), "each chart with an axis has its values"
    for chart in charts:
        values = json.loads(chart.locator("svg").get_attribute("data-values") or "{}")
        series = next(iter(values))
        place, x, *numbers = values[series][0]
        point_at(chart, place)
        heading, *lines = chart.locator(".hover").inner_text().splitlines()
        assert number_in(heading) == pytest.approx(x, rel=0.001)
        shown = next(line for line in lines if line.startswith(series))
        if numbers:
            assert number_in(shown.removeprefix(f"{series}: ")) == pytest.approx(numbers[0], rel=0.006)
    page.close()


def test_a_comparison_s_page_shows_the_numbers_of_its_record(browser: Browser, reported: Path) -> None:
    record = json.loads((reported / "sweep" / "comparison.json").read_bytes())
    page = new_page(browser)
    page.goto((reported / "sweep" / "comparison.html").as_uri())
    chart = page.locator("figure:has(svg[data-values])", has_text="p50").first
    values = json.loads(chart.locator("svg").get_attribute("data-values") or "{}")
    for arm in record["arms"]:
        rate_per_s = arm["settings"]["orders_per_s"]
        points = values[arm["contender"]]
        (p50_us,) = [numbers[0] for _place, x, *numbers in points if x == rate_per_s]
        assert p50_us == pytest.approx(arm["metrics"]["due_p50_us"]["median"], rel=1e-4)
    page.close()


def test_a_series_is_hidden_with_its_whiskers_and_marks(browser: Browser, reported: Path) -> None:
    page = new_page(browser)
    page.goto((reported / "sweep" / "comparison.html").as_uri())
    chart = page.locator("figure:has(svg[data-values])").first
    parts = chart.locator('g[id*="-line-tcp-packing-1"], g[id*="-part-tcp-packing-1--"]')
    assert parts.count() >= 4
    label = chart.get_by_role("button", name="tcp, packing 1")
    label.focus()
    page.keyboard.press("Enter")
    assert label.get_attribute("aria-pressed") == "false"
    for part in parts.all():
        assert part.evaluate("one => one.style.display") == "none"
    page.close()


PRINTED = re.compile(r"(?<![\w.:-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:-])")
"""A number that is no part of a version, a time or a name."""
WORDS_OF_ALL_RUNS = {"50", "90", "99", "99.9", "1", "95", "0"}
"""Names of percentiles, a second's number, and what the explanations of method say."""


def test_every_number_that_a_run_s_page_prints_is_in_its_record(browser: Browser, reported: Path) -> None:
    record = json.loads((reported / "run-zeromq" / "run.json").read_bytes())
    known = {*numbers_of(record), *derived(record)}
    page = new_page(browser)
    page.goto((reported / "run-zeromq" / "report.html").as_uri())
    for details in page.locator("details").all():
        details.evaluate("one => one.open = true")
    exact = {float(data.get_attribute("value") or "nan") for data in page.locator("data").all()}
    tiles = page.locator(".headline data").count()
    page.evaluate("document.querySelectorAll('svg, .method').forEach(each => each.remove())")
    text = page.locator("body").inner_text()
    page.close()
    assert tiles >= 6
    unknown = {number for number in exact if not is_known(number, known)}
    assert unknown == set()
    printed = set(PRINTED.findall(text)) - WORDS_OF_ALL_RUNS
    assert len(printed) > 40
    wrong = {number for number in printed - numbers_in_texts(record) if not is_rounded(number, known)}
    assert wrong == set()


def is_known(number: float, known: set[float]) -> bool:
    return any(number == pytest.approx(known_number, rel=1e-9) for known_number in known)


def numbers_in_texts(record: dict[str, Any]) -> set[str]:
    """Return the numbers in a record's texts. Moments (2025-11-21T03:05:12+00:00) and addresses are taken apart."""
    texts = " ".join(texts_of(record))
    separated = re.sub(r"[-T:+/]", " ", texts)
    return set(PRINTED.findall(separated))


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts of a record: versions, the host, times of day."""
    if isinstance(value, dict):
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, str):
        yield value


def is_rounded(printed: str, known: set[float]) -> bool:
    """Whether a number of the record rounds to what is printed; a share is printed in percent, bytes in MB or GB."""
    _, _, decimals = printed.partition(".")
    value = float(printed.replace(",", ""))
    greatest_error = 0.5 * 10 ** -len(decimals) + 1e-9
    for number, factor in product(known, (1, 100, 1e-6, 1e-9, 2**-20, 2**-30)):
        if abs(number * factor - value) <= greatest_error:
            return True
    return False


def derived(record: dict[str, Any]) -> Iterator[float]:
    """What a page computes: the answers to an order, and the cores that a component used."""
    yield record["counts"]["answers_sent"] / record["counts"]["orders_sent"]
    for figures in record["components"].values():
        yield figures["cpu_s"] / record["duration_s"]


def numbers_of(value: Any) -> list[float]:
    """Return all numbers of a record."""
    numbers: list[float] = []
    if isinstance(value, dict):
        for part in value.values():
            numbers += numbers_of(part)
    elif isinstance(value, list):
        for part in value:
            numbers += numbers_of(part)
    elif isinstance(value, int | float):
        numbers.append(float(value))
    return numbers


def number_in(text: str) -> float:
    """Return the first number in the text."""
    match = re.search(r"-?[\d,]+(?:\.\d+)?", text)
    assert match, text
    return float(match.group().replace(",", ""))


def point_at(chart: Locator, place: float) -> None:
    """Move the pointer to a place of the drawing, in its own units from the left."""
    svg = chart.locator("svg")
    box = svg.bounding_box()
    assert box is not None
    x = place / WIDTH * box["width"]
    middle = 0.5 * box["height"]
    svg.hover(position={"x": x, "y": middle}, force=True)
    chart.locator(".hover").wait_for()
