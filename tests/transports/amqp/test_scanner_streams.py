"""Streams as a broker may write them: bodies in pieces of any length, with other channels' frames in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pika
from hypothesis import given, settings
from hypothesis import strategies as st
from pika import frame, spec

from tests.machine import EXAMPLES
from tests.transports.amqp.test_frames import CHANNEL, FOREIGN, ON_OUR_CHANNEL, Reader
from transports.amqp.scanner import Stop

OTHERS = [
    *FOREIGN,
    frame.Header(3, 5, pika.BasicProperties()).marshal(),
    frame.Body(3, b"\xce" * 5).marshal(),
    frame.Method(3, spec.Basic.Ack(1, True)).marshal(),
]
"""Frames of other channels, or without a channel. They may be anywhere in a stream."""


@dataclass(frozen=True)
class Part:
    """Frames that follow each other on our channel, and what the scanner must make of them."""

    frames: list[bytes]
    message: bytes | None = None
    """The message in these frames."""
    foreign: bytes = b""
    """The bytes that are for pika."""
    confirms: int = 0
    """How many further messages a confirm after these frames confirms."""


def message_part(pieces: list[bytes], redelivered: bool) -> Part:
    """Return a delivered message. A piece of the body may be empty, except the last one."""
    body = b"".join(pieces)
    while pieces and not pieces[-1]:
        pieces = pieces[:-1]
    method = spec.Basic.Deliver("us", 1, redelivered, "run", "order")
    header = pika.BasicProperties(delivery_mode=2)
    frames = [frame.Method(CHANNEL, method).marshal(), frame.Header(CHANNEL, len(body), header).marshal()]
    frames += [frame.Body(CHANNEL, piece).marshal() for piece in pieces]
    return Part(frames, message=body)


MESSAGES = st.builds(message_part, st.lists(st.binary(max_size=40), max_size=5), st.booleans())
FOR_PIKA = st.sampled_from(ON_OUR_CHANNEL).map(lambda data: Part([data], foreign=data))
CONFIRMS = st.integers(1, 5).map(lambda confirms: Part([], confirms=confirms))
PARTS = st.lists(MESSAGES | FOR_PIKA | CONFIRMS, max_size=12)


class Stream(NamedTuple):
    data: bytes
    foreign: bytes
    """The bytes that are for pika, in order."""


def stream_of(parts: list[Part], strangers: list[tuple[int, bytes]]) -> Stream:
    """Return the stream of these parts, with the strangers' frames inserted at these places."""
    frames: list[bytes] = []
    foreign: list[bytes] = []  # the bytes of each frame that are for pika
    confirmed = 0
    for part in parts:
        frames += part.frames
        foreign += [part.foreign] * len(part.frames)
        if part.confirms:
            confirmed += part.confirms
            frames.append(frame.Method(CHANNEL, spec.Basic.Ack(confirmed, True)).marshal())
            foreign.append(b"")
    for place, stranger in strangers:
        frames.insert(min(place, len(frames)), stranger)
        foreign.insert(min(place, len(foreign)), stranger)
    return Stream(b"".join(frames), b"".join(foreign))


def messages_in(parts: list[Part]) -> list[bytes]:
    return [part.message for part in parts if part.message is not None]


@settings(max_examples=3 * EXAMPLES)
@given(
    parts=PARTS,
    strangers=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(OTHERS)), max_size=8),
    cuts=st.lists(st.integers(1, 120), max_size=60),
    capacity=st.integers(1, 3),
)
def test_messages_confirms_and_foreign_frames_are_read_in_order(
    parts: list[Part], strangers: list[tuple[int, bytes]], cuts: list[int], capacity: int
) -> None:
    stream = stream_of(parts, strangers)
    data = stream.data
    reader = Reader(capacity=capacity)
    for cut in cuts:
        assert reader.feed(data[:cut]) is Stop.MORE
        data = data[cut:]
    assert reader.feed(data) is Stop.MORE
    assert reader.messages == messages_in(parts)
    assert reader.foreign == stream.foreign
    assert reader.scanner.confirmed == sum(part.confirms for part in parts)


@given(parts=PARTS)
def test_a_stream_may_come_byte_by_byte(parts: list[Part]) -> None:
    stream = stream_of(parts, [])
    reader = Reader()
    for byte in stream.data:
        assert reader.feed(bytes([byte])) is Stop.MORE
    assert reader.messages == messages_in(parts)
    assert reader.foreign == stream.foreign
