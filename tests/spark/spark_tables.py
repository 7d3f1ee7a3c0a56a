"""Records of one run as tables of their kind, and as the rows that spark.summary makes of these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from spark_runs import Record

from exchange.unique import unique
from spark.run_facts import RunFacts
from spark.summary import COLUMNS_READ, rows_of_run
from spark.tables.schemas import AT, ORIGIN, PAIR, RUN_ID, table_schema

Row = dict[str, Any]


def facts_of_run(**facts: Any) -> RunFacts:
    """Return a run's facts: those given, and defaults."""
    defaults = {
        "experiment": "a-trial",
        "run": "a-run",
        "status": "complete",
        "transport": "zeromq",
        "warm_up_s": 0.0,
        "offered_orders_per_s": None,
        "orders_per_s": None,
        "duration_s": None,
    }
    return RunFacts(**{**defaults, **facts})


def tables(records: Sequence[Record]) -> list[tuple[str, pa.Table]]:
    """Return (kind, table) for each kind of these records that a summary reads, with the columns that it reads."""
    kinds = unique(record["kind"] for record in records if record["kind"] in COLUMNS_READ)
    return [(kind, table(kind, records).select(COLUMNS_READ[kind])) for kind in kinds]


def table(kind: str, records: Sequence[Record]) -> pa.Table:
    """Return all columns of the records of one kind."""
    rows = []
    for record in records:
        if record["kind"] == kind:
            origin = {name: record[name] for name in ORIGIN}
            origin |= derived_columns(record)
            rows.append({RUN_ID: record["run"], **origin, **record["payload"]})
    return pa.Table.from_pylist(rows, schema=table_schema(kind))


def derived_columns(record: Record) -> Row:
    """Return the columns that the tables add to a record of a MadeUpRun."""
    role, _, number = record["source"].partition(".")
    pair = None if role == "reporter" else int(number or 1)
    return {PAIR: pair, AT: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=record["wall_ns"] // 1000)}


def summarized(*records: Record, **facts: Any) -> dict[int | None, Row]:
    """Return the row of each second, and the row of the run under None; figures that are not known are absent."""
    return {row.get("second"): row for row in rows_of_run(facts_of_run(**facts), tables(records))}


def column(rows: dict[int | None, Row], name: str) -> dict[int | None, Any]:
    """Return the values of one column by second; seconds without a value are left out."""
    return {second: row[name] for second, row in rows.items() if row.get(name) is not None}


def summary_of(folder: Path) -> tuple[Row, list[Row]]:
    """Read the tables in a run's folder: return the row of the run, and the rows of its seconds."""
    (run,) = pq.read_table(folder / "tables" / "summary.parquet").to_pylist()
    seconds = pq.read_table(folder / "tables" / "seconds.parquet").to_pylist()
    return run, seconds
