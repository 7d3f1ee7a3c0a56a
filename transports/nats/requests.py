"""Requests and answers over NATS: each request carries the subject of its asker, to which its answer goes.

    asker     PUB <base>.in <base>.answers.<name> <bytes>     one queue group of answerers takes the requests
    answerer  PUB <base>.answers.<name> <bytes>               each asker has subscribed to its own subject

ReturnAddresses keeps the beginning of the answer's block, `PUB <subject> `, for each request in their order.
"""

from __future__ import annotations

from transports.base import Address
from transports.blocks import lay_out_answers
from transports.frames import FrameBatch, ReturnAddresses
from transports.nats.connection import UNSENT_END, Connection
from transports.nats.patterns import NatsConsumer


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
