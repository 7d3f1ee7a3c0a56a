"""Sampled completion times by second: one function for tables and streams, and a 95 % interval of the median."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy import stats
from spark_runs import MadeUpRun, Record, record

from spark.run_facts import read_run
from spark.run_tables import write_run_tables, write_tables_of_samples
from spark.samples import (
    SOURCE,
    answered_at,
    numbered_seconds,
    reported_at,
    sample_summary,
    sample_windows,
    samples_of_lines,
)

ROOT = Path(__file__).parents[2]
GROUP_SIZES = (*range(1, 61), 100, 1_000)


def sample_record(number: int, completion_us: float, start_s: float, source: str = "gateway") -> Record:
    due_ns = round(start_s * 1e9)
    payload = {
        "id": number,
        "due_ns": due_ns,
        "handed_over_ns": due_ns + 10,
        "answered_ns": due_ns + round(completion_us * 1e3),
    }
    return record("sample", payload, source)


def lines_of(spark: SparkSession, records: list[Record]) -> DataFrame:
    return spark.createDataFrame([(json.dumps(line),) for line in records], "value STRING")


def rows_of(table: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in table.collect()]


def test_each_second_has_the_figures_of_its_samples(spark: SparkSession) -> None:
    random = np.random.default_rng(1)
    times_us = random.lognormal(5, 0.5, 90).round(3)
    start_s = 7.3 + np.arange(90) * 0.99 / 30  # about thirty samples a second, and none at a second's edge
    records = []
    for place in range(90):
        records.append(sample_record(place + 1, times_us[place], start_s[place]))
    samples = samples_of_lines(lines_of(spark, records))
    seconds = rows_of(numbered_seconds(samples).orderBy("second"))
    answered_s = start_s + times_us / 1e6 - start_s[0]
    for row in seconds:
        of_second = times_us[np.floor(answered_s) == row["second"]]
        assert row["samples"] == of_second.size
        assert row["p50_us"] == pytest.approx(np.median(of_second))
        assert row["mean_us"] == pytest.approx(of_second.mean())
        assert row["max_us"] == pytest.approx(of_second.max())
    assert [row["second"] for row in seconds] == [0, 1, 2]
    (whole,) = rows_of(sample_summary(samples))
    assert whole["samples"] == 90
    assert whole["p50_us"] == pytest.approx(np.median(times_us))


def test_seconds_of_each_gateway_begin_with_its_first_sample(spark: SparkSession) -> None:
    records = [sample_record(number, 100, 5 + number / 2) for number in range(4)]
    records += [sample_record(number, 100, 900 + number / 2, "gateway.2") for number in range(2)]
    seconds = rows_of(numbered_seconds(samples_of_lines(lines_of(spark, records))).orderBy("second", SOURCE))
    assert [(row["second"], row["source"], row["samples"]) for row in seconds] == [
        (0, "gateway", 2),
        (0, "gateway.2", 2),
        (1, "gateway", 2),
    ]


def test_the_median_of_all_orders_lies_in_the_interval_in_95_percent(spark: SparkSession) -> None:
    """Each group has the times 1, 2, ... n microseconds, so an end of the interval is its rank."""
    records = [
        sample_record(number, number, 1, f"gateway.{size}") for size in GROUP_SIZES for number in range(1, size + 1)
    ]
    rows = rows_of(sample_windows(samples_of_lines(lines_of(spark, records)), answered_at()))
    assert len(rows) == len(GROUP_SIZES)
    wider_than_necessary = []
    for row in rows:
        if row["samples"] < 6:
            assert row["p50_low_us"] is None
            assert row["p50_high_us"] is None
            continue
        low_rank = round(row["p50_low_us"])
        assert row["p50_high_us"] == row["samples"] + 1 - low_rank
        assert chance_outside(low_rank, row["samples"]) <= 0.05, row
        if chance_outside(low_rank + 1, row["samples"]) <= 0.05:
            wider_than_necessary.append(row["samples"])
        assert chance_outside(low_rank + 2, row["samples"]) > 0.05, row
    # The ranks come from the normal approximation, which gives away one rank at these sizes.
    assert sorted(wider_than_necessary) == [17, 44]


def chance_outside(low_rank: int, samples: int) -> float:
    """Return the chance that the median lies outside the interval of samples from this rank to its mirror image.

    The median is outside if fewer than low_rank of the samples are below the median, or as few above.
    """
    return float(2 * stats.binom.cdf(low_rank - 1, samples, 0.5))


def test_a_stream_of_the_spool_has_the_rows_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    records = [sample_record(number, 100 + number % 7, 3 + number / 10) for number in range(200)]
    spool = tmp_path / "spool"
    spool.mkdir()
    for part in range(4):
        lines = records[50 * part : 50 * (part + 1)]
        (spool / f"{part:06}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    arriving = spark.readStream.option("maxFilesPerTrigger", 1).text(f"file://{spool}")
    seconds = sample_windows(samples_of_lines(arriving), answered_at())
    query = seconds.writeStream.format("memory").queryName("sampled").outputMode("complete")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    streamed = rows_of(spark.table("sampled").orderBy("window"))
    lines = spark.read.text(f"file://{spool}")
    read = rows_of(sample_windows(samples_of_lines(lines), answered_at()).orderBy("window"))
    assert len(read) == 20
    assert streamed == read


def test_a_run_s_tables_hold_its_sampled_seconds_and_their_summary(spark: SparkSession, tmp_path: Path) -> None:
    folder = MadeUpRun(seconds=1, samples=8).write(tmp_path / "run")
    tables = folder / "tables"
    write_run_tables(folder, read_run(folder))
    write_tables_of_samples(spark, tables)
    seconds = rows_of(spark.read.parquet(f"file://{tables / 'sample_seconds.parquet'}"))
    assert [(row["second"], row["samples"]) for row in seconds] == [(0, 8)]
    (whole,) = rows_of(spark.read.parquet(f"file://{tables / 'sample_summary.parquet'}"))
    assert whole["samples"] == 8


def test_a_run_without_samples_has_a_summary_that_says_so(spark: SparkSession) -> None:
    samples = samples_of_lines(lines_of(spark, [record("session", {}, "gateway")]))
    assert rows_of(numbered_seconds(samples)) == []
    (row,) = rows_of(sample_summary(samples))
    assert (row["samples"], row["p50_us"]) == (0, None)


def test_a_stream_over_several_hosts_has_all_samples_by_the_reporter_s_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second host started 15 minutes after the first, so its monotonic clock is behind."""
    spool = tmp_path / "spool"
    spool.mkdir()
    first_host = [sample_record(number, 100, 900 + number / 10) for number in range(20)]
    second_host = [sample_record(number, 100, 5 + number / 10, "gateway.2") for number in range(20)]
    for part, lines in enumerate((first_host[:10], first_host[10:], second_host)):
        file = spool / f"{part}.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        os.utime(file, (part, part))  # Spark takes the oldest file first
    arriving = spark.readStream.option("maxFilesPerTrigger", 1).text(f"file://{spool}")
    seconds = sample_windows(samples_of_lines(arriving), reported_at())
    samples_by_window: dict[tuple[str, datetime], int] = {}

    def take(rows: DataFrame, _batch: int) -> None:
        for row in rows.collect():
            samples_by_window[row["source"], row["window"]["start"]] = row["samples"]

    query = seconds.writeStream.foreachBatch(take).outputMode("update")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    samples = {"gateway": 0, "gateway.2": 0}
    for (source, _), number in samples_by_window.items():
        samples[source] += number
    assert samples == {"gateway": 20, "gateway.2": 20}


@pytest.mark.jvm
@pytest.mark.xdist_group("spark")
def test_the_program_of_the_page_prints_the_seconds(tmp_path: Path) -> None:
    """The program of docs/spark.md, as it stands there, follows results/first until it is interrupted."""
    MadeUpRun(seconds=1, samples=8).write(tmp_path / "results" / "first")
    _, _, section = (ROOT / "docs" / "spark.md").read_text().partition("## In a program")
    code = re.search(r"\n\n((?:    .*\n|\n)+)", section)
    assert code is not None
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(code[1]))
    process = subprocess.Popen(
        [sys.executable, "-u", str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    printed = []
    with process:
        for line in process.stdout:
            printed.append(line)
            if re.search(r"\|gateway *\|.*\|8 *\|", line):
                process.send_signal(signal.SIGINT)
                break
        printed += process.stdout
    assert any("p50_low_us" in line for line in printed), printed
    assert any(re.search(r"\|gateway *\|.*\|8 *\|", line) for line in printed), printed
