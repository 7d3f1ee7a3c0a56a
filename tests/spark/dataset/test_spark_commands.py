"""The output of `exchange spark ingest`, `summary` and `submit`, and their errors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.pipeline import jobs
from spark.sessions.session import open_session
from tests.spark.dataset.conftest import Dataset, SparkCommand

pytestmark = pytest.mark.jvm


def test_ingest_reports_ingested_runs_left_out_runs_and_quarantine(dataset: Dataset) -> None:
    assert dataset.ingest.exit_code == 1, "one run was left out"
    assert "3 runs added" in dataset.ingest.stdout
    assert "has no run.json, so the run has not finished" in dataset.ingest.stderr
    assert "run [2]: 1 line in quarantine, copy" in dataset.ingest.stderr


def test_a_summary_shows_a_row_an_arm(dataset: Dataset) -> None:
    assert dataset.summary.exit_code == 0, dataset.summary.output
    lines = dataset.summary.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["a-trial", "amqp", "zeromq", "alone", "zeromq"]
    assert max(map(len, lines[:-1])) <= 100
    assert "medians of 3 runs" in dataset.summary.stdout


def test_a_run_in_the_tables_is_not_read_again(dataset: Dataset, spark_command: SparkCommand) -> None:
    again = spark_command("ingest", Path(dataset.folder.url.removeprefix("file://")).parent)
    assert "0 runs added (0 records); the tables now have 3 runs" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary", "{0}/nothing"], "is no folder: give the folder"),
        (["summary", "{0}"], "no runs have tables"),
        (["ingest", "{0}"], "holds no runs"),
        (["summary", "{0}", "--tables", "nofs://x/y"], "nofs"),
    ],
)
def test_a_mistake_is_one_sentence(
    spark_command: SparkCommand, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = spark_command(*(word.format(tmp_path) for word in arguments))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary", "{0}", "--master", "spark://127.0.0.1:1"], "no Spark master answers"),
        (["submit", "--master", "spark://127.0.0.1:1", "summary", "{0}"], "no Spark master answers"),
        (["summary", "{0}", "--master", "sc://127.0.0.1:1"], "no Spark Connect server answers"),
        (
            ["submit", "--master", "sc://127.0.0.1:1", "summary", "{0}"],
            "is Spark Connect, which exchange spark summary, sql, bars and samples take, and nothing else",
        ),
        (["submit", "--conf", "nonsense", "summary", "{0}"], "it takes NAME=VALUE"),
    ],
)
def test_a_wrong_master_or_setting_is_refused_before_a_jvm_starts(
    tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.setattr(jobs, "open_session", open_session)
    done = CliRunner().invoke(main, ["spark", *(word.format(tmp_path) for word in arguments)])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_summary_has_the_number_of_runs_in_its_medians(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: runs in no median were counted, and a p99 of 499 orders was shown."""
    figures = dict.fromkeys(name for name, _ in jobs.COLUMNS.values())
    arm = {"experiment": "e", "arm": "", "transport": "tcp", "repeats": 2, "left_out": 3}
    row = {**figures, **arm, "due_p99_us": 71.0, "due_count": 499.0}
    folder = SimpleNamespace(url="tables", files=lambda _: ["arms"], rows=lambda _: [row])
    jobs.print_summary(folder, 5, as_json=False)
    output = capsys.readouterr().out
    assert "medians of 2 runs, without 3 runs that do not count; tables: tables" in output
    assert "max of 499" in output
    assert "71" not in output
