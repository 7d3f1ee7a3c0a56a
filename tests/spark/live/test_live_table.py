"""The live table of a run: its rows, its late and repeated records, and what readers see while the run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from growing import (
    GrowingRun,
    follow_to_end,
    in_order,
    parts_of,
    record_counts,
    records_in_table,
    records_in_table_by_spark,
    table,
)
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun, completion_payload, record

from spark.dataset.folder_of_url import dataset_folder
from spark.dataset.views import create_views
from spark.live.folder import LiveFolder
from spark.live.query import FollowedRun
from spark.live.records import identified_records
from spark.live.table import LiveTable
from spark.summary import MEASURED, RATE
from spark.tables.files import read_whole, spark_path, write_by_spark
from spark.tables.problems import NO_RECORD, UNKNOWN_SCHEMA
from tests.spark.conftest import Analysed

pytestmark = pytest.mark.jvm


def test_the_live_table_of_a_run_is_its_table_of_seconds(spark: SparkSession, analysed: Analysed) -> None:
    run = follow_to_end(spark, analysed.folder)
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
    (end_of_second_1,) = [
        place for place, r in enumerate(records) if r["kind"] == "traffic" and r["payload"]["second"] == 1
    ]
    growing.grow(records[: end_of_second_1 + 1])
    with FollowedRun(spark, growing.folder) as run:
        run.catch_up()
        assert {second: row["final"] for second, row in table(growing.folder).items()} == {0: True, 1: False}
        assert not run.is_closed
        growing.grow(records[end_of_second_1 + 1 :])
        run.catch_up()
        assert run.is_closed
        assert all(row["final"] for row in table(growing.folder).values())
        assert run.totals.late == 0


def test_repeated_records_are_counted_and_late_records_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=3, orders_per_s=200).records)
    late = next(r for r in records if r["kind"] == "completion" and r["payload"]["clock"] == "due")
    also_late = record("completion", completion_payload(0, "due", np.array([10**9])), at_s=1.2)
    growing = GrowingRun(tmp_path / "run").grow_in([r for r in records if r is not late], 3)
    with FollowedRun(spark, growing.folder) as run:
        run.catch_up()
        assert table(growing.folder)[0]["due_count"] is None

        growing.grow([late, late, records[1], records[-1], also_late])
        run.catch_up()
        assert run.totals.late == 2
        assert run.totals.duplicates == 3

        growing.grow([late])
        run.catch_up()
        assert run.totals.late == 2
        assert run.totals.duplicates == 4
    assert table(growing.folder)[0]["due_count"] == 201
    assert table(growing.folder)[0]["due_max_us"] == 1e6
    expected = record_counts([*records, also_late])
    assert records_in_table(growing.folder) == expected
    assert records_in_table_by_spark(spark, growing.folder) == expected


def test_several_followers_in_turn_make_the_table_of_one(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=3, orders_per_s=200).records)
    undisturbed = GrowingRun(tmp_path / "undisturbed").grow_in(records, 1)
    follow_to_end(spark, undisturbed.folder)
    growing = GrowingRun(tmp_path / "growing")
    for part in parts_of(records, 3):
        growing.grow(part)
        run = follow_to_end(spark, growing.folder)
    assert table(growing.folder) == table(undisturbed.folder)
    assert run.totals.records == len(records)
    assert len(list((growing.folder / "live" / "records").iterdir())) == 1


def test_unreadable_lines_are_counted_by_problem_with_an_example(spark: SparkSession, tmp_path: Path) -> None:
    records = in_order(MadeUpRun(seconds=1, orders_per_s=200).records)
    half_a_record = json.dumps(records[3])[:40]
    of_other_schema = json.dumps({**records[0], "schema": 2})
    growing = GrowingRun(tmp_path / "run")
    growing.grow([*records, "no JSON", "no JSON", half_a_record, of_other_schema, b"\xff\xfe\x00"])
    (growing.folder / "spool" / "000002.jsonl").write_bytes(b"")
    run = follow_to_end(spark, growing.folder)
    assert run.totals.unread == 5
    assert {problem: lines for problem, (lines, _) in run.totals.problems.items()} == {NO_RECORD: 4, UNKNOWN_SCHEMA: 1}
    assert all(example.startswith("000001.jsonl: ") for _, example in run.totals.problems.values())
    assert records_in_table(growing.folder) == record_counts(records)


@pytest.mark.parametrize("experiment", ["alone", "a [1] trial in köln & x+y"])
def test_four_readers_and_sql_see_each_second_once_while_the_run_goes_on(
    spark: SparkSession, tmp_path: Path, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an hour of two seconds, the run has two files."""
    monkeypatch.setattr("spark.live.table.SECONDS_AN_HOUR", 2)
    records = in_order(MadeUpRun(seconds=3, orders_per_s=200).records)
    results = tmp_path / "results"
    if experiment == "alone":
        growing = GrowingRun(results / "run")
    else:
        growing = GrowingRun(results / experiment / "run")
        (results / experiment / "plan.json").write_text("{}")
    with FollowedRun(spark, growing.folder) as run:
        for part in parts_of(records, 4):
            growing.grow(part)
            run.catch_up()
            expected = {second: row["orders_sent"] for second, row in table(growing.folder).items()}
            for reader, rows in rows_by_reader(spark, results / "tables" / "live").items():
                assert len(rows) == len(expected), reader
                assert dict(rows) == expected, reader
    assert list(table(growing.folder)) == [0, 1, 2, 3]
    assert len(list((results / "tables" / "live").rglob("part-*.parquet"))) == 2
    views = create_views(spark, dataset_folder(spark, str(results / "tables")))
    assert views == ["live"]
    keys = spark.sql("select distinct experiment, run from live").collect()
    assert [tuple(key) for key in keys] == [(experiment, "run")]


