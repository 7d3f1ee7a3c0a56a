"""The rows of many runs, from their files, which Spark reads and deals out a run at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from exchange.records import COMPLETION
from spark.errors import DatasetUnreadableError
from spark.known_rows import known_rows
from spark.run_record import RunRecord
from spark.schemas import KEYS
from spark.summary.columns import FACTS, MEASURED, OFFERED, RATE, ROWS
from spark.summary.of_run import READ, Row, rows_of_run
from spark.summary.times import RECORDS
from spark.tables import escaped
from spark.whole_files import PATH, ROWS_AT_ONCE, tables_of, whole_files

RUNS_A_TASK = 16
OF_RUN = "of_run"
FOLDER_OF_RUN = f"/({'/'.join(f'{key}=[^/]*' for key in KEYS)})/[^/]*$"
"""In a path; files that are in none are of one run."""
TABLE = to_arrow_schema(ROWS)


@dataclass(frozen=True)
class RunFile:
    """Whose records it holds, and of which kind."""

    run: RunRecord
    kind: str


def measured(spark: SparkSession, files: Mapping[str, RunFile], runs: Collection[RunRecord]) -> DataFrame:
    """ROWS of these runs, in one partition, in order. `files` of all of them, by path, as Spark says it."""
    read = {path: file for path, file in files.items() if file.kind in READ}
    spoke = {_name(file.run) for file in read.values()}
    silent = [row for run in runs if _name(run) not in spoke for row in rows_of_run(run, ())]
    parts = [*([_of_files(spark, read)] if read else []), *([known_rows(spark, silent, ROWS)] if silent else [])]
    together = parts[0].unionAll(parts[1]) if len(parts) > 1 else parts[0]
    return together.repartition(1).sortWithinPartitions(*KEYS, "second")


def as_table(rows: Sequence[Row]) -> pa.Table:
    """ROWS, null where nothing is known."""
    return pa.Table.from_pylist(list(rows), TABLE)


def runs_table(rows: DataFrame) -> DataFrame:
    """One row a run; its achieved rate is run.json's, from the first order to the last answer to the nanosecond."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", OFFERED, RATE, *MEASURED)


def seconds_table(rows: DataFrame) -> DataFrame:
    """One row a second; the achieved rate of a second is what it sent."""
    return rows.where("second IS NOT NULL").select(*KEYS, "second", OFFERED, RATE, *MEASURED)


def run_facts(rows: DataFrame) -> DataFrame:
    """One row a run, with its arm and FACTS."""
    return rows.where("second IS NULL").select(*KEYS, "status", "transport", "arm", OFFERED, RATE, *MEASURED, *FACTS)


def _of_files(spark: SparkSession, files: Mapping[str, RunFile]) -> DataFrame:
    whole = whole_files(spark, [escaped(path) for path in files])
    named = whole.withColumn(OF_RUN, fn.regexp_extract(PATH, FOLDER_OF_RUN, 1))
    tasks = 1 + len({_name(file.run) for file in files.values()}) // RUNS_A_TASK
    return named.repartition(tasks, OF_RUN).groupBy(OF_RUN).applyInArrow(_reader(files), ROWS)


def _reader(files: Mapping[str, RunFile]) -> Callable[[pa.Table], pa.Table]:
    def read(group: pa.Table) -> pa.Table:
        """Of one run."""
        paths = group[PATH].to_pylist()
        if strange := [path for path in paths if path not in files]:  # a mistake of ours, not to be lost without a word
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
