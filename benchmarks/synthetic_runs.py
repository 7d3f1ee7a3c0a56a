"""Writes tables of 100 synthetic runs of 1,000,000 completions each, as ingest leaves them, and the same as rows.

Times are lognormal; one in fifty also waits for an acknowledgement that Nagle's algorithm delays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from exchange.measurements import CLOCKS, LogBuckets, Meter
from spark.dataset.manifest import SCHEMA, IngestedRun, Manifest
from spark.run_facts import RunFacts
from spark.tables.histograms import PERCENTS
from spark.tables.schemas import KINDS, table_schema

RUNS, SECONDS, ORDERS_PER_S = 100, 125, 8_000
EXPERIMENT = "made-up"
NS = 1_000_000_000
METERS = [meter for meter in Meter if meter <= Meter.GATEWAY_MESSAGES_RECEIVED]
ROWS = "rows"
"""The folder of the single completions, which is no table of ingest's."""

Record = dict[str, Any]


def write_runs(folder: Path) -> list[dict[str, float]]:
    """Write them all. Returns the exact percentiles of each run, in us."""
    exact = [_write_run(folder, run) for run in range(RUNS)]
    _write_manifest(folder)
    return exact


def _write_run(folder: Path, run: int) -> dict[str, float]:
    random = np.random.default_rng(run)
    times_ns = np.stack([_times_ns(random) for _ in range(SECONDS)])
    for kind, records in _records(times_ns).items():
        table = pa.Table.from_pylist(list(records), schema=to_arrow_schema(table_schema(kind)))
        pq.write_table(table, _file(folder / kind / "ingest=1", run), compression="gzip")
    pq.write_table(pa.table({"value_ns": times_ns.ravel()}), _file(folder / ROWS, run))
    return {name: np.percentile(times_ns, p, method="inverted_cdf") / 1e3 for name, p in PERCENTS.items()}


def _times_ns(random: np.random.Generator) -> np.ndarray:
    fast = random.lognormal(np.log(190e3), 0.35, ORDERS_PER_S)
    delayed = random.random(ORDERS_PER_S) < 0.02
    return np.where(delayed, 40e6 + random.normal(0, 3e6, ORDERS_PER_S), fast).astype(np.int64)


def _records(times_ns: np.ndarray) -> dict[str, Iterator[Record]]:
    """A run's records of every second, by each kind that a summary reads."""
    messages = {"orders_sent": ORDERS_PER_S, "orders_answered": ORDERS_PER_S, "messages_received": ORDERS_PER_S * 2}
    rss = {"max_rss_bytes": 1 << 27, "voluntary_context_switches": 0, "involuntary_context_switches": 0}
    seconds = range(SECONDS)
    return {
        "completion": (_completion(s, clock, times_ns[s]) for s in seconds for clock in CLOCKS),
        "traffic": (_origin(s, "gateway") | {"second": s} | messages for s in seconds),
        "throughput": (
            _origin(s, "gateway") | {"meter": int(meter), "rate_per_s": float(ORDERS_PER_S)}
            for s in seconds for meter in METERS
        ),
        "process": (
            _origin(s, source) | {"second": s, "cpu_s": s * 0.2} | rss
            for s in seconds for source in ("gateway", "engine")
        ),
    }  # fmt: skip


def _completion(second: int, clock: str, times_ns: np.ndarray) -> Record:
    sparse = LogBuckets.of(times_ns).sparse()
    return {**_origin(second, "gateway"), "second": second, "clock": clock, "last_order": False, **sparse}


def _origin(second: int, source: str) -> Record:
    return {"run_id": "0" * 16, "source": source, "wall_ns": (second + 1) * NS, "monotonic_ns": (second + 1) * NS}


def _file(folder: Path, run: int) -> Path:
    at = folder / f"experiment={EXPERIMENT}" / f"run={run:03}"
    at.mkdir(parents=True)
    return at / "part-0.parquet"


def _write_manifest(folder: Path) -> None:
    runs = tuple(
        IngestedRun(record=_record(run), fingerprint="", ingest=1, rows=dict.fromkeys(KINDS, 0), unread={},
                    files=_files(folder, run))
        for run in range(RUNS)
    )  # fmt: skip
    content = {"schema": SCHEMA, **asdict(Manifest(number=1, runs=runs))}
    (folder / "manifest-000001.json").write_bytes(orjson.dumps(content))


def _record(run: int) -> RunFacts:
    rate = float(ORDERS_PER_S)
    return RunFacts(
        experiment=EXPERIMENT, run=f"{run:03}", status="complete", transport="zeromq", offered_orders_per_s=rate,
        offered_each_second_per_s=rate, orders_per_s=rate, warm_up_s=0.0, duration_s=float(SECONDS),
    )  # fmt: skip


def _files(folder: Path, run: int) -> dict[str, list[str]]:
    found = (folder / kind / "ingest=1" / f"experiment={EXPERIMENT}" / f"run={run:03}" for kind in KINDS)
    files = {at.parts[-4]: [str(path.relative_to(folder)) for path in at.glob("*.parquet")] for at in found}
    return {kind: names for kind, names in files.items() if names}
