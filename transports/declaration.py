"""A transport's declaration: TRANSPORT in its file, and the broker between its links, if it has one."""

from __future__ import annotations

import contextlib
import importlib.util
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from transports.base import TWO_ENDS, Address, BadAddress, Link, NotInstalled, Pattern

if TYPE_CHECKING:
    import socket

BROKER = "broker"
"""The kind of place where a third process takes frames from one end and gives them to the other."""


def open_socket() -> socket.socket:
    """A new TCP socket of this process."""
    import socket  # commands that only declare options do not need it

    return socket.socket()


def later(name: str) -> Callable[..., Any]:
    """The function module:name. The module, which takes long to import, is imported at the first call."""

    def call(*arguments: Any) -> Any:
        return pkgutil.resolve_name(name)(*arguments)

    return call


@dataclass(frozen=True)
class Where:
    """The place where a broker is started: loopback of this host, or another network namespace of this host."""

    host: str = "127.0.0.1"
    """The address on which it listens."""
    prefix: tuple[str, ...] = ()
    """The words before its command that start it in its place."""
    open_socket: Callable[[], socket.socket] = open_socket
    """Makes a TCP socket in that place, while our process stays where it is."""
    keys: Path | None = None
    """The folder of keys by which it and its clients know each other, over TLS; None if it speaks without."""


class ServerUsage(Protocol):
    """Counters of a server's processes since they were started."""

    @property
    def cpu_ns(self) -> int: ...

    def since(self, start: Any, /) -> dict[str, Any]:
        """The differences to an earlier reading, by the names of exchange.results: cpu_s, rss_bytes, ..."""


class BrokerServer(Protocol):
    """A broker's processes on this host, so that a run can measure them. OSError from any call if they are gone."""

    def usage(self) -> ServerUsage: ...

    def cpu_ns(self) -> int:
        """CPU time since its start, cheaper than `usage`."""

    def facts(self) -> dict[str, Any]:
        """The `broker` of run.json: product, version, pid, port, ..."""

    def accepted(self) -> list[dict[str, Any]]:
        """Local, peer and tcp_nodelay of each connection that it has accepted. OSError if we may not look."""


@runtime_checkable
class BreakableServer(BrokerServer, Protocol):
    """A server into which `exchange faults` can inject faults; each call is an OSError if the server is gone."""

    def restart(self) -> None:
        """End it and start it again over its own files, at the same address."""

    def block_publishers(self) -> None:
        """Take nothing from publishers any more, as when memory runs out."""

    def unblock_publishers(self) -> None: ...

    def close_connections(self) -> None:
        """Close every client's connection, by the broker's own command."""


@dataclass(frozen=True)
class RunningBroker:
    url: str
    """Its address, without options."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that its clients need besides, for instance a password."""
    server: BrokerServer | None = None
    """Its processes; None if somebody else started it, perhaps on another host."""
    is_reachable: bool = True
    """False if only its clients, in their own network namespaces, can connect to it."""


class BrokerProbe(Protocol):
    """A connection beside those of a run, to what the run has at the broker."""

    @property
    def facts(self) -> dict[str, Any]:
        """The broker's own words about itself: product, version, platform."""

    def depth(self) -> dict[str, int]:
        """The number of messages that lie in each queue of the run, by the queue's name."""

    def take_down(self) -> None:
        """Delete what the run left there."""

    def close(self) -> None: ...


class Broker(ABC):
    """How a transport starts, finds and inspects the server between its links.

    A transport without this object takes the address of a broker from the user, and knows nothing else of it.
    """

    starts: frozenset[str] = frozenset()
    """The schemes for which one can be started here; the others need an address."""
    place: str = "host:port"
    """The form of its address, for the user."""

    def check(self, address: Address) -> None:  # noqa: B027
        """BadAddress if a broker's address, as the user gave it, has a mistake. Nothing has been started yet."""

    def installed(self) -> str:
        """The product and version that `start` would start, or where it is; NotInstalled if there is none."""
        raise NotInstalled("it is not started here: give an address")

    @abstractmethod
    def start(
        self, folder: Path, process_group: int | None, nodelay: bool, where: Where
    ) -> AbstractContextManager[RunningBroker]:
        """Start one that lives as long as the context, and leave nothing behind.

        folder         a path that does not exist yet, for its files
        process_group  the group to join, which ends with the run; None for a session of its own
        nodelay        TCP_NODELAY of the sockets that it accepts
        NotInstalled, or another TransportError, if it does not start.
        """

    def standing(self, nodelay: bool) -> RunningBroker | None:  # noqa: ARG002
        """One that the user has started for several runs, with these sockets; None if there is none."""
        return None

    def probe(self, url: str, meetings: Sequence[Address]) -> BrokerProbe | None:  # noqa: ARG002
        """Look into a broker. `meetings` are the addresses of all links of a run, whose token is the run's name."""
        return None


