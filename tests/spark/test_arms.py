"""Arms, the medians over repeats, and the comparison of arms, in SQL over the tables of runs and summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.dataset.runs import RUNS_SCHEMA, IngestedRun
from spark.gold.views import arms, comparison
from spark.run_facts import PAPER_FIGURES, RunFacts
from spark.summary import RATE, ROW_SCHEMA, RUN_COLUMNS, TIMES

SUMMARY_SCHEMA = pa.schema([ROW_SCHEMA.field(name) for name in RUN_COLUMNS])
ARM = ["experiment", "arm", "transport", "offered_orders_per_s"]


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    transport: str
    due_p50_us: float
    arm: str = ""
    status: str = "complete"
    seed: int = 1


def make_views(spark: SparkSession, *runs: MeasuredRun) -> None:
    """Make the views of an experiment's runs at 8,000 orders/s, of which only p50 from due was measured."""
    rows_of_runs = []
    rows_of_summary = []
    for number, run in enumerate(runs):
        name = {"experiment": "e", "run": f"run-{number}"}
        shared = {
            "status": run.status,
            "transport": run.transport,
            "offered_orders_per_s": 8000.0,
            "orders_per_s": None,
        }
        facts = RunFacts(
            **name,
            **shared,
            arm=run.arm,
            warm_up_s=0.0,
            duration_s=1.0,
            paper_figures=dict.fromkeys(PAPER_FIGURES),
            packing=10,
            settings={"packing": "10", "seed": str(run.seed), "url": "tcp://x"},
        )
        rows_of_runs.append(IngestedRun(facts=facts, fingerprint="f", part=0).row())
        rows_of_summary.append(name | shared | {"due_p50_us": run.due_p50_us})
    spark.createDataFrame(pa.Table.from_pylist(rows_of_runs, RUNS_SCHEMA)).createOrReplaceTempView("runs")
    spark.createDataFrame(pa.Table.from_pylist(rows_of_summary, SUMMARY_SCHEMA)).createOrReplaceTempView("summary")


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    yield
    for view in ("runs", "summary", "arms"):
        spark.catalog.dropTempView(view)


def rows_of(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def test_an_arm_has_the_median_of_complete_and_saturated_runs(spark: SparkSession) -> None:
    make_views(
        spark,
        MeasuredRun(transport="amqp", status="complete", due_p50_us=1.0),
        MeasuredRun(transport="amqp", status="saturated", due_p50_us=3.0, seed=2),
        MeasuredRun(transport="amqp", status="invalid", due_p50_us=99.0),
    )
    names = ("transport", "repeats", "left_out", "due_p50_us", "packets", "packing", "settings")
    assert rows_of(arms(spark), *names) == [("amqp", 2, 1, 2.0, None, 10, {"packing": "10"})]


def test_an_arm_has_every_figure_of_a_run(spark: SparkSession) -> None:
    make_views(spark, MeasuredRun(transport="amqp", due_p50_us=1.0))
    columns = [*ARM, "packing", "policy", "settings", "repeats", "left_out", RATE, *PAPER_FIGURES, *TIMES]
    assert arms(spark).columns == columns


def test_arms_that_differ_in_one_thing_are_compared(spark: SparkSession) -> None:
    """The first two differ in the transport, the last two in Nagle's algorithm; first and last differ in both."""
    make_views(
        spark,
        MeasuredRun(transport="amqp", due_p50_us=6.0),
        MeasuredRun(transport="zeromq", due_p50_us=2.0),
        MeasuredRun(transport="zeromq", arm="nagle=gateway", due_p50_us=8.0),
    )
    arms(spark).createOrReplaceTempView("arms")
    assert rows_of(comparison(spark), "first", "second", "due_p50_us_ratio") == [
        ("amqp", "zeromq", 2 / 6),
        ("zeromq", "zeromq nagle=gateway", 4.0),
    ]
