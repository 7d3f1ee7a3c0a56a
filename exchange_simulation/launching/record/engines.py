"""The engines of a market in run.json: what each of several matched, and its share of the work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from exchange_simulation.launching.record.outcome import RunOutcome


def engines_field(outcome: RunOutcome) -> dict[str, Any]:
    """Return the field `engines` of run.json, with an entry for each engine; empty for one engine, and for pairs.

    An engine that left no result has its number alone. Orders and answers are the sums of an engine's sessions, and its
    share is that of the orders that all engines took.
    """
    if outcome.lineup.market_engines == 1:
        return {}
    orders_in_all = sum(engine.orders.messages for engine in outcome.engines.values())
    entries = []
    for number in outcome.lineup.engine_numbers:
        entry: dict[str, Any] = {"engine": number}
        engine = outcome.engines.get(number)
        if engine is not None:
            entry |= {
                "orders": asdict(engine.orders),
                "answers": asdict(engine.answers),
                "share": engine.orders.messages / orders_in_all if orders_in_all else None,
                "cpu_s": engine.usage.get("cpu_s"),
                "stopped": engine.stopped,
            }
        entries.append(entry)
    return {"engines": entries}
