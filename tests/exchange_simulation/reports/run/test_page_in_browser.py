"""The page as a reader gets it: opened from disk in a real Chromium."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import orjson
import pytest
from in_browser import PHONE, opened
from PIL import Image
from playwright.sync_api import Browser, Page
from synthetic_run import SyntheticRun

from exchange_simulation.experiments.trials.results import results
from exchange_simulation.reports.comparison.page import write_page as write_comparison
from exchange_simulation.reports.run.completion import CLOCK_LABELS, percentile_curves
from exchange_simulation.reports.run.heat import heat_map
from exchange_simulation.reports.run.page import write_page
from exchange_simulation.reports.run.run_folder import read_run_folder
from tests.browser import DESK
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put_all

HEADLINES = {
    "#achieved": ("rates", "orders_per_s"),
    "#orders": ("counts", "orders_sent"),
    "#completion-p50": ("completion_us", "due", "p50"),
    "#completion-p99": ("completion_us", "due", "p99"),
    "#completion-max": ("completion_us", "due", "max"),
    "#lag-p99": ("lag_us", "p99"),
}


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_all_five_figures_are_seen_and_nothing_is_wider_than_the_screen(
    browser: Browser, complete_run: Path, size: dict[str, int]
) -> None:
    with opened(browser, complete_run, size=size) as page:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            boxes = [svg.bounding_box() for svg in page.locator("figure svg").all()]
            assert len(boxes) == 5
            assert all(box and box["width"] > 300 and box["height"] > 150 for box in boxes)
            assert page.evaluate("document.documentElement.scrollWidth") == size["width"]


def test_headline_numbers_are_those_of_run_json(browser: Browser, complete_run: Path) -> None:
    with opened(browser, complete_run) as page:
        shown = {tile: page.locator(f"{tile} .value data") for tile in HEADLINES}
        exact = {tile: float(data.get_attribute("value") or "nan") for tile, data in shown.items()}
        rounded = {tile: float(data.inner_text().removesuffix(" µs").replace(",", "")) for tile, data in shown.items()}
    run = orjson.loads((complete_run / "run.json").read_bytes())
    for tile, path in HEADLINES.items():
        expected = run
        for name in path:
            expected = expected[name]
        assert exact[tile] == expected
        assert rounded[tile] == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(("scheme", "darkest"), [("light", (0, 114, 178)), ("dark", (86, 180, 233))])
def test_the_heat_map_is_shaded_in_the_page_s_blue(
    browser: Browser, complete_run: Path, scheme: str, darkest: tuple[int, int, int]
) -> None:
    with opened(browser, complete_run, scheme) as page:
        png = page.locator("#heat svg").screenshot()
    colours = Image.open(BytesIO(png)).convert("RGB").getcolors(1_000_000) or []
    assert darkest in [colour for _, colour in colours]
    assert sum(count > 50 for count, _ in colours) > 30  # shades


def test_a_page_folds_to_less_than_two_screens(browser: Browser, complete_run: Path) -> None:
    with opened(browser, complete_run) as page:
        assert page.evaluate("document.documentElement.scrollHeight") <= 1_800
    assert (complete_run / "report.html").stat().st_size < 300_000


def test_the_pointer_shows_the_values_of_every_series(browser: Browser, complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    with opened(browser, complete_run) as page:
        point_at(page, "percentiles", 0.3)
        said = page.locator("#percentiles .hover").inner_text().splitlines()
        point_at(page, "completion", 0.5)
        over_time = page.locator("#completion .hover").inner_text().splitlines()
    percent = float(said[0].removesuffix(" %"))
    nines = -np.log10(1 - percent / 100)
    for clock, curve in percentile_curves(folder.spool["completion"], warm_up_s=0).items():
        shown = next(line for line in said if line.startswith(CLOCK_LABELS[clock])).rpartition(": ")[2]
        assert float(shown.replace(",", "")) == pytest.approx(np.interp(nines, curve.x, curve.y), rel=0.03)
    assert over_time[0].startswith("at 2.")
    assert [line.partition(":")[0] for line in over_time[1:]] == ["max", "p99", "p50"]


def test_a_series_can_be_hidden_by_pointer_and_by_key(browser: Browser, complete_run: Path) -> None:
    with opened(browser, complete_run) as page:
        line, label = (page.locator(f"#percentiles [id$=-{part}-lag]") for part in ("line", "label"))
        label.click()
        assert not line.is_visible()
        point_at(page, "percentiles", 0.3)
        assert "lag" not in page.locator("#percentiles .hover").inner_text()
        label.press("Enter")
        assert line.is_visible()


def test_dragging_zooms_a_chart_and_a_button_shows_all_of_it_again(browser: Browser, complete_run: Path) -> None:
    with opened(browser, complete_run) as page:
        curve = page.locator("#percentiles [id$=-line-from-due] path")
        whole = curve.get_attribute("d")
        x, y = point_at(page, "percentiles", 0.4)
        page.mouse.down()
        page.mouse.move(x + 80, y)
        page.mouse.up()
        ticks = page.locator("#percentiles .zoomed text").all_text_contents()
        assert curve.get_attribute("d") != whole
        assert ticks[:2] == ["99", "99.5"]
        page.get_by_role("button", name="Show all").click()
        assert curve.get_attribute("d") == whole
        assert page.locator("#percentiles .zoomed text").count() == 0


def test_without_a_script_the_page_is_read_as_before(browser: Browser, complete_run: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((complete_run / "report.html").as_uri())
    assert page.locator("figure svg").count() == 5
    assert "Half of the orders were answered within" in page.locator(".verdict").inner_text()
    page.locator("summary").first.click()
    assert page.locator("td", has_text="8,000").count() >= 5
    context.close()


def point_at(page: Page, figure: str, share: float) -> tuple[float, float]:
    """Move the pointer into a chart, this share of its width from the left."""
    page.locator(f"#{figure} svg").scroll_into_view_if_needed()
    box = page.locator(f"#{figure} svg").bounding_box()
    assert box is not None
    x, y = box["x"] + share * box["width"], box["y"] + 0.5 * box["height"]
    page.mouse.move(x, y)
    return x, y


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_s_page_fits_a_phone(browser: Browser, tmp_path: Path, scheme: str) -> None:
    made = plan(repeats=2, rates=(1000.0, 8000.0))
    put_all(tmp_path, made, {"a": [100.0, 110.0], "b": [200.0, 210.0]})
    write_comparison(tmp_path, results(tmp_path, made))
    with opened(browser, tmp_path, scheme, PHONE, "comparison.html") as page:
        assert page.locator("figure svg").count() == 5
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_every_word_of_a_figure_stands_out_from_the_paper(browser: Browser, complete_run: Path) -> None:
    papers = set()
    with opened(browser, complete_run) as page:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            words = page.evaluate("[...document.querySelectorAll('svg text')].map(t => getComputedStyle(t).fill)")
            assert len(words) > 40
            assert min(contrast(word, paper) for word in words) >= 4.5  # what WCAG asks for text
            papers.add(paper)
    assert len(papers) == 2


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours, each `rgb(r, g, b)`."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(rgb: str) -> float:
    shares = [int(part) / 255 for part in rgb.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_phone_has_room_for_large_numbers(browser: Browser, tmp_path: Path) -> None:
    changed = {
        "counts": {"orders_sent": 100_000_000, "orders_received": 100_000_000, "answers_received": 243_000_000},
        "completion_us": {"handed_over": dict.fromkeys(("p50", "p99", "max"), 12_345_678.9)},
        "rates": {"orders_per_s": 1_234_567.8},
    }
    folder = SyntheticRun(seconds=1).write(tmp_path / "run", **changed)
    write_page(folder)
    with opened(browser, folder, size=PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_hostile_text_in_a_run_does_nothing(browser: Browser, tmp_path: Path) -> None:
    attack = "<img src=http://192.0.2.1/x onerror=alert(1)><script>alert(2)</script>"
    changed = {"status": attack, "reasons": [attack], "host": {attack: attack}, "started_at": attack}
    folder = SyntheticRun(seconds=1).write(tmp_path / "run", **changed)
    write_page(folder)
    with opened(browser, folder) as page:
        assert page.locator("script, img").count() == 1  # the page's own script
        assert attack in page.locator("#banner").inner_text()


def test_a_run_that_measured_nothing_still_opens(browser: Browser, tmp_path: Path) -> None:
    record = {"schema": 1, "name": "run", "status": "partial", "reasons": ["Interrupted."]}
    (tmp_path / "run.json").write_bytes(orjson.dumps(record))
    write_page(tmp_path)
    with opened(browser, tmp_path, size=PHONE) as page:
        assert "Interrupted." in page.locator("#banner").inner_text()
        assert page.locator("figure svg").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_pointer_counts_the_orders_of_a_cell_of_the_heat_map(browser: Browser, complete_run: Path) -> None:
    found = heat_map(read_run_folder(complete_run).spool["completion"], 1)
    assert found is not None
    row = int(found.counts[:, 2].argmax())
    with opened(browser, complete_run) as page:
        low, high, top, bottom = (
            float(n) for n in (page.locator("#heat svg").get_attribute("data-y") or "").split()[1:]
        )
        us = np.sqrt(found.edges_us[row] * found.edges_us[row + 1])
        place = top + (np.log10(us) - low) / (high - low) * (bottom - top)
        point_at(page, "heat", 0.5)
        box = page.locator("#heat svg").bounding_box()
        assert box is not None
        left, right = (float(n) for n in (page.locator("#heat svg").get_attribute("data-x") or "").split()[3:])
        page.mouse.move(
            box["x"] + (left + 0.5 * (right - left)) / 440 * box["width"], box["y"] + place / 270 * box["height"]
        )
        heading, line = page.locator("#heat .hover").inner_text().splitlines()
    assert heading == "seconds 2 to 3"
    assert line.rpartition(": ")[2] == f"{found.counts[row, 2]:,} orders"


def test_a_table_wider_than_the_window_says_that_it_goes_on(browser: Browser, complete_run: Path) -> None:
    write_page(complete_run)
    with opened(browser, complete_run, size={"width": 600, "height": 900}) as page:
        page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
        sockets = page.get_by_role("region", name="Sockets")
        hint = sockets.locator("xpath=following-sibling::p[1]")
        hint.wait_for()
        assert "goes on to the right" in hint.inner_text()
        page.set_viewport_size({"width": 1600, "height": 900})
        hint.wait_for(state="hidden")
        assert sockets.evaluate("region => region.scrollWidth <= region.clientWidth + 1")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
