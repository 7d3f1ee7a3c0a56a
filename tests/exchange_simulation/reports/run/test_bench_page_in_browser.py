"""A suite's page of benchmarks, made of a record as they leave it: every figure there, every word to be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from in_browser import DESK, PHONE, opened
from playwright.sync_api import Browser

from exchange_simulation.messaging.report import write_page

FIGURES = {"de-spsc": 3 - 1, "request-reply": 2 + 1 - 1, "perftest": 0}
"""By benchmark, the number of figures on its page, without the one on its card.

The figures of request-reply by threads are one for each way to match: 8 lines each, not 16.
"""
SETTINGS_OF_PERFTEST = {"mode": "shared", "queues": 10, "size": 256}
CUT_OFF = """[...document.querySelectorAll('figure')].flatMap(figure => [...figure.querySelectorAll('svg text')]
    .filter(text => text.getBoundingClientRect().right > figure.getBoundingClientRect().right + 40)
    .map(text => text.textContent))"""
OVERLAPPING = """[...document.querySelectorAll('figure svg')].flatMap(svg => {
    const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([other]) => [one, other]));
})"""


def part(benchmark: str, points: list[dict[str, Any]], transports: tuple[str, ...], *figures: str) -> dict[str, Any]:
    rows = [
        {
            "transport": transport,
            "point": point,
            "words": "",
            "repeats": list(repeats(estimate["median"], figures)),
            "figures": dict.fromkeys(figures, estimate),
        }
        for point, transport, estimate in zip(
            [point for point in points for _ in transports], transports * len(points), estimates(), strict=False
        )
    ]
    settings = {"repeats": 3, "transport": list(transports), "sizes": [1, 64], **SETTINGS_OF_PERFTEST}
    return {"benchmark": benchmark, "status": "complete", "reasons": [], "rows": rows, "settings": settings}


def repeats(median: float, figures: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Six, of which each measured a little more than the one before."""
    for number in range(1, 7):
        measured = dict.fromkeys(figures, median * (1 + number / 100))
        yield {"repeat": number, "status": "complete", "reasons": [], "figures": measured}


def estimates() -> Iterator[dict[str, Any]]:
    """Large numbers, close together and far apart."""
    for step in range(10_000):
        median = 1_234_567.0 / (1 + step % 7)
        yield {"median": median, "low": median / 1.3, "high": median * 1.2, "n": 3}


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = [{"size_bytes": 1 << power} for power in range(21)]
    grid = [
        {"match": match, "clients": clients, "threads": threads, "size_bytes": 1024, "preloaded": 0}
        for match, clients, threads in product(("indexed", "scan"), range(1, 9), (1, 4, 15))
    ]
    curve = [
        {"match": match, "clients": 6, "threads": 1, "size_bytes": 1024, "preloaded": preloaded}
        for match, preloaded in product(("indexed", "scan"), (50, 1000))
    ]
    flow = ("messages_per_s", "megabytes_per_s", "latency_mean_us", "latency_p99_us", "consumer_cores", "broker_cores")
    replies = ("replies_per_s", "kilobytes_per_s", "response_mean_us", "looks_per_reply", "client_switches_per_message")
    parts = [
        part("de-spsc", sizes, ("amqp", "zeromq", "tcp"), *flow),
        part("request-reply", [*grid, *curve], ("amqp",), *replies),
        part("perftest", [{"size_bytes": 256, "queues": 10}], ("amqp", "zeromq"), "transfers", "transfers_per_s"),
    ]
    folder = tmp_path_factory.mktemp("suite")
    write_page(
        folder, {"name": "suite", "reasons": [], "parts": parts, "host": {"cpu": "one"}, "versions": {"python": "3.11"}}
    )
    return folder


@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", PHONE)])
def test_every_benchmark_has_its_figures_and_every_word_is_to_be_read(
    browser: Browser, suite: Path, scheme: str, size: dict[str, int]
) -> None:
    with opened(browser, suite, scheme, size, "bench.html") as page:
        for details in page.locator("details").all():
            details.evaluate("one => one.open = true")
        assert {name: page.locator(f"#{name} figure svg").count() for name in FIGURES} == FIGURES
        assert page.locator(".cards svg").count() == sum(count > 0 for count in FIGURES.values())
        assert page.locator("h1").inner_text().startswith("64 of 64 comparisons differ, most of all")
        assert page.locator("#de-spsc .ratios .row.differ").count() == 63
        assert page.evaluate(OVERLAPPING) == []
        assert page.evaluate(CUT_OFF) == []
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert page.locator(".cards a").all_inner_texts() == list(FIGURES)
        tables = page.locator(".scroll:visible").evaluate_all(
            "all => all.map(one => one.scrollWidth - one.clientWidth)"
        )
        assert size == PHONE or max(tables) == 0  # a wide one scrolls by itself on a phone, and fits a desk
