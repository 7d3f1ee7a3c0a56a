"""The subscribers of a run as rows of a table, for terminal and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exchange.words import counted
from exchange_simulation.reports.formats.few_orders import has_enough_orders, max_of
from exchange_simulation.reports.formats.numbers import ABSENT, whole_number

COLUMNS = ("messages", "gaps", "dropped", "conflated", "p50", "p99", "max")
FIGURES = ("p50", "p99", "max")
MOST_ROWS = 3
"""With more subscribers than this, the best, the median and the worst one stand for all."""
RANKS = ("best", "median", "worst")


@dataclass(frozen=True)
class SubscriberRow:
    """A subscriber's figures as text, under COLUMNS."""

    label: str
    cells: Sequence[str]


def subscriber_rows(record: Mapping[str, Any]) -> list[SubscriberRow]:
    """Return a row for each subscriber, or for three of many by their p99; empty for a run without market data."""
    market_data = record.get("market_data") or {}
    subscribers = list(market_data.get("subscribers") or ())
    if len(subscribers) <= MOST_ROWS:
        return [SubscriberRow(str(entry["subscriber"]), _cells(entry)) for entry in subscribers]
    subscribers.sort(key=_badness)
    chosen = (subscribers[0], subscribers[(len(subscribers) - 1) // 2], subscribers[-1])
    return [
        SubscriberRow(f"{rank}: {entry['subscriber']}", _cells(entry))
        for rank, entry in zip(RANKS, chosen, strict=True)
    ]


def _badness(entry: Mapping[str, Any]) -> tuple[int, float]:
    """Return what sorts subscribers from the best to the worst: their losses, then their p99."""
    lost = entry["dropped"] + entry["conflated"]
    return lost, entry["delivery_us"].get("p99") or 0.0


def _cells(entry: Mapping[str, Any]) -> list[str]:
    """Return a subscriber's cells, under COLUMNS."""
    counts = [whole_number(entry[name]) for name in ("messages", "gaps", "dropped", "conflated")]
    delivery = entry["delivery_us"]
    return counts + [_figure(delivery, name) for name in FIGURES]


def _figure(delivery: Mapping[str, Any], name: str) -> str:
    """Return a delivery time; absent for a subscriber on another host."""
    messages = delivery.get("count")
    if not messages:
        return ABSENT
    if not has_enough_orders(name, messages):
        return max_of(messages)
    return whole_number(delivery.get(name))


def published_words(record: Mapping[str, Any]) -> str | None:
    """Return a sentence on what the engine published; None without market data, or if nobody knows.

    For example: 9,160 messages of market data to 8 subscribers, --slow-subscriber wait; the engine waited 0.10 s
    """
    market_data = record.get("market_data") or {}
    published = market_data.get("published")
    if not published:
        return None
    words = f"{published['messages']:,} messages of market data to {counted(len(published['joined']), 'subscribers')}"
    words += f", --slow-subscriber {published['slow_subscriber']}"
    if published["waited_s"]:
        words += f"; the engine waited {published['waited_s']:.2f} s"
    if published["frames_dropped"]:
        words += f"; the link took no {counted(published['frames_dropped'], 'frames')}"
    return words
