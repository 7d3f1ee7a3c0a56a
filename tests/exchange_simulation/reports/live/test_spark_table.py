from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from exchange_simulation.reports.live.spark_table import NEWEST, SecondsOnScreen
from spark.live.batch import FIGURES
from spark.live.table import Totals

RUN = Path("results/first")


def row(second: int, final: bool = True, **figures: float) -> dict[str, Any]:
    known = {"orders_per_s": 8000.0 + second, "due_count": 8000, "due_p50_us": 120.4, "due_p99_us": 310.0, **figures}
    return {"second": second, "final": final, **dict.fromkeys(FIGURES), **known}


def shown(is_terminal: bool, *batches: list[dict[str, Any]]) -> str:
    """All that is written for these changes, one after the other, and the end of the run."""
    file = io.StringIO()
    with SecondsOnScreen(Console(file=file, width=80, force_terminal=is_terminal, color_system=None)) as showing:
        for rows in batches:
            showing.rows(RUN, rows)
            showing.draw()
        showing.end(RUN, 12, Totals(records=90, late=2, problems={"unknown kind": (1, "weather")}), is_closed=True)
    return file.getvalue()


def test_outside_a_terminal_a_second_is_printed_once_when_final() -> None:
    output = shown(
        False, [row(0, final=False, due_p50_us=1.0)], [row(0), row(1, final=False)], [row(0, due_p50_us=99.0), row(1)]
    )
    assert output.splitlines()[:2] == [
        "first: second 0, sent 8,000, answered -, p50 us 120, p99 us 310, max us -, lag p99 -, gateway -, engine -",
        "first: second 1, sent 8,001, answered -, p50 us 120, p99 us 310, max us -, lag p99 -, gateway -, engine -",
    ]
    assert output.splitlines()[2:] == [
        "first: 12 seconds, 90 records, 2 of them late; 0 said twice, 1 line unread",
        "  unread: 1 line, unknown kind, as: weather",
    ]


def test_in_a_terminal_the_newest_seconds_are_a_table_with_the_newest_last() -> None:
    last = shown(True, [row(second) for second in range(15)]).rpartition("first, us from due")[2]
    seconds = [int(line.split()[0]) for line in last.splitlines()[2 : 2 + NEWEST]]
    assert seconds == list(range(5, 15))
    assert max(map(len, last.splitlines())) <= 80


def test_without_a_schedule_times_are_from_handing_over() -> None:
    output = shown(False, [row(0, due_count=0, handed_over_p50_us=7.0)])
    assert "p50 us 7," in output
