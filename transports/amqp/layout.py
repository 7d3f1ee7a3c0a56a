"""Messages to bytes: kernels write the method, header and body frames of a whole batch one after the other.

The correlation id of a request: client id (16 hexadecimal digits) + request number (16 hexadecimal digits). An answer
has the correlation id of its request. Its routing key is the request's reply-to, or one key that all answers share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import int64, njit

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
"""The hexadecimal digits of a client id, and of a request number."""
NOWHERE = 0
"""`number_at` of messages that are no requests: they contain no request number."""

# Flags of the properties that a request may have before its correlation id, in the order of the properties.
_CONTENT_TYPE = 0x8000
_CONTENT_ENCODING = 0x4000
_HEADERS = 0x2000
_PRIORITY = 0x0800

_DIGIT_0 = ord("0")
_DIGIT_A = ord("a")


@njit(inline="always")
def _put_big_endian(out: Bytes, at: int, value: int, width: int) -> None:
    for k in range(width):
        out[at + k] = (value >> (8 * (width - 1 - k))) & 0xFF


@njit(inline="always")
def _put_hexadecimal(out: Bytes, at: int, number: int) -> None:
    """Write a request number as DIGITS digits."""
    for k in range(DIGITS):
        digit = (number >> (4 * (DIGITS - 1 - k))) & 15
        if digit < 10:
            out[at + k] = _DIGIT_0 + digit
        else:
            out[at + k] = _DIGIT_A + digit - 10


@njit(inline="always")
def _put_frame_head(out: Bytes, at: int, kind: int, channel: int, size: int) -> int:
    out[at] = kind
    _put_big_endian(out, at + 1, channel, 2)
    _put_big_endian(out, at + 3, size, 4)
    return at + HEAD_BYTES


@njit(inline="always")
def _body_bytes(length: int, most_body: int) -> int:
    """Return the bytes of a message's body frames."""
    frames = (length + most_body - 1) // most_body
    return length + frames * OVERHEAD_BYTES


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
    number_at: int,
    number: int,
    channel: int,
    most_body: int,
    out: Bytes,
    at: int,
) -> tuple[int, int]:
    """Write messages first..last-1; returns (the first message without room, where the bytes end).

    `number_at` is the place of a request's number in `head`, or NOWHERE.
    """
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        if at + len(head) + _body_bytes(length, most_body) > len(out):
            return message, at
        out[at : at + len(head)] = head
        _put_big_endian(out, at + length_at, length, 8)
        if number_at != NOWHERE:
            _put_hexadecimal(out, at + number_at, number)
            number += 1
        at = _put_bodies(buffer, start, length, channel, most_body, out, at + len(head))
    return last, at


@njit(inline="always")
def _text_end(properties: Bytes, at: int) -> int:
    """Return the end of a short string: a length octet, then the text."""
    if at >= len(properties):
        return at
    return at + 1 + int64(properties[at])


@njit(inline="always")
def _get_big_endian(data: Bytes, at: int, width: int) -> int:
    value = int64(0)
    for k in range(width):
        value = value << 8 | int64(data[at + k])
    return value


@njit(cache=True, nogil=True)
def _request_properties(properties: Bytes) -> tuple[int, int, int]:
    """Find the correlation id and the reply-to, which follow one another; both with their length octets.

    Returns (begin of the correlation id, end of it and begin of the reply-to, end of the reply-to); zeros if the bytes
    are too few. Either is empty if the message lacks it.
    """
    if len(properties) < 2:
        return 0, 0, 0
    flags = _get_big_endian(properties, 0, 2)
    at = 2
    if flags & _CONTENT_TYPE:
        at = _text_end(properties, at)
    if flags & _CONTENT_ENCODING:
        at = _text_end(properties, at)
    if flags & _HEADERS:
        if at + 4 > len(properties):
            return 0, 0, 0
        at += 4 + _get_big_endian(properties, at, 4)
    if flags & DELIVERY_MODE:
        at += 1
    if flags & _PRIORITY:
        at += 1
    id_end = at
    if flags & CORRELATION_ID:
        id_end = _text_end(properties, at)
    reply_end = id_end
    if flags & REPLY_TO:
        reply_end = _text_end(properties, id_end)
    if reply_end > len(properties):
        return 0, 0, 0
    return at, id_end, reply_end


@njit(inline="always")
def _put_answer_method(out: Bytes, at: int, channel: int, begin: Bytes, key: Bytes, end: Bytes) -> int:
    """Write the method frame of Basic.Publish; returns where the frame ends.

    `begin` has the method's class, number, ticket and exchange, `end` the bits after the routing key. `key` is a short
    string: a length octet, then the text. If `key` has no bytes, an
    empty short string is written.
    """
    key_bytes = max(len(key), 1)
    at = _put_frame_head(out, at, METHOD, channel, len(begin) + key_bytes + len(end))
    out[at : at + len(begin)] = begin
    at += len(begin)
    if len(key):
        out[at : at + len(key)] = key
    else:
        out[at] = 0  # the length octet of the empty short string
    at += key_bytes
    out[at : at + len(end)] = end
    out[at + len(end)] = FRAME_END
    return at + len(end) + 1


