"""The table of seconds that Spark follows, in a terminal and elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from exchange_simulation.reports.live.spark_table import SECONDS_SHOWN, SecondsOnScreen
from spark.live.table import LIVE_FIGURES, Totals

RUN = Path("results/first")


def row(second: int, final: bool = True, **figures: float) -> dict[str, Any]:
    """Return the row of a second, with a few figures measured, and those that are given."""
    measured = {"orders_per_s": 8000.0 + second, "due_count": 8000, "due_p50_us": 120.4, "due_p99_us": 310.0}
    return {"second": second, "final": final, **dict.fromkeys(LIVE_FIGURES), **measured, **figures}


def output_of(batches: list[list[dict[str, Any]]], is_terminal: bool = False) -> str:
    """Return all output for these batches of changed rows, one after the other, and for the end of the run."""
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=is_terminal, color_system=None)
    totals = Totals(lines=91, records=90, late=2, problems={"unknown kind": (1, "weather")})
    with SecondsOnScreen(console) as screen:
        for rows in batches:
            screen.take_rows(RUN, rows)
            screen.draw()
        screen.end(RUN, 12, totals, is_closed=True)
    return file.getvalue()


def test_outside_a_terminal_a_second_is_printed_once_when_final() -> None:
    first_batch = [row(0, final=False, due_p50_us=1.0)]
    second_batch = [row(0), row(1, final=False)]
    third_batch = [row(0, due_p50_us=99.0), row(1)]
    assert output_of([first_batch, second_batch, third_batch]).splitlines()[:-2] == [
        "first: second 0, sent 8,000, answered -, p50 us 120, p99 us 310, max us -, lag p99 -, gateway -, engine -",
        "first: second 1, sent 8,001, answered -, p50 us 120, p99 us 310, max us -, lag p99 -, gateway -, engine -",
    ]


def test_the_last_lines_have_the_totals_and_the_unread_lines() -> None:
    assert output_of([]).splitlines() == [
        "first: 12 seconds, 90 records, 2 of them late; 0 said twice, 1 line unread",
        "  unread: 1 line, unknown kind, as: weather",
    ]


def test_in_a_terminal_the_newest_seconds_are_a_table_with_the_newest_last() -> None:
    output = output_of([[row(second) for second in range(15)]], is_terminal=True)
    _, _, last_table = output.rpartition("first, us from due")
    lines = last_table.splitlines()
    heading_lines = 2
    seconds = [int(line.split()[0]) for line in lines[heading_lines : heading_lines + SECONDS_SHOWN]]
    assert seconds == list(range(5, 15))
    assert max(map(len, lines)) <= 80


def test_without_a_schedule_times_are_from_handing_over() -> None:
    output = output_of([[row(0, due_count=0, handed_over_p50_us=7.0)]])
    assert "p50 us 7," in output
