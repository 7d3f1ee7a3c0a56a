"""The rows of runs: Spark reads the files of all runs and hands out one run at a time, which Python summarizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from exchange.records import COMPLETION, PROCESS, THROUGHPUT, TRAFFIC
from spark.errors import DatasetUnreadableError
from spark.known_rows import known_rows
from spark.run_record import RunRecord
from spark.summary.columns import FACTS, MEASURED, OFFERED, RATE, ROWS
from spark.summary.columns import TRAFFIC as COUNTED
from spark.summary.facts import Facts
from spark.summary.meters import Fact
from spark.summary.times import COLUMNS, RECORDS, WHOLE_RUN, Times
from spark.tables.files import PATH, ROWS_AT_ONCE, escaped, tables_of, whole_files
from spark.tables.schemas import KEYS

Row = dict[str, Any]
ORIGIN = ("source", "wall_ns", "monotonic_ns")
READ: dict[str, tuple[str, ...]] = {
    TRAFFIC: (*ORIGIN, "second", *COUNTED),
    PROCESS: (*ORIGIN, "second", "cpu_s"),
    THROUGHPUT: (*ORIGIN, "meter", "rate_per_s"),
    COMPLETION: COLUMNS,
}
"""The columns that are read of each kind that is summarized."""
RUNS_A_TASK = 16
FOLDER = "folder_of_run"
FOLDER_PATTERN = f"/({'/'.join(f'{key}=[^/]*' for key in KEYS)})/[^/]*$"
"""Finds a run's folder in a path; files in no such folder belong to one run."""
TABLE = to_arrow_schema(ROWS)


@dataclass(frozen=True)
class RunFile:
    """The run whose records a file holds, and their kind."""

    run: RunRecord
    kind: str


def rows_of_run(run: RunRecord, tables: Iterable[tuple[str, pa.Table]]) -> list[Row]:
    """A row a second, in order, then the run's; each holds those of ROWS that are known.

    `tables`: (kind, some of the run's records with the columns READ), in any order.
    """
    facts: list[Fact] = []
    times = Times(run.warm_up_s, run.gateways)
    for kind, records in tables:
        if kind == COMPLETION:
            times.take(records)
        else:
            facts += [{**record, "kind": kind} for record in records.to_pylist()]
    return _rows(run, facts, times)


def _rows(run: RunRecord, facts: list[Fact], times: Times) -> list[Row]:
    known, figures = Facts(run.duration_s), times.figures()
    known.take(facts)
    whole = known.whole() | figures.pop(WHOLE_RUN, {})
    seconds = {fact["second"] for fact in facts if fact["kind"] != THROUGHPUT} | figures.keys()
    each = [known.row(second) | figures[second] | {"second": second} for second in sorted(seconds)]
    about = {name: getattr(run, name) for name in ("experiment", "run", "status", "transport", "arm")}
    of_second = about | {OFFERED: run.offered_each_second_per_s}
    of_run = about | {OFFERED: run.offered_orders_per_s, RATE: run.orders_per_s}
    return [*(of_second | row for row in each), of_run | whole | {name: run.facts.get(name) for name in FACTS}]


def measured(spark: SparkSession, files: Mapping[str, RunFile], runs: Collection[RunRecord]) -> DataFrame:
    """ROWS of these runs, in one partition, in order. `files`: those of all the runs, by their paths in Spark."""
    read = {path: file for path, file in files.items() if file.kind in READ}
    with_files = {_name(file.run) for file in read.values()}
    without = [row for run in runs if _name(run) not in with_files for row in rows_of_run(run, ())]
    parts = [*([_of_files(spark, read)] if read else []), *([known_rows(spark, without, ROWS)] if without else [])]
    together = parts[0].unionAll(parts[1]) if len(parts) > 1 else parts[0]
    return together.repartition(1).sortWithinPartitions(*KEYS, "second")


def as_table(rows: Sequence[Row]) -> pa.Table:
    """A table of the schema ROWS; what a row does not hold is null."""
    return pa.Table.from_pylist(list(rows), TABLE)


def runs_table(rows: DataFrame) -> DataFrame:
    """One row a run. Its achieved rate is run.json's: from the first order to the last answer, to the nanosecond."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", OFFERED, RATE, *MEASURED)


def seconds_table(rows: DataFrame) -> DataFrame:
    """One row a second. Its achieved rate is what it sent."""
    return rows.where("second IS NOT NULL").select(*KEYS, "second", OFFERED, RATE, *MEASURED)


def run_facts(rows: DataFrame) -> DataFrame:
    """One row a run, with its arm and FACTS."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", "arm", OFFERED, RATE, *MEASURED, *FACTS)


def _of_files(spark: SparkSession, files: Mapping[str, RunFile]) -> DataFrame:
    whole = whole_files(spark, [escaped(path) for path in files])
    named = whole.withColumn(FOLDER, fn.regexp_extract(PATH, FOLDER_PATTERN, 1))
    tasks = 1 + len({_name(file.run) for file in files.values()}) // RUNS_A_TASK
    return named.repartition(tasks, FOLDER).groupBy(FOLDER).applyInArrow(_reader(files), ROWS)


def _reader(files: Mapping[str, RunFile]) -> Callable[[pa.Table], pa.Table]:
    def read(group: pa.Table) -> pa.Table:
        """The rows of one run, from the contents of its files."""
        paths = group[PATH].to_pylist()
        if strange := [path for path in paths if path not in files]:  # a mistake of ours, which must not pass unseen
            raise DatasetUnreadableError(f"no run is known of {strange[0]}")
        return as_table(rows_of_run(files[paths[0]].run, _tables(group, files)))

    return read


def _tables(group: pa.Table, files: Mapping[str, RunFile]) -> Iterator[tuple[str, pa.Table]]:
    kinds = [files[path].kind for path in group[PATH].to_pylist()]
    for kind in set(kinds):
        of_kind = group.filter(pa.array([kind == each for each in kinds])).to_batches()
        for _, table in tables_of(iter(of_kind), READ[kind], RECORDS if kind == COMPLETION else ROWS_AT_ONCE):
            yield kind, table


def _name(run: RunRecord) -> tuple[str, str]:
    return run.experiment, run.run
