"""A reporter refuses junk, records of the wrong shape or of another run, and strangers."""

from __future__ import annotations

import time

import pytest
from reporter_session import COMPLETION, RUN, TERMS, TRAFFIC

from exchange.messages import (
    Confirmation,
    Hello,
    Order,
    Statistics,
    Throughput,
    Timestamp,
    encode,
)
from exchange.meters import Source
from exchange.records import RecordWriter
from exchange.session import Terms
from transports import registry
from transports.base import Pattern, PeerGone
from transports.frames import FrameBatch

JUNK = [
    b"",
    b"\x00",  # no type byte of a message
    b"\xff" * 40,
    encode(Throughput(1, 1))[:-1],  # truncated
    encode(Throughput(1, 1)) + b"\x00",  # too long
    encode(Throughput(0, 1)),  # throughput meters are 1 to 4
    encode(Throughput(5, 1)),
    encode(Timestamp(4, 1, 1)),  # timestamp meters are 0 and 5 to 7
    encode(Timestamp(3, 1, 1)),
    encode(Order(1, 1, 500, 1)),  # for an engine
    encode(Confirmation(1)),  # for a gateway
    encode(Statistics(b"")),  # no JSON object
    encode(Statistics(b"{")),
    encode(Statistics(b"[]")),
    encode(Statistics(b"7")),
    encode(Statistics(b"\xff")),
    encode(Statistics(b"{}")),  # no record
    encode(Statistics(b'{"run":"000000000000feed"}')),
]


RESULTS = 2
"""The messages of a session without any statistics: the results of the gateway and of the engine."""


def test_records_of_another_run_are_junk_and_not_written(session):
    stranger = RecordWriter(RUN + 1, "stranger")
    session.engine.link.send(FrameBatch.of(stranger.frame("traffic", {}), stranger.frame("result", {"a": 1})), 0)
    result = session.run_to_the_end()
    assert result.junk_frames == 2
    assert result.received == RESULTS
    assert result.announced == RESULTS
    assert "traffic" not in {record["kind"] for record in session.records}
    assert set(result.results) == {"gateway", "engine"}
    assert result.checksums_agree


def test_junk_is_counted_and_not_written(session):
    session.gateway.link.send(FrameBatch.of(*JUNK), 0)
    result = session.run_to_the_end()
    assert result.junk_frames == len(JUNK)
    assert result.received == RESULTS
    assert result.announced == RESULTS
    assert result.checksums_agree
    assert [record["kind"] for record in session.records] == ["session", "session", "end"]


@pytest.mark.parametrize(
    ("part", "replacement"),
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
def test_a_record_of_this_run_with_a_wrong_shape_is_junk(session, kind, part, replacement):
    whole = RecordWriter(RUN, "gateway").document(kind, {})
    assert part in whole
    document = whole.replace(part, replacement, 1)
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
def test_a_record_with_an_unusable_payload_is_junk(session, kind, change):
    """A run's figures are made of all records, so one unusable record would spoil them all."""
    usual_payload = TRAFFIC if kind == "traffic" else COMPLETION
    payload = {**usual_payload, **change}
    session.gateway.link.send(FrameBatch.of(RecordWriter(RUN, "gateway").frame(kind, payload)), 0)
    assert session.run_to_the_end().junk_frames == 1
    assert session.payloads(kind) == []


def test_a_lost_message_shows_in_counts_and_checksums(session):
    session.gateway.outbox.posted += 1
    session.gateway.outbox.checksum += 12_345
    result = session.run_to_the_end()
    assert result.announced == RESULTS + 1
    assert result.received == RESULTS
    assert not result.checksums_agree


def test_a_changed_message_shows_in_the_checksums(session):
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
def test_a_hello_of_a_stranger_is_counted_as_refused(session, hello: Hello):
    session.gateway.link.send(FrameBatch.of(encode(hello)), 0)
    result = session.run_to_the_end()
    assert result.handshakes_refused == 1
    assert len(session.payloads("session")) == 2


def test_a_connection_without_the_token_is_counted_as_refused(session):
    with pytest.raises(PeerGone):
        registry.connect(session.link.url, "guess", time.monotonic_ns(), pattern=Pattern.FAN_IN)
    assert session.run_to_the_end().handshakes_refused == 1
