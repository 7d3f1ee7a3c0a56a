"""Figures of single values, in log buckets: the same as exchange.measurements.LogBuckets gives.

    files of single values --each--> one histogram a file --together--> figures

What grows with the values stays where their files are: Spark reads these and brings together what belongs together;
what is in them is counted in numpy (spark.histograms, spark.whole_files). Spark's own plan counted three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, LongType, StructType
from pyspark.sql.types import StructField as Field

from exchange.measurements import LogBuckets
from spark.histograms import COUNTED, FIGURES, added, figures
from spark.whole_files import CONTENT, PATH, tables_of

TOLD = [Field(name, LongType() if name == "count" else DoubleType()) for name in FIGURES]
HISTOGRAM = [
    *(Field(name, LongType()) for name in COUNTED),
    Field("bucket", ArrayType(IntegerType(), containsNull=False)),
    Field("bucket_count", ArrayType(LongType(), containsNull=False)),
]


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


def _of_all_batches(
    work: Callable[[pa.Table], pa.Table],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if taken := list(batches):
            yield from work(pa.Table.from_batches(taken)).to_batches()

    return run
