"""Bytes that no broker would send: the scanner stays within its arrays and always stops."""

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

CHANNEL = 7
FRAME_MAX = 256
WINDOW = 30
MARGIN = 64
"""Elements before and after those that the scanner may read or write."""

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
FRAMES = st.builds(lambda channel, kind_and_payload: _frame(channel, *kind_and_payload), CHANNELS, PAYLOADS)
CLAIMS = st.builds(
    lambda kind, channel, size: bytes([kind]) + channel.to_bytes(2, "big") + size.to_bytes(4, "big"),
    st.integers(0, 9),
    CHANNELS,
    st.integers(0, 2**32 - 1),
)
"""Heads of frames with sizes that may exceed all bytes that follow."""
STREAMS = st.lists(FRAMES | FRAMES | CLAIMS | st.binary(max_size=40), max_size=12).map(b"".join)
CUTS = st.lists(st.integers(0, 400), max_size=8)


class ScanResult(NamedTuple):
    """The results of all scans of a stream, and the scanner's state at the end."""

    stops: list[tuple[Stop, int]]
    messages: list[bytes]
    state: list[int]
    settled: bytes


class Surrounded:
    """A stream and a batch in the middle of longer arrays, whose other bytes all have one value."""

    def __init__(self, stream: bytes, value: int, frames: int, largest: int) -> None:
        self._value = np.uint8(value)
        self._end = MARGIN + len(stream)
        self._data = np.full(len(stream) + 2 * MARGIN, value, np.uint8)
        self._data[MARGIN : self._end] = np.frombuffer(stream, np.uint8)
        self._buffer = np.full(2 * largest + 2 * MARGIN, value, np.uint8)
        self._offsets = np.full(frames + 1 + 2 * MARGIN, value, np.int64)
        self._scanner = Scanner(CHANNEL, FRAME_MAX, WINDOW)
        self._batch = FrameBatch(frames, largest, largest)
        self._batch.buffer = self._buffer[MARGIN:-MARGIN]
        self._batch.offsets = self._offsets[MARGIN:-MARGIN]
        self._batch.offsets[0] = 0
        self.result = ScanResult([], [], [], b"")

    def scan_in_pieces(self, cuts: list[int]) -> ScanResult:
        at = MARGIN
        until = MARGIN
        for cut in [*cuts, len(self._data)]:
            until = min(until + cut, self._end)
            at = self._scan_all(at, until)
        return self.result._replace(state=self._scanner._state.tolist(), settled=self._scanner._settled_early.tobytes())

    def _scan_all(self, at: int, until: int) -> int:
        """Scan the bytes up to `until`, as a link does. Each call consumes bytes or stops for good."""
        while True:
            stop, after, begin = self._scanner.scan(self._data, at, until, self._batch)
            assert at <= begin <= after <= until
            if stop is Stop.FOREIGN:
                assert after > begin, "a frame for pika is not consumed"
            if stop is Stop.FULL:
                assert after > at or self._batch.count, "an empty batch does not take the message"
            self.result.stops.append((stop, after))
            self.result.messages.extend(self._batch)
            self._batch.clear()
            if stop in {Stop.MORE, Stop.BROKEN}:
                return after
            at = after

    def is_untouched(self) -> bool:
        """Return whether nothing outside the batch was written."""
        arrays: list[npt.NDArray[np.generic]] = [self._data, self._buffer, self._offsets]
        for array in arrays:
            is_start_untouched = (array[:MARGIN] == self._value).all()
            is_end_untouched = (array[-MARGIN:] == self._value).all()
            if not is_start_untouched or not is_end_untouched:
                return False
        return True


@settings(max_examples=5 * EXAMPLES)
@given(stream=STREAMS, cuts=CUTS, frames=st.integers(1, 4), largest=st.integers(0, 600))
def test_the_scanner_reads_and_writes_only_its_own_bytes(
    stream: bytes, cuts: list[int], frames: int, largest: int
) -> None:
    """The scanner's result does not depend on the bytes around a stream, and it leaves these bytes unchanged."""
    among_zeros = Surrounded(stream, 0, frames, largest)
    among_frame_ends = Surrounded(stream, wire.FRAME_END, frames, largest)
    result = among_zeros.scan_in_pieces(cuts)
    assert among_frame_ends.scan_in_pieces(cuts) == result
    assert among_zeros.is_untouched()
    assert among_frame_ends.is_untouched()
    assert all(len(message) <= largest for message in result.messages)
    assert sum(len(message) for message in result.messages) <= len(stream)


@settings(max_examples=3 * EXAMPLES)
@given(stream=STREAMS, cuts=CUTS)
def test_the_parts_of_a_stream_do_not_change_the_result(stream: bytes, cuts: list[int]) -> None:
    at_once = Surrounded(stream, 0, frames=4, largest=600).scan_in_pieces([])
    in_pieces = Surrounded(stream, 0, frames=4, largest=600).scan_in_pieces(cuts)
    assert in_pieces.messages == at_once.messages
    assert in_pieces.state == at_once.state
    assert in_pieces.stops[-1] == at_once.stops[-1]


@settings(max_examples=3 * EXAMPLES)
@given(stream=STREAMS, cut=st.integers(0, 400), capacity=st.integers(1, 3))
def test_only_whole_messages_leave_return_addresses(stream: bytes, cut: int, capacity: int) -> None:
    """There are never more addresses than the capacity, and never longer ones than the room for each."""
    returns = ReturnAddresses(capacity)
    batch = FrameBatch(8, 1200, 600)
    scanner = Scanner(CHANNEL, FRAME_MAX, WINDOW, returns)
    data = np.frombuffer(stream, np.uint8)
    at = 0
    received = 0
    for until in (min(cut, len(stream)), len(stream)):
        stop = Stop.FOREIGN
        while stop is Stop.FOREIGN:
            stop, at, _ = scanner.scan(data, at, until, batch)
        received += batch.count
        batch.clear()
        assert returns.counts[RECEIVED] == received
        assert received <= capacity
    assert all(0 <= length <= ADDRESS_BYTES for length in returns.lengths)
    assert sum(returns.lengths) <= len(stream)
