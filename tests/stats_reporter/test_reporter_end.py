"""How a reporter's session ends: with every source's end, by silence, by a stop, or by a disk that refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reporter_session import TIMEOUT_S, WaitedClock

from exchange.messages import (
    End,
    Throughput,
    decode,
)
from transports.base import PeerGone
from transports.frames import FrameBatch


def test_every_source_is_told_at_the_end_what_was_received(session):
    session.gateway.say(Throughput(1, 8_000))
    result = session.run_to_the_end()
    checksum = (session.gateway.outbox.checksum + session.engine.outbox.checksum) % 2**64
    expected = End(sent=0, sent_checksum=0, received=result.received, received_checksum=checksum)
    assert (session.gateway.reply, session.engine.reply) == (expected, expected)


def test_the_end_is_answered_once_everything_is_in_the_spool(session, monkeypatch):
    in_the_spool = []
    send = session.link.send

    def watched(batch, first):
        in_the_spool.append([record["kind"] for record in session.records])
        return send(batch, first)

    monkeypatch.setattr(session.link, "send", watched)
    session.run_to_the_end()
    assert in_the_spool == [["session", "session", "end"]]


def test_the_last_end_ends_the_session_at_once(session, monkeypatch):
    waits = []
    monkeypatch.setattr(session.link, "wait", lambda *until: waits.append(until))
    session.run_to_the_end()
    assert waits == []


def test_a_source_that_never_ends_is_given_up_after_the_timeout(session, clock):
    session.gateway.say(Throughput(1, 8_000))
    session.gateway.end(orders_answered=7)
    result = session.run()
    assert re.fullmatch(r"the reporter heard nothing for [\d.]+ s", result.stopped)
    assert TIMEOUT_S <= (clock.now_ns - WaitedClock.now_ns) / 1e9 <= TIMEOUT_S + 3
    assert (result.received, result.announced, result.checksums_agree) == (2, 2, True)
    assert result.results == {"gateway": {"orders_answered": 7}}
    assert session.payloads("end") == [{"announced": 2, "received": 2, "reporters": 1}]
    assert isinstance(session.gateway.reply, End)


def test_a_source_that_speaks_now_and_then_is_not_given_up(session, clock, monkeypatch):
    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        session.gateway.say(Throughput(1, 8_000))
        if clock.now_ns > WaitedClock.now_ns + 10 * TIMEOUT_S * 10**9:
            session.gateway.end()
            session.engine.end()

    monkeypatch.setattr(session.link, "wait", wait)
    assert session.run().stopped is None


def test_a_stall_of_the_reporter_is_no_silence_of_its_sources(session, clock, monkeypatch):
    """The sources end while the reporter is stalled, and the first look after that finds nothing yet."""
    receive = session.link.receive

    def nothing_yet(batch: FrameBatch) -> int:
        monkeypatch.setattr(session.link, "receive", receive)
        return 0

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.now_ns += int(3 * TIMEOUT_S * 10**9)
        session.gateway.end()
        session.engine.end()
        monkeypatch.setattr(session.link, "receive", nothing_yet)
        monkeypatch.setattr(session.link, "wait", clock.wait)

    monkeypatch.setattr(session.link, "wait", stalled)
    assert session.run().stopped is None


def test_sources_that_leave_without_an_end_leave_what_they_said(session):
    session.gateway.say(Throughput(1, 8_000))
    session.engine.outbox.flush()
    session.gateway.link.close()
    session.engine.link.close()
    result = session.run()
    assert "closed its end" in result.stopped
    assert (result.received, result.announced) == (1, 0)
    assert len(session.payloads("throughput")) == 1


def test_a_stop_gives_its_reason_and_still_takes_what_comes(session, clock):
    session.reporter.stop("interrupted")
    session.reporter.stop("again")
    session.gateway.say(Throughput(1, 8_000))
    result = session.run()
    assert (result.stopped, result.received) == ("interrupted", 1)
    assert (clock.now_ns - WaitedClock.now_ns) / 1e9 < TIMEOUT_S  # nobody is waited for as long as in a run


def test_a_disk_that_refuses_stops_the_reporter_loudly(session, monkeypatch):
    def refuse(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left"):
        session.run_to_the_end()


def test_who_has_ended_is_told_that_the_reporter_still_waits_for_others(session, clock, monkeypatch):
    """So that a source's patience, which is with silence, outlasts a pair that takes longer."""
    session.gateway.end()

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        if clock.now_ns >= WaitedClock.now_ns + 3 * 10**9:
            session.engine.end()

    monkeypatch.setattr(session.link, "wait", wait)
    assert session.run().stopped is None
    batch = FrameBatch(16)
    session.gateway.link.receive(batch)
    *still_here, last = batch
    assert (still_here, type(decode(last))) == ([b""] * 3, End)


def test_a_source_gone_amid_a_waiting_note_leaves_others_served(session, clock, monkeypatch):
    session.gateway.end()

    def send(batch: FrameBatch, first: int) -> int:
        raise PeerGone("the peer closed the connection (Broken pipe)")

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        session.engine.end()

    monkeypatch.setattr(session.link, "send", send)
    monkeypatch.setattr(session.link, "wait", wait)
    result = session.run()
    assert (result.stopped, set(result.results)) == (None, {"gateway", "engine"})
