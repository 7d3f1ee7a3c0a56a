"""Measures what tables cost: of a default run, of 100 and 1,000 runs, and of the events of 5,000,000 orders.

    exchange run           ─▶ the tables that Arrow makes of its spool      the time of the function in a new process
    copies of a small run  ─▶ exchange spark ingest                         the time of the command
    exchange run --record  ─▶ exchange spark ingest --events                CPU time and memory of the command

The copies are of a run of 8,000 orders, each in its own folder of one trial. `python -m benchmarks.spark_ingest RUN`
makes the tables of a run, and prints the seconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.command_cost import CommandCost, cost_of
from benchmarks.comparison import EXCHANGE, BenchmarkRow, Limit

WITHOUT_TABLES = ("--no-spark", "--no-page")
COPIED_RUN = ("--rate", "8000", "--orders", "8000", *WITHOUT_TABLES, "--name", "first")
EVENT_ORDERS = 5_000_000
RECORDED_RUN = ("--record", "--rate", "50000", *WITHOUT_TABLES, "--name", "recorded")
TARGETS_S = {100: (12.0, 8.0), 1000: (25.0, 20.0)}
"""Required and hoped-for seconds, by the number of runs."""
EARLIER_CPU_S = 85.0
"""CPU time of an ingest of events on the machine of the README, until November 2026. The targets are shares of it."""
MOST_REPEATS = 3
"""The largest number of repeats, since each takes long."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Yield the measured costs, each beside its targets."""
    rounds = range(min(repeats, MOST_REPEATS))
    with tempfile.TemporaryDirectory(prefix="exchange-runs-") as name:
        folder = Path(name)
        cost_of(*EXCHANGE, "run", *WITHOUT_TABLES, "--results", name, "--name", "default")
        tables_s = [_tables_s(folder / "default") for _ in rounds]
        yield Limit(title="tables of a default run", unit="s", ours=tables_s, required=0.5, hoped_for=0.3)
        cost_of(*EXCHANGE, "run", *COPIED_RUN, "--results", name)
        for runs, (required_s, hoped_for_s) in TARGETS_S.items():
            results = _copy_run(folder / "first", folder / str(runs), runs)
            ingest_s = [_ingest_s(results) for _ in rounds]
            yield Limit(
                title=f"spark ingest of {runs:,} runs",
                unit="s",
                ours=ingest_s,
                required=required_s,
                hoped_for=hoped_for_s,
            )
        results = recorded(folder / "events", EVENT_ORDERS)
        costs = [ingest_events(results, EVENT_ORDERS) for _ in rounds]
    title = f"spark ingest --events of {EVENT_ORDERS:,} orders"
    cpu_s = [cost.cpu_s for cost in costs]
    yield Limit(
        title=f"{title}, CPU", unit="s", ours=cpu_s, required=0.25 * EARLIER_CPU_S, hoped_for=0.15 * EARLIER_CPU_S
    )
    largest_mb = [cost.largest_mb for cost in costs]
    yield Limit(title=f"{title}, the largest process", unit="MB", ours=largest_mb, required=1000.0)


def _copy_run(run: Path, results: Path, runs: int) -> Path:
    """Make a folder of results with one trial of `runs` copies of a run; returns the folder."""
    for number in range(1, runs + 1):
        shutil.copytree(run, results / "trial" / f"{number:04}")
    (results / "trial" / "plan.json").write_text("{}")
    return results


def _ingest_s(results: Path) -> float:
    """Measure the seconds of an ingest into new tables."""
    shutil.rmtree(results / "tables", ignore_errors=True)
    return cost_of(*EXCHANGE, "spark", "ingest", results).elapsed_s


def recorded(results: Path, orders: int) -> Path:
    """Make a run that records its streams of messages. Returns the folder of results. The run may be saturated."""
    command = [*EXCHANGE, "run", *RECORDED_RUN, "--orders", str(orders), "--results", str(results)]
    subprocess.run(command, capture_output=True, check=False)
    return results


def ingest_events(results: Path, orders: int) -> CommandCost:
    """Measure an ingest with events into new tables. AssertionError if orders are missing there."""
    shutil.rmtree(results / "tables", ignore_errors=True)
    cost = cost_of(*EXCHANGE, "spark", "ingest", results, "--events")
    written = sum(pq.read_metadata(file).num_rows for file in (results / "tables" / "orders").rglob("*.parquet"))
    if written < orders:
        raise AssertionError(f"the tables have {written:,} of {orders:,} orders")
    return cost


def _tables_s(run: Path) -> float:
    """Measure the seconds in which a new process makes the run's tables, without its imports."""
    shutil.rmtree(run / "tables", ignore_errors=True)
    return float(cost_of(sys.executable, "-m", "benchmarks.spark_ingest", run).output)


def print_seconds_of_tables(run: Path) -> None:
    """Make the tables of a run that need no JVM, and print the seconds."""
    from spark.run_facts import read_run
    from spark.run_tables import write_run_tables

    begun_s = time.monotonic()
    write_run_tables(run, read_run(run))
    print(time.monotonic() - begun_s)


if __name__ == "__main__":
    print_seconds_of_tables(Path(sys.argv[1]))
