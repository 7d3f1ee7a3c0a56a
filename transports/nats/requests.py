"""Requests and answers over NATS: each request carries the subject of its asker, to which its answer goes.

    asker     PUB <base>.in <base>.answers.<name> <bytes>     one queue group of answerers takes the requests
    answerer  PUB <base>.answers.<name> <bytes>               each asker has subscribed to its own subject

ReturnAddresses keeps the beginning of the answer's block, `PUB <subject> `, for each request in their order.
"""

from __future__ import annotations

from transports.blocks import lay_out_answers
from transports.frames import FrameBatch, ReturnAddresses
from transports.nats.carriers import CoreCarrier
from transports.nats.connection import UNSENT_END, Connection


class AnsweringCarrier(CoreCarrier):
    """Requests from the server's memory, and a frame for each of them, in their order."""

    lends = False

    def __init__(self, connection: Connection, base: str) -> None:
        super().__init__(connection, base)
        self._askers = ReturnAddresses()
        nothing = FrameBatch(0, 1, 1)
        self.take(nothing)
        self._lay_out(nothing, 0)

    def take(self, batch: FrameBatch) -> int:
        return self._connection.take_frames(batch, self._askers)

    def send(self, batch: FrameBatch, first: int) -> int:
        self._connection.flush()
        taken = self._lay_out(batch, first)
        self._connection.flush()
        return taken

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
