"""The figures of a run and of each of its seconds, from its records; for a batch of runs and for the live table.

    traffic, process, throughput ──facts──▶ counts, rates, cores ─┐
    completion ──times──▶ figures of its log buckets ─────────────┴─measured─▶ a row a second, a row for the run

Spark reads the files of all runs and hands out one run at a time, which Python summarizes: a run has few records,
however many its orders were. As a Spark plan of joins and windows 100 runs took 22 s in place of 13. `exchange.seconds`
says what a second is. A run's completion times and lag come from its log buckets:

    tables of records of seconds --each--> figures of seconds, one histogram of the run --together--> figures of both

The last order is left out, as everywhere in analysis. The whole run's figures leave out the warm-up's seconds too, as
those of run.json do; a second's row has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from exchange.measurements import CLOCKS
from exchange.records import COMPLETION, PROCESS, THROUGHPUT, TRAFFIC
from exchange.second_columns import COUNTS, Unit, spark_columns
from exchange.second_figures import Fact, Facts
from spark.errors import DatasetUnreadableError
from spark.run_facts import RunFacts
from spark.tables.files import CONTENT, PATH, ROWS_AT_ONCE, decoded, escaped, whole_files
from spark.tables.histograms import EXACT, FIGURES, OF_SECOND, figures, figures_by_second, merged_histograms
from spark.tables.schemas import KEYS, ORIGIN

TIMES = tuple(f"{clock}_{figure}" for clock in CLOCKS for figure in FIGURES)
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
FACTS = (
    "answers_per_s",
    "broker_cpu_percent",
    "gateway_cpu_percent",
    "engine_cpu_percent",
    "cpu_s_per_million",
    "packets",
    "packet_bytes",
    "packet_gap_us",
)
"""Figures of a run from its run.json; null if not measured."""


ROWS = StructType(
    [
        *(StructField(name, StringType(), nullable=False) for name in KEYS),
        StructField("second", IntegerType()),
        *(StructField(name, StringType()) for name in ("status", "transport", "arm")),
        *(
            StructField(name, LongType() if name in WHOLE_NUMBERS else DoubleType())
            for name in (OFFERED, RATE, *MEASURED, *FACTS)
        ),
    ]
)
"""A row for each second, and one with a null second for each run. A figure that was not measured is null, never 0."""


Row = dict[str, Any]
COMPLETION_COLUMNS = (*OF_SECOND, "last_order", *EXACT, "bucket", "bucket_count")
MERGED_COLUMNS = [*OF_SECOND, *EXACT, "bucket", "bucket_count"]
RECORDS_AT_ONCE = 1_000
"""The number of records that are read at once: rows are long, with some hundred buckets each."""
WHOLE_RUN = -1
"""Stands for the second in the whole run's histogram."""
READ: dict[str, tuple[str, ...]] = {
    TRAFFIC: (*ORIGIN, "second", *COUNTS),
    PROCESS: (*ORIGIN, "second", "cpu_s"),
    THROUGHPUT: (*ORIGIN, "meter", "rate_per_s"),
    COMPLETION: COMPLETION_COLUMNS,
}
"""The columns that are read of each kind that is summarized."""
FIGURE_COLUMNS = {RATE, *MEASURED}
TASKS_A_PART = 4
"""More tasks than parts, so that two parts seldom fall into one task."""
PART = "part"
PART_PATTERN = "/(experiment=[^/]*/part-[^/]*)$"
"""Finds the part of a path that files of the same runs share; other files all belong to one run."""
TABLE = to_arrow_schema(ROWS)


@dataclass(frozen=True)
class RecordsFile:
    """The kind of the records in a file, and their runs; of several runs, a column `run` tells which."""

    kind: str
    runs: tuple[RunFacts, ...]


def rows_of_run(run: RunFacts, tables: Iterable[tuple[str, pa.Table]]) -> list[Row]:
    """Return a row a second, in order, then the run's; each holds the columns of ROWS that are known.

    `tables`: (kind, some of the run's records with the columns READ), in any order.
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
        times = self._times.figures()
        times_of_run = times.pop(WHOLE_RUN, {})
        facts_of_run = {name: getattr(run, name) for name in ("experiment", "run", "status", "transport", "arm")}
        rows = []
        seconds = set(times)
        seconds.update(fact["second"] for fact in self._facts if fact["kind"] != THROUGHPUT)
        for second in sorted(seconds):
            rows.append(
                {
                    **facts_of_run,
                    OFFERED: run.offered_orders_per_s if run.is_steady else None,
                    **_with_columns(facts.row(second) | times[second]),
                    "second": second,
                }
            )
        rows.append(
            {
                **facts_of_run,
                OFFERED: run.offered_orders_per_s,
                RATE: run.orders_per_s,
                **_with_columns(facts.whole() | times_of_run),
                **{name: run.facts.get(name) for name in FACTS},
            }
        )
        return rows


def _with_columns(figures: Row) -> Row:
    """Return the figures that the tables have a column for."""
    return {name: value for name, value in figures.items() if name in FIGURE_COLUMNS}


class CompletionTimes:
    """Collects one run's completion times.

    A single source has at most one record for a second and clock, so records of a second need not be added.
    """

    def __init__(self, warm_up_s: float, sources: int) -> None:
        self._warm_up_s = warm_up_s
        self._has_one_source = sources == 1
        self._figures: list[pa.Table] = []
        self._histograms: list[pa.Table] = []

    def take(self, records: pa.Table) -> None:
        """Add some of the run's records, with COMPLETION_COLUMNS."""
        analysed = _where(records, pc.and_(pc.invert(records["last_order"]), pc.greater(records["count"], 0)))
        measured = _where(analysed, pc.greater_equal(analysed["second"], self._warm_up_s))
        whole = pa.array([WHOLE_RUN] * len(measured), pa.int32())
        measured = measured.set_column(measured.column_names.index("second"), "second", whole)
        self._histograms.append(merged_histograms(measured, OF_SECOND))
        if self._has_one_source:
            self._figures.append(figures(analysed, OF_SECOND))
        else:
            self._histograms.append(merged_histograms(analysed, OF_SECOND))

    def figures(self) -> dict[int, dict[str, Any]]:
        """Return `figures_by_second`, WHOLE_RUN among the seconds."""
        tables = list(self._figures)
        if self._histograms:
            histograms = pa.concat_tables(table.select(MERGED_COLUMNS) for table in self._histograms)
            tables.append(figures(merged_histograms(histograms, OF_SECOND), OF_SECOND))
        return figures_by_second(tables)


