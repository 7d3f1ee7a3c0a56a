"""Writes tables of 100 synthetic runs of 1,000,000 completions each: as ingest writes them, and as single rows.

Times are lognormal; one order in fifty also waits for an acknowledgement that Nagle's algorithm delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from exchange.measurements import CLOCKS, LogBuckets
from exchange.meters import THROUGHPUT_METERS
from exchange.percentiles import PERCENTS
from spark.dataset.runs import RUNS as RUNS_TABLE
from spark.dataset.runs import RUNS_A_FILE, RUNS_SCHEMA, IngestedRun
from spark.run_facts import RunFacts
from spark.summary import COLUMNS_READ
from spark.tables.schemas import table_schema

RUNS = 100
SECONDS = 125
ORDERS_PER_S = 8_000
EXPERIMENT = "made-up"
NS_PER_S = 1_000_000_000
METERS = THROUGHPUT_METERS
ROWS = "rows"
"""The folder of the single completions; ingest writes no such table."""

Record = dict[str, Any]


def write_runs(
    folder: Path, number: int = RUNS, seconds: int = SECONDS, *, with_single_rows: bool = True
) -> list[dict[str, float]]:
    """Write `number` runs, also as single rows unless told otherwise. Returns the exact percentiles of each, in us."""
    percentiles = []
    for first in range(0, number, RUNS_A_FILE):
        part = first // RUNS_A_FILE
        with ExitStack() as files:
            writers = {table: _writer(files, folder, table, part) for table in (*COLUMNS_READ, RUNS_TABLE)}
            for run in range(first, min(first + RUNS_A_FILE, number)):
                percentiles.append(_write_run(folder, writers, run, seconds, with_single_rows))
    return percentiles


def _writer(files: ExitStack, folder: Path, table: str, part: int) -> pq.ParquetWriter:
    """Open a file of a table; `files` closes it."""
    file = folder / table / f"experiment={EXPERIMENT}" / f"part-{part}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    return files.enter_context(pq.ParquetWriter(file, _schema(table), compression="gzip"))


def _schema(table: str) -> pa.Schema:
    """The columns of a table's files; the experiment is no column, but stands in the name of their folder."""
    if table == RUNS_TABLE:
        return RUNS_SCHEMA.remove(RUNS_SCHEMA.get_field_index("experiment"))
    return pa.schema([pa.field("run", pa.string(), nullable=False), *table_schema(table)])


def _write_run(
    folder: Path, writers: dict[str, pq.ParquetWriter], run: int, seconds: int, with_single_rows: bool
) -> dict[str, float]:
    """Write one run; returns its exact percentiles, in us."""
    random = np.random.default_rng(run)
    times_ns = np.stack([_times_ns(random) for _ in range(seconds)])
    row_of_run = IngestedRun(facts=_facts(run, seconds), fingerprint="", part=0).row()
    rows_by_table = {**_records(times_ns), RUNS_TABLE: iter([row_of_run])}
    for table, rows in rows_by_table.items():
        rows_with_run = [{**row, "run": f"{run:03}"} for row in rows]
        writers[table].write_table(pa.Table.from_pylist(rows_with_run, schema=_schema(table)))
    if with_single_rows:
        rows_file = folder / ROWS / f"experiment={EXPERIMENT}" / f"run={run:03}" / "part-0.parquet"
        rows_file.parent.mkdir(parents=True)
        pq.write_table(pa.table({"value_ns": times_ns.ravel()}), rows_file)
    # 99.9 / 100 is above 0.999, and would select the next of 8,000 times.
    shares = {name: round(percent / 100, 6) for name, percent in PERCENTS.items()}
    return {name: np.quantile(times_ns, share, method="inverted_cdf") / 1e3 for name, share in shares.items()}


def _times_ns(random: np.random.Generator) -> np.ndarray:
    fast = random.lognormal(np.log(190e3), 0.35, ORDERS_PER_S)
    delayed = random.random(ORDERS_PER_S) < 0.02
    return np.where(delayed, 40e6 + random.normal(0, 3e6, ORDERS_PER_S), fast).astype(np.int64)


def _records(times_ns: np.ndarray) -> dict[str, Iterator[Record]]:
    """A run's records of every second, by the kinds of records that a summary reads."""
    messages = {"orders_sent": ORDERS_PER_S, "orders_answered": ORDERS_PER_S, "messages_received": ORDERS_PER_S * 2}
    rss = {"max_rss_bytes": 1 << 27, "voluntary_context_switches": 0, "involuntary_context_switches": 0}
    seconds = range(len(times_ns))
    return {
        "completion": (_completion(s, clock, times_ns[s]) for s in seconds for clock in CLOCKS),
        "traffic": (_origin(s, "gateway") | {"second": s} | messages for s in seconds),
        "throughput": (
            _origin(s, "gateway") | {"meter": int(meter), "rate_per_s": float(ORDERS_PER_S)}
            for s in seconds
            for meter in METERS
        ),
        "process": (
            _origin(s, source) | {"second": s, "cpu_s": s * 0.2} | rss
            for s in seconds
            for source in ("gateway", "engine")
        ),
    }


def _completion(second: int, clock: str, times_ns: np.ndarray) -> Record:
    sparse = LogBuckets.of(times_ns).sparse()
    return {**_origin(second, "gateway"), "second": second, "clock": clock, "last_order": False, **sparse}


def _origin(second: int, source: str) -> Record:
    return {
        "run_id": "0" * 16,
        "source": source,
        "pair": 1,
        "at": (second + 1) * 1_000_000,
        "wall_ns": (second + 1) * NS_PER_S,
        "monotonic_ns": (second + 1) * NS_PER_S,
    }


def _facts(run: int, seconds: int) -> RunFacts:
    rate = float(ORDERS_PER_S)
    return RunFacts(
        experiment=EXPERIMENT,
        run=f"{run:03}",
        status="complete",
        transport="zeromq",
        offered_orders_per_s=rate,
        orders_per_s=rate,
        warm_up_s=0.0,
        duration_s=float(seconds),
    )
