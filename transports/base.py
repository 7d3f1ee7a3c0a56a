"""The seam: what every transport offers, and how it can fail.

A link joins two components and moves frames in batches; it never knows what is in them. None of its calls
blocks except `wait`, so a component is one thread with one loop: take, handle, offer, wait.

    TransportError
    ├── BadAddress      the URL: unknown scheme, missing port, unusable path
    ├── CannotListen    the place is taken or not ours
    └── PeerGone        the other end went away, or never came
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from transports.frames import FrameBatch
from transports.pattern import TWO_ENDS, Pattern


class TransportError(Exception):
    """A sentence for the user: what failed, where, what to do."""


class BadAddress(TransportError):
    pass


class CannotListen(TransportError):
    pass


class PeerGone(TransportError):
    pass


SWITCHES = {"nodelay": ("on", "off"), "topology": ("duplex", "simplex")}
"""Options that mean the same to every transport that takes them; the first value is the default."""


@dataclass(frozen=True)
class Address:
    """Where components meet: `scheme://place?option=value`.

    token    who does not show it is refused, and counted in `Link.refused`
    pattern  who talks to whom there
    keys     of a topic: the one with which is published, or the patterns that are subscribed to
    """

    scheme: str
    place: str
    token: str
    pattern: Pattern = Pattern.PAIR
    options: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()

    @classmethod
    def parse(cls, url: str, token: str, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Address:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise BadAddress(f"{url!r} is no address: {error}") from error
        if not parts.scheme or "://" not in url:
            raise BadAddress(f"{url!r} is no address: it takes the form scheme://place, as in tcp://127.0.0.1:7000")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        return cls(parts.scheme, parts.netloc + parts.path, token, pattern, options, keys)

    @property
    def url(self) -> str:
        options = "&".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.scheme}://{self.place}" + (f"?{options}" if options else "")

    def __post_init__(self) -> None:
        for name, allowed in SWITCHES.items():
            if self.options.get(name, allowed[0]) not in allowed:
                raise BadAddress(f"{self.url}: {name} is {self.options[name]!r}; it takes {' or '.join(allowed)}")

    @property
    def simplex(self) -> bool:
        """A connection for each direction, instead of one for both: a choice that only a pair has."""
        return self.options.get("topology") == "simplex" and self.pattern is Pattern.PAIR

    @property
    def fan_in(self) -> bool:
        """Many connect to one: the listener's `receive` merges its peers, its `send` reaches each of them."""
        return self.pattern is Pattern.FAN_IN

    @property
    def nodelay(self) -> bool:
        """TCP_NODELAY of its sockets: on, so that Nagle's algorithm is off, unless the address says `nodelay=off`."""
        return self.options.get("nodelay", "on") == "on"

    def host_and_port(self) -> tuple[str, int]:
        """The place of a TCP address. BadAddress where it is not host:port."""
        host, _, port = self.place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise BadAddress(
                f"{self.url!r} lacks host:port with a port of 0..65535, as in {self.scheme}://127.0.0.1:7000"
            )
        return host.strip("[]"), int(port)


class Link(ABC):
    """One end of a conversation."""

    url: str
    """Where it listens (with the port it got) or connects."""
    refused: int = 0
    """Peers turned away since the start: garbage, or strangers without the token."""
    junk: int = 0
    """Frames dropped because they were longer than the batch's largest frame."""

    @abstractmethod
    def receive(self, batch: FrameBatch) -> int:
        """Append the frames that are there already, up to the batch's capacity; how many. PeerGone at the end."""

    @abstractmethod
    def send(self, batch: FrameBatch, first: int) -> int:
        """Hand over frames from `first` on, each as a message of its own; the first frame not taken."""

    @abstractmethod
    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        """Sleep until something is there (`readable`) or can go (`writable`), a signal, or `until_ns` (monotonic).

        Who does not receive in between waits with `readable=False`; PeerGone once there never will be room.
        """

    def sockets(self) -> list[dict[str, Any]]:
        """The TCP sockets under it, as the kernel describes them now (see transports/sockets.py); none without any."""
        return []

    def drain(self, until_ns: int) -> bool:  # noqa: ARG002
        """Let what `send` took leave, and be confirmed where that was asked for; whether it did in time.

        Before a long time without a call of `wait`: some transports do nothing in between.
        """
        return True

    def facts(self) -> dict[str, Any]:
        """What else this end has noticed: confirms, pauses, redeliveries; nothing where there is nothing between."""
        return {}

    def excuse(self) -> str:
        """What explains a silence, as the end of a sentence; nothing where this end knows of nothing."""
        return ""

    @abstractmethod
    def close(self, linger_s: float = 1.0) -> None:
        """Release everything; frames already taken get `linger_s` seconds to leave."""


@dataclass(frozen=True)
class Transport:
    """What a transport's file declares as TRANSPORT; see docs/transports.md."""

    places: Mapping[str, str]
    """Its schemes, each with what a place is there: "port" (host:port), "path" (a file) or "name"."""
    listen: Callable[[Address], Link]
    connect: Callable[[Address, int], Link]
    """Takes the monotonic ns until which the peer may take to appear; a transport may also connect later."""
    one_process: frozenset[str] = frozenset()
    """Schemes that join threads of one process only."""
    variants: tuple[str, ...] = ()
    """Options worth a contract test of their own, as the query of a URL."""
    options: frozenset[str] = frozenset()
    """The names of the options that an address may have."""
    over_tcp: frozenset[str] = frozenset()
    """Schemes that have TCP sockets: their addresses take `nodelay` as well."""
    simplex: frozenset[str] = frozenset()
    """Schemes that can have a connection for each direction: their addresses take `topology` as well."""
    patterns: frozenset[Pattern] = TWO_ENDS

    def takes(self, scheme: str) -> list[str]:
        """The names of the options that an address of the scheme may have."""
        switches = {"nodelay": self.over_tcp, "topology": self.simplex}
        return sorted(self.options | {name for name, schemes in switches.items() if scheme in schemes})

    def check(self, address: Address) -> None:
        """BadAddress where an option, or the pattern, is none of this transport's."""
        if address.pattern not in self.patterns:
            has = ", ".join(pattern.value for pattern in Pattern if pattern in self.patterns)
            raise BadAddress(f"{address.scheme} has no pattern {address.pattern.value!r}; it has {has}")
        known = self.takes(address.scheme)
        for name in sorted(address.options.keys() - set(known)):
            takes = ", ".join(known) or "none"
            raise BadAddress(f"{address.url}: {name!r} is no option of {address.scheme}, which takes {takes}")
