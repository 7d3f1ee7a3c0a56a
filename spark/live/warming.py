"""The first batch of a JVM costs ten times a later one's time: it is spent on a run of no interest."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark.live.query import FollowedRun
from spark.prepare import smallest_run

SAID = '"wall_ns": 1,'


def warm(spark: SparkSession) -> None:
    """Follows a run of two files, in the folder that goes with the session."""
    folder = Path(spark.conf.get("spark.local.dir") or ".") / "warm-up"
    folder.mkdir()
    first = next((smallest_run(folder) / "spool").iterdir())
    with FollowedRun(spark, folder) as run:
        run.catch_up()
        second = first.with_name("000002.jsonl")
        second.write_text(first.read_text().replace(SAID, '"wall_ns": 1000000000,'))
        run.catch_up()
