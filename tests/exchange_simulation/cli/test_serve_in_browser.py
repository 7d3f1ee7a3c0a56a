"""`exchange serve`: what somebody sees and does in a real Chromium."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from playwright.sync_api import Browser, Page

from tests.browser import new_page
from tests.exchange_command import Running, exchange
from tests.exchange_simulation.cli.serving import Serving, serving
from tests.machine import PATIENCE_S

PAGES = {
    "run-zeromq": "report.html",
    "run-amqp": "report.html",
    "compare": "comparison.html",
    "nagle": "comparison.html",
    "sweep": "comparison.html",
    "capacity": "capacity.html",
    "bench-de-spsc": "bench.html",
    "suite": "bench.html",
}

SAME_KINDS = {"run-amqp", "nagle", "sweep"}
"""Folders of kinds that PAGES has already."""


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which no script fails."""
    page = new_page(browser)
    page.set_default_timeout(PATIENCE_S * 1000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    yield page
    page.close()
    assert errors == []


def test_a_page_of_the_results_cannot_speak_to_the_server(recorded: Serving, browser: Browser) -> None:
    folder = recorded.results / "run-max"
    (folder / "report.html").write_text("<script>document.title = 'ran'</script><p>by whoever</p>")
    policy = recorded.request(f"{recorded.url.path}page/run-max/report.html").getheader("Content-Security-Policy") or ""
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    with opened(browser, f"{recorded.address}page/run-max/report.html") as page:
        assert (page.title(), page.locator("p").inner_text()) == ("", "by whoever")


def test_the_table_has_a_row_for_each_folder_with_its_figures(recorded: Serving, browser: Browser) -> None:
    rows = orjson.loads(exchange("results", "list", "--json", "--results", recorded.results).out)
    with opened(browser, recorded.address) as page:
        shown = {row.locator("th").inner_text(): row.inner_text() for row in page.locator("#runs tbody tr").all()}
        width = page.evaluate("document.documentElement.scrollWidth")
    assert shown.keys() == {row["name"] for row in rows}
    for row in rows:
        assert row["status"] in shown[row["name"]]
        if row["p99_us"] is not None and row["orders_measured"] >= 1_000:
            assert f"{row['p99_us']:,.0f}" in shown[row["name"]]
    assert width == 1280


def test_a_title_sorts_the_table_and_words_filter_it_with_the_keys_alone(recorded: Serving, browser: Browser) -> None:
    with opened(browser, recorded.address) as page:
        p99 = page.get_by_role("button", name="p99, µs")
        p99.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        cells = page.locator("#runs tbody tr td:nth-child(9)").all_inner_texts()
        assert page.locator("#runs th", has=p99).get_attribute("aria-sort") == "ascending"
        page.get_by_label("Filter").focus()
        page.keyboard.type("amqp run")
        assert page.locator("#runs tbody tr:visible th").all_inner_texts() == ["run-amqp"]
        assert page.get_by_role("status").inner_text() == "1 of 12 shown"
    measured = [float(cell.replace(",", "")) for cell in cells if cell not in ("", "-")]
    assert len(measured) == 2  # run-amqp has too few orders for a p99
    assert measured == sorted(measured)
    assert set(cells[3:]) <= {"", "-"}


def test_two_runs_stand_side_by_side_with_what_differs(recorded: Serving, browser: Browser) -> None:
    names = "run-amqp", "run-zeromq"
    difference = orjson.loads(exchange("results", "diff", *names, "--json", "--results", recorded.results).out)
    with opened(browser, recorded.address) as page:
        for name in names:
            page.get_by_label(f"Mark {name}").check()
        page.get_by_role("button", name="Side by side").click()
        rows = page.locator("tbody tr").all_inner_texts()
        p50 = next(row.split("\t") for row in rows if row.startswith("completion p50 from due"))
    fields = {row.split("\t")[0] for row in rows}
    assert {found["field"] for found in difference["conditions"]} <= fields
    figure = next(found for found in difference["figures"] if found["metric"] == "due_p50_us")
    assert [float(cell) for cell in p50[1:]] == pytest.approx(
        [figure["first"], figure["second"], figure["ratio"]], rel=0.006
    )


def test_a_run_and_a_trial_side_by_side_are_a_mistake_that_is_explained(recorded: Serving, browser: Browser) -> None:
    with opened(browser, f"{recorded.address}side?of=run-amqp&of=compare") as page:
        assert "choose two of a kind" in page.get_by_role("alert").inner_text()
        page.get_by_role("link").click()
        assert page.locator("#runs").count() == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [pytest.param(name, file, marks=[pytest.mark.long] if name in SAME_KINDS else []) for name, file in PAGES.items()],
)
def test_each_row_leads_to_its_page_which_is_made_as_report_does(
    recorded: Serving, browser: Browser, name: str, file: str
) -> None:
    with opened(browser, recorded.address) as page:
        page.get_by_role("link", name=name, exact=True).click()
        assert page.url == f"{recorded.address}page/{name}/{file}"
        assert page.locator("figure svg, table").count() > 0
    assert (recorded.results / name / file).exists()


