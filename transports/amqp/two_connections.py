"""Simplex over a broker: one connection to publish on, one to consume on."""

from __future__ import annotations

from typing import Any

from transports.amqp.link import AmqpLink
from transports.base import Address, Link, TransportError
from transports.frames import FrameBatch


class TwoConnections(Link):
    """Two links of one connection each; waiting is done by the one that consumes."""

    def __init__(self, address: Address, listens: bool, until_ns: int) -> None:
        self.url = address.url
        self._inbound = AmqpLink(address, listens, until_ns, publishes=False)
        try:
            self._outbound = AmqpLink(address, listens, until_ns, consumes=False)
        except TransportError:
            self._inbound.close(0)
            raise
        self._inbound.wait_beside(self._outbound)

    def receive(self, batch: FrameBatch) -> int:
        frames = self._inbound.receive(batch)
        self.junk = self._inbound.junk
        return frames

    def send(self, batch: FrameBatch, first: int) -> int:
        return self._outbound.send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._outbound.serve()
        if not (writable and self._outbound.has_room):
            self._inbound.wait(until_ns, readable)

    def sockets(self) -> list[dict[str, Any]]:
        return self._inbound.sockets() + self._outbound.sockets()

    def drain(self, until_ns: int) -> bool:
        return self._outbound.drain(until_ns)

    def facts(self) -> dict[str, Any]:
        """Of the publishing connection, and what was delivered again on the other."""
        return {**self._outbound.facts(), "redelivered": self._inbound.facts()["redelivered"]}

    def excuse(self) -> str:
        return self._outbound.excuse()

    def close(self, linger_s: float = 1.0) -> None:
        """What was published leaves first."""
        self._outbound.close(linger_s)
        self._inbound.close(linger_s)
