"""A state machine that makes messages of bytes: the deliveries of our channel, and the broker's confirms.

The scanner stops at every other frame, for pika. It takes whole frames only: the rest of a stream stays in place until
more has come. A message whose body is split over frames is put together in the memory `aside`, so other frames and
other batches may come in between.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numba import int64, njit
from pika.spec import Basic

from transports.amqp.wire import (
    BITS_BYTES,
    BODY,
    BODY_LENGTH_AT,
    BODY_LENGTH_BYTES,
    FLAGS_BYTES,
    FRAME_END,
    HEAD_BYTES,
    HEADER,
    METHOD,
    METHOD_BYTES,
    OVERHEAD_BYTES,
    PROPERTIES_AT,
    TAG_BYTES,
)
from transports.frames import ANSWERED, LONGEST_FRAME, RECEIVED, Bytes, FrameBatch, Longs, ReturnAddresses, untouched

# The reasons for the end of a scan; see Stop.
_MORE = 0
_FOREIGN = 1
_FULL = 2
_BROKEN = 3

# Numbers of AMQP's methods, class and method in one.
_DELIVER = int(Basic.Deliver.INDEX)
_GET_OK = int(Basic.GetOk.INDEX)
_GET_EMPTY = int(Basic.GetEmpty.INDEX)
_ACK = int(Basic.Ack.INDEX)
_NACK = int(Basic.Nack.INDEX)

# The frame of a message that comes next.
_METHOD_NEXT = 0
_HEADER_NEXT = 1
_BODY_NEXT = 2

# Indexes of the scanner's state.
_CHANNEL = 0
"""The channel whose frames are scanned."""
_FRAME_MAX = 1
"""The most bytes of a frame."""
_STEP = 2
"""The frame of the message that comes next."""
_LEFT = 3
"""Bytes of the message's body that have not come."""
_HAVE = 4
"""Bytes of the message's body that have come."""
_KEEP = 5
"""1 if the message is kept, 0 if it is too long and dropped."""
_TAG = 6
"""The message's delivery tag."""
_REDELIVERED = 7
"""Counts messages that were delivered before."""
TOO_LONG = 8
"""Counts messages that were too long."""
_CONFIRMED = 9
"""Every publish up to this number is settled."""
_NACKED = 10
"""Counts publishes that the broker did not take."""
_EMPTY = 11
"""Counts Basic.Gets that found the queue empty."""
STATE_NUMBERS = 12


class Stop(Enum):
    """The reason for the end of a scan."""

    MORE = _MORE
    """The next frame has not come as a whole."""
    FOREIGN = _FOREIGN
    """The frame consumed last is for pika."""
    FULL = _FULL
    """The batch has no room for the next message."""
    BROKEN = _BROKEN
    """The bytes are no AMQP, or out of order."""


_STOPS = {stop.value: stop for stop in Stop}


@njit(inline="always")
def _big_endian(data: Bytes, at: int, width: int) -> int:
    value = 0
    for k in range(width):
        value = value << 8 | int64(data[at + k])
    return value


@njit(inline="always")
def _confirm(state: Longs, settled_early: Bytes, tag: int, multiple: bool, nacked: bool) -> None:
    """Settle every publish up to the tag, or that one alone.

    Then advance _CONFIRMED to the last publish up to which all are settled. `settled_early` has a byte for each publish
    after that one: 1 if it is settled before those ahead of it.
    """
    mask = len(settled_early) - 1
    if nacked and not multiple:
        state[_NACKED] += 1
    if multiple:
        for number in range(state[_CONFIRMED] + 1, tag + 1):
            was_settled_early = settled_early[number & mask] != 0
            if nacked and not was_settled_early:
                state[_NACKED] += 1
            settled_early[number & mask] = 0
        state[_CONFIRMED] = max(state[_CONFIRMED], tag)
    elif tag > state[_CONFIRMED]:
        settled_early[tag & mask] = 1
    while settled_early[(state[_CONFIRMED] + 1) & mask]:
        state[_CONFIRMED] += 1
        settled_early[state[_CONFIRMED] & mask] = 0


