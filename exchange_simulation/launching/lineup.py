"""The components of a run: pairs of a gateway and an engine, and reporters, to which the pairs are assigned in turn.

A market has several gateways, several engines, or both: each gateway has a session at each engine. It is one pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """The number of gateways of a market; 1 if each pair has a gateway and an engine."""
    subscribers: tuple[int, ...] = ()
    market_engines: int = 1
    """The number of engines of a market; 1 if each pair has a gateway and an engine."""
    only_gateway: int | None = None
    """The one gateway of a market to which this part of the lineup belongs; None for all."""

    @classmethod
    def of(cls, settings: RunSettings) -> Lineup:
        """Return the lineup of a run with these settings."""
        pairs = range(1, settings.pairs + 1)
        reporters = range(1, settings.reporters + 1)
        subscribers = range(1, settings.subscribers + 1)
        return cls(
            pairs=tuple(pairs),
            reporters=tuple(reporters),
            has_standbys=settings.standby,
            sharing=settings.gateways,
            subscribers=tuple(subscribers),
            market_engines=settings.engines,
        )

    @property
    def is_market(self) -> bool:
        """Whether each gateway has a session at each engine; otherwise each pair is a gateway and an engine."""
        return self.sharing > 1 or self.market_engines > 1

    @property
    def gateway_numbers(self) -> tuple[int, ...]:
        """The gateways' numbers: those of their pairs, or 1, 2, ... in a market."""
        if self.only_gateway is not None:
            return (self.only_gateway,)
        if self.is_market:
            return tuple(range(1, self.sharing + 1))
        return self.pairs

    @property
    def engine_numbers(self) -> tuple[int, ...]:
        """The engines' numbers: those of their pairs, or 1, 2, ... in a market."""
        if self.market_engines > 1:
            return tuple(range(1, self.market_engines + 1))
        return self.pairs

    @property
    def numbered_links(self) -> dict[int, tuple[int, int]]:
        """The engine and the gateway of each link between the two, by the link's number, from 1 on."""
        links: dict[int, tuple[int, int]] = {}
        if not self.is_market:
            return {pair: (pair, pair) for pair in self.pairs}
        for engine in self.engine_numbers:
            for gateway in self.gateway_numbers:
                links[len(links) + 1] = engine, gateway
        return links

    def engines_of(self, gateway: int) -> tuple[int, ...]:
        """Return the numbers of the engines at which a gateway has sessions."""
        return self.engine_numbers if self.is_market else (gateway,)

    def reporter_of(self, pair: int) -> int:
        """Return the reporter to which a pair reports."""
        return self.reporters[(pair - 1) % len(self.reporters)]

    def of_reporter(self, reporter: int) -> Lineup:
        """Return the lineup of one reporter with the pairs that report to it."""
        pairs = tuple(pair for pair in self.pairs if self.reporter_of(pair) == reporter)
        return replace(self, pairs=pairs, reporters=(reporter,), subscribers=())

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
        return [named("engine", number) for number in self.engine_numbers]

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
