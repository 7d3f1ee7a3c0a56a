"""Sentences that sum up request-reply's rows."""

from __future__ import annotations

from typing import Any

from messaging.benchmarks.request_reply import peaks


def row(clients: int, threads: int, rate: float, preloaded: int = 0, match: str = "indexed") -> dict[str, Any]:
    point = {"match": match, "clients": clients, "threads": threads, "size_bytes": 1024, "preloaded": preloaded}
    figures = {"replies_per_s": {"median": rate}, "kilobytes_per_s": {"median": rate * 1.024}}
    return {"transport": "amqp", "point": point, "figures": figures}


def test_the_peak_of_one_client_and_of_all_are_told_apart() -> None:
    (said,) = peaks([row(1, 1, 500), row(1, 4, 1000), row(8, 1, 2000), row(8, 4, 1500)])
    assert said.startswith("amqp, indexed, 1 KiB: peak 2,048 kB/s (8 clients, 1 thread)")
    assert "of one client 1,024 kB/s (1 client, 4 threads)" in said
    assert "response time, 1 client, 1 thread: 2 ms" in said


def test_what_is_kept_is_told_for_each_way_of_matching() -> None:
    rows = [row(6, 1, 1000, q, "indexed") for q in (0, 1000)] + [row(6, 1, 5, 1000, "scan"), row(6, 1, 100, 0, "scan")]
    said = peaks(rows)
    assert "amqp, indexed: with 1,000 preloaded, 100 % of the rate without" in said
    assert "amqp, scan: with 1,000 preloaded, 5 % of the rate without" in said


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert peaks([{**row(1, 1, 1), "figures": {}}]) == []
