"""SIGKILL of the follower and of its JVM, now and then in the middle of a write: nothing is lost, nothing doubled.

a spool of many files ──fed one by one──▶ exchange spark live ──killed at a seeded moment──▶ another one ...
                                          the last one, in this process, reads on to the end
"""

from __future__ import annotations

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
from growing import GrowingRun, Rows, countable, followed, in_order, in_table, in_table_by_spark, table
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun, Record

from spark.live.batch import read_rows
from spark.live.folder import LiveFolder
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a JVM that has lost its parent is looked for in /proc")

RECORDS = in_order(MadeUpRun(seconds=20, orders_per_s=200).records)
FILES = 60


class Follower:
    """`exchange spark live` in a process of its own, its temporary files where the test sees them."""

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
    def taken(self) -> int:
        """Batches; polled, since it is another process."""
        assert self._process.poll() is None, self._process.communicate()
        return len(list(self.live.glob("notes/[0-9]*.json")))

    @property
    def is_writing(self) -> bool:
        """Whether what Spark writes is there, and has not got its name yet."""
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
        """Its JVM sees the pipe break, and goes too."""
        jvm = self.jvm()
        self._process.kill()
        self._process.communicate()
        jvm.wait(PATIENCE_S)

    def kill_jvm(self) -> None:
        """It says so in a sentence, and goes too."""
        self.jvm().send_signal(signal.SIGKILL)
        _, err = self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 1
        assert "its JVM died" in err
        assert "Traceback" not in err


class Feed:
    """The records, a file at a time."""

    def __init__(self, folder: Path) -> None:
        self.growing = GrowingRun(folder)
        self.fed: list[Record] = []

    def file(self) -> None:
        records = RECORDS[len(self.fed) : len(self.fed) + len(RECORDS) // FILES + 1]
        self.growing.grow(records)
        self.fed += records

    def rest(self) -> None:
        self.growing.grow(RECORDS[len(self.fed) :])
        self.fed = RECORDS


def killed(feed: Feed, scratch: Path, chance: random.Random, of_jvm: bool, in_a_write: bool) -> bool:
    """Whether the one that was killed was in the middle of a write."""
    feed.file()
    with closing(Follower(feed.growing.folder, scratch)) as follower:
        before, batches = len(list(follower.live.glob("notes/[0-9]*.json"))), chance.randint(1, 3)
        for number in range(before + 1, before + batches + 1):
            until(lambda number=number: follower.taken >= number, "the next batch")
            assert in_table(feed.growing.folder) <= countable(feed.fed)
            feed.file()
        if in_a_write:
            until(lambda: follower.is_writing, "a write", poll_s=0.0)
        else:
            time.sleep(chance.random())  # a moment is what is tested, and not waited for
        was_writing = follower.is_writing
        (follower.kill_jvm if of_jvm else follower.kill)()
    return was_writing


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """Nothing is left in it by those who were killed."""
    (folder := tmp_path / "scratch").mkdir()
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    growing = GrowingRun(tmp_path_factory.mktemp("undisturbed") / "run").grow_in(RECORDS, 1)
    followed(spark, growing.folder)
    return table(growing.folder)


def check(spark: SparkSession, feed: Feed, undisturbed: Rows) -> None:
    feed.rest()
    followed(spark, feed.growing.folder)
    assert table(feed.growing.folder) == undisturbed == read_rows(LiveFolder(feed.growing.folder).table_file)
    assert in_table(feed.growing.folder) == in_table_by_spark(spark, feed.growing.folder) == countable(RECORDS)


def test_kills_of_driver_and_jvm_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, scratch: Path, undisturbed: Rows
) -> None:
    feed, chance = Feed(tmp_path / "run"), random.Random(6)
    assert killed(feed, scratch, chance, of_jvm=False, in_a_write=True)
    assert any((feed.growing.folder / "live" / "work").iterdir())
    killed(feed, scratch, chance, of_jvm=True, in_a_write=False)
    check(spark, feed, undisturbed)


@pytest.mark.long
def test_twenty_kills_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, scratch: Path, undisturbed: Rows
) -> None:
    writing = []
    for part in range(4):
        feed, chance = Feed(tmp_path / f"run {part}"), random.Random(part)
        for _ in range(5):
            of_jvm, in_a_write = chance.random() < 0.5, chance.random() < 0.4
            writing.append(killed(feed, scratch, chance, of_jvm, in_a_write))
        check(spark, feed, undisturbed)
    print(f"{len(writing)} kills, {sum(writing)} of them in the middle of a write")
    assert sum(writing) >= 4
