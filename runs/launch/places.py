"""Where the components of a run meet: free ports, scratch paths, names, or a broker."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.instances import named
from exchange.settings import RunSettings
from runs.broker.broker_of_run import BrokerOfRun, broker_of_run
from runs.lineup import Lineup
from transports.base import BadAddress
from transports.registry import scheme_of, transport_of

if TYPE_CHECKING:
    from runs.broker.brokers_held import Brokers
    from runs.network.network import Network


@dataclass(frozen=True)
class Places:
    engines: Mapping[int, str]
    """By pair, the URL on which its engine listens, or of the broker."""
    reporters: Mapping[int, str]
    broker: BrokerOfRun | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the components need to know beside."""


@contextlib.contextmanager
def meeting_places(
    settings: RunSettings, scratch: Path, process_group: int | None = None, brokers: Brokers | None = None,
    network: Network | None = None,
) -> Iterator[Places]:  # fmt: skip
    """An engine's is the transport itself where that names a place, which has room for one.

    A free port stays reserved while the context is open: a socket of ours is bound to it, and does not listen, so
    that nobody else is given the port, while the component, which also sets SO_REUSEADDR, may listen on it.
    """
    scheme = scheme_of(settings.transport)
    kind = transport_of(scheme).places[scheme]
    asked, question_mark, options = settings.transport.partition("?")
    if asked.endswith("://"):
        raise BadAddress(f"{settings.transport} lacks a place: say where, or {scheme} alone to have one found")
    lineup = Lineup.of(settings)
    if lineup.pairs[1:] and "://" in asked and kind != "broker":
        raise BadAddress(f"{settings.transport} is one place, for one pair: say {scheme} alone, or leave out --pairs")
    with contextlib.ExitStack() as held:
        if kind == "broker":
            broker = held.enter_context(broker_of_run(settings, scratch, process_group, brokers, network))
            engines = {k: _with_topology(_of_instance(broker.url, k), settings, held, network) for k in lineup.pairs}
            reporters = {k: _of_instance(broker.url, k) for k in lineup.reporters}
            yield Places(engines, reporters, broker, broker.environment)
            return

        def found(role: str, instance: int) -> str:
            return free_place(kind, scratch / named(role, instance), held, network, role)

        reporters = {k: f"{scheme}://{found('reporter', k)}" for k in lineup.reporters}
        given = asked.partition("://")[2]
        places = {k: f"{scheme}://{given or found('engine', k)}{question_mark}{options}" for k in lineup.pairs}
        yield Places({k: _with_topology(url, settings, held, network) for k, url in places.items()}, reporters)


def _of_instance(url: str, instance: int) -> str:
    """The broker with the queues of that pair, or reporter."""
    return url if instance == 1 else _with_option(url, f"pair={instance}")


def _with_topology(url: str, settings: RunSettings, held: contextlib.ExitStack, network: Network | None) -> str:
    """With what makes it two connections where that was asked for; some transports need a second port for that."""
    if settings.topology != "simplex":
        return url
    url = _with_option(url, "topology=simplex")
    if "back" not in transport_of(scheme_of(url)).options or "back=" in url:
        return url
    port = free_place("port", Path(), held, network, "engine").rpartition(":")[2]
    return _with_option(url, f"back={port}")


def free_place(
    kind: str, path: Path, held: contextlib.ExitStack, network: Network | None = None, role: str = ""
) -> str:
    """A free port, which stays reserved while `held` is open, a path, or a name."""
    if kind == "path":
        return str(path)
    if kind == "name":
        return secrets.token_hex(8)
    host = network.address[role] if network else "127.0.0.1"
    holder = held.enter_context(network.socket(role) if network else socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return f"{host}:{holder.getsockname()[1]}"


def of_role(url: str, role: str, settings: RunSettings) -> str:
    """The address as it is told to a component: with TCP_NODELAY off where that was asked for."""
    return _with_option(url, "nodelay=off") if role in settings.nagle else url


def _with_option(url: str, option: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{option}"


def as_seen_by_peers(url: str) -> str:
    """The address to connect to, where the listener listens on every interface."""
    return (
        url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:").replace("://*:", "://127.0.0.1:")
    )
