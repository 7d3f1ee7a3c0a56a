"""The smallest run, which prepares and warms Spark, can be summarized."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from spark.run_facts import read_run
from spark.run_tables import write_run_tables
from spark.tables.schemas import KINDS
from spark.warm_up import write_smallest_run


def test_the_smallest_run_is_complete(tmp_path: Path) -> None:
    assert read_run(write_smallest_run(tmp_path)).status == "complete"


def test_the_smallest_run_has_a_row_in_the_table_of_each_kind(tmp_path: Path) -> None:
    folder = write_smallest_run(tmp_path)
    write_run_tables(folder, read_run(folder))
    for kind in KINDS:
        assert pq.read_metadata(folder / "tables" / f"{kind}.parquet").num_rows == 1, kind
