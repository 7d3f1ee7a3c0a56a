"""A transport's declaration: TRANSPORT in its file, and the broker between its links, if it has one."""

from __future__ import annotations

import copy
import importlib.util
import os
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from transports.base import BASIC_PATTERNS, Address, BadAddress, Link, NotInstalled, Pattern
from transports.guarantees import Guarantee, are_given, chosen_by_options

if TYPE_CHECKING:
    import socket

BROKER = "broker"
"""The kind of place where a third process takes frames from one end and gives them to the other."""


def open_socket() -> socket.socket:
    """A new TCP socket of this process."""
    import socket  # commands that only declare options do not need it

    return socket.socket()


def later(name: str) -> Callable[..., Any]:
    """Return a function that calls the function of this name, as module:name, and imports its module only then.

    It is for modules whose import takes long.
    """

    def call(*arguments: Any) -> Any:
        return pkgutil.resolve_name(name)(*arguments)

    return call


@dataclass(frozen=True)
class ServerPlace:
    """The place where a broker is started: loopback of this host, or another network namespace of this host."""

    host: str = "127.0.0.1"
    """The address on which the broker listens."""
    prefix: tuple[str, ...] = ()
    """Words to put before the broker's command, so that it starts in that place."""
    open_socket: Callable[[], socket.socket] = open_socket
    """Makes a TCP socket in that place; our process stays where it is."""
    keys: Path | None = None
    """The folder of the TLS keys by which the broker and its clients know each other; None for a broker without TLS."""


class ServerUsage(Protocol):
    """Counters of a server's processes since they were started."""

    @property
    def cpu_ns(self) -> int: ...

    def since(self, start: Any, /) -> dict[str, Any]:
        """The differences to an earlier reading, by the names of exchange.results: cpu_s, rss_bytes, ..."""


class BrokerServer(Protocol):
    """A broker's processes on this host, so that a run can measure them. OSError from any call if they are gone."""

    def usage(self) -> ServerUsage:
        """The counters of the processes now."""

    def cpu_ns(self) -> int:
        """CPU time since the broker's start; cheaper to read than `usage`."""

    def facts(self) -> dict[str, Any]:
        """The `broker` of run.json: product, version, pid, port, ..."""

    def accepted(self) -> list[dict[str, Any]]:
        """Local, peer and tcp_nodelay of each connection that the broker has accepted. OSError if we may not look."""


@runtime_checkable
class BreakableServer(BrokerServer, Protocol):
    """A server into which `exchange faults` can inject faults; each call is an OSError if the server is gone."""

    def restart(self) -> None:
        """End the server and start it again over its own files, at the same address."""

    def block_publishers(self) -> None:
        """Make the server take nothing from publishers, as when memory runs out."""

    def unblock_publishers(self) -> None:
        """End what `block_publishers` began."""

    def close_connections(self) -> None:
        """Close every client's connection, by the broker's own command."""


@dataclass(frozen=True)
class RunningBroker:
    """A broker to which links can connect."""

    url: str
    """The broker's address, without options."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables that clients need in addition to the address, for instance a password."""
    server: BrokerServer | None = None
    """The broker's processes; None if another user or host started them."""
    is_reachable: bool = True
    """False if only clients in their own network namespaces can connect, and this process cannot."""
    folder: Path | None = None
    """The folder with the broker's files; None if it was started by others."""
    client_files: Mapping[str, Path] = field(default_factory=dict)
    """Files of this host that clients read, by the environment variable that names each."""


class BrokerProbe(Protocol):
    """A connection of our own to a broker, beside those of a run's links; it counts and deletes the run's queues."""

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that the broker reports about itself: product, version, platform."""

    def depth(self) -> dict[str, int]:
        """The number of messages in each queue of the run, by the queue's name."""

    def take_down(self) -> None:
        """Delete the queues and exchanges that the run left at the broker."""

    def close(self) -> None:
        """Close the connection."""


