"""The compiled calls of a topic, with a key before each frame, and of requests, with their senders' identities."""

from __future__ import annotations

import numpy as np
import zmq
from numba import njit

from transports.frames import ANSWERED, LONGEST_FRAME, RECEIVED, Bytes, Longs, ReturnAddresses
from transports.topics import MOST_KEY_BYTES
from transports.zeromq.calls import Socket
from transports.zeromq.compiled import _DONTWAIT, _EAGAIN, _EINTR, CompiledCalls, Kernels, _errno, _recv, _send

_SNDMORE, _GONE = int(zmq.SNDMORE), int(zmq.EHOSTUNREACH)


@njit(cache=True, nogil=True)
def _send_keyed(
    handle: int, buffer: Bytes, offsets: Longs, first: int, count: int, scratch: Bytes, key_bytes: int
) -> tuple[int, int]:
    """Send each frame behind the key, with which `scratch` begins; returns (the first frame not taken, errno or 0)."""
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        scratch[key_bytes : key_bytes + length] = buffer[offsets[i] : offsets[i + 1]]
        while _send(handle, scratch.ctypes.data, key_bytes + length, _DONTWAIT) < 0:
            error = _errno()
            if error != _EINTR:
                return i, 0 if error == _EAGAIN else error
    return count, 0


@njit(cache=True, nogil=True)
def _receive_keyed(
    handle: int, buffer: Bytes, offsets: Longs, count: int, largest: int, scratch: Bytes
) -> tuple[int, int, int]:
    """Append frames without their keys; returns (the new count, frames dropped as too long or keyless, errno or 0)."""
    dropped = 0
    while count + 1 < len(offsets) and offsets[count] + largest <= len(buffer):
        length = _recv(handle, scratch.ctypes.data, len(scratch), _DONTWAIT)
        if length < 0:
            error = _errno()
            if error == _EINTR:
                continue
            return count, dropped, 0 if error == _EAGAIN else error
        begin = 1
        while begin <= length and scratch[begin - 1] != 0:
            begin += 1
        if length > len(scratch) or not 0 <= length - begin <= largest:
            dropped += 1
            continue
        end = offsets[count] + length - begin
        buffer[offsets[count] : end] = scratch[begin:length]
        count += 1
        offsets[count] = end
    return count, dropped, 0


def topic_calls(socket: Socket, watched: list[int], prefix: bytes) -> CompiledCalls:
    """Calls for frames that each go behind the `prefix`, which is a key and its end."""
    scratch = np.zeros(LONGEST_FRAME + MOST_KEY_BYTES + 1, np.uint8)
    scratch[: len(prefix)] = np.frombuffer(prefix, np.uint8)
    return CompiledCalls(socket, watched, Kernels(_send_keyed, _receive_keyed, (scratch, len(prefix)), (scratch,)))


@njit(cache=True, nogil=True)
def _send_answers(
    handle: int, buffer: Bytes, offsets: Longs, first: int, count: int, addresses: Bytes, lengths: Longs, ends: Longs
) -> tuple[int, int]:
    """Send each answer to its asker, or drop it if that has gone; returns (the first answer not taken, errno or 0)."""
    start = buffer.ctypes.data
    i = first
    while i < count:
        place = ends[ANSWERED] % len(lengths)
        sent = _send(handle, addresses[place].ctypes.data, lengths[place], _DONTWAIT | _SNDMORE)
        while sent >= 0 and _send(handle, start + offsets[i], offsets[i + 1] - offsets[i], _DONTWAIT) < 0:
            if _errno() != _EINTR:
                return i, _errno()
        error = _errno() if sent < 0 else 0
        if error == _EINTR:
            continue
        if error not in (0, _GONE):
            return i, 0 if error == _EAGAIN else error
        ends[ANSWERED] += 1
        i += 1
    return count, 0


@njit(cache=True, nogil=True)
def _receive_requests(
    handle: int, buffer: Bytes, offsets: Longs, count: int, largest: int, addresses: Bytes, lengths: Longs, ends: Longs
) -> tuple[int, int, int]:
    """Append requests, and note their askers; returns (the new count, requests dropped as too long, errno or 0).

    A request is two parts, the asker and the frame, which come together.
    """
    start = buffer.ctypes.data
    dropped = 0
    while (
        count + 1 < len(offsets)
        and offsets[count] + largest <= len(buffer)
        and ends[RECEIVED] - ends[ANSWERED] < len(lengths)
    ):
        place = ends[RECEIVED] % len(lengths)
        identity = _recv(handle, addresses[place].ctypes.data, addresses.shape[1], _DONTWAIT)
        if identity < 0:
            error = _errno()
            if error == _EINTR:
                continue
            return count, dropped, 0 if error == _EAGAIN else error
        length = _recv(handle, start + offsets[count], largest, _DONTWAIT)
        while length < 0 and _errno() == _EINTR:
            length = _recv(handle, start + offsets[count], largest, _DONTWAIT)
        if length < 0:
            return count, dropped, _errno()
        if length > largest:
            dropped += 1
            continue
        lengths[place] = identity
        ends[RECEIVED] += 1
        offsets[count + 1] = offsets[count] + length
        count += 1
    return count, dropped, 0


def answer_calls(socket: Socket, watched: list[int]) -> CompiledCalls:
    """A ROUTER's calls: each answer goes to the sender of its request."""
    returns = ReturnAddresses()
    senders = (returns.addresses, returns.lengths, returns.ends)
    return CompiledCalls(socket, watched, Kernels(_send_answers, _receive_requests, senders, senders))
