"""Work that is cut by a number, in executors' Python processes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from exchange_simulation.experiments.simulate.parts import FILES, MatchPart, rows_of_files
from exchange_simulation.experiments.simulate.simulation import Simulation
from spark.errors import SparkJobError
from spark.sessions.partitions import collect, each_number, finished_partitions

SEEN = pa.schema([("part", pa.int32()), ("number", pa.int64()), ("process", pa.int64()), ("set_aside", pa.bool_())])


@pytest.fixture(autouse=True, scope="module")
def shipped() -> Iterator[None]:
    """An executor cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def seen(part: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    about = {"part": part, "process": os.getpid(), "set_aside": gc.get_freeze_count() > 0}
    yield pa.RecordBatch.from_pylist([{**about, "number": number} for number in numbers], SEEN)


def broken(_part: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    list(numbers)
    raise ValueError("no such number")
    yield


def broken_with_a_sentence(_part: int, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
    list(numbers)
    raise SparkJobError("what went wrong; what to do")
    yield


def test_each_number_is_worked_on_once_in_as_many_parts_as_asked_for(spark: SparkSession) -> None:
    rows = collect(each_number(spark, 10, seen, SEEN, 4)).to_pylist()
    assert sorted(row["number"] for row in rows) == list(range(1, 11))
    assert {row["part"] for row in rows} == {0, 1, 2, 3}
    assert os.getpid() not in {row["process"] for row in rows}
    assert finished_partitions(spark) == 0


def test_a_worker_collects_no_garbage_of_modules_after_every_part(spark: SparkSession) -> None:
    rows = collect(each_number(spark, 8, seen, SEEN, 8)).to_pylist()
    later = [row["set_aside"] for row in rows if row["part"] > 3]
    assert later == [True] * 4


@pytest.mark.parametrize(
    ("work", "message"),
    [(broken, "ValueError: no such number"), (broken_with_a_sentence, "what went wrong; what to do")],
)
def test_what_goes_wrong_in_a_part_is_one_line(work: object, message: str, spark: SparkSession) -> None:
    with pytest.raises(SparkJobError) as failure:
        collect(each_number(spark, 2, work, SEEN, 2))  # type: ignore[arg-type]
    assert str(failure.value) == message


@pytest.mark.parametrize("parts", [2, 5])
def test_instruments_matched_in_executors_are_those_matched_here(parts: int, spark: SparkSession) -> None:
    work = MatchPart(Simulation(instruments=5, orders=20_003, seed=9))
    here = rows_of_files(pa.Table.from_batches(work(0, range(1, 6)))["content"].to_pylist())
    assert rows_of_files(collect(each_number(spark, 5, work, FILES, parts))["content"].to_pylist()) == here
