"""The status of a run, which says whether it can be trusted: complete, saturated, invalid or partial, with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exchange.instances import instance_of, named, role_of
from exchange.results import EngineResult, GatewayResult, SessionAtEngine, StreamCounts
from exchange_simulation.launching.record.broker_pauses import pause_words
from exchange_simulation.launching.record.market_data import market_data_differences
from exchange_simulation.launching.record.outcome import RunOutcome, counts, untimed_orders

LEAST_SHARE_OF_OFFERED = 0.99
MOST_LAG_P99_US = 10_000.0
SMALL_BACKLOG = 100
"""A backlog that grows by this many messages does not say that answers fall behind."""
LAG_REASON = re.compile(r"(pair \d+: |gateway(\.\d+)?: )?the \w+'s p99 lag is ")
MAY_DIFFER = {"transport", "cpus", "timeout_s", "record"}
"""Settings in which the gateways of one run may differ."""
JITTER_S = 0.001
"""The delay that one late wake-up may cause. In a short run it can be over 1 %, although the rate was kept."""


def judge(
    outcome: RunOutcome, offered_orders_per_s: float | None, lag_p99_us: Mapping[int, float]
) -> tuple[str, list[str]]:
    """Return the run's status and its reasons. Partial comes before invalid, and invalid before saturated.

    The status of a run is at least as bad as the status of each pair. `offered_orders_per_s` is the mean rate that each
    pair is offered. `lag_p99_us` is by pair; it is empty for a run without a schedule.
    """
    partial = list(_reasons_for_partial(outcome))
    if partial:
        return "partial", _with_order_counts(outcome, partial + _pause_of_broker(outcome))
    invalid = list(_reasons_for_invalid(outcome))
    if invalid:
        return "invalid", invalid
    saturated = list(_reasons_for_saturated(outcome, offered_orders_per_s, lag_p99_us))
    if saturated:
        return "saturated", saturated
    return "complete", []


def _with_order_counts(outcome: RunOutcome, reasons: list[str]) -> list[str]:
    """Put the numbers of orders before the reasons, if orders without a known answer were sent.

    The numbers of a gateway that left no result are lower bounds. With such a gateway, the numbers are given even if no
    order is known to lack an answer.
    """
    counts_of_run = counts(outcome)
    sent = counts_of_run.get("orders_sent", 0)
    answered = counts_of_run.get("orders_answered", 0)
    if outcome.gateways_with_lower_bounds:
        return [f"orders sent at least {sent:,}, answered at least {answered:,}", *reasons]
    if sent <= answered:
        return reasons
    return [f"orders sent {sent:,}, answered {answered:,}, unknown {sent - answered:,}", *reasons]


def _reasons_for_partial(outcome: RunOutcome) -> Iterator[str]:
    """Yield the failures, the components without a result, and the reasons of components that were stopped."""
    yield from outcome.failures
    for name in outcome.missing:
        note_on_counts = ""
        if role_of(name) == "gateway" and instance_of(name) in outcome.streams:
            note_on_counts = "; its counts end with its recorded streams"
        elif role_of(name) == "gateway" and instance_of(name) in outcome.traffic:
            note_on_counts = "; its counts end with the last second that it reported"
        yield f"the {name} left no result{note_on_counts}"
    for name, result in outcome.results.items():
        if result.stopped:
            yield f"{name}: {result.stopped}"
        if isinstance(result, EngineResult):
            for session in result.sessions:
                if session.dropped:
                    yield f"the {name} dropped {named('gateway', session.gateway)}: {session.dropped}"


def _pause_of_broker(outcome: RunOutcome) -> list[str]:
    """Return the sentence on a broker that stood still; empty if it did not, or if there is no broker.

    A broker that stalls is noticed in this way only: each component reports that its peer said nothing.
    """
    sentence = pause_words(outcome.broker)
    return [sentence] if sentence else []


def _reasons_for_invalid(outcome: RunOutcome) -> Iterator[str]:
    """Yield the contradictions between components, settings and sockets; none if a component left no result."""
    if outcome.missing:
        return
    for number in outcome.lineup.gateway_numbers:
        yield from _with_pair_number(outcome, number, _session_differences(outcome, number))
        yield from _with_pair_number(outcome, number, _untimed_reasons(untimed_orders(outcome).get(number, 0)))
    yield from _market_differences(outcome)
    for reporter in outcome.lineup.reporters:
        yield from _statistics_differences(outcome, reporter)
    yield from market_data_differences(outcome)
    yield from _setting_differences(outcome)
    yield from sockets_differ(outcome.sockets)


def _market_differences(outcome: RunOutcome) -> Iterator[str]:
    """Yield the differences between what an engine of several gateways matched, and what it took and gave them all."""
    for number, engine in outcome.engines.items():
        market = engine.market
        if market is None:
            continue
        name = named("engine", number)
        if market.orders.messages != engine.orders.messages:
            yield f"the {name} took {engine.orders.messages} orders, and matched {market.orders.messages}"
        others = market.answers.messages - market.quotes
        expected = others + market.quotes * market.receivers_of_a_quote
        given = engine.answers.messages + sum(session.undelivered for session in engine.sessions)
        if expected != given:
            yield (
                f"the {name}'s {others} answers, and its {market.quotes} quotes for {market.receivers_of_a_quote} "
                f"gateways each, are not the {given} that it gave its gateways"
            )


def _setting_differences(outcome: RunOutcome) -> Iterator[str]:
    """Yield the settings in which gateways that were started by hand differ. The first one's settings judge the run."""
    first_number = next(iter(outcome.gateways))
    first = outcome.gateways[first_number]
    for number, gateway in outcome.gateways.items():
        for name, value in gateway.settings.items():
            value_of_first = first.settings.get(name)
            if name not in MAY_DIFFER and value != value_of_first:
                yield (
                    f"{named('gateway', number)} was started with {name} {value}, {named('gateway', first_number)} "
                    f"with {value_of_first}: give all the same"
                )


