"""Frames on one TCP connection: a length as u32, little-endian, then the frame; one write for the two."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import time
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types

from transports.base import PeerGone
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.sockets import set_nodelay
from transports.waiting import HAS_PPOLL, WRITABLE, Sleeper

if TYPE_CHECKING:
    from transports.tcp.bounce import Bouncer

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
PREFIX = 4
_READ_BYTES = LONGEST_FRAME + (1 << 18)
_SEND_FLAGS = int(getattr(socket, "MSG_DONTWAIT", 0)) | int(getattr(socket, "MSG_NOSIGNAL", 0))
_libc_send = types.ExternalFunction("send", types.intp(types.int32, types.voidptr, types.uintp, types.int32))
_COMPILED = hasattr(ctypes.CDLL(None), "send") and hasattr(socket, "MSG_DONTWAIT")


@njit(cache=True, nogil=True)
def split_frames(
    stream: Bytes, used: int, buffer: Bytes, offsets: Offsets, count: int, largest: int
) -> tuple[int, int, int]:
    """Copy whole frames out of `stream[:used]`: (bytes consumed, new count, length of a frame too long or 0)."""
    at = 0
    end = offsets[count]
    while used - at >= PREFIX and count + 1 < len(offsets):
        length = int64(stream[at]) | stream[at + 1] << 8 | stream[at + 2] << 16 | stream[at + 3] << 24
        if length > largest:
            return at, count, length
        if used - at - PREFIX < length or end + length > len(buffer):
            break
        at += PREFIX
        buffer[end : end + length] = stream[at : at + length]
        at += length
        end += length
        count += 1
        offsets[count] = end
    return at, count, 0


@njit(cache=True, nogil=True)
def send_frames(fd: int, buffer: Bytes, offsets: Offsets, first: int, count: int, scratch: Bytes) -> tuple[int, int]:
    """One write a frame: (first frame not wholly written, bytes of it written)."""
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        for k in range(PREFIX):
            scratch[k] = (length >> (8 * k)) & 0xFF
        scratch[PREFIX : PREFIX + length] = buffer[offsets[i] : offsets[i + 1]]
        written = _libc_send(fd, scratch.ctypes, length + PREFIX, _SEND_FLAGS)
        if written < length + PREFIX:
            return i, max(written, 0)
    return count, 0


def warm() -> None:
    """Compile the kernels, or load them from disk, so that nothing compiles once frames flow."""
    nothing = FrameBatch(1, PREFIX, PREFIX)
    split_frames(nothing.buffer, 0, nothing.buffer, nothing.offsets, 0, PREFIX)
    send_frames(-1, nothing.buffer, nothing.offsets, 0, 0, nothing.buffer)


class Stream:
    """One connection. What the kernel took of a frame is finished before the next one starts."""

    def __init__(self, sock: socket.socket, nodelay: bool = True, quickack: bool = False) -> None:
        sock.setblocking(False)
        self._quickack = quickack
        self.fd = sock.fileno()
        set_nodelay(self.fd, nodelay)
        self.ended = False
        self._socket = sock
        self._inbound = np.zeros(_READ_BYTES, np.uint8)
        self._used = 0
        self._rest = b""
        self._scratch = np.zeros(_READ_BYTES, np.uint8)
        self._bouncer: Bouncer | None = None

    def receive(self, batch: FrameBatch) -> None:
        """Append what is there; `ended` turns true at the end of the stream, once all that is whole was delivered."""
        fresh = self._read()
        self.split(batch)
        self.ended = fresh == 0 and not self._holds_a_frame()

    def split(self, batch: FrameBatch) -> None:
        """Append the whole frames of what has come."""
        used = self._used
        at, count, too_long = split_frames(
            self._inbound, used, batch.buffer, batch.offsets, batch.count, batch.largest_frame
        )
        self._inbound[: used - at] = self._inbound[at:used].copy()
        self._used, batch.count = used - int(at), int(count)
        if too_long:
            raise PeerGone(f"the peer announced a frame of {too_long} bytes; {batch.largest_frame} is the limit")

    @property
    def bouncer(self) -> Bouncer | None:
        """For one message at a time, where that is compiled."""
        if self._bouncer is None and _COMPILED and HAS_PPOLL and not self._quickack:
            from transports.tcp.bounce import Bouncer

            self._bouncer = Bouncer(self)
        return self._bouncer

    def _holds_a_frame(self) -> bool:
        """Whether a whole frame waits for room in a batch."""
        if self._used < PREFIX:
            return False
        (length,) = struct.unpack_from("<I", self._inbound.data)
        return bool(self._used >= PREFIX + length)

    def _read(self) -> int:
        """Bytes read, 0 at the end of the stream, -1 if nothing is there (or there is no room)."""
        if self._used == len(self._inbound):
            return -1
        try:
            fresh = self._socket.recv_into(self._inbound.data[self._used :])
        except BlockingIOError:
            return -1
        except OSError:
            return 0
        if self._quickack:  # the kernel forgets it soon, so it is said again after every read
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        self._used += fresh
        return fresh

    def send(self, batch: FrameBatch, first: int) -> int:
        """Write frames until the kernel takes no more; the first frame it did not take."""
        if not self._flush():
            return first
        if not _COMPILED:
            return self._send_plainly(batch, first)
        at, written = send_frames(self.fd, batch.buffer, batch.offsets, first, batch.count, self._scratch)
        if at == batch.count:
            return int(at)
        self._rest = self._framed(batch, at)[written:]  # if for good, the next call's flush says why
        return int(at) + 1

    def _send_plainly(self, batch: FrameBatch, first: int) -> int:
        for index in range(first, batch.count):
            self._rest = self._framed(batch, index)
            if not self._flush():
                return index + 1
        return batch.count

    def send_all(self, batch: FrameBatch, first: int) -> None:
        """Take every frame, whatever the kernel does; for the few words said to many peers."""
        self._rest += b"".join(self._framed(batch, index) for index in range(first, batch.count))
        self._flush()

    @property
    def unsent(self) -> bool:
        """Something that was taken waits for the kernel."""
        return bool(self._rest)

    def go_on(self) -> None:
        """Write more of what was taken; that the peer is gone, `receive` and `send` say."""
        with contextlib.suppress(PeerGone):
            self._flush()

    @staticmethod
    def _framed(batch: FrameBatch, index: int) -> bytes:
        frame = batch[index]
        return struct.pack("<I", len(frame)) + frame

    def _flush(self) -> bool:
        """Whether everything taken has gone."""
        while self._rest:
            try:
                self._rest = self._rest[self._socket.send(self._rest) :]
            except BlockingIOError:
                return False
            except OSError as error:
                raise PeerGone(f"the peer closed the connection ({error.strerror})") from error
        return True

    def close(self, linger_s: float) -> None:
        deadline = time.monotonic_ns() + int(linger_s * 1e9)
        with contextlib.suppress(PeerGone, OSError):
            while not self._flush() and time.monotonic_ns() < deadline:
                Sleeper([(self.fd, WRITABLE)]).sleep(deadline)
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()
