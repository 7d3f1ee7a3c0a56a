"""Watches the broker of a run: its CPU time, its memory, and the depth of its queues."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, ip_address
from typing import Any
from urllib.parse import urlsplit

import psutil

from exchange_simulation.launching.notices import say
from exchange_simulation.launching.record import machine
from exchange_simulation.launching.record.disk import disk_facts
from exchange_simulation.launching.record.noise import sees_every_process
from transports.base import Address
from transports.declaration import BrokerProbe, BrokerServer, RunningBroker, ServerUsage
from transports.registry import scheme_of, transport_of

SAMPLING_S = 1.0
FORWARDERS = {"docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "pasta.avx2"}
"""Processes that listen on this host in place of a broker in a container. Their CPU time is not the broker's."""


class BrokerWatch:
    """Samples the broker once a second over its own connection. `close` deletes the run's queues.

    A broker in another network namespace gets no such connection. It belongs to the run, and its queues end with it.
    """

    def __init__(
        self, broker: RunningBroker, link_addresses: Sequence[Address], nodelay: bool, *, keeps_messages: bool = False
    ) -> None:
        """`link_addresses` are those of the run's links. `nodelay`: whether the broker was asked for TCP_NODELAY.

        `keeps_messages`: messages survive the broker's end, so the facts say what its disk is.
        """
        self._server = broker.server
        self._disk = disk_facts(broker.folder) if keeps_messages and broker.folder else None
        self._nodelay = nodelay
        self._url = broker.url
        self._probe: BrokerProbe | None = None
        transport = transport_of(scheme_of(broker.url))
        if broker.is_reachable and transport.broker:
            with _environment(broker.environment):
                self._probe = transport.broker().probe(broker.url, link_addresses)
        self._has_begun = False
        self._at_start: ServerUsage | None = None
        self._next_look_s = float("inf")
        self.sockets: list[dict[str, Any]] = []
        """The broker's ends of all connections that it has accepted."""
        self.usage: dict[str, Any] | None = None
        self.last_look: str | None = None
        """The error that ended the sampling before the run's end; None without an error."""
        self.slowest_look_s = 0.0
        """The longest time in which the broker answered a look."""
        self.deepest: dict[str, int] = {}
        """The greatest number of messages seen in each queue."""

    @property
    def pids(self) -> list[int]:
        """The broker's process; empty if the broker is on another host, or the system does not let us find it."""
        if self._server is not None:
            return [self._server.facts()["pid"]]
        place = urlsplit(self._url)
        return list(_listening_on(place.port)) if self._is_here and place.port else []

    @property
    def is_hidden(self) -> bool:
        """True if the broker is or may be on this host, and the system does not let us find its process."""
        return self._is_here and not self.pids

    @property
    def _is_here(self) -> bool:
        return self._server is not None or is_of_this_host(urlsplit(self._url).hostname or "")

    def clock_starts(self) -> None:
        """Note the broker's usage and sockets, and begin to sample its queues."""
        self._has_begun = True
        if self._server is not None:
            self.sockets = accepted_by(self._server, self._nodelay)
            self._at_start = self._server.usage()
        self._next_look_s = time.monotonic()

    def clock_stops(self) -> None:
        """End the sampling, and note the broker's usage since the clock started."""
        self._next_look_s = float("inf")
        if self._server is not None and self._at_start is not None and self.usage is None:
            with contextlib.suppress(OSError):
                self.usage = self._server.usage().since(self._at_start)

    @property
    def cpu_s(self) -> float | None:
        """CPU time since the clock started; None if the broker is not the run's own, or has ended."""
        if self._server is not None and self._at_start is not None:
            with contextlib.suppress(OSError):
                return float(self._server.cpu_ns() - self._at_start.cpu_ns) / 1e9
        return None

    def look(self) -> None:
        """Note the depths of the queues if a second has passed since the last look.

        Any error ends the sampling, but not the run, and is noted in `last_look`. If the broker is gone, the components
        report that.
        """
        if self._probe is None or time.monotonic() < self._next_look_s:
            return
        began_s = time.monotonic()
        self._next_look_s = began_s + SAMPLING_S
        try:
            depths = self._probe.depth()
        except Exception as error:  # noqa: BLE001
            self._next_look_s = float("inf")
            self.last_look = f"{type(error).__name__}: {error}"
            return
        self.slowest_look_s = max(self.slowest_look_s, time.monotonic() - began_s)
        for name, messages in depths.items():
            self.deepest[name] = max(messages, self.deepest.get(name, 0))

    @property
    def facts(self) -> dict[str, Any]:
        """The `broker` of run.json."""
        facts: dict[str, Any] = {}
        if self._probe:
            facts |= self._probe.facts
        if self._server is not None:
            facts |= self._server.facts()
        facts["is_private"] = self._server is not None
        if self._disk:
            facts["disk"] = self._disk
        facts["deepest_queue"] = self.deepest
        if self._probe:
            facts["slowest_look_s"] = round(self.slowest_look_s, 3)
        if self.last_look:
            facts["last_look"] = self.last_look
        return facts

    def close(self) -> None:
        """Delete the run's queues, and close the connection.

        An error is only said, since no record depends on the queues. Those of a private server go with the server.
        """
        if self._probe:
            try:
                # Before the clock starts, the queues may belong to a run under way with the same name: leave them.
                if self._has_begun:
                    self._probe.take_down()
                self._probe.close()
            except Exception as error:  # noqa: BLE001
                if self._server is None:
                    say(f"the run's queues may be left at the broker: {type(error).__name__}: {error}")


def accepted_by(server: BrokerServer, nodelay: bool) -> list[dict[str, Any]]:
    """Return a server's ends of its connections, each with `nodelay`; empty if the system does not show them."""
    with contextlib.suppress(OSError):
        return [{**end, "tcp_nodelay_asked": nodelay} for end in server.accepted()]
    return []


def _listening_on(port: int) -> Iterator[int]:
    """Yield the processes that listen on a TCP port of this host, as far as the system shows them; no FORWARDERS."""
    with contextlib.suppress(psutil.Error):
        for end in psutil.net_connections("tcp"):
            if end.status != psutil.CONN_LISTEN or end.laddr.port != port or end.pid is None:
                continue
            if psutil.Process(end.pid).name() not in FORWARDERS:
                yield end.pid


def is_of_this_host(name: str) -> bool:
    """Return True for an address of this host, or of a container on this host.

    Inside a container every address of the same subnet counts, since host and neighbours cannot be told apart.
    """
    try:
        address = ip_address(socket.gethostbyname(name))
    except OSError:
        return name == "::1"
    if address.is_loopback:
        return True
    is_in_container = not sees_every_process()
    for nic, nic_addresses in psutil.net_if_addrs().items():
        for nic_address in nic_addresses:
            if nic_address.family != socket.AF_INET:
                continue
            interface = IPv4Interface(f"{nic_address.address}/{nic_address.netmask or 32}")
            has_neighbours_here = is_in_container or _is_bridge(nic)
            if address == interface.ip or (has_neighbours_here and address in interface.network):
                return True
    return False


def _is_bridge(nic: str) -> bool:
    """Return True for a bridge, the interface that joins containers of this host."""
    return (machine.ROOT / "sys/class/net" / nic / "bridge").exists()


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in the context, and restore the previous ones at the end."""
    previous = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
