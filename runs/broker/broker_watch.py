"""What the broker was like while a run's clock ran: CPU time, memory, how deep the queues were."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runs.broker.broker_of_run import BrokerOfRun
from runs.lineup import Lineup
from transports.amqp.probe import Probe

EVERY_S = 1.0


class BrokerWatch:
    """Looks once a second, over a connection of its own, which also takes down what the run left.

    A broker in another network namespace is the run's own, and is not looked into: it goes as a whole.
    """

    def __init__(self, broker: BrokerOfRun, run: str, nodelay: bool, lineup: Lineup) -> None:
        self._broker, self._nodelay = broker, nodelay
        self._probe: Probe | None = None
        if broker.is_reachable:
            with _environment(broker.environment):
                self._probe = Probe(broker.url, run, _further_queues(lineup))
        self._at_start = None if broker.node is None else broker.node.usage()
        self._next_look_s = float("inf")
        self.sockets: tuple[dict[str, Any], ...] = ()
        """The broker's ends of all connections that it has accepted."""
        self.usage: dict[str, Any] | None = None
        self.deepest: dict[str, int] = {}
        """Most messages seen in each queue."""

    def _accepted(self) -> tuple[dict[str, Any], ...]:
        """The broker's own ends, where it is ours and this system lets us look."""
        node = self._broker.node
        if node is None:
            return ()
        with contextlib.suppress(OSError):
            return tuple({**end, "tcp_nodelay_asked": self._nodelay} for end in node.accepted())
        return ()

    def clock_starts(self) -> None:
        self.sockets = self._accepted()
        self._at_start = None if self._broker.node is None else self._broker.node.usage()
        self._next_look_s = time.monotonic()

    def clock_stops(self) -> None:
        self._next_look_s = float("inf")
        if self._broker.node is not None and self._at_start is not None and self.usage is None:
            with contextlib.suppress(OSError):
                self.usage = self._broker.node.usage().since(self._at_start)

    @property
    def cpu_s(self) -> float | None:
        """Since the clock started; None of a broker that is not ours, or is gone."""
        if self._broker.node is not None and self._at_start is not None:
            with contextlib.suppress(OSError):
                return float(self._broker.node.cpu_ns() - self._at_start.cpu_ns) / 1e9
        return None

    def look(self) -> None:
        """Note the queues' depths, if it is time."""
        if self._probe is None or time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + EVERY_S
        for name, messages in self._probe.depth().items():
            self.deepest[name] = max(messages, self.deepest.get(name, 0))

    @property
    def facts(self) -> dict[str, Any]:
        """The `broker` of run.json."""
        own = self._broker.node.facts() if self._broker.node is not None else {}
        said = self._probe.facts if self._probe else {}
        return {**said, **own, "is_private": self._broker.node is not None, "deepest_queue": self.deepest}

    def close(self) -> None:
        if self._probe:
            self._probe.take_down()
            self._probe.close()


def _further_queues(lineup: Lineup) -> list[str]:
    """Those of all pairs and reporters but the first."""
    of_pairs = [f"{pair}.{name}" for pair in lineup.pairs[1:] for name in ("order", "trade")]
    return [*of_pairs, *(f"{reporter}.statistics" for reporter in lineup.reporters[1:])]


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """For our own connection, what the components are given."""
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
