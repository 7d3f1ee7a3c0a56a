"""Requests and answers as AMQP frames, decoded by pika, for requests with any properties."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pika
from hypothesis import given, settings
from hypothesis import strategies as st
from pika import frame

from tests.machine import EXAMPLES
from transports.amqp import wire
from transports.amqp.layout import DIGITS, AnswerLayout, PublishLayout, correlation_id
from transports.amqp.scanner import Scanner, Stop
from transports.frames import ANSWERED, RECEIVED, FrameBatch, ReturnAddresses

CHANNEL = 1
FRAME_MAX = 4096
ASKER = "0123456789abcdef"
SHORT = st.text("abc.", min_size=1, max_size=40)
PROPERTIES = st.builds(
    pika.BasicProperties,
    content_type=st.none() | SHORT,
    content_encoding=st.none() | SHORT,
    headers=st.none() | st.dictionaries(SHORT, SHORT, max_size=2),
    delivery_mode=st.none() | st.just(2),
    priority=st.none() | st.just(3),
    correlation_id=st.none() | SHORT,
    reply_to=st.none() | SHORT,
    message_id=st.none() | SHORT,
)
BODIES = st.lists(st.binary(max_size=9000), min_size=1, max_size=5)


@dataclass
class Published:
    """A message that was published, as pika decodes it."""

    exchange: str
    routing_key: str
    properties: pika.BasicProperties = field(default_factory=pika.BasicProperties)
    body: bytes = b""


def published_messages(data: bytes) -> list[Published]:
    """Return the messages in these frames."""
    messages: list[Published] = []
    while data:
        consumed, one = frame.decode_frame(data)
        data = data[consumed:]
        match one:
            case frame.Method(method=publish):
                messages.append(Published(publish.exchange, publish.routing_key))
            case frame.Header(properties=properties):
                messages[-1].properties = properties
            case frame.Body(fragment=fragment):
                messages[-1].body += fragment
    return messages


def test_headers_without_their_length_leave_no_correlation_id() -> None:
    """The flags say headers and a correlation id, but fewer bytes follow than the length of headers has."""
    flags = (0x2000 | 0x0400).to_bytes(2, "big")
    assert correlation_id(flags + b"\x01a") == ""


@given(bodies=BODIES, persistent=st.booleans(), reply_to=st.sampled_from(["", ASKER]))
def test_requests_are_numbered_and_name_the_queue_for_their_answers(
    bodies: list[bytes], persistent: bool, reply_to: str
) -> None:
    method = wire.publish_method(CHANNEL, "run", "requests", False)
    layout = PublishLayout(method, CHANNEL, FRAME_MAX, persistent, ASKER, reply_to)
    out = np.zeros(1 << 17, np.uint8)
    batch = FrameBatch.of(*bodies)
    next_message, end = layout.write(batch, 0, 1, out, 0)
    next_message, end = layout.write(batch, next_message, batch.count, out, end)
    assert next_message == len(bodies)
    _, end = layout.write(FrameBatch.of(b"last"), 0, 1, out, end)
    messages = published_messages(out[:end].tobytes())
    assert [message.body for message in messages] == [*bodies, b"last"]
    for number, message in enumerate(messages, start=1):
        assert message.exchange == "run"
        assert message.routing_key == "requests"
        assert message.properties.correlation_id == f"{ASKER}{number:0{DIGITS}x}"
        assert message.properties.reply_to == (reply_to or None)
        assert message.properties.delivery_mode == (2 if persistent else None)


@settings(max_examples=2 * EXAMPLES)
@given(
    requests=st.lists(st.tuples(PROPERTIES, st.binary(max_size=9000)), min_size=1, max_size=6),
    fixed_key=st.sampled_from(["", "responses"]),
)
def test_answers_go_to_the_queues_that_their_requests_name(
    requests: list[tuple[pika.BasicProperties, bytes]], fixed_key: str
) -> None:
    returns = ReturnAddresses()
    batch = FrameBatch()
    scanner = Scanner(CHANNEL, FRAME_MAX, return_addresses=returns)
    for tag, (properties, body) in enumerate(requests, start=1):
        data = np.frombuffer(delivered(properties, body, tag), np.uint8)
        stop, _, _ = scanner.scan(data, 0, len(data), batch)
        assert stop is Stop.MORE
    layout = AnswerLayout("run", fixed_key, False, False, CHANNEL, FRAME_MAX, returns)
    out = np.zeros(1 << 18, np.uint8)
    next_message, end = layout.write(batch, 0, batch.count, out, 0)
    assert next_message == len(requests)
    assert returns.counts[RECEIVED] == len(requests)
    assert returns.counts[ANSWERED] == len(requests)
    answers = published_messages(out[:end].tobytes())
    for (properties, body), answer in zip(requests, answers, strict=True):
        assert answer.exchange == "run"
        assert answer.routing_key == (fixed_key or properties.reply_to or "")
        assert answer.properties.correlation_id == properties.correlation_id
        assert answer.body == body


def delivered(properties: pika.BasicProperties, body: bytes, tag: int) -> bytes:
    """Return the frames of a delivered request."""
    method = frame.Method(CHANNEL, pika.spec.Basic.Deliver("us", tag, False, "run", "requests")).marshal()
    pieces = [body[at : at + FRAME_MAX - 8] for at in range(0, len(body), FRAME_MAX - 8)]
    bodies = b"".join(frame.Body(CHANNEL, piece).marshal() for piece in pieces)
    return method + frame.Header(CHANNEL, len(body), properties).marshal() + bodies


def test_a_request_that_was_dropped_has_no_answer() -> None:
    returns = ReturnAddresses()
    batch = FrameBatch()
    out = np.zeros(1 << 16, np.uint8)
    scanner = Scanner(CHANNEL, FRAME_MAX, return_addresses=returns)
    for tag, name in enumerate("abc", start=1):
        data = np.frombuffer(delivered(pika.BasicProperties(reply_to=name), b"", tag), np.uint8)
        scanner.scan(data, 0, len(data), batch)
    returns.forget(newest=1)
    layout = AnswerLayout("run", "", False, False, CHANNEL, FRAME_MAX, returns)
    _, end = layout.write(FrameBatch.of(b"to a", b"to c"), 0, 2, out, 0)
    answers = published_messages(out[:end].tobytes())
    assert [(answer.routing_key, answer.body) for answer in answers] == [("a", b"to a"), ("c", b"to c")]


@given(st.binary(max_size=60))
def test_properties_are_never_read_beyond_their_end(properties: bytes) -> None:
    assert len(correlation_id(properties)) <= len(properties)


def test_a_server_receives_only_as_many_requests_as_it_has_addresses_for() -> None:
    returns = ReturnAddresses(capacity=2)
    batch = FrameBatch()
    scanner = Scanner(CHANNEL, FRAME_MAX, return_addresses=returns)
    requests = [delivered(pika.BasicProperties(), b"x", tag) for tag in (1, 2, 3)]
    data = np.frombuffer(b"".join(requests), np.uint8)
    stop, consumed, _ = scanner.scan(data, 0, len(data), batch)
    assert stop is Stop.FULL
    assert batch.count == 2
    returns.take()
    stop, _, _ = scanner.scan(data, consumed, len(data), batch)
    assert stop is Stop.MORE
    assert batch.count == 3


def test_answers_to_get_are_deliveries_and_an_empty_queue_is_counted() -> None:
    scanner = Scanner(CHANNEL, FRAME_MAX)
    batch = FrameBatch()
    got = frame.Method(CHANNEL, pika.spec.Basic.GetOk(7, True, "run", "responses", 3)).marshal()
    got += frame.Header(CHANNEL, 2, pika.BasicProperties()).marshal() + frame.Body(CHANNEL, b"ok").marshal()
    data = np.frombuffer(got + frame.Method(CHANNEL, pika.spec.Basic.GetEmpty("")).marshal(), np.uint8)
    stop, consumed, _ = scanner.scan(data, 0, len(data), batch)
    assert stop is Stop.MORE
    assert consumed == len(data)
    assert list(batch) == [b"ok"]
    assert scanner.delivery_tag == 7
    assert scanner.redelivered == 1
    assert scanner.empty == 1