@njit(inline="always")
def _put_answer_header(out: Bytes, at: int, channel: int, length: int, mode: Bytes, correlation_id: Bytes) -> int:
    """Write a header frame: class u16, weight u16, body length u64, flags u16, then the properties.

    Returns where the frame ends. `mode` and `correlation_id` are empty if the message lacks the property.
    """
    at = _put_frame_head(out, at, HEADER, channel, wire.FIRST_PROPERTY_AT + len(mode) + len(correlation_id))
    flags = 0
    if len(mode):
        flags |= DELIVERY_MODE
    if len(correlation_id):
        flags |= CORRELATION_ID
    _put_big_endian(out, at, wire.BASIC, 2)
    _put_big_endian(out, at + 2, 0, 2)
    _put_big_endian(out, at + 4, length, 8)
    _put_big_endian(out, at + wire.PROPERTIES_AT, flags, 2)
    at += wire.FIRST_PROPERTY_AT
    out[at : at + len(mode)] = mode
    at += len(mode)
    out[at : at + len(correlation_id)] = correlation_id
    out[at + len(correlation_id)] = FRAME_END
    return at + len(correlation_id) + 1


@njit(cache=True, nogil=True)
def _lay_out_answers(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    last: int,
    method_begin: Bytes,
    key: Bytes,
    method_end: Bytes,
    mode: Bytes,
    addresses: Bytes,
    address_lengths: Longs,
    request_counts: Longs,
    channel: int,
    most_body: int,
    out: Bytes,
    at: int,
) -> tuple[int, int]:
    """Write answers first..last-1, each to the oldest request without an answer; returns as `lay_out` does.

    `addresses`, `address_lengths` and `request_counts` are the ring of ReturnAddresses: `addresses` has the properties
    of each request in a row, with the reply-to, and `request_counts` the numbers of requests received and answered.
    """
    # An upper bound: a method frame and a header frame are each shorter than a row of `addresses`, since each of them
    # has at most two short strings of 256 bytes.
    most_head_bytes = 2 * addresses.shape[1]
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        place = request_counts[ANSWERED] % len(address_lengths)
        while address_lengths[place] == NOBODY:  # skip requests that were dropped: they get no answer
            address_lengths[place] = 0
            request_counts[ANSWERED] += 1
            place = request_counts[ANSWERED] % len(address_lengths)
        if at + most_head_bytes + _body_bytes(length, most_body) > len(out):
            return message, at
        properties = addresses[place, : address_lengths[place]]
        id_begin, id_end, reply_end = _request_properties(properties)
        to = key if len(key) else properties[id_end:reply_end]
        at = _put_answer_method(out, at, channel, method_begin, to, method_end)
        at = _put_answer_header(out, at, channel, length, mode, properties[id_begin:id_end])
        at = _put_bodies(buffer, start, length, channel, most_body, out, at)
        request_counts[ANSWERED] += 1
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
        first_correlation_id = asker + "0" * DIGITS if asker else ""
        header = wire.content_header(channel, persistent, first_correlation_id, reply_to)
        self.head = np.frombuffer(method + header, np.uint8)
        self.length_at = len(method) + wire.BODY_LENGTH_AT
        self.number_at = NOWHERE
        if asker:
            self.number_at = len(method) + wire.correlation_id_at(persistent) + len(asker)
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
            self.number_at,
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
    """Write messages; returns as `lay_out` does. The end is -1 if a message has no valid key number or is too short."""
    for message in range(first, last):
        start = offsets[message]
        length = offsets[message + 1] - offsets[message]
        if length < wire.KEY_NUMBER_BYTES:
            return message, -1
        number = int64(buffer[start]) | int64(buffer[start + 1]) << 8
        if number >= len(begins) - 1:
            return message, -1
        begin = begins[number]
        end = begins[number + 1]
        if at + end - begin + _body_bytes(length, most_body) > len(out):
            return message, at
        out[at : at + end - begin] = heads[begin:end]
        at += end - begin
        header_at = at - header_bytes
        _put_big_endian(out, header_at + wire.BODY_LENGTH_AT, length, 8)
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
        """Write messages as PublishLayout.write does. ValueError if a message begins with a number that no key has."""
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
            raise ValueError(wire.wrong_key_number(batch[message], len(self._begins) - 1))
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
        begin = wire.publish_begin(exchange)
        self._method_begin = np.frombuffer(begin, np.uint8)
        # A copy is writable: numba must give the key the same type as a slice of `addresses`, which are writable.
        self._key = np.frombuffer(wire.short_string(key) if key else b"", np.uint8).copy()
        self._method_end = np.frombuffer(bytes([wire.MANDATORY if mandatory else 0]), np.uint8)
        self._mode = np.frombuffer(bytes([wire.PERSISTENT]) if persistent else b"", np.uint8)
        self._channel = channel
        self._most_body = frame_max - OVERHEAD_BYTES
        self._returns = returns

    def write(self, batch: FrameBatch, first: int, last: int, out: Bytes, at: int) -> tuple[int, int]:
        """Write answers as PublishLayout.write writes messages."""
        returns = self._returns
        message, end = _lay_out_answers(
            batch.buffer,
            batch.offsets,
            first,
            last,
            self._method_begin,
            self._key,
            self._method_end,
            self._mode,
            returns.addresses,
            returns.lengths,
            returns.counts,
            self._channel,
            self._most_body,
            out,
            at,
        )
        return int(message), int(end)
