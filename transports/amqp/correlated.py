"""Requests and answers to bytes, as transports/amqp/layout.py; a request has a number, an answer goes where it says.

A request's correlation id is its asker's 16 hexadecimal digits and its number's 16. An answer has the correlation id of
its request, and its reply-to as the routing key, or a key that is the same for all.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from transports.amqp import wire
from transports.amqp.layout import put_big_endian
from transports.amqp.wire import BODY, CORRELATION_ID, FRAME_END, HEAD_BYTES, HEADER, METHOD, OVERHEAD_BYTES, REPLY_TO
from transports.frames import FrameBatch
from transports.returns import ANSWERED, NOBODY, Returns

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
DIGITS = 16
_HEADERS, _DELIVERY_MODE, _PRIORITY = 0x2000, 0x1000, 0x0800
_TEXTS_BEFORE = (0x8000, 0x4000)
"""Content type and encoding."""


@njit(inline="always")
def _put_bodies(buffer: Bytes, start: int, length: int, channel: int, most_body: int, out: Bytes, at: int) -> int:
    """The body frames of a message; where they end."""
    done = 0
    while done < length:
        size = min(length - done, most_body)
        out[at] = BODY
        put_big_endian(out, at + 1, channel, 2)
        put_big_endian(out, at + 3, size, 4)
        out[at + HEAD_BYTES : at + HEAD_BYTES + size] = buffer[start + done : start + done + size]
        out[at + HEAD_BYTES + size] = FRAME_END
        at += size + OVERHEAD_BYTES
        done += size
    return at


@njit(cache=True, nogil=True)
def _lay_out_requests(
    buffer: Bytes, offsets: Longs, first: int, last: int, opening: Bytes, length_at: int, number_at: int,
    number: int, channel: int, most_body: int, out: Bytes, at: int,
) -> tuple[int, int]:  # fmt: skip
    """(the first message that found no room, where the bytes end)."""
    for message in range(first, last):
        start, length = offsets[message], offsets[message + 1] - offsets[message]
        bodies = (length + most_body - 1) // most_body
        if at + len(opening) + length + bodies * OVERHEAD_BYTES > len(out):
            return message, at
        out[at : at + len(opening)] = opening
        put_big_endian(out, at + length_at, length, 8)
        for k in range(DIGITS):
            digit = (number >> (4 * (DIGITS - 1 - k))) & 15
            out[at + number_at + k] = digit + (48 if digit < 10 else 87)
        number += 1
        at = _put_bodies(buffer, start, length, channel, most_body, out, at + len(opening))
    return last, at


@njit(inline="always")
def _text_end(properties: Bytes, at: int) -> int:
    return at + 1 + int64(properties[at]) if at < len(properties) else at


@njit(cache=True, nogil=True)
def _asked_by(properties: Bytes) -> tuple[int, int, int, int]:
    """Where the correlation id and the reply-to begin, with their lengths, and end; (0, 0) what is not there."""
    flags = int64(properties[0]) << 8 | properties[1] if len(properties) >= 2 else int64(0)
    at = 2
    for flag in _TEXTS_BEFORE:
        at = _text_end(properties, at) if flags & flag else at
    if flags & _HEADERS and at + 4 <= len(properties):
        at += 4 + (
            int64(properties[at]) << 24 | properties[at + 1] << 16 | properties[at + 2] << 8 | properties[at + 3]
        )
    at += (flags & _DELIVERY_MODE) // _DELIVERY_MODE + (flags & _PRIORITY) // _PRIORITY
    id_end = _text_end(properties, at) if flags & CORRELATION_ID else at
    reply_end = _text_end(properties, id_end) if flags & REPLY_TO else id_end
    if reply_end > len(properties):
        return 0, 0, 0, 0
    return at, id_end, id_end, reply_end


@njit(cache=True, nogil=True)
def _lay_out_answers(
    buffer: Bytes, offsets: Longs, first: int, last: int, exchange: Bytes, key: Bytes, tail: Bytes, mode: Bytes,
    addresses: Bytes, lengths: Longs, ends: Longs, channel: int, most_body: int, out: Bytes, at: int,
) -> tuple[int, int]:  # fmt: skip
    """(the first message that found no room, where the bytes end)."""
    for message in range(first, last):
        start, length = offsets[message], offsets[message + 1] - offsets[message]
        bodies = (length + most_body - 1) // most_body
        place = ends[ANSWERED] % len(lengths)
        while lengths[place] == NOBODY:
            lengths[place] = 0
            ends[ANSWERED] += 1
            place = ends[ANSWERED] % len(lengths)
        if at + 2 * addresses.shape[1] + length + bodies * OVERHEAD_BYTES > len(out):
            return message, at
        properties = addresses[place, : lengths[place]]
        id_begin, id_end, reply_begin, reply_end = _asked_by(properties)
        to = key if len(key) else properties[reply_begin:reply_end]
        out[at] = METHOD
        put_big_endian(out, at + 1, channel, 2)
        size = len(exchange) + max(len(to), 1) + len(tail)
        put_big_endian(out, at + 3, size, 4)
        at += HEAD_BYTES
        out[at : at + len(exchange)] = exchange
        at += len(exchange)
        out[at] = 0
        out[at : at + len(to)] = to
        at += max(len(to), 1)
        out[at : at + len(tail)] = tail
        at += len(tail)
        out[at] = FRAME_END
        out[at + 1] = HEADER
        put_big_endian(out, at + 2, channel, 2)
        put_big_endian(out, at + 4, 14 + len(mode) + id_end - id_begin, 4)
        at += 1 + HEAD_BYTES
        put_big_endian(out, at, wire.BASIC, 2)
        put_big_endian(out, at + 2, 0, 2)
        put_big_endian(out, at + 4, length, 8)
        flags = (CORRELATION_ID if id_end > id_begin else 0) | (_DELIVERY_MODE if len(mode) else 0)
        put_big_endian(out, at + 12, flags, 2)
        out[at + 14 : at + 14 + len(mode)] = mode
        at += 14 + len(mode)
        out[at : at + id_end - id_begin] = properties[id_begin:id_end]
        at += id_end - id_begin
        out[at] = FRAME_END
        at = _put_bodies(buffer, start, length, channel, most_body, out, at + 1)
        ends[ANSWERED] += 1
    return last, at


def correlation_id(properties: bytes) -> str:
    """What a message's properties say it answers; nothing where they do not."""
    begin, end, _, _ = _asked_by(np.frombuffer(properties, np.uint8))
    return properties[begin + 1 : end].decode(errors="replace")