class Broker(ABC):
    """Starts, finds and inspects the server between a transport's links.

    A transport without a Broker takes the address of its broker from the user, and can neither start nor inspect one.
    """

    options: Mapping[str, str] = MappingProxyType({})
    """The options of the server to start: the options of a URL whose names are in the transport's `server_options`."""
    starts: frozenset[str] = frozenset()
    """The schemes for which this host can start a broker; the others need an address."""
    place: str = "host:port"
    """The form of a broker's address, for the user."""
    start_s: float = 0.5
    """About how many seconds a broker takes to start and to end, for the plan of a measurement."""
    client_variables: tuple[str, ...] = ()
    """Environment variables with what a broker asks of its clients, for example a password. The user sets them."""
    client_file_variables: tuple[str, ...] = ()
    """Environment variables with the paths of files for clients, for example of a certificate. The user sets them."""

    def with_options(self, options: Mapping[str, str]) -> Self:
        """The same broker, which starts servers with these options."""
        other = copy.copy(self)
        other.options = MappingProxyType(dict(options))
        return other

    def check(self, address: Address) -> None:  # noqa: B027
        """BadAddress if a broker's address, as the user gave it, has a mistake; called before anything is started."""

    def of_user(self, url: str) -> RunningBroker:
        """The user's broker at this address, with what its clients need of our environment."""
        environment = {name: os.environ[name] for name in self.client_variables if name in os.environ}
        files = {name: Path(os.environ[name]) for name in self.client_file_variables if os.environ.get(name)}
        return RunningBroker(url, environment, client_files=files)

    def installed(self) -> str:
        """The product, with version or path, that `start` would start. NotInstalled if there is none."""
        if not self.starts:
            raise NotInstalled("it is not started here: give an address")
        return "a server that the transport brings along"

    @abstractmethod
    def start(
        self, folder: Path, process_group: int | None, nodelay: bool, where: ServerPlace
    ) -> AbstractContextManager[RunningBroker]:
        """Start a broker for the time of the context; it leaves no process and no file.

        folder         a path that does not exist yet, for the broker's files
        process_group  the group to join, which ends with the run; None for a new session
        nodelay        TCP_NODELAY of the sockets that the broker accepts
        where          loopback, or another network namespace
        NotInstalled, or another TransportError, if the broker does not start.
        """

    def standing(self, nodelay: bool) -> RunningBroker | None:  # noqa: ARG002
        """The broker that the user has started for several runs; None if none runs with this TCP_NODELAY."""
        return None

    def probe(self, url: str, link_addresses: Sequence[Address]) -> BrokerProbe | None:  # noqa: ARG002
        """Connect a probe to a broker; None if this transport has no probe.

        `link_addresses` are those of all links of a run; their token is the run's name.
        """
        return None


@dataclass(frozen=True)
class WholeNumberOption:
    """The whole numbers that an option of an address takes."""

    unit: str
    least: int
    most: int
    limit: Path | None = None
    """A file of the system that holds a number: the most that the system allows."""

    def problem_of(self, value: str) -> str | None:
        """The end of a sentence about a value that is none of these numbers; None if the value is right."""
        most = self.most
        why = ""
        allowed_by_system = self._allowed_by_system()
        if allowed_by_system is not None and allowed_by_system < most:
            most = allowed_by_system
            why = f", which is what {self.limit} allows"
        is_short = value.isdecimal() and len(value) <= len(str(self.most))  # Python reads no thousands of digits
        if is_short and self.least <= int(value) <= most:
            return None
        return f"it takes a number of {self.unit}, {self.least:,} to {most:,}{why}"

    def _allowed_by_system(self) -> int | None:
        """The number in the file `limit`; None if there is no such file, or no number in it."""
        if self.limit is None:
            return None
        try:
            return int(self.limit.read_text())
        except (OSError, ValueError):
            return None


KERNEL = Path("/proc/sys/net/core")
BUFFERS = {
    "sndbuf": WholeNumberOption("bytes", 4_096, 1 << 30, KERNEL / "wmem_max"),
    "rcvbuf": WholeNumberOption("bytes", 4_096, 1 << 30, KERNEL / "rmem_max"),
}
"""The kernel's buffers of a TCP socket: options of the transports that set them."""


