"""A live table that cannot be continued: the error says what to do, without a Java stack trace."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from growing import GrowingRun, follow_to_end, in_order, record_counts, records_in_table
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from spark_runs import MadeUpRun

from spark.errors import ForeignCheckpointError, SparkJobError, TablesBusyError, TablesUnwritableError
from spark.live.query import FollowedRun
from spark.live.table import LiveTable

RECORDS = in_order(MadeUpRun(seconds=1, orders_per_s=20).records)

pytestmark = pytest.mark.jvm


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5])


DAMAGE_BY_ERROR: dict[str, Callable[[Path], object]] = {
    "begun by other code": lambda live: (live / "stamp.json").write_text('{"exchange": "0123"}'),
    "nothing tells which version began it": lambda live: truncate(live / "stamp.json"),
    "end-of-input": lambda live: truncate(live / "checkpoint" / "offsets" / "0"),
    "metadata file is missing": lambda live: (live / "checkpoint" / "metadata").unlink(),
    "does not fit its tables": lambda live: (live / "state.json").unlink(),
    "state.json is damaged": lambda live: truncate(live / "state.json"),
    "it has 0 of the 20 records": lambda live: (live / "records" / "000000.parquet").unlink(),
    "a file of it is damaged": lambda live: truncate(live / "seconds" / "part-0.parquet"),
}


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path) -> GrowingRun:
    """A run whose first file is in the live table; its follower has ended."""
    growing = GrowingRun(tmp_path / "run")
    growing.grow(RECORDS[:20])
    follow_to_end(spark, growing.folder)
    return growing


def test_the_error_for_a_damaged_live_folder_says_to_delete_it(spark: SparkSession, begun: GrowingRun) -> None:
    live = begun.folder / "live"
    intact_copy = begun.folder / "intact"
    shutil.copytree(live, intact_copy)
    begun.grow(RECORDS[20:])
    for error, damage in DAMAGE_BY_ERROR.items():
        damage(live)
        with pytest.raises(ForeignCheckpointError, match=rf"{error}.*delete that folder and look again"):
            follow_to_end(spark, begun.folder)
        shutil.rmtree(live)
        shutil.copytree(intact_copy, live)
    shutil.rmtree(live)
    follow_to_end(spark, begun.folder)
    assert records_in_table(begun.folder) == record_counts(RECORDS)


def test_the_live_folder_of_a_moved_run_is_not_continued(spark: SparkSession, begun: GrowingRun) -> None:
    moved = begun.folder.rename(begun.folder.with_name("moved"))
    with pytest.raises(ForeignCheckpointError, match="begun in another place"):
        follow_to_end(spark, moved)


def test_a_run_has_one_follower_at_a_time(spark: SparkSession, begun: GrowingRun) -> None:
    with (
        FollowedRun(spark, begun.folder),
        pytest.raises(TablesBusyError, match="another process already"),
        FollowedRun(spark, begun.folder),
    ):
        pass


def test_a_full_disk_is_an_error_and_no_record_is_lost(
    spark: SparkSession, begun: GrowingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    begun.grow(RECORDS[20:])
    with monkeypatch.context() as patch:
        patch.setattr("spark.live.table.write_rows", full)
        with pytest.raises(TablesUnwritableError, match="make room"):
            follow_to_end(spark, begun.folder)
    assert follow_to_end(spark, begun.folder).totals.records == len(RECORDS)
    assert records_in_table(begun.folder) == record_counts(RECORDS)


@pytest.mark.parametrize("killed_before", ["write_rows", "msgspec.json.encode", "the mark of Spark"])
def test_a_kill_between_two_files_of_a_batch_loses_and_doubles_nothing(
    spark: SparkSession, begun: GrowingRun, monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    """A batch that contains known records writes four things, in this order.

    They are the records, the rows (write_rows), the state (msgspec.json.encode), and the mark of Spark.
    """

    def die(*_: object) -> None:
        raise ChildProcessError("killed")

    begun.grow([*RECORDS[10:], "no JSON"])
    with monkeypatch.context() as patch:
        if killed_before == "the mark of Spark":
            take = LiveTable.take

            def take_and_die(live: LiveTable, batch: DataFrame, batch_id: int) -> None:
                take(live, batch, batch_id)
                die()

            patch.setattr(LiveTable, "take", take_and_die)
        else:
            patch.setattr(f"spark.live.table.{killed_before}", die)
        with pytest.raises(SparkJobError, match="killed"):
            follow_to_end(spark, begun.folder)
    totals = follow_to_end(spark, begun.folder).totals
    assert (totals.records, totals.duplicates, totals.unread) == (len(RECORDS), 10, 1)
    assert records_in_table(begun.folder) == record_counts(RECORDS)


def test_spark_calls_back_on_this_machine_alone(spark: SparkSession, begun: GrowingRun) -> None:
    with FollowedRun(spark, begun.folder):
        gateway = SparkContext._gateway
        assert gateway is not None
        server: socket.socket = gateway.get_callback_server().server_socket
        assert server.getsockname()[0] == "127.0.0.1"
