"""How a reporter's session ends: with the end of every source, by silence, by a stop, or by a full disk."""

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


def test_the_end_tells_every_source_the_received_count_and_checksum(session):
    session.gateway.say(Throughput(1, 8_000))
    result = session.run_to_the_end()
    checksum = (session.gateway.outbox.checksum + session.engine.outbox.checksum) % 2**64
    expected = End(sent=0, sent_checksum=0, received=result.received, received_checksum=checksum)
    assert session.gateway.reply == expected
    assert session.engine.reply == expected


def test_the_reporter_confirms_the_end_after_writing_all_records(session, monkeypatch):
    kinds_at_each_send = []
    send = session.link.send

    def note_the_spool(batch, first):
        kinds_at_each_send.append([record["kind"] for record in session.records])
        return send(batch, first)

    monkeypatch.setattr(session.link, "send", note_the_spool)
    session.run_to_the_end()
    assert kinds_at_each_send == [["session", "session", "end"]]


def test_the_session_ends_without_a_wait_after_the_last_end(session, monkeypatch):
    waits = []
    monkeypatch.setattr(session.link, "wait", lambda *until: waits.append(until))
    session.run_to_the_end()
    assert waits == []


def test_the_reporter_gives_up_a_silent_source_after_the_timeout(session, clock):
    session.gateway.say(Throughput(1, 8_000))
    session.gateway.end(orders_answered=7)
    result = session.run()
    assert re.fullmatch(r"the reporter heard nothing for [\d.]+ s", result.stopped)
    assert TIMEOUT_S <= (clock.now_ns - WaitedClock.now_ns) / 1e9 <= TIMEOUT_S + 3
    assert result.received == 2
    assert result.announced == 2
    assert result.checksums_agree
    assert result.results == {"gateway": {"orders_answered": 7}}
    assert session.payloads("end") == [{"announced": 2, "received": 2, "reporters": 1}]
    assert isinstance(session.gateway.reply, End)


def test_the_reporter_keeps_a_source_that_sends_now_and_then(session, clock, monkeypatch):
    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        session.gateway.say(Throughput(1, 8_000))
        if clock.now_ns > WaitedClock.now_ns + 10 * TIMEOUT_S * 10**9:
            session.gateway.end()
            session.engine.end()

    monkeypatch.setattr(session.link, "wait", wait)
    assert session.run().stopped is None


def test_a_stalled_reporter_does_not_blame_its_sources(session, clock, monkeypatch):
    """The sources end during the stall, and the first receive after the stall brings nothing yet."""
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


def test_messages_of_sources_that_leave_without_an_end_are_kept(session):
    session.gateway.say(Throughput(1, 8_000))
    session.engine.outbox.flush()
    session.gateway.link.close()
    session.engine.link.close()
    result = session.run()
    assert "closed its end" in result.stopped
    assert result.received == 1
    assert result.announced == 0
    assert len(session.payloads("throughput")) == 1


def test_a_stopped_reporter_keeps_its_reason_and_still_receives(session, clock):
    session.reporter.stop("interrupted")
    session.reporter.stop("again")
    session.gateway.say(Throughput(1, 8_000))
    result = session.run()
    assert result.stopped == "interrupted"
    assert result.received == 1
    waited_s = (clock.now_ns - WaitedClock.now_ns) / 1e9
    assert waited_s < TIMEOUT_S, "after a stop the reporter waits less than in a run"


def test_a_full_disk_stops_the_reporter_with_an_error(session, monkeypatch):
    def refuse(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left"):
        session.run_to_the_end()


def test_a_source_that_has_ended_gets_signs_of_life_until_all_end(session, clock, monkeypatch):
    """A source gives up a silent reporter, but another pair may take longer."""
    session.gateway.end()

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        if clock.now_ns >= WaitedClock.now_ns + 3 * 10**9:
            session.engine.end()

    monkeypatch.setattr(session.link, "wait", wait)
    assert session.run().stopped is None
    batch = FrameBatch(16)
    session.gateway.link.receive(batch)
    *signs_of_life, last = batch
    assert signs_of_life == [b"", b"", b""]
    assert isinstance(decode(last), End)


def test_a_failed_sign_of_life_does_not_harm_other_sources(session, clock, monkeypatch):
    session.gateway.end()

    def send(batch: FrameBatch, first: int) -> int:
        raise PeerGone("the peer closed the connection (Broken pipe)")

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        session.engine.end()

    monkeypatch.setattr(session.link, "send", send)
    monkeypatch.setattr(session.link, "wait", wait)
    result = session.run()
    assert result.stopped is None
    assert set(result.results) == {"gateway", "engine"}
