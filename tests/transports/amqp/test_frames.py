"""The kernels that lay out and scan AMQP frames, held to pika's own encoder and decoder."""

from __future__ import annotations

import numpy as np
import pika
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pika import frame, spec

from tests.machine import EXAMPLES
from transports.amqp import wire
from transports.amqp.layout import PublishLayout
from transports.amqp.scanner import Scanner, Stop
from transports.frames import FrameBatch

CHANNEL = 7
FRAME_MAX = 4096
BODIES = st.lists(st.integers(0, 3 * FRAME_MAX).map(lambda n: bytes([n % 251]) * n), max_size=6)
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
    """A message's frames as a broker sends them."""
    method = spec.Basic.Deliver(f"consumer-{tag}", tag, redelivered, "run", "order")
    most = frame_max - wire.OVERHEAD_BYTES
    bodies = [frame.Body(CHANNEL, body[at : at + most]).marshal() for at in range(0, len(body), most)]
    header = frame.Header(CHANNEL, len(body), pika.BasicProperties(content_type="x", delivery_mode=2))
    return [frame.Method(CHANNEL, method).marshal(), header.marshal(), *bodies]


class Reader:
    """Feeds a scanner a stream cut anywhere, as a link does."""

    def __init__(self, window: int = 100, capacity: int = 1000) -> None:
        self.scanner = Scanner(CHANNEL, FRAME_MAX, window)
        self.messages: list[bytes] = []
        self.foreign = b""
        self._rest = b""
        self._capacity = capacity

    def feed(self, data: bytes) -> Stop:
        self._rest += data
        why = Stop.FOREIGN
        while why in {Stop.FOREIGN, Stop.FULL}:
            batch = FrameBatch(self._capacity, 1 << 17)
            stream = np.frombuffer(self._rest, np.uint8)
            why, consumed, begin = self.scanner.scan(stream, 0, len(stream), batch)
            self.messages += list(batch)
            if why is Stop.FOREIGN:
                self.foreign += self._rest[begin:consumed]
            assert why is not Stop.FULL or batch.count or consumed, "an empty batch takes any message"
            self._rest = self._rest[consumed:]
        return why


@given(bodies=BODIES, persistent=st.booleans(), mandatory=st.booleans(), exchange=st.text(max_size=60))
def test_pika_reads_what_is_laid_out(bodies: list[bytes], persistent: bool, mandatory: bool, exchange: str) -> None:
    layout = PublishLayout(wire.publish_method(CHANNEL, exchange, "order", mandatory), CHANNEL, FRAME_MAX, persistent)
    out = np.zeros(1 << 17, np.uint8)
    assert layout.write(FrameBatch.of(*bodies), 0, len(bodies), out, 0)[0] == len(bodies)
    data = out[: layout.write(FrameBatch.of(*bodies), 0, len(bodies), out, 0)[1]].tobytes()
    read: list[bytes] = []
    while data:
        consumed, one = frame.decode_frame(data)
        assert consumed <= FRAME_MAX
        data = data[consumed:]
        match one:
            case frame.Method(method=publish):
                assert (publish.exchange, publish.routing_key, publish.mandatory) == (exchange, "order", mandatory)
                read.append(b"")
            case frame.Header(properties=properties, body_size=size):
                assert properties.delivery_mode == (2 if persistent else None)
                sizes = size
            case frame.Body(fragment=fragment):
                read[-1] += fragment
                assert len(read[-1]) <= sizes
    assert read == bodies


def test_what_finds_no_room_is_left_out_whole() -> None:
    layout = PublishLayout(wire.publish_method(1, "x", "k", False), 1, FRAME_MAX, False)
    out = np.zeros(200, np.uint8)
    assert layout.write(FrameBatch.of(b"a" * 10, b"b" * 1000, b"c"), 0, 3, out, 0)[0] == 1


@given(
    bodies=BODIES,
    cuts=st.lists(st.integers(1, 6000), max_size=30),
    strangers=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(FOREIGN)), max_size=5),
    capacity=st.integers(1, 4),
)
def test_messages_come_out_whole_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int], strangers: list[tuple[int, bytes]], capacity: int
) -> None:
    frames = [one for tag, body in enumerate(bodies, 1) for one in delivery(body, tag)]
    for at, stranger in strangers:  # other channels' frames may stand anywhere, also within a message
        frames.insert(min(at, len(frames)), stranger)
    data, reader = b"".join(frames), Reader(capacity=capacity)
    for cut in cuts:
        assert reader.feed(data[:cut]) is Stop.MORE
        data = data[cut:]
    assert reader.feed(data) is Stop.MORE
    assert reader.messages == bodies
    assert sorted(reader.foreign) == sorted(b"".join(stranger for _, stranger in strangers))
    assert reader.scanner.delivery_tag == len(bodies)


