"""The components of a run: pairs of a gateway and an engine, and reporters, to which the pairs are assigned in turn.

A run of several gateways at one engine has one pair, whose engine serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from exchange.instances import instance_of, named, role_of
from exchange.settings import RunSettings

STANDBY = "standby"
SUBSCRIBER = "subscriber"
READY_S = 180.0
"""The longest time in which components must get ready. The first run compiles kernels."""


def component_of(process: str) -> str:
    """Return the component that a process is, or may become: a standby may become the engine."""
    if role_of(process) == STANDBY:
        return named("engine", instance_of(process))
    return process


def processes_of(component: str) -> list[str]:
    """Return the processes that are, or may become, the component: an engine may have a standby."""
    if role_of(component) == "engine":
        return [component, named(STANDBY, instance_of(component))]
    return [component]


@dataclass(frozen=True)
class Lineup:
    """The numbers of a run's pairs, reporters and subscribers."""

    pairs: tuple[int, ...] = (1,)
    reporters: tuple[int, ...] = (1,)
    has_standbys: bool = False
    sharing: int = 1
    """The number of gateways that share the engine; 1 if each pair has a gateway and an engine."""
    subscribers: tuple[int, ...] = ()

    @classmethod
    def of(cls, settings: RunSettings) -> Lineup:
        """Return the lineup of a run with these settings."""
        pairs = range(1, settings.pairs + 1)
        reporters = range(1, settings.reporters + 1)
        subscribers = range(1, settings.subscribers + 1)
        return cls(tuple(pairs), tuple(reporters), settings.standby, settings.gateways, tuple(subscribers))

    @property
    def shares_engine(self) -> bool:
        """Whether several gateways share one engine."""
        return self.sharing > 1

    @property
    def gateway_numbers(self) -> tuple[int, ...]:
        """The gateways' numbers: those of their pairs, or 1, 2, ... if they share one engine."""
        if self.shares_engine:
            return tuple(range(1, self.sharing + 1))
        return self.pairs

    def engine_of(self, gateway: int) -> int:
        """Return the number of the engine that serves a gateway."""
        return self.pairs[0] if self.shares_engine else gateway

    def reporter_of(self, pair: int) -> int:
        """Return the reporter to which a pair reports."""
        return self.reporters[(pair - 1) % len(self.reporters)]

    def part_of(self, reporter: int) -> Lineup:
        """Return the lineup of one reporter with the pairs that report to it."""
        pairs = tuple(pair for pair in self.pairs if self.reporter_of(pair) == reporter)
        return Lineup(pairs, (reporter,), self.has_standbys, self.sharing)

    def group_of(self, name: str) -> int:
        """Return the number of the reporter that a process is, or reports to."""
        instance = instance_of(name)
        if role_of(name) == "reporter":
            return instance
        return self.reporter_of(instance)

    @property
    def sources(self) -> list[str]:
        """Names of all components that report."""
        return [*self.engines, *self.gateways]

    @property
    def gateways(self) -> list[str]:
        return [named("gateway", number) for number in self.gateway_numbers]

    @property
    def engines(self) -> list[str]:
        return [named("engine", pair) for pair in self.pairs]

    @property
    def subscriber_names(self) -> list[str]:
        """Names of the subscribers to market data, which report to no reporter."""
        return [named(SUBSCRIBER, instance) for instance in self.subscribers]

    @property
    def names(self) -> list[str]:
        """Names of all components, listeners before those that connect to them."""
        reporters = [named("reporter", instance) for instance in self.reporters]
        return [*reporters, *self.sources, *self.subscriber_names]

    @property
    def processes(self) -> list[str]:
        """The components, and each engine's standby."""
        standbys = [named(STANDBY, pair) for pair in self.pairs] if self.has_standbys else []
        return [*self.names, *standbys]
