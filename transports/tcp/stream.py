"""Frames on one TCP connection: the length as u32, little-endian, and the frame, in one write."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable

import numpy as np
from numba import int64, njit

from transports.base import PeerGone
from transports.frames import LONGEST_FRAME, Bytes, FrameBatch, Longs
from transports.lending import (
    AT_ONCE,
    NOTICE,
    RECEIVE,
    SEND,
    SLEEP,
    SOCKETS_ARE_COMPILED,
    Lent,
    lendable,
    move_bytes,
    poll,
    pollfd,
    receive_bytes,
    send_bytes,
)
from transports.sockets import set_nodelay
from transports.waiting import HAS_PPOLL, READABLE, WRITABLE, Sleeper

PREFIX = 4
"""The bytes of a frame's length, which precedes the frame."""
_READ_BYTES = LONGEST_FRAME + (1 << 18)
"""The bytes of memory for bytes that came."""


@njit(cache=True, nogil=True)
def _length_at(stream: Bytes, at: int) -> int:
    """The length of the frame whose prefix begins at `at`."""
    length: int = int64(stream[at]) | stream[at + 1] << 8 | stream[at + 2] << 16 | stream[at + 3] << 24
    return length


@njit(cache=True, nogil=True)
def split_frames(
    stream: Bytes, begin: int, end: int, buffer: Bytes, offsets: Longs, count: int, largest: int
) -> tuple[int, int, int]:
    """Copy whole frames out of `stream[begin:end]` into a batch's arrays.

    Returns (where the first byte is that was not consumed, the batch's new count, the length of a frame that is longer
    than `largest`, or 0).
    """
    at = begin
    filled = offsets[count]
    while end - at >= PREFIX and count + 1 < len(offsets):
        length = _length_at(stream, at)
        if length > largest:
            return at, count, length
        if end - at - PREFIX < length or filled + length > len(buffer):
            break
        at += PREFIX
        move_bytes(buffer[filled:].ctypes, stream[at:].ctypes, length)
        at += length
        filled += length
        count += 1
        offsets[count] = filled
    return at, count, 0


@njit(cache=True, nogil=True)
def send_frames(fd: int, buffer: Bytes, offsets: Longs, first: int, count: int, scratch: Bytes) -> tuple[int, int]:
    """Write frames first..count-1, a call each; returns (the first frame not wholly written, its bytes written)."""
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        if PREFIX + length > len(scratch):
            raise ValueError("a frame is longer than LONGEST_FRAME allows")
        for k in range(PREFIX):
            scratch[k] = (length >> (8 * k)) & 0xFF
        move_bytes(scratch[PREFIX:].ctypes, buffer[offsets[i] :].ctypes, length)
        written = send_bytes(fd, scratch.ctypes, length + PREFIX, AT_ONCE)
        if written < length + PREFIX:
            return i, max(written, 0)
    return count, 0


# Indexes of a stream's numbers; index 0 has the notice of lent calls.
_BEGIN = 1
"""The begin of the bytes that came and are in no batch yet."""
_END = 2
"""The end of those bytes."""
_REST = 3
"""The begin, in the scratch memory, of the part of a frame that did not leave."""
_REST_END = 4
"""The end of that part; 0 if every frame has left as a whole."""
_OUT = 5
"""The descriptor that sends."""
_IN = 6
"""The descriptor that receives."""
_POLLED = 7
"""The number of descriptors that a sleep watches."""
_TIMESPEC = 8
"""A struct timespec, two numbers."""
_DESCRIPTORS = 10
"""From here on a struct pollfd for each descriptor, a number each."""
MOST_DESCRIPTORS = 64
"""The most descriptors that a sleep of the lent calls watches."""


@lendable(RECEIVE)
def _lent_receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    inbound = memory[:_READ_BYTES]
    begin = numbers[_BEGIN]
    end = numbers[_END]
    has_prefix = end - begin >= PREFIX
    holds_a_frame = has_prefix and end - begin - PREFIX >= _length_at(inbound, begin)
    if begin > 0 and not holds_a_frame:
        move_bytes(inbound.ctypes, inbound[begin:].ctypes, end - begin)
        end -= begin
        begin = 0
    if end < len(inbound):
        came = receive_bytes(numbers[_IN], inbound[end:].ctypes, len(inbound) - end, AT_ONCE)
        end += max(came, 0)
        numbers[NOTICE] |= came == 0  # the stream has ended
    at, count, too_long = split_frames(inbound, begin, end, buffer, offsets, count, largest)
    numbers[_BEGIN] = at
    numbers[_END] = end
    numbers[NOTICE] |= too_long > 0
    return count


