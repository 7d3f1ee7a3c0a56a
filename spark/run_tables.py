"""The tables of one finished run, RUN/tables/*.parquet, made by Arrow in this process: no JVM starts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from spark.run_facts import RunFacts
from spark.summary import READ, RUN_COLUMNS, SECOND_COLUMNS, as_table, rows_of_run
from spark.tables.files import tables_folder
from spark.tables.spool_tables import tables_of_spool
from spark.tables.table_writer import write_whole_table


def write_run_tables(run_folder: Path, record: RunFacts) -> None:
    """Write a table for each kind, even a kind without rows, and `seconds` and `summary`. A second call replaces them.

    A line that cannot be read is in no table. TablesUnwritableError, or OSError if the spool cannot be read.
    """
    tables = tables_folder(run_folder)
    spool = tables_of_spool(run_folder / "spool")
    for kind, rows in spool.kinds.items():
        write_whole_table(rows, tables / f"{kind}.parquet")
    rows = as_table(rows_of_run(record, [(kind, spool.kinds[kind].select(columns)) for kind, columns in READ.items()]))
    write_whole_table(rows.filter(pc.is_null(rows["second"])).select(RUN_COLUMNS), tables / "summary.parquet")
    write_whole_table(rows.filter(pc.is_valid(rows["second"])).select(SECOND_COLUMNS), tables / "seconds.parquet")
