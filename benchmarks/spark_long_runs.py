"""The summary of 24 runs of an hour: does Spark come to an end, and what does it take beside DuckDB?

    tables as ingest leaves them ─┬─▶ exchange spark summary       figures of each run and second, by numpy in Spark
                                  └─▶ one statement in DuckDB      percentiles of each run alone, from the same buckets

The figure is the CPU time of a command with all its processes. A run's percentiles must agree within a bucket's width.
`python -m benchmarks.spark_long_runs TABLES` prints DuckDB's answer.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.command_cost import CommandCost, cost_of
from benchmarks.comparison import EXCHANGE, BenchmarkRow, Cost, Limit
from benchmarks.synthetic_runs import write_runs
from exchange.measurements import bucket_middle_ns

RUNS = 24
SECONDS = 3600
THREADS = 2
"""Of DuckDB, as many as Spark has."""
FEW = 3
"""The largest number of repeats, since each takes long."""
WIDTH = 0.01
"""The largest relative difference of two percentiles that agree; a bucket is narrower."""
PERCENTILES = """
with single as (
  select run, unnest(bucket) as bucket, unnest(bucket_count) as orders
  from read_parquet('{tables}/completion/**/*.parquet') where clock = 'due' and not last_order
), counted as (
  select run, bucket, sum(orders) as orders from single group by run, bucket
), cumulated as (
  select run, bucket, sum(orders) over (partition by run order by bucket) as so_far,
    sum(orders) over (partition by run) as total
  from counted
)
select run, min(case when so_far >= ceil(0.5 * total) then bucket end) as p50,
  min(case when so_far >= ceil(0.99 * total) then bucket end) as p99
from cumulated group by run order by run
"""
PercentilesUs = dict[str, tuple[float, float]]
"""By run, its p50 and p99 in us."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure both in turns."""
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as folder:
        tables = Path(folder)
        write_runs(tables, RUNS, SECONDS, with_single_rows=False)
        ours: list[CommandCost] = []
        reference: list[float] = []
        for _ in range(min(repeats, FEW)):
            ours.append(cost_of(*EXCHANGE, "spark", "summary", tables, "--tables", tables, "--json"))
            if find_spec("duckdb"):  # only our tests depend on it
                answer = cost_of(sys.executable, "-m", "benchmarks.spark_long_runs", tables)
                check_agreement(summary_of(tables), json.loads(answer.output))
                reference.append(answer.cpu_s)
    title = f"summary of {RUNS} runs of {SECONDS} s"
    yield Cost(f"{title}, CPU", "DuckDB", "s", [cost.cpu_s for cost in ours], reference, required=6.0, hoped_for=3.0)
    yield Limit(title=f"{title}, the largest process", unit="MB", ours=[cost.largest_mb for cost in ours])


def summary_of(tables: Path) -> PercentilesUs:
    """Read what `exchange spark summary` has written."""
    written = pq.read_table(tables / "summary" / "part-0.parquet", columns=["run", "due_p50_us", "due_p99_us"])
    return {row["run"]: (row["due_p50_us"], row["due_p99_us"]) for row in written.to_pylist()}


def check_agreement(ours: PercentilesUs, theirs: PercentilesUs) -> None:
    """Raise AssertionError if a run is missing, or a percentile differs by more than WIDTH."""
    if ours.keys() != theirs.keys():
        raise AssertionError(f"{sorted(ours)} were summarized, of {sorted(theirs)}")
    for run, figures in ours.items():
        for figure, other in zip(figures, theirs[run], strict=True):
            if abs(figure / other - 1) > WIDTH:
                raise AssertionError(f"run {run}: {figure} and {other} us differ by more than a bucket's width")


def by_duckdb(tables: Path) -> PercentilesUs:
    """Return each run's percentiles, from the buckets of its records."""
    import duckdb

    with duckdb.connect(config={"threads": THREADS}) as database:
        answers = database.sql(PERCENTILES.format(tables=tables)).to_arrow_table().to_pylist()
    figures = {}
    for answer in answers:
        p50_ns, p99_ns = (float(bucket_middle_ns(answer[name])) for name in ("p50", "p99"))
        figures[answer["run"]] = (p50_ns / 1e3, p99_ns / 1e3)
    return figures


if __name__ == "__main__":
    print(json.dumps(by_duckdb(Path(sys.argv[1]))))
