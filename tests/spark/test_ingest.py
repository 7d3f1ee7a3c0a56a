"""The tables of one run: a file for each kind of record, and the problems of lines that are in no table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from spark_runs import Record, completion_payload, record, sample

from spark.tables.schemas import KINDS, ORIGIN, PAYLOADS
from spark.tables.spool import (
    NO_RECORD,
    UNKNOWN_KIND,
    UNKNOWN_SCHEMA,
    WRONG_PAYLOAD,
    ingest,
    read_records,
)
from tests.spark.conftest import Analysed

GOOD = record("sample", sample(2))
COMPLETION = record("completion", completion_payload(0, "due", np.array([1_000, 2_000])))


def problems(spark: SparkSession, *lines: str) -> list[str | None]:
    """Return each line's problem, in the order of the lines."""
    frame = spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)
    return [row.problem for row in read_records(frame).select("problem").collect()]


def changed(spoiled: Record = GOOD, **payload: Any) -> str:
    return json.dumps({**spoiled, "payload": {**spoiled["payload"], **payload}})


def contents(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {kind: pq.read_table(folder / f"{kind}.parquet").to_pylist() for kind in KINDS}


def test_every_kind_becomes_one_file_and_there_are_no_others(analysed: Analysed) -> None:
    paths = list((analysed.folder / "tables").iterdir())
    assert {path.name for path in paths} == {f"{kind}.parquet" for kind in (*KINDS, "summary", "seconds")}
    assert all(path.is_file() for path in paths)


def sort_key(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def test_every_record_is_in_its_table_unchanged_and_once(analysed: Analysed) -> None:
    tables = contents(analysed.folder / "tables")
    for kind in KINDS:
        expected = []
        for record_of_spool in analysed.made_up.records:
            if record_of_spool["kind"] == kind:
                origin = {name: record_of_spool[name] for name in ORIGIN}
                expected.append({"run_id": record_of_spool["run"], **origin, **record_of_spool["payload"]})
        assert sorted(tables[kind], key=sort_key) == sorted(expected, key=sort_key)


def test_a_table_has_the_columns_of_its_schema_in_order(analysed: Analysed) -> None:
    for kind in KINDS:
        columns = pq.read_schema(analysed.folder / "tables" / f"{kind}.parquet").names
        assert columns == ["run_id", *ORIGIN, *PAYLOADS[kind].names]


def test_ingesting_again_replaces_the_tables(spark: SparkSession, analysed: Analysed) -> None:
    tables = analysed.folder / "tables"
    contents_before = contents(tables)
    written_ns_before = (tables / "traffic.parquet").stat().st_mtime_ns
    ingest(spark, analysed.folder / "spool", tables)
    assert contents(tables) == contents_before
    assert (tables / "traffic.parquet").stat().st_mtime_ns > written_ns_before


def test_unfinished_files_of_a_spool_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """A kind without records has an empty table."""
    tables = tmp_path / "tables"
    tables.mkdir()
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / ".000001.jsonl.part").write_text(json.dumps(GOOD))
    ingest(spark, tmp_path / "spool", tables)
    assert contents(tables) == {kind: [] for kind in KINDS}


def test_a_good_line_has_no_problem(spark: SparkSession) -> None:
    without_optional_field = changed(due_ns=None)
    with_unknown_field = json.dumps({**GOOD, "extra": {"a": ["\u2028"]}}, ensure_ascii=False)
    assert problems(spark, json.dumps(GOOD), without_optional_field, with_unknown_field) == [None, None, None]


SPOILED = [
    ("", NO_RECORD),
    ("null", NO_RECORD),
    ("[]", NO_RECORD),
    (json.dumps(GOOD)[:-9], NO_RECORD),
    (json.dumps(GOOD)[:-1], NO_RECORD),
    (json.dumps(GOOD) + "rest", NO_RECORD),
    (json.dumps(GOOD) + json.dumps(GOOD), NO_RECORD),
    (json.dumps({k: v for k, v in GOOD.items() if k != "wall_ns"}), NO_RECORD),
    (json.dumps({**GOOD, "wall_ns": "noon"}), NO_RECORD),
    (json.dumps({**GOOD, "schema": 2}), UNKNOWN_SCHEMA),
    (json.dumps({"schema": 2, "kind": "sample"}), UNKNOWN_SCHEMA),
    (json.dumps({**GOOD, "kind": "weather"}), UNKNOWN_KIND),
    (json.dumps({**GOOD, "payload": {}}), WRONG_PAYLOAD),
    (json.dumps({**GOOD, "payload": 5}), WRONG_PAYLOAD),
    (changed(id="five"), WRONG_PAYLOAD),
    (changed(due_ns="noon"), WRONG_PAYLOAD),
    (changed(answered_ns=2**63), WRONG_PAYLOAD),
    # Completion buckets must hold as many times as were counted.
    (changed(COMPLETION, bucket=[5]), WRONG_PAYLOAD),
    (changed(COMPLETION, bucket=[None, 6]), WRONG_PAYLOAD),
    (changed(COMPLETION, bucket_count=[1, 2]), WRONG_PAYLOAD),
    (changed(COMPLETION, count=3), WRONG_PAYLOAD),
]


def test_a_spoiled_line_has_the_problem_that_it_has(spark: SparkSession) -> None:
    lines = [line for line, _ in SPOILED]
    for (line, expected), problem in zip(SPOILED, problems(spark, *lines), strict=True):
        assert problem == expected, line
