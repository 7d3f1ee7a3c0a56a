"""The market's events in Spark: how fast a simulation writes them, and bars over them beside DuckDB.

    exchange simulate --trades --quotes  ─▶ tables of 100,000,000 events
    bars_by_time.sql on Spark's local[2], in DuckDB on two threads  ─▶ the same files, and the same answer

The clock runs from a simulation's first order to its last row, and from a statement to its rows. A session's start is
in neither. Answers are timed five times in a session: the first time, in which Java and Python start too, and the
median of the others.
`python -m benchmarks.spark_events spark|duckdb TABLES` prints one answer, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.comparison import EXCHANGE, BenchmarkRow, Cost

TABLES = ("trades", "quotes")
MARKET = ("--instruments", "1000", "--orders", "86e6", *(f"--{table}" for table in TABLES))
NAME = "market"
"""Name of the simulation's folder."""
MASTER = "local[2]"
THREADS = 2
"""The number of DuckDB's threads: as many as Spark has."""
REQUIRED_PER_S = 3e6
EVERY_NS = 10**9
"""The length of a bar."""
FEW = 3
"""The largest number of repeats, since each takes long."""
TIMES = 5
Answers = Iterator[tuple[float, pa.Table]]
"""Seconds and bars, TIMES times in a session."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the events that a simulation writes in a second, and the time of bars beside DuckDB's."""
    written = []
    spark_answers = []
    duckdb_answers = []
    for _ in range(min(repeats, FEW)):
        with tempfile.TemporaryDirectory(prefix="exchange-events-") as folder:
            written.append(events_per_s(folder))
            tables = Path(folder) / NAME / "market"
            spark_answers.append(answer("spark", tables))
            if find_spec("duckdb"):  # only our tests depend on it
                duckdb_answers.append(answer("duckdb", tables))
                check_agreement(spark_answers[-1], duckdb_answers[-1])
    events = f"simulate {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield BenchmarkRow(
        events, "3 M/s", "events/s", written, [REQUIRED_PER_S] * len(written), required=1.0, hoped_for=2.0
    )
    first_s = [answer["first_s"] for answer in spark_answers]
    duckdb_first_s = [answer["first_s"] for answer in duckdb_answers]
    yield Cost(f"bars of a second, {MASTER}, first in a session", "DuckDB", "s", first_s, duckdb_first_s)
    again_s = [answer["again_s"] for answer in spark_answers]
    duckdb_again_s = [answer["again_s"] for answer in duckdb_answers]
    title = f"bars of a second, {MASTER}, again in a session"
    yield Cost(title, "DuckDB", "s", again_s, duckdb_again_s, required=1.5, hoped_for=1.0)


def events_per_s(results: str) -> float:
    """Measure the trades and quotes that a simulation writes in a second. CalledProcessError if it failed."""
    words = ("simulate", *MARKET, "--master", MASTER, "--json", "--results", results, "--name", NAME)
    finished = subprocess.run([*EXCHANGE, *words], capture_output=True, text=True, check=True)
    record = json.loads(finished.stdout)
    events = sum(record["events"][table]["rows"] for table in TABLES)
    return float(events / record["rates"]["matching_s"])


def answer(program: str, tables: Path) -> dict[str, Any]:
    """Answer the statement with "spark" or "duckdb" in a child process; returns the answer that it prints."""
    command = [sys.executable, "-m", "benchmarks.spark_events", program, str(tables)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(finished.stdout))


def check_agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise AssertionError if the two answers differ in more than their times."""
    times = {"first_s": 0, "again_s": 0}
    if ours | times != theirs | times:
        raise AssertionError(f"Spark's bars differ from DuckDB's: {ours} {theirs}")


def with_spark(tables: Path) -> Answers:
    """Answer the statement with Spark, TIMES times in a session."""
    from exchange_simulation.experiments.pipeline.jobs import compilers_for, open_dataset
    from spark.dataset.views import create_views
    from spark.gold.views import bars_by_time

    with open_dataset(MASTER, str(tables), compilers_for(str(tables))) as (spark, folder):
        create_views(spark, folder)
        for _ in range(TIMES):
            start_s = time.monotonic()
            bars = bars_by_time(spark, EVERY_NS).toArrow()
            yield time.monotonic() - start_s, bars


def with_duckdb(tables: Path) -> Answers:
    """Answer the statement with DuckDB, TIMES times in a session."""
    import duckdb

    from spark.gold.views import statement_of

    with duckdb.connect(config={"threads": THREADS}) as database:
        for name in TABLES:
            files = f"read_parquet('{tables / name}/**/*.parquet', hive_partitioning = true)"
            database.sql(f"create view {name} as select * from {files}")
        statement = statement_of("bars_by_time", TABLES).replace(":every_ns", str(EVERY_NS))
        for _ in range(TIMES):
            start_s = time.monotonic()
            bars = database.sql(statement).to_arrow_table()
            yield time.monotonic() - start_s, bars


PROGRAMS = {"spark": with_spark, "duckdb": with_duckdb}

if __name__ == "__main__":
    _, program, tables = sys.argv
    (first_s, bars), *later = PROGRAMS[program](Path(tables))
    again_s = median(seconds for seconds, _ in later)
    sums = {name: int(pc.sum(bars[name]).as_py()) for name in ("open", "high", "low", "close", "volume", "trades")}
    print(json.dumps({"first_s": first_s, "again_s": again_s, "bars": bars.num_rows, **sums}))
