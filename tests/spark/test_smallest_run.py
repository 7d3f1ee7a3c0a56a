"""The smallest run, which prepares and warms Spark, can be summarized."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark.jobs import write_smallest_run
from spark.run_facts import read_run
from spark.tables.files import tables_folder
from spark.tables.schemas import KINDS
from spark.tables.spool import ingest


def test_the_smallest_run_is_complete(tmp_path: Path) -> None:
    assert read_run(write_smallest_run(tmp_path)).status == "complete"


def test_the_smallest_run_has_a_row_in_the_table_of_each_kind(spark: SparkSession, tmp_path: Path) -> None:
    tables = tables_folder(tmp_path)
    ingest(spark, write_smallest_run(tmp_path) / "spool", tables)
    for kind in KINDS:
        assert pq.read_metadata(tables / f"{kind}.parquet").num_rows == 1, kind
