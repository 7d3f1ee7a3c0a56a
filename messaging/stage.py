"""What all cells of a benchmark share: brokers, the watchdog's group, kernels that are loaded before anybody forks."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from exchange.settings import RunSettings
from messaging.payload import Receipt, Source
from messaging.places import Places
from messaging.player import opened
from messaging.round_trips import load_compiled
from runs.broker.broker_of_run import BrokerOfRun, broker_of_run
from runs.broker.brokers_held import Brokers
from runs.component import settle_down
from runs.errors import UserError
from runs.launch.places import free_place
from runs.launch.threads import interpreter_shared
from runs.process_group import ProcessGroup
from transports.base import BadAddress, Link, PeerGone
from transports.pattern import Pattern
from transports.registry import scheme_of, transport_of

WARM_SIZE, WARM_S = 64, 10.0


class Stage:
    """A context. `patterns` are of each transport's links, besides pairs; a private broker is one of `brokers`."""

    def __init__(
        self, patterns: Mapping[str, Sequence[Pattern]], client: str | None, delivery: str | None, brokers: Brokers
    ) -> None:
        self._transports = {transport: _declared(transport) for transport in patterns}
        self._client, self._delivery = client, delivery
        self._patterns, self._brokers = patterns, brokers
        self.brokers: dict[str, BrokerOfRun] = {}
        """By transport, of those that have one."""

    def __enter__(self) -> Stage:
        with contextlib.ExitStack() as held:
            self._processes = held.enter_context(ProcessGroup())
            for transport, kind in self._transports.items():
                if kind == "broker":
                    self.brokers[transport] = self._broker(transport, held)
            if any(map(self.in_threads, self._transports)):
                held.enter_context(interpreter_shared())
            for transport in self._transports:
                with self.places(transport) as places:
                    _warm(places)
                    for pattern in self._patterns[transport]:
                        _load(places, pattern)
            settle_down()  # forks share what is there now: nothing is collected, or moved, from now on
            held.callback(gc.enable)
            self._held = held.pop_all()
        return self

    def _broker(self, transport: str, held: contextlib.ExitStack) -> BrokerOfRun:
        settings = RunSettings(transport=transport, orders=1, amqp_client=self._client, delivery=self._delivery)
        broker = held.enter_context(broker_of_run(settings, self._processes.folder, self.group, self._brokers))
        os.environ.update(broker.environment)  # for our forks; of this process nobody else asks
        return broker

    @property
    def group(self) -> int:
        """The process group of roles: whoever is in it ends with us."""
        return self._processes.id

    def in_threads(self, transport: str) -> bool:
        """It cannot leave a process."""
        scheme = scheme_of(transport)
        return scheme in transport_of(scheme).one_process

    @contextlib.contextmanager
    def places(self, transport: str) -> Any:
        """For one cell: names of its own, ports that stay reserved as long as it is open."""
        with contextlib.ExitStack() as held:
            broker = self.brokers.get(transport)
            token = f"bench-{secrets.token_hex(6)}"
            find = partial(free_place, held=held)
            yield Places(broker.url if broker else transport, token, self._processes.folder, find)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()


def _declared(transport: str) -> str:
    """What a place is there. UserError where there is no such transport, or it has a place that one link would take."""
    scheme = scheme_of(transport)
    try:
        kind = transport_of(scheme).places[scheme]
    except BadAddress as error:
        raise UserError(str(error)) from error
    if "://" in transport and kind != "broker":
        raise UserError(f"--transport is {transport}; say {scheme} alone: a place is found for each link")
    return kind


def _warm(places: Places) -> None:
    """A message there and one back, in this process: kernels are loaded, and a mistake in an address is said.

    Those of round trips, too: a fork that loaded them while it was asked made the first one of a run take 10 ms.
    """
    for one_way in (True, False):
        there, back = places.pair(WARM_SIZE, one_way=one_way)
        with contextlib.ExitStack() as held:
            listener = opened(there, held)
            connector = opened(back, held)
            for sender, receiver in ((connector, listener), (listener, connector)):
                _pass_on(sender, receiver)
            for link in (listener, connector):
                load_compiled(link)


def _load(places: Places, pattern: Pattern) -> None:
    """A link's kernels are loaded when it is opened: here, once, and not in each of dozens of forks."""
    key = ("warm",) if pattern is Pattern.TOPIC else ()
    (there,), back = places.together(WARM_SIZE, pattern, (key,), key)
    with contextlib.ExitStack() as held:
        for end in (back, there):  # who listens is closed first, or the other awaits a welcome from him
            opened(end, held)


def _pass_on(sender: Link, receiver: Link) -> None:
    source, receipt = Source(WARM_SIZE), Receipt(WARM_SIZE)
    batch, sent, until_s = receipt.empty_batch(), 0, time.monotonic() + WARM_S
    source.fill(1, time.monotonic_ns())
    while not receipt.received:
        if time.monotonic() > until_s:
            raise PeerGone(f"no message came through {receiver.url} within {WARM_S:g} s")
        sent = sender.send(source.batch, sent) if sent < source.batch.count else sent
        if receiver.receive(batch):
            receipt.add(batch, time.monotonic_ns())
        for link in (sender, receiver):
            link.wait(time.monotonic_ns() + 1_000_000)
