"""A Spark session: its folder, its workers, its messages, and its start that fails."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from fake_java import fake_java, leaves_its_pipe_open
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError
from spark.sessions.jvm import CHATTY_LOGGERS, running_jvm
from spark.sessions.session import LONGEST_FOLDER, UNIX_SOCKETS, open_session, socket_settings


class RecordingHandler(logging.Handler):
    """Keeps the records that are logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_a_session_writes_nothing_into_the_working_directory(spark: SparkSession) -> None:
    spark.range(1).write.saveAsTable("a_table")
    warehouse = Path(spark.conf.get("spark.sql.warehouse.dir", "").removeprefix("file:"))
    assert (warehouse / "a_table").is_dir()
    spark.sql("drop table a_table")
    assert not any(Path(name).exists() for name in ("spark-warehouse", "metastore_db", "derby.log", "artifacts"))


def test_times_are_utc(spark: SparkSession) -> None:
    assert spark.sql("select date_format(timestamp_seconds(0), 'yyyy-MM-dd HH') as t").collect()[0].t == "1970-01-01 00"


def test_workers_run_the_python_of_this_process(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]


def test_workers_use_unix_sockets_in_a_folder_with_a_short_path(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda number: number).collect() == [0]
    folder = Path(spark.conf.get("spark.local.dir", ""))
    has_sockets = any(folder.glob(".*.sock"))
    is_path_short = len(os.fsencode(folder)) <= LONGEST_FOLDER
    assert has_sockets == is_path_short


@pytest.mark.parametrize(
    ("master", "path_length", "uses_unix_sockets"),
    [
        ("local", LONGEST_FOLDER, "true"),
        ("local[2]", LONGEST_FOLDER, "true"),
        ("local[2]", LONGEST_FOLDER + 1, "false"),
        ("local-cluster[2,1,512]", 10, "false"),
        ("spark://host:7077", 10, "false"),
    ],
)
def test_executors_elsewhere_and_long_paths_use_tcp(master: str, path_length: int, uses_unix_sockets: str) -> None:
    folder = Path("/" + "x" * (path_length - 1))
    assert socket_settings(master, folder) == {UNIX_SOCKETS: uses_unix_sockets}


def test_a_failure_is_raised_and_not_logged_as_well(spark: SparkSession) -> None:
    handler = RecordingHandler()
    for name in CHATTY_LOGGERS:
        logging.getLogger(name).addHandler(handler)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        spark.sql("select 1 / 0").collect()
    for name in CHATTY_LOGGERS:
        logging.getLogger(name).removeHandler(handler)
    assert handler.records == []


def test_a_second_session_in_one_process_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailableError, match="open already"), open_session():
        pass


def test_a_jvm_is_killed_if_its_start_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM is known by the session's folder in its command line; other children stay."""
    processes: list[subprocess.Popen[bytes]] = []

    def start_and_be_interrupted(*_: object) -> None:
        for folder in (tmp_path, tmp_path.parent):
            processes.append(subprocess.Popen([sys.executable, "-c", "input()", folder], stdin=subprocess.PIPE))
        raise KeyboardInterrupt

    monkeypatch.setattr("spark.sessions.jvm.launch_gateway", start_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt), running_jvm(SparkConf(loadDefaults=False), tmp_path):
        pass
    jvm, other = processes
    is_jvm_alive = psutil.pid_exists(jvm.pid)
    is_other_alive = psutil.pid_exists(other.pid)
    for process in processes:
        process.kill()
        process.communicate()
    assert not is_jvm_alive
    assert is_other_alive


@leaves_its_pipe_open
@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("Error: too little memory", "Error: too little memory"),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must be a master',
            "Master must be a master",
        ),
    ],
)
def test_the_error_of_a_jvm_that_does_not_start_is_quoted(
    printed: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, None)
    java.write_text(f"#!/bin/sh\necho hello >&2; echo '{printed}' >&2; exit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (
        pytest.raises(SparkUnavailableError, match=rf"did not start \({reason}\)"),
        running_jvm(SparkConf(loadDefaults=False), tmp_path),
    ):
        pass
    gc.collect()


def test_a_call_of_java_broken_by_ctrl_c_is_not_logged(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger().error("KeyboardInterrupt while sending command.")
    logging.getLogger().error("something else")
    assert caplog.messages == ["something else"]