@pytest.mark.parametrize("stranger", ON_OUR_CHANNEL)
def test_what_is_no_delivery_goes_to_pika_between_messages(stranger: bytes) -> None:
    reader = Reader()
    reader.feed(b"".join(delivery(b"one", 1)) + stranger + b"".join(delivery(b"two", 2, redelivered=True)))
    assert reader.messages == [b"one", b"two"]
    assert reader.foreign == stranger
    assert reader.scanner.redelivered == 1


def test_a_message_longer_than_the_batch_takes_is_dropped_and_counted() -> None:
    scanner, batch = Scanner(CHANNEL, FRAME_MAX), FrameBatch(10, 4096, 1000)
    data = b"".join(delivery(b"x" * 9000, 1) + delivery(b"short", 2))
    why, consumed, _ = scanner.scan(np.frombuffer(data, np.uint8), 0, len(data), batch)
    assert (why, consumed, list(batch), scanner.too_long) == (Stop.MORE, len(data), [b"short"], 1)


@given(cut=st.integers(0, 9100))
def test_a_message_for_two_batches_goes_to_the_right_one(cut: int) -> None:
    scanner, aside, batch = Scanner(CHANNEL, FRAME_MAX), FrameBatch(10), FrameBatch(10, 4096, 1000)
    data = np.frombuffer(b"".join(delivery(b"x" * 9000, 1) + delivery(b"short", 2)), np.uint8)
    _, consumed, _ = scanner.scan(data, 0, cut, aside)
    why, consumed, _ = scanner.scan(data, consumed, len(data), batch)
    assert (why, consumed) == (Stop.MORE, len(data))
    assert (list(batch), scanner.too_long) == ([b"short"], 1 - aside.count)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=20))
def test_confirms_settle_from_the_first_publish_on(steps: list[tuple[bool, int]]) -> None:
    reader, settled = Reader(window=300), set()
    for multiple, ahead in steps:
        tag = max(settled, default=0) + ahead
        reader.feed(frame.Method(CHANNEL, spec.Basic.Ack(tag, multiple)).marshal())
        settled |= set(range(1, tag + 1)) if multiple else {tag}
        assert reader.scanner.confirmed == next(n for n in range(len(settled) + 1) if n + 1 not in settled)


def test_a_nack_settles_and_is_counted() -> None:
    reader = Reader()
    reader.feed(frame.Method(CHANNEL, spec.Basic.Ack(2, True)).marshal())
    reader.feed(frame.Method(CHANNEL, spec.Basic.Nack(5, True)).marshal())
    assert (reader.scanner.confirmed, reader.scanner.refused) == (5, 3)
    reader.feed(frame.Method(CHANNEL, spec.Basic.Nack(1, True)).marshal())
    assert (reader.scanner.confirmed, reader.scanner.refused) == (5, 3), "what is settled stays settled"


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame.Heartbeat().marshal()[:-1] + b"\x00",
        b"\x01\x00\x07\x00\x00\x00\x18\x00\x3c\x00\x3c" + b"\xff" * 20 + b"\xce",  # a consumer's tag beyond the frame
        b"".join(delivery(b"abc", 1)[:1]) + frame.Body(CHANNEL, b"abc").marshal(),  # a body without its header
        b"".join(delivery(b"abc", 1)[:2]) + frame.Body(CHANNEL, b"abcd").marshal(),  # longer than its header said
        frame.Method(CHANNEL, spec.Basic.Ack(10**6, False)).marshal(),  # a confirm of what was never published
    ],
)
def test_what_is_no_amqp_is_noticed(broken: bytes) -> None:
    assert Reader().feed(broken) is Stop.BROKEN


@settings(max_examples=3 * EXAMPLES)
@given(data=st.binary(max_size=400), place=st.integers(0, 200), bodies=BODIES)
def test_no_bytes_whatever_make_the_scanner_lose_its_way(data: bytes, place: int, bodies: list[bytes]) -> None:
    """Fuzz: a valid stream with anything written over it never crashes, and never yields more than it holds."""
    stream = bytearray(b"".join(one for tag, body in enumerate(bodies, 1) for one in delivery(body, tag)))
    stream[place : place + len(data)] = data
    reader = Reader()
    reader.feed(bytes(stream))
    assert sum(map(len, reader.messages)) + len(reader.foreign) <= len(stream)
