"""Work that is cut by a number: 1..count in ranges, each range given to a function in an executor's Python.

    range(1..count) ── partitions ──▶ work(partition, numbers) ──▶ Arrow batches ──▶ DataFrame

What the work is, its caller knows. It travels pickled, and is unpickled once our packages can be imported there.
"""

from __future__ import annotations

import gc
import pickle
import re
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark.errors import SparkJobError
from spark.java_errors import root_cause
from spark.package import use_unpacked

Work = Callable[[int, Iterable[int]], Iterator[pa.RecordBatch]]
"""(number of the partition, its numbers) to batches of the schema that was announced."""


def each_number(spark: SparkSession, count: int, work: Work, schema: pa.Schema, partitions: int) -> DataFrame:
    """The rows that `work` makes of 1..count."""
    numbers = spark.range(1, count + 1, 1, partitions)
    return numbers.mapInArrow(_in_arrow(work), from_arrow_schema(schema))


def _in_arrow(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    pickled = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_unpacked()
        context = TaskContext.get()
        assert context is not None  # there is one wherever a task runs
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        yield from pickle.loads(pickled)(context.partitionId(), numbers)
        # Behind every task a Spark worker collects garbage: 60 ms through modules that stay, unless they are set aside.
        if gc.get_freeze_count() == 0:
            gc.freeze()

    return run


def collect(rows: DataFrame) -> pa.Table:
    """All of them, so they must be few. SparkJobError, one line, where a partition failed."""
    try:
        return rows.toArrow()
    except (PySparkException, Py4JError) as failure:
        if isinstance(failure.__context__, KeyboardInterrupt):
            raise failure.__context__ from None  # pyspark drops it, for the end of the job that it has just cancelled
        raise SparkJobError(_cause(failure)) from failure


def _cause(failure: Exception) -> str:
    """What was raised in the executor's Python: of an error of ours the sentence, of any other its name, too."""
    if "Traceback (most recent call last)" not in str(failure):
        return f"Spark could not do the work: {root_cause(failure)}"
    return re.sub(r"^[\w.]+\.\w+: ", "", str(failure).strip().splitlines()[-1])


def finished_partitions(spark: SparkSession) -> int:
    """Of the stages that are under way."""
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage)