def rows_by_reader(spark: SparkSession, folder: Path) -> dict[str, list[tuple[int, int | None]]]:
    """Return (second, orders_sent) of each row of the table `live`, as the plain call of each library reads it."""
    columns = ["second", "orders_sent"]
    frame = pd.read_parquet(folder)[columns].astype(object)
    frame = frame.where(frame.notna(), None)
    by_duckdb = duckdb.sql(f"select second, orders_sent from '{folder.parent}/live/**/*.parquet'")
    return {
        "spark": [tuple(row) for row in spark.read.parquet(spark_path(folder)).select(*columns).collect()],
        "pandas": list(frame.itertuples(index=False, name=None)),
        "duckdb": by_duckdb.fetchall(),
        "polars": pl.read_parquet(folder).select(columns).rows(),
    }


def test_a_day_of_small_batches_leaves_few_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch left a file of records and a note, so that a day left 10^5 of each. Each line is a batch here."""
    monkeypatch.setattr("spark.live.record_files.ROWS_A_FILE", 100)
    records = in_order(MadeUpRun(seconds=20, orders_per_s=100, samples=200).records)
    lines = spark.createDataFrame([(json.dumps(line),) for line in [*records, *records[:50]]], "value STRING")
    write_by_spark(identified_records(lines), tmp_path / "lines.parquet")
    rows = read_whole(tmp_path / "lines.parquet")
    at_once = LiveFolder(tmp_path / "at once" / "run")
    in_batches = LiveFolder(tmp_path / "in batches" / "run")
    with at_once.locked():
        LiveTable(at_once).take_lines(rows)
    with in_batches.locked():
        live = LiveTable(in_batches)
        for place in range(len(rows)):
            live.take_lines(rows.slice(place, 1))
        assert len(list(in_batches.records.iterdir())) == len(records) // 100 + 1
        other_files = sorted(path.name for path in in_batches.path.iterdir() if path.is_file())
        assert other_files == [".lock", "stamp.json", "state.json"]
        assert live.totals.duplicates == 50
        next_follower = LiveTable(in_batches)
        assert next_follower.totals == live.totals
        assert next_follower.rows == live.rows
    assert table(in_batches.run) == table(at_once.run)
    assert records_in_table(in_batches.run) == record_counts(records)
    assert len(records) > 400


def test_a_batch_writes_only_the_hours_of_its_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of a run had all its 86,400 rows written by each batch."""
    folder = LiveFolder(tmp_path / "results" / "run")
    written: list[Path] = []

    def note_files(_hidden: Path, files: Iterable[Path], _run: str, rows: Iterable[dict[str, Any]]) -> None:
        written.extend(files)
        assert [row["second"] for row in rows] == [3_600, 3_700]

    with folder.locked():
        live = LiveTable(folder)
        live.rows = {second: {"second": second} for second in (0, 3_599, 3_600, 3_700, 7_200)}
        monkeypatch.setattr("spark.live.table.write_rows", note_files)
        live.write_rows_of([3_700])
    assert written == list(folder.files_of_hour(1))
    assert [path.name for path in written] == ["part-1.parquet", "part-1-run.parquet"]
