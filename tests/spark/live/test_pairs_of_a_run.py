"""Several pairs of one run, and several reporters, in one set of tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from growing import follow_to_end, table
from pyspark.sql import SparkSession
from spark_runs import CORES, METERS, MadeUpRun, reading
from spark_tables import Row, summary_of

from exchange.measurements import CLOCKS
from exchange.meters import Meter
from exchange.percentiles import PERCENTS
from spark.run_facts import read_run
from spark.run_tables import write_run_tables
from spark.summary import MEASURED, RATE

FIRST = MadeUpRun(seconds=3, orders_per_s=800, reporters=2)
SECOND = MadeUpRun(seconds=2, orders_per_s=500, reporters=2, pair=2)
"""It ends a second earlier."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = FIRST.write(tmp_path_factory.mktemp("results") / "two")
    SECOND.write_beside(folder)
    return folder


@pytest.fixture(scope="module")
def summed(folder: Path) -> tuple[Row, list[Row]]:
    write_run_tables(folder, read_run(folder))
    return summary_of(folder)


@pytest.mark.parametrize("clock", CLOCKS)
def test_percentiles_are_those_of_all_pairs_times_together(summed: tuple[Row, list[Row]], clock: str) -> None:
    run, seconds = summed
    together = [np.concatenate([FIRST.times_ns[clock, s], SECOND.times_ns[clock, s]]) for s in range(2)]
    together.append(FIRST.times_ns[clock, 2])
    for row, times in [(run, np.concatenate(together)), *zip(seconds[:3], together, strict=True)]:
        assert row[f"{clock}_count"] == len(times)
        for name, percent in PERCENTS.items():
            true_us = np.percentile(times, percent, method="inverted_cdf") / 1e3
            assert row[f"{clock}_{name}_us"] == pytest.approx(true_us, rel=0.003)
        assert (row[f"{clock}_min_us"], row[f"{clock}_max_us"]) == (times.min() / 1e3, times.max() / 1e3)


def test_orders_rates_meters_and_cores_of_all_pairs_add_up(summed: tuple[Row, list[Row]]) -> None:
    run, seconds = summed
    assert [row["orders_sent"] for row in seconds] == [1_300, 1_300, 801, 1]
    assert [row[RATE] for row in seconds] == [1_300, 1_300, 800, None]
    assert run["orders_sent"] == 3_402
    for source, cores in CORES.items():
        assert [row[f"{source}_cpu_cores"] for row in seconds[:2]] == pytest.approx([2 * cores] * 2, rel=0.002)
    for meter in METERS:
        mean = sum(reading(meter, 1, half)["rate_per_s"] for half in (0.25, 0.75)) / 2
        assert seconds[1][f"{Meter(meter).name.lower()}_per_s"] == 2 * mean


def test_the_live_table_is_the_table_of_seconds(
    spark: SparkSession, folder: Path, summed: tuple[Row, list[Row]]
) -> None:
    run, rows = follow_to_end(spark, folder), table(folder)
    assert run.is_closed
    for row in summed[1]:
        for name in (RATE, *MEASURED):
            live, batch = rows[row["second"]][name], row[name]
            assert live == (None if batch is None else pytest.approx(batch, rel=1e-12)), (row["second"], name)
        assert rows[row["second"]]["final"]
