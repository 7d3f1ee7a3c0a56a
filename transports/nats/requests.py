"""Requests and answers over NATS: each request carries the subject of its asker, to which its answer goes.

    asker     PUB <base>.in <base>.answers.<name> <bytes>     one queue group of answerers takes the requests
    answerer  PUB <base>.answers.<name> <bytes>               each asker has subscribed to its own subject

ReturnAddresses keeps the beginning of the answer's block, `PUB <subject> `, for each request in their order.
"""

from __future__ import annotations

from numba import njit

from transports.base import Address
from transports.blocks import lay_out
from transports.frames import ADDRESS_BYTES, ANSWERED, NOBODY, RECEIVED, Bytes, FrameBatch, Longs, ReturnAddresses
from transports.lending import move_bytes
from transports.nats.connection import BEGIN, END, TOO_LONG, UNSENT_END, Connection
from transports.nats.patterns import NatsConsumer
from transports.nats.protocol import FULL, INCOMPLETE, OTHER, end_of_line, is_frame_line, size_in_line

_SPACE = ord(" ")
_PUB = b"PUB "
_PUB_BYTES = len(_PUB)
_SPACES_WITH_REPLY = 4
"""Spaces in the line `MSG <subject> <subscription> <reply-to> <bytes>`."""


@njit(cache=True, nogil=True)
def _keep_address(stream: Bytes, begin: int, newline: int, addresses: Bytes, lengths: Longs, place: int) -> None:
    """Keep the beginning of the answer to the request in a line; NOBODY if the line names nobody to answer."""
    spaces = 0
    reply = 0
    last_space = 0
    for at in range(begin, newline):
        if stream[at] == _SPACE:
            spaces += 1
            reply = last_space + 1
            last_space = at
    length = last_space + 1 - reply  # with the space behind it
    if spaces < _SPACES_WITH_REPLY or _PUB_BYTES + length > ADDRESS_BYTES:
        lengths[place] = NOBODY
        return
    for at in range(_PUB_BYTES):
        addresses[place, at] = _PUB[at]
    move_bytes(addresses[place, _PUB_BYTES:].ctypes, stream[reply:].ctypes, length)
    lengths[place] = _PUB_BYTES + length


@njit(cache=True, nogil=True)
def scan_requests(
    stream: Bytes,
    begin: int,
    end: int,
    largest: int,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
) -> tuple[int, int, int, int]:
    """Copy the requests at the beginning of stream[begin:end] into a batch's arrays, and keep who gets the answers.

    `addresses`, `lengths` and `counts` are the arrays of ReturnAddresses. Returns as `scan_frames` does.
    """
    at = begin
    too_long = 0
    while True:
        newline = end_of_line(stream, at, end)
        if newline < 0:
            return INCOMPLETE, at, count, too_long
        if not is_frame_line(stream, at, newline):
            return OTHER, at, count, too_long
        size = size_in_line(stream, newline)
        if size < 0:
            return OTHER, at, count, too_long
        payload = newline + 1
        if payload + size + 2 > end:
            return INCOMPLETE, at, count, too_long
        if size > largest:
            too_long += 1
        else:
            start = offsets[count]
            has_room = count + 1 < len(offsets) and start + size <= len(buffer)
            if not has_room or counts[RECEIVED] - counts[ANSWERED] >= len(lengths):
                return FULL, at, count, too_long
            _keep_address(stream, at, newline, addresses, lengths, counts[RECEIVED] % len(lengths))
            counts[RECEIVED] += 1
            move_bytes(buffer[start:].ctypes, stream[payload:].ctypes, size)
            count += 1
            offsets[count] = start + size
        at = payload + size + 2


@njit(cache=True, nogil=True)
def lay_out_answers(
    buffer: Bytes,
    offsets: Longs,
    first: int,
    end: int,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
    out: Bytes,
    used: int,
) -> tuple[int, int]:
    """Write answers first..end-1 behind out[:used], each to the asker of the oldest request, while there is room.

    Returns the first answer that was not written, and the number of bytes used. An answer to nobody is dropped.
    """
    for index in range(first, end):
        place = counts[ANSWERED] % len(lengths)
        if lengths[place] > 0:
            head = addresses[place, : lengths[place]]
            taken, used = lay_out(buffer, offsets, index, index + 1, head, out, used)
            if taken == index:
                return index, used
        counts[ANSWERED] += 1
    return end, used


class NatsAnswerer(NatsConsumer):
    """The end that gets requests, and sends a frame for each, in their order."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str) -> None:
        super().__init__(address, base, connection, name)
        self._askers = ReturnAddresses()
        nothing = FrameBatch(0, 1, 1)
        self._take_frames(nothing)
        self._lay_out(nothing, 0)

    def _take_frames(self, batch: FrameBatch) -> int:
        connection = self._connection
        numbers = connection.numbers
        askers = self._askers
        why, at, count, too_long = scan_requests(
            connection.incoming,
            int(numbers[BEGIN]),
            int(numbers[END]),
            batch.largest_frame,
            batch.buffer,
            batch.offsets,
            batch.count,
            askers.addresses,
            askers.lengths,
            askers.counts,
        )
        numbers[BEGIN] = at
        numbers[TOO_LONG] += too_long
        batch.count = int(count)
        return int(why)

    def _lay_out(self, batch: FrameBatch, first: int) -> int:
        """Write answers into the outgoing bytes; returns the first that found no room."""
        connection = self._connection
        askers = self._askers
        taken, used = lay_out_answers(
            batch.buffer,
            batch.offsets,
            first,
            batch.count,
            askers.addresses,
            askers.lengths,
            askers.counts,
            connection.outgoing,
            int(connection.numbers[UNSENT_END]),
        )
        connection.numbers[UNSENT_END] = used
        return int(taken)

    def send(self, batch: FrameBatch, first: int) -> int:
        self._connection.flush()
        taken = self._lay_out(batch, first)
        self._connection.flush()
        return taken
