"""The broker of a run: at the user's address, the user's standing one, one of several runs, or one of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from exchange.settings import RunSettings
from runs.priority import going_first
from runs.process_group import ProcessGroup
from runs.transport_settings import as_options, with_option
from transports.base import Address, BadAddress, mask
from transports.declaration import Broker, RunningBroker, Where
from transports.registry import transport_of

if TYPE_CHECKING:
    from runs.network.network import Network


class Brokers:
    """A context that shares private brokers between several runs: one for each kind, TCP_NODELAY, keys and priority.

    A broker is started when the first run needs it, and ends with the context. If this process is killed, the broker
    ends at the end of file of a pipe of ours, and a watchdog removes its folder.
    """

    def __init__(self, takes_standing: bool = True) -> None:
        self._takes_standing = takes_standing

    def __enter__(self) -> Brokers:
        self._open = contextlib.ExitStack()
        self._processes: ProcessGroup | None = None
        self._running: dict[tuple[type[Broker], bool, str | None, str], RunningBroker] = {}
        self._started = 0
        return self

    def get(self, broker: Broker, nodelay: bool, secure: str | None = None, priority: str = "normal") -> RunningBroker:
        """The shared broker if it lives; else the user's standing one if it fits; else a new one, shared from now."""
        shared = self._running.get((type(broker), nodelay, secure, priority))
        if shared is not None and _is_alive(shared):
            return shared
        standing = _standing(broker, nodelay, secure, priority) if self._takes_standing else None
        return standing or self._start(broker, nodelay, secure, priority)

    def _start(self, broker: Broker, nodelay: bool, secure: str | None, priority: str) -> RunningBroker:
        if self._processes is None:
            self._processes = self._open.enter_context(ProcessGroup())
        self._started += 1
        folder, group = self._processes.folder / f"broker-{self._started}", self._processes.id
        with going_first(priority):
            running = self._open.enter_context(broker.start(folder, group, nodelay, _where(secure)))
        self._running[type(broker), nodelay, secure, priority] = running
        return running

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _where(secure: str | None) -> Where:
    """On loopback, with the keys of the settings."""
    return Where(keys=Path(secure) if secure else None)


def _standing(broker: Broker, nodelay: bool, secure: str | None, priority: str) -> RunningBroker | None:
    """The user's standing broker, which has no keys, and normal priority."""
    return None if secure or priority != "normal" else broker.standing(nodelay)


def _is_alive(running: RunningBroker) -> bool:
    """A broker without processes of ours counts as alive, since we cannot tell."""
    try:
        if running.server is not None:
            running.server.usage()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def broker_of_run(
    settings: RunSettings, scratch: Path, process_group: int | None, brokers: Brokers | None = None,
    network: Network | None = None,
) -> Iterator[RunningBroker]:  # fmt: skip
    """The broker for a run's links; its URL has the settings as options. BadAddress for a mistake in the settings.

    A scheme alone, as `amqp`, never meets a broker that somebody else started: it gets a private one from `brokers`,
    which keep it, or one that starts and ends here. An address is used as it is.
    """
    scheme, _, place = settings.transport.partition("?")[0].partition("://")
    transport = transport_of(scheme)
    broker = transport.broker() if transport.broker else None
    if place and "broker" in settings.nagle:
        raise BadAddress(
            f"{mask(settings.transport)} is not ours, so its TCP_NODELAY cannot be changed: leave broker out of "
            f"--nagle, or use plain {scheme}"
        )
    options = "&".join(filter(None, (settings.transport.partition("?")[2], as_options(settings))))
    if place:
        url = with_option(f"{scheme}://{place}", options)
        if broker is not None:
            broker.check(Address.parse(url, token=""))
        yield RunningBroker(url)
        return
    if broker is None or scheme not in broker.starts:
        raise BadAddress(f"{scheme} needs an address: {scheme}://{broker.place if broker else 'host:port'}")
    with _private(broker, settings, scratch, process_group, brokers, network) as running:
        yield replace(running, url=with_option(running.url, options), is_reachable=network is None)


@contextlib.contextmanager
def _private(
    broker: Broker, settings: RunSettings, scratch: Path, process_group: int | None, brokers: Brokers | None,
    network: Network | None,
) -> Iterator[RunningBroker]:  # fmt: skip
    """A broker in a network belongs to the run alone, as the network does."""
    nodelay, secure, priority = "broker" not in settings.nagle, settings.secure, settings.priority
    where = _where(secure)
    if network is not None:
        prefix, open_socket = tuple(network.prefix("broker")), partial(network.socket, "broker")
        where = replace(where, host=network.address["broker"], prefix=prefix, open_socket=open_socket)
    elif brokers:
        yield brokers.get(broker, nodelay, secure, priority)
        return
    elif standing := _standing(broker, nodelay, secure, priority):
        yield standing
        return
    with contextlib.ExitStack() as stack:
        with going_first(priority):
            own = stack.enter_context(broker.start(scratch / "broker", process_group, nodelay, where))
        yield own
