"""Finds the addresses of a run's links: free ports, scratch paths, names, or a broker."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.instances import named, role_of
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import SUBSCRIBER, Lineup
from exchange_simulation.launching.transport_urls import options_in, url_options_of, with_option
from transports.base import Address, BadAddress, Pattern
from transports.declaration import RunningBroker
from transports.registry import scheme_of, transport_of
from transports.sockets import reserved_port

if TYPE_CHECKING:
    from exchange_simulation.launching.hosts.run_hosts import RunHosts
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.launching.network.network import Network


@dataclass(frozen=True)
class Places:
    """The URLs of a run's links."""

    engines: Mapping[int, Mapping[int, str]]
    """By engine and gateway, the URL on which the engine listens for the gateway, or the broker's URL."""
    reporters: Mapping[int, str]
    """By reporter, the URL on which it listens, or the broker's URL."""
    broker: RunningBroker | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the components need."""
    market_data: Mapping[int, str] = field(default_factory=dict)
    """By engine, the URL at which it publishes market data; empty without subscribers."""

    @property
    def first(self) -> str:
        """The URL on which the first engine listens for its first gateway."""
        return next(iter(self.engines[1].values()))

    @property
    def of_engines(self) -> list[str]:
        """The URLs of all engines, for all gateways."""
        urls: list[str] = []
        for by_gateway in self.engines.values():
            urls += by_gateway.values()
        return urls

    def of_gateway(self, gateway: int) -> list[str]:
        """Return the URLs on which engines listen for a gateway, in the order of the engines."""
        return [by_gateway[gateway] for by_gateway in self.engines.values() if gateway in by_gateway]

    def link_addresses(self, run: str) -> list[Address]:
        """Return the addresses of all links of the run."""
        addresses = [Address.parse(url, run, Pattern.PAIR) for url in self.of_engines]
        addresses += [Address.parse(url, run, Pattern.FAN_IN) for url in self.reporters.values()]
        for url in self.market_data.values():
            pattern = transport_of(scheme_of(url)).market_data_pattern
            addresses.append(Address.parse(url, run, pattern))
        return addresses


@contextlib.contextmanager
def meeting_places(
    settings: RunSettings,
    scratch: Path,
    brokers: Brokers | None = None,
    network: Network | None = None,
    hosts: RunHosts | None = None,
) -> Iterator[Places]:
    """Yield the places of a run. `brokers` is None for a transport without a broker, `hosts` for a run on this host.

    If the transport setting names a place, it is the engine's, and the run can have only one pair. BadAddress.

    Free ports stay reserved in the context: a socket of this process is bound to each and does not listen. So no other
    program gets the port, but the component can listen on it, since both sockets set SO_REUSEADDR.
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
    has_several_links = len(lineup.gateways) > 1 or len(lineup.engines) > 1
    if has_several_links and "://" in place and not transport.has_broker(scheme):
        option = "--pairs"
        if lineup.is_market:
            option = "--gateways" if lineup.sharing > 1 else "--engines"
        raise BadAddress(
            f"{settings.transport} is one place, for one gateway: say {scheme} alone, or leave out {option}"
        )
    with contextlib.ExitStack() as reserved:
        if brokers is not None:
            from exchange_simulation.launching.launch.brokers import broker_of_run

            if hosts and hosts.has_broker_elsewhere:
                broker = hosts.started_broker(settings)
            else:
                broker = broker_of_run(settings, brokers)
            yield _at_broker(settings, broker, network, reserved)
            return

        def free(component: str, name: str) -> str:
            """Return a place at which the component listens. `name` is that of a file, if the place is a path."""
            if hosts:
                return hosts.free_place(component)
            return free_place(kind, scratch / name, reserved, network, role_of(component))

        def free_port_of_engine(component: str) -> str:
            return free(component, component).rpartition(":")[2]

        options_of_settings = url_options_of(settings)
        reporters = {}
        for instance in lineup.reporters:
            reporter = named("reporter", instance)
            url = f"{scheme}://{free(reporter, reporter)}"
            reporters[instance] = with_option(url, options_of_settings)
        given_place = place.partition("://")[2]
        engines: dict[int, dict[int, str]] = {engine: {} for engine in lineup.engine_numbers}
        for number, (engine, gateway) in lineup.numbered_links.items():
            component = named("engine", engine)
            url = f"{scheme}://{given_place or free(component, named('engine', number))}{question_mark}{options}"
            url = with_option(url, options_of_settings)
            engines[engine][gateway] = _with_topology(url, settings, partial(free_port_of_engine, component))
        market_data = {}
        if settings.subscribers:
            for engine in lineup.engine_numbers:
                publisher = named("engine", engine)
                url = f"{scheme}://{free(publisher, named(SUBSCRIBER, engine))}{question_mark}{options}"
                url = with_option(url, options_of_settings)
                market_data[engine] = _of_publisher(url, settings, partial(free_port_of_engine, publisher))
        yield Places(engines, reporters, market_data=market_data)


