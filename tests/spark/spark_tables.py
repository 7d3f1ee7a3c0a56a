"""Records as tables of their kind, as spark.summary takes them: of one run, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from spark_runs import Record

from spark.run_facts import RunFacts
from spark.summary import READ, rows_of_run
from spark.tables.schemas import ORIGIN, TABLE_ORIGIN, table_schema

Row = dict[str, Any]


def run_record(**known: Any) -> RunFacts:
    of_run = {"experiment": "a-trial", "run": "a-run", "status": "complete", "transport": "zeromq", "warm_up_s": 0.0}
    rates = dict.fromkeys(("offered_orders_per_s", "orders_per_s", "duration_s"))
    return RunFacts(**{**of_run, **rates, **known})


def tables(records: Sequence[Record]) -> list[tuple[str, pa.Table]]:
    """A table a kind, with the columns that a summary reads."""
    kinds = dict.fromkeys(record["kind"] for record in records if record["kind"] in READ)
    return [(kind, table(kind, records).select(READ[kind])) for kind in kinds]


def table(kind: str, records: Sequence[Record]) -> pa.Table:
    """All columns of the records of one kind."""
    named = [
        {**{name: record[key] for name, key in zip(TABLE_ORIGIN, ("run", *ORIGIN), strict=True)}, **record["payload"]}
        for record in records
        if record["kind"] == kind
    ]
    return pa.Table.from_pylist(named, schema=to_arrow_schema(table_schema(kind)))


def summarized(*records: Record, **known: Any) -> dict[int | None, Row]:
    """By second, and None for the run: what is known."""
    return {row.get("second"): row for row in rows_of_run(run_record(**known), tables(records))}


def column(rows: dict[int | None, Row], name: str) -> dict[int | None, Any]:
    """One column of them, where it is known."""
    return {second: row[name] for second, row in rows.items() if row.get(name) is not None}


def summary_of(folder: Path) -> tuple[Row, list[Row]]:
    """The rows that a run's folder holds: of the run, and of its seconds."""
    (run,), seconds = (
        pq.read_table(folder / "tables" / f"{name}.parquet").to_pylist() for name in ("summary", "seconds")
    )
    return run, seconds
