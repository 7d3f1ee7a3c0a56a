"""From a run's tables to one row a second, and one row for the whole run.

Every source gives facts: (second, name, value), a null second standing for the whole run. They are put side
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
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.window import WindowSpec

from exchange.measurements import CLOCKS, Meter
from spark.percentiles import FIGURES, completion_figures
from spark.run_record import RunRecord

NS_PER_S = 1_000_000_000
SHORTEST_INTERVAL_S = 0.5

METERS = {int(meter): f"{meter.name.lower()}_per_s" for meter in Meter if meter <= Meter.GATEWAY_MESSAGES_RECEIVED}
TRAFFIC = ("orders_sent", "orders_answered", "messages_received")
CPU = ("gateway_cpu_cores", "engine_cpu_cores")
TIMES = tuple(f"{clock}_{figure}" for clock in CLOCKS for figure in FIGURES)
COUNTS = (*TRAFFIC, *(f"{clock}_count" for clock in CLOCKS))
RATE = "orders_per_s"
MEASURED = (*TRAFFIC, *METERS.values(), *CPU, *TIMES)


def summarize_tables(tables: Mapping[str, DataFrame], warm_up_s: float, duration_s: float | None = None) -> DataFrame:
    """(second, RATE, *MEASURED), of every second and, second null, of the run: small, however large the run was."""
    facts = traffic_facts(tables["traffic"])
    facts = facts.unionAll(rate_facts(tables["traffic"], duration_s))
    facts = facts.unionAll(meter_facts(tables["throughput"], gateway_clock(tables["traffic"])))
    facts = facts.unionAll(cpu_facts(tables["process"], duration_s))
    facts = facts.unionAll(time_facts(tables["completion"], warm_up_s))
    return facts.groupBy("second").agg(*(_side_by_side(name) for name in (RATE, *MEASURED)))


def seconds_table(measured: DataFrame, record: RunRecord) -> DataFrame:
    """One row a second; the achieved rate of a second is what it sent."""
    rates = _rates(record.offered_each_second_per_s, fn.col(RATE))
    return measured.where("second IS NOT NULL").select("second", *rates, *MEASURED).orderBy("second")


def run_table(measured: DataFrame, record: RunRecord) -> DataFrame:
    """One row; its achieved rate is run.json's, from the first order to the last answer to the nanosecond."""
    rates = _rates(record.offered_orders_per_s, fn.lit(record.orders_per_s).cast("double"))
    names = [fn.lit(value).cast("string").alias(name) for name, value in record.names.items()]
    return measured.where("second IS NULL").select(*names, *rates, *MEASURED)


def _rates(offered: float | None, achieved: Column) -> list[Column]:
    offered_column = fn.lit(offered).cast("double")
    return [offered_column.alias("offered_orders_per_s"), achieved.alias(RATE)]


@dataclass(frozen=True)
class GatewayClock:
    """The wall time at which the gateway's first second began, and its last second."""

    start_wall_ns: int
    last_second: int


def gateway_clock(traffic: DataFrame) -> GatewayClock:
    """Read off the traffic records: one row comes back, whatever their number."""
    moments = traffic.select(
        "second", (fn.col("wall_ns") - (fn.col("second").cast("long") + 1) * NS_PER_S).alias("start")
    )
    whole = fn.when(fn.col("second") < fn.max("second").over(Window.partitionBy()), fn.col("start")).alias("whole")
    start = fn.coalesce(fn.min("whole"), fn.min("start"), fn.lit(0))
    row = moments.select("second", "start", whole).agg(start, fn.coalesce(fn.max("second"), fn.lit(0))).collect()[0]
    return GatewayClock(*row)


def traffic_facts(traffic: DataFrame) -> DataFrame:
    """Orders and messages of a second; of the whole run their sums, also where there are none."""
    sums = [fn.sum(name).alias(name) for name in TRAFFIC]
    whole_run = traffic.agg(*sums).select(fn.lit(None).cast("int").alias("second"), *TRAFFIC)
    each = traffic.groupBy("second").agg(*sums).unionAll(whole_run)
    return _facts(each, {name: fn.col(name) for name in TRAFFIC})