def _at_broker(
    settings: RunSettings, broker: RunningBroker, network: Network | None, reserved: contextlib.ExitStack
) -> Places:
    """Return the places of a run with a broker: all links are at the broker, with queues for each pair and reporter."""
    lineup = Lineup.of(settings)

    def free_port() -> str:
        return free_place("port", Path(), reserved, network, "engine").rpartition(":")[2]

    engines: dict[int, dict[int, str]] = {engine: {} for engine in lineup.engine_numbers}
    for number, (engine, gateway) in lineup.numbered_links.items():
        engines[engine][gateway] = _with_topology(_of_instance(broker.url, number), settings, free_port)
    reporters = {instance: _of_instance(broker.url, instance) for instance in lineup.reporters}
    market_data = {}
    if settings.subscribers:
        for engine in lineup.engine_numbers:
            market_data[engine] = _of_publisher(_of_instance(broker.url, engine), settings, free_port)
    return Places(engines, reporters, broker, broker.environment, market_data)


def _of_instance(url: str, instance: int) -> str:
    """Return the broker's URL for the queues of one link, of one reporter, or of one engine's market data."""
    return url if instance == 1 else with_option(url, f"pair={instance}")


def _with_topology(url: str, settings: RunSettings, free_port: Callable[[], str]) -> str:
    """Return the URL, with the options for two connections if the settings' topology is simplex.

    Some transports need a second port for this, which `free_port` finds.
    """
    if settings.topology != "simplex":
        return url
    url = with_option(url, "topology=simplex")
    if "back" not in transport_of(scheme_of(url)).options or "back=" in url:
        return url
    return with_option(url, f"back={free_port()}")


def _of_publisher(url: str, settings: RunSettings, free_port: Callable[[], str]) -> str:
    """Return the URL of market data, with the option for slow subscribers, and with a second port if it needs one."""
    transport = transport_of(scheme_of(url))
    rules = transport.slow_subscriber_rules(options_in(url))
    url = with_option(url, rules[str(settings.slow_subscriber)])
    if "back" not in transport.options or transport.places[scheme_of(url)] != "port" or "back=" in url:
        return url
    return with_option(url, f"back={free_port()}")


def free_place(kind: str, path: Path, reserved: contextlib.ExitStack, network: Network | None, role: str) -> str:
    """Return a place of this kind: a path, a name, or a free port, which is reserved while `reserved` is open."""
    if kind == "path":
        return str(path)
    if kind == "name":
        return secrets.token_hex(8)
    host = network.address[role] if network else "127.0.0.1"
    open_socket = partial(network.socket, role) if network else socket.socket
    port = reserved.enter_context(reserved_port(host, 0, open_socket))
    return f"{host}:{port}"


def url_for_role(url: str, role: str, settings: RunSettings) -> str:
    """Return the URL for a component of this role, with TCP_NODELAY off if the settings want Nagle's algorithm."""
    return with_option(url, "nodelay=off") if role in settings.nagle else url


def as_seen_by_peers(url: str) -> str:
    """Return the URL to which peers connect. A listener on every interface is reached on loopback."""
    return (
        url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:").replace("://*:", "://127.0.0.1:")
    )