@dataclass(frozen=True)
class WholeNumberOption:
    """The whole numbers that an option of an address takes."""

    unit: str
    least: int
    most: int
    limit: Path | None = None
    """A file of the system, whose number is the most that it gives."""

    def wrong(self, value: str) -> str | None:
        """A sentence's end if the value is none of them; None if it is right."""
        most = self.most
        why = ""
        with contextlib.suppress(OSError, ValueError):
            if self.limit:
                allowed_by_system = int(self.limit.read_text())
                if allowed_by_system < most:
                    most = allowed_by_system
                    why = f", which is what {self.limit} allows"
        if value.isdecimal() and self.least <= int(value) <= most:
            return None
        return f"it takes a number of {self.unit}, {self.least:,} to {most:,}{why}"


KERNEL = Path("/proc/sys/net/core")
BUFFERS = {
    "sndbuf": WholeNumberOption("bytes", 4_096, 1 << 30, KERNEL / "wmem_max"),
    "rcvbuf": WholeNumberOption("bytes", 4_096, 1 << 30, KERNEL / "rmem_max"),
}
"""The kernel's buffers of a TCP socket: options of the transports that set them."""


@dataclass(frozen=True)
class Transport:
    """A transport's file holds one of these as TRANSPORT; see docs/transport-declaration.md."""

    places: Mapping[str, str]
    """The kind of place by scheme: "port" (host:port), "path" (a file), "name" (any word) or "broker"."""
    listen: Callable[[Address], Link]
    connect: Callable[[Address, int], Link]
    """Takes the time, monotonic ns, until which the listener may take to appear.

    It returns before the listener is served: both ends may belong to one thread, which opens one after the other.
    """
    title: str = ""
    """Its name in sentences, as `ZeroMQ`; a transport without one goes by its scheme."""
    about: Mapping[str, str] = field(default_factory=dict)
    """One line for users, by scheme. The table of docs/transports.md has those of this repository."""
    one_process: frozenset[str] = frozenset()
    """Schemes that join only threads of one process."""
    variants: tuple[str, ...] = ()
    """Options that deserve a contract test of their own, as the query of a URL."""
    options: Mapping[str, tuple[str, ...] | WholeNumberOption] = field(default_factory=dict)
    """The options of an address: the words that it takes, its default first; no words: any value; or its numbers."""
    run_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of a run that this transport knows, each with the option that carries it: {"delivery": "delivery"}."""
    over_tcp: frozenset[str] = frozenset()
    """Schemes that have TCP sockets: their addresses take `nodelay` as well."""
    simplex: frozenset[str] = frozenset()
    """Schemes that can have a connection for each direction: their addresses take `topology` as well."""
    patterns: frozenset[Pattern] = TWO_ENDS
    needs: Mapping[str, str] = field(default_factory=dict)
    """The modules of client libraries, each with how to get it: {"pika": "`pip install pika`"}."""
    broker: Callable[[], Broker] | None = None
    """Makes the object that starts and inspects its broker; it imports what that needs only when called."""

    def has_broker(self, scheme: str) -> bool:
        """True if a third process stands between the two ends.

        Such a link takes whatever comes until the broker is full, does not notice when a peer leaves, and
        refuses nobody: a peer without the token never meets it.
        """
        return self.places[scheme] == BROKER

    def takes(self, scheme: str) -> list[str]:
        """The names of the options that an address of the scheme may have."""
        switches = {"nodelay": self.over_tcp, "topology": self.simplex}
        return sorted({*self.options, *(name for name, schemes in switches.items() if scheme in schemes)})

    def words(self, option: str | None) -> tuple[str, ...]:
        """The words that an option takes; empty if it takes numbers, or any value."""
        allowed = self.options.get(option or "", ())
        return allowed if isinstance(allowed, tuple) else ()

    def check(self, address: Address) -> None:
        """BadAddress for an option, its word, or a pattern that this transport lacks; NotInstalled."""
        if address.pattern not in self.patterns:
            has = ", ".join(pattern.value for pattern in Pattern if pattern in self.patterns)
            raise BadAddress(f"{address.scheme} has no pattern {address.pattern.value!r}; it has {has}")
        known = self.takes(address.scheme)
        for name in sorted(address.options.keys() - set(known)):
            known_words = ", ".join(known) or "none"
            raise BadAddress(f"{address.shown}: {name!r} is no option of {address.scheme}, which takes {known_words}")
        for name, value in address.options.items():
            takes = self.options.get(name)
            wrong = takes.wrong(value) if isinstance(takes, WholeNumberOption) else None
            if isinstance(takes, tuple) and takes and value not in takes:
                wrong = f"it takes {', '.join(takes)}"
            if wrong:
                raise BadAddress(f"{address.shown}: {name} is {value!r}; {wrong}")
        self.check_installed(address.scheme)

    def check_installed(self, scheme: str) -> None:
        """NotInstalled if a client library is missing. Nothing is imported."""
        for module, how in self.needs.items():
            if importlib.util.find_spec(module) is None:
                raise NotInstalled(f"{scheme} needs the Python module {module!r}, which is not installed: {how}")
