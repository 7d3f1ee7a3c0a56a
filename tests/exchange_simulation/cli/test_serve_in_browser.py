"""`exchange serve`: what a user sees and does in a real Chromium."""

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

P99_COLUMN = 9
"""The place of the p99 among a row's cells, from 1."""


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """Yield the page at the address. AssertionError at the end if a script of the page has failed."""
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
    answer = recorded.request(f"{recorded.url.path}page/run-max/report.html")
    policy = answer.getheader("Content-Security-Policy") or ""
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    with opened(browser, f"{recorded.address}page/run-max/report.html") as page:
        assert page.locator("p").inner_text() == "by whoever"
        assert page.title() == "", "the script did not run"


def test_the_table_has_a_row_for_each_folder_with_its_figures(recorded: Serving, browser: Browser) -> None:
    rows = orjson.loads(exchange("results", "list", "--json", "--results", recorded.results).out)
    with opened(browser, recorded.address) as page:
        text_by_name: dict[str, str] = {}
        for table_row in page.locator("#runs tbody tr").all():
            name = table_row.locator("th").inner_text()
            text_by_name[name] = table_row.inner_text()
        width = page.evaluate("document.documentElement.scrollWidth")
    assert text_by_name.keys() == {row["name"] for row in rows}
    for row in rows:
        text = text_by_name[row["name"]]
        assert row["status"] in text
        if row["p99_us"] is not None and row["orders_measured"] >= 1_000:
            assert f"{row['p99_us']:,.0f}" in text
    assert width == 1280, "the table fits into the window"


def test_a_title_sorts_the_table_and_words_filter_it_with_the_keys_alone(recorded: Serving, browser: Browser) -> None:
    with opened(browser, recorded.address) as page:
        p99 = page.get_by_role("button", name="p99, µs")
        p99.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        cells = page.locator(f"#runs tbody tr td:nth-child({P99_COLUMN})").all_inner_texts()
        assert page.locator("#runs th", has=p99).get_attribute("aria-sort") == "ascending"
        page.get_by_label("Filter").focus()
        page.keyboard.type("amqp run")
        assert page.locator("#runs tbody tr:visible th").all_inner_texts() == ["run-amqp"]
        assert page.get_by_role("status").inner_text() == "1 of 12 shown"
    measured = [float(cell.replace(",", "")) for cell in cells if cell not in ("", "-")]
    assert len(measured) == 2  # run-amqp has too few orders for a p99
    assert measured == sorted(measured)
    without_p99 = cells[len(measured) :]
    assert set(without_p99) <= {"", "-"}


def test_two_runs_stand_side_by_side_with_what_differs(recorded: Serving, browser: Browser) -> None:
    names = "run-amqp", "run-zeromq"
    difference = orjson.loads(exchange("results", "diff", *names, "--json", "--results", recorded.results).out)
    with opened(browser, recorded.address) as page:
        for name in names:
            page.get_by_label(f"Mark {name}").check()
        page.get_by_role("button", name="Side by side").click()
        rows = page.locator("tbody tr").all_inner_texts()
    cells_by_field: dict[str, list[str]] = {}
    for row in rows:
        field, *cells = row.split("\t")
        cells_by_field[field] = cells
    assert {condition["field"] for condition in difference["conditions"]} <= cells_by_field.keys()
    (p50_cells,) = [cells for field, cells in cells_by_field.items() if field.startswith("completion p50 from due")]
    shown = [float(cell) for cell in p50_cells]
    (p50,) = [figure for figure in difference["figures"] if figure["metric"] == "due_p50_us"]
    assert shown == pytest.approx([p50["first"], p50["second"], p50["ratio"]], rel=0.006)


def test_a_run_and_a_trial_side_by_side_are_a_mistake_that_is_explained(recorded: Serving, browser: Browser) -> None:
    with opened(browser, f"{recorded.address}side?of=run-amqp&of=compare") as page:
        assert "choose two of a kind" in page.get_by_role("alert").inner_text()
        page.get_by_role("link").click()
        assert page.locator("#runs").count() == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("run-zeromq", "report.html"),
        ("compare", "comparison.html"),
        ("capacity", "capacity.html"),
        ("bench-de-spsc", "bench.html"),
        ("suite", "bench.html"),
        # Folders of kinds that stand above.
        pytest.param("run-amqp", "report.html", marks=pytest.mark.long),
        pytest.param("nagle", "comparison.html", marks=pytest.mark.long),
        pytest.param("sweep", "comparison.html", marks=pytest.mark.long),
    ],
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
    """The change is a change of the rate, with which another run begins."""
    with opened(browser, fresh.address) as page:
        page.get_by_text("Start a run").click()
        page.get_by_label("rate", exact=True).fill("many")
        page.get_by_role("button", name="Start", exact=True).click()
        assert "--rate" in page.get_by_role("alert").inner_text()
        assert page.evaluate("document.activeElement.id") == "mistake"
        page.get_by_label("rate", exact=True).fill("1k")
        page.get_by_label("duration", exact=True).fill("600")
        page.get_by_label("seed", exact=True).evaluate("field => field.value = '7'")  # it stands in a closed section
        page.get_by_role("button", name="Start", exact=True).click()
        first = shown_live(page)
        page.get_by_label("Rate").fill("2k")
        page.get_by_role("button", name="Change the rate").click()
        second = shown_live(page)
        page.get_by_role("button", name="Stop").click()
        page.locator("#page").wait_for()
        assert page.get_by_role("status").inner_text() == "Ended: partial"
        assert "was started elsewhere" not in page.locator("body").inner_text()
    records = [orjson.loads((fresh.results / name / "run.json").read_bytes()) for name in (first, second)]
    assert [record["settings"]["orders_per_s"] for record in records] == [1000.0, 2000.0]
    assert [record["settings"]["seed"] for record in records] == [7, 7]
    assert [record["status"] for record in records] == ["partial", "partial"]
    assert fresh.interrupt() == 0


def shown_live(page: Page) -> str:
    """Wait until the graphs of the page's run have moved; return the run's name."""
    graph = page.get_by_role("img", name="orders and answers a second: sent").locator("polyline")
    graph.wait_for()
    drawn = graph.get_attribute("points")
    page.wait_for_function("drawn => document.querySelector('polyline').getAttribute('points') !== drawn", arg=drawn)
    assert re.search(r"[\d,]+ of [\d,]+ orders answered", page.locator("#headline").inner_text())
    axes = page.locator(".axis").all_inner_texts()
    assert axes == ["59 s ago\n30 s ago\nnow"] * page.locator("#minutes section").count()
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
