"""What a run over several hosts needs: checked before anything is started, with a sentence for each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from exchange.instances import instance_of, named, role_of
from exchange.settings import Obstacle, RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.hosts_file import HostEntry, HostsFile, check_numbers, read_hosts_file
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.transport_checks import runs_in_one_process, schemes_that_fit
from transports.declaration import Transport
from transports.registry import has_broker, scheme_of, transport_of

BROKER = "broker"


def check_hosts(settings: RunSettings) -> None:
    """UserError if the run is over several hosts, and cannot be, or is open to other hosts without --insecure.

    Call this once for a run, before anything starts. With --insecure, an open address gets a warning.
    """
    if settings.hosts is not None:
        _check_exposure(settings, checked_hosts(settings))


def checked_hosts(settings: RunSettings) -> HostsFile:
    """Return the tables of the run's hosts file. UserError for a mistake in it, or for a setting that it excludes."""
    assert settings.hosts is not None
    _check_settings(settings)
    file = read_hosts_file(Path(settings.hosts))
    lineup = Lineup.of(settings)
    check_numbers(file, set(lineup.names))
    _check_broker(settings, file)
    for listener in _listeners(settings, lineup):
        _check_address(file, listener, list(_peers_of(listener, lineup)))
    return file


def _check_settings(settings: RunSettings) -> None:
    """UserError for a setting that needs all components on this host."""
    scheme = scheme_of(settings.transport)
    if runs_in_one_process(settings.transport) or not leaves_a_host(transport_of(scheme), scheme):
        fitting = schemes_that_fit(leaves_a_host)
        raise UserError(f"--hosts is {settings.hosts}; {scheme} cannot leave a host: use {fitting}")
    obstacles = [
        Obstacle("--network", settings.network != "local", "it makes hosts of its own"),
        Obstacle("--recover", settings.recover, "a killed component is started again on this host only"),
        Obstacle("--journal", settings.journal is not None, "the journal is a folder of this host"),
        Obstacle("--capture", settings.capture, "tcpdump runs on this host only"),
    ]
    for obstacle in obstacles:
        if obstacle.is_given:
            raise UserError(
                f"--hosts is {settings.hosts}; it does not go together with {obstacle.option}: {obstacle.reason}"
            )


def leaves_a_host(transport: Transport, scheme: str) -> bool:
    """Return True if the transport's links can join two hosts."""
    return transport.places[scheme] in ("port", BROKER)


def _check_broker(settings: RunSettings, file: HostsFile) -> None:
    """UserError for a table of a broker that the run does not start."""
    if BROKER not in file.entries:
        return
    if not has_broker(settings.transport):
        raise UserError(
            f"{file.path} has a table [broker], and {settings.transport} has no broker: leave the table out, or "
            f"name a transport with a broker by --transport"
        )
    if "://" in settings.transport:
        raise UserError(f"{file.path} has a table [broker], and {settings.transport} names the broker: leave one out")


def _listeners(settings: RunSettings, lineup: Lineup) -> Iterator[str]:
    """Yield the names of what others connect to: a broker of the run, or else engines and reporters."""
    if not has_broker(settings.transport):
        yield from lineup.engines
        yield from (named("reporter", number) for number in lineup.reporters)
    elif "://" not in settings.transport:
        yield BROKER


def _peers_of(listener: str, lineup: Lineup) -> Iterator[str]:
    """Yield the components that connect to a listener."""
    if listener == BROKER:
        yield from lineup.names
        return
    number = instance_of(listener)
    if role_of(listener) == "engine":
        for gateway in lineup.gateway_numbers:
            if number in lineup.engines_of(gateway):
                yield named("gateway", gateway)
        yield from lineup.subscriber_names
        return
    yield from (name for name in lineup.sources if lineup.group_of(name) == number)


def _check_address(file: HostsFile, listener: str, peers: list[str]) -> None:
    """UserError if a component on another host must connect to the listener, and the file has no address of it."""
    entry = file.entry_of(listener)
    if entry.address is not None:
        return
    for peer in peers:
        host = file.entry_of(peer).host
        if host != entry.host:
            raise UserError(
                f"{file.path}: [{listener}] has no address, and the {peer}, on {host.name}, connects to it: give "
                f"address, the name or IPv4 address of {entry.host.name} in the network of the run"
            )


def exposure(settings: RunSettings, file: HostsFile) -> str | None:
    """Return a sentence on the listeners that other hosts reach if nothing is encrypted; None if they reach none."""
    if settings.secure:
        return None
    exposed = [name for name in _listeners(settings, Lineup.of(settings)) if is_exposed(file.entry_of(name))]
    if not exposed:
        return None
    return f"{file.path}: other hosts reach the {' and the '.join(exposed)}, and nothing is encrypted"


def _check_exposure(settings: RunSettings, file: HostsFile) -> None:
    """UserError if other hosts reach a listener and nothing is encrypted; with --insecure, a warning instead."""
    problem = exposure(settings, file)
    if problem is None:
        return
    if not settings.insecure:
        raise UserError(f"{problem}: give --secure DIR (exchange keys makes one), or --insecure on your own network")
    say(f"warning: {problem}")


def is_exposed(entry: HostEntry) -> bool:
    """Return True if a component that listens at the entry's address can be reached from other hosts."""
    address = entry.listens_on
    if address is None or address == "localhost":
        return False
    try:
        return not ip_address(address).is_loopback
    except ValueError:
        return True
