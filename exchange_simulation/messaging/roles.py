"""Roles of a cell, what they report, and the ends of links that they open.

A cell's links meet at a new place each, or at one broker, whose queues are named after the cell.
"""

from __future__ import annotations

import contextlib
import resource
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exchange.measurements import LogBuckets
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_settings import with_option
from exchange_simulation.messaging.session import OPEN_NS, Session
from transports.base import PUBLISHING_PATTERNS, Address, Link, Pattern
from transports.declaration import Transport
from transports.registry import connect, listen, scheme_of, transport_of

LINGER_S = 2.0
SIMPLEX = "topology=simplex"
IN_FLIGHT_BYTES = 1 << 26
MOST_IN_FLIGHT = 100_000
"""Messages that a ZeroMQ socket may hold each way; fewer if they are large."""
SPARE_DESCRIPTORS = 64


@dataclass(kw_only=True)
class RoleResult:
    """A role's report at its end; what the role does not do stays 0 or empty."""

    sent: int = 0
    sent_checksum: int = 0
    received: int = 0
    received_checksum: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    """Number of messages that were not as they should be, by what was wrong."""
    first_ns: int = 0
    """Monotonic clock: a receiver has its first message, a sender begins to send."""
    last_ns: int = 0
    """Monotonic clock: the last message came, or was handed over."""
    mean_ns: int = 0
    """Monotonic clock: the mean of when its messages were handed over, or due; or when they came."""
    latency: LogBuckets | None = None
    """From handing over to receipt; of a role that asks, to the answer's receipt."""
    stopped: str | None = None
    """Why it ended early, as a sentence."""
    usage: dict[str, Any] = field(default_factory=dict)
    """cpu_s, max_rss_bytes and context switches between start and end, filled in by the rig."""
    sockets: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    """`Link.facts` of each link."""
    details: dict[str, Any] = field(default_factory=dict)
    """Results for the judge and the figures of one benchmark; log buckets among them are recorded as figures."""


Task = Callable[[Session], RoleResult]
"""A role's work between start and end; see flow.py and requests.py."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link, opened before the start; `listens` if the other end connects to it."""

    url: str
    token: str
    listens: bool = False
    pattern: Pattern = Pattern.PAIR
    keys: tuple[str, ...] = ()
    """A topic's: the publisher's routing key, or the patterns of a subscriber."""


@dataclass(frozen=True)
class Sharing:
    """Roles that share a queue, which deals no exact quotas, or an exchange; receivers stop once they have `total`.

    A broker may hold one of dozens of publishers back for long, so each is patient as long as the others get on.
    """

    name: str
    total: int


@dataclass(frozen=True)
class Role:
    """`name` is unique within a cell; roles of one kind begin with the same word, as in `consumer 3`."""

    name: str
    task: Task
    ends: tuple[LinkEnd, ...]
    begins: bool = False
    """It sends first: it is started once all others are at work, so that nothing piles up before."""
    shares: Sharing | None = None
    idles: bool = False
    """It takes part only by being there: it is stopped once all others have a result."""

    @property
    def is_patient(self) -> bool:
        """It may wait while others get on: a publisher's reply comes once its consumers have everything."""
        return self.begins or self.idles or self.shares is not None


def of_kind(results: Mapping[str, RoleResult], kind: str) -> dict[str, RoleResult]:
    """Results of the roles whose names begin so."""
    return {name: result for name, result in results.items() if name.startswith(kind)}


def stopped_in_words(results: Mapping[str, RoleResult]) -> list[str]:
    """A sentence for each role that ended early."""
    return [f"{name}: {result.stopped}" for name, result in results.items() if result.stopped]


def open_links(ends: Sequence[LinkEnd], stack: contextlib.ExitStack) -> list[Link]:
    """Listen or connect; whatever is in the list at the end of the stack is closed, the last first."""
    links: list[Link] = []
    stack.callback(lambda: [link.close(LINGER_S) for link in reversed(links)])
    for end in ends:
        if end.listens:
            links.append(listen(end.url, end.token, end.pattern, end.keys))
        else:
            links.append(connect(end.url, end.token, time.monotonic_ns() + OPEN_NS, end.pattern, end.keys))
    return links


PUBLISHER, CONSUMER = HOSTS = ("publisher", "consumer")
"""The hosts of a network: the roles that begin are on the first, all others on the second."""
FindPlace = Callable[[str, Path, str], str]
"""Returns a free place of a kind, as `port`, on a host; the path is for a place that is a file."""


