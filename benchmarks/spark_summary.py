"""Measures how long Spark takes for the figures of 100 runs of 1,000,000 completions each, with a JVM's start.

    tables as ingest leaves them ─▶ exchange spark summary         37,500 records of completions, 435 buckets in each
    100,000,000 single values    ─▶ row_figures                   from Parquet, 4 GB of heap
    the same                     ─▶ benchmarks.exact_figures       without Spark

The three run in turns. Percentiles are compared with numpy's of the single values.

Single values stay where their files are: Spark reads whole files, numpy counts their values, and Spark groups the
counts by run. Counting by a plan of Spark took three times as long.
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
from benchmarks.exact_figures import installed_libraries
from benchmarks.synthetic_runs import ROWS, write_runs
from exchange.measurements import LogBuckets
from spark.sessions.session import open_session
from spark.tables.files import CONTENT, PATH, decoded, whole_files
from spark.tables.histograms import EXACT, figures, merged_histograms

HEAP = {"spark.driver.memory": "4g"}
FEW = 3
"""The largest number of repeats, since each takes long."""
SUMMARY = "summary"
"""Folder of the table of runs that `exchange spark summary` writes."""
FIGURES = "figures"
"""Folder of the figures that `summarize_rows` writes."""
LONG = pa.int64()
INT = pa.int32()
HISTOGRAM = pa.schema(
    {"run": pa.string(), **dict.fromkeys(EXACT, LONG), "bucket": pa.list_(INT), "bucket_count": pa.list_(LONG)}
)
BUCKETS = "100 runs from their buckets"
SINGLY = "100,000,000 rows, local[2], 4 GB"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the calculations in turns, and the error of the percentiles."""
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as name:
        folder = Path(name)
        exact = write_runs(folder)
        calculations = _calculations(str(folder))
        seconds_by_title: dict[str, list[float]] = {title: [] for title in calculations}
        for _ in range(min(repeats, FEW)):
            for title, words in calculations.items():
                seconds_by_title[title].append(_timed_s(words))
        errors = worst_errors_percent(folder, exact)
    targets = {BUCKETS: {"required": 15.0}, SINGLY: {"required": 15.0, "hoped_for": 10.0}}
    for title, seconds in seconds_by_title.items():
        yield Limit(title, "", "s", seconds, [], **targets.get(title, {}))
    yield Limit("worst percentile against numpy", "", "%", errors, [], required=0.3, hoped_for=0.3)


def _calculations(folder: str) -> dict[str, list[str]]:
    """Return the words after `python -m` of each calculation, by the title of its row."""
    summary = ["exchange_simulation.cli", "spark", "summary", folder, "--tables", folder, "--json"]
    exact = {f"the rows, exactly, {name}": ["benchmarks.exact_figures", name, folder] for name in installed_libraries()}
    return {BUCKETS: summary, SINGLY: ["benchmarks.spark_summary", folder], **exact}


def worst_errors_percent(folder: Path, exact: list[dict[str, float]]) -> list[float]:
    """Compare percentiles with numpy's; returns the worst error in SUMMARY, then the worst error in FIGURES."""
    worst_in_summary = max(_errors(folder / SUMMARY, "due_", exact))
    worst_in_figures = max(_errors(folder / FIGURES, "", exact))
    return [100 * worst_in_summary, 100 * worst_in_figures]


def _timed_s(words: list[str]) -> float:
    """Run a Python module; returns the seconds that it takes."""
    start_s = time.monotonic()
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    return time.monotonic() - start_s


def summarize_rows(spark: SparkSession, folder: Path) -> None:
    """Write the figures of all rows to FIGURES."""
    files = whole_files(spark, [f"file://{folder / ROWS}"])
    run = fn.regexp_extract("path", "run=([0-9]+)", 1).alias("run")
    counted = files.select(run, PATH, CONTENT).mapInArrow(_counted, from_arrow_schema(HISTOGRAM)).repartition("run")
    added = counted.mapInArrow(_added_figures, from_arrow_schema(figures(HISTOGRAM.empty_table(), ["run"]).schema))
    added.coalesce(1).write.mode("overwrite").parquet(f"file://{folder / FIGURES}")


def _counted(files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the values of each file in the log buckets."""
    for batch in files:
        for run, path, content in zip(batch["run"], batch[PATH], batch[CONTENT], strict=True):
            for values in decoded(path.as_py(), content.as_buffer(), ["value_ns"]):
                row = {"run": run.as_py(), **LogBuckets.of(values["value_ns"].to_numpy()).sparse()}
                yield pa.RecordBatch.from_pylist([row], HISTOGRAM)


def _added_figures(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the histograms of each run up, and compute the figures of the sums."""
    batches_of_part = list(batches)
    if not batches_of_part:
        return
    histograms = merged_histograms(pa.Table.from_batches(batches_of_part), ["run"])
    yield from figures(histograms, ["run"]).to_batches()


def _errors(table: Path, prefix: str, exact: list[dict[str, float]]) -> Iterator[float]:
    """Yield the relative error of every percentile of every run. AssertionError unless each run has one row."""
    rows = pq.read_table(table, partitioning=None).to_pylist()
    assert sorted(int(row["run"]) for row in rows) == list(range(len(exact))), f"{table} has not one row a run"
    for row in rows:
        for name, value in exact[int(row["run"])].items():
            yield abs(row[f"{prefix}{name}_us"] / value - 1)


if __name__ == "__main__":
    with open_session(settings=HEAP) as session:
        summarize_rows(session, Path(sys.argv[1]))