def _with_pair_number(outcome: RunOutcome, pair: int, reasons: Iterator[str]) -> Iterator[str]:
    """Name the pair, or the gateway, in each reason, if there are several."""
    prefix = ""
    if outcome.lineup.is_market:
        prefix = f"{named('gateway', pair)}: "
    elif len(outcome.lineup.pairs) > 1:
        prefix = f"pair {pair}: "
    return (prefix + reason for reason in reasons)


def _session_differences(outcome: RunOutcome, number: int) -> Iterator[str]:
    """Yield what is wrong with a gateway's orders, and with its session at each of its engines."""
    gateway = outcome.gateways[number]
    engines = outcome.engines_of(number)
    if not gateway.sessions:
        for engine in engines.values():
            yield from _stream_differences(gateway, engine)
    else:
        sent = sum(session.orders.messages for session in gateway.sessions)
        if sent != gateway.orders.messages:
            yield f"{gateway.orders.messages} orders were handed over, {sent} of them to engines"
        for session in gateway.sessions:
            for difference in _stream_differences(session, engines[session.engine]):
                yield f"at {named('engine', session.engine)}, {difference}"
    if gateway.orders_answered != gateway.orders.messages:
        yield f"{gateway.orders.messages - gateway.orders_answered} orders were never answered"


def _stream_differences(gateway: GatewayResult | SessionAtEngine, engine: EngineResult) -> Iterator[str]:
    """Yield the differences between the streams that one end sent and the other end received."""
    if gateway.orders != engine.orders:
        yield f"orders differ: {gateway.orders} sent, {engine.orders} received"
    if engine.answers != gateway.answers:
        yield f"answers differ: {engine.answers} sent, {gateway.answers} received"
    yield from _end_differences(gateway, engine)


def _untimed_reasons(orders: int) -> Iterator[str]:
    """Yield a reason if answered orders lack a completion time, or have two, since processes were killed."""
    if orders > 0:
        yield f"{orders:,} orders without a completion time: it died with the gateway and its reporter"
    if orders < 0:
        yield f"{-orders:,} completion times too many: the gateway was killed while it reported a second"


