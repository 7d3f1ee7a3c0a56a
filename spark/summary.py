"""From the tables of runs to one row a second, and one row for each whole run.

Every source gives facts: (*KEYS, second, name, value), a null second standing for the whole run. They are put side
by side at the end, so a figure that was not measured is null, never 0.

Meters are read by engine and gateway and stamped by the reporter, perhaps on a third host, so wall clocks
are all they share. The gateway reports a second's traffic when that second is over: the first second began
`second + 1` seconds before such a record, and the earliest such moment is taken (a record can be late, not
early; the last one can, since the run may end within its second, so it is asked only where it is alone). A
reading belongs to the second in which it was stamped; clocks that disagree by less than a second move it by
one second at most.

The last second is seldom a whole one: its rate and CPU are over the part of it that there was, and null where that
was shorter than SHORTEST_INTERVAL_S, since what happens at the very end says nothing of a second.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.window import WindowSpec

from exchange.measurements import CLOCKS, Meter
from spark.histograms import FIGURES
from spark.percentiles import time_figures
from spark.schemas import KEYS

NS_PER_S = 1_000_000_000
SHORTEST_INTERVAL_S = 0.5

METERS = {int(meter): f"{meter.name.lower()}_per_s" for meter in Meter if meter <= Meter.GATEWAY_MESSAGES_RECEIVED}
TRAFFIC = ("orders_sent", "orders_answered", "messages_received")
CPU = ("gateway_cpu_cores", "engine_cpu_cores")
TIMES = tuple(f"{clock}_{figure}" for clock in CLOCKS for figure in FIGURES)
COUNTS = (*TRAFFIC, *(f"{clock}_count" for clock in CLOCKS))
RATE = "orders_per_s"
OFFERED = "offered_orders_per_s"
OF_RUN = ("warm_up_s", "duration_s", "gateways")
"""What a row must know of its run."""
MEASURED = (*TRAFFIC, *METERS.values(), *CPU, *TIMES)


def summarize_tables(tables: Mapping[str, DataFrame], runs: DataFrame) -> DataFrame:
    """(*KEYS, second, RATE, *MEASURED), of every second and, second null, of each run: small, however large they were.

    Tables of spark.schemas.dataset_schema, with the columns OF_RUN in each row, but of completions the files that
    hold them (spark.percentiles.time_figures). And RUNS.
    """
    facts = traffic_facts(tables["traffic"]).unionAll(rate_facts(tables["traffic"])).unionAll(no_facts(runs))
    clocks = fn.broadcast(gateway_clocks(tables["traffic"]))
    facts = facts.unionAll(meter_facts(tables["throughput"].join(clocks, [*KEYS])))
    facts = facts.unionAll(cpu_facts(tables["process"])).unionAll(time_facts(tables["completion"]))
    return facts.groupBy(*KEYS, "second").agg(*(_side_by_side(name) for name in (RATE, *MEASURED)))


def seconds_table(measured: DataFrame, runs: DataFrame) -> DataFrame:
    """One row a second; the achieved rate of a second is what it sent."""
    offered = runs.select(*KEYS, fn.col("offered_each_second_per_s").alias(OFFERED))
    each = measured.where("second IS NOT NULL").join(fn.broadcast(offered), [*KEYS])
    return each.select(*KEYS, "second", OFFERED, RATE, *MEASURED).orderBy(*KEYS, "second")


def runs_table(measured: DataFrame, runs: DataFrame) -> DataFrame:
    """One row a run; its achieved rate is run.json's, from the first order to the last answer to the nanosecond."""
    whole = measured.where("second IS NULL").drop(RATE).join(fn.broadcast(runs), [*KEYS])
    return whole.select(*KEYS, "status", "transport", OFFERED, RATE, *MEASURED).orderBy(*KEYS)


def gateway_clocks(traffic: DataFrame) -> DataFrame:
    """The wall time at which the first gateway's first second began, and the run's last second: (*KEYS, ...).

    Of several gateways each may end within a second of its own.
    """
    start_ns = (fn.col("wall_ns") - (fn.col("second").cast("long") + 1) * NS_PER_S).alias("start_ns")
    moments = traffic.select(*KEYS, "source", "second", start_ns)
    before_last = fn.col("second") < fn.max("second").over(Window.partitionBy(*KEYS, "source"))
    whole = moments.withColumn("whole_ns", fn.when(before_last, fn.col("start_ns")))
    start = fn.coalesce(fn.min("whole_ns"), fn.min("start_ns")).alias("start_wall_ns")
    return whole.groupBy(*KEYS).agg(start, fn.max("second").alias("last_second"))


def no_facts(runs: DataFrame) -> DataFrame:
    """A run of which nothing was measured has a row as well."""
    nothing = (fn.lit(None).cast("int").alias("second"), fn.lit(RATE).alias("name"), fn.lit(None).cast("double"))
    return runs.select(*KEYS, *nothing)


def traffic_facts(traffic: DataFrame) -> DataFrame:
    """Orders and messages of a second, and of the whole run."""
    sums = [fn.sum(name).alias(name) for name in TRAFFIC]
    whole = traffic.groupBy(*KEYS).agg(*sums).select(*KEYS, fn.lit(None).cast("int").alias("second"), *TRAFFIC)
    each = traffic.groupBy(*KEYS, "second").agg(*sums).unionAll(whole)
    return _facts(each, {name: fn.col(name) for name in TRAFFIC})


