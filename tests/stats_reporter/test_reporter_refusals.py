"""A reporter refuses junk, records of the wrong shape or of another run, and strangers."""

from __future__ import annotations

import time

import pytest
from reporter_session import COMPLETION, RUN, TERMS, TRAFFIC

from exchange.measurements import Source
from exchange.messages import (
    Confirmation,
    Hello,
    Order,
    Statistics,
    Throughput,
    Timestamp,
    encode,
)
from exchange.records import RecordWriter
from exchange.session import Terms
from transports import registry
from transports.base import Pattern, PeerGone
from transports.frames import FrameBatch

JUNK = [
    b"", b"\x00", b"\xff" * 40, encode(Throughput(1, 1))[:-1], encode(Throughput(1, 1)) + b"\x00",
    encode(Throughput(0, 1)), encode(Throughput(5, 1)), encode(Timestamp(4, 1, 1)), encode(Timestamp(8, 1, 1)),
    encode(Order(1, 1, 500, 1)), encode(Confirmation(1)),
    encode(Statistics(b"")), encode(Statistics(b"{")), encode(Statistics(b"[]")), encode(Statistics(b"7")),
    encode(Statistics(b"{}")), encode(Statistics(b'{"run":"000000000000feed"}')), encode(Statistics(b"\xff")),
]  # fmt: skip


def test_records_of_another_run_are_junk_and_not_written(session):
    stranger = RecordWriter(RUN + 1, "stranger")
    session.engine.link.send(FrameBatch.of(stranger.frame("traffic", {}), stranger.frame("result", {"a": 1})), 0)
    result = session.run_to_the_end()
    assert (result.junk_frames, result.received, result.announced) == (2, 2, 2)
    assert "traffic" not in {record["kind"] for record in session.records}
    assert set(result.results) == {"gateway", "engine"}
    assert result.checksums_agree


def test_junk_is_counted_and_leaves_no_trace(session):
    session.gateway.link.send(FrameBatch.of(*JUNK), 0)
    result = session.run_to_the_end()
    assert (result.junk_frames, result.received, result.announced) == (len(JUNK), 2, 2)
    assert result.checksums_agree
    assert [record["kind"] for record in session.records] == ["session", "session", "end"]


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (b',"payload":{}', b""),
        (b'"payload":{}', b'"payload":7'),
        (b'"gateway"', b'["gateway"]'),
        (b'"gateway"', b'"broker"'),
        (b'"kind":"', b'"kind":"un'),
        (b'"schema":1', b'"schema":2'),
        (b",", b",\n"),
    ],
    ids=["no payload", "payload", "a list of sources", "source", "kind", "schema", "two lines"],
)
@pytest.mark.parametrize("kind", ["traffic", "result"])
def test_a_record_of_this_run_that_breaks_the_shape_is_junk(session, kind, part, instead):
    whole = RecordWriter(RUN, "gateway").document(kind, {})
    assert part in whole
    document = whole.replace(part, instead, 1)
    session.gateway.link.send(FrameBatch.of(encode(Statistics(document))), 0)
    assert session.run_to_the_end().junk_frames == 1
    assert [record["kind"] for record in session.records] == ["session", "session", "end"]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("traffic", {"orders_sent": None}),
        ("completion", {"bucket": [1]}),
        ("completion", {"bucket": [1, 10**9]}),
        ("completion", {"sum_ns": "many"}),
    ],
)
def test_a_forged_record_that_no_reader_could_use_is_junk(session, kind, change):
    """A run's figures are made of all records, so one of them would spoil everything."""
    payload = {**(TRAFFIC if kind == "traffic" else COMPLETION), **change}
    session.gateway.link.send(FrameBatch.of(RecordWriter(RUN, "gateway").frame(kind, payload)), 0)
    assert session.run_to_the_end().junk_frames == 1
    assert session.payloads(kind) == []


def test_a_message_that_was_lost_shows(session):
    session.gateway.outbox.posted += 1
    session.gateway.outbox.checksum += 12_345
    result = session.run_to_the_end()
    assert (result.announced, result.received, result.checksums_agree) == (3, 2, False)


def test_a_message_that_was_changed_on_its_way_shows(session):
    session.gateway.outbox.posted += 1
    session.gateway.outbox.checksum += 1
    session.gateway.link.send(FrameBatch.of(encode(Throughput(1, 1))), 0)
    result = session.run_to_the_end()
    assert result.announced == result.received
    assert not result.checksums_agree


@pytest.mark.parametrize(
    "hello",
    [
        Terms(RUN + 1, "price-time", 1, 999).hello(Source.GATEWAY),
        TERMS.hello(Source.GATEWAY)._replace(source=7),
    ],
    ids=["another run", "no source of ours"],
)
def test_a_hello_of_a_stranger_is_refused_and_counted(session, hello: Hello):
    session.gateway.link.send(FrameBatch.of(encode(hello)), 0)
    result = session.run_to_the_end()
    assert result.handshakes_refused == 1
    assert len(session.payloads("session")) == 2


def test_who_shows_no_token_is_counted_as_refused(session):
    with pytest.raises(PeerGone):
        registry.connect(session.link.url, "guess", time.monotonic_ns(), pattern=Pattern.FAN_IN)
    assert session.run_to_the_end().handshakes_refused == 1
