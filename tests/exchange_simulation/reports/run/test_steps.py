"""The table of the steps of a run whose load changes over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchange.load_shape import LoadShape
from exchange.measurements import LogBuckets
from exchange_simulation.reports.run.page import page_html
from exchange_simulation.reports.run.run_folder import RunFolder
from exchange_simulation.reports.run.seconds_tables import show_seconds
from exchange_simulation.reports.run.steps import RunStep, is_saturated, place_in, steps_of, steps_table

STEPS = "1000@2s,2000@2s,500..1500@2s"


def second_of(second: int, orders: int, us: float, lag_us: float = 5.0) -> list[tuple[str, dict[str, Any]]]:
    """The records of a second in which this many orders were sent and answered, each after the same time."""
    records: list[tuple[str, dict[str, Any]]] = [
        ("traffic", {"second": second, "orders_sent": orders, "orders_answered": orders, "messages_received": orders})
    ]
    for clock, of_clock_us in (("due", us), ("handed_over", us), ("lag", lag_us)):
        buckets = LogBuckets.of(np.full(orders, int(of_clock_us * 1e3), np.int64)).sparse()
        sparse = {name: np.asarray(value).tolist() for name, value in buckets.items()}
        records.append(("completion", {"second": second, "clock": clock, "last_order": False, **sparse}))
    return records


def run_folder(typed: str, seconds: Mapping[int, tuple[int, float]], **settings: Any) -> RunFolder:
    """The folder of a run with this load: the number of orders of each second, and their completion time in us."""
    shape = LoadShape.parse(typed)
    spool: dict[str, list[dict[str, Any]]] = {"traffic": [], "completion": [], "process": [], "throughput": []}
    for second, (orders, us) in seconds.items():
        for kind, payload in second_of(second, orders, us):
            clocks = {"wall_ns": (second + 1) * 10**9, "monotonic_ns": (second + 1) * 10**9}
            spool[kind].append({"source": "gateway", "kind": kind, **clocks, "payload": payload})
    run = {
        "status": "complete",
        "reasons": [],
        "completion_us": {},
        "rates": {},
        "duration_s": shape.length_s,
        "settings": {
            "transport": "zeromq",
            "orders_per_s": shape.highest,
            "arrivals": f"steps:{shape.in_shares().text}",
            "orders": None,
            "duration_s": shape.length_s,
            **settings,
        },
    }
    return RunFolder(run, spool)  # type: ignore[arg-type]


MEASURED = {0: (1000, 100), 1: (1000, 100), 2: (2000, 300), 3: (2000, 300), 4: (750, 200), 5: (1250, 200)}


def numbers_of(steps: Sequence[RunStep]) -> list[tuple[float | None, ...]]:
    """Offered and answered rates and the p50 of each step, rounded."""
    numbers = []
    for step in steps:
        values = (step.offered_orders_per_s, step.answered_orders_per_s, step.times.get("due_p50_us"))
        numbers.append(tuple(None if value is None else round(value) for value in values))
    return numbers


def test_each_step_has_the_figures_of_its_seconds() -> None:
    steps = steps_of(run_folder(STEPS, MEASURED))
    assert [step.typed for step in steps] == ["1000@2s", "2000@2s", "500..1500@2s"]
    assert [list(step.seconds) for step in steps] == [[0, 1], [2, 3], [4, 5]]
    assert numbers_of(steps) == [(1000, 1000, 100), (2000, 2000, 300), (1000, 1000, 200)]
    assert [step.is_saturated for step in steps] == [False, False, False]


def test_a_second_counts_for_the_step_that_offered_most_of_its_orders() -> None:
    spike = LoadShape.parse("2000@5s,60000@0.5s,2000@10s")
    assert [place_in(spike, second, 15.5) for second in (0, 4, 5, 6, 15)] == [0, 0, 1, 2, 2]
    assert place_in(spike, 17, 15.5) == 2, "late answers belong to the last step"
    assert place_in(spike, 17, 5.0) == 0, "a load that ends early reaches no later step"


def test_a_step_that_shares_each_of_its_seconds_with_larger_ones_has_no_figures() -> None:
    steps = steps_of(run_folder("9000@1500ms,10@100ms,9000@1400ms", dict.fromkeys(range(3), (6000, 100))))
    assert [step.typed for step in steps] == ["9000@1.5s", "10@0.1s", "9000@1.4s"]
    assert not steps[1].seconds
    assert numbers_of(steps)[1] == (None, None, None)
    assert steps[1].is_saturated is None


def test_the_last_rate_goes_on_in_the_last_row() -> None:
    steps = steps_of(run_folder("1000@2s,2000@1s", MEASURED, duration_s=4.0))
    assert [list(step.seconds) for step in steps] == [[0, 1], [2, 3, 4, 5]]
    assert steps[1].offered_orders_per_s == pytest.approx(2000)


@pytest.mark.parametrize("typed", ["1000..2000@6s", "1000@6s"])
def test_one_rate_or_one_ramp_has_no_table_of_steps(typed: str) -> None:
    assert steps_of(run_folder(typed, MEASURED)) == []
    assert steps_table(run_folder(typed, MEASURED)) is None


@pytest.mark.parametrize(
    ("sent", "answered", "lag_p99_us", "expected"),
    [
        (10_000, 10_000, 9_000.0, False),
        (9_899, 9_899, 9_000.0, False),
        (9_898, 9_898, 9_000.0, True),
        (10_000, 9_900, 9_000.0, False),
        (10_000, 9_899, 9_000.0, True),
        (10_000, 10_000, 10_001.0, True),
        (10_000, 10_000, None, False),
    ],
    ids=["kept", "1 % less sent", "more than 1 % less sent", "100 unanswered", "101 unanswered", "late", "no lag"],
)
def test_a_step_is_saturated_by_the_rule_of_a_run(
    sent: int, answered: int, lag_p99_us: float | None, expected: bool
) -> None:
    assert is_saturated(10_000, sent, answered, lag_p99_us) is expected


@pytest.mark.parametrize("columns", ["60", "200"])
def test_the_terminal_has_a_row_for_each_step_and_few_seconds(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show_seconds(run_folder("1000@10s,2000@10s", {second: (1000 + second // 10 * 1000, 100) for second in range(20)}))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= int(columns) for line in lines)
    assert [line.split()[:4] for line in lines if "@" in line][:2] == [
        ["1", "1000@10s", "1,000", "1,000"],
        ["2", "2000@10s", "2,000", "2,000"],
    ]
    seconds = [line.split()[0] for line in lines if re.match(r" *(\d+|\.\.\.) +(\d|\.\.\.)", line)]
    first = seconds.index("0")
    assert seconds[first : first + 7] == ["0", "1", "2", "...", "17", "18", "19"]


def test_of_many_steps_the_first_and_the_last_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    typed = ",".join(["1000@1s,2000@1s"] * 10)
    show_seconds(run_folder(typed, {second: (1000 + second % 2 * 1000, 100) for second in range(20)}))
    numbers = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "@" in line]
    assert numbers == ["1", "2", "3", "4", "5", "6", "15", "16", "17", "18", "19", "20"]


def test_the_page_has_the_same_rows(tmp_path: Path) -> None:
    folder = run_folder(STEPS, MEASURED)
    table = steps_table(folder)
    assert table is not None
    assert table.rows[2] == ["3", "500..1500@2s", "1,000", "1,000", "200", "200", "200", "no"]
    page = page_html(folder)
    assert "Every step of the load" in page
    assert "<td>500..1500@2s</td><td>1,000</td><td>1,000</td><td>200</td>" in page
    assert "Every step of the load" not in page_html(run_folder("1000@6s", MEASURED))
