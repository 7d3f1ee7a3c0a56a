"""The tables of one run: a file for each kind of record, and the problems of lines that are in no table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from spark_runs import SESSION, MadeUpRun, Record, completion_payload, record, sample
from spark_tables import derived_columns

from exchange.measurements import BUCKETS
from spark.run_facts import read_run
from spark.run_tables import write_run_tables
from spark.tables.problems import NO_RECORD, UNKNOWN_KIND, UNKNOWN_SCHEMA, WRONG_PAYLOAD
from spark.tables.schemas import KINDS, ORIGIN, PAYLOADS, TABLE_ORIGIN, table_schema
from spark.tables.spool_by_arrow import tables_of_spool
from spark.tables.spool_by_spark import read_records, rows_of_kind
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
    return json.dumps(row, sort_keys=True, default=str)


def test_every_record_is_in_its_table_unchanged_and_once(analysed: Analysed) -> None:
    tables = contents(analysed.folder / "tables")
    for kind in KINDS:
        expected = []
        for record_of_spool in analysed.made_up.records:
            if record_of_spool["kind"] == kind:
                origin = {name: record_of_spool[name] for name in ORIGIN}
                origin |= derived_columns(record_of_spool)
                expected.append({"run_id": record_of_spool["run"], **origin, **record_of_spool["payload"]})
        assert sorted(tables[kind], key=sort_key) == sorted(expected, key=sort_key)


def test_a_table_has_the_columns_of_its_schema_in_order(analysed: Analysed) -> None:
    for kind in KINDS:
        columns = pq.read_schema(analysed.folder / "tables" / f"{kind}.parquet").names
        assert columns == [*TABLE_ORIGIN, *PAYLOADS[kind].names]


def test_a_second_call_replaces_the_tables(analysed: Analysed) -> None:
    tables = analysed.folder / "tables"
    contents_before = contents(tables)
    written_ns_before = (tables / "traffic.parquet").stat().st_mtime_ns
    write_run_tables(analysed.folder, read_run(analysed.folder))
    assert contents(tables) == contents_before
    assert (tables / "traffic.parquet").stat().st_mtime_ns > written_ns_before


def test_unfinished_files_of_a_spool_are_not_read(tmp_path: Path) -> None:
    """A kind without records has an empty table."""
    (tmp_path / ".000001.jsonl.part").write_text(json.dumps(GOOD))
    assert {kind: rows.num_rows for kind, rows in tables_of_spool(tmp_path).kinds.items()} == dict.fromkeys(KINDS, 0)


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
    (json.dumps({**GOOD, "schema": True}), NO_RECORD),
    (json.dumps({**GOOD, "schema": 1.0}), NO_RECORD),
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
    (changed(COMPLETION, bucket=[-1, 6]), WRONG_PAYLOAD),
    (changed(COMPLETION, bucket=[5, BUCKETS]), WRONG_PAYLOAD),
    (changed(COMPLETION, bucket=[5, 6], bucket_count=[-1, 3]), WRONG_PAYLOAD),
    (changed(COMPLETION, max_ns=-1), WRONG_PAYLOAD),
]


def test_a_spoiled_line_has_the_problem_that_it_has(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line for line, _ in SPOILED]
    for (line, expected), problem in zip(SPOILED, problems(spark, *lines), strict=True):
        assert problem == expected, line
    (tmp_path / "1.jsonl").write_text("".join(f"{line}\n" for line in lines))
    in_quarantine = tables_of_spool(tmp_path).quarantine
    assert in_quarantine["problem"].to_pylist() == [expected for _, expected in SPOILED]
    assert in_quarantine["example"].to_pylist() == [line[:160] for line in lines]


def types_of(schema: pa.Schema) -> list[str]:
    """Return the types, without what may be null, which Spark does not know of a list."""
    return [str(type_of_column).replace(" not null", "") for type_of_column in schema.types]


def test_spark_and_arrow_make_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Two pairs and two reporters, a number where words go, an unknown field, and bytes that are no UTF-8."""
    folder = MadeUpRun(seconds=2, reporters=2).write(tmp_path / "run")
    MadeUpRun(seconds=2, reporters=2, pair=2).write_beside(folder)
    with_number = json.dumps({**record("session", {**SESSION, "version": 1}), "extra": [1]})
    odd = with_number.encode().replace(b"price-time", b"price-\xff")
    (folder / "spool" / "9.jsonl").write_bytes(with_number.encode() + b"\n" + odd + b"\n")
    arrow = tables_of_spool(folder / "spool")
    assert arrow.quarantine.num_rows == 0
    lines = spark.read.text(f"file://{folder}/spool", pathGlobFilter="*.jsonl")
    records = read_records(lines)
    for kind in KINDS:
        by_spark = rows_of_kind(records, kind).toArrow()
        assert by_spark.schema.names == table_schema(kind).names
        assert types_of(by_spark.schema) == types_of(table_schema(kind))
        ours = sorted(arrow.kinds[kind].to_pylist(), key=sort_key)
        assert sorted(by_spark.to_pylist(), key=sort_key) == ours, kind
    assert arrow.kinds["sample"]["pair"].unique().to_pylist() == [1, 2]
