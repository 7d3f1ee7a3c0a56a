"""All rows of a query, from executors here and elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from exchange_simulation.experiments.pipeline.row_stream import row_stream

ROWS = """
select id, timestamp '2026-11-27 01:02:03.456789+00:00' as at,
  if(id > 1, timestamp '1969-12-31 23:59:59+00:00', null) as at, 'word' as word, array(id, 2) as numbers
from range(3)
"""


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def all_rows(rows: DataFrame, master: str) -> pa.Table:
    with row_stream(rows, master) as stream:
        return pa.Table.from_batches(stream.batches, stream.schema)


@pytest.mark.usefixtures("far_from_utc")
def test_rows_from_elsewhere_are_those_from_here(spark: SparkSession) -> None:
    """A column of times was an AssertionError there."""
    rows = spark.sql(ROWS)
    from_here = all_rows(rows, "local[2]")
    from_elsewhere = all_rows(rows, "spark://host:7077")
    assert from_elsewhere.column_names == from_here.column_names == ["id", "at", "at", "word", "numbers"]
    for ours, theirs in zip(from_here.columns, from_elsewhere.columns, strict=True):
        assert ours.to_pylist() == theirs.to_pylist()
    assert from_elsewhere.schema.field(1).type == pa.timestamp("us", tz="UTC")
