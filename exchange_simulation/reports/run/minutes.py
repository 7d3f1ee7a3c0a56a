"""The minutes of a long run, and whether memory or completion times grow over them: what a soak test asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from exchange.growth import growth_of
from exchange.instances import role_of
from exchange.json_records import Record
from exchange.records import COMPLETION, PROCESS, TRAFFIC
from exchange.seconds import is_analysed, merged
from exchange_simulation.reports.formats.numbers import ABSENT, is_number, number_text, whole_number
from exchange_simulation.reports.run.run_folder import RunFolder, completion_clock, length_s
from exchange_simulation.reports.tables import key_column, plain_table, terminal

MINUTE_S = 60
LEAST_MINUTES = 10
"""The fewest whole minutes for a table and a verdict."""
SETTLING_MINUTES = 1
"""Minutes at the start that the verdict leaves out: memory and caches fill."""
MEMORY = "'s memory"
"""Follows a role in the name of its memory."""
MOST_IN_TERMINAL = 12
BYTES_PER_MB = 1e6


@dataclass(frozen=True)
class RunMinute:
    """Figures of a minute. Completion times are in microseconds; None if no order was answered."""

    number: int
    answered_orders_per_s: float
    p50_us: float | None
    p99_us: float | None
    max_us: float | None
    memory_mb: dict[str, float]
    """The most memory so far by role: of several components, the sum."""
    resident_mb: dict[str, float]
    """The median of the minute's readings of memory by role: of several components, the sum. Old records have none."""


@dataclass(frozen=True)
class MinutesTable:
    """The table of a page and of the terminal."""

    columns: list[str]
    rows: list[tuple[int, list[str]]]
    verdict: str


def minutes_of(folder: RunFolder) -> list[RunMinute]:
    """Return the run's whole minutes; none if there are fewer than LEAST_MINUTES.

    The last order of ten minutes is due a period before they are over, so the length is rounded to a second.
    """
    number_of_minutes = round(length_s(folder)) // MINUTE_S
    if number_of_minutes < LEAST_MINUTES:
        return []
    clock = completion_clock(folder)
    completions: defaultdict[int, list[Record]] = defaultdict(list)
    for record in folder.spool[COMPLETION]:
        payload = record["payload"]
        if payload["clock"] == clock and is_analysed(payload):
            completions[payload["second"] // MINUTE_S].append(payload)
    answered: defaultdict[int, int] = defaultdict(int)
    for record in folder.spool[TRAFFIC]:
        answered[record["payload"]["second"] // MINUTE_S] += record["payload"]["orders_answered"]
    most_memory = _memory_by_minute(folder, "max_rss_bytes", max)
    resident_memory = _memory_by_minute(folder, "rss_bytes", median)
    minutes = []
    for number in range(number_of_minutes):
        figures = merged(completions[number]).figures_us() if completions[number] else {}
        minutes.append(
            RunMinute(
                number=number,
                answered_orders_per_s=answered[number] / MINUTE_S,
                p50_us=figures.get("p50"),
                p99_us=figures.get("p99"),
                max_us=figures.get("max"),
                memory_mb=most_memory[number],
                resident_mb=resident_memory[number],
            )
        )
    return minutes


def _memory_by_minute(
    folder: RunFolder, field: str, figure_of: Callable[[list[float]], float]
) -> defaultdict[int, dict[str, float]]:
    """Return, for each minute, a figure of the readings of memory in that field by role, in MB."""
    readings_mb: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in folder.spool[PROCESS]:
        payload = record["payload"]
        size_bytes = payload.get(field)
        if is_number(size_bytes):
            readings_mb[payload["second"] // MINUTE_S][record["source"]].append(size_bytes / BYTES_PER_MB)
    by_role: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for number, by_source in readings_mb.items():
        roles = by_role[number]
        for source, readings_of_source_mb in by_source.items():
            role = role_of(source)
            roles[role] = roles.get(role, 0.0) + figure_of(readings_of_source_mb)
    return by_role


def growth_verdict(minutes: list[RunMinute]) -> str:
    """Return a sentence: which figures grow over the minutes, and by how much, or that none was found to grow.

    Memory is judged by its readings of each second, which can fall, and not by the most memory so far.

    For example: Over 60 minutes, the first left out, these grow: completion p99 by 12 %, engine's memory by 41 %.
    """
    growing = []
    series = _series(minutes[SETTLING_MINUTES:])
    is_memory_judged = any(name.endswith(MEMORY) for name in series)
    try:
        for name, values in series.items():
            growth = growth_of(values)
            if growth.is_certain:
                growing.append(f"{name} by {100 * growth.share:.0f} %")
    except ModuleNotFoundError:
        return "Whether memory or completion times grow: scipy tells, which pip install '.[report]' adds."
    over = f"Over {len(minutes):,} minutes, the first left out,"
    if growing:
        verdict = f"{over} these grow: {', '.join(growing)}."
    elif is_memory_judged:
        verdict = f"{over} neither completion p50, p99 nor any component's memory was found to grow."
    else:
        verdict = f"{over} neither completion p50 nor p99 was found to grow."
    if not is_memory_judged:
        verdict += " Memory is not judged: the records have only the most memory so far."
    return verdict


def _series(minutes: list[RunMinute]) -> dict[str, list[float]]:
    """Return the values of each judged figure by its name, minute by minute; figures that some minute lacks are out."""
    series: defaultdict[str, list[float]] = defaultdict(list)
    for minute in minutes:
        if minute.p50_us is not None and minute.p99_us is not None:
            series["completion p50"].append(minute.p50_us)
            series["completion p99"].append(minute.p99_us)
        for role, resident_mb in minute.resident_mb.items():
            series[f"{role}{MEMORY}"].append(resident_mb)
    return {name: values for name, values in series.items() if len(values) == len(minutes)}


def minutes_table(folder: RunFolder) -> MinutesTable | None:
    """Return the table of the run's minutes; None for a run that is too short."""
    minutes = minutes_of(folder)
    if not minutes:
        return None
    roles = list(minutes[-1].memory_mb)
    rows = []
    for minute in minutes:
        cells = [whole_number(minute.answered_orders_per_s)]
        for time_us in (minute.p50_us, minute.p99_us, minute.max_us):
            cells.append(ABSENT if time_us is None else number_text(time_us))
        cells += [whole_number(minute.memory_mb.get(role)) for role in roles]
        rows.append((minute.number, cells))
    columns = ["answered/s", "p50 us", "p99 us", "max us", *(f"{role} MB" for role in roles)]
    return MinutesTable(columns, rows, growth_verdict(minutes))


def show_minutes(folder: RunFolder) -> None:
    """Print the verdict of a long run, and the first and the last of its minutes; nothing for a shorter run."""
    content = minutes_table(folder)
    if content is None:
        return
    console = terminal()
    console.print(content.verdict, markup=False)
    table = plain_table(key_column("minute", from_right=True), *content.columns, gap=1)
    rows = content.rows
    half = MOST_IN_TERMINAL // 2
    is_cut = len(rows) > MOST_IN_TERMINAL
    shown = rows[:half] if is_cut else rows
    for number, cells in shown:
        table.add_row(str(number), *cells)
    if is_cut:
        table.add_row(*["..."] * (1 + len(content.columns)))
        for number, cells in rows[-half:]:
            table.add_row(str(number), *cells)
    console.print(table)