class RequestLayout:
    """An asker's: its messages are numbered from 1."""

    def __init__(
        self, method: bytes, channel: int, frame_max: int, persistent: bool, asker: str, reply_to: str
    ) -> None:
        header = wire.content_header(channel, persistent, asker + "0" * DIGITS, reply_to)
        self._opening = np.frombuffer(method + header, np.uint8)
        self._length_at = len(method) + wire.BODY_LENGTH_AT
        self._number_at = (method + header).index(asker.encode()) + len(asker)
        self._channel, self._most_body = channel, frame_max - OVERHEAD_BYTES
        self._next = 1

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        message, end = _lay_out_requests(
            batch.buffer, batch.offsets, first, last, self._opening, self._length_at, self._number_at, self._next,
            self._channel, self._most_body, out, at,
        )  # fmt: skip
        self._next += message - first
        return int(message), int(end)


class AnswerLayout:
    """Of who answers: with `key` all answers go to one queue."""

    def __init__(
        self, exchange: str, key: str, mandatory: bool, persistent: bool, channel: int, frame_max: int, returns: Returns
    ) -> None:
        begin = struct.pack(">HHH", wire.BASIC, wire.PUBLISH, 0) + wire.short_string(exchange)
        self._exchange = np.frombuffer(begin, np.uint8)
        self._key = np.frombuffer(wire.short_string(key) if key else b"", np.uint8).copy()
        self._tail = np.frombuffer(bytes([wire.MANDATORY * mandatory]), np.uint8)
        self._mode = np.frombuffer(bytes([wire.PERSISTENT]) if persistent else b"", np.uint8)
        self._channel, self._most_body, self._returns = channel, frame_max - OVERHEAD_BYTES, returns

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        returns = self._returns
        message, end = _lay_out_answers(
            batch.buffer, batch.offsets, first, last, self._exchange, self._key, self._tail, self._mode,
            returns.addresses, returns.lengths, returns.ends, self._channel, self._most_body, out, at,
        )  # fmt: skip
        return int(message), int(end)
