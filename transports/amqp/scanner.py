"""Bytes to messages: one state machine takes the deliveries of our channel, and the broker's confirms of what
we published there; every other whole frame is pointed out, for pika.

It sees whole frames only: the rest of a stream stays where it is until more has come. A message whose body is
split over frames is put together aside, so that other frames, and other batches, may come in between.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from transports.amqp.wire import (
    ACK,
    BASIC,
    BODY,
    BODY_LENGTH_AT,
    DELIVER,
    FRAME_END,
    GET_EMPTY,
    GET_OK,
    HEAD_BYTES,
    HEADER,
    METHOD,
    NACK,
    OVERHEAD_BYTES,
    PROPERTIES_AT,
)
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.returns import ADDRESS_BYTES, ANSWERED, RECEIVED, Returns

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_MORE, _FOREIGN, _FULL, _BROKEN = range(4)
# What is remembered between calls.
_STEP, _LEFT, _HAVE, _KEEP, _TAG, _REDELIVERED, _TOO_LONG, _CONFIRMED, _NACKED, _EMPTY, _PROPERTIES, _STATE_SIZE = (
    range(12)
)
_METHOD_NEXT, _HEADER_NEXT, _BODY_NEXT = range(3)


class Stop(Enum):
    """Why `scan` came back."""

    MORE = _MORE  # it needs bytes that have not come yet
    FOREIGN = _FOREIGN  # the frame consumed last is none of ours: hand it to pika
    FULL = _FULL  # the batch has no room for the next message
    BROKEN = _BROKEN  # this is no AMQP, or out of order


_STOPS = {stop.value: stop for stop in Stop}


@njit(inline="always")
def _big_endian(data: Bytes, at: int, width: int) -> int:
    value = 0
    for k in range(width):
        value = value << 8 | int64(data[at + k])
    return value


@njit(inline="always")
def _confirm(state: Longs, waiting: Bytes, tag: int, multiple: bool, nacked: bool) -> None:
    """Everything up to the tag, or the tag alone: move the mark below which all is settled."""
    mask = len(waiting) - 1
    if nacked:
        state[_NACKED] += max(tag - state[_CONFIRMED], 0) if multiple else 1
    if multiple:
        for one in range(state[_CONFIRMED] + 1, tag + 1):
            waiting[one & mask] = 0
        state[_CONFIRMED] = max(state[_CONFIRMED], tag)
    elif tag > state[_CONFIRMED]:
        waiting[tag & mask] = 1
    while waiting[(state[_CONFIRMED] + 1) & mask]:
        state[_CONFIRMED] += 1
        waiting[state[_CONFIRMED] & mask] = 0


@njit(cache=True, nogil=True)
def _scan(  # noqa: PLR0911, PLR0912, PLR0915
    data: Bytes, at: int, end: int, channel: int, frame_max: int, largest: int, state: Longs, waiting: Bytes,
    aside: Bytes, buffer: Bytes, offsets: Longs, count: int, properties: Bytes, addresses: Bytes, lengths: Longs,
    ends: Longs,
) -> tuple[int, int, int, int]:  # fmt: skip
    """(why it stopped, bytes consumed up to, messages in the batch, where the frame it stopped at begins)."""
    while end - at >= OVERHEAD_BYTES:
        size = _big_endian(data, at + 3, 4)
        after, payload = at + size + OVERHEAD_BYTES, at + HEAD_BYTES
        if size + OVERHEAD_BYTES > frame_max:
            return _BROKEN, at, count, at
        if after > end:
            break
        kind = data[at]
        if data[after - 1] != FRAME_END:
            return _BROKEN, at, count, at
        if _big_endian(data, at + 1, 2) != channel:
            return _FOREIGN, after, count, at
        ends_message = False
        if state[_STEP] == _METHOD_NEXT:
            if kind != METHOD or size < 5 or _big_endian(data, payload, 2) != BASIC:
                return _FOREIGN, after, count, at
            method = _big_endian(data, payload + 2, 2)
            if size < 13 and method != GET_EMPTY:
                return _FOREIGN, after, count, at
            if method == DELIVER:
                tag_at = payload + 5 + data[payload + 4]  # behind the consumer's tag
                if tag_at + 9 > after - 1:
                    return _BROKEN, at, count, at
                state[_TAG] = _big_endian(data, tag_at, 8)
                state[_REDELIVERED] += data[tag_at + 8] & 1
                state[_STEP] = _HEADER_NEXT
            elif method == GET_OK:
                if payload + 13 > after - 1:
                    return _BROKEN, at, count, at
                state[_TAG] = _big_endian(data, payload + 4, 8)
                state[_REDELIVERED] += data[payload + 12] & 1
                state[_STEP] = _HEADER_NEXT
            elif method == GET_EMPTY:
                state[_EMPTY] += 1
            elif method in (ACK, NACK):
                tag = _big_endian(data, payload + 4, 8)
                if not 0 < tag < state[_CONFIRMED] + len(waiting):
                    return _BROKEN, at, count, at
                _confirm(state, waiting, tag, data[payload + 12] & 1 == 1, method == NACK)
            else:
                return _FOREIGN, after, count, at
        elif state[_STEP] == _HEADER_NEXT:
            length = _big_endian(data, at + BODY_LENGTH_AT, 8) if size >= 14 else -1
            if kind != HEADER or length < 0:
                return _BROKEN, at, count, at
            ends_message = length == 0
            if ends_message and count + 1 >= len(offsets):
                return _FULL, at, count, at
            if len(lengths):
                if ends[RECEIVED] - ends[ANSWERED] >= len(lengths):
                    return _FULL, at, count, at
                state[_PROPERTIES] = size - PROPERTIES_AT if size - PROPERTIES_AT <= len(properties) else 0
                properties[: state[_PROPERTIES]] = data[
                    payload + PROPERTIES_AT : payload + PROPERTIES_AT + state[_PROPERTIES]
                ]
            state[_LEFT], state[_HAVE] = length, 0
            state[_KEEP] = 1 if length <= min(largest, len(aside)) else 0
            state[_TOO_LONG] += 1 - state[_KEEP]
            state[_STEP] = _BODY_NEXT
            payload, size = after - 1, 0
        else:
            if kind != BODY or size > state[_LEFT]:
                return _BROKEN, at, count, at
            ends_message = size == state[_LEFT]
            if ends_message and state[_KEEP] and state[_HAVE] + size > largest:  # it began for a batch that takes more
                state[_KEEP] = 0
                state[_TOO_LONG] += 1
            if state[_KEEP]:
                have, into = state[_HAVE], offsets[count]
                if ends_message:
                    if count + 1 >= len(offsets) or into + have + size > len(buffer):
                        return _FULL, at, count, at
                    buffer[into : into + have] = aside[:have]
                    buffer[into + have : into + have + size] = data[payload : payload + size]
                else:
                    aside[have : have + size] = data[payload : payload + size]
                state[_HAVE] = have + size
            state[_LEFT] -= size
        at = after
        if ends_message:
            state[_STEP] = _METHOD_NEXT
            if state[_KEEP]:
                offsets[count + 1] = offsets[count] + state[_HAVE]
                count += 1
                if len(lengths):
                    place = ends[RECEIVED] % len(lengths)
                    addresses[place, : state[_PROPERTIES]] = properties[: state[_PROPERTIES]]
                    lengths[place] = state[_PROPERTIES]
                    ends[RECEIVED] += 1
    return _MORE, at, count, at


class Scanner:
    """Follows one channel of one connection. `window` bounds the messages that wait for a confirm.

    `returns` keeps the properties of every message, from the flags that say which there are.
    """

    def __init__(self, channel: int, frame_max: int, window: int = 0, returns: Returns | None = None) -> None:
        self._returns = returns or Returns(0)
        self._properties: Bytes = np.zeros(ADDRESS_BYTES, np.uint8)
        self._channel, self._frame_max = channel, frame_max
        self._state: Longs = np.zeros(_STATE_SIZE, np.int64)
        self._waiting: Bytes = np.zeros(1 << (window + 1).bit_length(), np.uint8)
        self._aside: Bytes = np.zeros(LONGEST_FRAME, np.uint8)

    def scan(self, data: Bytes, begin: int, end: int, batch: FrameBatch) -> tuple[Stop, int, int]:
        """Append the messages within data[begin:end]: (why it stopped, consumed up to, where that frame begins)."""
        why, at, batch.count, frame = _scan(
            data, begin, end, self._channel, self._frame_max, batch.largest_frame, self._state, self._waiting,
            self._aside, batch.buffer, batch.offsets, batch.count, self._properties, self._returns.addresses,
            self._returns.lengths, self._returns.ends,
        )  # fmt: skip
        return _STOPS[why], int(at), int(frame)

    @property
    def delivery_tag(self) -> int:
        """Of the last message begun."""
        return int(self._state[_TAG])

    @property
    def is_between_messages(self) -> bool:
        return bool(self._state[_STEP] == _METHOD_NEXT)

    @property
    def redelivered(self) -> int:
        """Messages that the broker had delivered to someone before."""
        return int(self._state[_REDELIVERED])

    @property
    def too_long(self) -> int:
        """Messages dropped because they were longer than the batch's largest frame."""
        return int(self._state[_TOO_LONG])

    @property
    def empty(self) -> int:
        """So often the broker had nothing to get."""
        return int(self._state[_EMPTY])

    @property
    def confirmed(self) -> int:
        """Up to this publish, all were confirmed or refused."""
        return int(self._state[_CONFIRMED])

    @property
    def refused(self) -> int:
        """Publishes that the broker did not take (Basic.Nack)."""
        return int(self._state[_NACKED])