@njit(inline="always")
def _begin_message(data: Bytes, tag_at: int, state: Longs) -> None:
    """Note the delivery tag, and the bit after it, which is set if the message was delivered before."""
    state[_TAG] = _big_endian(data, tag_at, TAG_BYTES)
    state[_REDELIVERED] += data[tag_at + TAG_BYTES] & 1
    state[_STEP] = _HEADER_NEXT


@njit(inline="always")
def _expect_body(state: Longs, length: int, longest: int) -> None:
    """Note the length of the message; one that is longer than `longest` is read and dropped."""
    state[_LEFT] = length
    state[_HAVE] = 0
    state[_KEEP] = length <= longest
    state[TOO_LONG] += length > longest
    state[_STEP] = _BODY_NEXT


@njit(inline="always")
def _note_properties(data: Bytes, begin: int, length: int, addresses: Bytes, lengths: Longs, place: int) -> None:
    """Keep a message's properties as its sender's address; keep nothing if they are too long."""
    lengths[place] = length * (length <= addresses.shape[1])  # 0 if too long; no branch here, see scan_frames
    addresses[place, : lengths[place]] = data[begin : begin + lengths[place]]


@njit(inline="always")
def _append(data: Bytes, payload: int, size: int, aside: Bytes, have: int, buffer: Bytes, into: int) -> None:
    """Copy a message to the batch: the pieces that were put aside, then the last one."""
    buffer[into : into + have] = aside[:have]
    buffer[into + have : into + have + size] = data[payload : payload + size]


@njit(cache=True, nogil=True)
def scan_frames(  # noqa: PLR0911, PLR0912, PLR0915
    data: Bytes,
    at: int,
    end: int,
    largest: int,
    state: Longs,
    settled_early: Bytes,
    aside: Bytes,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    addresses: Bytes,
    address_lengths: Longs,
    request_counts: Longs,
) -> tuple[int, int, int, int]:
    """Scan frames; returns (why it stopped, where it stopped, messages in the batch, where the last frame begins).

    The branches stay here: numba counts references of each array that is given to a helper with branches, by atomic
    operations that made the scan twice as slow.
    """
    while end - at >= OVERHEAD_BYTES:
        size = _big_endian(data, at + 3, 4)
        payload = at + HEAD_BYTES
        after = payload + size + 1
        if size + OVERHEAD_BYTES > state[_FRAME_MAX]:
            return _BROKEN, at, count, at
        if after > end:
            break
        kind = data[at]
        if data[after - 1] != FRAME_END:
            return _BROKEN, at, count, at
        if _big_endian(data, at + 1, 2) != state[_CHANNEL]:
            return _FOREIGN, after, count, at
        if state[_STEP] == _METHOD_NEXT:
            if kind != METHOD or size <= METHOD_BYTES:
                return _FOREIGN, after, count, at
            method = _big_endian(data, payload, METHOD_BYTES)
            if method == _GET_EMPTY:
                state[_EMPTY] += 1
            elif size < METHOD_BYTES + TAG_BYTES + BITS_BYTES:  # too short for any of the methods below
                return _FOREIGN, after, count, at
            elif method == _DELIVER or method == _GET_OK:  # noqa: PLR1714, SIM109
                tag_at = payload + METHOD_BYTES
                if method == _DELIVER:  # the consumer's tag comes first: a short string
                    tag_at += 1 + data[tag_at]
                if tag_at + TAG_BYTES + BITS_BYTES > payload + size:
                    return _BROKEN, at, count, at
                _begin_message(data, tag_at, state)
            elif method in (_ACK, _NACK):
                tag = _big_endian(data, payload + METHOD_BYTES, TAG_BYTES)
                if not 0 < tag < state[_CONFIRMED] + len(settled_early):
                    return _BROKEN, at, count, at
                bits = data[payload + METHOD_BYTES + TAG_BYTES]
                is_multiple = bits & 1 != 0
                _confirm(state, settled_early, tag, is_multiple, method == _NACK)
            else:
                return _FOREIGN, after, count, at
        elif state[_STEP] == _HEADER_NEXT:
            if kind != HEADER or size < PROPERTIES_AT + FLAGS_BYTES:
                return _BROKEN, at, count, at
            length = _big_endian(data, at + BODY_LENGTH_AT, BODY_LENGTH_BYTES)
            if length < 0:  # a number of 2^63 or more
                return _BROKEN, at, count, at
            # An empty message has no body frame, so check here whether the batch has room.
            if length == 0 and count + 1 >= len(offsets):
                return _FULL, at, count, at
            if len(address_lengths):
                if request_counts[RECEIVED] - request_counts[ANSWERED] >= len(address_lengths):
                    return _FULL, at, count, at
                place = request_counts[RECEIVED] % len(address_lengths)
                _note_properties(data, payload + PROPERTIES_AT, size - PROPERTIES_AT, addresses, address_lengths, place)
            _expect_body(state, length, min(largest, len(aside)))
        else:
            if kind != BODY or size > state[_LEFT]:
                return _BROKEN, at, count, at
            have = state[_HAVE]
            into = offsets[count]
            is_last = size == state[_LEFT]
            if is_last and state[_KEEP] and have + size > largest:
                # The header was scanned for another batch, whose largest frame is longer than this batch's.
                state[_KEEP] = 0
                state[TOO_LONG] += 1
            if state[_KEEP] and is_last:
                if count + 1 >= len(offsets) or into + have + size > len(buffer):
                    return _FULL, at, count, at
                _append(data, payload, size, aside, have, buffer, into)
            elif state[_KEEP]:
                aside[have : have + size] = data[payload : payload + size]
            state[_HAVE] += size
            state[_LEFT] -= size
        at = after
        if state[_STEP] == _BODY_NEXT and state[_LEFT] == 0:
            state[_STEP] = _METHOD_NEXT
            if state[_KEEP]:
                offsets[count + 1] = offsets[count] + state[_HAVE]
                count += 1
                if len(address_lengths):
                    request_counts[RECEIVED] += 1
    return _MORE, at, count, at


