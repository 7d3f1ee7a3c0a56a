"""The figures of a run and of each of its seconds, from its records; for one run, a batch of runs and the live table.

    traffic, process, throughput ──facts──▶ counts, rates, cores ─┐
    completion ──times──▶ figures of its log buckets ─────────────┴─measured─▶ a row a second, a row for the run

Python summarizes one run at a time, in this process or in an executor of Spark's: a run has few records, however many
its orders were. `exchange.seconds` says what a second is. A run's completion times and lag come from its log buckets:

    tables of records of seconds --each--> figures of seconds, one histogram of the run --together--> figures of both

Completion times and lag leave out the last order, as all figures of log buckets do. Those of the whole run leave out
the warm-up's seconds too, as in run.json; a second's row has them. Counts, cores and meters include both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from exchange.measurements import CLOCKS
from exchange.records import COMPLETION, PROCESS, THROUGHPUT, TRAFFIC
from exchange.second_columns import COUNTS, Unit, spark_columns
from exchange.second_figures import Fact, Facts
from spark.run_facts import RunFacts
from spark.tables.histograms import (
    EXACT,
    OF_RUN,
    OF_SECOND,
    TIME_FIGURES,
    analysed,
    figures,
    figures_by_clock,
    figures_by_second,
    merged_histograms,
)
from spark.tables.schemas import KEYS, ORIGIN

TIMES = tuple(f"{clock}_{figure}" for clock in CLOCKS for figure in TIME_FIGURES)
WHOLE_NUMBERS = (*COUNTS, *(f"{clock}_count" for clock in CLOCKS))
"""The columns that hold whole numbers."""
RATE = "orders_per_s"
OFFERED = "offered_orders_per_s"
MEASURED = (
    *(rate for rate in spark_columns(Unit.RATE) if rate not in (OFFERED, RATE)),
    *spark_columns(Unit.COUNT),
    *spark_columns(Unit.METER),
    *spark_columns(Unit.CORES),
    *TIMES,
)
"""The figures of a second, but the two rates that come first."""

WORD_COLUMNS = ("status", "transport")
ROW_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in KEYS),
        pa.field("second", pa.int32()),
        *(pa.field(name, pa.string()) for name in WORD_COLUMNS),
        *(pa.field(name, pa.int64() if name in WHOLE_NUMBERS else pa.float64()) for name in (OFFERED, RATE, *MEASURED)),
    ]
)
"""A row for each second, and one with a null second for each run. A figure that was not measured is null, never 0."""
RUN_COLUMNS = (*KEYS, "status", "transport", OFFERED, RATE, *MEASURED)
"""The columns of the table `summary`. A run's achieved rate is run.json's, from the first order to the last answer."""
SECOND_COLUMNS = (*KEYS, "second", OFFERED, RATE, *MEASURED)
"""The columns of the table `seconds`. A second's achieved rate is what it sent."""

Row = dict[str, Any]
COMPLETION_COLUMNS = (*OF_SECOND, "last_order", *EXACT, "bucket", "bucket_count")
COLUMNS_READ: dict[str, tuple[str, ...]] = {
    TRAFFIC: (*ORIGIN, "second", *COUNTS),
    PROCESS: (*ORIGIN, "second", "cpu_s"),
    THROUGHPUT: (*ORIGIN, "meter", "rate_per_s"),
    COMPLETION: COMPLETION_COLUMNS,
}
"""The columns that are read of each kind that is summarized."""
FIGURE_COLUMNS = {RATE, *MEASURED}


def rows_of_run(run: RunFacts, tables: Iterable[tuple[str, pa.Table]]) -> list[Row]:
    """Return a row a second, in order, then the run's; each holds the columns of ROW_SCHEMA that are known.

    `tables`: (kind, some of the run's records with its COLUMNS_READ), in any order.
    """
    records = RunRecords(run)
    for kind, table in tables:
        records.take(kind, table)
    return records.rows()


class RunRecords:
    """Collects the records of one run, table by table."""

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._facts: list[Fact] = []
        self._times = CompletionTimes(run.warm_up_s, run.gateways)

    def take(self, kind: str, records: pa.Table) -> None:
        if kind == COMPLETION:
            self._times.take(records)
        else:
            self._facts += [{**record, "kind": kind} for record in records.to_pylist()]

    def rows(self) -> list[Row]:
        """Return a row a second, in order, then the run's."""
        run = self._run
        facts = Facts(run.duration_s)
        facts.take(self._facts)
        times_by_second = self._times.of_seconds()
        columns_of_run = {name: getattr(run, name) for name in (*KEYS, *WORD_COLUMNS)}
        rows = []
        seconds = set(times_by_second)
        seconds.update(fact["second"] for fact in self._facts if fact["kind"] != THROUGHPUT)
        for second in sorted(seconds):
            rows.append(
                {
                    **columns_of_run,
                    OFFERED: run.offered_orders_per_s if run.is_steady else None,
                    **_with_columns(facts.row(second) | times_by_second.get(second, {})),
                    "second": second,
                }
            )
        rows.append(
            {
                **columns_of_run,
                OFFERED: run.offered_orders_per_s,
                RATE: run.orders_per_s,
                **_with_columns(facts.whole() | self._times.of_run()),
            }
        )
        return rows


def _with_columns(figures: Row) -> Row:
    """Return the figures that the tables have a column for."""
    return {name: value for name, value in figures.items() if name in FIGURE_COLUMNS}


class CompletionTimes:
    """Collects one run's completion times."""

    def __init__(self, warm_up_s: float, sources: int) -> None:
        self._warm_up_s = warm_up_s
        self._has_one_source = sources == 1
        self._figures: list[pa.Table] = []
        """Figures of seconds, if there is one source."""
        self._histograms: list[pa.Table] = []
        """Histograms of seconds, if there are several sources."""
        self._histograms_of_run: list[pa.Table] = []

    def take(self, records: pa.Table) -> None:
        """Add some of the run's records, with COMPLETION_COLUMNS."""
        times = _where(records, analysed(records))
        if self._has_one_source:
            # It has at most one record for a second and clock, so records of a second need not be added.
            self._figures.append(figures(times, OF_SECOND))
        else:
            self._histograms.append(merged_histograms(times, OF_SECOND))
        measured = _where(times, pc.greater_equal(times["second"], self._warm_up_s))
        self._histograms_of_run.append(merged_histograms(measured, OF_RUN))

    def of_seconds(self) -> dict[int, Row]:
        """Return the TIMES of each second."""
        tables = list(self._figures)
        if self._histograms:
            tables.append(figures(merged_histograms(pa.concat_tables(self._histograms), OF_SECOND), OF_SECOND))
        return figures_by_second(tables)

    def of_run(self) -> Row:
        """Return the TIMES of the whole run, without its warm-up."""
        if not self._histograms_of_run:
            return {}
        histograms = merged_histograms(pa.concat_tables(self._histograms_of_run), OF_RUN)
        return figures_by_clock(figures(histograms, OF_RUN).to_pylist())


def _where(records: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the records that the mask selects. If it selects all of them, nothing is copied."""
    return records if pc.all(mask).as_py() else records.filter(mask)


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Return a table of the schema ROW_SCHEMA; figures that a row lacks are null."""
    return pa.Table.from_pylist(list(rows), ROW_SCHEMA)
