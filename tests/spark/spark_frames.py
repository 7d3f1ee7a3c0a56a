"""Records as the rows of a table of several runs."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from spark_runs import Record

from spark.schemas import KEYS, ORIGIN, PAYLOADS, RUNS, dataset_schema, table_schema
from spark.whole_files import CONTENT, PATH

RUN = ("a-trial", "a-run")


def table(spark: SparkSession, *records: Record, run: tuple[str, str] = RUN) -> DataFrame:
    (kind,) = {r["kind"] for r in records}
    names = PAYLOADS[kind].names
    rows = [(*run, *(r[name] for name in ORIGIN), *(r["payload"][name] for name in names)) for r in records]
    return spark.createDataFrame(rows, dataset_schema(kind)).coalesce(1)


def completion(spark: SparkSession, *records: Record, run: tuple[str, str] = RUN) -> DataFrame:
    """A run's file of them."""
    schema, payload = table_schema("completion"), PAYLOADS["completion"].names
    rows = [(*(r[name] for name in ORIGIN), *(r["payload"][name] for name in payload)) for r in records]
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(named, schema=to_arrow_schema(schema)), file)
    return spark.createDataFrame([(*run, "made-up", file.getvalue())], [*KEYS, PATH, CONTENT])


def runs(spark: SparkSession, *names: tuple[str, str]) -> DataFrame:
    rows = [(*name, "complete", "zeromq", None, None, None, 0.0, None, 1, "", {}) for name in names or (RUN,)]
    return spark.createDataFrame(rows, RUNS).coalesce(1)


def lasting(frame: DataFrame, duration_s: float | None, warm_up_s: float = 0.0, gateways: int = 1) -> DataFrame:
    """What each row must know of its run."""
    known = {"duration_s": fn.lit(duration_s).cast("double"), "warm_up_s": fn.lit(warm_up_s)}
    return frame.withColumns({**known, "gateways": fn.lit(gateways)})
