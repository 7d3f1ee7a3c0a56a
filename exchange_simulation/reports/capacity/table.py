"""A capacity in words: its sentence, what a reader must know, then the probes by rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from statistics import median

from exchange.json_records import LoadAxis, Record
from exchange.words import counted
from exchange_simulation.launching.metrics import Read, number_at
from exchange_simulation.launching.record.noise import share_words
from exchange_simulation.reports.formats.numbers import ABSENT, number_text, whole_number
from exchange_simulation.reports.tables import FoldingTable, key, plain_table, terminal, warning, words

Columns = Mapping[str, Read]
"""Titles, each with what reads its figure of a probe."""
COLUMNS: Columns = {
    "p50 us": number_at("completion_us", "due", "p50"),
    "p99 us": number_at("completion_us", "due", "p99"),
    "lag p99": number_at("lag_us", "p99"),
}

WIDEST = 10.0
"""An interval with a higher ratio of its ends has no middle that a sentence could name."""


def show(record: Record) -> None:
    """Print capacity.json's content."""
    console = terminal()
    console.print(headline(record), style="bold", markup=False)
    for flag in record["flags"]:
        console.print(warning(flag))
    if record.get("answer"):
        console.print(method(record), style="dim")
    console.print()
    console.print(_evidence(record))


def columns_of(record: Record) -> Columns:
    """Return a benchmark's own columns, or the exchange's."""
    if "columns" not in record:
        return COLUMNS
    return {title: number_at("figures", name) for title, name in record["columns"].items()}


def _evidence(record: Record) -> FoldingTable:
    """Return a table with a row for each rate."""
    axis = LoadAxis.of(record)
    columns = columns_of(record)
    table = plain_table(key(axis.unit, from_right=True), "held", *columns, "noise", words("why not"))
    by_rate = sorted(record["probes"], key=lambda probe: float(probe[axis.name]))
    for rate, group in groupby(by_rate, key=lambda probe: float(probe[axis.name])):
        runs = list(group)
        hold = f"{sum(run['holds'] for run in runs)} of {len(runs)}"
        why = next((run["why"] for run in runs if run["why"]), "")
        in_words = whole_number if columns is COLUMNS else number_text
        values = (_middle(runs, read) for read in columns.values())
        figures = (ABSENT if value is None else in_words(value) for value in values)
        table.add_row(f"{rate:,.0f}", hold, *figures, _noise(runs), why)
    return table


def _noise(runs: list[Record]) -> str:
    """Return the largest share of the processors that others took beside a run at this rate."""
    shares = [share for run in runs if (share := run.get("noise_share")) is not None]
    return share_words(max(shares)) if shares else ABSENT


def _middle(runs: list[Record], read: Read) -> float | None:
    """Return the median of a figure over the runs at a rate; None if none of them measured it."""
    values = [value for run in runs if (value := read(run)) is not None]
    return median(values) if values else None


def method(record: Record) -> str:
    """Return sentences on what a probe and a capacity are."""
    noun = LoadAxis.of(record).noun
    probe = "repeat" if "benchmark" in record else "run"
    return f"A probe is one {probe} at one {noun}. At the capacity half of all probes hold the objective, by chance."


def headline(record: Record) -> str:
    """Return the capacity in a sentence, or what is known of it.

    For example: zeromq holds p99 <= 1ms up to 30,400 orders/s (95% interval 28,800..39,100; 24 probes)
    """
    if "answer" not in record:
        return _of_searches(record)
    axis = LoadAxis.of(record)
    objective = record["objective"]
    subject = str(record.get("subject", record["settings"]["transport"]))
    estimate = axis.capacity(record)
    answer = record["answer"]
    probes = counted(len(record["probes"]), "probes")
    capacity = f"{subject}'s capacity for {objective}"
    if estimate:
        interval = f"{rounded_rate(estimate['low'])}..{rounded_rate(estimate['high'])}"
        if estimate["high"] > WIDEST * estimate["low"]:
            return f"{capacity} is somewhere in {axis.in_words(interval)} (95% interval; {probes}, too few to say more)"
        value = axis.in_words(rounded_rate(estimate["value"]))
        return f"{subject} holds {objective} up to {value} (95% interval {interval}; {probes})"
    if highest := answer[f"highest_held_{axis.name}"]:
        why = _one_sided(record, highest, max, f"the highest {axis.noun} tried held")
        return f"{capacity} is above {axis.in_words(rounded_rate(highest))}: {why} ({probes})"
    if failed := answer[f"lowest_failed_{axis.name}"]:
        tried = "in reach" if failed <= record[f"reach_{axis.name}"]["low"] else "tried"
        why = _one_sided(record, failed, min, f"at every {axis.noun} {tried} most probes failed")
        return f"{capacity} is below {axis.in_words(rounded_rate(failed))}: {why} ({probes})"
    return f"nothing is known of {capacity}: {probes}, too few to say"


def _one_sided(record: Record, decided: float, extreme: Callable[[list[float]], float], why: str) -> str:
    """Return `why` the capacity has one bound alone, or that rates beyond the `decided` one were tried too seldom."""
    axis = LoadAxis.of(record)
    tried = extreme([decided, *(float(probe[axis.name]) for probe in record["probes"])])
    return why if tried == decided else f"the probes ended before {axis.in_words(rounded_rate(tried))} was decided"


def _of_searches(record: Record) -> str:
    """Return the sentence of an older version's record, whose interval is that of its searches' median."""
    capacity = record["capacity_orders_per_s"]
    transport = record["settings"]["transport"]
    if capacity is None:
        return f"{transport}: no edge found where {record['objective']} begins to fail"
    interval = "" if capacity["low"] is None else f" ({capacity['low']:,.0f}..{capacity['high']:,.0f})"
    searches = "1 search" if len(record["searches"]) == 1 else f"{len(record['searches'])} searches"
    runs = counted(len(record["probes"]), "runs")
    return (
        f"{transport} holds {record['objective']} up to {capacity['value']:,.0f} orders/s{interval}: {searches}, {runs}"
    )


def rounded_rate(rate_per_s: float) -> str:
    """Return a rate with three digits: more would say more than an interval allows. For example: 30,400"""
    return f"{float(f'{rate_per_s:.3g}'):,.10g}"
