"""A market of 15,500,000 trades in Spark: all of them to one file, and each with the quote before it.

    exchange simulate --trades --quotes ─▶ tables ─┬─▶ exchange spark sql ... --parquet: memory and time
                                                   └─▶ trade_quotes on local[2] beside two ASOF JOINs of DuckDB's

Both answers of the second are sums over all trades, and must be equal. The clock runs from the statement to its row, in
a session that is open. `python -m benchmarks.spark_market spark|duckdb TABLES` prints one answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from math import isclose
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.command_cost import cost_of
from benchmarks.comparison import EXCHANGE, BenchmarkRow, Cost, Limit

TABLES = ("trades", "quotes")
MARKET = ("--instruments", "500", "--orders", "20e6", *(f"--{table}" for table in TABLES))
NAME = "market"
"""Name of the simulation's folder."""
MASTER = "local[2]"
THREADS = 2
"""Of DuckDB, as many as Spark has."""
EXPORT = "select * from trades"
FEW = 3
"""The largest number of repeats, since each takes long."""
AS_OF_IN_DUCKDB = """
with last_quotes as (
  select experiment, run, instrument, time_ns, arg_max({'bid': bid, 'ask': ask}, sequence) as best
  from quotes group by experiment, run, instrument, time_ns
), ends as (
  select experiment, run, max(time_ns) as end_ns
  from (select experiment, run, time_ns from trades union all select experiment, run, time_ns from quotes)
  group by experiment, run
), with_quote as (
  select trades.*, trades.time_ns + 1000000000 as later_ns,
    case when trades.time_ns - quotes.time_ns <= 1000000000 then (quotes.bid + quotes.ask) / 2 end as middle
  from trades asof left join quotes using (experiment, run, instrument, sequence)
), with_later_quote as (
  select with_quote.*, (best.bid + best.ask) / 2 as later_middle, case when aggressor = 'bid' then 1 else -1 end as sign
  from with_quote asof left join last_quotes
    on with_quote.experiment = last_quotes.experiment and with_quote.run = last_quotes.run
    and with_quote.instrument = last_quotes.instrument and with_quote.later_ns >= last_quotes.time_ns
)
select count(*) as trades, sum(2 * sign * (price - middle)) as effective,
  sum(case when later_ns <= end_ns then 2 * sign * (price - later_middle) end) as realised
from with_later_quote join ends using (experiment, run)
"""
SUMS = (
    "count(*) as trades",
    "sum(effective_spread) as effective",
    "sum(realised_spread) as realised",
)


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the file of all trades, and the quotes as of each trade."""
    with tempfile.TemporaryDirectory(prefix="exchange-market-") as folder:
        trades = simulate(folder, MARKET)
        tables = Path(folder) / NAME / "market"
        exports = [export(tables, trades) for _ in range(min(repeats, FEW))]
        title = f"sql --parquet of {trades / 1e6:.3g} M trades"
        memory_mb = [largest_mb for largest_mb, _ in exports]
        yield Limit(title=f"{title}, the largest process", unit="MB", ours=memory_mb, required=1500.0, hoped_for=1000.0)
        yield Limit(title=f"{title}, its time", unit="s", ours=[elapsed_s for _, elapsed_s in exports])
        ours, reference = as_of(tables, min(repeats, FEW))
        yield Cost(
            f"trade_quotes of {trades / 1e6:.3g} M trades", "DuckDB", "s", ours, reference, required=10.0, hoped_for=5.0
        )


def simulate(results: str, market: tuple[str, ...]) -> int:
    """Write a market's tables; returns the number of its trades."""
    done = cost_of(*EXCHANGE, "simulate", *market, "--json", "--results", results, "--name", NAME)
    return int(json.loads(done.output)["events"]["trades"]["rows"])


def export(tables: Path, trades: int) -> tuple[float, float]:
    """Write all trades into a file; returns the MB of the largest process, and the seconds."""
    file = tables.parent / "trades.parquet"
    file.unlink(missing_ok=True)
    cost = cost_of(*EXCHANGE, "spark", "sql", EXPORT, "--parquet", file, "--tables", tables, "--master", MASTER)
    written = pq.read_metadata(file).num_rows
    if written != trades:
        raise AssertionError(f"{file} has {written:,} of {trades:,} trades")
    return cost.largest_mb, cost.elapsed_s


def as_of(tables: Path, repeats: int) -> tuple[list[float], list[float]]:
    """Answer with Spark and DuckDB in turns; returns the seconds of both, the second list empty without DuckDB."""
    ours = []
    reference = []
    for _ in range(repeats):
        answer_of_spark = answer("spark", tables)
        ours.append(answer_of_spark["s"])
        if find_spec("duckdb"):  # only our tests depend on it
            answer_of_duckdb = answer("duckdb", tables)
            check_agreement(answer_of_spark, answer_of_duckdb)
            reference.append(answer_of_duckdb["s"])
    return ours, reference


def answer(program: str, tables: Path) -> dict[str, Any]:
    """Answer in a child process, with "spark" or "duckdb"; returns the answer that it prints."""
    command = [sys.executable, "-m", "benchmarks.spark_market", program, str(tables)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(finished.stdout))


def check_agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise AssertionError if the two answers differ in more than their times."""
    for name in ("trades", "effective", "realised"):
        if not isclose(ours[name], theirs[name], rel_tol=1e-9):
            raise AssertionError(f"Spark's quotes as of a trade differ from DuckDB's in {name}: {ours} {theirs}")


def with_spark(tables: Path) -> dict[str, Any]:
    """Answer with the view `trade_quotes`."""
    from exchange_simulation.experiments.pipeline.jobs import compilers_for, open_dataset
    from spark.dataset.views import create_views
    from spark.gold.views import trade_quotes

    with open_dataset(MASTER, str(tables), compilers_for(str(tables))) as (spark, folder):
        create_views(spark, folder)
        begun_s = time.monotonic()
        (row,) = trade_quotes(spark).selectExpr(*SUMS).collect()
        return {"s": time.monotonic() - begun_s, **row.asDict()}


def with_duckdb(tables: Path) -> dict[str, Any]:
    """Answer with DuckDB's own ASOF JOIN."""
    import duckdb

    with duckdb.connect(config={"threads": THREADS}) as database:
        for name in TABLES:
            files = f"read_parquet('{tables / name}/**/*.parquet', hive_partitioning = true)"
            database.sql(f"create view {name} as select * from {files}")
        begun_s = time.monotonic()
        rows_of_answer = database.sql(AS_OF_IN_DUCKDB).to_arrow_table().to_pylist()
        return {"s": time.monotonic() - begun_s, **rows_of_answer[0]}


PROGRAMS = {"spark": with_spark, "duckdb": with_duckdb}

if __name__ == "__main__":
    _, program, tables = sys.argv
    print(json.dumps(PROGRAMS[program](Path(tables)), default=float))
