"""A simulation on Spark: a part is a partition. Its rows come back through Spark, its trades go into files.

this process ── numbers of instruments ──▶ executors ── MatchPart ──▶ rows, to this process
                                                └── trades ──▶ a folder that the executors share with this process
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

import click
from pyspark.sql import SparkSession

from experiments.simulate.parts import Matched, MatchPart, OnParts, WarmUp
from experiments.simulate.rows import SCHEMA, in_order
from runs.errors import UserError
from runs.interrupts import ended_as_by_ctrl_c
from spark.errors import SparkError, SparkUnavailableError
from spark.sessions.cluster import wait_for_executor
from spark.sessions.java import find_java
from spark.sessions.partitions import collect, each_number, finished_partitions
from spark.sessions.session import open_session

LOOK_EVERY_S = 1.0
CORES = 2
"""The cores that load their kernels before the clock starts; further ones load them in their first part."""


def match_on_spark(master: str, work: MatchPart, parts: int, on_parts: OnParts) -> Matched:
    """Match all parts. ClickException if Spark gives up, UserError if there is no Spark."""
    start_s, instruments = time.monotonic(), work.simulation.instruments
    try:
        java = find_java()
        with open_session(master, java=java) as spark:
            wait_for_executor(spark)
            collect(each_number(spark, CORES, WarmUp(work.simulation), SCHEMA, CORES))
            ready_s = time.monotonic()
            with _cancelled_by_signals(), _counting_parts(spark, on_parts):
                found = collect(each_number(spark, instruments, work, SCHEMA, parts))
            rows = in_order(found.to_batches())
            matching_s = time.monotonic() - ready_s
    except SparkUnavailableError as error:
        raise UserError(str(error)) from error
    except SparkError as error:
        raise click.ClickException(str(error)) from error
    return Matched(rows, ready_s - start_s, matching_s, tuple(filter(None, [java.note])))


def _cancelled_by_signals() -> contextlib.AbstractContextManager[None]:
    """Let signals call pyspark's own handler, which cancels the job; otherwise we would wait for the job's end."""
    handler = signal.getsignal(signal.SIGINT)
    return ended_as_by_ctrl_c(handler) if callable(handler) else contextlib.nullcontext()


@contextlib.contextmanager
def _counting_parts(spark: SparkSession, on_parts: OnParts) -> Iterator[None]:
    """Report the number of finished parts once a second, from a thread of its own."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            on_parts(finished_partitions(spark))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
