"""Table 1 of the paper, from records with chosen counts."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from exchange_simulation.launching.packets.rows import Packets, exchange_total, packet_rows
from exchange_simulation.reports.run.terminal import show_packets
from tests.exchange_simulation.launching.packets.sample_records import (
    BROKER,
    ENGINE,
    GATEWAY,
    duplex,
    end,
    over_a_broker,
    record,
)


def test_each_direction_of_a_connection_is_counted_by_its_sender():
    there, back = packet_rows(duplex())
    assert there.sender == "gateway"
    assert there.receiver == "engine"
    assert there.source == GATEWAY
    assert there.destination == ENGINE
    assert there.segments == 100
    assert there.bytes == 5_000
    assert there.retransmits == 0
    assert there.tcp_nodelay
    assert back.sender == "engine"
    assert back.receiver == "gateway"
    assert back.source == ENGINE
    assert back.destination == GATEWAY
    assert back.segments == 200
    assert back.bytes == 20_000
    assert back.retransmits == 3
    assert not back.tcp_nodelay


def test_means_are_of_payload_time_and_orders():
    there, back = packet_rows(duplex())
    assert there.mean_bytes == 50.0
    assert there.mean_gap_us == 20_000.0
    assert there.per_order == 1.0
    assert back.mean_bytes == 100.0
    assert back.mean_gap_us == 10_000.0
    assert back.per_order == 2.0


def test_packets_of_the_broker_are_counted_where_they_arrive():
    """The broker's socket is unknown."""
    names = [(row.sender, row.receiver, row.segments, row.bytes) for row in packet_rows(over_a_broker())]
    assert names == [
        ("gateway", "broker", 100, 5_000),
        ("broker", "gateway", 200, 5_000),
        ("engine", "broker", 100, 5_000),
        ("broker", "engine", 400, 80_000),
    ]
    from_broker = packet_rows(over_a_broker())[1]
    assert from_broker.source == BROKER
    assert from_broker.destination == GATEWAY
    assert from_broker.retransmits is None
    assert from_broker.tcp_nodelay is None


def test_a_broker_s_own_counters_are_used_if_they_were_read():
    rows = packet_rows(record(end("gateway", GATEWAY, BROKER), end("broker", BROKER, GATEWAY, tcp_nodelay=False)))
    assert [(row.sender, row.receiver, row.tcp_nodelay) for row in rows] == [
        ("gateway", "broker", True),
        ("broker", "gateway", False),
    ]


def test_a_connection_that_no_component_recorded_has_an_unknown_end():
    assert [row.receiver for row in packet_rows(record(end("gateway", GATEWAY, ENGINE)))] == ["unknown", "gateway"]


def test_ends_without_counters_have_no_rows():
    assert packet_rows(record({"component": "gateway", "local": GATEWAY, "peer": ENGINE, "tcp_nodelay": True})) == []
    assert packet_rows({"settings": {}, "counts": {}}) == []


def test_a_partial_record_has_counts_without_means_over_what_is_unknown():
    row = packet_rows(duplex() | {"duration_s": None, "counts": {}})[0]
    assert row.segments == 100
    assert row.mean_bytes == 50.0
    assert row.mean_gap_us is None
    assert row.per_order is None


def self_check(row: Packets, duration_s: float) -> float:
    """The share of the run's duration by which packets x gap misses it; 0 is agreement."""
    if row.mean_gap_us is None:
        return 0.0
    return abs(row.segments * row.mean_gap_us / 1e6 / duration_s - 1)


def test_a_direction_without_packets_is_shown_without_a_mean(capsys):
    rows = packet_rows(duplex(segments_out=0, bytes_out=0))
    assert rows[0].mean_bytes is None
    assert rows[0].mean_gap_us is None
    assert self_check(rows[0], 2.0) == 0.0
    show_packets(rows)
    assert "gateway" in capsys.readouterr().out


def test_packets_times_gap_is_the_duration_in_every_row_and_in_the_sum():
    rows = packet_rows(over_a_broker())
    whole = exchange_total(over_a_broker())
    assert whole is not None
    assert all(self_check(each, 2.0) < 1e-9 for each in [*rows, whole])


def test_another_duration_than_the_rows_fails_the_self_check():
    assert self_check(packet_rows(duplex())[0], 4.0) == pytest.approx(0.5)


def test_the_total_sums_all_packets_and_has_the_gap_between_any_two():
    whole = exchange_total(duplex())
    assert whole is not None
    assert whole.segments == 300
    assert whole.bytes == 25_000
    assert whole.mean_gap_us == pytest.approx(2e6 / 300)
    assert whole.per_order == 3.0


def test_packets_an_order_are_unknown_where_nobody_counted_the_orders():
    whole = exchange_total(duplex() | {"counts": {}})
    assert whole is not None
    assert whole.segments == 300
    assert whole.per_order is None


def test_the_paper_agrees_with_its_own_packets():
    paper = record(end("broker", BROKER, GATEWAY, segments_out=2_277_870, bytes_out=358 * 2_277_870))
    row = packet_rows(paper | {"duration_s": 125.0, "counts": {"orders_sent": 1_000_000}})[0]
    assert row.mean_gap_us == pytest.approx(55, rel=0.01)
    assert row.per_order == pytest.approx(2.28, rel=0.01)


def test_headers_are_those_of_the_address_family():
    assert packet_rows(duplex())[0].mean_wire_bytes == 50 + 52
    assert packet_rows(record(end("gateway", "[::1]:1", "[::1]:2")))[0].mean_wire_bytes == 50 + 72


def test_the_table_of_a_long_run_keeps_every_figure(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    many = {"segments_out": 123_456_789, "bytes_out": 98_765_432_100, "retransmits": 1_234_567}
    rows = packet_rows(duplex(**many) | {"settings": {"transport": "tcp", "orders_per_s": 1_000_000.0}})
    show_packets(rows)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 100
    gateway = next(line for line in lines if line.startswith("gateway"))
    assert gateway.split() == [
        "gateway",
        "engine",
        "without",
        "1,000,000",
        "123,456,789",
        "800",
        "852",
        "0.0162",
        "1,234,568",
        "1,234,567",
    ]


def test_nagle_is_said_as_the_sender_has_it(capsys):
    show_packets(packet_rows(duplex()))
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[-2:]] == ["without", "with"]
