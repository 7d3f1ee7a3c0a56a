"""The run that prepares and warms Spark is one that a summary reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark.jobs import write_smallest_run
from spark.run_facts import read_run
from spark.tables.files import tables_folder
from spark.tables.schemas import KINDS
from spark.tables.spool import ingest


def test_its_record_is_that_of_a_finished_run(tmp_path: Path) -> None:
    assert read_run(write_smallest_run(tmp_path)).status == "complete"


def test_each_of_its_lines_is_in_a_table_of_its_kind(spark: SparkSession, tmp_path: Path) -> None:
    tables = tables_folder(tmp_path)
    ingest(spark, write_smallest_run(tmp_path) / "spool", tables)
    assert [pq.read_metadata(tables / f"{kind}.parquet").num_rows for kind in KINDS] == [1] * len(KINDS)
