"""The steps of a run whose load changes over time: a row of figures for each, in the terminal and on the page.

A run's record has figures by second. A second counts for the step that offered most of its orders, so a row has whole
seconds. The completion times of a second are those of the orders answered in it: orders that a step left unanswered
stand in the rows after it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from exchange.load_shape import LoadShape
from exchange_simulation.launching.record.status import LEAST_SHARE_OF_OFFERED, MOST_LAG_P99_US, SMALL_BACKLOG
from exchange_simulation.reports.formats.few_orders import figure_cell
from exchange_simulation.reports.formats.numbers import ABSENT, whole_number
from exchange_simulation.reports.formats.seconds import WHOLE_NUMBER
from exchange_simulation.reports.run.offered_load import LoadOfRun, load_over_time
from exchange_simulation.reports.run.run_folder import RunFolder
from exchange_simulation.reports.run.seconds import Row, RunSeconds
from exchange_simulation.reports.tables import key_column, plain_table, terminal

TITLES = ("orders/s\noffered", "\nanswered", "us from due\np50", "\np99", "\nmax", "saturated")
"""The titles of the figures in the terminal. A first line is the heading of its column and of those to its right."""
PAGE_TITLES = ("rate", "offered", "answered", "p50", "p99", "max", "saturated")
MOST_IN_TERMINAL = 12
MOST_ON_A_PAGE = 100


@dataclass(frozen=True)
class RunStep:
    """The figures of a step, over the seconds that count for it."""

    number: int
    """From 1: a load may have the same step twice."""
    typed: str
    """The step as the user typed it, with two rates if it is a ramp. For example: 1000..8000@20s"""
    seconds: Sequence[int] = ()
    """The seconds that count for it. Empty if other steps offered most of the orders of each of its seconds."""
    offered_orders_per_s: float | None = None
    """The mean rate of all gateways in these seconds; None without seconds."""
    answered_orders_per_s: float | None = None
    is_saturated: bool | None = None
    """Whether orders were not all sent or answered in time; None if it is not known."""
    times: Row = field(default_factory=dict)
    """Completion times in microseconds, by the names of a second's row."""


def steps_of(folder: RunFolder) -> list[RunStep]:
    """Return the steps that the run has reached; none if its load has one rate, or one ramp."""
    typed = load_over_time(folder.run.get("settings") or {})
    offered = LoadOfRun.of_run(folder.run)
    if typed is None or offered.load is None or len(typed.segments) < 2:
        return []
    seconds = RunSeconds(folder)
    seconds_by_place: defaultdict[int, list[int]] = defaultdict(list)
    for second in seconds.numbers:
        seconds_by_place[place_in(offered.load, second, offered.end_s)].append(second)
    reached = max(seconds_by_place, default=-1) + 1
    return [
        _step(place + 1, segment.typed, seconds_by_place[place], seconds, offered)
        for place, segment in enumerate(typed.segments[:reached])
    ]


def place_in(load: LoadShape, second: int, end_s: float) -> int:
    """Return the place, from 0, of the step that offered most of this second's orders.

    Of a second after the end of the load, it is the last step that had begun.
    """
    starts_s = load.starts_s
    if second >= end_s:
        return bisect_left(starts_s, end_s) - 1
    second_end_s = min(second + 1.0, end_s)
    places = range(bisect_right(starts_s, second) - 1, bisect_left(starts_s, second_end_s))

    def orders_of(place: int) -> float:
        next_start_s = starts_s[place + 1] if place + 1 < len(starts_s) else math.inf
        begin_s = max(float(second), starts_s[place])
        return load.amount_after(min(second_end_s, next_start_s)) - load.amount_after(begin_s)

    return max(places, key=orders_of)


def _step(number: int, typed: str, numbers: Sequence[int], seconds: RunSeconds, offered: LoadOfRun) -> RunStep:
    """Return the step with the figures of its seconds."""
    if not numbers or offered.load is None:
        return RunStep(number, typed)
    begin_s = float(numbers[0])
    offered_end_s = min(numbers[-1] + 1.0, offered.end_s)
    end_s = min(numbers[-1] + 1.0, offered.run_end_s)
    if offered_end_s <= begin_s or end_s <= begin_s:
        return RunStep(number, typed)
    due = offered.load.amount_after(offered_end_s) - offered.load.amount_after(begin_s)
    facts = [seconds.facts(second) for second in numbers]
    sent = sum(row.get("orders_sent", 0) for row in facts)
    answered = sum(row.get("orders_answered", 0) for row in facts)
    times = seconds.times_over(numbers)
    return RunStep(
        number=number,
        typed=typed,
        seconds=numbers,
        offered_orders_per_s=due / (offered_end_s - begin_s),
        answered_orders_per_s=answered / (end_s - begin_s),
        is_saturated=is_saturated(due, sent, answered, times.get("lag_p99_us")),
        times=times,
    )


def is_saturated(due: float, sent: int, answered: int, lag_p99_us: float | None) -> bool:
    """Return whether a step was saturated, by the rule of a whole run: docs/saturation.md.

    One order may be sent after its step although it is in time.
    """
    is_short = sent + 1 < LEAST_SHARE_OF_OFFERED * due
    is_growing = sent - answered > max(SMALL_BACKLOG, (1 - LEAST_SHARE_OF_OFFERED) * sent)
    is_late = lag_p99_us is not None and lag_p99_us > MOST_LAG_P99_US
    return is_short or is_growing or is_late


@dataclass(frozen=True)
class StepsTable:
    """The table of a page; a row of None stands for steps that are left out."""

    columns: Sequence[str]
    rows: Sequence[list[str] | None]
    """The cells of a row; the first is the number of its step."""


def steps_table(folder: RunFolder) -> StepsTable | None:
    """Return the page's table; None for a run without steps."""
    steps = steps_of(folder)
    if not steps:
        return None
    return StepsTable(PAGE_TITLES, _rows(steps, MOST_ON_A_PAGE))


def show_steps(folder: RunFolder) -> bool:
    """Print a row for each step, or for the first and the last ones of many; return whether the run has steps."""
    steps = steps_of(folder)
    if not steps:
        return False
    table = plain_table(key_column("step", from_right=True), key_column("rate"), *TITLES, gap=1)
    for cells in _rows(steps, MOST_IN_TERMINAL):
        table.add_row(*(["..."] * (2 + len(TITLES)) if cells is None else cells))
    terminal().print(table)
    return True


def _rows(steps: Sequence[RunStep], most: int) -> list[list[str] | None]:
    """Return the cells of each step; of more than `most` those of the first and the last ones, with None between."""
    if len(steps) <= most:
        return [_cells(step) for step in steps]
    half = most // 2
    first_rows = [_cells(step) for step in steps[:half]]
    last_rows = [_cells(step) for step in steps[-half:]]
    return [*first_rows, None, *last_rows]


def _cells(step: RunStep) -> list[str]:
    saturated = {None: ABSENT, True: "yes", False: "no"}[step.is_saturated]
    return [
        f"{step.number:,}",
        step.typed,
        whole_number(step.offered_orders_per_s),
        whole_number(step.answered_orders_per_s),
        *(figure_cell(step.times, f"due_{name}_us", WHOLE_NUMBER) for name in ("p50", "p99", "max")),
        saturated,
    ]
