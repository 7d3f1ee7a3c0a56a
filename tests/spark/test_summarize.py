"""The summary of one run, and the errors for runs and places that cannot be summarized."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from exchange.second_columns import METERS
from exchange_simulation.reports.run.run_folder import read_run_folder
from exchange_simulation.reports.run.seconds import RunSeconds
from spark.errors import (
    RunUnfinishedError,
    RunUnreadableError,
    SparkError,
    SparkJobError,
    SparkUnavailableError,
    TablesUnwritableError,
    typed_errors,
)
from spark.run_facts import finished_record, read_run
from spark.run_tables import summarize
from spark.summary import MEASURED
from spark.tables.files import UNDER_WAY, tables_folder, write_table
from spark.tables.schemas import KEYS, KINDS
from spark.tables.table_writer import TableWriter
from tests.spark.conftest import Analysed

NOT_SHOWN = {*KEYS, *METERS.values()}
RATES = ["offered_orders_per_s", "orders_per_s"]


def test_the_table_of_seconds_has_the_terminal_s_figures(analysed: Analysed, tmp_path: Path) -> None:
    seconds = RunSeconds(read_run_folder(analysed.made_up.write(tmp_path / "run")))
    assert seconds.numbers == [row["second"] for row in analysed.seconds]
    for row in analysed.seconds:
        shown = seconds.row(row["second"])
        for name, value in row.items():
            if value is None:
                assert name not in shown
            elif name not in NOT_SHOWN:
                assert shown[name] == pytest.approx(value, rel=1e-12)


def test_columns_come_in_a_fixed_order(analysed: Analysed) -> None:
    assert list(analysed.run) == [*KEYS, "status", "transport", *RATES, *MEASURED]
    assert list(analysed.seconds[0]) == [*KEYS, "second", *RATES, *MEASURED]


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "run.json").unlink()
    with pytest.raises(RunUnfinishedError, match=r"has no run\.json.*wait for its end"):
        summarize(tmp_path / "run")
    assert not (tmp_path / "run" / "tables").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 1', b"\xff".decode("latin1")])
def test_a_damaged_record_is_refused(tmp_path: Path, content: str) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "run.json").write_text(content, "latin1")
    with pytest.raises(RunUnreadableError, match="is damaged"):
        summarize(tmp_path / "run")


def test_a_record_of_another_schema_is_refused(tmp_path: Path) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "run.json").write_text(json.dumps({"schema": 2}))
    with pytest.raises(RunUnreadableError, match="has schema 2, and this version of exchange reads 1"):
        summarize(tmp_path / "run")


def test_a_folder_that_is_none_or_has_no_spool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunUnreadableError, match="is no folder"):
        summarize(tmp_path / "nothing")
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "name": "run", "status": "partial", "reasons": []}))
    with pytest.raises(RunUnreadableError, match="has no spool"):
        summarize(tmp_path)


def test_without_a_schedule_there_is_no_offered_rate(tmp_path: Path) -> None:
    record = read_run(MadeUpRun(seconds=1).write(tmp_path / "run", orders_per_s=None))
    assert record.offered_orders_per_s is None


@pytest.mark.parametrize(("arrivals", "is_steady"), [("poisson", True), ("ramp:0.5..1", False), ("recorded", False)])
def test_a_rate_that_changes_is_not_steady(tmp_path: Path, arrivals: str, is_steady: bool) -> None:
    record = read_run(MadeUpRun(seconds=1).write(tmp_path / "run", arrivals=arrivals))
    assert record.offered_orders_per_s == 2_000.0
    assert record.is_steady == is_steady


def test_a_file_named_tables_is_refused_before_spark_starts(tmp_path: Path) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "tables").touch()
    with pytest.raises(TablesUnwritableError, match=r"cannot write tables .*File exists.*make room"):
        summarize(tmp_path / "run")


def test_a_full_disk_is_an_error_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(TablesUnwritableError, match="No space left on device"):
        tables_folder(tmp_path)


def test_files_that_another_analysis_removes_meanwhile_are_no_error(tmp_path: Path) -> None:
    """A link to nothing stands for a folder that is gone between the list of the files and the look at its age."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / f".gone{UNDER_WAY}").symlink_to(tmp_path / "nothing")
    assert tables_folder(tmp_path) == tmp_path / "tables"


def test_files_of_a_killed_analysis_are_removed_once_they_are_old(tmp_path: Path) -> None:
    old = tmp_path / "tables" / ".traffic-old.under-way"
    new = tmp_path / "tables" / ".traffic-new.under-way"
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (0, 0))
    assert list(tables_folder(tmp_path).iterdir()) == [new]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("No space left on device", TablesUnwritableError),
        ("Read-only file system", RunUnreadableError),
        ("something else", SparkJobError),
    ],
)
def test_a_java_stack_trace_becomes_one_sentence(spark: SparkSession, message: str, error: type[SparkError]) -> None:
    failing = spark.sql(f"select raise_error('java.io.IOException: {message}')")
    with pytest.raises(error) as raised, typed_errors(Path("results/a-run")):
        failing.collect()
    assert "results/a-run" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_closed_stdout_is_not_taken_for_a_dead_jvm() -> None:
    """Regression: `exchange spark summary results | head -3` printed that the JVM had died."""
    with pytest.raises(BrokenPipeError), typed_errors(Path("results/a-run")):
        raise BrokenPipeError


def test_a_record_behind_a_link_or_longer_than_any_of_ours_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere.json").write_text("{}")
    (tmp_path / "spool").mkdir()
    (tmp_path / "run.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunUnreadableError, match="it is a symbolic link, which is not followed"):
        finished_record(tmp_path)
    (tmp_path / "run.json").unlink()
    (tmp_path / "run.json").write_text("{}")
    monkeypatch.setattr("exchange.record_kinds.MOST_RECORD_BYTES", 1)
    with pytest.raises(RunUnreadableError, match="a record has at most 1"):
        finished_record(tmp_path)


def test_without_java_only_the_tables_that_spark_makes_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java() -> None:
        raise SparkUnavailableError("no Java here")

    monkeypatch.setattr("spark.run_tables.find_java", no_java)
    folder = MadeUpRun(seconds=1).write(tmp_path / "run")
    with pytest.raises(SparkUnavailableError, match="no Java here"):
        summarize(folder)
    made = {path.stem for path in (folder / "tables").glob("*.parquet")}
    assert made == {*KINDS, "summary", "seconds"}


def test_two_writers_of_a_table_do_not_disturb_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer writes the whole table while the first one is at work."""
    file = tmp_path / "summary.parquet"
    first = pa.table({"writer": ["first"]})
    second = pa.table({"writer": ["second"]})
    add = TableWriter.add

    def add_while_another_writes(writer: TableWriter, rows: pa.Table) -> None:
        if rows is first:
            write_table(second, file)
            assert pq.read_table(file) == second
        add(writer, rows)

    monkeypatch.setattr(TableWriter, "add", add_while_another_writes)
    write_table(first, file)
    assert pq.read_table(file) == first
    assert list(tmp_path.iterdir()) == [file]
