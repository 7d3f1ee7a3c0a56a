"""The compiled calls of a topic, with a key before each frame, and of requests, with their senders' identities."""

from __future__ import annotations

import numpy as np
import zmq
from numba import njit

from transports.frames import ANSWERED, LONGEST_FRAME, RECEIVED, Bytes, Longs, ReturnAddresses
from transports.topics import MOST_KEY_BYTES
from transports.zeromq.calls import Socket
from transports.zeromq.compiled import DONTWAIT, CompiledCalls, Kernels, receive_part, send_part

_SNDMORE = int(zmq.SNDMORE)
_GONE = int(zmq.EHOSTUNREACH)


@njit(cache=True, nogil=True)
def _send_keyed(
    handle: int, buffer: Bytes, offsets: Longs, first: int, count: int, scratch: Bytes, key_bytes: int
) -> tuple[int, int]:
    """Send each frame after the key, with which `scratch` begins; returns (the first frame not taken, errno or 0)."""
    for i in range(first, count):
        length = offsets[i + 1] - offsets[i]
        scratch[key_bytes : key_bytes + length] = buffer[offsets[i] : offsets[i + 1]]
        taken, error = send_part(handle, scratch.ctypes.data, key_bytes + length, DONTWAIT)
        if not taken:
            return i, error
    return count, 0


@njit(cache=True, nogil=True)
def _receive_keyed(
    handle: int, buffer: Bytes, offsets: Longs, count: int, largest: int, scratch: Bytes
) -> tuple[int, int, int]:
    """Append frames without their keys; returns (the new count, frames dropped as too long or keyless, errno or 0)."""
    dropped = 0
    while count + 1 < len(offsets) and offsets[count] + largest <= len(buffer):
        length, error = receive_part(handle, scratch.ctypes.data, len(scratch))
        if length < 0:
            return count, dropped, error
        begin = 1  # of the frame, after the zero byte that ends the key
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
    """Calls for frames that each follow the `prefix`, which is a key and its end."""
    scratch = np.zeros(LONGEST_FRAME + MOST_KEY_BYTES + 1, np.uint8)
    scratch[: len(prefix)] = np.frombuffer(prefix, np.uint8)
    kernels = Kernels(
        send=_send_keyed,
        receive=_receive_keyed,
        extra_send_arguments=(scratch, len(prefix)),
        extra_receive_arguments=(scratch,),
    )
    return CompiledCalls(socket, watched, kernels)


@njit(cache=True, nogil=True)
def _send_answers(
    handle: int, buffer: Bytes, offsets: Longs, first: int, count: int, addresses: Bytes, lengths: Longs, counts: Longs
) -> tuple[int, int]:
    """Send each answer to its asker, or drop it if that has gone; returns (the first answer not taken, errno or 0)."""
    start = buffer.ctypes.data
    for i in range(first, count):
        place = counts[ANSWERED] % len(lengths)
        taken, error = send_part(handle, addresses[place].ctypes.data, lengths[place], DONTWAIT | _SNDMORE)
        if taken:
            length = offsets[i + 1] - offsets[i]
            taken, error = send_part(handle, start + offsets[i], length, DONTWAIT)
        if not taken and error != _GONE:
            return i, error
        counts[ANSWERED] += 1
    return count, 0


@njit(cache=True, nogil=True)
def _receive_requests(
    handle: int,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    largest: int,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
) -> tuple[int, int, int]:
    """Append requests, and note their askers; returns (the new count, requests dropped as too long, errno or 0).

    A request is two parts, the asker and the frame, which come together.
    """
    start = buffer.ctypes.data
    dropped = 0
    while (
        count + 1 < len(offsets)
        and offsets[count] + largest <= len(buffer)
        and counts[RECEIVED] - counts[ANSWERED] < len(lengths)
    ):
        place = counts[RECEIVED] % len(lengths)
        identity_bytes, error = receive_part(handle, addresses[place].ctypes.data, addresses.shape[1])
        if identity_bytes < 0:
            return count, dropped, error
        length, error = receive_part(handle, start + offsets[count], largest)
        if length < 0:
            return count, dropped, error
        if length > largest:
            dropped += 1
            continue
        lengths[place] = identity_bytes
        counts[RECEIVED] += 1
        offsets[count + 1] = offsets[count] + length
        count += 1
    return count, dropped, 0


def answer_calls(socket: Socket, watched: list[int]) -> CompiledCalls:
    """A ROUTER's calls: each answer goes to the sender of its request."""
    returns = ReturnAddresses()
    senders = (returns.addresses, returns.lengths, returns.counts)
    kernels = Kernels(
        send=_send_answers, receive=_receive_requests, extra_send_arguments=senders, extra_receive_arguments=senders
    )
    return CompiledCalls(socket, watched, kernels)
