"""Finds the places where a run's components meet: free ports, scratch paths, names, or a broker."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.instances import named
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.transport_settings import url_options_of, with_option
from transports.base import Address, BadAddress, Pattern
from transports.declaration import RunningBroker
from transports.registry import scheme_of, transport_of
from transports.sockets import reserved_port

if TYPE_CHECKING:
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.launching.network.network import Network


@dataclass(frozen=True)
class Places:
    """The places where a run's components meet."""

    engines: Mapping[int, str]
    """By pair, the URL on which its engine listens, or the broker's URL."""
    reporters: Mapping[int, str]
    broker: RunningBroker | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the components need besides."""

    def meetings(self, run: str) -> list[Address]:
        """The addresses of all links of the run."""
        of_engines = [Address.parse(url, run, Pattern.PAIR) for url in self.engines.values()]
        of_reporters = [Address.parse(url, run, Pattern.FAN_IN) for url in self.reporters.values()]
        return [*of_engines, *of_reporters]


@contextlib.contextmanager
def meeting_places(
    settings: RunSettings, scratch: Path, brokers: Brokers | None = None, network: Network | None = None
) -> Iterator[Places]:
    """Find places. If the transport setting names a place, it is the engine's, and the run has no second pair.

    `brokers` is None for a transport that has no broker.

    A free port stays reserved while the context is open: a socket of ours is bound to it and does not listen. So nobody
    else gets the port, while the component, which also sets SO_REUSEADDR, may listen on it.
    """
    scheme = scheme_of(settings.transport)
    transport = transport_of(scheme)
    kind = transport.places[scheme]
    place, question_mark, options = settings.transport.partition("?")
    if place.endswith("://"):
        raise BadAddress(f"{settings.transport} lacks a place: say where, or {scheme} alone to have one found")
    if kind == "port" and place.endswith(":0"):
        raise BadAddress(f"{settings.transport} is no port that peers can find: say {scheme} alone to have one found")
    lineup = Lineup.of(settings)
    if len(lineup.pairs) > 1 and "://" in place and not transport.has_broker(scheme):
        raise BadAddress(f"{settings.transport} is one place, for one pair: say {scheme} alone, or leave out --pairs")
    with contextlib.ExitStack() as reserved:
        if brokers is not None:
            yield _at_broker(settings, brokers, network, reserved)
            return

        def free(role: str, instance: int) -> str:
            return free_place(kind, scratch / named(role, instance), reserved, network, role)

        options_of_settings = url_options_of(settings)
        reporters = {}
        for instance in lineup.reporters:
            url = f"{scheme}://{free('reporter', instance)}"
            reporters[instance] = with_option(url, options_of_settings)
        given_place = place.partition("://")[2]
        engines = {}
        for pair in lineup.pairs:
            url = f"{scheme}://{given_place or free('engine', pair)}{question_mark}{options}"
            engines[pair] = _with_topology(with_option(url, options_of_settings), settings, reserved, network)
        yield Places(engines, reporters)


def _at_broker(
    settings: RunSettings, brokers: Brokers, network: Network | None, reserved: contextlib.ExitStack
) -> Places:
    """All components meet at one broker; those of further pairs and reporters have queues of their own."""
    from exchange_simulation.launching.launch.brokers import broker_of_run

    broker = broker_of_run(settings, brokers)
    lineup = Lineup.of(settings)
    engines = {}
    for pair in lineup.pairs:
        engines[pair] = _with_topology(_of_instance(broker.url, pair), settings, reserved, network)
    reporters = {instance: _of_instance(broker.url, instance) for instance in lineup.reporters}
    return Places(engines, reporters, broker, broker.environment)


def _of_instance(url: str, instance: int) -> str:
    """The broker's URL for the queues of one pair, or one reporter."""
    return url if instance == 1 else with_option(url, f"pair={instance}")


def _with_topology(url: str, settings: RunSettings, reserved: contextlib.ExitStack, network: Network | None) -> str:
    """Add the options that make it two connections if the settings ask for them; some transports need a second port."""
    if settings.topology != "simplex":
        return url
    url = with_option(url, "topology=simplex")
    if "back" not in transport_of(scheme_of(url)).options or "back=" in url:
        return url
    port = free_place("port", Path(), reserved, network, "engine").rpartition(":")[2]
    return with_option(url, f"back={port}")


def free_place(kind: str, path: Path, reserved: contextlib.ExitStack, network: Network | None, role: str) -> str:
    """A free port, which stays reserved while `reserved` is open, a path, or a name."""
    if kind == "path":
        return str(path)
    if kind == "name":
        return secrets.token_hex(8)
    host = network.address[role] if network else "127.0.0.1"
    open_socket = partial(network.socket, role) if network else socket.socket
    port = reserved.enter_context(reserved_port(host, 0, open_socket))
    return f"{host}:{port}"


def of_role(url: str, role: str, settings: RunSettings) -> str:
    """The address for a component of that role: with TCP_NODELAY off if the settings ask for Nagle there."""
    return with_option(url, "nodelay=off") if role in settings.nagle else url


def as_seen_by_peers(url: str) -> str:
    """The address to connect to; a listener on every interface is reached on loopback."""
    return (
        url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:").replace("://*:", "://127.0.0.1:")
    )
