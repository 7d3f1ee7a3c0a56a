"""Messages to bytes: kernels write the method, header and body frames of a whole batch one after the other.

A request's correlation id is its client's 16 hexadecimal digits, then its number's 16. An answer has the correlation id
of its request, and as routing key the request's reply-to, or a key that is the same for all answers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numba import int64, njit
from pika.spec import Basic

from transports.amqp import wire
from transports.amqp.wire import (
    BODY,
    CORRELATION_ID,
    DELIVERY_MODE,
    FRAME_END,
    HEAD_BYTES,
    HEADER,
    METHOD,
    OVERHEAD_BYTES,
    REPLY_TO,
)
from transports.frames import ANSWERED, NOBODY, Bytes, FrameBatch, Longs, ReturnAddresses

DIGITS = 16
_HEADERS = 0x2000
_PRIORITY = 0x0800
_TEXTS_BEFORE = (0x8000, 0x4000)
"""Content type and encoding."""


@njit(inline="always")
def _put_big_endian(out: Bytes, at: int, value: int, width: int) -> None:
    for k in range(width):
        out[at + k] = (value >> (8 * (width - 1 - k))) & 0xFF


@njit(inline="always")
def _put_frame_head(out: Bytes, at: int, kind: int, channel: int, size: int) -> int:
    out[at] = kind
    _put_big_endian(out, at + 1, channel, 2)
    _put_big_endian(out, at + 3, size, 4)
    return at + HEAD_BYTES


@njit(inline="always")
def _body_bytes(length: int, most_body: int) -> int:
    return length + (length + most_body - 1) // most_body * OVERHEAD_BYTES


@njit(inline="always")
def _put_bodies(buffer: Bytes, start: int, length: int, channel: int, most_body: int, out: Bytes, at: int) -> int:
    """Write the body frames of a message; returns where they end."""
    done = 0
    while done < length:
        size = min(length - done, most_body)
        at = _put_frame_head(out, at, BODY, channel, size)
        out[at : at + size] = buffer[start + done : start + done + size]
        out[at + size] = FRAME_END
        at += size + 1
        done += size
    return at


@njit(cache=True, nogil=True)
def lay_out(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    last: int,
    head: Bytes,
    length_at: int,
    digits_at: int,
    number: int,
    channel: int,
    most_body: int,
    out: Bytes,
    at: int,
) -> tuple[int, int]:
    """Write messages first..last-1; returns (the first message without room, where the bytes end).

    `digits_at` is the place of a request's number in `head`; 0 if the messages are no requests.
    """
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        if at + len(head) + _body_bytes(length, most_body) > len(out):
            return message, at
        out[at : at + len(head)] = head
        _put_big_endian(out, at + length_at, length, 8)
        if digits_at:
            for k in range(DIGITS):
                digit = (number >> (4 * (DIGITS - 1 - k))) & 15
                out[at + digits_at + k] = digit + (48 if digit < 10 else 87)
            number += 1
        at = _put_bodies(buffer, start, length, channel, most_body, out, at + len(head))
    return last, at


@njit(inline="always")
def _text_end(properties: Bytes, at: int) -> int:
    return at + 1 + int64(properties[at]) if at < len(properties) else at


@njit(cache=True, nogil=True)
def _request_properties(properties: Bytes) -> tuple[int, int, int]:
    """Returns (begin of the correlation id, its end and the reply-to's begin, end of the reply-to), or zeros."""
    flags = int64(properties[0]) << 8 | properties[1] if len(properties) >= 2 else int64(0)
    at = 2
    for flag in _TEXTS_BEFORE:
        at = _text_end(properties, at) if flags & flag else at
    if flags & _HEADERS and at + 4 <= len(properties):
        at += 4 + (
            int64(properties[at]) << 24 | properties[at + 1] << 16 | properties[at + 2] << 8 | properties[at + 3]
        )
    at += (flags & DELIVERY_MODE) // DELIVERY_MODE + (flags & _PRIORITY) // _PRIORITY
    id_end = _text_end(properties, at) if flags & CORRELATION_ID else at
    reply_end = _text_end(properties, id_end) if flags & REPLY_TO else id_end
    if reply_end > len(properties):
        return 0, 0, 0
    return at, id_end, reply_end


@njit(inline="always")
def _put_answer_method(out: Bytes, at: int, channel: int, exchange: Bytes, key: Bytes, tail: Bytes) -> int:
    """Write Basic.Publish to an exchange, with a key that has its length before it; an empty key becomes ""."""
    at = _put_frame_head(out, at, METHOD, channel, len(exchange) + max(len(key), 1) + len(tail))
    out[at : at + len(exchange)] = exchange
    at += len(exchange)
    out[at] = 0
    out[at : at + len(key)] = key
    at += max(len(key), 1)
    out[at : at + len(tail)] = tail
    out[at + len(tail)] = FRAME_END
    return at + len(tail) + 1


@njit(inline="always")
def _put_answer_header(out: Bytes, at: int, channel: int, length: int, mode: Bytes, correlation_id: Bytes) -> int:
    at = _put_frame_head(out, at, HEADER, channel, 14 + len(mode) + len(correlation_id))
    _put_big_endian(out, at, wire.BASIC, 2)
    _put_big_endian(out, at + 2, 0, 2)
    _put_big_endian(out, at + 4, length, 8)
    flags = (CORRELATION_ID if len(correlation_id) else 0) | (DELIVERY_MODE if len(mode) else 0)
    _put_big_endian(out, at + 12, flags, 2)
    out[at + 14 : at + 14 + len(mode)] = mode
    at += 14 + len(mode)
    out[at : at + len(correlation_id)] = correlation_id
    out[at + len(correlation_id)] = FRAME_END
    return at + len(correlation_id) + 1


@njit(cache=True, nogil=True)
def _lay_out_answers(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    last: int,
    exchange: Bytes,
    key: Bytes,
    tail: Bytes,
    mode: Bytes,
    addresses: Bytes,
    lengths: Longs,
    ends: Longs,
    channel: int,
    most_body: int,
    out: Bytes,
    at: int,
) -> tuple[int, int]:
    """Write answers first..last-1, each to its request; returns as `lay_out` does."""
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        place = ends[ANSWERED] % len(lengths)
        while lengths[place] == NOBODY:
            lengths[place] = 0
            ends[ANSWERED] += 1
            place = ends[ANSWERED] % len(lengths)
        if at + 2 * addresses.shape[1] + _body_bytes(length, most_body) > len(out):
            return message, at
        properties = addresses[place, : lengths[place]]
        id_begin, id_end, reply_end = _request_properties(properties)
        to = key if len(key) else properties[id_end:reply_end]
        at = _put_answer_method(out, at, channel, exchange, to, tail)
        at = _put_answer_header(out, at, channel, length, mode, properties[id_begin:id_end])
        at = _put_bodies(buffer, start, length, channel, most_body, out, at)
        ends[ANSWERED] += 1
    return last, at


def correlation_id(properties: bytes) -> str:
    """The correlation id in a message's properties; empty if it has none."""
    begin, end, _ = _request_properties(np.frombuffer(properties, np.uint8))
    return properties[begin + 1 : end].decode(errors="replace")


class PublishLayout:
    """The layout of a link's messages: method and header frame, the same for all but the length, then the body.

    With an `asker` they are requests, numbered from 1.
    """

    def __init__(
        self, method: bytes, channel: int, frame_max: int, persistent: bool, asker: str = "", reply_to: str = ""
    ) -> None:
        header = wire.content_header(channel, persistent, asker and asker + "0" * DIGITS, reply_to)
        self.head = np.frombuffer(method + header, np.uint8)
        self.length_at = len(method) + wire.BODY_LENGTH_AT
        self.digits_at = (method + header).index(asker.encode()) + len(asker) if asker else 0
        self.channel = channel
        self.most_body = frame_max - OVERHEAD_BYTES
        self._next = 1

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        """Write messages first..last-1 to `out[at:]`; returns (the first without room, where the bytes end)."""
        message, end = lay_out(
            batch.buffer,
            batch.offsets,
            first,
            last,
            self.head,
            self.length_at,
            self.digits_at,
            self._next,
            self.channel,
            self.most_body,
            out,
            at,
        )
        self._next += message - first
        return int(message), int(end)


@njit(cache=True, nogil=True)
def _lay_out_routed(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    last: int,
    heads: Bytes,
    begins: Longs,
    header_bytes: int,
    channel: int,
    most_body: int,
    out: Bytes,
    at: int,
) -> tuple[int, int]:
    """See lay_out. The second number is -1 if a message begins with the number of no key."""
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        number = int64(buffer[start]) | int64(buffer[start + 1]) << 8 if length >= 2 else int64(len(begins))
        if number >= len(begins) - 1:
            return message, -1
        begin, end = begins[number], begins[number + 1]
        if at + end - begin + _body_bytes(length, most_body) > len(out):
            return message, at
        out[at : at + end - begin] = heads[begin:end]
        at += end - begin
        _put_big_endian(out, at - header_bytes + wire.BODY_LENGTH_AT, length, 8)
        at = _put_bodies(buffer, start, length, channel, most_body, out, at)
    return last, at


class RoutedLayout:
    """The layout of messages that each begin with the number of their key, u16, little-endian."""

    def __init__(
        self, exchange: str, keys: Sequence[str], mandatory: bool, persistent: bool, channel: int, frame_max: int
    ) -> None:
        header = wire.content_header(channel, persistent)
        heads = [wire.publish_method(channel, exchange, key, mandatory) + header for key in keys]
        self._heads = np.frombuffer(b"".join(heads), np.uint8)
        self._begins: Longs = np.cumsum([0, *map(len, heads)])
        self._header_bytes = len(header)
        self._channel = channel
        self._most_body = frame_max - OVERHEAD_BYTES

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        """See PublishLayout.write. ValueError if a message begins with the number of no key."""
        message, end = _lay_out_routed(
            batch.buffer,
            batch.offsets,
            first,
            last,
            self._heads,
            self._begins,
            self._header_bytes,
            self._channel,
            self._most_body,
            out,
            at,
        )
        if end < 0:
            raise ValueError(
                f"message {message} begins with the number of none of {len(self._begins) - 1} destinations"
            )
        return int(message), int(end)


class AnswerLayout:
    """The layout of answers to the oldest requests in `returns`; with a `key` all answers go to one queue."""

    def __init__(
        self,
        exchange: str,
        key: str,
        mandatory: bool,
        persistent: bool,
        channel: int,
        frame_max: int,
        returns: ReturnAddresses,
    ) -> None:
        begin = struct.pack(">IH", Basic.Publish.INDEX, 0) + wire.short_string(exchange)
        self._exchange = np.frombuffer(begin, np.uint8)
        self._key = np.frombuffer(wire.short_string(key) if key else b"", np.uint8).copy()
        self._tail = np.frombuffer(bytes([wire.MANDATORY * mandatory]), np.uint8)
        self._mode = np.frombuffer(bytes([wire.PERSISTENT]) if persistent else b"", np.uint8)
        self._channel = channel
        self._most_body = frame_max - OVERHEAD_BYTES
        self._returns = returns

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        """See PublishLayout.write."""
        returns = self._returns
        message, end = _lay_out_answers(
            batch.buffer,
            batch.offsets,
            first,
            last,
            self._exchange,
            self._key,
            self._tail,
            self._mode,
            returns.addresses,
            returns.lengths,
            returns.ends,
            self._channel,
            self._most_body,
            out,
            at,
        )
        return int(message), int(end)
