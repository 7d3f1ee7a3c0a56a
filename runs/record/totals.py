"""Counts, checksums, rates and use of the machine, summed over the pairs of an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from exchange.checksum import NAME
from exchange.instances import role_of
from exchange.results import EngineResult, GatewayResult, ReporterResult
from runs.record.outcome import Outcome

OF_GATEWAYS = ("orders_answered", "trades", "confirmations", "quotes", "rejections", "samples")


def counts(outcome: Outcome) -> dict[str, int]:
    """Counts of messages; what no component counted is absent."""
    gateways, engines, reporters = outcome.gateways.values(), outcome.engines.values(), outcome.reporters.values()
    found: dict[str, int] = {}
    if gateways:
        found |= {
            "orders_sent": sum(gateway.orders.messages for gateway in gateways),
            "answers_received": sum(gateway.answers.messages for gateway in gateways),
            **{name: sum(getattr(gateway, name) for gateway in gateways) for name in OF_GATEWAYS},
        }
    if engines:
        found["orders_received"] = sum(engine.orders.messages for engine in engines)
        found["answers_sent"] = sum(engine.answers.messages for engine in engines)
    if reporters:
        found["statistics_sent"] = sum(reporter.announced for reporter in reporters)
        found["statistics_received"] = sum(reporter.received for reporter in reporters)
    found["junk_frames"] = sum(result.junk_frames for result in outcome.results.values())
    refusing: list[EngineResult | ReporterResult] = [*engines, *reporters]
    found["handshakes_refused"] = sum(result.handshakes_refused for result in refusing)
    return found


def checksums(outcome: Outcome) -> dict[str, str]:
    """The checksums of both streams; several pairs' are summed modulo 2^64."""
    if not outcome.gateways:
        return {"hash": NAME}
    streams = [(gateway.orders.checksum, gateway.answers.checksum) for gateway in outcome.gateways.values()]
    orders, answers = (_sum(of_direction) for of_direction in zip(*streams, strict=True))
    return {"hash": NAME, "orders": orders, "answers": answers}


def _sum(checksums: Iterable[str]) -> str:
    return f"{sum(int(checksum, 16) for checksum in checksums) % 2**64:016x}"


def duration_s(outcome: Outcome) -> float | None:
    """From the first order's hand-over to the last answer, over all pairs; None if nothing was answered.

    Wall clocks relate pairs on several hosts.
    """
    spans = list(_spans_ns(outcome.gateways.values()))
    return (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e9 if spans else None


def _spans_ns(gateways: Iterable[GatewayResult]) -> Iterator[tuple[int, int]]:
    for gateway in gateways:
        if gateway.duration_s is not None:
            yield gateway.began_wall_ns, gateway.began_wall_ns + round(gateway.duration_s * 1e9)


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
