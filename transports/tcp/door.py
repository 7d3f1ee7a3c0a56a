"""The door of a TCP listener: newcomers show the token in time, or are refused and counted."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transports.tcp.tls import Tls

MOST_CANDIDATES = 64
"""The most newcomers that are waited for; with more, the oldest one has its last chance."""
CANDIDATE_NS = 60_000_000_000
"""The time that a newcomer has to show the token. Under TLS a component may compile before its handshake is over."""
DEAF_NS = 10_000_000
"""The time for which the listener is ignored once this process has no descriptor left for a newcomer."""


class Candidate(NamedTuple):
    """The part of the preamble that a newcomer has shown, and the end of its time for the rest."""

    shown: bytes
    until_ns: int


class Door:
    """Admits newcomers that show one of the `expected` preambles, which have the same length.

    `turned_away` counts the others. With `tls` a newcomer's connection is put under TLS before it shows a preamble.
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
        is_deaf = self._deaf_until_ns and time.monotonic_ns() < self._deaf_until_ns
        if is_deaf:
            return [*self.candidates]
        return [self._listener, *self.candidates]

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
        """Read the part of a newcomer's preamble that has come, and admit the newcomer, refuse it, or let it wait.

        With `last_chance` a newcomer is refused if its preamble is not complete now.
        """
        shown, until_ns = self.candidates[candidate]
        if time.monotonic_ns() > until_ns:
            last_chance = True
        try:
            more = self._read(candidate, len(self._expected[0]) - len(shown))
            if not more:  # the newcomer has closed its end
                last_chance = True
        except self._later:
            more = b""
        except OSError:
            more = b""
            last_chance = True
        shown += more
        if shown in self._expected:
            del self.candidates[candidate]
            yield candidate, shown
        elif last_chance or not any(preamble.startswith(shown) for preamble in self._expected):
            self.refuse(candidate)
        else:
            self.candidates[candidate] = Candidate(shown, until_ns)

    def _read(self, candidate: socket.socket, most: int) -> bytes:
        """Read up to this many bytes of a newcomer's preamble. OSError if there are none, or none will come."""
        return candidate.recv(most)

    def refuse(self, candidate: socket.socket) -> None:
        """Close a newcomer's connection, and count the newcomer as turned away."""
        self.turned_away += 1
        self.candidates.pop(candidate, None)
        candidate.close()

    def close(self) -> None:
        for candidate in list(self.candidates):
            self.refuse(candidate)
        self._listener.close()
