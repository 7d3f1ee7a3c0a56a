"""A paper's values stand beside ours of the same cells, and rates are by the clock that the paper takes."""

from __future__ import annotations

import pytest

from exchange.json_records import Record
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.report import our_range, published_beside_ours
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.streams import by_publishers_clock

FANOUT_POINT = {"size_bytes": 256, "exchanges": 10, "mode": "fanout"}
SHARED_POINT = {"size_bytes": 256, "queues": 10, "mode": "shared"}


def record_of(benchmark: str, point: Record, settings: Record, **figures: float) -> Record:
    """A record with one cell."""
    estimates = {name: {"median": value, "low": None, "high": None} for name, value in figures.items()}
    rows = [{"transport": "amqp", "point": point, "figures": estimates}]
    return {"benchmark": benchmark, "settings": settings, "rows": rows}


def perftest(point: Record, **typed: object) -> list[tuple[str, str]]:
    """The report's values beside ours, for perftest with these settings."""
    settings = {"mode": point["mode"], "queues": 10, "size": 256, **typed}
    record = record_of(
        "perftest",
        point,
        settings,
        publishes_per_s=9_000.0,
        transfers_per_s=45_000.0,
        transfers=60_000.0,
        packed_in_per_s=144_000.0,
    )
    return [(value.value, ours) for value, ours in published_beside_ours(record)]


def test_a_fan_out_to_four_has_only_the_reports_values_of_a_fan_out() -> None:
    assert perftest(FANOUT_POINT, nsubs=4) == [("152,000", "9,000")]
    assert perftest(FANOUT_POINT, nsubs=4, packing=16) == [("152,000", "9,000"), ("2,432,000", "144,000")]


def test_a_fan_out_to_six_has_none_of_the_reports_values() -> None:
    assert perftest(FANOUT_POINT) == []
    assert perftest(FANOUT_POINT, nsubs=6, packing=16) == []


def test_the_reports_sixty_clients_have_its_values_of_shared_queues() -> None:
    values = dict(perftest(SHARED_POINT))

    assert values["380,000"] == "9,000"
    assert values["762,000"] == "45,000"
    assert values["12,000,240"] == "60,000"
    assert "152,000" not in values
    assert "6,080,000" not in values


@pytest.mark.parametrize(
    "typed", [{"clients": 20}, {"npubs": 1, "nsubs": 1}, {"queues": 2}, {"size": 64}], ids=" ".join
)
def test_other_clients_queues_or_sizes_have_none_of_the_reports_values(typed: Record) -> None:
    assert perftest(SHARED_POINT, **typed) == []


def test_fewer_messages_have_the_reports_rates_and_not_its_number_of_transfers() -> None:
    values = dict(perftest(SHARED_POINT, count=6_000))

    assert "12,000,240" not in values
    assert values["380,000"] == "9,000"


def test_a_rate_that_was_offered_stands_beside_no_value_of_a_paper() -> None:
    rows = [{"transport": "amqp", "point": {"rate_per_s": 100.0}, "figures": {"rate": {"median": 100.0}}}]

    assert our_range(Published("", "", figure="rate"), rows) == ""


def test_a_response_time_is_one_over_the_rate_as_in_the_paper() -> None:
    point = {"clients": 1, "threads": 1, "size_bytes": 1024, "preloaded": 0, "match": "indexed"}
    record = record_of("request-reply", point, {}, replies_per_s=4_000.0, response_mean_us=999.0)

    times = [ours for value, ours in published_beside_ours(record) if value.title.startswith("response time")]

    assert times == ["250"]


def test_the_sizes_of_the_plan_stand_beside_those_of_table_4_unless_a_file_gives_others() -> None:
    point = {"topology": "vertical", "base": 10}
    beside = published_beside_ours(record_of("supply-chain", point, {"topology": ["vertical"]}))
    freeform = published_beside_ours(record_of("supply-chain", {"topology": "freeform"}, {"topology": ["freeform"]}))

    sizes = {value.title.partition(":")[0]: (value.value, ours) for value, ours in beside}
    assert len(sizes) == 19
    assert sizes["order"] == ("1.74, 7.10, 41.01", "1.74, 7.10, 41.00")
    assert sizes["statInfoSM"] == ("4.7 to 24.78", "4.70, 13.83, 24.78")
    assert freeform == []


def test_the_index_and_the_search_have_a_range_each() -> None:
    point = {"clients": 6, "threads": 1, "size_bytes": 1024, "preloaded": 1000}
    rows = [
        {"transport": "amqp", "point": {**point, "match": match}, "figures": {"replies_per_s": {"median": rate}}}
        for match, rate in (("indexed", 3_000.0), ("scan", 20.0))
    ]

    beside = published_beside_ours({"benchmark": "request-reply", "settings": {}, "rows": rows})

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

    beside = published_beside_ours({"benchmark": "request-reply", "settings": {}, "rows": rows})

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
