"""A spool that grows as the reporter's does, and what a follower makes of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from spark_runs import Record

from spark.live.batch import read_rows
from spark.live.query import FollowedRun
from spark.tables.schemas import KINDS, ORIGIN, RUN_ID, TABLE_ORIGIN

Rows = dict[int, dict[str, Any]]


class GrowingRun:
    """A run's folder, file by file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "spool").mkdir(parents=True)
        self._files = 0

    def grow(self, lines: Iterable[Record | str | bytes]) -> None:
        """One file more, whole and by rename."""
        self._files += 1
        encoded = [line if isinstance(line, bytes) else _text(line).encode() for line in lines]
        hidden = self.folder / "spool" / f".{self._files:06}.jsonl.part"
        hidden.write_bytes(b"".join(line + b"\n" for line in encoded))
        hidden.rename(self.folder / "spool" / f"{self._files:06}.jsonl")

    def grow_in(self, records: Sequence[Record], files: int) -> GrowingRun:
        for number in range(files):
            self.grow(records[len(records) * number // files : len(records) * (number + 1) // files])
        return self


def _text(line: Record | str) -> str:
    return line if isinstance(line, str) else json.dumps(line)


def followed(spark: SparkSession, folder: Path) -> FollowedRun:
    """Its follower, after it has taken what there is."""
    with FollowedRun(spark, folder) as run:
        run.catch_up()
    return run


def table(folder: Path) -> Rows:
    return read_rows(folder / "live" / "seconds" / "part-0.parquet")


def in_order(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record["wall_ns"])


def countable(records: Iterable[Record]) -> Counter[str]:
    """The records as texts that can be counted."""
    return Counter(
        json.dumps([*(r[name] for name in ("run", *ORIGIN)), r["kind"], _as_read(r["payload"])], sort_keys=True)
        for r in records
    )


def _as_read(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: float(value) if name == "rate_per_s" else value for name, value in payload.items()}


def in_table(folder: Path) -> Counter[str]:
    """The records in the live table, as pyarrow reads the folder."""
    rows = ds.dataset(folder / "live" / "records", format="parquet").to_table().to_pylist()
    return countable(_record(row) for row in rows if row["problem"] is None)


def in_table_by_spark(spark: SparkSession, folder: Path) -> Counter[str]:
    read = spark.read.parquet(f"file://{folder}/live/records").where("problem IS NULL")
    rows = [row.asDict(recursive=True) for row in read.select(*TABLE_ORIGIN, "kind", *KINDS).collect()]
    return countable(map(_record, rows))


def _record(row: dict[str, Any]) -> Record:
    return {**row, "run": row[RUN_ID], "payload": row[row["kind"]]}
