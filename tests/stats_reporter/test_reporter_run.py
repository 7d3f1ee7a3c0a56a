"""A reporter writes two sources' messages to its spool: counts, records, samples and results."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

from reporter_session import COMPLETION, RUN, TERMS, TIMEOUT_S, TRAFFIC, ScriptedSource

from exchange.messages import (
    PROTOCOL_VERSION,
    Statistics,
    Throughput,
    Timestamp,
)
from exchange.meters import Meter, Source
from exchange.records import RecordWriter
from stats_reporter.service import GATHERING_S, Reporter
from stats_reporter.writer import SpoolWriter
from tests.machine import PATIENCE_S

WAKE_EARLY_NS = 13_000_000
"""A wait ends this much early, so that each record comes at another moment in the life of a spool file."""


def test_counts_and_checksums_of_both_sources_agree(session):
    session.gateway.say(Throughput(1, 8_000), Timestamp(Meter.ORDER_HANDED_OVER, 10, 5))
    session.engine.say(Throughput(2, 7_999))
    session.gateway.reporting.record("traffic", TRAFFIC)
    result = session.run_to_the_end()
    posted = session.gateway.outbox.posted + session.engine.outbox.posted
    assert posted == 6, "four messages and two results"
    assert result.received == 6
    assert result.announced == 6
    assert result.checksums_agree
    assert result.stopped is None
    assert result.junk_frames == 0
    assert result.handshakes_refused == 0


def test_hellos_become_session_records(session):
    session.run_to_the_end()
    terms = {"version": PROTOCOL_VERSION, "policy": "price-time", "packing": 1, "max_price": 999}
    assert session.payloads("session", "gateway") == [terms]
    assert session.payloads("session", "engine") == [terms]


def test_a_session_record_has_the_clocks_of_its_source(session):
    hello = TERMS.hello(Source.GATEWAY)._replace(wall_ns=111, monotonic_ns=222)
    session.gateway.say(hello)
    session.run_to_the_end()
    records = [record for record in session.records if record["kind"] == "session"]
    assert (111, 222) in [(record["wall_ns"], record["monotonic_ns"]) for record in records]


def test_the_reporter_sleeps_between_batches_until_a_source_ends(session, monkeypatch):
    slept_s = []

    def sleep(seconds: float) -> None:
        slept_s.append(seconds)
        session.gateway.end()
        session.engine.end()

    # Only the reporter has this sleep: other threads use the real one.
    clock = SimpleNamespace(sleep=sleep, monotonic_ns=time.monotonic_ns)
    monkeypatch.setattr("stats_reporter.service.time", clock)
    session.gateway.say(Throughput(1, 8_000))
    session.run()
    assert slept_s == [GATHERING_S], "once after the first batch, and not after a source has ended"


def test_statistics_are_spooled_byte_for_byte(session):
    document = RecordWriter(RUN, "gateway").document("completion", COMPLETION)
    session.gateway.say(Statistics(document))
    session.run_to_the_end()
    lines = b"".join(path.read_bytes() for path in sorted(session.folder.iterdir())).splitlines()
    assert document in lines


def test_the_reporter_records_its_own_usage_for_each_second_of_the_gateway(session):
    session.engine.reporting.next_second(0)  # a record of the engine, whose fields are compared below
    for second in (0, 3):
        session.gateway.reporting.record("process", {"second": second, "cpu_s": 0.5})
    session.gateway.reporting.record("process", {"second": "?", "cpu_s": 0.5})
    session.run_to_the_end()
    usage = session.payloads("process", "reporter")
    assert [second["second"] for second in usage] == [0, 3]
    assert 0 <= usage[0]["cpu_s"] <= usage[1]["cpu_s"]
    assert set(usage[0]) == set(session.payloads("process", "engine")[0])


def test_a_record_is_in_the_spool_within_a_second(session, clock, monkeypatch):
    """This holds also for a record that comes just after a file was closed, if nothing else wakes the reporter."""
    session.reporter = Reporter(RUN, session.link, SpoolWriter(session.folder, lambda: clock.now_ns / 1e9), TIMEOUT_S)
    records = 20
    sent_ns: list[int] = []
    delays_ns: list[int] = []

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        is_record_written = len(session.payloads("traffic")) > len(delays_ns)
        if is_record_written:
            delays_ns.append(clock.now_ns - sent_ns[-1])
        is_waiting_for_a_record = len(sent_ns) > len(delays_ns)
        if len(delays_ns) == records:
            session.gateway.end()
            session.engine.end()
        elif is_waiting_for_a_record:
            clock.wait(until_ns - WAKE_EARLY_NS)
        else:
            sent_ns.append(clock.now_ns)
            session.gateway.reporting.record("traffic", TRAFFIC)
            session.gateway.outbox.flush()

    monkeypatch.setattr(session.link, "wait", wait)
    session.run()
    assert len(delays_ns) == records
    assert max(delays_ns) < 1_000_000_000


def test_a_throughput_is_recorded_for_the_source_of_its_meter(session):
    session.gateway.say(Throughput(1, 100), Throughput(2, 200), Throughput(3, 300), Throughput(4, 400))
    session.run_to_the_end()
    assert session.payloads("throughput", "gateway") == [
        {"meter": 1, "rate_per_s": 100},
        {"meter": 4, "rate_per_s": 400},
    ]
    assert session.payloads("throughput", "engine") == [
        {"meter": 2, "rate_per_s": 200},
        {"meter": 3, "rate_per_s": 300},
    ]


def test_timestamps_of_one_order_become_a_sample(session):
    session.gateway.say(
        Timestamp(Meter.ORDER_HANDED_OVER, 10, 105),
        Timestamp(Meter.ORDER_DUE, 10, 100),
        Timestamp(Meter.ORDER_HANDED_OVER, 20, 205),
        Timestamp(Meter.ORDER_ANSWERED, 20, 260),
        Timestamp(Meter.ORDER_DUE, 20, 200),
        Timestamp(Meter.ORDER_ANSWERED, 10, 150),
        Timestamp(Meter.ORDER_HANDED_OVER, 30, 305),
    )
    result = session.run_to_the_end()
    assert session.payloads("sample") == [
        {"id": 20, "due_ns": 200, "handed_over_ns": 205, "answered_ns": 260},
        {"id": 10, "due_ns": 100, "handed_over_ns": 105, "answered_ns": 150},
    ]
    assert result.samples == 2


def test_results_are_returned_and_not_spooled(session):
    session.gateway.end(orders_answered=7)
    session.engine.end(orders_answered=8)
    result = session.run()
    assert result.results == {"gateway": {"orders_answered": 7}, "engine": {"orders_answered": 8}}
    assert session.payloads("result") == []


def test_the_last_record_has_the_counts_of_messages(session):
    session.gateway.say(Throughput(1, 1))
    session.run_to_the_end()
    *_, last = session.records
    assert last["kind"] == "end"
    assert last["source"] == "reporter"
    assert last["run"] == f"{RUN:016x}"
    assert last["payload"] == {"announced": 3, "received": 3, "reporters": 1}


def test_sources_may_send_and_end_in_other_threads(session):
    results = []
    reporter_thread = threading.Thread(target=lambda: results.append(session.run()))
    reporter_thread.start()

    def talk(source: ScriptedSource, meter: int) -> None:
        for number in range(1, 2_001):
            source.say(Throughput(meter, number))
        source.end()

    gateway_thread = threading.Thread(target=talk, args=(session.gateway, 1))
    engine_thread = threading.Thread(target=talk, args=(session.engine, 2))
    gateway_thread.start()
    engine_thread.start()
    for thread in (gateway_thread, engine_thread, reporter_thread):
        thread.join(timeout=PATIENCE_S)
    [result] = results
    assert result.received == 4_002
    assert result.announced == 4_002
    assert result.checksums_agree
    for source in ("gateway", "engine"):
        rates = [payload["rate_per_s"] for payload in session.payloads("throughput", source)]
        assert rates == list(range(1, 2_001))
