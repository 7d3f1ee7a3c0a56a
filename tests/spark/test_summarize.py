from __future__ import annotations

import json
import os
from pathlib import Path

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
    TablesUnwritableError,
    typed_errors,
)
from spark.jobs import summarize
from spark.run_facts import read_run
from spark.summary import MEASURED
from spark.tables.files import tables_folder
from spark.tables.schemas import KEYS
from tests.spark.conftest import Analysed

NOT_SHOWN = {*KEYS, *METERS.values()}
RATES = ["offered_orders_per_s", "orders_per_s"]


def test_the_table_of_seconds_is_what_the_terminal_shows(analysed: Analysed, tmp_path: Path) -> None:
    seconds = RunSeconds(read_run_folder(analysed.made_up.write(tmp_path / "run")))
    assert seconds.numbers == [row["second"] for row in analysed.seconds]
    for row in analysed.seconds:
        shown = seconds.row(row["second"])
        known = {name: value for name, value in row.items() if value is not None and name not in NOT_SHOWN}
        assert {name: shown[name] for name in known} == pytest.approx(known, rel=1e-12)
        assert not set(shown) & {name for name, value in row.items() if value is None}


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
def test_a_rate_that_changes_is_offered_by_the_run_and_by_no_second(
    tmp_path: Path, arrivals: str, is_steady: bool
) -> None:
    record = read_run(MadeUpRun(seconds=1).write(tmp_path / "run", arrivals=arrivals))
    assert (record.offered_orders_per_s, record.is_steady) == (2_000.0, is_steady)


def test_a_place_that_takes_no_tables_is_told_before_spark_starts(tmp_path: Path) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "tables").touch()
    with pytest.raises(TablesUnwritableError, match=r"cannot write tables .*File exists.*make room"):
        summarize(tmp_path / "run")


def test_a_full_disk_is_told_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(TablesUnwritableError, match="No space left on device"):
        tables_folder(tmp_path)


def test_parts_of_a_killed_analysis_are_swept_and_living_ones_kept(tmp_path: Path) -> None:
    killed, living = (tmp_path / "tables" / f".traffic-{name}.parts" for name in ("killed", "living"))
    killed.mkdir(parents=True)
    living.mkdir()
    os.utime(killed, (0, 0))
    assert list(tables_folder(tmp_path).iterdir()) == [living]


@pytest.mark.parametrize(
    ("java_says", "error"),
    [
        ("No space left on device", TablesUnwritableError),
        ("Read-only file system", RunUnreadableError),
        ("something else", SparkJobError),
    ],
)
def test_a_java_stack_trace_becomes_one_sentence(spark: SparkSession, java_says: str, error: type[SparkError]) -> None:
    failing = spark.sql(f"select raise_error('java.io.IOException: {java_says}')")
    with pytest.raises(error) as raised, typed_errors(Path("results/a-run")):
        failing.collect()
    assert "results/a-run" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_reader_of_stdout_that_goes_away_is_no_dead_jvm() -> None:
    """`exchange spark summary results | head -3` asked whether there was enough memory."""
    with pytest.raises(BrokenPipeError), typed_errors(Path("results/a-run")):
        raise BrokenPipeError
