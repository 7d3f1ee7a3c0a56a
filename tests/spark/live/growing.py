"""A spool that grows as the reporter's does, and the live table that a follower makes of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from spark_runs import Record

from spark.live.query import FollowedRun
from spark.live.table import read_rows
from spark.tables.schemas import KINDS, ORIGIN, RUN_ID, TABLE_ORIGIN

Rows = dict[int, dict[str, Any]]


class GrowingRun:
    """A run's folder, file by file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "spool").mkdir(parents=True)
        self._files = 0

    def grow(self, lines: Iterable[Record | str | bytes]) -> None:
        """Add a file with these lines, which appears whole, by rename."""
        self._files += 1
        hidden = self.folder / "spool" / f".{self._files:06}.jsonl.part"
        hidden.write_bytes(b"".join(_encoded(line) + b"\n" for line in lines))
        hidden.rename(self.folder / "spool" / f"{self._files:06}.jsonl")

    def grow_in(self, records: Sequence[Record], files: int) -> GrowingRun:
        """Add the records in this number of files."""
        for part in parts_of(records, files):
            self.grow(part)
        return self


def parts_of(records: Sequence[Record], number: int) -> list[Sequence[Record]]:
    """Split the records into this number of parts of about the same length."""
    edges = [len(records) * part // number for part in range(number + 1)]
    return [records[begin:end] for begin, end in pairwise(edges)]


def _encoded(line: Record | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    if isinstance(line, str):
        return line.encode()
    return json.dumps(line).encode()


def follow_to_end(spark: SparkSession, folder: Path) -> FollowedRun:
    """Follow the run until all of its spool is in the live table; return the follower, which is closed."""
    with FollowedRun(spark, folder) as run:
        run.catch_up()
    return run


def table(folder: Path) -> Rows:
    """Return the rows of the run's live table by second."""
    return read_rows((folder / "live" / "seconds").glob("part-*.parquet"))


def in_order(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record["wall_ns"])


def record_counts(records: Iterable[Record]) -> Counter[str]:
    """Return how often each record is there; records are keyed by their text."""
    texts: Counter[str] = Counter()
    for record in records:
        head = [record[name] for name in ("run", *ORIGIN, "kind")]
        payload = dict(record["payload"])
        if "rate_per_s" in payload:  # the tables hold it as a float
            payload["rate_per_s"] = float(payload["rate_per_s"])
        texts[json.dumps([*head, payload], sort_keys=True)] += 1
    return texts


def records_in_table(folder: Path) -> Counter[str]:
    """Return the records in the live table, as pyarrow reads the folder."""
    rows = ds.dataset(folder / "live" / "records", format="parquet").to_table().to_pylist()
    return record_counts(_record_of(row) for row in rows if row["problem"] is None)


def records_in_table_by_spark(spark: SparkSession, folder: Path) -> Counter[str]:
    """Return the records in the live table, as Spark reads the folder."""
    good_rows = spark.read.parquet(f"file://{folder}/live/records").where("problem IS NULL")
    rows = good_rows.select(*TABLE_ORIGIN, "kind", *KINDS).collect()
    return record_counts(_record_of(row.asDict(recursive=True)) for row in rows)


def _record_of(row: dict[str, Any]) -> Record:
    """Return the spool's record of a row of the live table."""
    return {**row, "run": row[RUN_ID], "payload": row[row["kind"]]}