def rate_facts(traffic: DataFrame, duration_s: float | None) -> DataFrame:
    """Orders sent a second: of a whole second their number, of the last one their number over its length."""
    each = traffic.groupBy("second").agg(
        fn.sum("orders_sent").alias("orders"), fn.max("monotonic_ns").alias("monotonic_ns")
    )
    is_last = fn.col("second") == fn.max("second").over(Window.partitionBy())
    length_s = _elapsed_s(Window.orderBy("second"), duration_s)
    timed = each.select("second", "orders", fn.when(is_last, fn.least(length_s, fn.lit(1.0))).otherwise(1.0).alias("s"))
    rate = fn.when(fn.col("s") >= SHORTEST_INTERVAL_S, fn.col("orders") / fn.col("s"))
    return timed.select("second", fn.lit(RATE).alias("name"), rate.alias("value"))


def _elapsed_s(records: WindowSpec, duration_s: float | None) -> Column:
    """What passed since the record before. The first closes the seconds since its clock started, which none marks."""
    since_ns = fn.col("monotonic_ns") - fn.lag("monotonic_ns").over(records)
    whole_s = fn.col("second") + 1.0
    alone = fn.lead("monotonic_ns").over(records).isNull()
    first_s = fn.when(alone, fn.least(fn.lit(duration_s).cast("double"), whole_s)).otherwise(whole_s)
    return fn.coalesce(since_ns / NS_PER_S, first_s)


def meter_facts(throughput: DataFrame, clock: GatewayClock) -> DataFrame:
    """The mean of each meter's readings in a second."""
    second = fn.floor((fn.col("wall_ns") - clock.start_wall_ns) / NS_PER_S).cast("int")
    within = fn.greatest(fn.lit(0), fn.least(second, fn.lit(clock.last_second)))
    named = throughput.select(within.alias("second"), _meter_name().alias("name"), "rate_per_s")
    return _with_whole_run(named).groupBy("second", "name").agg(fn.avg("rate_per_s").alias("value"))


def cpu_facts(process: DataFrame, duration_s: float | None = None) -> DataFrame:
    """Cores in use: what cumulative CPU time grew by, per second of the source's own clock."""
    before = Window.partitionBy("source").orderBy("second")
    latest = process.groupBy("source", "second").agg(*(fn.max(name).alias(name) for name in ("cpu_s", "monotonic_ns")))
    cpu_s = fn.col("cpu_s") - fn.lag("cpu_s", 1, 0.0).over(before)
    elapsed_s = _elapsed_s(before, duration_s).alias("elapsed_s")
    grown = latest.select("source", "second", cpu_s.alias("cpu_s"), elapsed_s)
    name = fn.concat("source", fn.lit("_cpu_cores")).alias("name")
    long_enough = fn.col("second").isNull() | (fn.sum("elapsed_s") >= SHORTEST_INTERVAL_S)
    cores = fn.when(long_enough, fn.try_divide(fn.sum("cpu_s"), fn.sum("elapsed_s"))).alias("value")
    return _with_whole_run(grown).groupBy("second", name).agg(cores)


def time_facts(completion: DataFrame, warm_up_s: float) -> DataFrame:
    """Completion from handing over and from due time, and lag; the last order is left out, as analysis does.

    The whole run's figures leave out the warm-up's seconds too, as those of run.json do; each second keeps its own.
    """
    each = _with_whole_run(completion.where("NOT last_order").withColumn("of_second", fn.col("second")))
    analysed = each.where(fn.col("second").isNotNull() | (fn.col("of_second") >= warm_up_s))
    return _facts(
        completion_figures(analysed), {name: fn.col(name) for name in FIGURES}, fn.concat("clock", fn.lit("_"))
    )


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
    return rows.select("second", fn.inline(fn.array(*pairs)))


def _meter_name() -> Column:
    pairs = [fn.lit(part) for meter in METERS.items() for part in meter]
    return fn.create_map(*pairs)[fn.col("meter")]


def _side_by_side(name: str) -> Column:
    kind = "long" if name in COUNTS else "double"
    return fn.max(fn.when(fn.col("name") == name, fn.col("value"))).cast(kind).alias(name)
