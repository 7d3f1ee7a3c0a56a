"""The gateways of a market in run.json: what each sent and got, and how fairly it was served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from exchange.measurements import LogBuckets
from exchange_simulation.launching.record.outcome import RunOutcome
from exchange_simulation.launching.record.status import judge


def gateways_of(
    outcome: RunOutcome,
    times: Mapping[int, Mapping[str, LogBuckets]],
    offered_orders_per_s: float | None,
    lag_p99_us: Mapping[int, float],
) -> list[dict[str, Any]]:
    """Return an entry for each gateway.

    `times` are completion times by gateway and clock; the other arguments are those of `judge`.

    A gateway's share is that of the orders answered: 1 divided by the number of gateways if all are served alike.
    """
    answered_in_all = sum(gateway.orders_answered for gateway in outcome.gateways.values())
    entries = []
    for number in outcome.lineup.gateway_numbers:
        status, reasons = judge(outcome.of_gateway(number), offered_orders_per_s, lag_p99_us)
        entry: dict[str, Any] = {"gateway": number, "status": status, "reasons": reasons}
        gateway = outcome.gateways.get(number)
        if gateway is not None:
            share = gateway.orders_answered / answered_in_all if answered_in_all else None
            entry |= {
                "seed": gateway.seed,
                "orders": asdict(gateway.orders),
                "answers": asdict(gateway.answers),
                "orders_answered": gateway.orders_answered,
                "share": share,
            }
        sessions = _sessions_of(outcome, number)
        if len(outcome.lineup.engines) > 1:
            entry["engines"] = [{"engine": engine, **of_session} for engine, of_session in sessions.items()]
        elif sessions:
            entry["engine"] = sessions[1]
        figures = {clock: buckets.figures_us() for clock, buckets in times[number].items()}
        entry["completion_us"] = {clock: of_clock for clock, of_clock in figures.items() if clock != "lag"}
        entry["lag_us"] = figures.get("lag", {})
        entries.append(entry)
    return entries


def _sessions_of(outcome: RunOutcome, gateway: int) -> dict[int, dict[str, Any]]:
    """Return a gateway's sessions as its engines counted them, by engine; an engine without a result is absent."""
    sessions = {}
    for number, engine in outcome.engines_of(gateway).items():
        for session in engine.sessions:
            sessions[number] = {
                "orders": asdict(session.orders),
                "answers": asdict(session.answers),
                "undelivered": session.undelivered,
                "dropped": session.dropped,
            }
    return sessions