def test_the_browser_starts_watches_changes_and_stops_a_run(fresh: Serving, browser: Browser) -> None:
    """The change is one of its rate."""
    with opened(browser, fresh.address) as page:
        page.get_by_text("Start a run").click()
        page.get_by_label("rate", exact=True).fill("many")
        page.get_by_role("button", name="Start", exact=True).click()
        assert "--rate" in page.get_by_role("alert").inner_text()
        assert page.evaluate("document.activeElement.id") == "mistake"
        page.get_by_label("rate", exact=True).fill("1k")
        page.get_by_label("duration", exact=True).fill("600")
        page.get_by_label("seed", exact=True).evaluate("field => field.value = '7'")
        page.get_by_role("button", name="Start", exact=True).click()
        first = shown_live(page)
        page.get_by_label("Rate").fill("2k")
        page.get_by_role("button", name="Change the rate").click()
        second = shown_live(page)
        page.get_by_role("button", name="Stop").click()
        page.locator("#page").wait_for()
        assert page.get_by_role("status").inner_text() == "Ended: partial"
    records = [orjson.loads((fresh.results / name / "run.json").read_bytes()) for name in (first, second)]
    assert [each["settings"]["orders_per_s"] for each in records] == [1000.0, 2000.0]
    assert [each["settings"]["seed"] for each in records] == [7, 7]
    assert [each["status"] for each in records] == ["partial", "partial"]
    assert fresh.interrupt() == 0


def shown_live(page: Page) -> str:
    """The name of the run whose graphs the page shows, once they have moved."""
    graph = page.get_by_role("img", name="orders and answers a second: sent").locator("polyline")
    graph.wait_for()
    drawn = graph.get_attribute("points")
    page.wait_for_function("drawn => document.querySelector('polyline').getAttribute('points') !== drawn", arg=drawn)
    assert re.search(r"[\d,]+ of [\d,]+ orders answered", page.locator("#headline").inner_text())
    page.locator(".minute svg").first.hover()
    assert page.locator(".minute b").first.get_attribute("title").startswith("second ")
    return page.url.rpartition("/")[2]


def test_a_run_that_was_started_elsewhere_is_followed_but_not_stopped(tmp_path: Path, browser: Browser) -> None:
    run = Running(tmp_path / "results", "--duration", 600, "--rate", 500)
    try:
        run.wait_until_under_way()
        with serving(run.results) as served, opened(browser, served.address) as page:
            page.get_by_role("link", name="is under way: watch it").click()
            page.get_by_role("img", name="cores in use: engine").locator("polyline").wait_for()
            assert page.get_by_role("button", name="Stop").count() == 0
            page.set_viewport_size({"width": 390, "height": 800})
            stays = "b => { const line = b.offsetHeight; b.textContent = '1,107,716'; return b.offsetHeight === line }"
            assert page.locator(".minute b").first.evaluate(stays), "a large number stays on its line on a phone, too"
            run.signal(signal.SIGINT)
            page.locator("#page").wait_for()
            assert page.get_by_role("status").inner_text().startswith("Ended: partial")
    finally:
        run.signal(signal.SIGINT)
        run.finish()
