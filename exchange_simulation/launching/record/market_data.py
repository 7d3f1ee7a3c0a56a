"""Market data in the record of a run: what was published, what each subscriber received, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.instances import named
from exchange.measurements import LogBuckets
from exchange.results import SubscriberResult
from exchange_simulation.launching.record.outcome import RunOutcome

COUNTS_OF_PUBLISHERS = ("messages", "frames_dropped", "waited_s", "snapshots", "junk_frames", "handshakes_refused")
"""The facts of a publisher that add up over several."""


def market_data_field(outcome: RunOutcome) -> dict[str, Any]:
    """Return the field `market_data` of run.json: the engine's counts, the delivery to all, and each subscriber.

    Empty for a run without subscribers.
    """
    if not outcome.lineup.subscribers:
        return {}
    deliveries = [delivery_of(subscriber) for subscriber in outcome.subscribers.values()]
    published = [engine.market_data for engine in outcome.engines.values() if engine.market_data]
    record: dict[str, Any] = {"published": _together(published) if published else None}
    record["delivery_us"] = LogBuckets.together(deliveries).figures_us()
    record["subscribers"] = []
    for number, subscriber in sorted(outcome.subscribers.items()):
        record["subscribers"].append(_of_subscriber(number, subscriber, record["published"] or {}))
    return {"market_data": record}


def _together(published: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what several engines published: the sums, and `feeds` with what each engine published."""
    if len(published) == 1:
        return published[0]
    first = published[0]
    together: dict[str, Any] = {"slow_subscriber": first["slow_subscriber"], "depth": first["depth"]}
    for name in COUNTS_OF_PUBLISHERS:
        together[name] = sum(feed[name] for feed in published)
    checksum = sum(int(feed["checksum"], 16) for feed in published) % 2**64
    together["checksum"] = f"{checksum:016x}"
    joined = [set(feed["joined"]) for feed in published]
    together["joined"] = sorted(set.intersection(*joined))
    together["feeds"] = list(published)
    return together


def delivery_of(subscriber: SubscriberResult) -> LogBuckets:
    """Return the delivery times of a subscriber; empty for one on another host than the engine."""
    if subscriber.delivery is None:
        return LogBuckets()
    return LogBuckets.from_sparse(subscriber.delivery)


def _of_subscriber(number: int, subscriber: SubscriberResult, published: Mapping[str, Any]) -> dict[str, Any]:
    """Return a subscriber's entry: what it missed counts as conflated if snapshots have replaced it."""
    is_conflated = published.get("slow_subscriber") == "conflate"
    entry = {
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
    if subscriber.feeds:
        entry["feeds"] = [_of_feed(engine, feed) for engine, feed in enumerate(subscriber.feeds, start=1)]
    return entry


def _of_feed(engine: int, feed: SubscriberResult) -> dict[str, Any]:
    """Return a subscriber's entry for the feed of one of several engines."""
    return {
        "engine": engine,
        "messages": feed.messages,
        "before": feed.before,
        "gaps": feed.gaps,
        "missed": feed.missed,
        "checksum": feed.checksum,
    }


def market_data_differences(outcome: RunOutcome) -> Iterator[str]:
    """Yield a reason for each subscriber whose messages are not what an engine published."""
    for engine, result in outcome.engines.items():
        if result.market_data is None:
            continue
        for number in outcome.lineup.subscribers:
            subscriber = outcome.subscribers.get(number)
            if subscriber is None or subscriber.stopped is not None:
                continue
            name = named("subscriber", number)
            feed = subscriber
            if subscriber.feeds:
                feed = subscriber.feeds[engine - 1]
                name = f"{name}, of {named('engine', engine)}'s feed,"
            for difference in _differences(feed, result.market_data):
                yield f"{name} {difference}"


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
