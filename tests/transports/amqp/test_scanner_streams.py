"""Streams as a broker may write them: bodies in pieces of any length, with anything of others' in between."""

from __future__ import annotations

from dataclasses import dataclass

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
"""Frames of other channels and of none, which may stand anywhere."""


@dataclass(frozen=True)
class Written:
    """Frames that follow each other on our channel, and what is to become of them."""

    frames: list[bytes]
    message: bytes | None = None
    foreign: bytes = b""
    confirms: int = 0


def a_message(pieces: list[bytes], redelivered: bool) -> Written:
    """A piece may be empty; what has no byte has no piece."""
    body = b"".join(pieces)
    method, header = spec.Basic.Deliver("us", 1, redelivered, "run", "order"), pika.BasicProperties(delivery_mode=2)
    opening = [frame.Method(CHANNEL, method).marshal(), frame.Header(CHANNEL, len(body), header).marshal()]
    while pieces and not pieces[-1]:
        pieces = pieces[:-1]
    return Written([*opening, *(frame.Body(CHANNEL, piece).marshal() for piece in pieces)], message=body)


MESSAGES = st.builds(a_message, st.lists(st.binary(max_size=40), max_size=5), st.booleans())
FOR_PIKA = st.sampled_from(ON_OUR_CHANNEL).map(lambda data: Written([data], foreign=data))
CONFIRMS = st.integers(1, 5).map(lambda more: Written([], confirms=more))
WRITTEN = st.lists(MESSAGES | FOR_PIKA | CONFIRMS, max_size=12)


def stream_of(written: list[Written], strangers: list[tuple[int, bytes]]) -> tuple[list[bytes], bytes]:
    """(the frames, those of them in order that are for pika)"""
    marked: list[tuple[bytes, bytes]] = []
    confirmed = 0
    for one in written:
        confirmed += one.confirms
        ack = [frame.Method(CHANNEL, spec.Basic.Ack(confirmed, True)).marshal()] if one.confirms else []
        marked += [(data, one.foreign) for data in [*one.frames, *ack]]
    for at, stranger in strangers:
        marked.insert(min(at, len(marked)), (stranger, stranger))
    return [data for data, _ in marked], b"".join(foreign for _, foreign in marked)


@settings(max_examples=3 * EXAMPLES)
@given(
    written=WRITTEN,
    strangers=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(OTHERS)), max_size=8),
    cuts=st.lists(st.integers(1, 120), max_size=60),
    capacity=st.integers(1, 3),
)
def test_mixed_and_cut_streams_come_out_in_order(
    written: list[Written], strangers: list[tuple[int, bytes]], cuts: list[int], capacity: int
) -> None:
    """Messages, confirms, and what is for pika."""
    frames, foreign = stream_of(written, strangers)
    data, reader = b"".join(frames), Reader(capacity=capacity)
    for cut in cuts:
        assert reader.feed(data[:cut]) is Stop.MORE
        data = data[cut:]
    assert reader.feed(data) is Stop.MORE
    assert reader.messages == [one.message for one in written if one.message is not None]
    assert reader.foreign == foreign
    assert reader.scanner.confirmed == sum(one.confirms for one in written)


@given(written=WRITTEN)
def test_a_stream_may_come_byte_by_byte(written: list[Written]) -> None:
    frames, foreign = stream_of(written, [])
    reader = Reader()
    for byte in b"".join(frames):
        assert reader.feed(bytes([byte])) is Stop.MORE
    assert reader.messages == [one.message for one in written if one.message is not None]
    assert reader.foreign == foreign
