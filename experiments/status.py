"""Whether a run can be trusted: complete, saturated, invalid or partial, with the reasons as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exchange.results import EngineResult, GatewayResult, ReporterResult

LEAST_SHARE_OF_OFFERED = 0.99
MOST_LAG_P99_US = 10_000.0


@dataclass(kw_only=True)
class Outcome:
    """What is left of a run: the results that arrived, and what went wrong outside of them."""

    gateway: GatewayResult | None = None
    engine: EngineResult | None = None
    reporter: ReporterResult | None = None
    failures: tuple[str, ...] = ()


def judge(outcome: Outcome, orders_per_s: float | None, lag_p99_us: float | None) -> tuple[str, list[str]]:
    """(status, reasons); partial comes before invalid, invalid before saturated."""
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
    if reporter.received != reporter.announced or not reporter.checksums_agree:
        yield f"statistics differ: {reporter.announced} messages sent, {reporter.received} received"
    held_back = [socket for socket in (*gateway.sockets, *engine.sockets) if not socket["tcp_nodelay"]]
    if held_back:
        yield f"TCP_NODELAY was to be set and is not: {held_back}"
    if reporter.samples != gateway.samples:
        yield f"{gateway.samples} orders were sampled, {reporter.samples} pairs arrived"


def _saturated(gateway: GatewayResult | None, orders_per_s: float | None, lag_p99_us: float | None) -> Iterator[str]:
    if gateway is None or orders_per_s is None:
        return
    orders = gateway.orders.messages
    achieved = orders / gateway.duration_s if gateway.duration_s else 0.0
    if achieved < LEAST_SHARE_OF_OFFERED * orders_per_s:
        yield f"{achieved:,.0f} of {orders_per_s:,.0f} offered orders/s were achieved"
    if lag_p99_us is not None and lag_p99_us > MOST_LAG_P99_US:
        yield f"the gateway's p99 lag is {lag_p99_us / 1e3:,.1f} ms"
    if gateway.backlog_growth > max(100, (1 - LEAST_SHARE_OF_OFFERED) * orders / 4):
        yield f"unanswered orders were still growing at the end, by {gateway.backlog_growth:,} in the last quarter"
