"""Split the numbers 1..count into ranges, and give each range to a function in an executor's Python.

    range(1..count) ── partitions ──▶ work(partition, numbers) ──▶ Arrow batches ──▶ DataFrame

The caller's `work` travels pickled, and is unpickled once our packages can be imported in the executor.
"""

from __future__ import annotations

import gc
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark.errors import SparkJobError, root_cause
from spark.sessions.package import use_unpacked

Work = Callable[[int, Iterable[int]], Iterator[pa.RecordBatch]]
"""A function of (partition's number, its numbers) that yields batches of the announced schema."""


def each_number(spark: SparkSession, count: int, work: Work, schema: pa.Schema, partitions: int) -> DataFrame:
    """Return the rows that `work` makes of 1..count, in this many partitions."""
    numbers = spark.range(1, count + 1, 1, partitions)
    return numbers.mapInArrow(_in_arrow(work), from_arrow_schema(schema))


def _in_arrow(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    pickled = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_unpacked()
        context = TaskContext.get()
        assert context is not None  # a task always has one
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        yield from pickle.loads(pickled)(context.partitionId(), numbers)
        # A Spark worker collects garbage after each task: 60 ms through modules that stay, unless they are frozen.
        if gc.get_freeze_count() == 0:
            gc.freeze()

    return run


@contextmanager
def job_errors(failed: str = "Spark could not do the work") -> Iterator[None]:
    """Raise a SparkJobError, in one line, if a partition failed.

    The error has the cause of a failure in our Python, or `failed` with the cause of a failure in Spark.
    """
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        if isinstance(failure.__context__, KeyboardInterrupt):
            raise failure.__context__ from None  # pyspark replaces Ctrl-C by the failure of the job that it cancelled
        raise SparkJobError(_cause(failure, failed)) from failure


def collect(rows: DataFrame) -> pa.Table:
    """Return all rows, so they must be few. SparkJobError, in one line, if a partition failed."""
    with job_errors():
        return rows.toArrow()


def _cause(failure: Exception, failed: str) -> str:
    """Return the error of the executor's Python: the sentence of an error of ours, name and text of any other."""
    if "Traceback (most recent call last)" not in str(failure):
        return f"{failed}: {root_cause(failure)}"
    return re.sub(r"^[\w.]+\.\w+: ", "", str(failure).strip().splitlines()[-1])


def finished_partitions(spark: SparkSession) -> int:
    """Return how many partitions of the stages under way are done."""
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage)
