"""Figures of log buckets, merged: the same as exchange.measurements.LogBuckets gives.

    files of records of seconds --each--> figures of seconds, one histogram a run --together--> figures of both
    files of single values      --each--> one histogram a file                    --together--> figures

Whatever grows with the orders stays in Spark, which reads files and brings together what belongs together; what is in
them is done in numpy (spark.histograms, spark.whole_files). Buckets exploded into rows of Spark's, 435 a record, took a
third more CPU time for all of a summary; single values, counted by a plan of Spark's, three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, LongType, StringType, StructType
from pyspark.sql.types import StructField as Field

from exchange.measurements import LogBuckets
from spark.histograms import COUNTED, FIGURES, added, figures
from spark.schemas import KEYS
from spark.whole_files import CONTENT, PATH, tables_of

OF_SECOND = (*KEYS, "second", "clock")
WHOLE_RUN = -1
"""The second of what belongs to none."""

NAMES = [*(Field(name, StringType()) for name in KEYS), Field("second", IntegerType()), Field("clock", StringType())]
TOLD = [Field(name, LongType() if name == "count" else DoubleType()) for name in FIGURES]
HISTOGRAM = [
    *(Field(name, LongType()) for name in COUNTED),
    Field("bucket", ArrayType(IntegerType(), containsNull=False)),
    Field("bucket_count", ArrayType(LongType(), containsNull=False)),
]
UNDER_WAY = [*NAMES, *TOLD, *(field for field in HISTOGRAM if field.name != "count")]
"""Figures, or where there is more to come, a histogram."""

OnTables = Callable[[pa.Table], pa.Table]
RECORDS = 1_000
"""At once."""


def time_figures(completion: DataFrame) -> DataFrame:
    """(*KEYS, second, clock, *FIGURES) of records but last orders': of each second, and, second null, of each run.

    A run's leave out its warm-up. `completion` has a file's path and content, whose it is (KEYS), and of that run
    `warm_up_s` and `gateways`, the number of sources, which tells what has to be put together first: of one, no two
    records have the same second and clock.
    """
    begun = completion.select(*KEYS, "warm_up_s", "gateways", PATH, CONTENT).mapInArrow(_begun, StructType(UNDER_WAY))
    done = begun.repartition(*KEYS).mapInArrow(_of_all_batches(_completed), StructType([*NAMES, *TOLD]))
    return done.withColumn("second", fn.nullif("second", fn.lit(WHOLE_RUN)))


def _begun(files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    columns = ["second", "clock", "last_order", *_names(HISTOGRAM)]
    for of_file, records in tables_of(files, columns, RECORDS):
        known = _where(records, pc.and_(pc.invert(records["last_order"]), pc.greater(records["count"], 0)))
        for name in KEYS:
            known = known.append_column(name, pa.repeat(of_file[name], len(known)))
        after_warm_up = pc.greater_equal(known["second"], of_file["warm_up_s"])
        yield from _seconds_and_runs(known, after_warm_up, alone=of_file["gateways"] == 1).to_batches()


def _seconds_and_runs(records: pa.Table, after_warm_up: pa.ChunkedArray, *, alone: bool) -> pa.Table:
    """UNDER_WAY: the figures of seconds that are whole here, and what there is of others and of runs, added up."""
    of_runs, nothing = _where(records, after_warm_up), records.slice(0, 0)
    second = pa.array([WHOLE_RUN] * len(of_runs), pa.int32())
    of_runs = of_runs.set_column(of_runs.column_names.index("second"), "second", second)
    begun = added(_in_order([of_runs, nothing if alone else records], [*NAMES, *HISTOGRAM]), OF_SECOND)
    return _in_order([figures(records if alone else nothing, OF_SECOND), begun], UNDER_WAY)


def _where(records: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Without a copy of all buckets where it is all of them."""
    return records if pc.all(mask).as_py() else records.filter(mask)


def _completed(under_way: pa.Table) -> pa.Table:
    """The figures of all: UNDER_WAY of all records that have the same keys."""
    begun = under_way["bucket"].is_valid()
    of_begun = figures(added(under_way.filter(begun), OF_SECOND), OF_SECOND)
    return _in_order([under_way.filter(pc.invert(begun)), of_begun], [*NAMES, *TOLD])


def _in_order(tables: Sequence[pa.Table], fields: Sequence[Field]) -> pa.Table:
    """Behind each other; a column that one of them lacks is null there."""
    names = _names(fields)
    known = [table.select([name for name in names if name in table.column_names]) for table in tables]
    return pa.concat_tables(known, promote_options="default").select(names)


def _names(fields: Sequence[Field]) -> list[str]:
    return [field.name for field in fields]


def row_figures(files: DataFrame, names: Sequence[str]) -> DataFrame:
    """(*names, *FIGURES) of single values, in the buckets of exchange.measurements.bucket_of.

    `files` has a file's path and content, whose column `value_ns` holds them, and in `names` what it belongs to.
    """
    of_names = [files.schema[name] for name in names]
    schema = StructType([*of_names, *HISTOGRAM])
    counted = files.select(*names, PATH, CONTENT).mapInArrow(partial(_counted, schema=to_arrow_schema(schema)), schema)
    work = _of_all_batches(partial(_added_figures, names=tuple(names)))
    return counted.repartition(*names).mapInArrow(work, StructType([*of_names, *TOLD]))


def _counted(files: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for of_file, values in tables_of(files, ["value_ns"]):
        row = of_file | LogBuckets.of(values["value_ns"].to_numpy()).sparse()
        yield pa.RecordBatch.from_pylist([row], schema)


def _added_figures(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    return figures(added(histograms, names), names)


def _of_all_batches(work: OnTables) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if taken := list(batches):
            yield from work(pa.Table.from_batches(taken)).to_batches()

    return run
