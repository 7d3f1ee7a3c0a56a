"""The peaks of request-reply's rows, and the sentences that sum the rows up."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.benchmarks.request_reply import points, why_unsupported
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.peaks import PEAK, peaks_by_size, summary_sentences
from exchange_simulation.messaging.report import our_range
from exchange_simulation.messaging.request_reply_paper import PEAKS_OF_ALL_CLIENTS, PEAKS_OF_ONE_CLIENT

SIZE = 1024


def row(
    clients: int, threads: int, replies_per_s: float, preloaded: int = 0, match: str = "indexed", **more: int
) -> dict[str, Any]:
    point = {
        "match": match,
        "clients": clients,
        "threads": threads,
        "size_bytes": SIZE,
        "preloaded": preloaded,
        **more,
    }
    figures = {
        "replies_per_s": {"median": replies_per_s},
        "kilobytes_per_s": {"median": replies_per_s * SIZE / 1000},
    }
    return {"transport": "amqp", "point": point, "figures": figures}


def test_the_sentence_gives_the_peaks_of_one_client_and_of_all() -> None:
    (sentence,) = summary_sentences([row(1, 1, 500), row(1, 4, 1000), row(8, 1, 2000), row(8, 4, 1500)])

    assert sentence.startswith("amqp, indexed, 1 KiB: peak 2,048 kB/s (8 clients, 1 thread)")
    assert "of one client 1,024 kB/s (1 client, 4 threads)" in sentence
    assert "response time, 1 client, 1 thread: 2 ms" in sentence


def test_each_way_of_matching_has_its_rate_with_preloaded_messages() -> None:
    rows = [
        row(6, 1, 1000, preloaded=0, match="indexed"),
        row(6, 1, 1000, preloaded=1000, match="indexed"),
        row(6, 1, 5, preloaded=1000, match="scan"),
        row(6, 1, 100, preloaded=0, match="scan"),
    ]

    sentences = summary_sentences(rows)

    assert "amqp, indexed: with 1,000 preloaded, 100 % of the rate without" in sentences
    assert "amqp, scan: with 1,000 preloaded, 5 % of the rate without" in sentences


def test_a_given_rate_has_no_peak() -> None:
    asked_at_once = row(1, 2, 900)
    asked_at_once["point"]["rate_per_s"] = "max"
    at_a_rate = row(1, 2, 400)
    at_a_rate["point"]["rate_per_s"] = 200.0
    assert summary_sentences([at_a_rate]) == []
    assert peaks_by_size([at_a_rate]) == []
    assert summary_sentences([at_a_rate, asked_at_once]) == summary_sentences([asked_at_once])


def test_rows_without_figures_have_no_sentence() -> None:
    assert summary_sentences([{**row(1, 1, 1), "figures": {}}]) == []


def test_our_peaks_stand_beside_the_peaks_of_the_paper() -> None:
    peaks = peaks_by_size([row(1, 1, 500), row(1, 4, 1000), row(8, 1, 2000)])
    medians = {peak["point"]["peak"]: peak["figures"][PEAK]["median"] for peak in peaks}
    published_peaks = [value for value in benchmark_of("request-reply").published if value.figure == PEAK]
    our_peaks = {value.title: our_range(value, peaks) for value in published_peaks}

    assert medians == {"of one client": pytest.approx(1024), "of all clients": pytest.approx(2048)}
    assert len(published_peaks) == len(PEAKS_OF_ONE_CLIENT) + len(PEAKS_OF_ALL_CLIENTS) == 18
    assert our_peaks["MQSeries and MSMQ, peak of one client, 1,024 bytes, kB/s (threads); their ratio"] == "1,024 (4)"
    assert our_peaks["MQSeries and MSMQ, peak of all clients, 65,536 bytes, kB/s; their ratio"] == "", "not measured"


def test_threads_that_do_not_wait_count_for_no_peak() -> None:
    sentences = summary_sentences([row(1, 1, 500, ahead=1), row(1, 1, 5000, ahead=100)])

    assert sentences[0].startswith("amqp, indexed, 1 KiB: peak 512 kB/s")
    assert sentences[-1] == "amqp, indexed, 1 KiB: 10 times the replies/s where threads do not wait for their replies"


def test_a_scan_cannot_send_requests_ahead() -> None:
    settings = {"clients": (1,), "threads": (1,), "match": ("scan", "indexed"), "sizes": (64,), "preload": (0,)}
    scan, indexed = points({**settings, "ahead": (5,)})

    assert "one reply at a time" in str(why_unsupported(Cell("amqp", scan, {})))
    assert why_unsupported(Cell("amqp", indexed, {})) is None


def test_points_without_ahead_are_those_of_older_records() -> None:
    settings = {"clients": (1,), "threads": (1,), "match": ("indexed",), "sizes": (64,), "preload": (0,)}
    (point,) = points({**settings, "ahead": (1,)})

    assert "ahead" not in point
