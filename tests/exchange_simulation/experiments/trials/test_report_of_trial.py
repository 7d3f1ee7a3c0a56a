"""`exchange report` of a trial's folder, as its user sees it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials.plan import write_plan
from tests.exchange_simulation.experiments.trials.sample_trials import plan, put_all

US = {"a": [100.0, 110.0, 120.0], "b": [200.0, 210.0, 220.0]}


def report(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["report", str(folder), *words])


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    folder = tmp_path / "trial"
    folder.mkdir()
    trial_plan = plan(repeats=3, rates=(1000.0, 2000.0))
    write_plan(folder, trial_plan)
    put_all(folder, trial_plan, US)
    return folder


def test_the_page_and_record_are_made_again(trial: Path) -> None:
    finished = report(trial)
    assert finished.exit_code == 0, finished.output
    assert "comparison.html" in finished.output
    assert orjson.loads((trial / "comparison.json").read_bytes())["status"] == "complete"
    assert "<svg" in (trial / "comparison.html").read_text()


def test_the_page_of_an_incomplete_trial_names_the_missing_runs(trial: Path) -> None:
    for run in trial.glob("02-*"):
        (run / "run.json").unlink()
        run.rmdir()
    assert report(trial).exit_code == 0
    assert "8 of 12 planned runs are there" in (trial / "comparison.html").read_text()


def test_json_has_a_row_for_each_arm_with_what_differs(trial: Path) -> None:
    rows = orjson.loads(report(trial, "--json").stdout)
    assert [(row["contender"], row["settings"]) for row in rows[:2]] == [
        ("a", {"orders_per_s": 1000.0, "packing": 1}),
        ("b", {"orders_per_s": 1000.0, "packing": 2}),
    ]
    assert [row["block"] for row in rows[::2]] == ["at 1,000 orders/s", "at 2,000 orders/s"]
    assert [row["metrics"]["due_p50_us"]["median"] for row in rows] == [110.0, 210.0] * 2
    assert rows[0]["metrics"]["broker_cpu_s_per_million"] == {"median": None, "low": None, "high": None}


def test_csv_has_the_same_rows_flat(trial: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(report(trial, "--csv").stdout)))
    assert [row["settings.packing"] for row in rows] == ["1", "2"] * 2
    assert [row["metrics.due_p50_us.median"] for row in rows] == ["110.0", "210.0"] * 2
    assert rows[0]["metrics.broker_cpu_s_per_million.median"] == ""


def test_every_figure_is_a_file_named_after_it(trial: Path) -> None:
    finished = report(trial, "--figures")
    assert finished.exit_code == 0, finished.output
    names = {path.stem for path in (trial / "figures").glob("*.csv")}
    assert {"completion-time-from-due-p50", "completion-time-from-due-p99", "cpu-a", "cpu-b"} <= names
    assert {path.stem for path in (trial / "figures").glob("*.png")} == names
    drawn = csv.DictReader(io.StringIO((trial / "figures" / "completion-time-from-due-p50.csv").read_text()))
    assert [row["median_us"] for row in drawn] == ["110.0", "210.0"] * 2


@pytest.mark.parametrize(
    ("plan_json", "sentence"),
    [(b"{", "plan.json is damaged"), (b'{"schema": 2}', "schema 2, and this version of exchange reads 1")],
)
def test_a_damaged_or_newer_plan_is_said_in_a_sentence(trial: Path, plan_json: bytes, sentence: str) -> None:
    (trial / "plan.json").write_bytes(plan_json)
    finished = report(trial)
    assert finished.exit_code == 2
    assert sentence in " ".join(finished.output.split())


def test_an_hlog_of_many_runs_is_refused(trial: Path) -> None:
    finished = report(trial, "--hlog")
    assert finished.exit_code == 2
    assert "give the folder of a run in it" in " ".join(finished.output.split())


def test_a_run_of_a_newer_schema_is_left_out_and_named(trial: Path) -> None:
    path = next(trial.glob("01-a-at-1000*/run.json"))
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    assert report(trial).exit_code == 0
    (caveat,) = [c for c in orjson.loads((trial / "comparison.json").read_bytes())["caveats"] if "newer" in c]
    assert caveat.startswith("a at 1,000 orders/s: left out 1 partial: its run.json is of a newer schema")
