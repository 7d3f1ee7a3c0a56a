"""`python -m benchmarks.exact_figures numpy|duckdb FOLDER`: every run's exact percentiles, without Spark.

These are the references for Spark: numpy in one process, and DuckDB with two threads.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.synthetic_runs import ROWS
from exchange.percentiles import PERCENTS


def with_numpy(folder: Path) -> int:
    """Calculate with numpy. Returns the number of runs."""
    files = sorted((folder / ROWS).rglob("*.parquet"))
    for file in files:
        times_ns = pq.ParquetFile(file).read()["value_ns"].to_numpy()
        np.percentile(times_ns, list(PERCENTS.values()), method="inverted_cdf")
    return len(files)


def with_duckdb(folder: Path) -> int:
    """Calculate with DuckDB. Returns the number of runs."""
    import duckdb

    quantiles = ", ".join(str(percent / 100) for percent in PERCENTS.values())
    files = f"read_parquet('{folder / ROWS}/**/*.parquet', hive_partitioning = true)"
    figures = f"quantile_disc(value_ns, [{quantiles}]), count(*), avg(value_ns), min(value_ns), max(value_ns)"
    with duckdb.connect(config={"threads": 2}) as database:
        return len(database.sql(f"SELECT run, {figures} FROM {files} GROUP BY run").fetchall())


CALCULATIONS = {"numpy": with_numpy, "duckdb": with_duckdb}
"""By the library that they need."""


def installed_libraries() -> list[str]:
    """Return the libraries of CALCULATIONS that are installed; only our tests depend on duckdb."""
    return [name for name in CALCULATIONS if find_spec(name)]


if __name__ == "__main__":
    _, library, folder = sys.argv
    runs = CALCULATIONS[library](Path(folder))
    print(runs, "runs")
