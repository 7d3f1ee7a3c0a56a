"""Figures of merged log buckets, computed in Spark: the same as exchange.measurements.LogBuckets gives.

    a second's record has its buckets sorted already                          --fold--> figures
    a run's records --explode--> (key, bucket, n) --sum--> merged --collect--> sorted buckets --fold--> figures

Whatever grows with the orders stays in Spark. What takes the time is the number of rows between explode and sum, 435 a
second and clock of 8,000 orders: so the names of a run are one number there, and nothing is sorted but merged buckets.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE
from spark.schemas import KEYS

PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
FIGURES = ("count", "mean_us", "min_us", *(f"{name}_us" for name in PERCENTS), "max_us")

NS_PER_US = 1e3
SHORT_OF_WHOLE = 2e-14
"""Java has no log2, only a quotient of logarithms, which misses a whole number by less than this."""
OF_CLOCK = (*KEYS, "clock")
OF_SECOND = (*KEYS, "second", "clock")


def second_figures(completion: DataFrame) -> DataFrame:
    """(*OF_SECOND, *FIGURES) of records, of which no two of one source have the same OF_SECOND.

    `gateways`, the number of sources of a record's run, tells which have to be put together first.
    """
    alone, several = completion.where("gateways = 1"), completion.where("gateways > 1")
    exact = ("count", "sum_ns", "min_ns", "max_ns")
    of_one = alone.select(*OF_SECOND, *exact, _pairs().alias("pairs"))
    together = several.select(*OF_SECOND, *exact, _pairs().alias("pairs")).groupBy(*OF_SECOND)
    sorted_pairs = fn.sort_array(fn.flatten(fn.collect_list("pairs"))).alias("pairs")
    return _figures(of_one.unionAll(together.agg(*_totals(), sorted_pairs)), OF_SECOND)


def run_figures(completion: DataFrame) -> DataFrame:
    """(*OF_CLOCK, *FIGURES) of all records together."""
    pair = completion.select(_key(), fn.explode(_pairs()).alias("pair"))
    merged = pair.groupBy("key", fn.col("pair.bucket").alias("bucket")).agg(fn.sum("pair.n").alias("n"))
    return _of_merged(merged, completion.groupBy(_key(), *OF_CLOCK).agg(*_totals()))


def row_figures(rows: DataFrame) -> DataFrame:
    """The same of single values, (*OF_CLOCK, value_ns), in the buckets of exchange.measurements.bucket_of."""
    value = fn.col("value_ns")
    exact = (fn.sum(value).alias("sum_ns"), fn.min(value).alias("min_ns"), fn.max(value).alias("max_ns"))
    merged = rows.groupBy(_key(), bucket_of("value_ns").alias("bucket")).agg(fn.count("*").alias("n"), *exact)
    names = rows.select(*OF_CLOCK).distinct().select(_key(), *OF_CLOCK)
    counted = merged.withColumnRenamed("n", "count").groupBy("key").agg(*_totals())
    return _of_merged(merged.select("key", "bucket", "n"), names.join(counted, "key"))


def bucket_of(value_ns: str) -> Column:
    """Of a column of times in ns; 0 and 1 ns share bucket 0, and the last bucket holds all that is longer."""
    octaves = fn.log2(fn.greatest(fn.col(value_ns), fn.lit(1))) + SHORT_OF_WHOLE
    return fn.least((octaves * BUCKETS_PER_OCTAVE).cast("int"), fn.lit(BUCKETS - 1))


def _key() -> Column:
    return fn.xxhash64(*OF_CLOCK).alias("key")


def _pairs() -> Column:
    """Of a completion record: [(bucket, n)], sorted by bucket."""
    return fn.arrays_zip("bucket", fn.col("bucket_count").alias("n"))


def _totals() -> list[Column]:
    """What stays exact."""
    sums = [fn.sum(name).alias(name) for name in ("count", "sum_ns")]
    return [*sums, fn.min("min_ns").alias("min_ns"), fn.max("max_ns").alias("max_ns")]


def _of_merged(merged: DataFrame, totals: DataFrame) -> DataFrame:
    """`totals` have names, key and exact figures. Two names of one key would be seen in the counts: then it fails."""
    pairs = fn.sort_array(fn.collect_list(fn.struct("bucket", "n"))).alias("pairs")
    histograms = merged.groupBy("key").agg(pairs, fn.sum("n").alias("in_buckets"))
    agree = fn.assert_true(fn.col("in_buckets") == fn.col("count"), fn.lit("two runs have one key: rename one"))
    return _figures(fn.broadcast(totals).join(histograms, "key").where(agree.isNull()), OF_CLOCK)


def _figures(histograms: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Of (*names, count, sum_ns, min_ns, max_ns, pairs)."""
    ranks = fn.array(*(_rank(percent) for percent in PERCENTS.values()))
    found = histograms.withColumn("ranks", ranks).withColumn("at", _buckets_at_ranks())
    middles = [(_middle_ns(fn.col(f"at.{name}")) / NS_PER_US).alias(f"{name}_us") for name in PERCENTS]
    exact = [(fn.col(f"{name}_ns") / NS_PER_US).alias(f"{name}_us") for name in ("min", "max")]
    mean = (fn.col("sum_ns") / fn.col("count") / NS_PER_US).alias("mean_us")
    return found.select(*names, "count", mean, *exact, *middles)


def _rank(percent: float) -> Column:
    """Of the percentile: numpy's inverted_cdf."""
    return fn.greatest(fn.ceil(fn.col("count").cast("double") * percent / 100.0), fn.lit(1)).cast("long")


def _buckets_at_ranks() -> Column:
    """For each of PERCENTS the first bucket that reaches its rank, from one pass over the sorted pairs."""

    def add(passed: Column, pair: Column) -> Column:
        total = (passed["total"] + pair["n"]).alias("total")
        buckets = [
            fn.when(passed["total"] < fn.col("ranks")[i], pair["bucket"]).otherwise(passed[name]).alias(name)
            for i, name in enumerate(PERCENTS)
        ]
        return fn.struct(total, *buckets)

    nothing = fn.struct(
        fn.lit(0).cast("long").alias("total"), *(fn.lit(None).cast("int").alias(name) for name in PERCENTS)
    )
    return fn.aggregate("pairs", nothing, add)


def _middle_ns(bucket: Column) -> Column:
    """The geometric middle of a bucket, kept within the exact min and max."""
    middle = fn.pow(fn.lit(2.0), (bucket + 0.5) / BUCKETS_PER_OCTAVE)
    return fn.least(fn.greatest(middle, fn.col("min_ns").cast("double")), fn.col("max_ns").cast("double"))
