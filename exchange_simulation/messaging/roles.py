"""The roles of a cell, their results, and the ends of links that they open.

Without a broker each link has a place of its own, as a port. At a broker the queues are named after the cell.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exchange.measurements import LogBuckets
from exchange.unique import unique
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_urls import with_option
from exchange_simulation.messaging.session import OPEN_NS, Session
from transports.base import PUBLISHING_PATTERNS, Address, Link, Pattern
from transports.declaration import RunningBroker, Transport, WholeNumberOption
from transports.registry import connect, listen, scheme_of, transport_of

LINGER_S = 2.0
"""The longest time that a link takes to send the rest before it is closed."""
SIMPLEX = "topology=simplex"
"""The option of an address whose links are one-way."""
IN_FLIGHT_BYTES = 1 << 26
"""The largest number of bytes that a ZeroMQ socket may hold each way."""
MOST_IN_FLIGHT = 100_000
"""The largest number of messages that a ZeroMQ socket may hold each way."""
LEAST_IN_FLIGHT = 16
SPARE_DESCRIPTORS = 64
"""Descriptors that a process needs besides those that are counted."""


@dataclass(kw_only=True)
class RoleResult:
    """A role's report at its end; fields that do not apply to the role stay 0 or empty."""

    sent: int = 0
    sent_checksum: int = 0
    received: int = 0
    received_checksum: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    """Number of wrong messages, by their problem."""
    first_ns: int = 0
    """Time (monotonic clock) at which a receiver has its first message, or a sender begins to send."""
    last_ns: int = 0
    """Time (monotonic clock) at which the last message came, or was handed over."""
    mean_ns: int = 0
    """Mean of the times (monotonic clock) at which the messages came, or were handed over, or were due."""
    latency: LogBuckets | None = None
    """Times from handing over to receipt; for a role that asks, from a question to the receipt of its answer."""
    stopped: str | None = None
    """A sentence on why the role ended early."""
    usage: dict[str, Any] = field(default_factory=dict)
    """cpu_s, max_rss_bytes and context switches between start and end, filled in by the rig."""
    sockets: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    """`Link.facts` of each link."""
    details: dict[str, Any] = field(default_factory=dict)
    """Results for the judge and the figures of one benchmark; log buckets among them are recorded as figures."""


@dataclass
class ReceivedPart:
    """What came of a part of the messages: those whose numbers lie between two bounds."""

    received: int = 0
    first_ns: int = 0
    """Time (monotonic clock) at which the first of them came; 0 if none came."""
    last_ns: int = 0
    latency: LogBuckets = field(default_factory=LogBuckets)
    """Empty if messages are too short for a stamp."""


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
    """For a topic: the publisher's routing key, or the patterns of a subscriber."""
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """Variables that this end needs, as the password of its broker; see `RunningBroker`."""


@dataclass(frozen=True)
class Sharing:
    """Roles that share a queue or an exchange; the receivers stop once they have `total` messages together.

    A queue deals no exact quotas to its receivers. A broker may hold one of dozens of publishers back for a long time,
    so each role waits as long as any of them makes progress.
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
    """True for a role that sends first: it is started once all others are at work, so no messages pile up before."""
    shares: Sharing | None = None
    idles: bool = False
    """True for a role that receives nothing: it is stopped once all others have a result."""
    clock_ahead_ns: int = 0
    """The monotonic clock of the role's host minus that of the host of the roles that begin."""

    @property
    def is_patient(self) -> bool:
        """True if the role may wait while others make progress, as a publisher waits for its consumers."""
        return self.begins or self.idles or self.shares is not None


def of_kind(results: Mapping[str, RoleResult], kind: str) -> dict[str, RoleResult]:
    """Results of the roles whose names begin with `kind`."""
    return {name: result for name, result in results.items() if name.startswith(kind)}


def stopped_in_words(results: Mapping[str, RoleResult]) -> list[str]:
    """A sentence for each role that ended early."""
    return [f"{name}: {result.stopped}" for name, result in results.items() if result.stopped]


def open_links(ends: Sequence[LinkEnd], stack: contextlib.ExitStack) -> list[Link]:
    """Listen or connect at each end; returns the links.

    When the stack ends, all links in the list are closed, the last first; a task may have replaced links by then.
    """
    links: list[Link] = []

    def close_links() -> None:
        for link in reversed(links):
            link.close(LINGER_S)

    stack.callback(close_links)
    for end in ends:
        os.environ.update(end.environment)
        if end.listens:
            links.append(listen(end.url, end.token, end.pattern, end.keys))
        else:
            links.append(connect(end.url, end.token, time.monotonic_ns() + OPEN_NS, end.pattern, end.keys))
    return links


PUBLISHER = "publisher"
"""The host of the roles that begin."""
CONSUMER = "consumer"
"""The host of all other roles."""
HOSTS = (PUBLISHER, CONSUMER)


def kind_of(role: Role) -> str:
    """Return the host of a role."""
    return PUBLISHER if role.begins else CONSUMER


FindPlace = Callable[[str, Path, str], str]
"""Takes a kind of place, as `port`, a path for a place that is a file, and a host; returns a free place."""


