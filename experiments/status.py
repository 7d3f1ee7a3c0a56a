"""Whether a run can be trusted: complete, saturated, invalid or partial, with the reasons as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exchange.results import EngineResult, GatewayResult, ReporterResult, StreamCounts
from experiments.noise import Noise

LEAST_SHARE_OF_OFFERED = 0.99
MOST_LAG_P99_US = 10_000.0
JITTER_S = 0.001
"""What one late wake-up may cost: more than 1 % of a run of a few orders, and no sign of its rate."""


@dataclass(kw_only=True)
class Outcome:
    """What is left of a run: the results that arrived, and what went wrong outside of them."""

    gateway: GatewayResult | None = None
    engine: EngineResult | None = None
    reporter: ReporterResult | None = None
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
    """The broker's ends of its connections to gateway, engine and reporter, as far as they could be read back."""

    def of_this_run(self, accepted: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        """Of the connections that a broker has accepted, those whose other end is a component's."""
        ends = {socket["local"] for sockets in self.sockets.values() for socket in sockets}
        return tuple(socket for socket in accepted if socket["peer"] in ends)

    @property
    def sockets(self) -> dict[str, list[dict[str, Any]]]:
        """By component."""
        ends = {"gateway": self.gateway, "engine": self.engine, "reporter": self.reporter}
        return {
            **{role: result.sockets for role, result in ends.items() if result},
            "broker": list(self.broker_sockets),
        }


def judge(outcome: Outcome, orders_per_s: float | None, lag_p99_us: float | None) -> tuple[str, list[str]]:
    """(status, reasons), at this mean rate offered; partial comes before invalid, invalid before saturated."""
    for status, reasons in (
        ("partial", list(_partial(outcome))),
        ("invalid", list(_invalid(outcome))),
        ("saturated", list(_saturated(outcome.gateway, orders_per_s, lag_p99_us))),
    ):
        if reasons:
            return status, reasons
    return "complete", []


def _partial(outcome: Outcome) -> Iterator[str]:
    yield from outcome.failures
    for role in ("gateway", "engine", "reporter"):
        result = getattr(outcome, role)
        if result is None:
            yield f"the {role} left no result"
        elif result.stopped:
            yield f"{role}: {result.stopped}"


def _invalid(outcome: Outcome) -> Iterator[str]:
    gateway, engine, reporter = outcome.gateway, outcome.engine, outcome.reporter
    if gateway is None or engine is None or reporter is None:
        return
    if gateway.orders != engine.orders:
        yield f"orders differ: {gateway.orders} sent, {engine.orders} received"
    if engine.answers != gateway.answers:
        yield f"answers differ: {engine.answers} sent, {gateway.answers} received"
    if gateway.orders_answered != gateway.orders.messages:
        yield f"{gateway.orders.messages - gateway.orders_answered} orders were never answered"
    yield from _ends_differ(gateway, engine)
    told = gateway.statistics_sent + engine.statistics_sent
    if told != reporter.announced:
        yield f"statistics differ: {told} messages sent, {reporter.announced} announced"
    if reporter.received != reporter.announced or not reporter.checksums_agree:
        yield f"statistics differ: {reporter.announced} messages sent, {reporter.received} received"
    yield from _sockets_differ(outcome)
    if reporter.samples != gateway.samples:
        yield f"{gateway.samples} orders were sampled, {reporter.samples} pairs arrived"


def _sockets_differ(outcome: Outcome) -> Iterator[str]:
    """What was asked of a socket, and what the kernel says of it."""
    for role, sockets in outcome.sockets.items():
        for socket in sockets:
            if socket["tcp_nodelay"] != socket["tcp_nodelay_asked"]:
                asked, found = ("on", "off") if socket["tcp_nodelay_asked"] else ("off", "on")
                yield f"TCP_NODELAY of the {role}'s {socket['local']} was to be {asked}, and is {found}"


def _ends_differ(gateway: GatewayResult, engine: EngineResult) -> Iterator[str]:
    """What each end said it had done, and what the other saw of it."""
    for who, said, facts in (
        ("gateway", engine.gateway_said, {"sent": engine.orders}),
        ("engine", gateway.engine_said, {"sent": gateway.answers, "received": gateway.orders}),
    ):
        if said is None:
            yield f"the {who}'s end never came"
            continue
        for done, seen in facts.items():
            told = StreamCounts(messages=said[done], checksum=f"{said[done + '_checksum']:016x}")
            if told != seen:
                yield f"the {who}'s end says {told} {done}, the other end saw {seen}"


def _saturated(gateway: GatewayResult | None, orders_per_s: float | None, lag_p99_us: float | None) -> Iterator[str]:
    """One order alone says nothing of a rate."""
    if gateway is None or orders_per_s is None or gateway.orders.messages < 2:
        return
    orders = gateway.orders.messages
    achieved = _achieved_per_s(gateway, orders_per_s)
    if achieved < LEAST_SHARE_OF_OFFERED * orders_per_s:
        yield f"{achieved:,.0f} of {orders_per_s:,.0f} offered orders/s were achieved"
    if lag_p99_us is not None and lag_p99_us > MOST_LAG_P99_US:
        yield f"the gateway's p99 lag is {lag_p99_us / 1e3:,.1f} ms"
    if gateway.backlog_growth > max(100, gateway.due_at_once, (1 - LEAST_SHARE_OF_OFFERED) * orders / 4):
        yield f"unanswered orders were still growing at the end, by {gateway.backlog_growth:,} in the last quarter"


def _achieved_per_s(gateway: GatewayResult, offered_per_s: float) -> float:
    """What the hand-overs took against what the schedule gave them; the offered rate where the last was in time.

    Of orders that are due at once, each has a period of the rate to be handed over in, as it would have alone.
    """
    given_s = (gateway.schedule_s or 0.0) + (gateway.due_at_once - 1) / offered_per_s
    taken_s = gateway.handing_over_s or 0.0
    return offered_per_s if taken_s - given_s <= JITTER_S else offered_per_s * given_s / taken_s
