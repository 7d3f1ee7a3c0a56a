"""The smallest difference that a plan is likely to find, said before its first run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist, median, stdev

from exchange.json_records import ComparisonRecord, Record, UnusableRecord, decode
from exchange.words import counted
from experiments.trials.plan import Plan
from experiments.trials.sign_flips import repeats_needed
from experiments.trials.verdicts import alpha_of, planned_rows

ASSUMED = 0.145
"""How far the log ratio of two p50 deviates from repeat to repeat, as measured on a busy machine with two cores."""
FOUND = 0.8
"""The chance with which the difference is found."""
METRIC = "due_p50_us"
LATEST = 5
"""So many earlier trials are read."""


def detectable(plan: Plan, results: Path | None) -> str | None:
    """10 repeats find a difference of about 22 % in completion p50 ...; None for a plan without such a row."""
    rows = planned_rows(plan)
    if not any(metric.name == METRIC for metric, _, _ in rows):
        return None
    earlier = list(deviations(results)) if results else []
    deviation = median(earlier) if earlier else ASSUMED
    source = f"of {counted(len(earlier), 'rows')} of earlier trials" if earlier else "assumed; no earlier trial tells"
    smallest = {
        repeats: f"from about {smallest_ratio(repeats, len(rows), deviation, alpha_of(plan)) - 1:.0%}"
        for repeats in (plan.repeats, max(plan.repeats, *plan.looks, 0))
        if repeats >= repeats_needed(alpha_of(plan))
    }
    found = ", ".join(f"{repeats:,} repeats find one {ends}" for repeats, ends in smallest.items())
    return (
        f"{found.replace('one', 'a difference in completion p50', 1)}, in {FOUND:.0%} of trials "
        f"(log ratios deviate by {deviation:.2g}, {source})"
    )


def smallest_ratio(repeats: int, rows: int, deviation: float, alpha: float) -> float:
    """The ratio that is found with the chance FOUND. The last factor is fitted to simulation of 6 to 40 repeats."""
    limit, power = NormalDist().inv_cdf(1 - alpha / (2 * rows)), NormalDist().inv_cdf(FOUND)
    return exp((limit + power) * deviation / sqrt(repeats) * (1 + 1 / repeats))


def deviations(results: Path) -> Iterator[float]:
    """The standard deviation of each row's log ratios of p50 in the latest trials of a folder."""
    try:
        found = sorted(results.glob("*/comparison.json"), key=lambda path: path.stat().st_mtime)
        records = [decode(path.read_bytes(), ComparisonRecord) for path in found[-LATEST:]]
    except (OSError, UnusableRecord):
        return
    for record in records:
        with contextlib.suppress(KeyError, TypeError, ValueError, ZeroDivisionError):  # of another hand, or damaged
            yield from _deviations_in(record)


def _deviations_in(record: Record) -> Iterator[float]:
    arms = {arm["label"]: arm["metrics"].get(METRIC, {}).get("by_repeat", {}) for arm in record["arms"]}
    for verdict in record["verdicts"]:
        if verdict["metric"] == METRIC:
            first, second = arms[verdict["first"]], arms[verdict["second"]]
            logs = [log(first[repeat] / second[repeat]) for repeat in first.keys() & second.keys()]
            if len(logs) >= 5:
                yield stdev(logs)
