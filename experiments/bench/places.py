"""Where the roles of a cell meet: a new place for each link, or the one broker, whose queues are named for the cell."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from experiments.bench.roles import End
from experiments.places import free_place
from transports.base import Transport
from transports.pattern import PUBLISHED, Pattern
from transports.registry import scheme_of, transport_of

IN_FLIGHT_BYTES = 1 << 26
MOST_IN_FLIGHT = 100_000
"""Messages that a ZeroMQ socket may hold each way; fewer where they are large."""


@dataclass(frozen=True)
class Places:
    """`transport` as the user typed it, or as the broker's URL; `held` keeps ports reserved as long as it is open."""

    transport: str
    token: str
    scratch: Path
    held: contextlib.ExitStack

    @property
    def has_broker(self) -> bool:
        return self._declared.places[self._scheme] == "broker"

    @property
    def _scheme(self) -> str:
        return scheme_of(self.transport)

    @property
    def _declared(self) -> Transport:
        return transport_of(self._scheme)

    def pair(self, size: int, name: str = "", one_way: bool = False) -> tuple[End, End]:
        """A link of two, for messages of a size: (who listens, who connects).

        Over a broker, pairs of different `name` have queues of their own on one direct exchange. `one_way`: nearly
        all flows from who connects to who listens, so that ZeroMQ has PUSH and PULL instead of PAIR.
        """
        options = self._bounded(size)
        if name and "pair" in self._declared.options:
            options["pair"] = name
        if one_way and "back" in self._declared.options and self._scheme in self._declared.simplex:
            options |= {"topology": "simplex", "back": self._port()}
        url = self._url(options)
        return End(url, self.token, listens=True), End(url, self.token)

    def queue(self, size: int, consumers: int, name: str = "") -> tuple[list[End], End]:
        """A queue that all share: (an end for each of its consumers, the one for each of its publishers).

        Without a broker every consumer has a place of his own, and publishers deal messages to all of them in turn.
        """
        options, token = self._bounded(size), self._token(name)
        urls = [self._url(options)] if self.has_broker else [self._url(options) for _ in range(consumers)]
        listeners = [End(urls[i % len(urls)], token, listens=True, pattern=Pattern.QUEUE) for i in range(consumers)]
        first, question_mark, words = urls[0].partition("?")
        places = ",".join([first, *(url.partition("?")[0].partition("://")[2] for url in urls[1:])])
        return listeners, End(places + question_mark + words, token, pattern=Pattern.QUEUE)

    def together(
        self, size: int, pattern: Pattern, key: tuple[str, ...] = (), subscribed: tuple[str, ...] = ()
    ) -> tuple[End, End]:
        """A link of many, all at one place: (who listens, each of those who connect)."""
        options = self._bounded(size)
        if pattern in PUBLISHED and "back" in self._declared.options and self._scheme in self._declared.simplex:
            options["back"] = self._port()
        url = self._url(options)
        return End(url, self.token, True, pattern, key), End(url, self.token, False, pattern, subscribed)

    def _bounded(self, size: int) -> dict[str, object]:
        """Where messages are counted, not their bytes: fewer of large ones may be in flight."""
        if "hwm" not in self._declared.options:
            return {}
        return {"hwm": max(16, min(MOST_IN_FLIGHT, IN_FLIGHT_BYTES // size))}

    def _token(self, name: str) -> str:
        return f"{self.token}.{name}" if name else self.token

    def _port(self) -> str:
        return free_place("port", Path(), self.held).rpartition(":")[2]

    def _url(self, options: dict[str, object]) -> str:
        asked, _, given = self.transport.partition("?")
        if not self.has_broker:
            kind = self._declared.places[self._scheme]
            path = self.scratch / f"link-{secrets.token_hex(6)}"
            asked = f"{self._scheme}://{free_place(kind, path, self.held)}"
        words = [given] * bool(given) + [f"{name}={value}" for name, value in options.items()]
        return asked + ("?" + "&".join(words) if words else "")
