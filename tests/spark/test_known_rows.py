"""Rows of ours that become part of a plan: their types, their missing columns, and values of a wrong type."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, MapType, StringType, StructField, StructType

from spark.errors import SparkJobError, typed_errors
from spark.summary import local_rows

SCHEMA = StructType(
    [
        StructField("name", StringType()),
        StructField("warm_up_s", DoubleType()),
        StructField("facts", MapType(StringType(), DoubleType())),
    ]
)


def test_rows_are_unchanged_and_null_in_missing_columns(spark: SparkSession) -> None:
    rows = local_rows(spark, [{"name": "a", "facts": {"packets": 2.0}}, {"name": "b", "warm_up_s": 1.5}], SCHEMA)
    assert rows.schema == SCHEMA
    assert [tuple(row) for row in rows.collect()] == [("a", None, {"packets": 2.0}), ("b", 1.5, None)]
    assert local_rows(spark, [], SCHEMA).collect() == []


def test_a_value_of_another_type_is_named_in_the_error(spark: SparkSession) -> None:
    with (
        pytest.raises(SparkJobError, match=r"could not analyse results: Could not convert '6'"),
        typed_errors("results"),
    ):
        local_rows(spark, [{"name": "a", "warm_up_s": "6"}], SCHEMA)
