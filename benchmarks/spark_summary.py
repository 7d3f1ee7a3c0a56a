"""Measures how long Spark takes for the figures of many runs, with a JVM's start.

    tables as ingest leaves them ─▶ exchange spark summary         37,500 records of completions, 435 buckets in each
    100,000,000 single values    ─▶ benchmarks.exact_figures       without Spark

The two run in turns, for 100 runs of 1,000,000 completions each. Percentiles are compared with numpy's of the values.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.comparison import BenchmarkRow, Limit
from benchmarks.exact_figures import installed_libraries
from benchmarks.synthetic_runs import write_runs

FEW = 3
"""The largest number of repeats, since each takes long."""
SUMMARY = "summary"
"""Folder of the table of runs that `exchange spark summary` writes."""
BUCKETS = "100 runs from their buckets"


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
    required_s = {BUCKETS: 15.0}
    for title, seconds in seconds_by_title.items():
        yield Limit(title=title, unit="s", ours=seconds, required=required_s.get(title))
    yield Limit(title="worst percentile against numpy", unit="%", ours=errors, required=0.3, hoped_for=0.3)


def _calculations(folder: str) -> dict[str, list[str]]:
    """Return the words after `python -m` of each calculation, by the title of its row."""
    summary = ["exchange_simulation.cli", "spark", "summary", folder, "--tables", folder, "--json"]
    exact = {f"the rows, exactly, {name}": ["benchmarks.exact_figures", name, folder] for name in installed_libraries()}
    return {BUCKETS: summary, **exact}


def worst_errors_percent(folder: Path, exact: list[dict[str, float]]) -> list[float]:
    """Compare the percentiles of SUMMARY with numpy's; returns the worst error."""
    return [100 * max(_errors(folder / SUMMARY, "due_", exact))]


def _timed_s(words: list[str]) -> float:
    """Run a Python module; returns the seconds that it takes."""
    start_s = time.monotonic()
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    return time.monotonic() - start_s


def _errors(table: Path, prefix: str, exact: list[dict[str, float]]) -> Iterator[float]:
    """Yield the relative error of every percentile of every run. AssertionError unless each run has one row."""
    rows = pq.read_table(table, partitioning=None).to_pylist()
    assert sorted(int(row["run"]) for row in rows) == list(range(len(exact))), f"{table} has not one row a run"
    for row in rows:
        for name, value in exact[int(row["run"])].items():
            yield abs(row[f"{prefix}{name}_us"] / value - 1)