def _statistics_differences(outcome: RunOutcome, instance: int) -> Iterator[str]:
    """Yield a reason for each kind of message that a reporter's sources sent and the reporter did not receive."""
    reporter = outcome.reporters[instance]
    lineup = outcome.lineup.of_reporter(instance)
    prefix = "" if len(outcome.lineup.reporters) == 1 else f"{named('reporter', instance)}: "
    sent = sum(outcome.gateways[number].statistics_sent for number in lineup.gateway_numbers)
    sent += sum(outcome.engines[engine].statistics_sent for engine in lineup.engine_numbers)
    if sent != reporter.announced:
        yield f"{prefix}statistics differ: {sent} messages sent, {reporter.announced} announced"
    if reporter.received != reporter.announced:
        yield f"{prefix}statistics differ: {reporter.announced} messages sent, {reporter.received} received"
    elif not reporter.checksums_agree:
        yield (
            f"{prefix}statistics differ: {reporter.announced} messages sent and received, but the checksum of those "
            f"sent is another than that of those received"
        )
    sampled = sum(outcome.gateways[number].samples for number in lineup.gateway_numbers)
    if reporter.samples != sampled:
        yield f"{prefix}{sampled} orders were sampled, {reporter.samples} complete samples arrived"


def sockets_differ(sockets_of: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a reason for each socket whose TCP_NODELAY differs from the requested one. Sockets are by role."""
    for role, sockets in sockets_of.items():
        for socket in sockets:
            if socket["tcp_nodelay"] != socket["tcp_nodelay_asked"]:
                asked = "on" if socket["tcp_nodelay_asked"] else "off"
                is_now = "on" if socket["tcp_nodelay"] else "off"
                yield f"TCP_NODELAY of the {role}'s {socket['local']} was to be {asked}, and is {is_now}"


def _end_differences(gateway: GatewayResult | SessionAtEngine, engine: EngineResult) -> Iterator[str]:
    """Yield a reason if a side's end message is missing, or differs from what the other side counted.

    `gateway` has the engine's end message, and `engine` has the gateway's.
    """
    if engine.gateway_said is None:
        yield "the gateway's end message never came"
    else:
        sent_by_gateway = _sent_of(engine.gateway_said)
        if sent_by_gateway != engine.orders:
            yield f"the gateway's end message says {sent_by_gateway} sent, the engine counted {engine.orders}"
    if gateway.engine_said is None:
        yield "the engine's end message never came"
    else:
        sent_by_engine = _sent_of(gateway.engine_said)
        received_by_engine = _received_of(gateway.engine_said)
        if sent_by_engine != gateway.answers:
            yield f"the engine's end message says {sent_by_engine} sent, the gateway counted {gateway.answers}"
        if received_by_engine != gateway.orders:
            yield f"the engine's end message says {received_by_engine} received, the gateway counted {gateway.orders}"


def _sent_of(end_message: Mapping[str, Any]) -> StreamCounts:
    return StreamCounts(messages=end_message["sent"], checksum=f"{end_message['sent_checksum']:016x}")


def _received_of(end_message: Mapping[str, Any]) -> StreamCounts:
    return StreamCounts(messages=end_message["received"], checksum=f"{end_message['received_checksum']:016x}")


def _reasons_for_saturated(
    outcome: RunOutcome, offered_orders_per_s: float | None, lag_p99_us: Mapping[int, float]
) -> Iterator[str]:
    """Yield the reasons of all pairs that did not keep up with their rate. A pause of the broker comes first, once."""
    pause = pause_words(outcome.broker)
    has_pause = False
    reasons_of_pairs: list[str] = []
    for pair, gateway in outcome.gateways.items():
        reasons = list(_reasons_of_pair(gateway, offered_orders_per_s, lag_p99_us.get(pair), pause))
        if pause in reasons:
            has_pause = True
            reasons.remove(pause)
        reasons_of_pairs.extend(_with_pair_number(outcome, pair, iter(reasons)))
    if has_pause:
        yield pause
    yield from reasons_of_pairs


def _reasons_of_pair(
    gateway: GatewayResult, offered_orders_per_s: float | None, lag_p99_us: float | None, pause: str
) -> Iterator[str]:
    """Yield reasons if a pair did not keep up with its rate. A single order has no rate.

    `pause` is the sentence on a broker that stood still, if it did.
    """
    if offered_orders_per_s is None or gateway.orders.messages < 2:
        return
    offered = Offered(
        messages=gateway.orders.messages,
        per_s=offered_orders_per_s,
        schedule_s=gateway.schedule_s or 0.0,
        handing_over_s=gateway.handing_over_s or 0.0,
        lag_p99_us=lag_p99_us,
        backlog_growth=gateway.backlog_growth,
        at_once=gateway.due_at_once,
        blocked_s=gateway.link.get("blocked_s", 0.0),
        broken_s=(gateway.recovery or {}).get("without_service_s", 0.0),
        pause=pause,
    )
    yield from offered.reasons_for_saturated()


@dataclass(frozen=True)
class Offered:
    """Figures of messages that fell due at a rate: the gateway's orders, or a publisher's messages."""

    messages: int
    per_s: float
    schedule_s: float
    """Time between the due times of the first and the last message."""
    handing_over_s: float
    """Time between handing over the first and the last message."""
    lag_p99_us: float | None
    backlog_growth: int
    """Growth of the backlog in the last quarter: messages without an answer, or not delivered."""
    at_once: int = 1
    """The largest number of messages that were due at the same time."""
    noun: str = "orders"
    """The messages, in sentences."""
    backlog: str = "unanswered orders"
    """The messages of the backlog, in sentences."""
    sender: str = "the gateway"
    """The component that handed the messages over, in sentences."""
    blocked_s: float = 0.0
    """Time in which a broker in alarm took nothing from the link."""
    broken_s: float = 0.0
    """Time without an answer around the breaks of a session that went on."""
    pause: str = ""
    """The sentence on a broker that stood still; empty if it did not."""

    def reasons_for_saturated(self) -> Iterator[str]:
        """Yield reasons if the rate was not kept. The lag comes last: a lag alone does not mean a lower rate."""
        achieved = self._achieved_per_s
        is_short = achieved < LEAST_SHARE_OF_OFFERED * self.per_s
        messages_of_last_quarter = self.messages / 4
        allowed_growth = max(SMALL_BACKLOG, self.at_once, (1 - LEAST_SHARE_OF_OFFERED) * messages_of_last_quarter)
        is_growing = self.backlog_growth > allowed_growth
        if is_short:
            yield f"{achieved:,.0f} of {self.per_s:,.0f} offered {self.noun}/s were achieved"
        is_blocked = self.blocked_s * 1e6 > MOST_LAG_P99_US
        if is_blocked:
            yield f"the broker was in alarm, and took nothing for {self.blocked_s:,.2f} s"
        if is_growing:
            yield f"{self.backlog} were still growing at the end, by {self.backlog_growth:,} in the last quarter"
        if self.lag_p99_us is not None and self.lag_p99_us > MOST_LAG_P99_US:
            if self.broken_s:
                yield f"the session was broken, and nothing was answered for {self.broken_s:,.2f} s"
            if self.pause:
                yield self.pause
            reason = f"{self.sender}'s p99 lag is {self.lag_p99_us / 1e3:,.1f} ms"
            has_other_reason = is_short or is_growing or is_blocked or self.broken_s or self.pause
            if not has_other_reason:
                reason += f", though the rate was held and answers kept up: a delay on {self.sender}'s side"
            yield reason

    @property
    def _achieved_per_s(self) -> float:
        """The rate at which messages were handed over; the offered rate if the last message was in time.

        Messages that are due at once may be spread over (at_once - 1) periods of the rate.
        """
        allowed_s = self.schedule_s + (self.at_once - 1) / self.per_s
        if self.handing_over_s - allowed_s <= JITTER_S:
            return self.per_s
        return self.per_s * allowed_s / self.handing_over_s


def is_gateway_lag_only(reasons: Iterable[str]) -> bool:
    """Return True if all reasons of a saturated run are lags of gateways: the rate was kept, and all was answered."""
    return all(LAG_REASON.match(reason) for reason in reasons)
