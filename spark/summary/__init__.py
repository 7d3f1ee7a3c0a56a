"""The figures of a run and of each of its seconds, from its records; for a batch of runs and for the live table.

    traffic, process, throughput ──facts──▶ counts, rates, cores ─┐
    completion ──times──▶ figures of its log buckets ─────────────┴─measured─▶ a row a second, a row for the run

`exchange.seconds` says what a second is. A run has few records, however many its orders were, so Python summarizes it
once Spark has read its files. As a Spark plan of joins and windows 100 runs took 22 s in place of 13.
"""

from __future__ import annotations

from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from exchange.measurements import CLOCKS
from exchange.second_figures import METERS
from exchange.seconds import RATES
from spark.tables.histograms import FIGURES
from spark.tables.schemas import KEYS

CPU = ("gateway_cpu_cores", "engine_cpu_cores")
TIMES = tuple(f"{clock}_{figure}" for clock in CLOCKS for figure in FIGURES)
COUNTS = (*RATES, *(f"{clock}_count" for clock in CLOCKS))
RATE = "orders_per_s"
OFFERED = "offered_orders_per_s"
MEASURED = (*RATES, *METERS.values(), *CPU, *TIMES)
FACTS = (
    "answers_per_s", "broker_cpu_percent", "gateway_cpu_percent", "engine_cpu_percent",
    "cpu_s_per_million", "packets", "packet_bytes", "packet_gap_us",
)  # fmt: skip
"""Figures of a run from its run.json; null if not measured."""


ROWS = StructType(
    [
        *(StructField(name, StringType(), nullable=False) for name in KEYS),
        StructField("second", IntegerType()),
        *(StructField(name, StringType()) for name in ("status", "transport", "arm")),
        *(
            StructField(name, LongType() if name in COUNTS else DoubleType())
            for name in (OFFERED, RATE, *MEASURED, *FACTS)
        ),
    ]
)
"""A row for each second, and one with a null second for each run. A figure that was not measured is null, never 0."""
