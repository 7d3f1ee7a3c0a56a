"""Measures how long Spark takes for the figures of 100 runs of 1,000,000 completions each, with a JVM's start.

    tables as ingest leaves them ─▶ exchange spark summary         37,500 records of completions, 435 buckets in each
    100,000,000 single values    ─▶ row_figures                   from Parquet, 4 GB of heap
    the same                     ─▶ benchmarks.exact_figures       without Spark

The three run in turns. Percentiles are compared with numpy's of the single values.

Single values stay where their files are: Spark reads the files and brings together what belongs together, numpy counts
what is in them. Counting as a plan of Spark's took three times as long.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from benchmarks.comparison import BenchmarkRow, Limit
from benchmarks.exact_figures import known
from benchmarks.synthetic_runs import ROWS, write_runs
from exchange.measurements import LogBuckets
from spark.sessions.session import open_session
from spark.tables.files import CONTENT, PATH, decoded, whole_files
from spark.tables.histograms import EXACT, figures, merged_histograms

HEAP = {"spark.driver.memory": "4g"}
FEW = 3
SUMMARY, FIGURES = "summary", "figures"
"""Folders: of the table of runs, and of what `summarize_rows` writes."""
LONG, INT = pa.int64(), pa.int32()
HISTOGRAM = pa.schema(
    {"run": pa.string(), **dict.fromkeys(EXACT, LONG), "bucket": pa.list_(INT), "bucket_count": pa.list_(LONG)}
)
BUCKETS, SINGLY = "100 runs from their buckets", "100,000,000 rows, local[2], 4 GB"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure each way to the figures in turns, and the error of the percentiles."""
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as name:
        folder = Path(name)
        exact = write_runs(folder)
        ways = _ways(str(folder))
        rounds = [[_timed(words) for words in ways.values()] for _ in range(min(repeats, FEW))]
        errors = worst_errors_percent(folder, exact)
    targets = {BUCKETS: {"reach": 15.0}, SINGLY: {"reach": 15.0, "aim": 10.0}}
    for what, seconds in zip(ways, zip(*rounds, strict=True), strict=True):
        yield Limit(what, "", "s", list(seconds), [], **targets.get(what, {}))
    yield Limit("worst percentile against numpy", "", "%", errors, [], reach=0.3, aim=0.3)


def _ways(folder: str) -> dict[str, list[str]]:
    """Return the words after `python -m` of each way to the figures, by the name of its row."""
    summary = ["exchange_simulation.cli", "spark", "summary", folder, "--tables", folder, "--json"]
    exact = {f"the rows, exactly, {name}": ["benchmarks.exact_figures", name, folder] for name in known()}
    return {BUCKETS: summary, SINGLY: ["benchmarks.spark_summary", folder], **exact}


def worst_errors_percent(folder: Path, exact: list[dict[str, float]]) -> list[float]:
    """Compare percentiles with numpy's; returns the worst error of all runs in SUMMARY, then that in FIGURES."""
    tables = {SUMMARY: "due_", FIGURES: ""}
    return [max(_errors(folder / table, prefix, exact)) * 100 for table, prefix in tables.items()]


def _timed(words: list[str]) -> float:
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    return time.monotonic() - start


def summarize_rows(spark: SparkSession, folder: Path) -> None:
    """Write the figures of all rows."""
    files = whole_files(spark, [f"file://{folder / ROWS}"])
    run = fn.regexp_extract("path", "run=([0-9]+)", 1).alias("run")
    counted = files.select(run, PATH, CONTENT).mapInArrow(_counted, from_arrow_schema(HISTOGRAM)).repartition("run")
    added = counted.mapInArrow(_added_figures, from_arrow_schema(figures(HISTOGRAM.empty_table(), ["run"]).schema))
    added.coalesce(1).write.mode("overwrite").parquet(f"file://{folder / FIGURES}")


def _counted(files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the values of each file in the log buckets."""
    for batch in files:
        for run, path, content in zip(*(batch[name] for name in ("run", PATH, CONTENT)), strict=True):
            for values in decoded(path.as_py(), content.as_buffer(), ["value_ns"]):
                row = {"run": run.as_py(), **LogBuckets.of(values["value_ns"].to_numpy()).sparse()}
                yield pa.RecordBatch.from_pylist([row], HISTOGRAM)


def _added_figures(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if together := list(batches):
        yield from figures(merged_histograms(pa.Table.from_batches(together), ["run"]), ["run"]).to_batches()


def _errors(table: Path, prefix: str, exact: list[dict[str, float]]) -> Iterator[float]:
    """Yield the relative error of every percentile of every run. AssertionError if a run has no row, or two."""
    rows = pq.read_table(table, partitioning=None).to_pylist()
    assert sorted(int(row["run"]) for row in rows) == list(range(len(exact))), f"{table} has not one row a run"
    for row in rows:
        for name, value in exact[int(row["run"])].items():
            yield abs(row[f"{prefix}{name}_us"] / value - 1)


if __name__ == "__main__":
    with open_session(settings=HEAP) as session:
        summarize_rows(session, Path(sys.argv[1]))