@dataclass(frozen=True)
class Links:
    """Makes the ends of a cell's links."""

    transport: str
    """The transport as the user typed it, or the broker's URL."""
    token: str
    scratch: Path
    find: FindPlace
    nagle: Sequence[str] = ()
    """The hosts whose sockets have Nagle's algorithm on."""
    brokers: Sequence[RunningBroker] = ()
    """The brokers that share the cell's links; empty without a private broker."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that the ends of the links need."""

    def at_broker(self, number: int) -> Links:
        """The links at one of several brokers, which are dealt in turn: `number` is that of the link, from 0."""
        if not self.brokers:
            return self
        broker = self.brokers[number % len(self.brokers)]
        return replace(self, transport=broker.url, environment=broker.environment)

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
        """Make a link between two roles; returns (the listener's end, the connector's end).

        `size`: bytes of a message. Over a broker, pairs with different `name` have different queues on one direct
        exchange. `one_way`: nearly all messages go to the listener, so ZeroMQ has PUSH and PULL instead of PAIR.
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
        environment = self.environment
        return (
            LinkEnd(listener, self.token, listens=True, environment=environment),
            LinkEnd(connector, self.token, environment=environment),
        )

    def many(
        self,
        size: int,
        pattern: Pattern,
        keys: Sequence[tuple[str, ...]] = ((),),
        subscribed: tuple[str, ...] = (),
        name: str = "",
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> tuple[list[LinkEnd], LinkEnd]:
        """Make a link between many roles; returns (the end of each listener, the end that every connector opens).

        `size`: bytes of a message. `keys`: the keys of each listener. `subscribed`: the patterns of a connector. Links
        with different `name` are independent. `options` go into their URLs. Without a broker each listener has its own
        place, and a connector is connected to all of them.
        """
        token = f"{self.token}.{name}" if name else self.token
        is_publishing = pattern in PUBLISHING_PATTERNS  # then publishers listen
        host = PUBLISHER if is_publishing else CONSUMER
        other_host = CONSUMER if is_publishing else PUBLISHER
        urls: list[str] = []
        listeners: list[LinkEnd] = []
        for keys_of_listener in keys:
            options_of_listener = {**self._bounded(size), **options}
            if is_publishing and self._has_ports_back:
                options_of_listener["back"] = self._port(host)
            url = self._url(options_of_listener, host)
            urls.append(url)
            listeners.append(LinkEnd(self._on(host, url), token, True, pattern, keys_of_listener, self.environment))
        url_of_connector = self._on(other_host, _url_of_all(urls))
        connector = LinkEnd(url_of_connector, token, False, pattern, subscribed, self.environment)
        return listeners, connector

    def _on(self, host: str, url: str) -> str:
        """The address for an end on a host: with Nagle's algorithm if the user asked for that."""
        if host in self.nagle:
            return with_option(url, "nodelay=off")
        return url

    @property
    def _has_ports_back(self) -> bool:
        """True if replies come back through a port of their own."""
        return "back" in self._declared.options and self._scheme in self._declared.simplex

    def _bounded(self, size: int) -> dict[str, object]:
        """The option for the most messages in flight: the larger, the fewer. Empty for a transport without it."""
        if "hwm" not in self._declared.options or "hwm=" in self.transport:
            return {}
        takes = self._declared.options["hwm"]
        most = min(MOST_IN_FLIGHT, takes.most) if isinstance(takes, WholeNumberOption) else MOST_IN_FLIGHT
        return {"hwm": max(LEAST_IN_FLIGHT, min(most, IN_FLIGHT_BYTES // size))}

    def _port(self, host: str) -> str:
        """A free port on a host."""
        return self.find("port", Path(), host).rpartition(":")[2]

    def _url(self, options: dict[str, object], host: str) -> str:
        """The address of a listener on a host."""
        base, _, given = self.transport.partition("?")
        if not self.has_broker:
            kind = self._declared.places[self._scheme]
            path = self.scratch / f"link-{secrets.token_hex(6)}"
            base = f"{self._scheme}://{self.find(kind, path, host)}"
        words = [f"{name}={value}" for name, value in options.items()]
        if given:
            words.insert(0, given)
        if not words:
            return base
        return f"{base}?{'&'.join(words)}"


def _url_of_all(urls: Sequence[str]) -> str:
    """The address with the places of all listeners.

    For example: zeromq://host:1,host:2?hwm=100&back=3,4
    """
    addresses = [Address.parse(url, "") for url in urls]
    first = addresses[0]
    options: dict[str, str] = {}
    for name in first.options:
        options[name] = ",".join(unique(address.options[name] for address in addresses))
    places = ",".join(unique(address.place for address in addresses))
    return replace(first, place=places, options=options).url


def check_descriptors(needed: int, who: str) -> None:
    """UserError if this shell allows too few open files.

    `who` is the clause of the error that says who needs them, as "128 roles need a descriptor each".
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and needed + SPARE_DESCRIPTORS > soft:
        raise UserError(
            f"{who}, and this shell allows {soft}: "
            f"ask for fewer, or raise the limit with ulimit -n {needed + SPARE_DESCRIPTORS}"
        )
