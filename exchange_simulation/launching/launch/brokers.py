"""The broker of a run: at the user's address, the user's standing broker, or a private one, also for several runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exchange.settings import RunSettings
from exchange_simulation.launching.errors import CannotStart, UserError, sentence
from exchange_simulation.launching.interrupts import interruptible
from exchange_simulation.launching.long_waits import said_if_long
from exchange_simulation.launching.priority import at_priority
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import has_proc
from exchange_simulation.launching.transport_urls import split_query, url_options_of, with_option
from transports.base import Address, BadAddress, TransportError, mask
from transports.declaration import Broker, RunningBroker, ServerPlace
from transports.registry import scheme_of, transport_of
from transports.servers.starting import ServerDidNotStart

if TYPE_CHECKING:
    from exchange_simulation.launching.network.network import Network

ENDING_S = 1.0
"""How long a broker may take to end after the first error that its end causes."""
LOOK_EVERY_S = 0.05


class BrokerKind(NamedTuple):
    """What two runs must have in common to share a private broker."""

    broker: type[Broker]
    options: tuple[tuple[str, str], ...]
    nodelay: bool
    secure: str | None
    priority: str
    cpu: int | None
    number: int = 1
    """Tells several brokers of one kind apart, which serve one run together."""


class Brokers:
    """A context with private brokers for one run or several runs.

    A broker is started when the first run needs it, and is shared by all runs with the same kind of broker, options,
    TCP_NODELAY, keys, priority and processor. It ends with the context. If this process is killed, a pipe from this
    process ends, which ends the broker; a watchdog removes its folder.
    """

    def __init__(
        self,
        processes: ProcessGroup | None = None,
        network: Network | None = None,
        takes_standing: bool = True,
        address: str | None = None,
    ) -> None:
        """The brokers join the group of `processes` and use its folder; without `processes`, they get their own group.

        In a network, brokers are started in the namespace of the role `broker`, and the standing broker is not used.
        `address` is the address of this host on which they listen; None for loopback.
        """
        self._address = address
        self._processes = processes
        self._network = network
        self._takes_standing = takes_standing and network is None

    def __enter__(self) -> Brokers:
        self._open = contextlib.ExitStack()
        self._running: dict[BrokerKind, RunningBroker] = {}
        self._started = 0
        return self

    def get(
        self,
        broker: Broker,
        nodelay: bool,
        secure: str | None = None,
        priority: str = "normal",
        cpu: int | None = None,
        number: int = 1,
    ) -> RunningBroker:
        """Return the shared broker of this number if it is alive; else the user's standing broker if it fits.

        If neither is there, a new shared one is started.
        The standing broker has number 1, no options, no keys, normal priority and every processor. UserError if this
        process may not use the processor `cpu`. CannotStart if a new broker ends while it starts.
        """
        kind = BrokerKind(type(broker), tuple(sorted(broker.options.items())), nodelay, secure, priority, cpu, number)
        shared = self._running.get(kind)
        if shared is not None and _is_alive(shared):
            return shared
        is_plain = not secure and not broker.options and priority == "normal" and cpu is None and number == 1
        fits_standing = self._takes_standing and is_plain
        standing = broker.standing(nodelay) if fits_standing else None
        if standing:
            return standing
        self._running[kind] = self._start(broker, kind)
        return self._running[kind]

    @contextlib.contextmanager
    def broker_end_as_cannot_start(self) -> Iterator[None]:
        """Turn an error in the context into CannotStart if a broker has ended, which is no mistake of the user."""
        try:
            yield
        except CannotStart:
            raise
        except (TransportError, UserError) as error:
            ended_broker = self._ended_soon()
            if ended_broker is None or ended_broker.server is None:
                raise
            product = ended_broker.server.facts()["product"]
            raise CannotStart(f"{product} ended while the others started: {sentence(error)}") from error

    def _ended_soon(self) -> RunningBroker | None:
        """Return a broker that has ended, or ends within ENDING_S; None if all stay."""
        until_s = time.monotonic() + ENDING_S
        while self._running:
            for running in self._running.values():
                if not _is_alive(running):
                    return running
            if time.monotonic() > until_s:
                return None
            time.sleep(LOOK_EVERY_S)
        return None

    def _start(self, broker: Broker, kind: BrokerKind) -> RunningBroker:
        if not has_proc():
            raise UserError(
                f"{_in_words(broker)} needs /proc, which this machine hides: mount it, or name a broker that runs, as "
                f"{'|'.join(sorted(broker.starts))}://{broker.place}"
            )
        if self._processes is None:
            self._processes = self._open.enter_context(ProcessGroup())
        self._started += 1
        folder = self._processes.folder / f"broker-{self._started}"
        waiting = said_if_long(f"{_in_words(broker)} to start")
        with at_priority(kind.priority), _on_processor(kind.cpu), waiting, interruptible():
            starting = broker.start(folder, self._processes.id, kind.nodelay, self._where(kind.secure))
            try:
                running = self._open.enter_context(starting)
            except ServerDidNotStart as error:
                raise CannotStart(str(error)) from error
        return replace(running, is_reachable=self._network is None, folder=folder)

    def _where(self, secure: str | None) -> ServerPlace:
        """Return the place of a new broker, on loopback or in the network, with the folder of keys if there is one."""
        on_loopback = ServerPlace(keys=Path(secure) if secure else None)
        network = self._network
        if self._address is not None:
            return replace(on_loopback, host=self._address)
        if network is None:
            return on_loopback
        return replace(
            on_loopback,
            host=network.address["broker"],
            prefix=tuple(network.prefix("broker")),
            open_socket=partial(network.socket, "broker"),
        )

    def __exit__(self, *_: object) -> None:
        self._open.close()


@contextlib.contextmanager
def _on_processor(cpu: int | None) -> Iterator[None]:
    """Keep this thread, and the processes that it starts in the context, on one processor; None is no limit."""
    if cpu is None:
        yield
        return
    allowed = os.sched_getaffinity(0)
    if cpu not in allowed:
        raise UserError(f"--cpus is broker={cpu}; the processors here are {', '.join(map(str, sorted(allowed)))}")
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _in_words(broker: Broker) -> str:
    """Return the broker as a sentence names it. For example: the broker of amqp"""
    return f"the broker of {' and '.join(sorted(broker.starts))}"


def _is_alive(running: RunningBroker) -> bool:
    """Return whether a broker is alive. A broker whose process is not ours counts as alive."""
    try:
        if running.server is not None:
            running.server.usage()
    except OSError:
        return False
    return True


def broker_start_s(transport: str) -> float:
    """Return about how long the private broker of a scheme or URL takes to start and to end; 0 if none is started."""
    declared = transport_of(scheme_of(transport)).broker
    if declared is None or "://" in transport:
        return 0.0
    return declared().start_s


def broker_of_run(settings: RunSettings, brokers: Brokers, number: int = 1) -> RunningBroker:
    """Return the broker for a run's links; its URL has the settings as options. BadAddress for a mistake in them.

    `number` tells several private brokers of one run apart.

    If the transport is a scheme alone, as `amqp`, the broker is one of `brokers`. An address is used as it is.
    """
    url, _, query = settings.transport.partition("?")
    scheme, _, place = url.partition("://")
    transport = transport_of(scheme)
    broker = transport.broker() if transport.broker else None
    if place and "broker" in settings.nagle:
        raise BadAddress(
            f"{mask(settings.transport)} is not ours, so its TCP_NODELAY cannot be changed: leave broker out of "
            f"--nagle, or use plain {scheme}"
        )
    if place and "broker" in settings.cpus:
        raise BadAddress(
            f"{mask(settings.transport)} is not ours, so it keeps its processors: leave broker out of --cpus"
        )
    query, server_options = split_query(query, transport.server_options)
    if place and server_options:
        names = " and ".join(server_options)
        raise BadAddress(
            f"{mask(settings.transport)} is not ours, so it keeps its own {names}: leave that out, or name no place"
        )
    queries = [query, url_options_of(settings)]
    options = "&".join(one_query for one_query in queries if one_query)
    if place:
        url = with_option(f"{scheme}://{place}", options)
        if broker is None:
            return RunningBroker(url)
        broker.check(Address.parse(url, token=""))
        return broker.of_user(url)
    if broker is None or scheme not in broker.starts:
        raise BadAddress(f"{scheme} needs an address: {scheme}://{broker.place if broker else 'host:port'}")
    running = brokers.get(
        broker.with_options(server_options),
        "broker" not in settings.nagle,
        settings.secure,
        settings.priority,
        settings.cpus.get("broker"),
        number,
    )
    return replace(running, url=with_option(running.url, options))
