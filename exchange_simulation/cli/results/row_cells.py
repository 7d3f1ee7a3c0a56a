"""Cells that `exchange results list` and the site show of a folder: its start, its figures, or words in their place."""

from __future__ import annotations

import contextlib
from datetime import datetime

from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.cli.results.kind import RUNNING, ListedFolder
from exchange_simulation.launching.record.noise import MOST_SHARE
from exchange_simulation.launching.record.reading import UNFINISHED
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import is_number

ABSENT = "-"
NOISY = "~"
"""The mark behind the status of a noisy folder."""
NOISE_LEGEND = f"{NOISY} noisy: others took more than {MOST_SHARE:.0%} of all processors beside most measurements"
FIGURES = ("over", "orders/s", "p50 us", "p99 us")
"""The titles of the cells of `figures_of`."""


def moment_of(row: ListedFolder) -> tuple[float, str]:
    """Return a key that sorts by start, then by name."""
    return started_s(row), row.name


def started_s(row: ListedFolder) -> float:
    """Return when the run or trial started, in seconds since 1970.

    Without a record it is the time of the last change in the folder; 0 if that is unknown, too.
    """
    for moment in (row.started_at, row.last_written_at):
        if isinstance(moment, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(moment).timestamp()
    return 0.0


def started_of(row: ListedFolder) -> str:
    """Return the day and the time of the start; the day and the year if the year is not this year."""
    try:
        at = datetime.fromisoformat(row.started_at or "").astimezone()
    except ValueError:
        return ABSENT
    return f"{at:%m-%d %H:%M}" if at.year == datetime.now().year else f"{at:%Y-%m-%d}"


def status_of(row: ListedFolder) -> str:
    """Return the status, with a mark if the folder is noisy."""
    return f"{row.status}{NOISY}" if row.is_noisy else row.status


def has_figures(row: ListedFolder) -> bool:
    """Return True for a run with a usable record; `words_of` describes every other folder."""
    return row.reason is None and row.repeats is None and row.words is None


def figures_of(row: ListedFolder) -> tuple[str, str, str, str]:
    """Return the transport, the offered rate and two percentiles of completion: the cells below FIGURES."""
    if row.orders_per_s == (None,):
        offered = "max"
    else:
        offered = "..".join(f"{orders_per_s:,.10g}" for orders_per_s in _ends(row))
    transports = ",".join(row.transports)
    return transports or ABSENT, offered or ABSENT, _time(row, "p50", row.p50_us), _time(row, "p99", row.p99_us)


def _time(row: ListedFolder, percentile: str, us: float | None) -> str:
    """Format a percentile in microseconds; ABSENT if too few orders were measured for this percentile."""
    if is_number(us) and has_enough_orders(percentile, row.orders_measured):
        return f"{us:,.0f}"
    return ABSENT


def words_of(row: ListedFolder) -> str:
    """Return the record's own words, the progress of unfinished work, the fault in a record, or a trial's extent."""
    is_trial = row.repeats is not None
    progress = f"{row.runs} of {row.planned_runs} runs"
    if row.words is not None:
        return row.words
    if row.status in (UNFINISHED, RUNNING) and row.reason is not None:
        written = f"written {_ago(row)}"
        return f"{progress}, {written}" if is_trial else written
    if row.reason is not None:
        return row.reason
    extent = counted(row.repeats or 0, "repeats") if row.runs == row.planned_runs else progress
    return f"{extent}, {','.join(row.transports)} {_rates(row)}"


def _rates(row: ListedFolder) -> str:
    """Return the range of offered rates. For example: 1k..16k or 500 or 1k..16k,max"""
    words = []
    ends = "..".join(_in_thousands(orders_per_s) for orders_per_s in _ends(row))
    if ends:
        words.append(ends)
    if None in row.orders_per_s:
        words.append("max")
    return ",".join(words)


def _in_thousands(orders_per_s: float) -> str:
    """Format a rate, from 1,000 on in thousands. For example: 16k"""
    return f"{orders_per_s / 1e3:.4g}k" if orders_per_s >= 1e3 else f"{orders_per_s:.4g}"


def _ends(row: ListedFolder) -> list[float]:
    """Return the lowest and the highest rate; one rate if both are equal, no rate if the rate is max."""
    offered = sorted(orders_per_s for orders_per_s in row.orders_per_s if is_number(orders_per_s))
    if not offered:
        return []
    return unique([offered[0], offered[-1]])


def _ago(row: ListedFolder) -> str:
    """Return how long ago the folder was last changed. For example: 3 hours ago"""
    if row.last_written_at is None:
        return "at an unknown time"
    seconds = (datetime.now().astimezone() - datetime.fromisoformat(row.last_written_at)).total_seconds()
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
