"""Where the roles of a cell meet: a new place for each link, or the one broker, whose queues are named for the cell."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from messaging.roles import End
from transports.base import Address, Transport
from transports.pattern import PUBLISHED, Pattern
from transports.registry import scheme_of, transport_of

SIMPLEX = "topology=simplex"
IN_FLIGHT_BYTES = 1 << 26
MOST_IN_FLIGHT = 100_000
"""Messages that a ZeroMQ socket may hold each way; fewer where they are large."""


Find = Callable[[str, Path], str]
"""A free place of a kind, as `port`; the path is for one that is a file."""


@dataclass(frozen=True)
class Places:
    """`transport` as the user typed it, or as the broker's URL."""

    transport: str
    token: str
    scratch: Path
    find: Find

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
        one_way = one_way or SIMPLEX in self.transport
        options = self._bounded(size)
        if name and "pair" in self._declared.options:
            options["pair"] = name
        if one_way and "back" in self._declared.options and self._scheme in self._declared.simplex:
            options |= {"topology": "simplex", "back": self._port()}
        url = self._url(options)
        return End(url, self.token, listens=True), End(url, self.token)

    def together(
        self, size: int, pattern: Pattern, keys: Sequence[tuple[str, ...]] = ((),), subscribed: tuple[str, ...] = (),
        name: str = "",
    ) -> tuple[list[End], End]:  # fmt: skip
        """A link of many: (an end for each who listens, by his keys; the one for each of those who connect).

        Those of another `name` have nothing to do with it. Without a broker each who listens has a place of his own,
        and who connects is connected to all of them.
        """
        token = self._token(name)
        urls = [self._url(self._bounded(size) | self._way_back(pattern)) for _ in keys]
        listeners = [End(url, token, True, pattern, of_one) for url, of_one in zip(urls, keys, strict=True)]
        return listeners, End(_all_of(urls), token, False, pattern, subscribed)

    def _way_back(self, pattern: Pattern) -> dict[str, object]:
        """Of replies to who publishes."""
        has_ports = "back" in self._declared.options and self._scheme in self._declared.simplex
        return {"back": self._port()} if has_ports and pattern in PUBLISHED else {}

    def _bounded(self, size: int) -> dict[str, object]:
        """Where messages are counted, not their bytes: fewer of large ones may be in flight."""
        if "hwm" not in self._declared.options:
            return {}
        return {"hwm": max(16, min(MOST_IN_FLIGHT, IN_FLIGHT_BYTES // size))}

    def _token(self, name: str) -> str:
        return f"{self.token}.{name}" if name else self.token

    def _port(self) -> str:
        return self.find("port", Path()).rpartition(":")[2]

    def _url(self, options: dict[str, object]) -> str:
        asked, _, given = self.transport.partition("?")
        if not self.has_broker:
            kind = self._declared.places[self._scheme]
            path = self.scratch / f"link-{secrets.token_hex(6)}"
            asked = f"{self._scheme}://{self.find(kind, path)}"
        words = [given] * bool(given) + [f"{name}={value}" for name, value in options.items()]
        return asked + ("?" + "&".join(words) if words else "")


def _all_of(urls: Sequence[str]) -> str:
    """One for all places: zeromq://host:1,host:2?hwm=100&back=3,4."""
    first, *_ = addresses = [Address.parse(url, "") for url in urls]
    options = {name: _each_once(each.options[name] for each in addresses) for name in first.options}
    return replace(first, place=_each_once(each.place for each in addresses), options=options).url


def _each_once(values: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(values))
