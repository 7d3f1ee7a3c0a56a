"""The kernels that lay out and scan AMQP frames, compared with pika's encoder and decoder."""

from __future__ import annotations

import numpy as np
import pika
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pika import frame, spec

from tests.machine import EXAMPLES
from transports.amqp import wire
from transports.amqp.address import DELIVERIES
from transports.amqp.client import OneByOneClient
from transports.amqp.layout import PublishLayout
from transports.amqp.scanner import Scanner, Stop
from transports.amqp.topology import Route
from transports.frames import FrameBatch

CHANNEL = 7
FRAME_MAX = 4096
BODIES = st.lists(st.integers(0, 3 * FRAME_MAX).map(lambda size: bytes([size % 251]) * size), max_size=6)
FOREIGN = [
    frame.Heartbeat().marshal(),
    frame.Method(0, spec.Connection.Blocked("memory")).marshal(),
    frame.Method(3, spec.Channel.Flow(True)).marshal(),
    frame.Method(3, spec.Basic.Deliver("other", 5, False, "x", "y")).marshal(),
]
ON_OUR_CHANNEL = [
    frame.Method(CHANNEL, spec.Basic.ConsumeOk("tag")).marshal(),
    frame.Method(CHANNEL, spec.Basic.Cancel("a consumer")).marshal(),
    frame.Method(CHANNEL, spec.Basic.Return(312, "NO_ROUTE", "exchange", "key")).marshal()
    + frame.Header(CHANNEL, 3, pika.BasicProperties()).marshal()
    + frame.Body(CHANNEL, b"abc").marshal(),
]


def delivery(body: bytes, tag: int, redelivered: bool = False, frame_max: int = FRAME_MAX) -> list[bytes]:
    """Return a message's frames as a broker sends them."""
    method = spec.Basic.Deliver(f"consumer-{tag}", tag, redelivered, "run", "order")
    most_body = frame_max - wire.OVERHEAD_BYTES
    bodies = [frame.Body(CHANNEL, body[at : at + most_body]).marshal() for at in range(0, len(body), most_body)]
    header = frame.Header(CHANNEL, len(body), pika.BasicProperties(content_type="x", delivery_mode=2))
    return [frame.Method(CHANNEL, method).marshal(), header.marshal(), *bodies]


def deliveries(bodies: list[bytes]) -> list[bytes]:
    """Return the frames of all these messages, with delivery tags from 1 on."""
    frames = []
    for tag, body in enumerate(bodies, start=1):
        frames += delivery(body, tag)
    return frames


class Reader:
    """Feeds a scanner with parts of a stream, as a link does."""

    def __init__(self, window: int = 100, capacity: int = 1000) -> None:
        self.scanner = Scanner(CHANNEL, FRAME_MAX, window)
        self.messages: list[bytes] = []
        self.foreign = b""
        self._rest = b""
        self._capacity = capacity

    def feed(self, data: bytes) -> Stop:
        """Scan these bytes after those that are left. Returns the last reason to stop."""
        self._rest += data
        stop = Stop.FOREIGN
        while stop in {Stop.FOREIGN, Stop.FULL}:
            batch = FrameBatch(self._capacity, 1 << 17)
            stream = np.frombuffer(self._rest, np.uint8)
            stop, consumed, begin = self.scanner.scan(stream, 0, len(stream), batch)
            self.messages += list(batch)
            if stop is Stop.FOREIGN:
                self.foreign += self._rest[begin:consumed]
            if stop is Stop.FULL:
                assert batch.count or consumed, "an empty batch does not take the message"
            self._rest = self._rest[consumed:]
        return stop


