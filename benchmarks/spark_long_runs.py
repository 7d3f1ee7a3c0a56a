"""The summary of 24 runs of an hour: does Spark come to an end, and what does it take beside DuckDB?

    tables as ingest leaves them ─┬─▶ exchange spark summary       all figures of each second and of each run
                                  ├─▶ two statements in DuckDB     the completion times among these, of the same buckets
                                  └─▶ one statement in DuckDB      two percentiles of each run alone

The figure is the CPU time of a command with all its processes. Counts must be equal, and percentiles agree within a
bucket's width. `python -m benchmarks.spark_long_runs WHAT TABLES FOLDER` writes DuckDB's answer.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.command_cost import CommandCost, cost_of
from benchmarks.comparison import EXCHANGE, BenchmarkRow, Cost, Limit
from benchmarks.synthetic_runs import write_runs
from exchange.measurements import BUCKETS_PER_OCTAVE, CLOCKS
from exchange.percentiles import PERCENTS

RUNS = 24
SECONDS = 3600
THREADS = 2
"""Of DuckDB, as many as Spark has."""
FEW = 3
"""The largest number of repeats, since each takes long."""
WIDTH = 0.01
"""The largest relative difference of two percentiles that agree; a bucket is narrower."""
SECONDS_FOLDER = "seconds"
"""A file for each run: DuckDB took 11 GB to sort the buckets of 24 runs at once."""
RUNS_FILE = "runs.parquet"
PERCENTILES_FILE = "percentiles.parquet"
OF_SECONDS = """
with single as (
  select run, second, clock, count, sum_ns, min_ns, max_ns, unnest(bucket) as bucket, unnest(bucket_count) as orders
  from read_parquet('{tables}/completion/**/*.parquet') where not last_order and count > 0 and run = '{run}'
), cumulated as (
  select *, sum(orders) over (partition by run, second, clock order by bucket) as so_far from single
)
select run, second, clock, max(count) as count, max(sum_ns) / max(count) / 1e3 as mean_us, min(min_ns) / 1e3 as min_us,
  {percentiles}, max(max_ns) / 1e3 as max_us
from cumulated group by run, second, clock order by run, second, clock
"""
OF_RUNS = """
with counted as (
  select run, clock, bucket, sum(orders) as orders from (
    select run, clock, unnest(bucket) as bucket, unnest(bucket_count) as orders
    from read_parquet('{tables}/completion/**/*.parquet') where not last_order and count > 0
  ) group by run, clock, bucket
), exact as (
  select run, clock, sum(count) as count, sum(sum_ns) as sum_ns, min(min_ns) as min_ns, max(max_ns) as max_ns
  from read_parquet('{tables}/completion/**/*.parquet') where not last_order and count > 0 group by run, clock
), cumulated as (
  select *, sum(orders) over (partition by run, clock order by bucket) as so_far
  from counted join exact using (run, clock)
)
select run, clock, max(count) as count, max(sum_ns) / max(count) / 1e3 as mean_us, min(min_ns) / 1e3 as min_us,
  {percentiles}, max(max_ns) / 1e3 as max_us
from cumulated group by run, clock order by run, clock
"""
TWO_PERCENTILES = """
with single as (
  select run, unnest(bucket) as bucket, unnest(bucket_count) as orders
  from read_parquet('{tables}/completion/**/*.parquet') where clock = 'due' and not last_order
), counted as (
  select run, bucket, sum(orders) as orders from single group by run, bucket
), cumulated as (
  select run, bucket, sum(orders) over (partition by run order by bucket) as so_far,
    sum(orders) over (partition by run) as count
  from counted
)
select run, {p50} as p50_us, {p99} as p99_us from cumulated group by run order by run
"""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure all in turns."""
    with tempfile.TemporaryDirectory(prefix="exchange-tables-") as name:
        tables = Path(name) / "tables"
        answers = Path(name)
        write_runs(tables, RUNS, SECONDS, with_single_rows=False)
        ours: list[CommandCost] = []
        same_figures_s: list[float] = []
        two_percentiles_s: list[float] = []
        for _ in range(min(repeats, FEW)):
            ours.append(cost_of(*EXCHANGE, "spark", "summary", tables, "--tables", tables, "--json"))
            if find_spec("duckdb"):  # only our tests depend on it
                program = (sys.executable, "-m", "benchmarks.spark_long_runs")
                same_figures_s.append(cost_of(*program, "same-figures", tables, answers).cpu_s)
                two_percentiles_s.append(cost_of(*program, "two-percentiles", tables, answers).cpu_s)
                check_agreement(tables, answers)
    title = f"summary of {RUNS} runs of {SECONDS} s"
    ours_s = [cost.cpu_s for cost in ours]
    yield Cost(f"{title}, CPU", "DuckDB, same times", "s", ours_s, same_figures_s, required=6.0, hoped_for=3.0)
    yield Cost(f"{title}, CPU", "DuckDB, p50 and p99 of runs", "s", ours_s, two_percentiles_s)
    yield Limit(title=f"{title}, the largest process", unit="MB", ours=[cost.largest_mb for cost in ours])


