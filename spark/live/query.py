"""One streaming query, with a checkpoint of its own, follows one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.errors import root_cause, typed_errors
from spark.live.batch import Row
from spark.live.folder import LiveFolder
from spark.live.records import growing_lines, identified_records
from spark.live.table import LiveTable, Totals

LOOK_EVERY = "200 milliseconds"
"""The time between two looks for new files. A look takes a few ms; a file waits half of this time on average."""
DISK_FAILURES = ("No space left on device", "Disk quota exceeded", "Permission denied", "Read-only file system")


class FollowedRun:
    """A context in which the table grows with the spool. SparkError if it cannot."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        self._spark = spark
        self._live = LiveFolder(folder)
        self._changed: SimpleQueue[list[Row]] = SimpleQueue()
        self._failure: Exception | None = None
        self._has_taken = False

    def __enter__(self) -> FollowedRun:
        with ExitStack() as stack, typed_errors(self.folder):
            stack.enter_context(self._live.locked())
            with self._live.damage_named():
                self._table = LiveTable(self._live)
            self._changed.put(list(self._table.rows.values()))
            self._has_checkpoint = self._live.checkpoint.exists()
            with self._failures():
                self._query = self._started()
            self._lock = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the query. A batch in the middle of its work is given up; the next follower does it again."""
        with self._lock, typed_errors(self.folder):
            self._query.stop()

    @property
    def totals(self) -> Totals:
        return self._table.totals

    @property
    def seconds(self) -> int:
        """The number of seconds in the table."""
        return len(self._table.rows)

    @property
    def is_closed(self) -> bool:
        """True if nothing more is to come: all closing records are there, or run.json is."""
        return self._table.ended or (self.folder / "run.json").exists()

    def changed(self) -> list[Row]:
        """Return the rows that changed since the last call; at first all rows."""
        self.check()
        rows: list[Row] = []
        try:
            while True:
                rows += self._changed.get_nowait()
        except Empty:
            return rows

    def check(self) -> None:
        """Raise SparkError if the query has failed."""
        with self._failures():
            if not self._query.isActive and (failure := self._query.exception()):
                raise failure

    def catch_up(self) -> None:
        """Wait until all that the spool holds now is in the table."""
        with self._failures():
            self._query.processAllAvailable()

    def _started(self) -> StreamingQuery:
        lines = growing_lines(self._spark, self.folder / "spool")
        writer = identified_records(lines).coalesce(1).writeStream.foreachBatch(self._take)
        return (
            writer.option("checkpointLocation", f"file://{self._live.checkpoint.resolve()}")
            .trigger(processingTime=LOOK_EVERY)
            .start()
        )

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        """Take a batch; Spark calls this in a thread of its own."""
        try:
            with self._live.damage_named():
                self._changed.put(self._table.take(batch, batch_id))
            self._has_taken = True
        except Exception as failure:
            self._failure = failure
            raise

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise the failure of a batch, which says more than Spark's exception about it."""
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
        """True if the query failed before its first batch, on an earlier follower's checkpoint, and Java answers."""
        before_first = self._has_checkpoint and not self._has_taken
        answered = before_first and isinstance(failure, (PySparkException, Py4JJavaError))
        return answered and not any(why in _briefly(failure) for why in DISK_FAILURES)


def _briefly(failure: Exception) -> str:
    return root_cause(failure).rpartition("terminated with exception: ")[2]