@lendable(SEND)
def _lent_send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    at, written = send_frames(numbers[_OUT], buffer, offsets, first, end, memory[_READ_BYTES:])
    if written > 0 and at < end:
        numbers[_REST] = written
        numbers[_REST_END] = PREFIX + offsets[at + 1] - offsets[at]
        numbers[NOTICE] = 1
        at += 1
    return at


@lendable(SLEEP)
def _lent_sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    pollfds = numbers[_DESCRIPTORS : _DESCRIPTORS + numbers[_POLLED]]
    numbers[NOTICE] |= poll(pollfds, numbers[_TIMESPEC:_DESCRIPTORS], until_ns) != 0


def lent_calls(inbound: TcpStream, outbound: TcpStream, others: list[int], settle: Callable[[], None]) -> Lent | None:
    """The calls of two streams, or of one stream for both ways; None if compiled calls cannot serve them now.

    `others`: further descriptors that end a sleep. The calls' state is in the inbound stream's arrays.
    """
    streams = [inbound] if outbound is inbound else [inbound, outbound]
    watched = [stream.fd for stream in streams] + others
    if not (inbound.is_compiled and outbound.is_compiled) or outbound.unsent or len(watched) > MOST_DESCRIPTORS:
        return None
    numbers = inbound.numbers
    outbound.lender = inbound
    numbers[[_IN, _OUT, _POLLED]] = inbound.fd, outbound.fd, len(watched)
    numbers[_DESCRIPTORS : _DESCRIPTORS + len(watched)] = [pollfd(descriptor) for descriptor in watched]
    pollfds = numbers[_DESCRIPTORS : _DESCRIPTORS + len(watched)]
    return Lent(_lent_receive, _lent_send, _lent_sleep, numbers, inbound.memory, settle, pollfds=pollfds)


def warm() -> None:
    """Compile the kernels, or load them from disk, before frames flow."""
    nothing = FrameBatch(1, PREFIX, PREFIX)
    split_frames(nothing.buffer, 0, 0, nothing.buffer, nothing.offsets, 0, PREFIX)
    send_frames(-1, nothing.buffer, nothing.offsets, 0, 0, nothing.buffer)


class OverlongFrame(PeerGone):
    """A peer announced a frame that no batch can take. Nothing after such a frame can be read."""

    def __init__(self, length: int, largest: int) -> None:
        super().__init__(f"the peer announced a frame of {length} bytes; {largest} is the limit")


