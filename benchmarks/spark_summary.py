"""How long Spark takes for the figures of 100 runs of 1,000,000 completions each, a JVM's start included.

    tables as ingest leaves them ─▶ exchange spark summary         37,500 records of completions, 435 buckets in each
    100,000,000 single values    ─▶ spark.percentiles.row_figures  from Parquet, 4 GB of heap

Percentiles are held against numpy's of the values themselves.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.comparing import Row
from benchmarks.exchange import Limit
from benchmarks.made_up_runs import ROWS, write_runs

HEAP = {"spark.driver.memory": "4g"}
FEW = 3


def rows(repeats: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as name:
        folder = Path(name)
        exact = write_runs(folder)
        repeats = min(repeats, FEW)
        from_buckets = [_summarized_s(folder) for _ in range(repeats)]
        from_rows = [_rows_s(folder) for _ in range(repeats)]
        errors = [max(_errors(path, exact)) * 100 for path in (_summary(folder), folder / "figures")]
    yield Limit("100 runs from their buckets", "", "s", from_buckets, [], reach=15)
    yield Limit("100,000,000 rows, local[2], 4 GB", "", "s", from_rows, [], reach=15, aim=10)
    yield Limit("worst percentile against numpy", "", "%", errors, [], reach=0.3, aim=0.3)


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
        files = whole_files(spark, [f"file://{folder / ROWS}"])
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
