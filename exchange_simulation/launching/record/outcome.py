"""A run's outcome: the results of its components, what went wrong outside of them, and sums over its pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exchange.instances import instance_of, named, role_of
from exchange.messages import LAYOUTS, Confirmation, Order, Quote, Rejection, Trade
from exchange.results import NAME, EngineResult, GatewayResult, ReporterResult
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.noise import Noise

Result = GatewayResult | EngineResult | ReporterResult


@dataclass(kw_only=True)
class Outcome:
    """A run's results by instance; a component that left none is absent."""

    lineup: Lineup = field(default_factory=Lineup)
    gateways: Mapping[int, GatewayResult] = field(default_factory=dict)
    engines: Mapping[int, EngineResult] = field(default_factory=dict)
    reporters: Mapping[int, ReporterResult] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    traffic: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Sums of the traffic records of gateways that left no result, by pair."""
    broker: dict[str, Any] | None = None
    """Facts about the broker and the depth of its queues; None without a broker."""
    broker_usage: dict[str, Any] | None = None
    """The broker's use of the machine; None if it could not be measured."""
    noise: Noise | None = None
    """The machine's other work while the clock ran; None if the clock never stopped."""
    affinity: dict[str, list[int]] = field(default_factory=dict)
    """The processors on which each component could run, as they were read back when the clock started."""
    network: dict[str, Any] | None = None
    """The network that joined the components; None for loopback."""
    capture: dict[str, int] | None = None
    """tcpdump's own counts of packets; None without a capture."""
    restarts: int = 0
    """How often the launcher started a killed process again."""
    takeovers: int = 0
    """How many standbys became the engine."""
    timed: Mapping[int, int] | None = None
    """Orders whose completion time was reported, by pair; None where no process was started again."""
    broker_sockets: list[dict[str, Any]] = field(default_factory=list)
    """The broker's ends of its connections to the components, as far as they could be read back."""

    def of_pair(self, pair: int) -> Outcome:
        """The part of the outcome that belongs to one pair."""
        gateways = {k: gateway for k, gateway in self.gateways.items() if k == pair}
        engines = {k: engine for k, engine in self.engines.items() if k == pair}
        alone = Lineup((pair,), ())
        return Outcome(lineup=alone, gateways=gateways, engines=engines, traffic=self.traffic, timed=self.timed)

    @property
    def results(self) -> dict[str, Result]:
        """Results by component, pair by pair; the reporters come last."""
        roles: dict[str, Mapping[int, Result]]
        roles = {"gateway": self.gateways, "engine": self.engines, "reporter": self.reporters}
        by_name = {named(role, k): result for role, found in roles.items() for k, result in found.items()}
        return {name: by_name[name] for name in self._components if name in by_name}

    @property
    def missing(self) -> list[str]:
        """The components that left no result."""
        return [name for name in self._components if name not in self.results]

    @property
    def _components(self) -> list[str]:
        of_pairs = [named(role, pair) for pair in self.lineup.pairs for role in ("gateway", "engine")]
        return [*of_pairs, *(named("reporter", each) for each in self.lineup.reporters)]

    @property
    def sockets(self) -> dict[str, list[dict[str, Any]]]:
        """Every socket that was read back, by component."""
        return {**{name: result.sockets for name, result in self.results.items()}, "broker": self.broker_sockets}

    def of_this_run(self, accepted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The accepted connections whose other end belongs to a component of this run."""
        ends = {socket["local"] for sockets in self.sockets.values() for socket in sockets}
        return [socket for socket in accepted if socket["peer"] in ends]


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


KINDS: dict[str, type[Result]] = {"gateway": GatewayResult, "engine": EngineResult, "reporter": ReporterResult}


def read_results(records: Mapping[str, dict[str, Any]]) -> tuple[dict[str, Result], tuple[str, ...]]:
    """The components' results, from their records, and a sentence for each record that is malformed."""
    import msgspec

    found: dict[str, Result] = {}
    unreadable = []
    for name, record in records.items():
        try:
            found[name] = msgspec.convert(record, KINDS[role_of(name)])
        except msgspec.ValidationError as error:
            unreadable.append(f"the {name}'s result cannot be read: {error}")
    return found, tuple(unreadable)


OF_GATEWAYS = ("orders_answered", "trades", "confirmations", "quotes", "rejections", "samples")
MEASURED: dict[str, type[Any]] = {
    "orders_sent": Order,
    "trades": Trade,
    "confirmations": Confirmation,
    "quotes": Quote,
    "rejections": Rejection,
}


def mean_message(counts: Mapping[str, int]) -> dict[str, float]:
    """`mean_message_bytes` of orders and answers, as often as each kind came; empty if their numbers are not known."""
    numbers = {kind: counts.get(name, 0) for name, kind in MEASURED.items()}
    total = sum(number * LAYOUTS[kind].size for kind, number in numbers.items())
    return {"mean_message_bytes": total / sum(numbers.values())} if numbers[Order] and "trades" in counts else {}


def counts(outcome: Outcome) -> dict[str, int]:
    """Counts of messages; what no component counted is absent."""
    gateways, engines, reporters = outcome.gateways.values(), outcome.engines.values(), outcome.reporters.values()
    found = Counter[str]()
    for gateway in gateways:
        found.update(orders_sent=gateway.orders.messages, answers_received=gateway.answers.messages)
        found.update({name: getattr(gateway, name) for name in OF_GATEWAYS})
    for pair in outcome.lineup.pairs:
        if pair not in outcome.gateways and (traffic := outcome.traffic.get(pair)):
            found.update(_last_reported(traffic, outcome.engines.get(pair)))
    for engine in engines:
        found.update(orders_received=engine.orders.messages, answers_sent=engine.answers.messages)
    for reporter in reporters:
        found.update(statistics_sent=reporter.announced, statistics_received=reporter.received)
    found["junk_frames"] = sum(result.junk_frames for result in outcome.results.values())
    refusing: list[EngineResult | ReporterResult] = [*engines, *reporters]
    refused = sum(result.handshakes_refused for result in refusing)
    has_broker = bool(outcome.broker) or any(each.link for each in gateways) or any(each.link for each in engines)
    if refused or (refusing and not has_broker):  # a broker turns peers away itself, and tells nobody
        found["handshakes_refused"] = refused
    return dict(found)


def _last_reported(traffic: Mapping[str, int], engine: EngineResult | None) -> dict[str, int]:
    """Counts of a gateway without a result: up to its last whole second, and at least what its engine received."""
    received = engine.orders.messages if engine else 0
    return {
        "orders_sent": max(traffic["orders_sent"], received),
        "orders_answered": traffic["orders_answered"],
        "answers_received": traffic["messages_received"],
    }


def checksums(outcome: Outcome) -> dict[str, str]:
    """The checksums of both streams; several pairs' are summed modulo 2^64."""
    if not outcome.gateways:
        return {"hash": NAME}
    streams = [(gateway.orders.checksum, gateway.answers.checksum) for gateway in outcome.gateways.values()]
    sums = [sum(int(each, 16) for each in of_direction) % 2**64 for of_direction in zip(*streams, strict=True)]
    return {"hash": NAME, "orders": f"{sums[0]:016x}", "answers": f"{sums[1]:016x}"}


def recovered(outcome: Outcome) -> dict[str, Any] | None:
    """The work of going on after breaks; None if no session broke."""
    recoveries = [gateway.recovery for gateway in outcome.gateways.values() if gateway.recovery]
    journals = [engine.journal or {} for engine in outcome.engines.values()]
    resumed = sum(each["sessions"] - 1 for each in recoveries)
    if not outcome.restarts and not resumed:
        return None
    return {
        "restarts": outcome.restarts,
        "takeovers": outcome.takeovers,
        "sessions_resumed": resumed,
        "orders_resent": sum(each["orders_resent"] for each in recoveries),
        "orders_matched_again": sum(journal.get("orders_replayed", 0) for journal in journals),
        "orders_untimed": sum(untimed(outcome).values()),
        "without_service_s": max((each["without_service_s"] for each in recoveries), default=0.0),
    }


def untimed(outcome: Outcome) -> dict[int, int]:
    """Answered orders without a completion time, by pair; below 0 where some have two."""
    times = outcome.timed
    return {k: each.orders_answered - times.get(k, 0) for k, each in outcome.gateways.items() if times is not None}


def duration_s(outcome: Outcome) -> float | None:
    """From the first order's hand-over to the last answer, over all pairs; None if nothing was answered.

    Wall clocks relate pairs on several hosts.
    """
    spans = [
        (each.began_wall_ns, each.began_wall_ns + round(length_s * 1e9))
        for each in outcome.gateways.values()
        if (length_s := each.duration_s) is not None
    ]
    return (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e9 if spans else None


def rates(outcome: Outcome, offered_each_per_s: float | None) -> dict[str, float | None]:
    """Rates over `duration_s`; the offered rate is None without a schedule."""
    pairs, length_s = len(outcome.lineup.pairs), duration_s(outcome)
    found = {"offered_orders_per_s": None if offered_each_per_s is None else offered_each_per_s * pairs}
    if length_s:
        gateways = outcome.gateways.values()
        found["orders_per_s"] = sum(gateway.orders_answered for gateway in gateways) / length_s
        found["answers_per_s"] = sum(gateway.answers.messages for gateway in gateways) / length_s
    return found


def components(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Use of the machine by role. Several components of a role are summed; peak memory is that of the largest."""
    used: dict[str, dict[str, Any]] = {}
    for name, result in outcome.results.items():
        used[role_of(name)] = _used(used.get(role_of(name), {}), result.usage)
    return used | ({"broker": outcome.broker_usage} if outcome.broker_usage else {})


def _used(so_far: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    total = {name: value + so_far.get(name, 0) for name, value in usage.items()}
    peaks = [each["max_rss_bytes"] for each in (so_far, usage) if "max_rss_bytes" in each]
    return {**total, "max_rss_bytes": max(peaks)} if peaks else total