class TcpStream:
    """One connection. It finishes a frame that the kernel took in part before it starts the next one."""

    later: tuple[type[OSError], ...] = (BlockingIOError,)
    """The errors after which a call is to be made again, once the descriptor is ready."""
    writes_compiled = SOCKETS_ARE_COMPILED
    problem = ""
    """The reason for the stream's end, as the end of a sentence; empty if it is not known."""

    def __init__(self, sock: socket.socket, nodelay: bool = True, quickack: bool = False) -> None:
        sock.setblocking(False)
        self._quickack = quickack
        self.fd = sock.fileno()
        set_nodelay(self.fd, nodelay)
        self.ended = False
        self._socket = sock
        self.memory = np.zeros(2 * _READ_BYTES, np.uint8)
        """Memory for the bytes that came, then for the frame that is being sent."""
        self.numbers = np.zeros(_DESCRIPTORS + MOST_DESCRIPTORS, np.int64)
        """State that Python and the lent calls share; see the indexes above."""
        self._marks = memoryview(self.numbers.data)  # gives Python's own integers, which are faster
        self._inbound = self.memory[:_READ_BYTES]
        self._scratch = self.memory[_READ_BYTES:]
        self._rest = b""
        self.lender = self
        """The stream in whose memory lent calls leave the rest of a frame that this stream has to write."""

    @property
    def _held_bytes(self) -> int:
        """The number of bytes that have come and are not split into frames."""
        return self._marks[_END] - self._marks[_BEGIN]

    def receive(self, batch: FrameBatch) -> None:
        """Append the frames that have come. `ended` becomes True at the stream's end, after its last whole frame."""
        fresh_bytes = self._read()
        self.split(batch)
        self.ended = fresh_bytes == 0 and not self.holds_a_frame

    def split(self, batch: FrameBatch) -> None:
        """Append the whole frames among the bytes that have come. OverlongFrame if one is too long for the batch."""
        marks = self._marks
        at, count, too_long = split_frames(
            self._inbound, marks[_BEGIN], marks[_END], batch.buffer, batch.offsets, batch.count, batch.largest_frame
        )
        marks[_BEGIN] = at
        batch.count = int(count)
        if too_long:
            raise OverlongFrame(too_long, batch.largest_frame)

    @property
    def is_compiled(self) -> bool:
        """True if compiled calls serve the connection."""
        return SOCKETS_ARE_COMPILED and HAS_PPOLL and not self._quickack

    @property
    def holds_a_frame(self) -> bool:
        """True if a whole frame waits for room in a batch."""
        held_bytes = self._held_bytes
        if held_bytes < PREFIX:
            return False
        [length] = struct.unpack_from("<I", self._inbound.data, self._marks[_BEGIN])
        return bool(held_bytes >= PREFIX + length)

    @property
    def has_unshown_bytes(self) -> bool:
        """True if this end has bytes that `receive` can go on with and the descriptor does not show: a whole frame."""
        return self.holds_a_frame

    def _read(self) -> int:
        """Read bytes. Returns their number, 0 at the end of the stream, -1 if no byte has come or there is no room."""
        self._make_room()
        end = self._marks[_END]
        if end == len(self._inbound):
            return -1
        try:
            fresh = self._socket.recv_into(self._inbound.data[end:])
        except self.later:
            return -1
        except OSError as error:
            self._note(error)
            return 0
        if self._quickack:  # set the option after every read, since the kernel soon resets it
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._marks[_END] = end + fresh
        return fresh

    def _make_room(self) -> None:
        """Move what is left to the front of the memory, if it is less than a frame.

        While whole frames wait for room in a batch, they stay where they are: to move many of them each time that one
        is taken would cost more than all else.
        """
        marks = self._marks
        begin = marks[_BEGIN]
        end = marks[_END]
        if begin == 0 or self.holds_a_frame:
            return
        if begin < end:
            self._inbound[: end - begin] = self._inbound[begin:end].copy()
        marks[_BEGIN] = 0
        marks[_END] = end - begin

    def _note(self, error: OSError) -> None:
        """Note in `problem` why a read or a write failed. A plain connection gives no reason beyond its end."""

    def send(self, batch: FrameBatch, first: int) -> int:
        """Write frames until the kernel takes no more. Returns the first frame that was not taken."""
        if not self._flush():
            return first
        if not self.writes_compiled:
            return self._send_plainly(batch, first)
        at, written = send_frames(self.fd, batch.buffer, batch.offsets, first, batch.count, self._scratch)
        if at == batch.count:
            return int(at)
        self._rest = self._framed(batch, at)[written:]  # if the connection is broken, the next flush raises
        return int(at) + 1

    def _send_plainly(self, batch: FrameBatch, first: int) -> int:
        """Write frames as `send` does, without compiled calls."""
        for index in range(first, batch.count):
            self._rest = self._framed(batch, index)
            if not self._flush():
                return index + 1
        return batch.count

    def send_all(self, batch: FrameBatch, first: int) -> None:
        """Take every frame, even if the kernel has no room: for the few frames that go to many peers."""
        self.send_first(b"".join(self._framed(batch, index) for index in range(first, batch.count)))

    def send_first(self, data: bytes) -> None:
        """Take bytes without a length before them: a preamble, or frames that have their lengths."""
        self._rest += data
        self._flush()

    def events(self, readable: bool, writable: bool) -> int:
        """The events to wait for: that a frame can be received (`readable`), that a frame can be sent (`writable`)."""
        return (READABLE if readable else 0) | (WRITABLE if writable or self.unsent else 0)

    @property
    def unsent(self) -> bool:
        """True if bytes that were taken wait for the kernel."""
        self._take_rest()
        return bool(self._rest)

    def _take_rest(self) -> None:
        """Take the bytes that a lent call could not write."""
        numbers = self.lender.numbers
        if numbers[_REST_END] and numbers[_OUT] == self.fd:
            self._rest += self.lender._scratch[numbers[_REST] : numbers[_REST_END]].tobytes()
            numbers[_REST_END] = 0

    def go_on(self) -> None:
        """Write more of the bytes that were taken. It ignores a peer that is gone: `receive` and `send` report that."""
        with contextlib.suppress(PeerGone):
            self._flush()

    @staticmethod
    def _framed(batch: FrameBatch, index: int) -> bytes:
        frame = batch[index]
        return struct.pack("<I", len(frame)) + frame

    def _flush(self) -> bool:
        """Write the bytes that were taken. True if all of them have left."""
        self._take_rest()
        while self._rest:
            try:
                self._rest = self._rest[self._write(self._rest) :]
            except self.later:
                return False
            except OSError as error:
                self._note(error)
                raise PeerGone(f"the peer closed the connection ({error.strerror})") from error
        return True

    def _write(self, data: bytes) -> int:
        return self._socket.send(data)

    def drain(self, until_ns: int) -> bool:
        """Write all bytes that were taken. False if time ran out, PeerGone if the peer has left."""
        while not self._flush():
            if time.monotonic_ns() >= until_ns:
                return False
            Sleeper([(self.fd, self.events(readable=False, writable=True))]).sleep(until_ns)
        return True

    def close(self, linger_s: float) -> None:
        with contextlib.suppress(PeerGone, OSError):
            self.drain(time.monotonic_ns() + int(linger_s * 1e9))
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()
