"""Sentences that sum up request-reply's rows."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.messaging.benchmark import Cell
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.benchmarks.request_reply import points, unsupported
from exchange_simulation.messaging.peaks import PEAK, PEAKS, in_words, peaks_by_size
from exchange_simulation.messaging.report import _ours


def row(clients: int, threads: int, rate: float, preloaded: int = 0, match: str = "indexed") -> dict[str, Any]:
    point = {"match": match, "clients": clients, "threads": threads, "size_bytes": 1024, "preloaded": preloaded}
    figures = {"replies_per_s": {"median": rate}, "kilobytes_per_s": {"median": rate * 1.024}}
    return {"transport": "amqp", "point": point, "figures": figures}


def test_the_peak_of_one_client_and_of_all_are_told_apart() -> None:
    (said,) = in_words([row(1, 1, 500), row(1, 4, 1000), row(8, 1, 2000), row(8, 4, 1500)])
    assert said.startswith("amqp, indexed, 1 KiB: peak 2,048 kB/s (8 clients, 1 thread)")
    assert "of one client 1,024 kB/s (1 client, 4 threads)" in said
    assert "response time, 1 client, 1 thread: 2 ms" in said


def test_what_is_kept_is_told_for_each_way_of_matching() -> None:
    rows = [row(6, 1, 1000, q, "indexed") for q in (0, 1000)] + [row(6, 1, 5, 1000, "scan"), row(6, 1, 100, 0, "scan")]
    said = in_words(rows)
    assert "amqp, indexed: with 1,000 preloaded, 100 % of the rate without" in said
    assert "amqp, scan: with 1,000 preloaded, 5 % of the rate without" in said


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert in_words([{**row(1, 1, 1), "figures": {}}]) == []


def test_a_peak_of_each_size_stands_beside_what_the_paper_printed() -> None:
    rows = [row(1, 1, 500), row(1, 4, 1000), row(8, 1, 2000)]
    found = {each["point"]["peak"]: each["figures"][PEAK]["median"] for each in peaks_by_size(rows)}
    assert found == {"of one client": pytest.approx(1024), "of all clients": pytest.approx(2048)}
    printed = [each for each in benchmark_of("request-reply").published if each.figure == PEAK]
    assert len(printed) == 2 * len(PEAKS) == 18, "36 peaks, two in each sentence"
    beside = {each.what: _ours(each, peaks_by_size(rows)) for each in printed}
    assert beside["MQSeries and MSMQ, peak of one client, 1,024 bytes, kB/s"] == "1,024"
    assert beside["MQSeries and MSMQ, peak of all clients, 65,536 bytes, kB/s"] == ""


def test_threads_that_do_not_wait_are_in_no_peak_and_are_compared() -> None:
    def ahead(many: int, rate: float) -> dict[str, Any]:
        return {**(one := row(1, 1, rate)), "point": {**one["point"], "ahead": many}}

    said = in_words([ahead(1, 500), ahead(100, 5000)])
    assert said[0].startswith("amqp, indexed, 1 KiB: peak 512 kB/s")
    assert said[-1] == "amqp, indexed, 1 KiB: 10 times the replies/s where threads do not wait for their replies"


def test_a_scan_cannot_be_ahead() -> None:
    settings = {"clients": (1,), "threads": (1,), "match": ("scan", "indexed"), "sizes": (64,), "preload": (0,)}
    scan, indexed = points({**settings, "ahead": (5,)})
    assert "one reply at a time" in str(unsupported(Cell("amqp", scan, {})))
    assert unsupported(Cell("amqp", indexed, {})) is None
    assert "ahead" not in points({**settings, "ahead": (1,)})[0], "as in older records"
