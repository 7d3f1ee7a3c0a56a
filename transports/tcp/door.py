"""The door of a TCP listener: newcomers show the token in time, or are refused and counted."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transports.tcp.tls import Tls

MOST_CANDIDATES = 64
CANDIDATE_NS = 5_000_000_000
"""The time that a newcomer has to show the token."""
DEAF_NS = 10_000_000
"""The time for which the listener is ignored after no descriptor was free for a newcomer."""


class Candidate(NamedTuple):
    """The part of the preamble that a newcomer has shown, and the end of its time for the rest."""

    shown: bytes
    until_ns: int


class Door:
    """Admits newcomers that show one of the `expected` preambles, of one length; `turned_away` counts the others.

    `tls`: puts a newcomer's connection under TLS, whose handshake then goes before the preamble.
    """

    def __init__(self, listener: socket.socket, *expected: bytes, tls: Tls | None = None) -> None:
        self._listener = listener
        self._expected = expected
        self._tls = tls
        self._later: tuple[type[OSError], ...] = (BlockingIOError,) if tls is None else tls.later
        self.candidates: dict[socket.socket, Candidate] = {}
        """Newcomers that have not shown the token yet; the time of each may run out."""
        self._deaf_until_ns = 0
        self.turned_away = 0

    @property
    def refused(self) -> int:
        """The newcomers turned away, and those that have not shown the token yet."""
        return self.turned_away + len(self.candidates)

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets to watch for newcomers."""
        deaf = self._deaf_until_ns and time.monotonic_ns() < self._deaf_until_ns
        return [*self.candidates] if deaf else [self._listener, *self.candidates]

    def admit(self) -> Iterator[tuple[socket.socket, bytes]]:
        """The newcomers whose preamble is complete, with the preamble. Wrong or slow ones are refused."""
        while self._accept():
            if len(self.candidates) > MOST_CANDIDATES:
                yield from self._judge(self._oldest, last_chance=True)
        for candidate in list(self.candidates):
            yield from self._judge(candidate)

    @property
    def _oldest(self) -> socket.socket:
        return next(iter(self.candidates))

    def _accept(self) -> bool:
        """Accept a newcomer. False if none waits."""
        try:
            newcomer, _ = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError:
            return self._free_a_descriptor()
        newcomer.setblocking(False)
        if self._tls is not None:
            try:
                newcomer = self._tls.wrap(newcomer)
            except OSError:
                self.refuse(newcomer)
                return True
        self.candidates[newcomer] = Candidate(b"", time.monotonic_ns() + CANDIDATE_NS)
        return True

    def _free_a_descriptor(self) -> bool:
        """Refuse the newcomer that has waited longest; without any, ignore the listener for DEAF_NS."""
        if not self.candidates:
            self._deaf_until_ns = time.monotonic_ns() + DEAF_NS
            return False
        self.refuse(self._oldest)
        return True

    def _judge(self, candidate: socket.socket, last_chance: bool = False) -> Iterator[tuple[socket.socket, bytes]]:
        """Read what is there of a newcomer's preamble, and decide."""
        shown, until_ns = self.candidates[candidate]
        last_chance |= time.monotonic_ns() > until_ns
        try:
            more = candidate.recv(len(self._expected[0]) - len(shown))
        except self._later:
            more = b""
        except OSError:
            more = b""
            last_chance = True
        else:
            last_chance |= not more
        shown += more
        if shown in self._expected:
            del self.candidates[candidate]
            yield candidate, shown
        elif last_chance or not any(preamble.startswith(shown) for preamble in self._expected):
            self.refuse(candidate)
        else:
            self.candidates[candidate] = Candidate(shown, until_ns)

    def refuse(self, candidate: socket.socket) -> None:
        self.turned_away += 1
        self.candidates.pop(candidate, None)
        candidate.close()

    def close(self) -> None:
        for candidate in list(self.candidates):
            self.refuse(candidate)
        self._listener.close()
