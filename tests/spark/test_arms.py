"""Arms, the medians over repeats, and the comparison of arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark.dataset.summarizing import MEASURED, arms_table, comparison_table

COLUMNS = ", ".join(
    [
        "experiment string, arm string, transport string, offered_orders_per_s double, status string",
        *(f"{name} double" for name in MEASURED),
    ]
)


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    transport: str
    due_p50_us: float
    arm: str = ""
    status: str = "complete"


def table_of(spark: SparkSession, *runs: MeasuredRun) -> DataFrame:
    """Return the runs of an experiment at 8,000 orders/s, of which only p50 from due was measured."""
    rows = []
    for run in runs:
        figures = [run.due_p50_us if name == "due_p50_us" else None for name in MEASURED]
        rows.append(("e", run.arm, run.transport, 8000.0, run.status, *figures))
    return spark.createDataFrame(rows, COLUMNS)


def rows_of(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def test_an_arm_has_the_median_of_complete_and_saturated_runs(spark: SparkSession) -> None:
    runs = [
        MeasuredRun(transport="amqp", status="complete", due_p50_us=1.0),
        MeasuredRun(transport="amqp", status="saturated", due_p50_us=3.0),
        MeasuredRun(transport="amqp", status="invalid", due_p50_us=99.0),
    ]
    arms = arms_table(table_of(spark, *runs))
    assert rows_of(arms, "transport", "repeats", "left_out", "due_p50_us", "packets") == [("amqp", 2, 1, 2.0, None)]


def test_arms_that_differ_in_one_thing_are_compared(spark: SparkSession) -> None:
    """The first two differ in the transport, the last two in Nagle's algorithm; first and last differ in both."""
    runs = [
        MeasuredRun(transport="amqp", due_p50_us=6.0),
        MeasuredRun(transport="zeromq", due_p50_us=2.0),
        MeasuredRun(transport="zeromq", arm="nagle=gateway", due_p50_us=8.0),
    ]
    arms = arms_table(table_of(spark, *runs))
    assert rows_of(comparison_table(arms), "first", "second", "due_p50_us_ratio") == [
        ("amqp", "zeromq", 2 / 6),
        ("zeromq", "zeromq nagle=gateway", 4.0),
    ]
