"""A capacity in the terminal: its sentence, what a reader must know, then the probes by rate."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from rich.text import Text

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.words import counted
from exchange_simulation.launching.metrics import Read, number_at
from exchange_simulation.launching.record.noise import share_words
from exchange_simulation.launching.record.noise_summary import noise_banner, noise_of
from exchange_simulation.reports.formats.numbers import ABSENT, number_text, whole_number
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal, warning, words_column

Columns = Mapping[str, Read]
"""Titles, each with a function that reads the figure from a probe."""
COLUMNS: Columns = {
    "p50 us": number_at("completion_us", "due", "p50"),
    "p99 us": number_at("completion_us", "due", "p99"),
    "lag p99": number_at("lag_us", "p99"),
}

WIDEST_INTERVAL = 10.0
"""If an interval's high end is more than this many times its low end, sentences name the interval alone."""


def show(record: Record) -> None:
    """Print capacity.json's content."""
    console = terminal()
    console.print(headline(record), style="bold", markup=False)
    noise = noise_banner(record, "probes")
    if noise:
        console.print(Text(noise, "bold red"))
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
    table = plain_table(key_column(axis.unit, from_right=True), "held", *columns, "noise", words_column("why not"))
    probes_by_rate: dict[float, list[Record]] = {}
    for probe in record["probes"]:
        probes_by_rate.setdefault(float(probe[axis.name]), []).append(probe)
    for rate in sorted(probes_by_rate):
        probes = probes_by_rate[rate]
        held_probes = f"{sum(probe['holds'] for probe in probes)} of {len(probes)}"
        figures = []
        for read in columns.values():
            value = _median(probes, read)
            if value is None:
                figures.append(ABSENT)
            elif columns is COLUMNS:  # microseconds
                figures.append(whole_number(value))
            else:
                figures.append(number_text(value))
        table.add_row(f"{rate:,.0f}", held_probes, *figures, _noise(probes), _first_reason(probes))
    return table


def _first_reason(probes: list[Record]) -> str:
    """Return why the first probe that failed did; empty if all held."""
    for probe in probes:
        if probe["why"]:
            return str(probe["why"])
    return ""


def _noise(probes: list[Record]) -> str:
    """Return the largest share of the processors that other programs took during a probe at this rate."""
    shares = [probe["noise_share"] for probe in probes if probe.get("noise_share") is not None]
    return share_words(max(shares)) if shares else ABSENT


def _median(probes: list[Record], read: Read) -> float | None:
    """Return the median of a figure over the probes at a rate; None if none of them measured it."""
    values = []
    for probe in probes:
        value = read(probe)
        if value is not None:
            values.append(value)
    return median(values) if values else None


def method(record: Record) -> str:
    """Return sentences on what a probe and a capacity are."""
    noun = LoadAxis.of(record).noun
    probe = "repeat" if "benchmark" in record else "run"
    return f"A probe is one {probe} at one {noun}. At the capacity half of all probes hold the objective, by chance."


def subject_of(record: Record) -> str:
    """Return what was searched. For example: zeromq, or zeromq with 4 gateways, 2 engines."""
    subject = record.get("subject")
    if subject:
        return str(subject)
    transport = str(record["settings"]["transport"])
    participants = _participants(record)
    return f"{transport} with {participants}" if participants else transport


def _participants(record: Record) -> str:
    """Return the numbers of participants beside one gateway and one engine; empty if there are no others."""
    if "subject" in record:
        return ""
    words = []
    for name, usual in (("gateways", 1), ("engines", 1), ("subscribers", 0)):
        number = record["settings"].get(name, usual)
        if number != usual:
            words.append(counted(number, name))
    return ", ".join(words)


def headline(record: Record) -> str:
    """Return the capacity in a sentence, or what is known of it.

    For example: zeromq holds p99 <= 1ms up to 30,400 orders/s (95% interval 28,800..39,100; 24 probes)
    """
    if "answer" not in record:
        return _headline_of_searches(record)
    axis = LoadAxis.of(record)
    objective = record["objective"]
    subject = subject_of(record)
    estimate = axis.capacity(record)
    answer = record["answer"]
    probes = counted(len(record["probes"]), "probes")
    has_participants = bool(_participants(record))
    capacity = f"{subject}'s capacity for {objective}"
    if has_participants:
        capacity = f"the capacity of {subject} for {objective}"
    is_too_noisy = bool(record.get("redo_noisy")) and noise_of(record).is_noisy
    too_noisy = f"too noisy to say: beside other work {capacity} was"
    if estimate:
        interval = f"{rounded_rate(estimate['low'])}..{rounded_rate(estimate['high'])}"
        somewhere = axis.in_words(interval)
        value = axis.in_words(rounded_rate(estimate["value"]))
        sentence = f"{subject} holds {objective} up to {value} (95% interval {interval}; {probes})"
        if estimate["high"] > WIDEST_INTERVAL * estimate["low"]:
            sentence = f"{capacity} is somewhere in {somewhere} (95% interval; {probes}, too few to say more)"
        if is_too_noisy:
            sentence = f"{too_noisy} in {somewhere} (95% interval; {probes})"
        return sentence
    known = too_noisy if is_too_noisy else f"{capacity} is"
    probed = [float(probe[axis.name]) for probe in record["probes"]]
    highest_held = answer[f"highest_held_{axis.name}"]
    if highest_held:
        highest = max([highest_held, *probed])
        is_decided = highest == highest_held
        why = f"the highest {axis.noun} tried held" if is_decided else _undecided(axis, highest)
        return f"{known} above {axis.in_words(rounded_rate(highest_held))}: {why} ({probes})"
    lowest_failed = answer[f"lowest_failed_{axis.name}"]
    if lowest_failed:
        lowest = min([lowest_failed, *probed])
        is_decided = lowest == lowest_failed
        tried = "in reach" if lowest_failed <= record[f"reach_{axis.name}"]["low"] else "tried"
        why = f"at every {axis.noun} {tried} most probes failed" if is_decided else _undecided(axis, lowest)
        return f"{known} below {axis.in_words(rounded_rate(lowest_failed))}: {why} ({probes})"
    return f"nothing is known of {capacity}: {probes}, too few to say"


def _undecided(axis: LoadAxis, rate: float) -> str:
    """Return a clause for a rate that was probed too seldom to be decided."""
    return f"the probes ended before {axis.in_words(rounded_rate(rate))} was decided"


def _headline_of_searches(record: Record) -> str:
    """Return the sentence of an older version's record, whose capacity is the median of several searches."""
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
    """Return a rate with three significant digits, since its interval leaves no more certain. For example: 30,400"""
    return f"{float(f'{rate_per_s:.3g}'):,.10g}"
