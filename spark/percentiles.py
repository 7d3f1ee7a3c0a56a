"""Figures of log buckets, merged: the same as exchange.measurements.LogBuckets gives.

    records of seconds --each batch--> figures of seconds, one histogram a run --together--> figures of seconds and runs
    single values      --counted by bucket-----------------> few histograms --together--> figures

Whatever grows with the orders stays in Spark. It reads, counts single values, and brings rows together; what is done
to buckets is done in numpy (spark.histograms), a batch at a time: exploded, a record is 435 rows for a young JVM, which
took a third more CPU time for all of a summary. A Python process takes a second to start: records pass through one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, LongType, StringType, StructType
from pyspark.sql.types import StructField as Field

from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE
from spark.histograms import COUNTED, FIGURES, added, figures
from spark.schemas import KEYS

SHORT_OF_WHOLE = 2e-14
"""Java has no log2, only a quotient of logarithms, which misses a whole number by less than this."""
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


def time_figures(completion: DataFrame) -> DataFrame:
    """(*KEYS, second, clock, *FIGURES) of records: of each second, and, second null, of each run but its warm-up.

    Of one source, no two have the same names; `gateways`, the number of sources of a record's run, tells which have to
    be put together first.
    """
    after_warm_up, alone = fn.col("second") >= fn.col("warm_up_s"), fn.col("gateways") == 1
    known = completion.select(
        *OF_SECOND, *_names(HISTOGRAM), after_warm_up.alias("after_warm_up"), alone.alias("alone")
    ).where("count > 0")
    begun = known.mapInArrow(_of_each_batch(_seconds_and_runs), StructType(UNDER_WAY))
    done = begun.repartition(*KEYS).mapInArrow(_of_all_batches(_completed), StructType([*NAMES, *TOLD]))
    return done.withColumn("second", fn.nullif("second", fn.lit(WHOLE_RUN)))


def _seconds_and_runs(records: pa.Table) -> pa.Table:
    """UNDER_WAY: the figures of seconds that are whole here, and what there is of others and of runs, added up."""
    alone, after_warm_up = records["alone"], records["after_warm_up"]
    of_runs = records.filter(after_warm_up)
    second = pa.array([WHOLE_RUN] * len(of_runs), pa.int32())
    of_runs = of_runs.set_column(of_runs.column_names.index("second"), "second", second)
    begun = added(_in_order([of_runs, records.filter(pc.invert(alone))], [*NAMES, *HISTOGRAM]), OF_SECOND)
    return _in_order([figures(records.filter(alone), OF_SECOND), begun], UNDER_WAY)


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


def row_figures(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """(*names, *FIGURES) of single values, (*names, value_ns), in the buckets of exchange.measurements.bucket_of.

    What takes the time is to find the group of each row: less by one number than by strings.
    """
    value, bucket = fn.col("value_ns"), bucket_of("value_ns").alias("of_bucket")
    counted = rows.groupBy(*names, bucket).agg(
        fn.count("*").alias("count"), fn.sum(value).alias("sum_ns"), fn.min(value).alias("min_ns"),
        fn.max(value).alias("max_ns"),
    )  # fmt: skip
    histograms = counted.withColumns({"bucket": fn.array("of_bucket"), "bucket_count": fn.array("count")})
    few = histograms.select(*names, *_names(HISTOGRAM)).repartition(*names)
    schema = StructType([*(rows.schema[name] for name in names), *TOLD])
    return few.mapInArrow(_of_all_batches(partial(_added_figures, names=tuple(names))), schema)


def _added_figures(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    return figures(added(histograms, names), names)


def bucket_of(value_ns: str) -> Column:
    """Of a column of times in ns; 0 and 1 ns share bucket 0, and the last bucket holds all that is longer."""
    octaves = fn.log2(fn.greatest(fn.col(value_ns), fn.lit(1))) + SHORT_OF_WHOLE
    return fn.least((octaves * BUCKETS_PER_OCTAVE).cast("int"), fn.lit(BUCKETS - 1))


def _of_each_batch(work: OnTables) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from work(pa.Table.from_batches([batch])).to_batches()

    return run


def _of_all_batches(work: OnTables) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if taken := list(batches):
            yield from work(pa.Table.from_batches(taken)).to_batches()

    return run