@dataclass(frozen=True)
class Links:
    """Makes the ends of a cell's links. `transport` is what the user typed, or the broker's URL."""

    transport: str
    token: str
    scratch: Path
    find: FindPlace
    nagle: Sequence[str] = ()
    """The hosts whose sockets have Nagle's algorithm on."""

    @property
    def has_broker(self) -> bool:
        return self._declared.has_broker(self._scheme)

    @property
    def _scheme(self) -> str:
        return scheme_of(self.transport)

    @property
    def _declared(self) -> Transport:
        return transport_of(self._scheme)

    def pair(self, size: int, name: str = "", one_way: bool = False) -> tuple[LinkEnd, LinkEnd]:
        """Make a link of two, for messages of a size: (listener, connector).

        Over a broker, pairs of different `name` have queues of their own on one direct exchange. `one_way`: nearly
        all flows from the connector to the listener, so ZeroMQ has PUSH and PULL instead of PAIR.
        """
        one_way = one_way or SIMPLEX in self.transport
        options = self._bounded(size)
        if name and "pair" in self._declared.options:
            options["pair"] = name
        if one_way and self._has_ports_back:
            options |= {"topology": "simplex", "back": self._port(CONSUMER)}
        url = self._url(options, CONSUMER)
        listener = self._on(CONSUMER, url)
        connector = self._on(PUBLISHER, url)
        return LinkEnd(listener, self.token, listens=True), LinkEnd(connector, self.token)

    def many(
        self,
        size: int,
        pattern: Pattern,
        keys: Sequence[tuple[str, ...]] = ((),),
        subscribed: tuple[str, ...] = (),
        name: str = "",
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> tuple[list[LinkEnd], LinkEnd]:
        """Make a link of many: (an end for each listener, by its keys; the end that every connector opens).

        Links of different `name` have nothing to do with each other; `options` go into their URLs. Without a broker
        each listener has a place of its own, and a connector is connected to all of them.
        """
        token = f"{self.token}.{name}" if name else self.token
        back = pattern in PUBLISHING_PATTERNS and self._has_ports_back
        own = {**self._bounded(size), **options}
        host, other = (PUBLISHER, CONSUMER) if pattern in PUBLISHING_PATTERNS else (CONSUMER, PUBLISHER)
        urls = [self._url(own | ({"back": self._port(host)} if back else {}), host) for _ in keys]
        listeners = [
            LinkEnd(self._on(host, url), token, True, pattern, own) for url, own in zip(urls, keys, strict=True)
        ]
        return listeners, LinkEnd(self._on(other, _url_of_all(urls)), token, False, pattern, subscribed)

    def _on(self, host: str, url: str) -> str:
        """The address for an end on that host."""
        return with_option(url, "nodelay=off") if host in self.nagle else url

    @property
    def _has_ports_back(self) -> bool:
        """True if replies come back through a port of their own."""
        return "back" in self._declared.options and self._scheme in self._declared.simplex

    def _bounded(self, size: int) -> dict[str, object]:
        """A transport that counts messages in flight, not bytes, may have fewer large ones in flight."""
        if "hwm" not in self._declared.options or "hwm=" in self.transport:
            return {}
        return {"hwm": max(16, min(MOST_IN_FLIGHT, IN_FLIGHT_BYTES // size))}

    def _port(self, host: str) -> str:
        return self.find("port", Path(), host).rpartition(":")[2]

    def _url(self, options: dict[str, object], host: str) -> str:
        """The address of a listener on that host."""
        base, _, given = self.transport.partition("?")
        if not self.has_broker:
            kind = self._declared.places[self._scheme]
            path = self.scratch / f"link-{secrets.token_hex(6)}"
            base = f"{self._scheme}://{self.find(kind, path, host)}"
        words = [f"{name}={value}" for name, value in options.items()]
        if given:
            words.insert(0, given)
        return base + ("?" + "&".join(words) if words else "")


def _url_of_all(urls: Sequence[str]) -> str:
    """Join the places of all listeners: zeromq://host:1,host:2?hwm=100&back=3,4."""
    first, *_ = addresses = [Address.parse(url, "") for url in urls]
    options = {name: _each_once(each.options[name] for each in addresses) for name in first.options}
    return replace(first, place=_each_once(each.place for each in addresses), options=options).url


def _each_once(values: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(values))


def check_descriptors(needed: int, who: str) -> None:
    """UserError if this shell allows fewer open files than `who` needs, as `128 roles need a descriptor each`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and needed + SPARE_DESCRIPTORS > soft:
        raise UserError(
            f"{who}, and this shell allows {soft}: "
            f"ask for fewer, or raise the limit with ulimit -n {needed + SPARE_DESCRIPTORS}"
        )