def _counter(place: int) -> Any:
    """An attribute that is one number of the scanner's state."""
    return property(lambda scanner: int(scanner._state[place]))


class Scanner:
    """Follows one channel of one connection. At most `window` publishes wait for a confirm.

    `return_addresses` gets the properties of every message, beginning with the flags of those that are present.
    """

    delivery_tag = _counter(_TAG)
    """The delivery tag of the message that began last."""
    redelivered = _counter(_REDELIVERED)
    """Messages that the broker had delivered before."""
    too_long = _counter(TOO_LONG)
    """Messages dropped because they were longer than the batch's largest frame."""
    empty = _counter(_EMPTY)
    """The number of Basic.Gets that the broker answered with an empty queue."""
    confirmed = _counter(_CONFIRMED)
    """Every publish up to this number is confirmed or refused."""
    refused = _counter(_NACKED)
    """Publishes that the broker did not take (Basic.Nack)."""

    def __init__(
        self, channel: int, frame_max: int, window: int = 0, return_addresses: ReturnAddresses | None = None
    ) -> None:
        self._return_addresses = ReturnAddresses(0) if return_addresses is None else return_addresses
        self._state: Longs = np.zeros(STATE_NUMBERS, np.int64)
        self._state[_CHANNEL] = channel
        self._state[_FRAME_MAX] = frame_max
        # A power of two above the window, so that a mask gives a publish's byte.
        length = 1 << (window + 1).bit_length()
        self._settled_early: Bytes = np.zeros(length, np.uint8)
        self._aside: Bytes = untouched(LONGEST_FRAME)

    def scan(self, data: Bytes, begin: int, end: int, batch: FrameBatch) -> tuple[Stop, int, int]:
        """Append the messages within data[begin:end]; returns (why it stopped, where, where the last frame begins)."""
        why, at, batch.count, frame = scan_frames(
            data,
            begin,
            end,
            batch.largest_frame,
            self._state,
            self._settled_early,
            self._aside,
            batch.buffer,
            batch.offsets,
            batch.count,
            self._return_addresses.addresses,
            self._return_addresses.lengths,
            self._return_addresses.counts,
        )
        return _STOPS[why], int(at), int(frame)

    def move_to(self, state: Longs, aside: Bytes) -> None:
        """Go on in these arrays, which compiled code uses too.

        `state` has STATE_NUMBERS numbers, and `aside` has LONGEST_FRAME bytes.
        """
        state[:] = self._state
        aside[:] = self._aside
        self._state = state
        self._aside = aside
