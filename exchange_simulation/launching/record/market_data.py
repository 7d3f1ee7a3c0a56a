"""Market data in the record of a run: what was published, what each subscriber received, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exchange.instances import named
from exchange.measurements import LogBuckets
from exchange.results import SubscriberResult
from exchange_simulation.launching.record.outcome import RunOutcome


def market_data_field(outcome: RunOutcome) -> dict[str, Any]:
    """Return the field `market_data` of run.json: the engine's counts, the delivery to all, and each subscriber.

    Empty for a run without subscribers.
    """
    if not outcome.lineup.subscribers:
        return {}
    deliveries = [delivery_of(subscriber) for subscriber in outcome.subscribers.values()]
    published = [engine.market_data for engine in outcome.engines.values() if engine.market_data]
    record: dict[str, Any] = {"published": published[0] if published else None}
    record["delivery_us"] = LogBuckets.together(deliveries).figures_us()
    record["subscribers"] = []
    for number, subscriber in sorted(outcome.subscribers.items()):
        record["subscribers"].append(_of_subscriber(number, subscriber, record["published"] or {}))
    return {"market_data": record}


def delivery_of(subscriber: SubscriberResult) -> LogBuckets:
    """Return the delivery times of a subscriber; empty for one on another host than the engine."""
    if subscriber.delivery is None:
        return LogBuckets()
    return LogBuckets.from_sparse(subscriber.delivery)


def _of_subscriber(number: int, subscriber: SubscriberResult, published: Mapping[str, Any]) -> dict[str, Any]:
    """Return a subscriber's entry: what it missed counts as conflated if snapshots have replaced it."""
    is_conflated = published.get("slow_subscriber") == "conflate"
    return {
        "subscriber": number,
        "messages": subscriber.messages,
        "trades": subscriber.trades,
        "quotes": subscriber.quotes,
        "levels": subscriber.levels,
        "before": subscriber.before,
        "gaps": subscriber.gaps,
        "dropped": 0 if is_conflated else subscriber.missed,
        "conflated": subscriber.missed if is_conflated else 0,
        "snapshots": subscriber.snapshots,
        "checksum": subscriber.checksum,
        "delivery_us": delivery_of(subscriber).figures_us(),
    }


def market_data_differences(outcome: RunOutcome) -> Iterator[str]:
    """Yield a reason for each subscriber whose messages are not what the engine published."""
    for engine in outcome.engines.values():
        if engine.market_data is None:
            continue
        for number in outcome.lineup.subscribers:
            subscriber = outcome.subscribers.get(number)
            if subscriber is not None and subscriber.stopped is None:
                for difference in _differences(subscriber, engine.market_data):
                    yield f"{named('subscriber', number)} {difference}"


def _differences(subscriber: SubscriberResult, published: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a subscriber's messages, as the end of a sentence."""
    sent = published["messages"]
    accounted_for = subscriber.before + subscriber.messages + subscriber.missed
    if accounted_for != sent:
        yield f"has {accounted_for:,} of {sent:,} messages of market data, those counted that it missed"
    if subscriber.repeated:
        yield f"received {subscriber.repeated:,} messages of market data more than once"
    if subscriber.missed and published["slow_subscriber"] == "wait":
        yield f"missed {subscriber.missed:,} of {sent:,} messages of market data, though --slow-subscriber is wait"
    has_all = subscriber.messages == sent
    if has_all and subscriber.checksum != published["checksum"]:
        yield f"has the checksum {subscriber.checksum} of market data, and the engine {published['checksum']}"
