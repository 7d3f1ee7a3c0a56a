"""A paper's values stand beside ours of the same cells, and rates are by the clock that the paper takes."""

from __future__ import annotations

from exchange.json_records import Record
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.report import our_range, published_beside_ours
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.streams import by_publishers_clock


def record_of(benchmark: str, point: Record, **figures: float) -> Record:
    """A record with one cell."""
    estimates = {name: {"median": value, "low": None, "high": None} for name, value in figures.items()}
    return {"benchmark": benchmark, "rows": [{"transport": "amqp", "point": point, "figures": estimates}]}


def test_a_fan_out_has_only_the_reports_values_of_a_fan_out() -> None:
    point = {"size_bytes": 256, "exchanges": 10, "mode": "fanout"}

    rows = published_beside_ours(record_of("perftest", point, publishes_per_s=9_000.0, transfers_per_s=45_000.0))

    assert [(value.value, ours) for value, ours in rows] == [("152,000", "9,000")]


def test_shared_queues_have_none_of_a_fan_out() -> None:
    point = {"size_bytes": 256, "queues": 10, "mode": "shared"}

    rows = published_beside_ours(record_of("perftest", point, publishes_per_s=9_000.0))

    assert [(value.value, ours) for value, ours in rows] == [("380,000", "9,000")]


def test_the_index_and_the_search_have_a_range_each() -> None:
    point = {"clients": 6, "threads": 1, "size_bytes": 1024, "preloaded": 1000}
    rows = [
        {"transport": "amqp", "point": {**point, "match": match}, "figures": {"replies_per_s": {"median": rate}}}
        for match, rate in (("indexed", 3_000.0), ("scan", 20.0))
    ]

    beside = published_beside_ours({"benchmark": "request-reply", "rows": rows})

    assert ("376.5 and 7.4; 50.9 times", "amqp, indexed 3,000; amqp, scan 20; 150 times") in [
        (value.value, ours) for value, ours in beside
    ]


def test_a_peak_of_one_client_has_its_threads_and_the_ratio_of_index_and_search() -> None:
    rows = []
    for match, rate_by_threads in (("indexed", {1: 100.0, 8: 400.0}), ("scan", {1: 50.0, 8: 20.0})):
        for threads, rate in rate_by_threads.items():
            point = {"clients": 1, "threads": threads, "size_bytes": 1024, "preloaded": 0, "match": match}
            figures = {"kilobytes_per_s": {"median": rate}, "replies_per_s": {"median": rate}}
            rows.append({"transport": "amqp", "point": point, "figures": figures})

    beside = published_beside_ours({"benchmark": "request-reply", "rows": rows})

    assert ("510.6 (1) and 31.3 (4); 16.3 times", "amqp, indexed 400 (8); amqp, scan 50 (1); 8 times") in [
        (value.value, ours) for value, ours in beside
    ]


def test_a_value_of_one_transport_stands_beside_that_transport_alone_and_a_peak_beside_our_largest() -> None:
    rows = [
        {"transport": transport, "point": {"size_bytes": size}, "figures": {"rate": {"median": rate}}}
        for transport, size, rate in (("amqp", 6, 10.0), ("zeromq", 6, 900.0), ("amqp", 8, 20.0))
    ]

    assert our_range(Published("", "", figure="rate", transport="amqp"), rows) == "10..20"
    assert our_range(Published("", "", figure="rate", transport="amqp", is_peak=True), rows) == "20"


def test_fewer_queues_than_the_reports_have_none_of_its_values() -> None:
    point = {"size_bytes": 256, "queues": 2, "mode": "shared"}

    assert published_beside_ours(record_of("perftest", point, publishes_per_s=9_000.0)) == []


def publisher(first_ns: int, replied_ns: int) -> RoleResult:
    result = RoleResult()
    result.sent = 1_000
    result.first_ns = first_ns
    result.details["replied_ns"] = replied_ns
    return result


def test_the_publishers_clock_runs_from_the_first_message_to_the_last_reply() -> None:
    results = {"publisher 1": publisher(0, 900_000_000), "publisher 2": publisher(100_000_000, 1_000_000_000)}

    figures = by_publishers_clock(64, results, {"messages_per_s": 2_500.0, "latency_mean_us": 3.0})

    assert figures["messages_per_s"] == 2_000.0
    assert figures["receiver_messages_per_s"] == 2_500.0
    assert figures["latency_mean_us"] == 3.0
