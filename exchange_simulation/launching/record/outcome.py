"""The outcome of a run: the results of its components, failures outside of them, and sums over its pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exchange.instances import instance_of, named, role_of
from exchange.messages import LAYOUTS, Confirmation, Order, Quote, Rejection, Trade
from exchange.results import NAME, ComponentResult, EngineResult, GatewayResult, ReporterResult, SubscriberResult
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.noise import Noise


@dataclass(kw_only=True)
class RunOutcome:
    """The results of a run's components, by instance. A component that left no result is absent."""

    lineup: Lineup = field(default_factory=Lineup)
    gateways: Mapping[int, GatewayResult] = field(default_factory=dict)
    engines: Mapping[int, EngineResult] = field(default_factory=dict)
    reporters: Mapping[int, ReporterResult] = field(default_factory=dict)
    subscribers: Mapping[int, SubscriberResult] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    traffic: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Sums of the traffic records of gateways that left no result, by pair."""
    streams: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Counts from the recorded streams of gateways that left no result, by pair."""
    broker: dict[str, Any] | None = None
    """Facts about the broker and the depth of its queues; None without a broker."""
    broker_usage: dict[str, Any] | None = None
    """The broker's use of the machine; None if it could not be measured."""
    noise: Noise | None = None
    """The machine's other work while the clock ran; None if the clock never stopped."""
    affinity: dict[str, list[int]] = field(default_factory=dict)
    """The processors on which each component could run when the clock started."""
    network: dict[str, Any] | None = None
    """The network that joined the components; None for loopback."""
    hosts: list[dict[str, Any]] | None = None
    """The hosts of the components; None for a run on one host."""
    one_way_us: dict[str, Any] | None = None
    """One-way times of a run over several hosts; None if they are not known."""
    capture: dict[str, int] | None = None
    """tcpdump's own counts of packets; None without a capture."""
    restarts: int = 0
    """The number of times that the launcher restarted a killed process."""
    takeovers: int = 0
    """The number of standbys that became the engine."""
    timed: Mapping[int, int] | None = None
    """By pair, the number of orders whose completion time was reported; None if no process was restarted."""
    broker_sockets: list[dict[str, Any]] = field(default_factory=list)
    """The broker's ends of its connections to the components, as far as the system shows them."""

    def of_pair(self, pair: int) -> RunOutcome:
        """Return the part of the outcome that belongs to one pair; a market is one pair.

        Facts that are kept by pair (traffic, streams, timed) are kept whole: readers ask for the pair's own.
        """
        if self.lineup.is_market:
            return RunOutcome(
                lineup=replace(self.lineup, reporters=()),
                gateways=self.gateways,
                engines=self.engines,
                traffic=self.traffic,
                streams=self.streams,
            )
        return RunOutcome(
            lineup=Lineup(pairs=(pair,), reporters=()),
            gateways={pair: self.gateways[pair]} if pair in self.gateways else {},
            engines={pair: self.engines[pair]} if pair in self.engines else {},
            traffic=self.traffic,
            streams=self.streams,
            timed=self.timed,
        )

    def engines_of(self, gateway: int) -> dict[int, EngineResult]:
        """Return the results of a gateway's engines by engine number. An engine that left no result is absent.

        In a market, a result is reduced to the engine's session with this gateway.
        """
        results = {}
        for number in self.lineup.engines_of(gateway):
            if number in self.engines:
                results[number] = _of_session(self.engines[number], gateway)
        return results

    def of_gateway(self, gateway: int) -> RunOutcome:
        """Return the part of the outcome that belongs to one gateway of a market."""
        return RunOutcome(
            lineup=replace(self.lineup, reporters=(), subscribers=(), only_gateway=gateway),
            gateways={gateway: self.gateways[gateway]} if gateway in self.gateways else {},
            engines=self.engines_of(gateway),
            traffic=self.traffic,
            streams=self.streams,
        )

    @property
    def lacks_a_gateway(self) -> bool:
        """Whether some gateway left no result."""
        return len(self.gateways) < len(self.lineup.gateways)

    @property
    def gateways_with_lower_bounds(self) -> list[int]:
        """Gateways that left no result, but traffic records or streams. Their counts are lower bounds: what reached
        the disk.
        """
        return [
            number for number in self.lineup.gateway_numbers if number not in self.gateways and self.reported(number)
        ]

    def reported(self, pair: int) -> dict[str, int]:
        """Return a pair's counts: the larger of those in its traffic records and in its recorded streams."""
        traffic = self.traffic.get(pair)
        by_source = [self.streams.get(pair, {})]
        if traffic:
            by_source.append(
                {
                    "orders_sent": traffic["orders_sent"],
                    "orders_answered": traffic["orders_answered"],
                    "answers_received": traffic["messages_received"],
                }
            )
        largest: dict[str, int] = {}
        for counts_of_source in by_source:
            for name, count in counts_of_source.items():
                largest[name] = max(count, largest.get(name, 0))
        return largest

    @property
    def results(self) -> dict[str, ComponentResult]:
        """Results by component, pair by pair; reporters and subscribers come last."""
        by_name: dict[str, ComponentResult] = {}
        for pair, gateway in self.gateways.items():
            by_name[named("gateway", pair)] = gateway
        for pair, engine in self.engines.items():
            by_name[named("engine", pair)] = engine
        for instance, reporter in self.reporters.items():
            by_name[named("reporter", instance)] = reporter
        for number, subscriber in self.subscribers.items():
            by_name[named("subscriber", number)] = subscriber
        return {name: by_name[name] for name in self._components if name in by_name}

    @property
    def missing(self) -> list[str]:
        """The components that left no result."""
        return [name for name in self._components if name not in self.results]

    @property
    def _components(self) -> list[str]:
        names = []
        if self.lineup.is_market:
            names += [*self.lineup.gateways, *self.lineup.engines]
        else:
            for pair in self.lineup.pairs:
                names += [named("gateway", pair), named("engine", pair)]
        names += [named("reporter", instance) for instance in self.lineup.reporters]
        return names + self.lineup.subscriber_names

    @property
    def sockets(self) -> dict[str, list[dict[str, Any]]]:
        """Every socket that was read back, by component."""
        return {**{name: result.sockets for name, result in self.results.items()}, "broker": self.broker_sockets}

    def accepted_from_components(self, accepted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the accepted connections whose other end belongs to a component of this run."""
        ends = {socket["local"] for sockets in self.sockets.values() for socket in sockets}
        return [socket for socket in accepted if socket["peer"] in ends]


def _of_session(engine: EngineResult, gateway: int) -> EngineResult:
    """Return the part of an engine's result that belongs to a gateway's session; all of it if there are no sessions."""
    for session in engine.sessions:
        if session.gateway == gateway:
            return replace(
                engine,
                orders=session.orders,
                answers=session.answers,
                gateway_said=session.gateway_said,
                sessions=[session],
                market=None,
            )
    return engine


def outcome_of(lineup: Lineup, results: Mapping[str, ComponentResult]) -> RunOutcome:
    """Return the outcome of the lineup's components; components outside the lineup are ignored."""
    gateways: dict[int, GatewayResult] = {}
    engines: dict[int, EngineResult] = {}
    reporters: dict[int, ReporterResult] = {}
    subscribers: dict[int, SubscriberResult] = {}
    in_lineup = [name for name in results if name in lineup.names]
    for name in sorted(in_lineup, key=instance_of):
        result = results[name]
        instance = instance_of(name)
        if isinstance(result, GatewayResult):
            gateways[instance] = result
        elif isinstance(result, EngineResult):
            engines[instance] = result
        elif isinstance(result, SubscriberResult):
            subscribers[instance] = result
        else:
            reporters[instance] = result
    return RunOutcome(lineup=lineup, gateways=gateways, engines=engines, reporters=reporters, subscribers=subscribers)


KINDS: dict[str, type[ComponentResult]] = {
    "gateway": GatewayResult,
    "engine": EngineResult,
    "reporter": ReporterResult,
    "subscriber": SubscriberResult,
}


def read_results(records: Mapping[str, dict[str, Any]]) -> tuple[dict[str, ComponentResult], tuple[str, ...]]:
    """Return the components' results, from their records, and a sentence for each record that is malformed."""
    import msgspec

    results: dict[str, ComponentResult] = {}
    unreadable = []
    for name, record in records.items():
        try:
            results[name] = msgspec.convert(record, KINDS[role_of(name)])
        except msgspec.ValidationError as error:
            unreadable.append(f"the {name}'s result cannot be read: {error}")
    return results, tuple(unreadable)


COUNTS_OF_GATEWAYS = ("orders_answered", "trades", "confirmations", "quotes", "rejections", "samples")
MESSAGE_BY_COUNT: dict[str, type[Any]] = {
    "orders_sent": Order,
    "trades": Trade,
    "confirmations": Confirmation,
    "quotes": Quote,
    "rejections": Rejection,
}


def mean_message_size(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the field `mean_message_bytes`, over all orders and answers; empty if their numbers are unknown.

    Messages of a mix have several sizes, and are not counted by kind.
    """
    if not counts.get("orders_sent") or "trades" not in counts or "replaced" in counts:
        return {}
    messages = 0
    size = 0
    for name, kind in MESSAGE_BY_COUNT.items():
        number = counts.get(name, 0)
        messages += number
        size += number * LAYOUTS[kind].size
    return {"mean_message_bytes": size / messages}


def counts(outcome: RunOutcome) -> dict[str, int]:
    """Return counts of messages. A count that no component made is absent."""
    gateways = outcome.gateways.values()
    engines = outcome.engines.values()
    reporters = outcome.reporters.values()
    sums = Counter[str]()
    for gateway in gateways:
        sums.update(orders_sent=gateway.orders.messages, answers_received=gateway.answers.messages)
        sums.update({name: getattr(gateway, name) for name in COUNTS_OF_GATEWAYS})
        if gateway.settings.get("mix"):
            sums.update(cancelled=gateway.cancelled, replaced=gateway.replaced)
    for number in outcome.gateways_with_lower_bounds:
        orders_received = sum(engine.orders.messages for engine in outcome.engines_of(number).values())
        sums.update(_last_reported(outcome.reported(number), orders_received))
    for engine in engines:
        sums.update(orders_received=engine.orders.messages, answers_sent=engine.answers.messages)
    for reporter in reporters:
        sums.update(statistics_sent=reporter.announced, statistics_received=reporter.received)
    for result in outcome.results.values():
        sums["junk_frames"] += result.junk_frames
    sums.setdefault("junk_frames", 0)
    listeners: list[EngineResult | ReporterResult] = [*engines, *reporters]
    refused = sum(listener.handshakes_refused for listener in listeners)
    # A broker refuses peers itself and does not tell us. So over a broker no 0 is reported.
    is_known = bool(listeners) and not _has_broker(outcome)
    if refused or is_known:
        sums["handshakes_refused"] = refused
    return dict(sums)


def _has_broker(outcome: RunOutcome) -> bool:
    """Return True if the run went over a broker, as far as the results say."""
    ends: list[GatewayResult | EngineResult] = [*outcome.gateways.values(), *outcome.engines.values()]
    return bool(outcome.broker) or any(end.link for end in ends)


def _last_reported(reported: Mapping[str, int], received: int) -> dict[str, int]:
    """Return counts of a gateway without a result: its reported counts, with at least the orders of its engines."""
    return {**reported, "orders_sent": max(reported["orders_sent"], received)}


def checksums(outcome: RunOutcome) -> dict[str, str]:
    """Return the checksums of both streams, summed over the pairs modulo 2^64."""
    if not outcome.gateways:
        return {"hash": NAME}
    orders = sum(int(gateway.orders.checksum, 16) for gateway in outcome.gateways.values()) % 2**64
    answers = sum(int(gateway.answers.checksum, 16) for gateway in outcome.gateways.values()) % 2**64
    return {"hash": NAME, "orders": f"{orders:016x}", "answers": f"{answers:016x}"}


def recovery_facts(outcome: RunOutcome) -> dict[str, Any] | None:
    """Return facts about resumed sessions and restarts; None if no session broke."""
    recoveries = [gateway.recovery for gateway in outcome.gateways.values() if gateway.recovery]
    journals = [engine.journal or {} for engine in outcome.engines.values()]
    resumed = sum(recovery["sessions"] - 1 for recovery in recoveries)
    if not outcome.restarts and not resumed:
        return None
    return {
        "restarts": outcome.restarts,
        "takeovers": outcome.takeovers,
        "sessions_resumed": resumed,
        "orders_resent": sum(recovery["orders_resent"] for recovery in recoveries),
        "orders_matched_again": sum(journal.get("orders_replayed", 0) for journal in journals),
        "orders_untimed": sum(untimed_orders(outcome).values()),
        "without_service_s": max((recovery["without_service_s"] for recovery in recoveries), default=0.0),
    }


def untimed_orders(outcome: RunOutcome) -> dict[int, int]:
    """Return answered orders without a completion time, by pair; below 0 if some orders have two."""
    if outcome.timed is None:
        return {}
    return {pair: gateway.orders_answered - outcome.timed.get(pair, 0) for pair, gateway in outcome.gateways.items()}


def duration_s(outcome: RunOutcome) -> float | None:
    """Return the time from the first order's hand-over to the last answer, over all pairs; None without an answer.

    Pairs may be on several hosts, so their times are related by the wall clock.
    """
    begins_ns = []
    ends_ns = []
    for gateway in outcome.gateways.values():
        if gateway.duration_s is not None:
            begins_ns.append(gateway.began_wall_ns)
            ends_ns.append(gateway.began_wall_ns + round(gateway.duration_s * 1e9))
    if not begins_ns:
        return None
    return (max(ends_ns) - min(begins_ns)) / 1e9


def rates(outcome: RunOutcome, offered_orders_per_s: float | None) -> dict[str, float | None]:
    """Return the rates of all pairs together, over `duration_s`.

    `offered_orders_per_s` is the rate that each gateway was offered, None without a schedule.
    """
    gateways = len(outcome.lineup.gateways)
    offered_together = None if offered_orders_per_s is None else offered_orders_per_s * gateways
    by_name = {"offered_orders_per_s": offered_together}
    length_s = duration_s(outcome)
    if length_s:
        results = outcome.gateways.values()
        by_name["orders_per_s"] = sum(gateway.orders_answered for gateway in results) / length_s
        by_name["answers_per_s"] = sum(gateway.answers.messages for gateway in results) / length_s
    return by_name


def components(outcome: RunOutcome) -> dict[str, dict[str, Any]]:
    """Return the use of the machine by role: the sum over components, but the largest peak of memory."""
    usage_of: dict[str, dict[str, Any]] = {}
    for name, result in outcome.results.items():
        role = role_of(name)
        usage_of[role] = _added_usage(usage_of.get(role, {}), result.usage)
    if outcome.broker_usage:
        usage_of["broker"] = outcome.broker_usage
    return usage_of


def _added_usage(so_far: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of both, but the larger peak of memory."""
    total = {name: value + so_far.get(name, 0) for name, value in usage.items()}
    peaks = [part["max_rss_bytes"] for part in (so_far, usage) if "max_rss_bytes" in part]
    if peaks:
        total["max_rss_bytes"] = max(peaks)
    return total
