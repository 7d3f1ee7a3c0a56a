from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from growing import GrowingRun, countable, followed, in_order, in_table, in_table_by_spark, table
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun, completion_payload, record

from spark.dataset.folder import dataset_folder
from spark.dataset.views import create_views
from spark.live.query import FollowedRun
from spark.summary import MEASURED, RATE
from spark.tables.files import spark_path
from spark.tables.spool import NO_RECORD, UNKNOWN_SCHEMA
from tests.spark.conftest import Analysed

pytestmark = pytest.mark.jvm


def test_the_live_table_of_a_run_is_its_table_of_seconds(spark: SparkSession, analysed: Analysed) -> None:
    run = followed(spark, analysed.folder)
    rows = table(analysed.folder)
    assert list(rows) == [row["second"] for row in analysed.seconds]
    for row in analysed.seconds:
        for name in (RATE, *MEASURED):
            live, batch = rows[row["second"]][name], row[name]
            assert live == (None if batch is None else pytest.approx(batch, rel=1e-12)), (row["second"], name)
        assert rows[row["second"]]["final"]
    assert run.totals.records == len(analysed.made_up.records)
    assert run.totals.problems == {NO_RECORD: (1, "000002.jsonl: no JSON at all")}


def test_a_second_is_final_when_a_later_one_is_over_or_the_run_is(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=3).records)
    growing = GrowingRun(tmp_path / "run")
    until = next(n for n, r in enumerate(records) if r["kind"] == "traffic" and r["payload"]["second"] == 1) + 1
    growing.grow(records[:until])
    with FollowedRun(spark, growing.folder) as run:
        run.catch_up()
        assert {second: row["final"] for second, row in table(growing.folder).items()} == {0: True, 1: False}
        assert not run.is_closed
        growing.grow(records[until:])
        run.catch_up()
        assert run.is_closed
        assert all(row["final"] for row in table(growing.folder).values())
        assert run.totals.late == 0


def test_what_is_said_twice_is_counted_and_what_is_late_is_merged_too(spark: SparkSession, tmp_path: Path) -> None:
    made_up = MadeUpRun(seconds=3, orders_per_s=200)
    records = in_order(made_up.records)
    held_back = next(r for r in records if r["kind"] == "completion" and r["payload"]["clock"] == "due")
    growing = GrowingRun(tmp_path / "run").grow_in([r for r in records if r is not held_back], 3)
    more = record("completion", completion_payload(0, "due", np.array([10**9])), at_s=1.2)
    with FollowedRun(spark, growing.folder) as run:
        run.catch_up()
        assert table(growing.folder)[0]["due_count"] is None
        growing.grow([held_back, held_back, records[1], records[-1], more])
        run.catch_up()
        assert (run.totals.duplicates, run.totals.late) == (3, 2)
        growing.grow([held_back])
        run.catch_up()
        assert (run.totals.duplicates, run.totals.late) == (4, 2)
    assert table(growing.folder)[0]["due_count"] == 201
    assert table(growing.folder)[0]["due_max_us"] == 1e6
    assert in_table(growing.folder) == in_table_by_spark(spark, growing.folder) == countable([*records, more])


def test_a_follower_that_comes_back_goes_on_and_has_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=3, orders_per_s=200).records)
    undisturbed = GrowingRun(tmp_path / "undisturbed").grow_in(records, 1)
    followed(spark, undisturbed.folder)
    growing = GrowingRun(tmp_path / "growing")
    for number in range(3):
        growing.grow(records[len(records) * number // 3 : len(records) * (number + 1) // 3])
        run = followed(spark, growing.folder)
    assert table(growing.folder) == table(undisturbed.folder)
    assert run.totals.records == len(records)
    assert len(list((growing.folder / "live" / "records").glob("*"))) == 3


def test_what_cannot_be_read_is_counted_by_reason_and_kept_apart(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=1, orders_per_s=200).records)
    growing = GrowingRun(tmp_path / "run")
    half = json.dumps(records[3])[:40]
    growing.grow([*records, "torn", "torn", half, json.dumps({**records[0], "schema": 2}), b"\xff\xfe\x00"])
    (growing.folder / "spool" / "000002.jsonl").write_bytes(b"")
    run = followed(spark, growing.folder)
    assert run.totals.unread == 5
    assert {problem: lines for problem, (lines, _) in run.totals.problems.items()} == {NO_RECORD: 4, UNKNOWN_SCHEMA: 1}
    assert all(example.startswith("000001.jsonl: ") for _, example in run.totals.problems.values())
    assert in_table(growing.folder) == countable(records)


@pytest.mark.parametrize("trial", [False, True])
def test_four_readers_and_sql_see_each_second_once_while_the_run_goes_on(
    spark: SparkSession, tmp_path: Path, trial: bool
) -> None:
    records, results = in_order(MadeUpRun(seconds=3, orders_per_s=200).records), tmp_path / "results"
    growing = GrowingRun(results / "a [1] trial" / "run" if trial else results / "run")
    if trial:
        (growing.folder.parent / "plan.json").write_text("{}")
    table_folder = results / "tables" / "live"
    with FollowedRun(spark, growing.folder) as run:
        for number in range(4):
            growing.grow(records[len(records) * number // 4 : len(records) * (number + 1) // 4])
            run.catch_up()
            expected = Counter((second, row["orders_sent"]) for second, row in table(growing.folder).items())
            for name, rows in seen_by_readers(spark, table_folder).items():
                assert rows == expected, (name, number)
    assert list(table(growing.folder)) == [0, 1, 2, 3]
    views = create_views(spark, dataset_folder(spark, str(results / "tables")))
    assert views == ["live"]
    keys = spark.sql("select distinct experiment, run from live").collect()
    assert [tuple(key) for key in keys] == [("a [1] trial" if trial else "alone", "run")]


def seen_by_readers(spark: SparkSession, folder: Path) -> dict[str, Counter[tuple[int, int | None]]]:
    """Read (second, orders_sent) of the table `live` by the plain call of each library."""
    columns = ["second", "orders_sent"]
    by_duckdb = duckdb.sql(f"select second, orders_sent from '{folder.parent}/live/**/*.parquet'")
    rows = {
        "spark": [tuple(row) for row in spark.read.parquet(spark_path(folder)).select(*columns).collect()],
        "pandas": pd.read_parquet(folder)[columns].astype("Int64").itertuples(index=False, name=None),
        "duckdb": by_duckdb.fetchall(),
        "polars": pl.read_parquet(folder).select(columns).rows(),
    }
    return {name: Counter((s, None if pd.isna(o) else o) for s, o in found) for name, found in rows.items()}
