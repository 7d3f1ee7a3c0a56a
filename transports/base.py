"""The seam: the calls that every link has, and the errors that they raise.

A link joins two components and moves frames in batches; it never knows what is in them. None of its calls
blocks except `wait`, so a component is one thread with one loop: receive, handle, send, wait.
A transport describes itself by a Transport of transports/declaration.py; docs/example-transport.md has an example.

    TransportError
    ├── BadAddress      the URL is wrong: unknown scheme, missing port, unusable path
    ├── CannotListen    another listener has the place, or we may not use it
    ├── NotInstalled    a client library or a broker is missing
    └── PeerGone        the other end, or the broker between the two, went away or never came
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

if TYPE_CHECKING:  # numpy takes longer to import than the commands that only declare options may take
    from transports.frames import FrameBatch

LARGEST_PORT = 65_535
PORT_DIGITS = len(str(LARGEST_PORT))
LAST_LOOK_NS = 200_000_000
"""The longest last look. A library's own thread, which was stalled too, needs a moment to pass on frames."""


class TransportError(Exception):
    """A sentence for the user: what failed, where, what to do."""


class BadAddress(TransportError):
    """A URL that no transport can use as it is."""


class CannotListen(TransportError):
    """Another listener has the place, or we may not use it."""


class NotInstalled(TransportError):
    """This machine lacks a client library, or the programs of a broker; the sentence says how to get them."""


class PeerGone(TransportError):
    """The other end has left, or did not come in time. Every frame that it had sent before has been delivered."""


class Pattern(Enum):
    """The shape of a conversation; each value is its name for users. docs/patterns.md has the pattern's sockets.

    PAIR      listener ⇄ connector                   both send and receive
    FAN_IN    listener ⇄ connectors                  the listener receives from each, and sends to all
    QUEUE     connectors ─▶ one queue ─▶ listeners   each message goes to one of the listeners
    FANOUT    listeners ─▶ connectors                each connector gets every message, and can reply to a lone listener
    TOPIC     listeners ─▶ connectors                the same, for the connectors whose patterns match the key
    REQUESTS  connectors ⇄ listeners                 each request has an answer, which goes to its sender
    SCAN      connectors ⇄ listeners                 the same, but each connector searches one queue of all answers
    ROUTED    every end ⇄ every end                  each frame goes to one of many destinations; see `Address.keys`
    """

    PAIR = "pair"
    FAN_IN = "fan-in"
    QUEUE = "queue"
    FANOUT = "fanout"
    TOPIC = "topic"
    REQUESTS = "requests"
    SCAN = "scan"
    ROUTED = "routed"


REQUEST_PATTERNS = frozenset({Pattern.REQUESTS, Pattern.SCAN})
"""Patterns in which the listener sends one frame for each frame that it has received, in the same order."""
BASIC_PATTERNS = frozenset({Pattern.PAIR, Pattern.FAN_IN})
"""The patterns that every transport has; a run of the exchange needs no others."""
PUBLISHING_PATTERNS = frozenset({Pattern.FANOUT, Pattern.TOPIC})
"""Patterns in which listeners publish; the replies of subscribers come back another way."""
CONSUMED_PREFIX = "<"
"""The beginning of the key of a queue that this end consumes: `<orders` consumes the queue `orders`."""
SUBSCRIBER_MARK = "@"
"""Stands before a subscriber: `<prices@shop` consumes the messages to `prices`, in a queue of the subscriber `shop`."""
MANY_LISTENER_PATTERNS = PUBLISHING_PATTERNS | {Pattern.QUEUE}
"""Patterns in which a connector connects to each of several listeners, if there is no broker."""

SWITCHES = {"nodelay": ("on", "off"), "topology": ("duplex", "simplex")}
"""Options that mean the same to every transport that takes them; the first value is the default."""


UNQUOTED_CHARACTERS = "/:,*@<>()[]"
"""Characters that the values of options may have, besides letters and digits, and that mean nothing in a query."""


BYTES_OF_PATHS = "surrogateescape"
"""How bytes of a path that are no UTF-8 are kept, here as by Python itself."""


FIRST_OPTION = re.compile(r"\?[a-z_]+=")
"""The begin of the options of a URL."""


def quoted(value: str) -> str:
    """The value of an option as a URL has it."""
    return quote(value, safe=UNQUOTED_CHARACTERS, errors=BYTES_OF_PATHS)


def mask(url: str) -> str:
    """The URL with stars in place of a password.

    The password ends at the last `@` before the options. A password that is not quoted, as in
    amqp://user:a/b?c@d@host, makes the URL wrong, but has stars in the error too.
    """
    options = FIRST_OPTION.search(url)
    options_at = options.start() if options else len(url)
    before_host, at_sign, host_and_path = url[:options_at].rpartition("@")
    scheme, slashes, credentials = before_host.partition("://")
    user, colon, _ = credentials.partition(":")
    if not at_sign or not colon:
        return url
    return f"{scheme}{slashes}{user}:***@{host_and_path}{url[options_at:]}"


