"""The first batches of a JVM cost ten times a later one's time: they are spent on a run of no interest."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from spark.live.query import FollowedRun
from spark.prepare import smallest_run

BATCHES = 3


def warm(spark: SparkSession) -> None:
    """Follows the same small file several times, in the folder that goes with the session."""
    folder = Path(spark.conf.get("spark.local.dir") or ".") / "warm-up"
    folder.mkdir()
    first = next((smallest_run(folder) / "spool").iterdir())
    with FollowedRun(spark, folder) as run:
        for number in range(2, BATCHES + 1):
            run.catch_up()
            shutil.copy(first, first.with_name(f"{number:06}.jsonl"))
        run.catch_up()
