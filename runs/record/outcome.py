"""What is left of a run: the results that arrived, and what went wrong outside of them."""

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
    """Results by instance, of those that left one."""

    lineup: Lineup = field(default_factory=Lineup)
    gateways: Mapping[int, GatewayResult] = field(default_factory=dict)
    engines: Mapping[int, EngineResult] = field(default_factory=dict)
    reporters: Mapping[int, ReporterResult] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    broker: dict[str, Any] | None = None
    """What the broker is, and how deep its queues were; None where there is none."""
    broker_usage: dict[str, Any] | None = None
    """As a component's; None where it could not be measured."""
    noise: Noise | None = None
    """What else the machine did while the clock ran; None where it never stopped."""
    network: dict[str, Any] | None = None
    """What joined the components, and how it did; None for loopback."""
    capture: dict[str, int] | None = None
    """tcpdump's own counts of packets; None where nobody captured."""
    broker_sockets: tuple[dict[str, Any], ...] = ()
    """The broker's ends of its connections to the components, as far as they could be read back."""

    def of_pair(self, pair: int) -> Outcome:
        """As if that were all that there was."""
        gateways = {k: gateway for k, gateway in self.gateways.items() if k == pair}
        engines = {k: engine for k, engine in self.engines.items() if k == pair}
        return Outcome(lineup=Lineup((pair,), ()), gateways=gateways, engines=engines)

    @property
    def results(self) -> dict[str, Result]:
        """By component, pair by pair; the reporters come last."""
        roles: list[tuple[str, Mapping[int, Result]]]
        roles = [("gateway", self.gateways), ("engine", self.engines)]
        of_pairs = {named(role, k): found[k] for k in self.lineup.pairs for role, found in roles if k in found}
        return of_pairs | {named("reporter", k): result for k, result in self.reporters.items()}

    @property
    def missing(self) -> list[str]:
        """Components that left no result."""
        pairs = zip(self.lineup.gateways, self.lineup.engines, strict=True)
        reporters = (named("reporter", each) for each in self.lineup.reporters)
        return [name for name in (*(name for pair in pairs for name in pair), *reporters) if name not in self.results]

    @property
    def sockets(self) -> dict[str, list[dict[str, Any]]]:
        """By component."""
        return {**{name: result.sockets for name, result in self.results.items()}, "broker": list(self.broker_sockets)}

    def of_this_run(self, accepted: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        """Of the connections that a broker has accepted, those whose other end is a component's."""
        ends = {socket["local"] for sockets in self.sockets.values() for socket in sockets}
        return tuple(socket for socket in accepted if socket["peer"] in ends)


def outcome_of(lineup: Lineup, results: Mapping[str, Result]) -> Outcome:
    """Of what the components said, by name; whom the lineup does not have is in no figure."""
    by_instance = sorted((instance_of(name), name) for name in results if name in lineup.names)
    known = [(instance, results[name]) for instance, name in by_instance]
    return Outcome(
        lineup=lineup,
        gateways={k: result for k, result in known if isinstance(result, GatewayResult)},
        engines={k: result for k, result in known if isinstance(result, EngineResult)},
        reporters={k: result for k, result in known if isinstance(result, ReporterResult)},
    )


def read_results(records: Mapping[str, dict[str, Any]]) -> dict[str, Result]:
    """From their records, by component."""
    return {name: _result(role_of(name), record) for name, record in records.items()}


def _result(role: str, record: dict[str, Any]) -> Result:
    if role == "reporter":
        return ReporterResult(**record)
    streams = {name: StreamCounts(**record[name]) for name in ("orders", "answers")}
    return GatewayResult(**{**record, **streams}) if role == "gateway" else EngineResult(**{**record, **streams})
