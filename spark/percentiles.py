"""Figures of merged log buckets, computed in Spark: the same as exchange.measurements.LogBuckets gives.

    completion records --explode--> (*KEYS, second, clock, bucket, n) --sum--> merged --cumulate--> figures

Whatever grows with the orders stays in Spark; a bucket's count is summed over seconds before anything else.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE
from spark.schemas import KEYS

PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
FIGURES = ("count", "mean_us", "min_us", *(f"{name}_us" for name in PERCENTS), "max_us")

NS_PER_US = 1e3
SHORT_OF_WHOLE = 2e-14
"""Java has no log2, only a quotient of logarithms, which misses a whole number by less than this."""
OF_CLOCK = (*KEYS, "second", "clock")


def completion_figures(completion: DataFrame) -> DataFrame:
    """One row for each OF_CLOCK, with FIGURES as columns; records of the same are merged."""
    return figures(merged(completion))


def merged(completion: DataFrame) -> DataFrame:
    """(*OF_CLOCK, bucket): n, and the exact sum, min and max of the records it came from."""
    buckets = fn.arrays_zip("bucket", "bucket_count")
    columns = completion.select(*OF_CLOCK, "sum_ns", "min_ns", "max_ns", fn.posexplode(buckets))
    # A record's sum is counted once, with its first bucket.
    sum_once = fn.when(fn.col("pos") == 0, fn.col("sum_ns")).otherwise(0)
    return columns.groupBy(*OF_CLOCK, fn.col("col.bucket").alias("bucket")).agg(
        fn.sum("col.bucket_count").alias("n"),
        fn.sum(sum_once).alias("sum_ns"),
        fn.min("min_ns").alias("min_ns"),
        fn.max("max_ns").alias("max_ns"),
    )


def merged_rows(rows: DataFrame) -> DataFrame:
    """The same of single values, (*OF_CLOCK, value_ns): the buckets of exchange.measurements.bucket_of."""
    return rows.groupBy(*OF_CLOCK, bucket_of("value_ns").alias("bucket")).agg(
        fn.count("*").alias("n"),
        fn.sum("value_ns").alias("sum_ns"),
        fn.min("value_ns").alias("min_ns"),
        fn.max("value_ns").alias("max_ns"),
    )


def bucket_of(value_ns: str) -> Column:
    """Of a column of times in ns; 0 and 1 ns share bucket 0, and the last bucket holds all that is longer."""
    octaves = fn.log2(fn.greatest(fn.col(value_ns), fn.lit(1))) + SHORT_OF_WHOLE
    return fn.least((octaves * BUCKETS_PER_OCTAVE).cast("int"), fn.lit(BUCKETS - 1))


def figures(merged: DataFrame) -> DataFrame:
    """Of buckets, sums, minima and maxima."""
    return _figures(_ranked(merged))


def _ranked(merged: DataFrame) -> DataFrame:
    """To each bucket how many values lie in it and below, and how many there are in all."""
    of_clock = Window.partitionBy(*OF_CLOCK)
    up_to_here = of_clock.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return merged.withColumns({"rank": fn.sum("n").over(up_to_here), "total": fn.sum("n").over(of_clock)})


def _figures(ranked: DataFrame) -> DataFrame:
    of_clock = ranked.groupBy(*OF_CLOCK).agg(
        fn.sum("n").alias("count"),
        fn.sum("sum_ns").alias("sum_ns"),
        fn.min("min_ns").alias("min_ns"),
        fn.max("max_ns").alias("max_ns"),
        *(_bucket_at(percent).alias(name) for name, percent in PERCENTS.items()),
    )
    middles = [(_middle_ns(fn.col(name)) / NS_PER_US).alias(f"{name}_us") for name in PERCENTS]
    exact = [(fn.col(f"{name}_ns") / NS_PER_US).alias(f"{name}_us") for name in ("min", "max")]
    mean = (fn.col("sum_ns") / fn.col("count") / NS_PER_US).alias("mean_us")
    return of_clock.select(*OF_CLOCK, "count", mean, *exact, *middles)


def _bucket_at(percent: float) -> Column:
    """The first bucket that reaches the percentile's rank: numpy's inverted_cdf."""
    rank = fn.greatest(fn.ceil(fn.col("total").cast("double") * percent / 100.0), fn.lit(1))
    return fn.min(fn.when(fn.col("rank") >= rank, fn.col("bucket")))


def _middle_ns(bucket: Column) -> Column:
    """The geometric middle of a bucket, kept within the exact min and max."""
    middle = fn.pow(fn.lit(2.0), (bucket + 0.5) / BUCKETS_PER_OCTAVE)
    return fn.least(fn.greatest(middle, fn.col("min_ns").cast("double")), fn.col("max_ns").cast("double"))