def _where(records: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the records that the mask selects. If it selects all of them, nothing is copied."""
    return records if pc.all(mask).as_py() else records.filter(mask)


def summary_rows(spark: SparkSession, files: Mapping[str, RecordsFile], runs: Collection[RunFacts]) -> DataFrame:
    """Return ROWS of these runs, in one partition, in order. `files` are the files of all runs, by Spark's paths."""
    files_to_read = {path: file for path, file in files.items() if file.kind in READ}
    names_with_files: set[tuple[str, str]] = set()
    for file in files_to_read.values():
        names_with_files.update(_name(run) for run in file.runs)
    rows_without_files: list[Row] = []
    for run in runs:
        if _name(run) not in names_with_files:
            rows_without_files += rows_of_run(run, ())
    parts = []
    if files_to_read:
        parts.append(_rows_of_files(spark, files_to_read))
    if rows_without_files:
        parts.append(local_rows(spark, rows_without_files, ROWS))
    all_rows = reduce(DataFrame.unionAll, parts)
    return all_rows.repartition(1).sortWithinPartitions(*KEYS, "second")


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Return a table of the schema ROWS; figures that a row lacks are null."""
    return pa.Table.from_pylist(list(rows), TABLE)


def runs_table(rows: DataFrame) -> DataFrame:
    """Return one row a run. Its achieved rate is run.json's, from the first order to the last answer."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", OFFERED, RATE, *MEASURED)


def seconds_table(rows: DataFrame) -> DataFrame:
    """Return one row a second. Its achieved rate is what it sent."""
    return rows.where("second IS NOT NULL").select(*KEYS, "second", OFFERED, RATE, *MEASURED)


def run_facts(rows: DataFrame) -> DataFrame:
    """Return one row a run, with its arm and FACTS."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", "arm", OFFERED, RATE, *MEASURED, *FACTS)


def _rows_of_files(spark: SparkSession, files: Mapping[str, RecordsFile]) -> DataFrame:
    """Return the rows of all runs that have records in these files."""
    contents = whole_files(spark, [escaped(path) for path in files])
    contents_by_part = contents.withColumn(PART, fn.regexp_extract(PATH, PART_PATTERN, 1))
    parts = {tuple(_name(run) for run in file.runs) for file in files.values()}
    tasks = TASKS_A_PART * len(parts)
    return contents_by_part.repartition(tasks, PART).groupBy(PART).applyInArrow(_reader(files), ROWS)


def _reader(files: Mapping[str, RecordsFile]) -> Callable[[pa.Table], pa.Table]:
    """Return the function that an executor calls with the contents of the files of one part."""

    def read(group: pa.Table) -> pa.Table:
        """Return the rows of the runs that share files, from the contents of these files."""
        paths = group[PATH].to_pylist()
        for path in paths:
            if path not in files:  # a mistake of ours, which must not pass unseen
                raise DatasetUnreadableError(f"no run is known of {path}")
        records_by_run = {run.run: RunRecords(run) for run in files[paths[0]].runs}
        for kind, records in _tables(group, files, with_run=len(records_by_run) > 1):
            for run, records_of_run in _split_by_run(records, list(records_by_run)):
                if run not in records_by_run:
                    raise DatasetUnreadableError(f"no run {run} is known, and {paths[0]} has records of it")
                records_by_run[run].take(kind, records_of_run)
        rows: list[Row] = []
        for run_records in records_by_run.values():
            rows += run_records.rows()
        return as_table(rows)

    return read


def _tables(group: pa.Table, files: Mapping[str, RecordsFile], with_run: bool) -> Iterator[tuple[str, pa.Table]]:
    """Yield (kind, some records with the columns READ) of the files; the column `run` is there if `with_run`."""
    for path, content in zip(group[PATH].to_pylist(), group[CONTENT], strict=True):
        kind = files[path].kind
        columns = [*READ[kind]]
        if with_run:
            columns.append("run")
        rows = RECORDS_AT_ONCE if kind == COMPLETION else ROWS_AT_ONCE
        for table in decoded(path, content.as_buffer(), columns, rows):
            yield kind, table


def _split_by_run(records: pa.Table, runs: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield each run with its records; if `runs` has one run only, all records are its records."""
    if len(runs) == 1:
        yield runs[0], records
        return
    without_run = records.drop_columns(["run"])
    for run in pc.unique(records["run"]).to_pylist():
        yield run, _where(without_run, pc.equal(records["run"], run))


def _name(run: RunFacts) -> tuple[str, str]:
    return run.experiment, run.run


def local_rows(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Return a table of a few rows of ours; a column that a row lacks is null.

    The rows are a part of the plan, so no job and no Python process reads them, and a join with none of them is
    planned away.
    """
    table = pa.Table.from_pylist(list(rows), schema=to_arrow_schema(schema))
    return spark.createDataFrame(table, schema)
