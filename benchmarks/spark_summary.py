"""How long Spark takes for the figures of 100 runs of 1,000,000 completions each, a JVM's start included.

    tables of completion buckets ─▶ exchange spark summary             37,500 records, 435 buckets in each
    100,000,000 single values    ─▶ spark.percentiles.row_figures      from Parquet, 4 GB of heap

Both are made up: lognormal, and one in fifty waits for an acknowledgement that Nagle's algorithm delays. Percentiles
are held against numpy's of the values themselves.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.comparing import Row
from benchmarks.exchange import Limit
from exchange.measurements import CLOCKS, LogBuckets
from spark.dataset.manifest import SCHEMA, IngestedRun, Manifest
from spark.histograms import PERCENTS
from spark.run_record import RunRecord
from spark.schemas import KINDS

RUNS, SECONDS, ORDERS_PER_S = 100, 125, 8_000
EXPERIMENT = "made-up"
HEAP = {"spark.driver.memory": "4g"}
FEW = 3


def rows(repeats: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as name:
        folder = Path(name)
        exact = [_write_run(folder, run) for run in range(RUNS)]
        _write_manifest(folder)
        repeats = min(repeats, FEW)
        from_buckets = [_summarized_s(folder) for _ in range(repeats)]
        from_rows = [_rows_s(folder) for _ in range(repeats)]
        errors = [max(_errors(path, exact)) * 100 for path in (_summary(folder), folder / "figures")]
    yield Limit("100 runs from their buckets", "", "s", from_buckets, [], reach=15)
    yield Limit("100,000,000 rows, local[2], 4 GB", "", "s", from_rows, [], reach=15, aim=10)
    yield Limit("worst percentile against numpy", "", "%", errors, [], reach=0.3, aim=0.3)


def _write_run(folder: Path, run: int) -> dict[str, float]:
    """Its buckets and its rows; the exact percentiles in us."""
    random = np.random.default_rng(run)
    times = np.stack([_times_ns(random) for _ in range(SECONDS)])
    records = [_record(second, clock, times[second]) for second in range(SECONDS) for clock in CLOCKS]
    _write(folder / "completion" / "ingest=1", run, pa.Table.from_pylist(records, schema=_COMPLETION))
    _write(folder / "rows", run, pa.table({"value_ns": times.ravel()}))
    return {name: np.percentile(times, p, method="inverted_cdf") / 1e3 for name, p in PERCENTS.items()}


def _times_ns(random: np.random.Generator) -> np.ndarray:
    fast = random.lognormal(np.log(190e3), 0.35, ORDERS_PER_S)
    delayed = random.random(ORDERS_PER_S) < 0.02
    return np.where(delayed, 40e6 + random.normal(0, 3e6, ORDERS_PER_S), fast).astype(np.int64)


def _record(second: int, clock: str, times: np.ndarray) -> dict[str, object]:
    told = LogBuckets.of(times).sparse()
    origin = {"run_id": "0" * 16, "source": "gateway", "wall_ns": second, "monotonic_ns": second}
    return {**origin, "second": second, "clock": clock, "last_order": False, **told}


_COMPLETION = pa.schema(
    [
        ("run_id", pa.string()), ("source", pa.string()), ("wall_ns", pa.int64()), ("monotonic_ns", pa.int64()),
        ("second", pa.int32()), ("clock", pa.string()), ("last_order", pa.bool_()),
        *((name, pa.int64()) for name in ("count", "sum_ns", "min_ns", "max_ns")),
        ("bucket", pa.list_(pa.int32())), ("bucket_count", pa.list_(pa.int64())),
    ]
)  # fmt: skip


def _write(folder: Path, run: int, table: pa.Table) -> None:
    at = folder / f"experiment={EXPERIMENT}" / f"run={run:03}"
    at.mkdir(parents=True)
    pq.write_table(table, at / "part-0.parquet", compression="gzip" if "bucket" in table.column_names else "snappy")


def _write_manifest(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in (folder / "completion").rglob("*.parquet"))
    runs = tuple(
        IngestedRun(
            record=RunRecord(
                experiment=EXPERIMENT, run=f"{number:03}", status="complete", transport="zeromq",
                offered_orders_per_s=float(ORDERS_PER_S), offered_each_second_per_s=float(ORDERS_PER_S),
                orders_per_s=float(ORDERS_PER_S), warm_up_s=0.0, duration_s=float(SECONDS),
            ),
            fingerprint="", ingest=1, rows=dict.fromkeys(KINDS, 0), unread={}, files={"completion": [file]},
        )
        for number, file in enumerate(files)
    )  # fmt: skip
    content = {"schema": SCHEMA, **asdict(Manifest(number=1, runs=runs))}
    (folder / "manifest-000001.json").write_bytes(orjson.dumps(content))


def _summarized_s(folder: Path) -> float:
    words = ["-m", "experiments", "spark", "summary", str(folder), "--tables", str(folder), "--json"]
    return _timed(words)


def _rows_s(folder: Path) -> float:
    return _timed(["-m", "benchmarks.spark_summary", str(folder)])


def _timed(words: list[str]) -> float:
    start = time.monotonic()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.monotonic() - start


def summarize_rows(folder: Path) -> None:
    """In a process of its own: a session with its heap, the figures of all rows, written."""
    from pyspark.sql import functions as fn

    from spark.percentiles import row_figures
    from spark.session import open_session
    from spark.whole_files import CONTENT, PATH, whole_files

    with open_session(settings=HEAP) as spark:
        files = whole_files(spark, [f"file://{folder / 'rows'}"])
        run = fn.regexp_extract("path", "run=([0-9]+)", 1).alias("run")
        figures = row_figures(files.select(run, PATH, CONTENT), ["run"]).coalesce(1)
        figures.write.mode("overwrite").parquet(f"file://{folder / 'figures'}")


def _summary(folder: Path) -> Path:
    return max((folder / "summary").glob("summary=*"))


def _errors(figures: Path, exact: list[dict[str, float]]) -> Iterator[float]:
    """Relative, of every percentile of every run."""
    prefix = "due_" if figures.name.startswith("summary=") else ""
    for row in pq.read_table(figures, partitioning=None).to_pylist():
        for name, value in exact[int(row["run"])].items():
            yield abs(row[f"{prefix}{name}_us"] / value - 1)


if __name__ == "__main__":
    summarize_rows(Path(sys.argv[1]))
