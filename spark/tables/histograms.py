"""Log buckets of many rows in numpy: add the histograms that belong together, and take their figures.

A histogram is a row: columns that name what it is of, EXACT, its buckets that are not empty, and their counts. These
functions do with a batch of rows at once what exchange.measurements.LogBuckets does with one histogram.

    files of single values --each--> one histogram a file --together--> figures

Single values stay where their files are: Spark reads the files and brings together what belongs together, numpy counts
what is in them. Counting as a plan of Spark's took three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, LongType, StructType
from pyspark.sql.types import StructField as Field

from exchange.measurements import BUCKETS, LogBuckets, bucket_middle_ns
from spark.tables.files import CONTENT, PATH, tables_of

PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
FIGURES = ("count", "mean_us", "min_us", *(f"{name}_us" for name in PERCENTS), "max_us")
EXACT = {"count": "sum", "sum_ns": "sum", "min_ns": "min", "max_ns": "max"}
"""Columns that stay exact, and how Arrow merges them."""
NS_PER_US = 1e3
HISTOGRAM = [
    *(Field(name, LongType()) for name in EXACT),
    Field("bucket", ArrayType(IntegerType(), containsNull=False)),
    Field("bucket_count", ArrayType(LongType(), containsNull=False)),
]

Integers = npt.NDArray[np.int64]


def merged_histograms(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    """Add rows with the same names: (*names, *EXACT, bucket, bucket_count), a row each, buckets sorted."""
    first, group = _groups(histograms, names)
    bucket, counts, lengths = _buckets(histograms)
    keys, counts = _sums(np.repeat(group, lengths) * BUCKETS + bucket, counts)
    offsets = np.searchsorted(keys, np.arange(len(first) + 1) * BUCKETS).astype(np.int32)
    exact = histograms.select(list(EXACT)).append_column("group", pa.array(group))
    together = exact.group_by("group", use_threads=False).aggregate(list(EXACT.items())).sort_by("group")
    columns = {name: histograms[name].take(pa.array(first)) for name in names}
    columns |= {name: together[f"{name}_{how}"] for name, how in EXACT.items()}
    columns["bucket"] = pa.ListArray.from_arrays(offsets, pa.array((keys % BUCKETS).astype(np.int32)))
    columns["bucket_count"] = pa.ListArray.from_arrays(offsets, pa.array(counts))
    return pa.table(columns)


def figures(histograms: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return (*names, *FIGURES) of rows with sorted buckets, in us.

    Percentiles are numpy's inverted_cdf of bucket middles.
    """
    count, sum_ns, min_ns, max_ns = (histograms[name].to_numpy() for name in EXACT)
    bucket, counts, lengths = _buckets(histograms)
    passed = np.cumsum(counts)
    before = np.concatenate([[0], passed])[np.cumsum(lengths) - lengths]
    found = {"count": count, "mean_us": sum_ns / count / NS_PER_US, "min_us": min_ns / NS_PER_US}
    for name, percent in PERCENTS.items():
        rank = np.maximum(np.ceil(count * percent / 100.0), 1).astype(np.int64)
        middle_ns = bucket_middle_ns(bucket[np.searchsorted(passed, before + rank)])
        found[f"{name}_us"] = np.clip(middle_ns, min_ns, max_ns) / NS_PER_US
    found["max_us"] = max_ns / NS_PER_US
    return pa.table({name: histograms[name] for name in names} | found)


def _groups(rows: pa.Table, names: Sequence[str]) -> tuple[Integers, Integers]:
    """Group rows with the same names: (the first row of each group, the group of each row)."""
    code = np.zeros(len(rows), np.int64)
    for name in names:
        values = rows[name].combine_chunks().dictionary_encode()
        code = code * len(values.dictionary) + values.indices.to_numpy()
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def _buckets(histograms: pa.Table) -> tuple[Integers, Integers, Integers]:
    """Return the buckets and counts of all rows one after another, and the number of buckets in each row."""
    bucket, counts = (histograms[name].combine_chunks() for name in ("bucket", "bucket_count"))
    lengths = pc.list_value_length(bucket).to_numpy().astype(np.int64)
    return bucket.flatten().to_numpy().astype(np.int64), counts.flatten().to_numpy(), lengths


def _sums(keys: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Return each key once, sorted, and the sum of its values."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums: Integers = np.add.reduceat(values[order], starts) if len(starts) else values[:0]
    return ordered[starts], sums


def row_figures(files: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return (*names, *FIGURES) of single values, in the buckets of exchange.measurements.bucket_of.

    `files` has the path and content of files with a column `value_ns`, and in the columns `names` what each is of.
    """
    named = [files.schema[name] for name in names]
    schema = StructType([*named, *HISTOGRAM])
    figured = [Field(name, LongType() if name == "count" else DoubleType()) for name in FIGURES]
    counted = files.select(*names, PATH, CONTENT).mapInArrow(partial(_counted, schema=to_arrow_schema(schema)), schema)
    add = partial(_added_figures, names=tuple(names))
    return counted.repartition(*names).mapInArrow(add, StructType([*named, *figured]))


def _counted(files: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for named, values in tables_of(files, ["value_ns"]):
        row = named | LogBuckets.of(values["value_ns"].to_numpy()).sparse()
        yield pa.RecordBatch.from_pylist([row], schema)


def _added_figures(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if together := list(batches):
        yield from figures(merged_histograms(pa.Table.from_batches(together), names), names).to_batches()
