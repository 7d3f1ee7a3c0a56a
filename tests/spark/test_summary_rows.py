"""The rows of several runs, from their files, against what is made of each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun
from spark_tables import Row, run_record, table, tables

from spark.errors import SparkJobError, typed_errors
from spark.run_facts import RunFacts
from spark.summary import READ, RecordsFile, as_table, rows_of_run, summary_rows

NAMES = ("first", "second [1] *", "third")


def written(folder: Path, part: int, *runs: tuple[RunFacts, MadeUpRun]) -> dict[str, RecordsFile]:
    """Write a file of each kind where ingest would leave it."""
    files = {}
    for kind in READ:
        file = folder / kind / f"experiment={runs[0][0].experiment}" / f"part-{part}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [(run.run, table(kind, made_up.records)) for run, made_up in runs]
        named = [records.append_column("run", pa.array([run] * len(records))) for run, records in rows]
        pq.write_table(pa.concat_tables(named), file)
        files[f"file:{file}"] = RecordsFile(kind, tuple(run for run, _ in runs))
    return files


def rows_of(run: RunFacts, made_up: MadeUpRun | None = None) -> list[Row]:
    """In the order of a table: the run before its seconds."""
    rows = rows_of_run(run, tables(made_up.records) if made_up else ())
    return rows[-1:] + rows[:-1]


def read(spark: SparkSession, files: dict[str, RecordsFile], runs: Sequence[RunFacts]) -> list[Row]:
    return [row.asDict() for row in summary_rows(spark, files, runs).collect()]


def test_runs_are_summarized_side_by_side_as_each_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    made = [(run_record(run=name), MadeUpRun(seconds=2, orders_per_s=10 + n)) for n, name in enumerate(NAMES)]
    silent = run_record(run="no records")
    files = written(tmp_path, 0, *made[:2]) | written(tmp_path, 1, made[2])
    rows = [*(row for of_run in made for row in rows_of(*of_run)), *rows_of(silent)]
    expected = as_table(sorted(rows, key=lambda row: (row["run"], row.get("second", -1)))).to_pylist()
    assert read(spark, files, [silent, *(run for run, _ in made)]) == expected


@pytest.mark.parametrize("content", [b"PAR1 and no more", b"PAR1" + bytes(100) + b"\x19\x00\x00\x00PAR1"])
def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path, content: bytes) -> None:
    files = written(tmp_path, 0, (run_record(), MadeUpRun(seconds=1, orders_per_s=10)))
    torn = next(iter(files))
    Path(torn.removeprefix("file:")).write_bytes(content)
    with pytest.raises(SparkJobError, match=r"\.parquet is damaged \(.*\): make it anew"), typed_errors(tmp_path):
        read(spark, files, [run_record()])