def rate_facts(traffic: DataFrame) -> DataFrame:
    """Orders sent a second: of a whole second their number, of the last one their number over its length."""
    of_gateway = Window.partitionBy(*KEYS, "source")
    is_last = fn.col("second") == fn.max("second").over(of_gateway)
    length_s = _elapsed_s(of_gateway.orderBy("second"))
    timed = traffic.select(
        *KEYS, "second", "orders_sent", fn.when(is_last, fn.least(length_s, fn.lit(1.0))).otherwise(1.0).alias("s")
    )
    rate = fn.when(fn.col("s") >= SHORTEST_INTERVAL_S, fn.col("orders_sent") / fn.col("s"))
    rates = timed.groupBy(*KEYS, "second").agg(fn.sum(rate).alias("value"))
    return rates.select(*KEYS, "second", fn.lit(RATE).alias("name"), "value")


def _elapsed_s(records: WindowSpec) -> Column:
    """What passed since the record before. The first closes the seconds since its clock started, which none marks."""
    since_ns = fn.col("monotonic_ns") - fn.lag("monotonic_ns").over(records)
    whole_s = fn.col("second") + 1.0
    alone = fn.lead("monotonic_ns").over(records).isNull()
    first_s = fn.when(alone, fn.least(fn.col("duration_s"), whole_s)).otherwise(whole_s)
    return fn.coalesce(since_ns / NS_PER_S, first_s)


def meter_facts(throughput: DataFrame) -> DataFrame:
    """The mean of each meter's readings in a second; of several gateways or engines, their sum."""
    second = fn.floor((fn.col("wall_ns") - fn.col("start_wall_ns")) / NS_PER_S).cast("int")
    within = fn.greatest(fn.lit(0), fn.least(second, fn.col("last_second")))
    named = throughput.select(*KEYS, "source", within.alias("second"), _meter_name().alias("name"), "rate_per_s")
    means = _with_whole_run(named).groupBy(*KEYS, "second", "name", "source").agg(fn.avg("rate_per_s").alias("mean"))
    return means.groupBy(*KEYS, "second", "name").agg(fn.sum("mean").alias("value"))


def cpu_facts(process: DataFrame) -> DataFrame:
    """Cores in use: what cumulative CPU time grew by, per second of the source's own clock."""
    before = Window.partitionBy(*KEYS, "source").orderBy("second")
    latest = process.groupBy(*KEYS, "source", "second", "duration_s").agg(
        *(fn.max(name).alias(name) for name in ("cpu_s", "monotonic_ns"))
    )
    cpu_s = fn.col("cpu_s") - fn.lag("cpu_s", 1, 0.0).over(before)
    grown = latest.select(*KEYS, "source", "second", cpu_s.alias("cpu_s"), _elapsed_s(before).alias("elapsed_s"))
    long_enough = fn.col("second").isNull() | (fn.sum("elapsed_s") >= SHORTEST_INTERVAL_S)
    cores = fn.when(long_enough, fn.try_divide(fn.sum("cpu_s"), fn.sum("elapsed_s"))).alias("cores")
    of_source = _with_whole_run(grown).groupBy(*KEYS, "second", "source").agg(cores)
    name = fn.concat(_role("source"), fn.lit("_cpu_cores")).alias("name")
    return of_source.groupBy(*KEYS, "second", name).agg(fn.sum("cores").alias("value"))


def time_facts(completion: DataFrame) -> DataFrame:
    """Completion from handing over and from due time, and lag; the last order is left out, as analysis does.

    The whole run's figures leave out the warm-up's seconds too, as those of run.json do; each second keeps its own.
    """
    figures = time_figures(completion)
    return _facts(figures, {name: fn.col(name) for name in FIGURES}, fn.concat("clock", fn.lit("_")))


def _role(source: str) -> Column:
    """Of `gateway`, or of one of several, as in `gateway.2`."""
    return fn.substring_index(source, ".", 1)


def _with_whole_run(rows: DataFrame) -> DataFrame:
    """Each row twice: for its second, and for the whole run, whose second is null."""
    return rows.withColumn("second", fn.explode(fn.array("second", fn.lit(None).cast("int"))))


def _facts(rows: DataFrame, values: Mapping[str, Column], prefix: Column | None = None) -> DataFrame:
    pairs = [
        fn.struct(
            fn.concat(fn.lit("") if prefix is None else prefix, fn.lit(name)).alias("name"),
            value.cast("double").alias("value"),
        )
        for name, value in values.items()
    ]
    return rows.select(*KEYS, "second", fn.inline(fn.array(*pairs)))


def _meter_name() -> Column:
    pairs = [fn.lit(part) for meter in METERS.items() for part in meter]
    return fn.create_map(*pairs)[fn.col("meter")]


def _side_by_side(name: str) -> Column:
    kind = "long" if name in COUNTS else "double"
    return fn.max(fn.when(fn.col("name") == name, fn.col("value"))).cast(kind).alias(name)
