"""Bytes that no broker would send: the scanner stays within its arrays, and comes to an end."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from pika.amqp_object import Method
from pika.spec import Basic

from tests.machine import EXAMPLES
from transports.amqp import wire
from transports.amqp.scanner import Scanner, Stop
from transports.frames import ADDRESS_BYTES, RECEIVED, FrameBatch, ReturnAddresses

CHANNEL, FRAME_MAX, WINDOW = 7, 256, 30
AROUND = 64
"""Bytes before and behind what the scanner may read or write."""

METHODS = (Basic.Publish, Basic.Return, Basic.Deliver, Basic.Ack, Basic.Nack)
CHANNELS = st.sampled_from([0, 3, CHANNEL, CHANNEL, CHANNEL])
NUMBERS = st.integers(0, 40) | st.integers(0, 2**64 - 1)


def _payload(method: type[Method], tag: int, rest: bytes) -> bytes:
    consumer = bytes([len(rest)]) + rest if method is Basic.Deliver else b""
    return method.INDEX.to_bytes(4, "big") + consumer + tag.to_bytes(8, "big") + b"\x01"


def _frame(channel: int, kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([wire.FRAME_END])


PAYLOADS = st.tuples(
    st.sampled_from([wire.METHOD, wire.HEADER, wire.BODY, 8]),
    st.one_of(
        st.binary(max_size=60),
        st.binary(min_size=FRAME_MAX - 12, max_size=FRAME_MAX),
        st.builds(_payload, st.sampled_from(METHODS), NUMBERS, st.binary(max_size=20)),
        NUMBERS.map(lambda length: bytes([0, wire.BASIC, 0, 0]) + length.to_bytes(8, "big") + bytes(2)),
    ),
)
FRAMES = st.builds(lambda channel, one: _frame(channel, *one), CHANNELS, PAYLOADS)
CLAIMS = st.builds(
    lambda kind, channel, size: bytes([kind]) + channel.to_bytes(2, "big") + size.to_bytes(4, "big"),
    st.integers(0, 9),
    CHANNELS,
    st.integers(0, 2**32 - 1),
)
"""Heads of frames that may be longer than anything that follows."""
STREAMS = st.lists(FRAMES | FRAMES | CLAIMS | st.binary(max_size=40), max_size=12).map(b"".join)
CUTS = st.lists(st.integers(0, 400), max_size=8)


class Seen(NamedTuple):
    """All that a scan of a stream leaves."""

    stops: list[tuple[Stop, int]]
    messages: list[bytes]
    state: list[int]
    settled: bytes


class Surrounded:
    """A stream and a batch in the middle of longer arrays, whose other bytes all have one value."""

    def __init__(self, stream: bytes, value: int, frames: int, largest: int) -> None:
        self._value, self._end = np.uint8(value), AROUND + len(stream)
        self._data = np.full(len(stream) + 2 * AROUND, value, np.uint8)
        self._data[AROUND : self._end] = np.frombuffer(stream, np.uint8)
        self._buffer = np.full(2 * largest + 2 * AROUND, value, np.uint8)
        self._offsets = np.full(frames + 1 + 2 * AROUND, value, np.int64)
        self._scanner = Scanner(CHANNEL, FRAME_MAX, WINDOW)
        self._batch = FrameBatch(frames, largest, largest)
        self._batch.buffer, self._batch.offsets = self._buffer[AROUND:-AROUND], self._offsets[AROUND:-AROUND]
        self._batch.offsets[0] = 0
        self.seen = Seen([], [], [], b"")

    def scan_in_pieces(self, cuts: list[int]) -> Seen:
        at, until = AROUND, AROUND
        for cut in [*cuts, len(self._data)]:
            until = min(until + cut, self._end)
            at = self._scan_all(at, until)
        return self.seen._replace(state=self._scanner._state.tolist(), settled=self._scanner._waiting.tobytes())

    def _scan_all(self, at: int, until: int) -> int:
        """Scan what has come, as a link does; every call consumes bytes or stops for good."""
        while True:
            stop, after, begin = self._scanner.scan(self._data, at, until, self._batch)
            assert at <= begin <= after <= until
            assert stop is not Stop.FOREIGN or after > begin, "a frame for pika is consumed"
            assert stop is not Stop.FULL or after > at or self._batch.count, "an empty batch takes any message"
            self.seen.stops.append((stop, after))
            self.seen.messages.extend(self._batch)
            self._batch.clear()
            if stop in {Stop.MORE, Stop.BROKEN}:
                return after
            at = after

    def is_untouched(self) -> bool:
        """Nothing but the batch was written to."""
        arrays: list[npt.NDArray[np.generic]] = [self._data, self._buffer, self._offsets]
        return all((array[:AROUND] == self._value).all() and (array[-AROUND:] == self._value).all() for array in arrays)


@settings(max_examples=5 * EXAMPLES)
@given(stream=STREAMS, cuts=CUTS, frames=st.integers(1, 4), largest=st.integers(0, 600))
def test_whatever_comes_the_scanner_reads_and_writes_only_what_is_its_own(
    stream: bytes, cuts: list[int], frames: int, largest: int
) -> None:
    """The scanner's result does not depend on the bytes around a stream, and it leaves these bytes unchanged."""
    dark, bright = (Surrounded(stream, value, frames, largest) for value in (0, wire.FRAME_END))
    assert dark.scan_in_pieces(cuts) == bright.scan_in_pieces(cuts)
    assert dark.is_untouched()
    assert bright.is_untouched()
    assert all(len(message) <= largest for message in dark.seen.messages)
    assert sum(map(len, dark.seen.messages)) <= len(stream)


@settings(max_examples=3 * EXAMPLES)
@given(stream=STREAMS, cuts=CUTS)
def test_whatever_comes_it_means_the_same_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    whole, cut = (Surrounded(stream, 0, 4, 600) for _ in range(2))
    at_once, in_pieces = whole.scan_in_pieces([]), cut.scan_in_pieces(cuts)
    assert in_pieces.messages == at_once.messages
    assert in_pieces.state == at_once.state
    assert in_pieces.stops[-1] == at_once.stops[-1]


@settings(max_examples=3 * EXAMPLES)
@given(stream=STREAMS, cut=st.integers(0, 400), capacity=st.integers(1, 3))
def test_whatever_comes_addresses_are_kept_of_whole_messages_only(stream: bytes, cut: int, capacity: int) -> None:
    """And no more of them than there is room for; bytes of properties beyond it are not read."""
    returns, batch = ReturnAddresses(capacity), FrameBatch(8, 1200, 600)
    scanner, data, at = Scanner(CHANNEL, FRAME_MAX, WINDOW, returns), np.frombuffer(stream, np.uint8), 0
    received = 0
    for until in (min(cut, len(stream)), len(stream)):
        stop = Stop.FOREIGN
        while stop is Stop.FOREIGN:
            stop, at, _ = scanner.scan(data, at, until, batch)
        received += batch.count
        batch.clear()
        assert returns.counts[RECEIVED] == received <= capacity
    assert all(0 <= length <= ADDRESS_BYTES for length in returns.lengths)
    assert sum(returns.lengths) <= len(stream)
