"""Requests and answers as bytes, read by pika; whatever properties a request has."""

from __future__ import annotations

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

CHANNEL, FRAME_MAX = 1, 4096
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


def read(data: bytes) -> list[tuple[str, str, pika.BasicProperties, bytes]]:
    """(exchange, routing key, properties, body) of each message published."""
    messages: list[list[object]] = []
    while data:
        consumed, one = frame.decode_frame(data)
        data = data[consumed:]
        match one:
            case frame.Method(method=publish):
                messages.append([publish.exchange, publish.routing_key, None, b""])
            case frame.Header(properties=properties):
                messages[-1][2] = properties
            case frame.Body(fragment=fragment):
                messages[-1][3] += fragment  # type: ignore[operator]
    return [tuple(each) for each in messages]  # type: ignore[misc]


@given(bodies=BODIES, persistent=st.booleans(), reply_to=st.sampled_from(["", ASKER]))
def test_requests_are_numbered_and_say_where_their_answers_go(
    bodies: list[bytes], persistent: bool, reply_to: str
) -> None:
    method = wire.publish_method(CHANNEL, "run", "requests", False)
    layout = PublishLayout(method, CHANNEL, FRAME_MAX, persistent, ASKER, reply_to)
    out = np.zeros(1 << 17, np.uint8)
    middle, end = layout.write(batch := FrameBatch.of(*bodies), 0, 1, out, 0)
    assert layout.write(batch, middle, batch.count, out, end)[0] == len(bodies)
    end = layout.write(FrameBatch.of(b"last"), 0, 1, out, layout_end(out))[1]
    for number, (exchange, key, properties, body) in enumerate(read(out[:end].tobytes()), 1):
        assert (exchange, key, body) == ("run", "requests", [*bodies, b"last"][number - 1])
        assert properties.correlation_id == f"{ASKER}{number:0{DIGITS}x}"
        assert (properties.reply_to, properties.delivery_mode) == (reply_to or None, 2 if persistent else None)


def layout_end(out: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> int:
    """The end of the bytes written: a frame's last byte is not 0."""
    return int(np.flatnonzero(out)[-1]) + 1


@settings(max_examples=2 * EXAMPLES)
@given(asked=st.lists(st.tuples(PROPERTIES, st.binary(max_size=9000)), min_size=1, max_size=6), fixed=st.booleans())
def test_answers_go_where_their_requests_say(asked: list[tuple[pika.BasicProperties, bytes]], fixed: bool) -> None:
    returns, batch = ReturnAddresses(), FrameBatch()
    scanner = Scanner(CHANNEL, FRAME_MAX, returns=returns)
    for tag, (properties, body) in enumerate(asked, 1):
        data = np.frombuffer(delivered(properties, body, tag), np.uint8)
        assert scanner.scan(data, 0, len(data), batch)[0] is Stop.MORE
    layout = AnswerLayout("run", "responses" if fixed else "", False, False, CHANNEL, FRAME_MAX, returns)
    out = np.zeros(1 << 18, np.uint8)
    last, end = layout.write(batch, 0, batch.count, out, 0)
    assert last == len(asked) == returns.counts[RECEIVED] == returns.counts[ANSWERED]
    for (asking, body), (exchange, key, properties, answer) in zip(asked, read(out[:end].tobytes()), strict=True):
        assert (exchange, key) == ("run", "responses" if fixed else asking.reply_to or "")
        assert (properties.correlation_id, answer) == (asking.correlation_id, body)


def delivered(properties: pika.BasicProperties, body: bytes, tag: int) -> bytes:
    method = frame.Method(CHANNEL, pika.spec.Basic.Deliver("us", tag, False, "run", "requests")).marshal()
    pieces = [body[at : at + FRAME_MAX - 8] for at in range(0, len(body), FRAME_MAX - 8)]
    bodies = b"".join(frame.Body(CHANNEL, piece).marshal() for piece in pieces)
    return method + frame.Header(CHANNEL, len(body), properties).marshal() + bodies


def test_a_request_that_was_dropped_has_no_answer() -> None:
    returns, batch, out = ReturnAddresses(), FrameBatch(), np.zeros(1 << 16, np.uint8)
    scanner = Scanner(CHANNEL, FRAME_MAX, returns=returns)
    for tag, name in enumerate("abc", 1):
        data = np.frombuffer(delivered(pika.BasicProperties(reply_to=name), b"", tag), np.uint8)
        scanner.scan(data, 0, len(data), batch)
    returns.forget(newest=1)
    layout = AnswerLayout("run", "", False, False, CHANNEL, FRAME_MAX, returns)
    _, end = layout.write(FrameBatch.of(b"to a", b"to c"), 0, 2, out, 0)
    assert [(key, body) for _, key, _, body in read(out[:end].tobytes())] == [("a", b"to a"), ("c", b"to c")]


@given(st.binary(max_size=60))
def test_no_properties_whatever_are_read_beyond_their_end(properties: bytes) -> None:
    assert len(correlation_id(properties)) <= len(properties)


def test_who_does_not_answer_receives_no_more_than_there_is_room_for() -> None:
    returns, batch = ReturnAddresses(capacity=2), FrameBatch()
    scanner = Scanner(CHANNEL, FRAME_MAX, returns=returns)
    data = np.frombuffer(b"".join(delivered(pika.BasicProperties(), b"x", tag) for tag in (1, 2, 3)), np.uint8)
    why, consumed, _ = scanner.scan(data, 0, len(data), batch)
    assert (why, batch.count) == (Stop.FULL, 2)
    returns.take()
    assert scanner.scan(data, consumed, len(data), batch)[0] is Stop.MORE
    assert batch.count == 3


def test_gets_are_deliveries_too_and_an_empty_queue_is_counted() -> None:
    scanner, batch = Scanner(CHANNEL, FRAME_MAX), FrameBatch()
    got = frame.Method(CHANNEL, pika.spec.Basic.GetOk(7, True, "run", "responses", 3)).marshal()
    got += frame.Header(CHANNEL, 2, pika.BasicProperties()).marshal() + frame.Body(CHANNEL, b"ok").marshal()
    data = np.frombuffer(got + frame.Method(CHANNEL, pika.spec.Basic.GetEmpty("")).marshal(), np.uint8)
    assert scanner.scan(data, 0, len(data), batch)[:2] == (Stop.MORE, len(data))
    assert (list(batch), scanner.delivery_tag, scanner.redelivered, scanner.empty) == ([b"ok"], 7, 1, 1)
