"""One query, with a checkpoint of its own, that follows one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.errors import root_cause, typed_errors
from spark.live.folder import LiveFolder
from spark.live.records import growing_lines, judged
from spark.live.rows import Row
from spark.live.table import LiveTable, Totals

LOOK_EVERY = "200 milliseconds"
"""For new files: a look takes a few ms, and half of the time between two is waited on average."""
OF_THE_PLACE = ("No space left on device", "Disk quota exceeded", "Permission denied", "Read-only file system")


class FollowedRun:
    """A context, in which the table grows with the spool. SparkError where it cannot."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder, self._spark = folder, spark
        self._live = LiveFolder(folder)
        self._changed: SimpleQueue[list[Row]] = SimpleQueue()
        self._failure: Exception | None = None
        self._has_taken = False

    def __enter__(self) -> FollowedRun:
        with ExitStack() as held, typed_errors(self.folder):
            held.enter_context(self._live.held())
            with self._live.damage_named():
                self._table = LiveTable(self._live)
            self._changed.put(list(self._table.rows.values()))
            self._has_checkpoint = self._live.checkpoint.exists()
            with self._failures():
                self._query = self._started()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A batch in the middle of its work is given up, and done again by whoever comes next."""
        with self._held, typed_errors(self.folder):
            self._query.stop()

    @property
    def totals(self) -> Totals:
        return self._table.totals

    @property
    def seconds(self) -> int:
        """How many the table has."""
        return len(self._table.rows)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is to come: the closing record is there, or the run's own record."""
        return self._table.ended or (self.folder / "run.json").exists()

    def changed(self) -> list[Row]:
        """The rows that changed since the last call; at first all that there are."""
        self.check()
        rows: list[Row] = []
        try:
            while True:
                rows += self._changed.get_nowait()
        except Empty:
            return rows

    def check(self) -> None:
        """SparkError where the query has failed."""
        with self._failures():
            if not self._query.isActive and (failure := self._query.exception()):
                raise failure

    def catch_up(self) -> None:
        """Returns when all that the spool holds now is in the table."""
        with self._failures():
            self._query.processAllAvailable()

    def _started(self) -> StreamingQuery:
        lines = growing_lines(self._spark, self.folder / "spool")
        writer = judged(lines).coalesce(1).writeStream.foreachBatch(self._take)
        return (
            writer.option("checkpointLocation", f"file://{self._live.checkpoint.resolve()}")
            .trigger(processingTime=LOOK_EVERY)
            .start()
        )

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        """Called by Spark, in a thread of its own."""
        try:
            with self._live.damage_named():
                self._changed.put(self._table.take(batch, batch_id))
            self._has_taken = True
        except Exception as failure:
            self._failure = failure
            raise

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What failed in a batch says more than what Spark made of it."""
        with typed_errors(self.folder):
            try:
                yield
            except (PySparkException, Py4JError) as failure:
                if self._failure:
                    raise self._failure from failure
                if self._is_of_the_checkpoint(failure):
                    raise self._live.foreign(_briefly(failure)) from failure
                raise

    def _is_of_the_checkpoint(self, failure: Exception) -> bool:
        """What fails before the first batch, where an earlier follower left a checkpoint, and Java still answers."""
        first = self._has_checkpoint and not self._has_taken
        told = first and isinstance(failure, (PySparkException, Py4JJavaError))
        return told and not any(why in _briefly(failure) for why in OF_THE_PLACE)


def _briefly(failure: Exception) -> str:
    return root_cause(failure).rpartition("terminated with exception: ")[2]
