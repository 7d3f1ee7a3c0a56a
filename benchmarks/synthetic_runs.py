"""Writes tables of 100 synthetic runs of 1,000,000 completions each, as ingest leaves them, and the same as rows.

Times are lognormal; one in fifty also waits for an acknowledgement that Nagle's algorithm delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructType

from exchange.measurements import CLOCKS, LogBuckets, Meter
from exchange.percentiles import PERCENTS
from spark.dataset.runs import RUNS as RUNS_TABLE
from spark.dataset.runs import RUNS_A_FILE, RUNS_SCHEMA, IngestedRun
from spark.run_facts import RunFacts
from spark.summary import READ
from spark.tables.schemas import table_schema

RUNS, SECONDS, ORDERS_PER_S = 100, 125, 8_000
EXPERIMENT = "made-up"
NS = 1_000_000_000
METERS = [meter for meter in Meter if meter <= Meter.GATEWAY_MESSAGES_RECEIVED]
ROWS = "rows"
"""The folder of the single completions, which is no table of ingest's."""

Record = dict[str, Any]


def write_runs(folder: Path, number: int = RUNS, seconds: int = SECONDS) -> list[dict[str, float]]:
    """Write so many runs. Returns the exact percentiles of each, in us."""
    exact = []
    for part in range(0, number, RUNS_A_FILE):
        runs = range(part, min(part + RUNS_A_FILE, number))
        with ExitStack() as files:
            writers = {kind: _writer(files, folder, kind, part // RUNS_A_FILE) for kind in (*READ, RUNS_TABLE)}
            exact += [_write_run(folder, writers, run, seconds) for run in runs]
    return exact


def _writer(files: ExitStack, folder: Path, table: str, part: int) -> pq.ParquetWriter:
    file = folder / table / f"experiment={EXPERIMENT}" / f"part-{part}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    return files.enter_context(pq.ParquetWriter(file, _schema(table), compression="gzip"))


def _schema(table: str) -> pa.Schema:
    """The columns of a table's files; the name of their folder has the experiment."""
    stored = RUNS_SCHEMA if table == RUNS_TABLE else StructType(table_schema(table).fields).add("run", StringType())
    return to_arrow_schema(StructType([field for field in stored if field.name != "experiment"]))


def _write_run(folder: Path, writers: dict[str, pq.ParquetWriter], run: int, seconds: int) -> dict[str, float]:
    random = np.random.default_rng(run)
    times_ns = np.stack([_times_ns(random) for _ in range(seconds)])
    about = IngestedRun(record=_record(run, seconds), fingerprint="", part=0).row()
    for table, rows in {**_records(times_ns), RUNS_TABLE: iter([about])}.items():
        named = [{**row, "run": f"{run:03}"} for row in rows]
        writers[table].write_table(pa.Table.from_pylist(named, schema=_schema(table)))
    rows_file = folder / ROWS / f"experiment={EXPERIMENT}" / f"run={run:03}" / "part-0.parquet"
    rows_file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"value_ns": times_ns.ravel()}), rows_file)
    # 99.9 / 100 is above 0.999, which of 8,000 times would be the next one.
    shares = {name: round(percent / 100, 6) for name, percent in PERCENTS.items()}
    return {name: np.quantile(times_ns, share, method="inverted_cdf") / 1e3 for name, share in shares.items()}


def _times_ns(random: np.random.Generator) -> np.ndarray:
    fast = random.lognormal(np.log(190e3), 0.35, ORDERS_PER_S)
    delayed = random.random(ORDERS_PER_S) < 0.02
    return np.where(delayed, 40e6 + random.normal(0, 3e6, ORDERS_PER_S), fast).astype(np.int64)


def _records(times_ns: np.ndarray) -> dict[str, Iterator[Record]]:
    """A run's records of every second, by each kind that a summary reads."""
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
    return {"run_id": "0" * 16, "source": source, "wall_ns": (second + 1) * NS, "monotonic_ns": (second + 1) * NS}


def _record(run: int, seconds: int) -> RunFacts:
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
