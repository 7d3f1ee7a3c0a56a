"""The smallest run, on which Spark warms up: for the class archive, and before the first batch of a live table."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from exchange.json_records import SCHEMA
from spark.live.query import FollowedRun
from spark.run_tables import summarize
from spark.sessions.folders import scratch_folder
from spark.tables.schemas import KINDS, PAYLOADS

EXAMPLES: dict[pa.DataType, Any] = {
    pa.int32(): 1,
    pa.int64(): 1,
    pa.float64(): 0.5,
    pa.string(): "due",
    pa.bool_(): False,
}
"""Values of the smallest run's payloads."""
FIRST_MOMENT = '"wall_ns": 1,'
LATER_MOMENT = '"wall_ns": 1000000000,'


def prepare() -> None:
    """Write the class archive, by summarizing the smallest run; every later session starts faster. SparkError."""
    with tempfile.TemporaryDirectory(prefix="exchange-prepare-", dir=scratch_folder()) as folder:
        summarize(write_smallest_run(Path(folder)), write_archive=True)


def warm(spark: SparkSession) -> None:
    """Follow the smallest run for two batches, since a JVM's first batch takes ten times a later one's time."""
    folder = Path(spark.conf.get("spark.local.dir") or ".") / "warm-up"
    folder.mkdir()
    first = next((write_smallest_run(folder) / "spool").iterdir())
    with FollowedRun(spark, folder) as run:
        run.catch_up()
        second = first.with_name("000002.jsonl")
        second.write_text(first.read_text().replace(FIRST_MOMENT, LATER_MOMENT))
        run.catch_up()


def write_smallest_run(folder: Path) -> Path:
    """Write a run of one record a kind into this folder."""
    origin = {"schema": SCHEMA, "run": "0" * 16, "source": "gateway", "wall_ns": 1, "monotonic_ns": 1}
    lines = [json.dumps({**origin, "kind": kind, "payload": _example_payload(kind)}) for kind in KINDS]
    (folder / "spool").mkdir()
    (folder / "spool" / "000001.jsonl").write_text("".join(f"{line}\n" for line in lines))
    run = {"schema": SCHEMA, "name": folder.name, "status": "complete", "reasons": []}
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def _example_payload(kind: str) -> dict[str, Any]:
    """Return a payload with the fields that a record of the kind must have."""
    payload: dict[str, Any] = {}
    for field in PAYLOADS[kind]:
        if field.nullable:
            continue
        payload[field.name] = [1] if pa.types.is_list(field.type) else EXAMPLES[field.type]
    return payload
