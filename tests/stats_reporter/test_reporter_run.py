"""A reporter writes two sources' messages to its spool: counts, records, samples and results."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

from reporter_session import COMPLETION, RUN, TERMS, TIMEOUT_S, TRAFFIC, ScriptedSource

from exchange.measurements import Meter, Source
from exchange.messages import (
    Statistics,
    Throughput,
    Timestamp,
)
from exchange.records import RecordWriter
from stats_reporter.service import GATHERING_S, Reporter
from stats_reporter.writer import SpoolWriter
from tests.machine import PATIENCE_S


def test_counts_and_checksums_of_both_sources_agree(session):
    session.gateway.say(Throughput(1, 8_000), Timestamp(Meter.ORDER_HANDED_OVER, 10, 5))
    session.engine.say(Throughput(2, 7_999))
    session.gateway.reporting.record("traffic", TRAFFIC)
    result = session.run_to_the_end()
    said = session.gateway.outbox.posted + session.engine.outbox.posted
    assert (result.received, result.announced, said) == (6, 6, 6)  # two results in
    assert (result.checksums_agree, result.stopped) == (True, None)
    assert (result.junk_frames, result.handshakes_refused) == (0, 0)


def test_hellos_become_session_records(session):
    session.run_to_the_end()
    terms = {"version": 1, "policy": "price-time", "packing": 1, "max_price": 999}
    assert session.payloads("session", "gateway") == [terms]
    assert session.payloads("session", "engine") == [terms]


def test_a_session_record_has_the_clocks_that_its_source_read_together(session):
    hello = TERMS.hello(Source.GATEWAY)._replace(wall_ns=111, monotonic_ns=222)
    session.gateway.say(hello)
    session.run_to_the_end()
    sessions = [(r["wall_ns"], r["monotonic_ns"]) for r in session.records if r["kind"] == "session"]
    assert (111, 222) in sessions


def test_messages_gather_while_every_source_is_at_work(session, monkeypatch):
    slept_s = []

    def sleep(seconds: float) -> None:
        slept_s.append(seconds)
        session.gateway.end()
        session.engine.end()

    clock = SimpleNamespace(sleep=sleep, monotonic_ns=time.monotonic_ns)  # other threads go on sleeping
    monkeypatch.setattr("stats_reporter.service.time", clock)
    session.gateway.say(Throughput(1, 8_000))
    session.run()
    assert slept_s == [GATHERING_S]  # after the hellos and the first message; never once a source has ended


def test_statistics_reach_the_spool_as_they_were_written(session):
    document = RecordWriter(RUN, "gateway").document("completion", COMPLETION)
    session.gateway.say(Statistics(document))
    session.run_to_the_end()
    lines = b"".join(path.read_bytes() for path in sorted(session.folder.iterdir())).splitlines()
    assert document in lines


def test_the_reporter_says_what_it_has_used_in_each_second_of_the_gateway(session):
    session.engine.reporting.next_second(0)
    for second in (0, 3):
        session.gateway.reporting.record("process", {"second": second, "cpu_s": 0.5})
    session.gateway.reporting.record("process", {"second": "?", "cpu_s": 0.5})
    session.run_to_the_end()
    own = session.payloads("process", "reporter")
    assert [used["second"] for used in own] == [0, 3]
    assert 0 <= own[0]["cpu_s"] <= own[1]["cpu_s"]
    assert set(own[0]) == set(session.payloads("process", "engine")[0])


def test_who_looks_once_a_second_finds_what_was_told_a_second_before(session, clock, monkeypatch):
    """Also what came just after a file was closed, with nothing else to wake the reporter."""
    session.reporter = Reporter(RUN, session.link, SpoolWriter(session.folder, lambda: clock.now_ns / 1e9), TIMEOUT_S)
    told_ns: list[int] = []
    late_ns: list[int] = []

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if len(session.payloads("traffic")) > len(late_ns):
            late_ns.append(clock.now_ns - told_ns[-1])
        if len(late_ns) == 20:
            session.gateway.end()
            session.engine.end()
        elif len(late_ns) == len(told_ns):
            told_ns.append(clock.now_ns)
            session.gateway.reporting.record("traffic", TRAFFIC)
            session.gateway.outbox.flush()
        else:
            clock.wait(until_ns - 13_000_000)

    monkeypatch.setattr(session.link, "wait", wait)
    session.run()
    assert len(late_ns) == 20
    assert max(late_ns) < 1_000_000_000


def test_a_throughput_belongs_to_the_source_whose_meter_it_is(session):
    session.gateway.say(*(Throughput(meter, 100 * meter) for meter in (1, 2, 3, 4)))
    session.run_to_the_end()
    assert session.payloads("throughput", "gateway") == [{"meter": m, "rate_per_s": 100 * m} for m in (1, 4)]
    assert session.payloads("throughput", "engine") == [{"meter": m, "rate_per_s": 100 * m} for m in (2, 3)]


def test_timestamps_become_samples(session):
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


def test_results_are_handed_on_and_stay_out_of_the_spool(session):
    session.gateway.end(orders_answered=7)
    session.engine.end(orders_answered=8)
    result = session.run()
    assert result.results == {"gateway": {"orders_answered": 7}, "engine": {"orders_answered": 8}}
    assert session.payloads("result") == []


def test_the_closing_record_is_the_last_and_says_what_came(session):
    session.gateway.say(Throughput(1, 1))
    session.run_to_the_end()
    *_, last = session.records
    assert (last["kind"], last["source"], last["run"]) == ("end", "reporter", f"{RUN:016x}")
    assert last["payload"] == {"announced": 3, "received": 3, "reporters": 1}


def test_sources_may_come_and_end_from_threads_of_their_own(session):
    results = []
    thread = threading.Thread(target=lambda: results.append(session.run()))
    thread.start()

    def talk(source: ScriptedSource, meter: int) -> None:
        for number in range(1, 2_001):
            source.say(Throughput(meter, number))
        source.end()

    talkers = [threading.Thread(target=talk, args=pair) for pair in ((session.gateway, 1), (session.engine, 2))]
    for talker in talkers:
        talker.start()
    for joined in (*talkers, thread):
        joined.join(timeout=PATIENCE_S)
    [result] = results
    assert (result.received, result.announced, result.checksums_agree) == (4_002, 4_002, True)
    for source in ("gateway", "engine"):
        rates = [payload["rate_per_s"] for payload in session.payloads("throughput", source)]
        assert rates == list(range(1, 2_001))
