"""Table 1, from made records."""

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


def test_a_connection_has_a_row_a_direction_counted_by_its_sender():
    there, back = packet_rows(duplex())
    assert (there.sender, there.receiver, there.source, there.destination) == ("gateway", "engine", GATEWAY, ENGINE)
    assert (there.segments, there.bytes, there.retransmits, there.tcp_nodelay) == (100, 5_000, 0, True)
    assert (back.sender, back.receiver, back.source, back.destination) == ("engine", "gateway", ENGINE, GATEWAY)
    assert (back.segments, back.bytes, back.retransmits, back.tcp_nodelay) == (200, 20_000, 3, False)


def test_means_are_of_payload_time_and_orders():
    there, back = packet_rows(duplex())
    assert (there.mean_bytes, there.mean_gap_us, there.per_order) == (50.0, 20_000.0, 1.0)
    assert (back.mean_bytes, back.mean_gap_us, back.per_order) == (100.0, 10_000.0, 2.0)


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
    assert (from_broker.source, from_broker.destination) == (BROKER, GATEWAY)
    assert from_broker.retransmits is None
    assert from_broker.tcp_nodelay is None


def test_a_brokers_own_ends_are_taken_where_they_were_read():
    rows = packet_rows(record(end("gateway", GATEWAY, BROKER), end("broker", BROKER, GATEWAY, tcp_nodelay=False)))
    assert [(row.sender, row.receiver, row.tcp_nodelay) for row in rows] == [
        ("gateway", "broker", True),
        ("broker", "gateway", False),
    ]


def test_without_a_broker_an_end_that_nobody_read_is_unknown():
    assert [row.receiver for row in packet_rows(record(end("gateway", GATEWAY, ENGINE)))] == ["unknown", "gateway"]


def test_ends_without_counters_have_no_rows():
    assert packet_rows(record({"component": "gateway", "local": GATEWAY, "peer": ENGINE, "tcp_nodelay": True})) == []
    assert packet_rows({"settings": {}, "counts": {}}) == []


def test_a_partial_record_has_counts_without_means_over_what_is_unknown():
    row = packet_rows(duplex() | {"duration_s": None, "counts": {}})[0]
    assert (row.segments, row.mean_bytes, row.mean_gap_us, row.per_order) == (100, 50.0, None, None)


def self_check(row: Packets, duration_s: float) -> float:
    """The share of the run's duration by which packets x gap misses it; 0 is agreement."""
    if row.mean_gap_us is None:
        return 0.0
    return abs(row.segments * row.mean_gap_us / 1e6 / duration_s - 1)


def test_a_direction_without_packets_has_no_mean_and_is_shown(capsys):
    rows = packet_rows(duplex(segments_out=0, bytes_out=0))
    assert (rows[0].mean_bytes, rows[0].mean_gap_us) == (None, None)
    assert self_check(rows[0], 2.0) == 0.0
    show_packets(rows)
    assert "gateway" in capsys.readouterr().out


def test_packets_times_gap_is_the_duration_in_every_row_and_in_all():
    rows, whole = packet_rows(over_a_broker()), exchange_total(over_a_broker())
    assert whole is not None
    assert all(self_check(each, 2.0) < 1e-9 for each in [*rows, whole])


def test_another_duration_than_the_rows_fails_the_self_check():
    assert self_check(packet_rows(duplex())[0], 4.0) == pytest.approx(0.5)


def test_all_of_them_are_summed_and_their_gap_is_between_any_two():
    whole = exchange_total(duplex())
    assert whole is not None
    assert (whole.segments, whole.bytes) == (300, 25_000)
    assert whole.mean_gap_us == pytest.approx(2e6 / 300)
    assert whole.per_order == 3.0


def test_packets_an_order_are_unknown_where_nobody_counted_the_orders():
    whole = exchange_total(duplex() | {"counts": {}})
    assert whole is not None
    assert (whole.segments, whole.per_order) == (300, None)


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
