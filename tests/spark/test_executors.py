"""Work on numbers, split into partitions, in executors' Python processes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from exchange_simulation.experiments.simulate.executors import collect, each_number, finished_partitions
from exchange_simulation.experiments.simulate.partitions import FILES, MatchPartition, rows_of_files
from exchange_simulation.experiments.simulate.simulation import Simulation
from spark.errors import SparkJobError

REPORT_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("number", pa.int64()), ("process", pa.int64()), ("is_gc_frozen", pa.bool_())]
)
MOST_WORKERS = 4
"""More than the Python workers that the session of these tests runs at a time."""


@pytest.fixture(autouse=True, scope="module")
def pickled_by_value() -> Iterator[None]:
    """Pickle this module by value, since executors cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def report_numbers(partition: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each number, with the partition and the process that has it."""
    rows = []
    for number in numbers:
        is_gc_frozen = gc.get_freeze_count() > 0
        rows.append({"partition": partition, "number": number, "process": os.getpid(), "is_gc_frozen": is_gc_frozen})
    yield pa.RecordBatch.from_pylist(rows, REPORT_SCHEMA)


def fail_with_a_bug(_partition: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    list(numbers)
    raise ValueError("no such number")


def fail_with_a_sentence(_partition: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    list(numbers)
    raise SparkJobError("what went wrong; what to do")


def test_each_number_is_in_one_partition_of_as_many_as_asked_for(spark: SparkSession) -> None:
    rows = collect(each_number(spark, 10, report_numbers, REPORT_SCHEMA, partitions=4)).to_pylist()
    assert sorted(row["number"] for row in rows) == list(range(1, 11))
    assert {row["partition"] for row in rows} == {0, 1, 2, 3}
    assert os.getpid() not in {row["process"] for row in rows}
    assert finished_partitions(spark) == 0


def test_a_worker_freezes_its_modules_after_its_first_partition(spark: SparkSession) -> None:
    """Garbage collections after later partitions then skip the modules. The first partitions go to one worker each."""
    rows = collect(each_number(spark, 8, report_numbers, REPORT_SCHEMA, partitions=8)).to_pylist()
    later_rows = [row for row in rows if row["partition"] >= MOST_WORKERS]
    assert len(later_rows) == 4
    assert all(row["is_gc_frozen"] for row in later_rows)


@pytest.mark.parametrize(
    ("work", "message"),
    [(fail_with_a_bug, "ValueError: no such number"), (fail_with_a_sentence, "what went wrong; what to do")],
)
def test_a_failure_in_a_partition_is_reported_in_one_line(work: object, message: str, spark: SparkSession) -> None:
    with pytest.raises(SparkJobError) as failure:
        collect(each_number(spark, 2, work, REPORT_SCHEMA, partitions=2))  # type: ignore[arg-type]
    assert str(failure.value) == message


@pytest.mark.parametrize("partitions", [2, 5])
def test_executors_match_instruments_as_this_process_does(partitions: int, spark: SparkSession) -> None:
    work = MatchPartition(Simulation(instruments=5, orders=20_003, seed=9))
    files_made_here = pa.Table.from_batches(work(0, range(1, 6)))
    files_of_executors = collect(each_number(spark, 5, work, FILES, partitions))
    rows_made_here = rows_of_files(files_made_here["content"].to_pylist())
    rows_of_executors = rows_of_files(files_of_executors["content"].to_pylist())
    assert rows_of_executors == rows_made_here
