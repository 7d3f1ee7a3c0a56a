"""The market's events in Spark: how fast a simulation writes them, and bars over them beside DuckDB.

    exchange simulate --trades --quotes  ─▶ tables of 100,000,000 events
    BARS on Spark's local[2], in DuckDB on two threads  ─▶ the same statement over the same files, and the same answer

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
NAME, MASTER, THREADS = "market", "local[2]", 2
ASKED_PER_S = 3e6
EVERY_NS = 10**9
FEW = 3
TIMES = 5
Answers = Iterator[tuple[float, pa.Table]]
"""Seconds and bars, TIMES times in a session."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the events that a simulation writes in a second, and the time of bars beside DuckDB's."""
    written = []
    pairs = []
    for _ in range(min(repeats, FEW)):
        with tempfile.TemporaryDirectory(prefix="exchange-events-") as folder:
            written.append(events_per_s(folder))
            pairs.append([answer(way, Path(folder) / NAME / "market") for way in known()])
    events = f"simulate {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield BenchmarkRow(events, "3 M/s", "events/s", written, [ASKED_PER_S] * len(written), reach=1.0, aim=2.0)
    for answers in pairs:
        if len(answers) > 1:
            agree(*answers)
    for time_of, reach, aim in (("first_s", None, None), ("again_s", 1.5, 1.0)):
        ours, *theirs = ([each[time_of] for each in side] for side in zip(*pairs, strict=True))
        what = f"bars of a second, {MASTER}, {time_of.removesuffix('_s')} in a session"
        yield Cost(what, "DuckDB", "s", ours, (theirs or [[]])[0], reach=reach, aim=aim)


def events_per_s(results: str) -> float:
    """Measure the trades and quotes that a simulation writes in a second. CalledProcessError if it failed."""
    words = ("simulate", *MARKET, "--master", MASTER, "--json", "--results", results, "--name", NAME)
    done = subprocess.run([*EXCHANGE, *words], capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    events = sum(record["events"][table]["rows"] for table in TABLES)
    return float(events / record["rates"]["matching_s"])


def known() -> list[str]:
    """Return "spark", and "duckdb" if it is installed; only our tests depend on it."""
    return ["spark", *(["duckdb"] if find_spec("duckdb") else [])]


def answer(way: str, tables: Path) -> dict[str, Any]:
    """Answer the statement in a process of its own; returns what that prints."""
    words = [sys.executable, "-m", "benchmarks.spark_events", way, str(tables)]
    return dict(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise AssertionError if the two answers differ in more than their times."""
    times = {"first_s": 0, "again_s": 0}
    if ours | times != theirs | times:
        raise AssertionError(f"Spark's bars are not DuckDB's: {ours} {theirs}")


def with_spark(tables: Path) -> Answers:
    """Answer the statement with Spark, TIMES times in a session."""
    from exchange_simulation.experiments.pipeline.jobs import open_dataset
    from spark.dataset.bars import BARS, create_partial_bars
    from spark.dataset.views import create_views

    with open_dataset(MASTER, str(tables)) as (spark, folder):
        there = create_views(spark, folder)
        for _ in range(TIMES):
            begun_s = time.monotonic()
            create_partial_bars(spark, folder, there, EVERY_NS)
            bars = spark.sql(BARS).toArrow()
            yield time.monotonic() - begun_s, bars


def with_duckdb(tables: Path) -> Answers:
    """Answer the statement with DuckDB, TIMES times in a session."""
    import duckdb

    from spark.dataset.bars import BARS, PARTIAL

    with duckdb.connect(config={"threads": THREADS}) as database:
        columns = (
            "experiment varchar, run varchar, instrument int, sequence bigint, time_ns bigint, side varchar, volume int"
        )
        database.sql(f"create table orders ({columns})")
        for name in TABLES:
            files = f"read_parquet('{tables / name}/**/*.parquet', hive_partitioning = true)"
            database.sql(f"create view {name} as select * from {files}")
        for name, statement in PARTIAL.items():
            database.sql(f"create view partial_{name} as {statement.format(every_ns=EVERY_NS)}")
        for _ in range(TIMES):
            begun_s = time.monotonic()
            bars = database.sql(BARS).to_arrow_table()
            yield time.monotonic() - begun_s, bars


WAYS = {"spark": with_spark, "duckdb": with_duckdb}

if __name__ == "__main__":
    (first_s, found), *later = WAYS[sys.argv[1]](Path(sys.argv[2]))
    again_s = median(seconds for seconds, _ in later)
    sums = {name: int(pc.sum(found[name]).as_py()) for name in ("open", "high", "low", "close", "volume", "trades")}
    print(json.dumps({"first_s": first_s, "again_s": again_s, "bars": found.num_rows, **sums}))
