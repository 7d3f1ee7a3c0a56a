"""A run's outcome: the results of its components, and what went wrong outside of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exchange.instances import instance_of, named, role_of
from exchange.results import EngineResult, GatewayResult, ReporterResult, StreamCounts
from runs.lineup import Lineup
from runs.record.noise import Noise

Result = GatewayResult | EngineResult | ReporterResult


@dataclass(kw_only=True)
class Outcome:
    """A run's results by instance; a component that left none is absent."""

    lineup: Lineup = field(default_factory=Lineup)
    gateways: Mapping[int, GatewayResult] = field(default_factory=dict)
    engines: Mapping[int, EngineResult] = field(default_factory=dict)
    reporters: Mapping[int, ReporterResult] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    broker: dict[str, Any] | None = None
    """Facts about the broker and the depth of its queues; None without a broker."""
    broker_usage: dict[str, Any] | None = None
    """The broker's use of the machine; None if it could not be measured."""
    noise: Noise | None = None
    """The machine's other work while the clock ran; None if the clock never stopped."""
    network: dict[str, Any] | None = None
    """The network that joined the components; None for loopback."""
    capture: dict[str, int] | None = None
    """tcpdump's own counts of packets; None without a capture."""
    broker_sockets: tuple[dict[str, Any], ...] = ()
    """The broker's ends of its connections to the components, as far as they could be read back."""

    def of_pair(self, pair: int) -> Outcome:
        """The part of the outcome that belongs to one pair."""
        gateways = {k: gateway for k, gateway in self.gateways.items() if k == pair}
        engines = {k: engine for k, engine in self.engines.items() if k == pair}
        return Outcome(lineup=Lineup((pair,), ()), gateways=gateways, engines=engines)

    @property
    def results(self) -> dict[str, Result]:
        """Results by component, pair by pair; the reporters come last."""
        roles: list[tuple[str, Mapping[int, Result]]]
        roles = [("gateway", self.gateways), ("engine", self.engines)]
        of_pairs = {named(role, k): found[k] for k in self.lineup.pairs for role, found in roles if k in found}
        return of_pairs | {named("reporter", k): result for k, result in self.reporters.items()}

    @property
    def missing(self) -> list[str]:
        """The components that left no result."""
        pairs = zip(self.lineup.gateways, self.lineup.engines, strict=True)
        reporters = (named("reporter", each) for each in self.lineup.reporters)
        return [name for name in (*(name for pair in pairs for name in pair), *reporters) if name not in self.results]

    @property
    def sockets(self) -> dict[str, list[dict[str, Any]]]:
        """Every socket that was read back, by component."""
        return {**{name: result.sockets for name, result in self.results.items()}, "broker": list(self.broker_sockets)}

    def of_this_run(self, accepted: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        """The accepted connections whose other end belongs to a component of this run."""
        ends = {socket["local"] for sockets in self.sockets.values() for socket in sockets}
        return tuple(socket for socket in accepted if socket["peer"] in ends)


def outcome_of(lineup: Lineup, results: Mapping[str, Result]) -> Outcome:
    """The outcome of the lineup's components; components outside the lineup are ignored."""
    by_instance = sorted((instance_of(name), name) for name in results if name in lineup.names)
    known = [(instance, results[name]) for instance, name in by_instance]
    return Outcome(
        lineup=lineup,
        gateways={k: result for k, result in known if isinstance(result, GatewayResult)},
        engines={k: result for k, result in known if isinstance(result, EngineResult)},
        reporters={k: result for k, result in known if isinstance(result, ReporterResult)},
    )


def read_results(records: Mapping[str, dict[str, Any]]) -> dict[str, Result]:
    """The components' results, from their records."""
    return {name: _result(role_of(name), record) for name, record in records.items()}


def _result(role: str, record: dict[str, Any]) -> Result:
    if role == "reporter":
        return ReporterResult(**record)
    streams = {name: StreamCounts(**record[name]) for name in ("orders", "answers")}
    return GatewayResult(**{**record, **streams}) if role == "gateway" else EngineResult(**{**record, **streams})