@given(bodies=BODIES, persistent=st.booleans(), mandatory=st.booleans(), exchange=st.text(max_size=60))
def test_pika_decodes_the_frames_that_are_laid_out(
    bodies: list[bytes], persistent: bool, mandatory: bool, exchange: str
) -> None:
    layout = PublishLayout(wire.publish_method(CHANNEL, exchange, "order", mandatory), CHANNEL, FRAME_MAX, persistent)
    out = np.zeros(1 << 17, np.uint8)
    next_message, end = layout.write(FrameBatch.of(*bodies), 0, len(bodies), out, 0)
    assert next_message == len(bodies)
    data = out[:end].tobytes()
    decoded: list[bytes] = []
    body_size = 0
    while data:
        consumed, one = frame.decode_frame(data)
        assert consumed <= FRAME_MAX
        data = data[consumed:]
        match one:
            case frame.Method(method=publish):
                assert publish.exchange == exchange
                assert publish.routing_key == "order"
                assert publish.mandatory == mandatory
                decoded.append(b"")
            case frame.Header(properties=properties, body_size=size):
                assert properties.delivery_mode == (2 if persistent else None)
                body_size = size
            case frame.Body(fragment=fragment):
                decoded[-1] += fragment
                assert len(decoded[-1]) <= body_size
    assert decoded == bodies


def test_a_message_without_enough_room_is_left_out_as_a_whole() -> None:
    layout = PublishLayout(wire.publish_method(1, "x", "k", False), 1, FRAME_MAX, False)
    out = np.zeros(200, np.uint8)
    next_message, _ = layout.write(FrameBatch.of(b"a" * 10, b"b" * 1000, b"c"), 0, 3, out, 0)
    assert next_message == 1


@given(
    bodies=BODIES,
    cuts=st.lists(st.integers(1, 6000), max_size=30),
    strangers=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(FOREIGN)), max_size=5),
    capacity=st.integers(1, 4),
)
def test_messages_are_read_whole_from_any_parts_of_a_stream(
    bodies: list[bytes], cuts: list[int], strangers: list[tuple[int, bytes]], capacity: int
) -> None:
    frames = deliveries(bodies)
    for at, stranger in strangers:  # other channels' frames may be anywhere, also within a message
        frames.insert(min(at, len(frames)), stranger)
    data = b"".join(frames)
    reader = Reader(capacity=capacity)
    for cut in cuts:
        assert reader.feed(data[:cut]) is Stop.MORE
        data = data[cut:]
    assert reader.feed(data) is Stop.MORE
    assert reader.messages == bodies
    assert sorted(reader.foreign) == sorted(b"".join(stranger for _, stranger in strangers))
    assert reader.scanner.delivery_tag == len(bodies)


@pytest.mark.parametrize("stranger", ON_OUR_CHANNEL)
def test_other_frames_of_our_channel_are_left_for_pika(stranger: bytes) -> None:
    reader = Reader()
    reader.feed(b"".join(delivery(b"one", 1)) + stranger + b"".join(delivery(b"two", 2, redelivered=True)))
    assert reader.messages == [b"one", b"two"]
    assert reader.foreign == stranger
    assert reader.scanner.redelivered == 1


def test_a_message_longer_than_the_batch_takes_is_dropped_and_counted() -> None:
    scanner = Scanner(CHANNEL, FRAME_MAX)
    batch = FrameBatch(10, 4096, 1000)
    data = b"".join(deliveries([b"x" * 9000, b"short"]))
    stop, consumed, _ = scanner.scan(np.frombuffer(data, np.uint8), 0, len(data), batch)
    assert stop is Stop.MORE
    assert consumed == len(data)
    assert list(batch) == [b"short"]
    assert scanner.too_long == 1


@given(cut=st.integers(0, 9100))
def test_a_long_message_is_dropped_only_if_its_end_comes_with_the_small_batch(cut: int) -> None:
    scanner = Scanner(CHANNEL, FRAME_MAX)
    large_batch = FrameBatch(10)
    small_batch = FrameBatch(10, 4096, 1000)
    data = np.frombuffer(b"".join(deliveries([b"x" * 9000, b"short"])), np.uint8)
    _, consumed, _ = scanner.scan(data, 0, cut, large_batch)
    stop, consumed, _ = scanner.scan(data, consumed, len(data), small_batch)
    assert stop is Stop.MORE
    assert consumed == len(data)
    assert list(small_batch) == [b"short"]
    assert scanner.too_long + large_batch.count == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=20))
