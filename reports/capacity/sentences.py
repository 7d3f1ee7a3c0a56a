"""A capacity in one sentence: the answer, its interval, and the number of probes. Never two answers."""

from __future__ import annotations

from typing import Any

from exchange.load_axis import LoadAxis
from exchange.words import counted

Record = dict[str, Any]


def method(record: Record) -> str:
    noun, what = LoadAxis.of(record).noun, "repeat" if "benchmark" in record else "run"
    return f"A probe is one {what} at one {noun}. At the capacity half of all probes hold the objective, by chance."


def headline(record: Record) -> str:
    """zeromq holds p99 <= 1ms up to 30,400 orders/s (95% interval 28,800..39,100; 24 probes)"""
    if "answer" not in record:
        return _of_searches(record)
    axis, subject, objective = LoadAxis.of(record), subject_of(record), record["objective"]
    found, answer, probes = axis.capacity(record), record["answer"], counted(len(record["probes"]), "probes")
    if found:
        interval = f"95% interval {three_digits(found['low'])}..{three_digits(found['high'])}"
        return f"{subject} holds {objective} up to {axis.in_words(three_digits(found['value']))} ({interval}; {probes})"
    subject = f"{subject}'s capacity for {objective}"
    if highest := answer[f"highest_held_{axis.name}"]:
        reached = axis.in_words(three_digits(highest))
        return f"{subject} is above {reached}: the highest {axis.noun} tried held ({probes})"
    if failed := answer[f"lowest_failed_{axis.name}"]:
        tried = "in reach" if failed <= record[f"reach_{axis.name}"]["low"] else "tried"
        return f"{subject} is below {axis.in_words(three_digits(failed))}: it held at no {axis.noun} {tried} ({probes})"
    return f"nothing is known of {subject}: {probes}, too few to say"


def subject_of(record: Record) -> str:
    """zeromq; supply-chain over amqp (vertical)"""
    return str(record.get("subject", record["settings"]["transport"]))


def _of_searches(record: Record) -> str:
    """The sentence of an older version's record, whose interval is that of its searches' median."""
    found, transport = record["capacity_orders_per_s"], record["settings"]["transport"]
    if found is None:
        return f"{transport}: no edge found where {record['objective']} begins to fail"
    interval = "" if found["low"] is None else f" ({found['low']:,.0f}..{found['high']:,.0f})"
    searches = "1 search" if len(record["searches"]) == 1 else f"{len(record['searches'])} searches"
    runs = counted(len(record["probes"]), "runs")
    return f"{transport} holds {record['objective']} up to {found['value']:,.0f} orders/s{interval}: {searches}, {runs}"


def three_digits(rate_per_s: float) -> str:
    """30,400: more digits than three would say more than an interval allows."""
    return f"{float(f'{rate_per_s:.3g}'):,.10g}"


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"
