"""Sampled completion times, second by second: one function for finished runs and for streams.

The gateway reports one order in `sampling_interval` to the stats reporter, whose spool is the stream that Spark reads:

    gateway --sample--> stats reporter --line--> spool --`samples_of_lines`--> samples --`sample_windows`--> seconds

`sample_windows` groups the samples of a table or a stream by windows of one second. A table's first sample is known, so
`numbered_seconds` counts its seconds from there: RUN/tables/sample_seconds, and the view of that name over all runs.

The paper estimates completion times from such samples (section 5.1). A median has a 95 % interval here: the two samples
between which the median of all orders lies, whatever their distribution, if samples are independent. Fewer than six
samples have none. The warm-up and the last order are among the samples, if the interval divides their ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from exchange.records import SAMPLE
from spark.tables.schemas import AT
from spark.tables.spool_by_spark import read_records, rows_of_kind

SOURCE = "source"
"""The column of a sample that names its gateway."""
SAMPLE_FIGURES = ("samples", "mean_us", "p50_us", "p50_low_us", "p50_high_us", "max_us")
NORMAL_95 = 1.96
"""A normal distribution's 97.5 % quantile, for 95 % between both sides."""
LATENESS = "5 seconds"
"""A gateway reports its samples once a second. A stream waits this long before it closes a window."""


def samples_of_lines(lines: DataFrame) -> DataFrame:
    """Return the samples in the lines of a spool (column `value`), from a file or a stream: (run_id, source, ...,
    id, due_ns, handed_over_ns, answered_ns)."""
    return rows_of_kind(read_records(lines), SAMPLE)


def answered_at() -> Column:
    """Return a sample's event time for streams: when it was answered, on the gateway's monotonic clock.

    That clock counts from the start of the gateway's host. Give it for gateways of one host only: a stream has one
    watermark, so it drops the samples of a host whose clock is more than LATENESS behind another's.
    """
    return fn.timestamp_micros(fn.expr("answered_ns div 1000"))


def reported_at() -> Column:
    """Return a sample's event time for streams over several hosts: when the reporter took it, by its wall clock.

    That is up to a second after the answer.
    """
    return fn.col(AT)


def sample_windows(samples: DataFrame, at: Column, keys: Sequence[str] = (SOURCE,)) -> DataFrame:
    """Return a row for each second and each value of `keys`, from samples in a table or in a stream.

    `at` is a sample's event time: `answered_at` or `reported_at`. Columns: `keys`; window (start, end); samples;
    mean_us; p50_us; p50_low_us and p50_high_us, the 95 % interval, null for fewer than six samples; max_us. Times run
    from an order's due time, or from handing over if the run had no schedule, to its first answer.
    """
    times = samples.select(*keys, at.alias("at"), _completion_us())
    grouped = times.withWatermark("at", LATENESS).groupBy(*keys, fn.window("at", "1 second").alias("window"))
    return grouped.agg(*_figures())


def numbered_seconds(samples: DataFrame, keys: Sequence[str] = (SOURCE,)) -> DataFrame:
    """Return `sample_windows` of a table, with `second` in place of the window: seconds begin with the first sample of
    each value of `keys`."""
    first_ns = fn.min(_started_ns()).over(Window.partitionBy(*keys))
    samples_with_age = samples.withColumn("since_us", ((fn.col("answered_ns") - first_ns) / 1e3).cast("long"))
    windows = sample_windows(samples_with_age, fn.timestamp_micros("since_us"), keys)
    return windows.select(*keys, fn.unix_seconds("window.start").cast("int").alias("second"), *SAMPLE_FIGURES)


def sample_summary(samples: DataFrame) -> DataFrame:
    """Return one row: the SAMPLE_FIGURES of all samples in a table; null without samples, and `samples` is 0."""
    return samples.select(_completion_us()).agg(*_figures())


def _started_ns() -> Column:
    """Return the time from which a sample's completion counts: due, or handed over if the run had no schedule."""
    return fn.coalesce("due_ns", "handed_over_ns")


def _completion_us() -> Column:
    """Return a sample's completion time, as column `us`."""
    return ((fn.col("answered_ns") - _started_ns()) / 1e3).alias("us")


def _figures() -> list[Column]:
    """Return the aggregates over a column `us` of completion times."""
    ordered = fn.array_sort(fn.collect_list("us"))
    number = fn.count("us")
    # The number of samples below the median of all orders is binomial (number, 1/2): its mean is number / 2, and its
    # deviation sqrt(number) / 2. The rank of the interval's lower end counts from 1; the upper end is as far from the
    # other side.
    rank = fn.floor((number + 1) / 2 - NORMAL_95 / 2 * fn.sqrt(number))
    has_interval = rank >= 1
    return [
        number.alias("samples"),
        fn.avg("us").alias("mean_us"),
        fn.median("us").alias("p50_us"),
        fn.when(has_interval, fn.get(ordered, rank - 1)).alias("p50_low_us"),
        fn.when(has_interval, fn.get(ordered, number - rank)).alias("p50_high_us"),
        fn.max("us").alias("max_us"),
    ]
