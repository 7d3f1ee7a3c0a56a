"""A link that can be opened again after its peer has gone, so that a component has one link for the whole session."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from transports.base import Link
from transports.facts import sum_of_facts
from transports.frames import FrameBatch
from transports.lending import Lent, lent_by

ATTEMPT_NS = 100_000_000
"""The longest time for one attempt to open the link."""


class RenewableLink(Link):
    """Passes every call on to the link that is open now. `open_link(until_ns)` opens another link."""

    def __init__(self, link: Link, open_link: Callable[[int], Link]) -> None:
        self._link = link
        self._open_link = open_link
        self._junk_before = 0
        self._refused_before = 0
        self._facts_before: dict[str, Any] = {}
        """The facts of the links that were closed."""

    def renew(self) -> None:
        """Close the link and open another one. TransportError if that fails: call `renew` again."""
        self._junk_before = self.junk
        self._refused_before = self.refused
        self._facts_before = self.facts()
        self._link.close(0)
        self._link = _Closed(self._link.url)
        self._link = self._open_link(time.monotonic_ns() + ATTEMPT_NS)

    @property
    def url(self) -> str:  # type: ignore[override]
        return self._link.url

    @property
    def junk(self) -> int:  # type: ignore[override]
        return self._junk_before + self._link.junk

    @property
    def refused(self) -> int:  # type: ignore[override]
        return self._refused_before + self._link.refused

    def receive(self, batch: FrameBatch) -> int:
        return self._link.receive(batch)

    def send(self, batch: FrameBatch, first: int) -> int:
        return self._link.send(batch, first)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._link.wait(until_ns, readable, writable)

    def lend(self) -> Lent | None:
        return lent_by(self._link)

    def sockets(self) -> list[dict[str, Any]]:
        return self._link.sockets()

    def drain(self, until_ns: int) -> bool:
        return self._link.drain(until_ns)

    def facts(self) -> dict[str, Any]:
        return sum_of_facts([self._facts_before, self._link.facts()])

    def excuse(self) -> str:
        return self._link.excuse()

    def close(self, linger_s: float = 1.0) -> None:
        self._link.close(linger_s)


class _Closed(Link):
    """Stands for a link between two attempts to open it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def receive(self, batch: FrameBatch) -> int:  # noqa: ARG002
        return 0

    def send(self, batch: FrameBatch, first: int) -> int:  # noqa: ARG002
        return first

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        pass

    def close(self, linger_s: float = 1.0) -> None:
        pass