@dataclass(frozen=True)
class Transport:
    """A transport's file holds one of these as TRANSPORT; see docs/transport-declaration.md.

    Some fields are declared by options: a key is the query of a URL, and its entry fits the addresses that have all
    options of that query. The entry of "" fits every address.
    """

    places: Mapping[str, str]
    """The kind of place by scheme: "port" (host:port), "path" (a file), "name" (any word) or "broker"."""
    listen: Callable[[Address], Link]
    connect: Callable[[Address, int], Link]
    """Its second argument is a monotonic time in ns, at which the listener must have appeared.

    It returns before the listener is served: both ends may belong to one thread, which opens one after the other.
    """
    title: str = ""
    """The transport's name in sentences, as `ZeroMQ`; sentences use the scheme if the title is empty."""
    colour: str = ""
    """The name of its colour on every page and picture, of exchange_simulation/reports/drawing/colours.py.

    If the name is empty, its lines get spare colours.
    """
    about: Mapping[str, str] = field(default_factory=dict)
    """One line for users, by scheme. The table of docs/transports.md has those of this repository."""
    one_process: frozenset[str] = frozenset()
    """Schemes that join only threads of one process."""
    cautions: Mapping[str, str] = field(default_factory=dict)
    """By scheme, the sentence that every page with its figures shows, for instance that there is no network."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """By scheme, two or three words beside its name in pictures and tables, as `no network`."""
    guarantees: Mapping[str, Guarantee] = field(default_factory=dict)
    """By options, the guarantee. The last entry that fits an address holds. Comparisons say where guarantees differ."""
    variants: tuple[str, ...] = ()
    """Options that deserve a contract test of their own, as the query of a URL."""
    options: Mapping[str, tuple[str, ...] | WholeNumberOption] = field(default_factory=dict)
    """The values that each option of an address takes: numbers, words (the default first), or any value: ()."""
    server_options: frozenset[str] = frozenset()
    """The options that are switches of a server: only a server that is started here takes them."""
    run_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of a run that this transport knows, each with the option that carries it: {"delivery": "delivery"}.

    Such an option takes words, and its first word is the default.
    """
    over_tcp: frozenset[str] = frozenset()
    """Schemes that have TCP sockets: their addresses take `nodelay` as well."""
    simplex: frozenset[str] = frozenset()
    """Schemes that can have a connection for each direction: their addresses take `topology` as well."""
    patterns: frozenset[Pattern] = BASIC_PATTERNS
    lacks: Mapping[str, Mapping[Pattern, str]] = field(default_factory=dict)
    """By options, the patterns that addresses lack, each with the reason. The last entry that fits an address holds.

    A reason is the end of a sentence: "a channel gives each message to every subscriber".
    """
    excludes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By options, the further options that addresses refuse, each with the reason. Every entry that fits holds.

    An excluded option is a name, or a name with one of its words: {"client=pika": {"sndbuf": "pika opens its sockets
    itself"}}.
    """
    slow_subscriber: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By options, what a publisher of market data can do if a subscriber has no room; empty without market data.

    Each rule has the options that its URL needs: {"": {"drop": "full=drop", "wait": ""}}. The last entry that fits an
    address holds; its first rule is the default. To conflate is to drop, and to send a snapshot then.
    """
    needs: Mapping[str, str] = field(default_factory=dict)
    """The modules of client libraries, each with how to get it: {"pika": "`pip install pika`"}."""
    needs_by_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By options, further modules that addresses need, as in `needs`. Every entry that fits holds."""
    broker: Callable[[], Broker] | None = None
    """Makes the object that starts and inspects the transport's broker; its modules are imported at the call only."""

    @property
    def schemes(self) -> list[str]:
        """The schemes that the transport serves."""
        return list(self.places)

    def has_broker(self, scheme: str) -> bool:
        """True if a third process is between the two ends.

        A link through a broker takes frames until the broker is full, does not notice when a peer leaves, and refuses
        nobody: a peer without the token uses other queues.
        """
        return self.places[scheme] == BROKER

    def caution(self, scheme: str) -> str:
        """The sentence that belongs beside figures over this scheme; empty if there is none."""
        if scheme in self.one_process:
            return "All components ran as threads of one process: not comparable with runs over a network."
        return self.cautions.get(scheme, "")

    def guarantee(self, options: Mapping[str, str]) -> Guarantee | None:
        """The guarantee of an address with these options; None if the transport declares none."""
        return chosen_by_options(self.guarantees, options)

    def slow_subscriber_rules(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The rules for slow subscribers of an address with these options, each with the options of its URL."""
        return chosen_by_options(self.slow_subscriber, options) or {}

    @property
    def market_data_pattern(self) -> Pattern:
        """The pattern of links with market data: a fan-in, whose listener sends to all, if there is no fanout."""
        if self.slow_subscriber and Pattern.FANOUT not in self.patterns:
            return Pattern.FAN_IN
        return Pattern.FANOUT

    def why_lacks(self, pattern: Pattern, options: Mapping[str, str]) -> str:
        """The reason why an address with these options lacks a pattern; empty if the address has it.

        For example: it has pair, fan-in
        """
        reasons = chosen_by_options(self.lacks, options) or {}
        if pattern in reasons:
            return reasons[pattern]
        if pattern in self.patterns:
            return ""
        has = ", ".join(known.value for known in Pattern if known in self.patterns)
        return f"it has {has}"

    def option_names(self, scheme: str) -> list[str]:
        """The names of the options that an address of the scheme may have."""
        names = set(self.options)
        if scheme in self.over_tcp:
            names.add("nodelay")
        if scheme in self.simplex:
            names.add("topology")
        return sorted(names)

    def words(self, option: str | None) -> tuple[str, ...]:
        """The words that an option takes; empty if it takes numbers, or any value."""
        allowed = self.options.get(option or "", ())
        return allowed if isinstance(allowed, tuple) else ()

    def check(self, address: Address) -> None:
        """BadAddress if this transport lacks the address's pattern, an option, or the option's value.

        NotInstalled if a client library is missing.
        """
        reason = self.why_lacks(address.pattern, address.options)
        if reason:
            raise BadAddress(f"{address.scheme} has no pattern {address.pattern.value!r}; {reason}")
        known = self.option_names(address.scheme)
        unknown = sorted(address.options.keys() - set(known))
        if unknown:
            names = ", ".join(known) or "none"
            raise BadAddress(
                f"{address.masked_url}: {unknown[0]!r} is no option of {address.scheme}, which takes {names}"
            )
        for name, value in address.options.items():
            allowed = self.options.get(name)
            problem = None
            if isinstance(allowed, WholeNumberOption):
                problem = allowed.problem_of(value)
            elif allowed and value not in allowed:
                problem = f"it takes {', '.join(allowed)}"
            if problem is not None:
                raise BadAddress(f"{address.masked_url}: {name} is {value!r}; {problem}")
        self._check_excluded(address)
        self.check_installed(address.scheme)
        for query, modules in self.needs_by_options.items():
            if are_given(query, address.options):
                _check_modules(f"{address.scheme}?{query}", modules)

    def _check_excluded(self, address: Address) -> None:
        """BadAddress if an option of the address excludes another one."""
        for query, reasons in self.excludes.items():
            if not are_given(query, address.options):
                continue
            for excluded, reason in reasons.items():
                name, _, word = excluded.partition("=")
                if name in address.options and word in ("", address.options[name]):
                    raise BadAddress(f"{address.masked_url}: {reason}")

    def check_installed(self, scheme: str) -> None:
        """NotInstalled if a client library is missing. Nothing is imported."""
        _check_modules(scheme, self.needs)


def _check_modules(address: str, modules: Mapping[str, str]) -> None:
    """NotInstalled if one of the modules that an address needs is missing. Nothing is imported."""
    for module, how_to_get_it in modules.items():
        if importlib.util.find_spec(module) is None:
            raise NotInstalled(f"{address} needs the Python module {module!r}, which is not installed: {how_to_get_it}")
