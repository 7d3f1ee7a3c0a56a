"""From what roles told to a cell's figures; a figure that could not be measured is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from messaging.benchmark import Figures
from messaging.roles import Told

if TYPE_CHECKING:
    from exchange.measurements import LogBuckets


def flow_figures(size: int, receivers: Sequence[Told]) -> Figures:
    """Of all receivers together: from the first message that one had to the last that one had.

    The clock starts once a first message is there, which therefore does not count.
    """
    begun = [told for told in receivers if told.received]
    span_ns = max((told.last_ns for told in begun), default=0) - min((told.first_ns for told in begun), default=0)
    messages = sum(told.received for told in begun) - 1
    if span_ns <= 0 or messages < 1:
        return {}
    per_s = messages * 1e9 / span_ns
    rates = {"messages_per_s": per_s, "megabytes_per_s": per_s * size / 1e6, "seconds": span_ns / 1e9}
    return {**rates, **latency_figures(receivers, "latency")}


def transfer_figures(size: int, publishers: Sequence[Told], subscribers: Sequence[Told]) -> Figures:
    """Of publishes and deliveries, from the first publisher's start to the last delivery."""
    start_ns = min(of_role.first_ns for of_role in publishers)
    seconds = (max(of_role.last_ns for of_role in subscribers) - start_ns) / 1e9
    publishing_s = (max(of_role.last_ns for of_role in publishers) - start_ns) / 1e9
    published = sum(of_role.sent for of_role in publishers)
    delivered = sum(of_role.received for of_role in subscribers)
    return {
        "transfers": published + delivered,
        "transfers_per_s": (published + delivered) / seconds,
        "publishes_per_s": published / publishing_s,
        "deliveries_per_s": delivered / seconds,
        "megabytes_per_s": delivered * size / 1e6 / seconds,
        "seconds": seconds,
        **latency_figures(subscribers, "latency"),
    }


def figures_of_each(size: int, receivers: Sequence[Told], name: str) -> list[float]:
    """One of those figures of each receiver alone, as far as they could be measured."""
    each = [flow_figures(size, [receiver]) for receiver in receivers]
    return [found[name] for found in each if name in found]


def latency_figures(receivers: Sequence[Told], name: str) -> Figures:
    """Mean, percentiles and maximum of all, in us; nothing where messages bear no stamps."""
    found = merged(receivers).figures_us()
    return {f"{name}_{what}_us": value for what, value in found.items() if what != "count"}


def merged(receivers: Sequence[Told]) -> LogBuckets:
    from exchange.measurements import LogBuckets

    total = LogBuckets()
    for told in receivers:
        if told.latency is not None:
            total.merge(told.latency)
    return total


def bounce_figures(size: int, asker: Told) -> Figures:
    """Of the round trip; one way is half of the mean, so what all bounces took over twice their number."""
    found = latency_figures([asker], "round_trip")
    if not found:
        return {}
    one_way_us = found["round_trip_mean_us"] / 2
    return {**found, "one_way_mean_us": one_way_us, "one_way_megabytes_per_s": size / one_way_us}


def reply_figures(size: int, clients: Sequence[Told], sample_s: float) -> Figures:
    """Of who asks for so long; kB are of 1,000 bytes, as in the paper, and each reply's counted once."""
    replies = sum(client.latency.count for client in clients if client.latency)
    if not replies:
        return {}
    per_s = replies / sample_s
    rates = {"replies_per_s": per_s, "kilobytes_per_s": per_s * size / 1000}
    return {**rates, **latency_figures(clients, "response")}
