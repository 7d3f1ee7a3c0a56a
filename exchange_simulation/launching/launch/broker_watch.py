"""Watches the broker while a run's clock runs: CPU time, memory, the depth of the queues."""

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
from exchange_simulation.launching.record.noise import sees_every_process
from transports.base import Address
from transports.declaration import BrokerProbe, BrokerServer, RunningBroker, ServerUsage
from transports.registry import scheme_of, transport_of

EVERY_S = 1.0
FORWARDERS = {"docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "pasta.avx2"}
"""Processes that listen in place of a broker in a container, whose own processes cannot be told from others."""


class BrokerWatch:
    """Looks once a second, over a connection of its own, which at the end deletes what the run left at the broker.

    A broker in another network namespace is not looked into: it is the run's own, and ends as a whole.
    """

    def __init__(self, broker: RunningBroker, meetings: Sequence[Address], nodelay: bool) -> None:
        """`meetings` are the addresses of the run's links; `nodelay` is what the broker's sockets were asked for."""
        self._server = broker.server
        self._nodelay = nodelay
        self._url = broker.url
        self._probe: BrokerProbe | None = None
        transport = transport_of(scheme_of(broker.url))
        if broker.is_reachable and transport.broker:
            with _environment(broker.environment):
                self._probe = transport.broker().probe(broker.url, meetings)
        self._has_begun = False
        self._at_start: ServerUsage | None = None
        self._next_look_s = float("inf")
        self.sockets: list[dict[str, Any]] = []
        """The broker's ends of all connections that it has accepted."""
        self.usage: dict[str, Any] | None = None
        self.last_look: str | None = None
        """Why the looks ended before the run; None if they did not."""
        self.deepest: dict[str, int] = {}
        """The greatest number of messages seen in each queue."""

    @property
    def pids(self) -> list[int]:
        """The broker's process, if it is on this host and this system lets us find it."""
        if self._server is not None:
            return [self._server.facts()["pid"]]
        place = urlsplit(self._url)
        return list(_listening_on(place.port)) if self._is_here and place.port else []

    @property
    def is_hidden(self) -> bool:
        """True if the broker is on this host, or may be, and this system does not let us find its process."""
        return self._is_here and not self.pids

    @property
    def _is_here(self) -> bool:
        return self._server is not None or is_of_this_host(urlsplit(self._url).hostname or "")

    def clock_starts(self) -> None:
        self._has_begun = True
        if self._server is not None:
            self.sockets = accepted_by(self._server, self._nodelay)
            self._at_start = self._server.usage()
        self._next_look_s = time.monotonic()

    def clock_stops(self) -> None:
        self._next_look_s = float("inf")
        if self._server is not None and self._at_start is not None and self.usage is None:
            with contextlib.suppress(OSError):
                self.usage = self._server.usage().since(self._at_start)

    @property
    def cpu_s(self) -> float | None:
        """CPU time since the clock started; None if the broker is not ours, or is gone."""
        if self._server is not None and self._at_start is not None:
            with contextlib.suppress(OSError):
                return float(self._server.cpu_ns() - self._at_start.cpu_ns) / 1e9
        return None

    def look(self) -> None:
        """Note the queues' depths once a second, until a look fails, for whatever reason.

        The components report a broker that is gone; the watch does not end a run. `last_look` says why the looks ended.
        """
        if self._probe is None or time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + EVERY_S
        try:
            depths = self._probe.depth()
        except Exception as error:  # noqa: BLE001
            self._next_look_s = float("inf")
            self.last_look = f"{type(error).__name__}: {error}"
            return
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
        facts["deepest_queue"] = self.deepest
        if self.last_look:
            facts["last_look"] = self.last_look
        return facts

    def close(self) -> None:
        if self._probe:
            try:
                if self._has_begun:  # else the queues may be those of a run that goes on under the same name
                    self._probe.take_down()
                self._probe.close()
            except Exception as error:  # noqa: BLE001  # a run's record does not depend on it
                say(f"the run's queues may be left at the broker: {type(error).__name__}: {error}")


def accepted_by(server: BrokerServer, nodelay: bool) -> list[dict[str, Any]]:
    """A server's own ends of connections, with what was asked of them; empty if this system does not let us look."""
    with contextlib.suppress(OSError):
        return [{**end, "tcp_nodelay_asked": nodelay} for end in server.accepted()]
    return []


def _listening_on(port: int) -> Iterator[int]:
    """The processes that listen on a TCP port of this host, as far as we may know."""
    with contextlib.suppress(psutil.Error):
        for end in psutil.net_connections("tcp"):
            listens = end.status == psutil.CONN_LISTEN and end.laddr.port == port and end.pid
            if listens and psutil.Process(end.pid).name() not in FORWARDERS:
                yield end.pid


def is_of_this_host(name: str) -> bool:
    """True for an address of this host, or of a container on it. In a container that is every neighbour, to be sure."""
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
    """True for the interface behind which the containers of this host are."""
    return (machine.ROOT / "sys/class/net" / nic / "bridge").exists()


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """Give our own connection the variables that the components get."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
