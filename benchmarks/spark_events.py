"""The market's events in Spark: how fast a simulation writes them, and bars over them beside DuckDB.

    exchange simulate --trades --quotes  ─▶ tables of 100,000,000 events
    BARS on Spark's local[2], in DuckDB on two threads  ─▶ the same statement over the same files, and the same answer

A clock runs from a simulation's first order to its last row, and from a statement to its rows; start-up is in neither.
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
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.comparison import Row
from benchmarks.exchange import Cost

TABLES = ("trades", "quotes")
MARKET = ("--instruments", "1000", "--orders", "86e6", *(f"--{table}" for table in TABLES))
NAME, MASTER, THREADS = "market", "local[2]", 2
ASKED_PER_S = 3e6
EVERY_NS = 10**9
FEW = 3


def rows(repeats: int) -> Iterator[Row]:
    written, pairs = [], []
    for _ in range(min(repeats, FEW)):
        with tempfile.TemporaryDirectory(prefix="exchange-events-") as folder:
            written.append(events_per_s(folder))
            pairs.append([answer(way, Path(folder) / NAME / "market") for way in known()])
    events = f"simulate {' '.join(MARKET).replace('--', '')}, {MASTER}"
    yield Row(events, "3 M/s", "events/s", written, [ASKED_PER_S] * len(written), reach=1.0, aim=2.0)
    seconds = [[each["seconds"] for each in side] for side in zip(*pairs, strict=True)]
    for ours, theirs in filter(lambda pair: len(pair) > 1, pairs):
        agree(ours, theirs)
    yield Cost(f"bars of a second, {MASTER}", "DuckDB", "s", seconds[0], (seconds[1:] or [[]])[0], reach=1.5, aim=1.0)


def events_per_s(results: str) -> float:
    """Trades and quotes that a simulation writes in a second. CalledProcessError where it failed."""
    command = [sys.executable, "-m", "cli", "simulate", *MARKET, "--master", MASTER, "--json"]
    done = subprocess.run([*command, "--results", results, "--name", NAME], capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    events = sum(record["events"][table]["rows"] for table in TABLES)
    return float(events / record["rates"]["matching_s"])


def known() -> list[str]:
    """Spark, and DuckDB where it is installed; only our tests depend on it."""
    return ["spark", *(["duckdb"] if find_spec("duckdb") else [])]


def answer(way: str, tables: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.spark_events", way, str(tables)]
    return dict(json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """AssertionError where the two answers differ."""
    if {**ours, "seconds": 0} != {**theirs, "seconds": 0}:
        raise AssertionError(f"Spark's bars are not DuckDB's: {ours} {theirs}")


def with_spark(tables: Path) -> tuple[float, pa.Table]:
    from experiments.pipeline.jobs import open_dataset
    from experiments.pipeline.sql import BARS, TABLES_OF_BARS, compilers_for
    from spark.dataset.views import create_views

    with open_dataset(MASTER, str(tables), compilers_for(str(tables))) as (spark, folder):
        for name in set(TABLES_OF_BARS) - set(create_views(spark, folder)):
            spark.createDataFrame([], TABLES_OF_BARS[name]).createOrReplaceTempView(name)
        begun_s = time.monotonic()
        bars = spark.sql(BARS.format(every_ns=EVERY_NS)).toArrow()
        return time.monotonic() - begun_s, bars


def with_duckdb(tables: Path) -> tuple[float, pa.Table]:
    import duckdb

    from experiments.pipeline.sql import BARS

    with duckdb.connect(config={"threads": THREADS}) as database:
        columns = "experiment varchar, run varchar, instrument int, time_ns bigint, side varchar, volume int"
        database.sql(f"create table orders ({columns})")
        for name in TABLES:
            files = f"read_parquet('{tables / name}/**/*.parquet', hive_partitioning = true)"
            database.sql(f"create view {name} as select * from {files}")
        begun_s = time.monotonic()
        bars = database.sql(BARS.format(every_ns=EVERY_NS)).to_arrow_table()
        return time.monotonic() - begun_s, bars


WAYS = {"spark": with_spark, "duckdb": with_duckdb}

if __name__ == "__main__":
    took_s, found = WAYS[sys.argv[1]](Path(sys.argv[2]))
    sums = {name: int(pc.sum(found[name]).as_py()) for name in ("open", "high", "low", "close", "volume", "trades")}
    print(json.dumps({"seconds": took_s, "bars": found.num_rows, **sums}))
