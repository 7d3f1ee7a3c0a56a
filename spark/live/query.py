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

from spark.errors import is_of_disk, root_cause, typed_errors
from spark.live.folder import LiveFolder
from spark.live.records import growing_lines, identified_records
from spark.live.table import LiveTable, Totals
from spark.summary import Row

LOOK_EVERY = "200 milliseconds"
"""The time between two looks for new files. A look takes a few ms; a file waits half of this time on average."""


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
            with self._live.unreadable_files_as_errors():
                self._table = LiveTable(self._live)
            self._changed.put(list(self._table.rows.values()))
            self._has_checkpoint = self._live.checkpoint.exists()
            with self._raising_root_failure():
                self._query = self._start_query()
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the query. A batch in the middle of its work is given up; the next follower does it again."""
        with self._resources, typed_errors(self.folder):
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
        with self._raising_root_failure():
            if self._query.isActive:
                return
            failure = self._query.exception()
            if failure is not None:
                raise failure

    def catch_up(self) -> None:
        """Wait until all that the spool holds now is in the table."""
        with self._raising_root_failure():
            self._query.processAllAvailable()

    def _start_query(self) -> StreamingQuery:
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
            with self._live.unreadable_files_as_errors():
                self._changed.put(self._table.take(batch, batch_id))
            self._has_taken = True
        except Exception as failure:
            self._failure = failure
            raise

    @contextmanager
    def _raising_root_failure(self) -> Iterator[None]:
        """Raise the batch's own exception, or an error of the checkpoint, in place of Spark's, which says less."""
        with typed_errors(self.folder):
            try:
                yield
            except (PySparkException, Py4JError) as failure:
                if self._failure:
                    raise self._failure from failure
                if self._is_of_the_checkpoint(failure):
                    raise self._live.foreign_checkpoint_error(_short_cause(failure)) from failure
                raise

    def _is_of_the_checkpoint(self, failure: Exception) -> bool:
        """Return whether the query failed because Spark cannot continue an earlier follower's checkpoint."""
        if not self._has_checkpoint or self._has_taken:
            return False
        if not isinstance(failure, (PySparkException, Py4JJavaError)):  # the JVM has died
            return False
        return not is_of_disk(_short_cause(failure))


def _short_cause(failure: Exception) -> str:
    """Return the cause of a failure without "Query ... terminated with exception:", if that is in front."""
    _, _, cause = root_cause(failure).rpartition("terminated with exception: ")
    return cause
