from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark.dataset.summarizing import MEASURED, arms_table, comparison_table

COLUMNS = ", ".join(
    [
        "experiment string, arm string, transport string, offered_orders_per_s double, status string",
        *(f"{name} double" for name in MEASURED),
    ]
)


def runs(spark: SparkSession, *rows: tuple[str, str, str, float]) -> DataFrame:
    """(arm, transport, status, p50 from due)."""
    made = [
        ("e", arm, transport, 8000.0, status, *(p50 if name == "due_p50_us" else None for name in MEASURED))
        for arm, transport, status, p50 in rows
    ]
    return spark.createDataFrame(made, COLUMNS)


def rows_of(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def test_an_arm_is_the_median_of_runs_that_count_and_says_how_many_do_not(spark: SparkSession) -> None:
    rows = [("", "amqp", status, p50) for status, p50 in (("complete", 1.0), ("saturated", 3.0), ("invalid", 99.0))]
    arms = arms_table(runs(spark, *rows))
    assert rows_of(arms, "transport", "repeats", "left_out", "due_p50_us", "packets") == [("amqp", 2, 1, 2.0, None)]


def test_arms_that_differ_in_one_thing_are_compared(spark: SparkSession) -> None:
    arms = [("", "amqp", 6.0), ("", "zeromq", 2.0), ("nagle=gateway", "zeromq", 8.0)]
    made = arms_table(runs(spark, *((arm, transport, "complete", p50) for arm, transport, p50 in arms)))
    assert rows_of(comparison_table(made), "first", "second", "due_p50_us_ratio") == [
        ("amqp", "zeromq", 2 / 6),
        ("zeromq", "zeromq nagle=gateway", 4.0),
    ]
