"""Requests and answers over NATS: each request carries the subject of its asker, to which its answer goes.

    asker     PUB <base>.in <base>.answers.<name> <bytes>     one queue group of answerers takes the requests
    answerer  PUB <base>.answers.<name> <bytes>               each asker has subscribed to its own subject

ReturnAddresses keeps the beginning of the answer's block, `PUB <subject> `, for each request in their order.
"""

from __future__ import annotations

from numba import njit

from transports.base import Address
from transports.blocks import lay_out
from transports.frames import ANSWERED, Bytes, FrameBatch, Longs, ReturnAddresses
from transports.nats.connection import UNSENT_END, Connection
from transports.nats.patterns import NatsConsumer


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
        return self._connection.take_frames(batch, self._askers)

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
