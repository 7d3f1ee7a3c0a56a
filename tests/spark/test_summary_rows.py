"""The rows of several runs that share files, against the rows of each run by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun
from spark_tables import Row, facts_of_run, table, tables

from spark.dataset.folder import LocalFolder
from spark.dataset.summarizing import read_kind, summary_rows
from spark.errors import SparkJobError, typed_errors
from spark.run_facts import RunFacts
from spark.summary import COLUMNS_READ, as_table, rows_of_run

NAMES = ("first", "second [1] *", "third")


@dataclass(frozen=True)
class RecordedRun:
    facts: RunFacts
    made_up: MadeUpRun


def write_files(folder: Path, part: int, *runs: RecordedRun) -> None:
    """Write a file of each kind where ingest would leave it."""
    for kind in COLUMNS_READ:
        file = folder / kind / f"experiment={runs[0].facts.experiment}" / f"part-{part}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        tables_of_runs = []
        for run in runs:
            records = table(kind, run.made_up.records)
            tables_of_runs.append(records.append_column("run", pa.array([run.facts.run] * len(records))))
        pq.write_table(pa.concat_tables(tables_of_runs), file)


def read_rows(spark: SparkSession, folder: Path, runs: Sequence[RunFacts]) -> list[Row]:
    tables = {kind: read_kind(spark, LocalFolder(str(folder)), kind) for kind in COLUMNS_READ}
    return [row.asDict() for row in summary_rows(spark, tables, runs).collect()]


def test_runs_in_shared_files_have_the_rows_of_each_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    runs = []
    for number, name in enumerate(NAMES):
        runs.append(RecordedRun(facts_of_run(run=name), MadeUpRun(seconds=2, orders_per_s=10 + number)))
    run_without_records = facts_of_run(run="no records")
    expected = rows_of_run(run_without_records, ())
    for run in runs:
        expected += rows_of_run(run.facts, tables(run.made_up.records))
    expected.sort(key=lambda row: (row["run"], row.get("second", -1)))

    write_files(tmp_path, 0, runs[0], runs[1])
    write_files(tmp_path, 1, runs[2])
    rows = read_rows(spark, tmp_path, [run_without_records, *(run.facts for run in runs)])
    assert rows == as_table(expected).to_pylist()


@pytest.mark.parametrize("content", [b"PAR1 and no more", b"PAR1" + bytes(100) + b"\x19\x00\x00\x00PAR1"])
def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path, content: bytes) -> None:
    write_files(tmp_path, 0, RecordedRun(facts_of_run(), MadeUpRun(seconds=1, orders_per_s=10)))
    (tmp_path / "traffic" / "experiment=a-trial" / "part-0.parquet").write_bytes(content)
    with pytest.raises(SparkJobError, match=r"traffic/.*part-0\.parquet|[Pp]arquet"), typed_errors(tmp_path):
        read_rows(spark, tmp_path, [facts_of_run()])
