"""SIGKILL of the follower and of its JVM, now and then in the middle of a write: nothing is lost, nothing doubled.

a spool of many files ──added one by one──▶ exchange spark live ──killed at a seeded moment──▶ the next follower ...
                                            the last follower runs in this process and reads to the end
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from growing import (
    GrowingRun,
    Rows,
    follow_to_end,
    in_order,
    record_counts,
    records_in_table,
    records_in_table_by_spark,
    table,
)
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun, Record

from spark.live.folder import LiveFolder
from spark.live.table import read_rows
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a JVM that has lost its parent is looked for in /proc")

RECORDS = in_order(MadeUpRun(seconds=20, orders_per_s=200).records)
FILES = 60


class Follower:
    """`exchange spark live` in a process of its own, with its temporary files in `scratch`."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.live = folder / "live"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "exchange_simulation.cli", "spark", "live", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )

    @property
    def batches(self) -> int:
        """Return how many batches are in the live table, those of earlier followers included."""
        assert self._process.poll() is None, self._process.communicate()
        state = self.live / "state.json"
        return int(json.loads(state.read_bytes())["batches"]) if state.exists() else 0

    @property
    def is_writing(self) -> bool:
        """Return whether there is a file that Spark is writing: it gets its name once it is whole."""
        return any(self.live.glob("work/*"))

    def jvm(self) -> psutil.Process:
        children = psutil.Process(self._process.pid).children(recursive=True)
        return next(child for child in children if "java" in child.name())

    def close(self) -> None:
        """End the follower that a failed test has not killed."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def kill(self) -> None:
        """Kill the follower; its JVM sees the pipe break, and exits too."""
        jvm = self.jvm()
        self._process.kill()
        self._process.communicate()
        jvm.wait(PATIENCE_S)

    def kill_jvm(self) -> None:
        """Kill the JVM; the follower reports its death in a sentence, and exits too."""
        self.jvm().send_signal(signal.SIGKILL)
        _, stderr = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 1
        assert "its JVM died" in stderr
        assert "Traceback" not in stderr


class Feed:
    """Adds RECORDS to the spool of a run, a file at a time."""

    def __init__(self, folder: Path) -> None:
        self.growing = GrowingRun(folder)
        self.added: list[Record] = []

    def add_file(self) -> None:
        records = RECORDS[len(self.added) : len(self.added) + len(RECORDS) // FILES + 1]
        self.growing.grow(records)
        self.added += records

    def add_rest(self) -> None:
        self.growing.grow(RECORDS[len(self.added) :])
        self.added = RECORDS


def follow_and_kill(feed: Feed, scratch: Path, chance: random.Random, kills_jvm: bool, during_write: bool) -> bool:
    """Let a follower take one to three batches, then kill it; return whether it was in the middle of a write."""
    feed.add_file()
    with closing(Follower(feed.growing.folder, scratch)) as follower:
        batches = follower.batches
        for _ in range(chance.randint(1, 3)):
            batches += 1
            until(lambda batches=batches: follower.batches >= batches, "the next batch")
            assert records_in_table(feed.growing.folder) <= record_counts(feed.added)
            feed.add_file()
        if during_write:
            until(lambda: follower.is_writing, "a write", poll_s=0.0)
        else:
            time.sleep(chance.random())  # the kill comes at any moment: nothing is waited for
        was_writing = follower.is_writing
        if kills_jvm:
            follower.kill_jvm()
        else:
            follower.kill()
    return was_writing


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files, in which killed followers leave nothing."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The live table that a follower makes which nobody kills."""
    growing = GrowingRun(tmp_path_factory.mktemp("undisturbed") / "run").grow_in(RECORDS, 1)
    follow_to_end(spark, growing.folder)
    return table(growing.folder)


def assert_whole_at_the_end(spark: SparkSession, feed: Feed, undisturbed: Rows) -> None:
    """Follow the rest of the spool, and assert that every record is in the table once."""
    feed.add_rest()
    folder = feed.growing.folder
    follow_to_end(spark, folder)
    assert table(folder) == undisturbed
    assert read_rows([LiveFolder(folder).files_of_hour(0)[1]]) == undisturbed
    assert records_in_table(folder) == record_counts(RECORDS)
    assert records_in_table_by_spark(spark, folder) == record_counts(RECORDS)


def test_kills_of_driver_and_jvm_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, scratch: Path, undisturbed: Rows
) -> None:
    feed = Feed(tmp_path / "run")
    chance = random.Random(6)
    assert follow_and_kill(feed, scratch, chance, kills_jvm=False, during_write=True)
    assert any((feed.growing.folder / "live" / "work").iterdir())
    follow_and_kill(feed, scratch, chance, kills_jvm=True, during_write=False)
    assert_whole_at_the_end(spark, feed, undisturbed)


@pytest.mark.long
def test_twenty_kills_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, scratch: Path, undisturbed: Rows
) -> None:
    kills_during_write = 0
    for part in range(4):
        feed = Feed(tmp_path / f"run {part}")
        chance = random.Random(part)
        for _ in range(5):
            kills_jvm = chance.random() < 0.5
            during_write = chance.random() < 0.4
            kills_during_write += follow_and_kill(feed, scratch, chance, kills_jvm, during_write)
        assert_whole_at_the_end(spark, feed, undisturbed)
    print(f"20 kills, {kills_during_write} of them in the middle of a write")
    assert kills_during_write >= 4