def check_agreement(tables: Path, answers: Path) -> None:
    """Compare the completion times in `summary` and `seconds` with those that DuckDB wrote into `answers`.

    AssertionError, which names the column, if a row is missing, a count differs, or another figure by more than WIDTH.
    """
    seconds = pq.read_table(tables / "seconds").sort_by([("run", "ascending"), ("second", "ascending")])
    runs = pq.read_table(tables / "summary").sort_by("run")
    _compare("seconds", seconds, pq.read_table(answers / SECONDS_FOLDER))
    _compare("runs", runs, pq.read_table(answers / RUNS_FILE))


def _compare(name: str, ours: pa.Table, theirs: pa.Table) -> None:
    """Compare a row of ours with a row for each clock of theirs, in the same order of runs and seconds."""
    for clock in CLOCKS:
        of_clock = theirs.filter(pc.equal(theirs["clock"], clock))
        if len(of_clock) != len(ours):
            raise AssertionError(f"{name}: {len(ours)} rows, and DuckDB has {len(of_clock)} of {clock}")
        for figure in ("count", "mean_us", "min_us", *(f"{percentile}_us" for percentile in PERCENTS), "max_us"):
            our_figures = ours[f"{clock}_{figure}"].to_numpy()
            their_figures = of_clock[figure].to_numpy().astype(float)
            largest = 0.0 if figure == "count" else WIDTH
            worst = np.abs(our_figures / their_figures - 1).max()
            if worst > largest:
                raise AssertionError(f"{name}: {clock}_{figure} differs by {worst:.2%}")


def same_figures(tables: Path, answers: Path) -> None:
    """Let DuckDB write the completion times of each second and of each run."""
    percentiles = ",\n  ".join(f"{_percentile(percent)} as {name}_us" for name, percent in PERCENTS.items())
    (answers / SECONDS_FOLDER).mkdir(exist_ok=True)
    for run in pq.read_table(tables / "runs", columns=["run"])["run"].to_pylist():
        statement = OF_SECONDS.format(tables=tables, percentiles=percentiles, run=run)
        _write(statement, answers / SECONDS_FOLDER / f"{run}.parquet")
    _write(OF_RUNS.format(tables=tables, percentiles=percentiles), answers / RUNS_FILE)


def two_percentiles(tables: Path, answers: Path) -> None:
    """Let DuckDB write two percentiles of each run, from due."""
    p50 = _percentile(PERCENTS["p50"])
    p99 = _percentile(PERCENTS["p99"])
    _write(TWO_PERCENTILES.format(tables=tables, p50=p50, p99=p99), answers / PERCENTILES_FILE)


def _percentile(percent: float) -> str:
    """Return SQL for the middle, in us, of the bucket in which a percentile lies."""
    bucket = f"min(case when so_far >= ceil(round({percent} * count / 100, 6)) then bucket end)"
    return f"power(2, ({bucket} + 0.5) / {BUCKETS_PER_OCTAVE}) / 1e3"


def _write(statement: str, file: Path) -> None:
    import duckdb

    with duckdb.connect(config={"threads": THREADS}) as database:
        database.sql(f"copy ({statement}) to '{file}' (format parquet)")


ANSWERS: dict[str, Callable[[Path, Path], None]] = {"same-figures": same_figures, "two-percentiles": two_percentiles}

if __name__ == "__main__":
    _, answer, tables, folder = sys.argv
    ANSWERS[answer](Path(tables), Path(folder))