def test_confirmed_counts_the_messages_settled_without_a_gap(steps: list[tuple[bool, int]]) -> None:
    reader = Reader(window=300)
    settled: set[int] = set()
    for multiple, ahead in steps:
        tag = max(settled, default=0) + ahead
        reader.feed(frame.Method(CHANNEL, spec.Basic.Ack(tag, multiple)).marshal())
        if multiple:
            settled.update(range(1, tag + 1))
        else:
            settled.add(tag)
        without_a_gap = 0
        while without_a_gap + 1 in settled:
            without_a_gap += 1
        assert reader.scanner.confirmed == without_a_gap


def test_a_nack_settles_and_is_counted_as_refused() -> None:
    reader = Reader()
    reader.feed(frame.Method(CHANNEL, spec.Basic.Ack(2, True)).marshal())
    reader.feed(frame.Method(CHANNEL, spec.Basic.Nack(5, True)).marshal())
    assert reader.scanner.confirmed == 5
    assert reader.scanner.refused == 3
    reader.feed(frame.Method(CHANNEL, spec.Basic.Nack(1, True)).marshal())
    assert reader.scanner.confirmed == 5, "a settled message is settled again"
    assert reader.scanner.refused == 3


def test_a_nack_of_several_leaves_out_what_was_confirmed_alone() -> None:
    reader = Reader()
    reader.feed(frame.Method(CHANNEL, spec.Basic.Ack(3, False)).marshal())
    reader.feed(frame.Method(CHANNEL, spec.Basic.Nack(5, True)).marshal())
    assert reader.scanner.confirmed == 5
    assert reader.scanner.refused == 4


def test_the_client_pika_leaves_them_out_too() -> None:
    route = Route(exchange="run", key="order", mandatory=True)
    client = OneByOneClient(None, route, DELIVERIES["confirmed"])  # type: ignore[arg-type]
    client.note_confirm(frame.Method(CHANNEL, spec.Basic.Ack(3, False)))
    client.note_confirm(frame.Method(CHANNEL, spec.Basic.Nack(5, True)))
    client.note_confirm(frame.Method(CHANNEL, spec.Basic.Nack(5, True)))
    assert client.confirmed == 5
    assert client.refused == 4


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame.Heartbeat().marshal()[:-1] + b"\x00",
        b"\x01\x00\x07\x00\x00\x00\x18\x00\x3c\x00\x3c" + b"\xff" * 20 + b"\xce",  # a consumer's tag beyond the frame
        b"".join(delivery(b"abc", 1)[:1]) + frame.Body(CHANNEL, b"abc").marshal(),  # a body without its header
        b"".join(delivery(b"abc", 1)[:2]) + frame.Body(CHANNEL, b"abcd").marshal(),  # longer than in its header
        frame.Method(CHANNEL, spec.Basic.Ack(10**6, False)).marshal(),  # confirms a message that was never published
    ],
)
def test_bytes_that_are_no_amqp_are_noticed(broken: bytes) -> None:
    assert Reader().feed(broken) is Stop.BROKEN


@settings(max_examples=3 * EXAMPLES)
@given(data=st.binary(max_size=400), place=st.integers(0, 200), bodies=BODIES)
def test_a_damaged_stream_never_crashes_the_scanner(data: bytes, place: int, bodies: list[bytes]) -> None:
    """Fuzz: arbitrary bytes overwrite a part of a valid stream. The scanner never returns more bytes than it got."""
    stream = bytearray(b"".join(deliveries(bodies)))
    stream[place : place + len(data)] = data
    reader = Reader()
    reader.feed(bytes(stream))
    assert sum(map(len, reader.messages)) + len(reader.foreign) <= len(stream)
