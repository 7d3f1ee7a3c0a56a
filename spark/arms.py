"""Over repeats: the paper's figures and table, and arms that differ in one thing side by side.

    figure 8 (a)      orders_per_s, answers_per_s              figure 9    broker_, gateway_, engine_cpu_percent
    figure 8 (b, c)   handed_over_mean_us                      table 1     packets, packet_bytes, packet_gap_us

Medians over the repeats of an arm; runs that are not complete or saturated are counted, and in no figure. Intervals
and verdicts are those of the trial's own page: here, as everywhere in a table, stands what was measured.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from spark.summary.columns import FACTS, OFFERED, RATE, TIMES

MEASURED = (RATE, *FACTS, *TIMES)
ARM = ("experiment", "arm", "transport", OFFERED)
COUNTED = ("complete", "saturated")
COMPARED = ("due_p50_us", "due_p99_us", "handed_over_mean_us", RATE, "cpu_s_per_million")


def arms_table(measured: DataFrame) -> DataFrame:
    """(*ARM, repeats, left_out, median of each of MEASURED): a row an arm, of `run_facts`."""
    counts = fn.col("status").isin(*COUNTED)
    repeats, left_out = fn.count_if(counts).alias("repeats"), fn.count_if(~counts).alias("left_out")
    medians = [fn.median(fn.when(counts, fn.col(name))).alias(name) for name in MEASURED]
    return measured.groupBy(*ARM).agg(repeats, left_out, *medians).orderBy(*ARM)


def comparison_table(arms: DataFrame) -> DataFrame:
    """Two arms of an experiment that are offered the same: (experiment, OFFERED, first, second, ratios second / first).

    Either two transports and all else the same, or one transport and other settings.
    """
    first, second = arms.alias("first"), arms.alias("second")
    together = first.join(
        second,
        _same("experiment")
        & fn.col(f"first.{OFFERED}").eqNullSafe(fn.col(f"second.{OFFERED}"))
        & (_name("first") < _name("second"))
        & (_same("transport") | _same("arm")),
    )
    ratios = [(fn.col(f"second.{name}") / fn.col(f"first.{name}")).alias(f"{name}_ratio") for name in COMPARED]
    names = [fn.col("first.experiment"), fn.col(f"first.{OFFERED}"), _name("first").alias("first")]
    return together.select(*names, _name("second").alias("second"), *ratios).orderBy("experiment", OFFERED, "first")


def _same(name: str) -> Column:
    return fn.col(f"first.{name}") == fn.col(f"second.{name}")


def _name(side: str) -> Column:
    """Of an arm beside another: its transport, and what else is set."""
    return fn.concat_ws(" ", fn.col(f"{side}.transport"), fn.nullif(fn.col(f"{side}.arm"), fn.lit("")))
