"""Figures of the times that a broker took to confirm publishes, from what a link has counted."""

from __future__ import annotations

from typing import Any

from exchange.measurements import rank_of
from exchange.percentiles import PERCENTS


def with_confirm_figures(link: dict[str, Any]) -> dict[str, Any]:
    """Return a link's facts with `confirm_us`, the figures of its confirms, in place of the counted times.

    A link without confirms has no such figures.
    """
    facts = dict(link)
    times_ns = facts.pop("confirm_ns", [])
    counts = facts.pop("confirm_counts", [])
    total = sum(counts)
    if not total:
        return facts
    sum_ns = sum(time_ns * count for time_ns, count in zip(times_ns, counts, strict=True))
    figures = {}
    for name, percent in PERCENTS.items():
        rank = int(rank_of(percent, total))
        figures[name] = _time_of_rank(times_ns, counts, rank) / 1e3
    facts["confirm_us"] = {"count": total, "mean": sum_ns / total / 1e3, **figures, "max": times_ns[-1] / 1e3}
    return facts


def _time_of_rank(times_ns: list[int], counts: list[int], rank: int) -> int:
    """Return the time of the publish with this rank, from 1, of times in ascending order."""
    so_far = 0
    for time_ns, count in zip(times_ns, counts, strict=True):
        so_far += count
        if so_far >= rank:
            return time_ns
    return times_ns[-1]


def confirm_rows(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a title and the figures for each component of a run whose publishes the broker confirmed."""
    links = (record.get("broker") or {}).get("links") or {}
    rows = []
    for name, link in links.items():
        if isinstance(link, dict) and link.get("confirm_us"):
            rows.append((f"confirms to the {name}", link["confirm_us"]))
    return rows