@dataclass(frozen=True)
class Address:
    """The place where components meet: `scheme://place?option=value`.

    token    a listener refuses peers that do not show it, and counts them in `Link.refused`
    pattern  the shape of the conversation
    keys     topic: the publisher's one key, or the patterns that a subscriber asks for
             routed: the destinations that this end consumes, each behind `<`, and the names of the destinations to
             which it sends; a frame's first two bytes, little-endian, are the index of its destination among these
    """

    scheme: str
    place: str
    token: str
    pattern: Pattern = Pattern.PAIR
    options: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()

    @classmethod
    def parse(cls, url: str, token: str, pattern: Pattern = Pattern.PAIR, keys: tuple[str, ...] = ()) -> Address:
        """The address of a URL. BadAddress if it does not have the form scheme://place?option=value."""
        try:
            parts = urlsplit(url, allow_fragments=False)
        except ValueError as error:
            raise BadAddress(f"{url!r} is no address: {error}") from error
        if not parts.scheme or "://" not in url:
            raise BadAddress(f"{url!r} is no address: it takes the form scheme://place, as in tcp://127.0.0.1:7000")
        query = parts.query.replace("+", "%2B")
        options = dict(parse_qsl(query, keep_blank_values=True, errors=BYTES_OF_PATHS))
        return cls(parts.scheme, parts.netloc + parts.path, token, pattern, options, keys)

    @property
    def url(self) -> str:
        """The address in the form that `parse` takes."""
        options = "&".join(f"{name}={quoted(value)}" for name, value in self.options.items())
        return f"{self.scheme}://{self.place}" + (f"?{options}" if options else "")

    @property
    def masked_url(self) -> str:
        """The URL for sentences, with stars in place of a password."""
        return mask(self.url)

    def __post_init__(self) -> None:
        for name, allowed in SWITCHES.items():
            if self.options.get(name, allowed[0]) not in allowed:
                raise BadAddress(
                    f"{self.masked_url}: {name} is {self.options[name]!r}; it takes {' or '.join(allowed)}"
                )

    @property
    def simplex(self) -> bool:
        """True if each direction has its own connection; only a pair has this choice."""
        return self.options.get("topology") == "simplex" and self.pattern is Pattern.PAIR

    @property
    def fan_in(self) -> bool:
        """True if many connect to one listener: `receive` merges their frames, and `send` reaches each of them."""
        return self.pattern is Pattern.FAN_IN

    @property
    def nodelay(self) -> bool:
        """True if the sockets get TCP_NODELAY, which turns Nagle's algorithm off; False only with `nodelay=off`."""
        return self.options.get("nodelay", "on") == "on"

    def host_and_port(self) -> tuple[str, int]:
        """Host and port of a TCP address. BadAddress if its place is not host:port."""
        host, _, digits = self.place.rpartition(":")
        port = port_of(digits)
        if not host or port is None:
            raise BadAddress(
                f"{self.masked_url!r} lacks host:port with a port of 0..65535, as in {self.scheme}://127.0.0.1:7000"
            )
        return host.strip("[]"), port


def port_of(digits: str) -> int | None:
    """Return the port that these digits write; None if they write none of 0..65535."""
    if not digits.isdecimal() or len(digits) > PORT_DIGITS:
        return None
    port = int(digits)
    return port if port <= LARGEST_PORT else None


class Link(ABC):
    """One end of a conversation.

    `transports/memory.py` is the shortest one that keeps every promise. A crash of the peer looks like its `close`.
    The death of a broker between the two ends is PeerGone, whose sentence names the broker.
    """

    url: str
    """The address to which this end connects, or on which it listens, then with the port that it got."""
    refused: int = 0
    """Peers turned away since the start, because they sent garbage or showed another token."""
    junk: int = 0
    """Frames dropped because they were longer than the batch's largest. TCP closes such a connection too."""

    @abstractmethod
    def receive(self, batch: FrameBatch) -> int:
        """Append the frames that have come, up to the batch's capacity, and return their number.

        PeerGone once the peer has left and all its frames have been delivered; with several peers, once the last one
        has left. A refused connector gets PeerGone too, or at the least receives nothing.
        """

    @abstractmethod
    def send(self, batch: FrameBatch, first: int) -> int:
        """Take frames from `first` on, each as one message, and return the index of the first frame not taken.

        No frame is taken while no peer is connected. PeerGone may be raised here, or by the next `receive` or `wait`.
        """

    @abstractmethod
    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        """Sleep until a frame has come (`readable`), a frame can go (`writable`), a signal, or `until_ns` (monotonic).

        A caller that does not receive in between waits with `readable=False`, and gets PeerGone if the peer has left.
        """

    def watched(self) -> list[tuple[int, int]]:
        """Return (descriptor, events to poll for), for a thread that waits for several links: see together.py.

        One of them is ready once there is work for this end: a frame, a newcomer, an end, room for unsent bytes. Empty
        if this end cannot say, and has to be looked at now and then.
        """
        return []

    def sockets(self) -> list[dict[str, Any]]:
        """Describe this end's TCP sockets as the kernel knows them now (see transports/sockets.py); may be empty."""
        return []

    def drain(self, until_ns: int) -> bool:  # noqa: ARG002
        """Wait until all frames that `send` took have left, and are confirmed if the address asks for confirms.

        False if time ran out. Call it before a long time without `wait`: some transports move nothing in between.
        """
        return True

    def facts(self) -> dict[str, Any]:
        """Further counts of this end: confirms, pauses, redeliveries. Empty without a broker."""
        return {}

    def excuse(self) -> str:
        """The reason for a silence, as the end of a sentence; empty if this end knows of none."""
        return ""

    @abstractmethod
    def close(self, linger_s: float = 1.0) -> None:
        """Release everything. Frames that `send` took get `linger_s` seconds to leave."""


def excuse_of(links: Iterable[Link]) -> str:
    """The reason for a silence that one of the links knows, as the end of a sentence; empty if none does."""
    for link in links:
        excuse = link.excuse()
        if excuse:
            return excuse
    return ""


def is_silent(link: Link, take: Callable[[], int]) -> bool:
    """Wait briefly once more, then receive by `take`. True if no frame has come.

    Call it before giving a peer up: frames may have come while this process itself was stalled.
    """
    link.wait(time.monotonic_ns() + LAST_LOOK_NS)
    return not take()
