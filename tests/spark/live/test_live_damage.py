"""A live table that cannot be gone on with: a sentence that says what to do, and no Java in it."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from growing import GrowingRun, countable, followed, in_order, in_table
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from spark_runs import MadeUpRun

from spark.errors import ForeignCheckpointError, SparkJobError, TablesBusyError, TablesUnwritableError
from spark.live.query import FollowedRun
from spark.tables.files import write_table

RECORDS = in_order(MadeUpRun(seconds=1, orders_per_s=20).records)

pytestmark = pytest.mark.jvm


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "begun by other code": lambda live: (live / "stamp.json").write_text('{"exchange": "0123"}'),
    "nothing tells which version began it": lambda live: cut(live / "stamp.json"),
    "end-of-input": lambda live: cut(live / "checkpoint" / "offsets" / "0"),
    "metadata file is missing": lambda live: (live / "checkpoint" / "metadata").unlink(),
    "does not fit its tables": lambda live: (live / "notes" / "000000.json").unlink(),
    "000000.json is damaged": lambda live: cut(live / "notes" / "000000.json"),
    "a file of it is damaged": lambda live: cut(live / "seconds" / "part-0.parquet"),
}


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path) -> GrowingRun:
    """A run of which one file was taken."""
    growing = GrowingRun(tmp_path / "run")
    growing.grow(RECORDS[:20])
    followed(spark, growing.folder)
    return growing


def test_what_was_begun_otherwise_or_is_damaged_is_to_be_deleted(spark: SparkSession, begun: GrowingRun) -> None:
    live, whole = begun.folder / "live", begun.folder / "whole"
    shutil.copytree(live, whole)
    begun.grow(RECORDS[20:])
    for why, damage in DAMAGE.items():
        damage(live)
        with pytest.raises(ForeignCheckpointError, match=rf"{why}.*delete that folder and look again"):
            followed(spark, begun.folder)
        shutil.rmtree(live)
        shutil.copytree(whole, live)
    shutil.rmtree(live)
    followed(spark, begun.folder)
    assert in_table(begun.folder) == countable(RECORDS)


def test_a_run_that_was_moved_is_looked_at_anew(spark: SparkSession, begun: GrowingRun) -> None:
    moved = begun.folder.rename(begun.folder.with_name("moved"))
    with pytest.raises(ForeignCheckpointError, match="begun in another place"):
        followed(spark, moved)


def test_a_run_has_one_follower_at_a_time(spark: SparkSession, begun: GrowingRun) -> None:
    with (
        FollowedRun(spark, begun.folder),
        pytest.raises(TablesBusyError, match="another process already"),
        FollowedRun(spark, begun.folder),
    ):
        pass


def test_a_full_disk_is_told_and_nothing_is_lost(
    spark: SparkSession, begun: GrowingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    begun.grow(RECORDS[20:])
    with monkeypatch.context() as patch:
        patch.setattr("spark.live.table.write_rows", full)
        with pytest.raises(TablesUnwritableError, match="make room"):
            followed(spark, begun.folder)
    assert followed(spark, begun.folder).totals.records == len(RECORDS)
    assert in_table(begun.folder) == countable(RECORDS)


def test_a_kill_amid_deduplication_does_not_stop_the_next_follower(
    spark: SparkSession, begun: GrowingRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_all_rows = iter((True, False))

    def killed(rows: DataFrame, file: Path) -> None:
        """Write all rows of the batch; leave those without duplicates as a kill in the middle does."""
        if next(are_all_rows):
            return write_table(rows, file)
        (file.parent / f".{file.stem}-half.parts").mkdir()
        raise ChildProcessError("killed")

    begun.grow(RECORDS[10:])
    with monkeypatch.context() as patch:
        patch.setattr("spark.live.table.write_table", killed)
        with pytest.raises(SparkJobError, match="killed"):
            followed(spark, begun.folder)
    assert followed(spark, begun.folder).totals.records == len(RECORDS)
    assert in_table(begun.folder) == countable(RECORDS)


def test_spark_calls_back_on_this_machine_alone(spark: SparkSession, begun: GrowingRun) -> None:
    with FollowedRun(spark, begun.folder):
        gateway = SparkContext._gateway
        assert gateway is not None
        server: socket.socket = gateway.get_callback_server().server_socket
        assert server.getsockname()[0] == "127.0.0.1"
