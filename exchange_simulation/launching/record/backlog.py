"""The backlog of a run: when most orders waited for their answer, and when none did any more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from exchange.records import TRAFFIC
from exchange_simulation.launching.record.reading import Spool

LEAST_ORDERS = 100
LEAST_SHARE_OF_A_SECOND = 0.01
"""Unanswered orders are a backlog if they are more than LEAST_ORDERS, and than this share of a second's load."""


@dataclass(frozen=True)
class Backlog:
    """Times are in seconds from the start of the gateways' clocks, at the end of a second."""

    highest: int
    """The most unanswered orders at the end of a second, of all gateways."""
    highest_at_s: float
    drained_at_s: float | None
    """When the backlog was gone: a second's end, or the last answer. None if orders were never answered."""


def backlog_of(spool: Spool, highest_orders_per_s: float | None, duration_s: float | None) -> Backlog | None:
    """Return the run's backlog by its traffic records; None without a schedule, or if orders never queued up.

    `highest_orders_per_s`: the highest rate that all gateways are offered together.
    """
    if highest_orders_per_s is None or duration_s is None:
        return None
    fewest = max(LEAST_ORDERS, LEAST_SHARE_OF_A_SECOND * highest_orders_per_s)
    unanswered = _unanswered_by_second(spool)
    highest_second = max(unanswered, key=lambda second: unanswered[second], default=None)
    if highest_second is None or unanswered[highest_second] <= fewest:
        return None
    drained_at_s = None
    for second, orders in unanswered.items():
        if second > highest_second and orders <= fewest:
            drained_at_s = min(second + 1.0, duration_s)
            break
    return Backlog(unanswered[highest_second], min(highest_second + 1.0, duration_s), drained_at_s)


def _unanswered_by_second(spool: Spool) -> dict[int, int]:
    """Return how many orders were sent and not answered at the end of each second, in the order of seconds."""
    growth: Counter[int] = Counter()
    for record in spool[TRAFFIC]:
        payload = record["payload"]
        growth[payload["second"]] += payload["orders_sent"] - payload["orders_answered"]
    unanswered = {}
    sum_so_far = 0
    for second in sorted(growth):
        sum_so_far += growth[second]
        unanswered[second] = sum_so_far
    return unanswered


def backlog_words(record: dict[str, Any]) -> str | None:
    """Return a sentence on the backlog in run.json's content; None if there was none.

    For example: backlog: 10,885 unanswered orders after 2 s, drained 3.42 s later
    """
    backlog = record.get("backlog")
    if not backlog:
        return None
    words = f"backlog: {backlog['highest']:,} unanswered orders after {backlog['highest_at_s']:.4g} s"
    if backlog["drained_at_s"] is None:
        return f"{words}, never drained"
    return f"{words}, drained {backlog['drained_at_s'] - backlog['highest_at_s']:.3g} s later"
