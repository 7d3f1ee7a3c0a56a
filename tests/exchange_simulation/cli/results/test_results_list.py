"""`exchange results list`: a line for each run and trial, whatever state its folder is in."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from kept_folders import DAY, put_bytes, put_run, put_trial, results

from exchange_simulation.cli.main import main
from exchange_simulation.launching.folder_lock import locked

LOCAL = f"{datetime.fromisoformat(f'{DAY}:20+00:00').astimezone():%m-%d %H:%M}"
LONG = "20261121-144220-zeromq+inproc-16000-dd2dd4"


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind: runs, trials, records that cannot be read, and folders that are no run's."""
    folder = tmp_path_factory.mktemp("results")
    put_run(folder, "newest", started_at=f"{DAY}:59+00:00", status="saturated", settings={"transport": "tcp"})
    put_run(folder, LONG, started_at=f"{DAY}:58+00:00", settings={"transport": "zeromq+inproc"})
    put_run(
        folder,
        "flat-out",
        started_at=f"{DAY}:57+00:00",
        settings={"orders_per_s": None, "window": 9},
        completion_us={"handed_over": {"p50": 1.0}},
    )
    put_trial(folder, "trial")
    put_trial(folder, "killed-trial", finished=False)
    put_bytes(folder, "no-json", b'{"schema": 1')
    put_bytes(folder, "a-list", b"[]")
    put_bytes(folder, "no-status", b'{"schema": 1, "name": "no-status", "reasons": []}')
    put_bytes(folder, "of-tomorrow", b'{"schema": 2, "status": 7}')
    (folder / "killed" / "spool").mkdir(parents=True)
    (folder / "notes").mkdir()
    (folder / "tables").mkdir()
    (folder / ".hidden").mkdir()
    (folder / "run.json").write_text("a file is no folder")
    return folder


def rows(results_folder: Path, *words: object) -> dict[str, dict[str, object]]:
    """By name, what `results list --json` says of each run and trial."""
    outcome = results(results_folder, "list", "--json", *words)
    assert outcome.exit_code == 0, outcome.output
    return {row["name"]: row for row in orjson.loads(outcome.stdout)}


def line_with(characters: str, results_folder: Path) -> str:
    """The line of `results list` that alone has these characters."""
    [line] = [line for line in results(results_folder, "list").stdout.splitlines() if characters in line]
    return line


def test_each_folder_is_one_line_and_the_newest_is_last(results_folder: Path) -> None:
    lines = results(results_folder, "list").stdout.splitlines()
    assert len(lines) == 1 + 10 + 1
    assert lines[-1].startswith("… cut")
    assert max(map(len, lines)) <= 80
    started = [line.split()[0] for line in lines if LOCAL in line]
    assert [name[-6:] for name in started] == ["trial", "at-out", LONG[-6:], "newest"]


def test_a_row_has_start_transport_rate_and_completion_from_due(results_folder: Path) -> None:
    line = line_with("newest", results_folder)
    assert line.split() == ["newest", *LOCAL.split(), "saturated", "run", "tcp", "8,000", "110", "330"]


def test_a_run_of_another_year_is_listed_with_its_year(tmp_path: Path) -> None:
    put_run(tmp_path, "old", started_at="2019-06-15T12:00:00+00:00")
    assert " 2019-06-15 " in results(tmp_path, "list").stdout


def test_figures_that_were_not_measured_are_absent_and_never_0(results_folder: Path) -> None:
    row = rows(results_folder)["flat-out"]
    assert row["p50_us"] is None
    assert row["orders_per_s"] == [None]
    assert line_with("flat-out", results_folder).split()[-3:] == ["max", "-", "-"]


def test_a_shortened_name_keeps_the_end_by_which_it_is_found(results_folder: Path) -> None:
    name = line_with("inproc", results_folder).split()[0]
    assert name.startswith("…")
    assert orjson.loads(results(results_folder, "show", name[1:], "--json").stdout)["name"] == LONG


def test_a_trial_is_listed_with_its_command_and_its_repeats(results_folder: Path) -> None:
    row = rows(results_folder)["trial"]
    assert row["what"] == "compare"
    assert row["status"] == "complete"
    assert row["repeats"] == 2
    assert row["runs"] == 4
    assert row["planned_runs"] == 4
    [line] = [line for line in results(results_folder, "list").stdout.splitlines() if line.startswith("trial")]
    assert line.endswith("2 repeats, zeromq 1k")


def test_a_trial_without_a_record_is_listed_with_its_finished_runs(results_folder: Path) -> None:
    row = rows(results_folder)["killed-trial"]
    assert row["status"] == "unfinished"
    assert row["runs"] == 4
    assert row["planned_runs"] == 4
    assert "4 of 4 runs, written " in line_with("killed-t", results_folder)


def test_a_trial_whose_process_lives_is_listed_as_running(tmp_path: Path) -> None:
    folder = put_trial(tmp_path, "trial", finished=False)
    with locked(folder):
        assert rows(tmp_path)["trial"]["status"] == "running"
        assert list(rows(tmp_path, "--status", "running")) == ["trial"]
        assert "running" in line_with("4 of 4 runs, written ", tmp_path)
    assert rows(tmp_path)["trial"]["status"] == "unfinished"


def test_a_finished_trial_is_not_called_running_while_its_tables_are_made(tmp_path: Path) -> None:
    with locked(put_trial(tmp_path, "trial")):
        assert rows(tmp_path)["trial"]["status"] == "complete"


@pytest.mark.parametrize(
    ("name", "status", "why"),
    [
        ("killed", "unfinished", "the run goes on, or was killed"),
        ("killed-trial", "unfinished", "4 of 4 runs are there"),
        ("no-json", "damaged", "run.json is damaged: it is no JSON"),
        ("a-list", "damaged", "holds no JSON object"),
        ("no-status", "damaged", "missing required field `status`"),
        ("of-tomorrow", "newer", "has schema 2, and this version of exchange reads 1"),
    ],
)
def test_a_record_that_cannot_be_read_is_listed_with_the_reason(
    results_folder: Path, name: str, status: str, why: str
) -> None:
    row = rows(results_folder)[name]
    assert row["status"] == status
    assert why in str(row["reason"])
    assert f" {status} " in next(line for line in results(results_folder, "list").stdout.splitlines() if name in line)


def test_folders_that_no_run_left_are_counted_and_not_listed(results_folder: Path) -> None:
    outcome = results(results_folder, "list")
    assert "not listed: 1 folder in" in outcome.stderr
    assert "tables" not in outcome.stdout + outcome.stderr, "Spark's own folder is no stranger"
    assert "notes" not in outcome.stdout + outcome.stderr
    assert {"notes", ".hidden", "run.json"}.isdisjoint(rows(results_folder))


def test_a_list_is_narrowed_to_a_transport_a_status_and_the_newest(results_folder: Path) -> None:
    assert list(rows(results_folder, "--transport", "tcp")) == ["newest"]
    assert list(rows(results_folder, "--status", "unfinished")) == ["killed", "killed-trial"]
    assert list(rows(results_folder, "--last", 1, "--transport", "zmq", "--status", "complete")) == ["flat-out"]
    nothing = results(results_folder, "list", "--transport", "pigeon")
    assert nothing.exit_code == 0
    assert nothing.stdout == ""
    assert "none of 10 runs and trials matches" in nothing.stderr


def test_an_empty_directory_is_listed_as_empty(tmp_path: Path) -> None:
    empty = results(tmp_path, "list")
    assert empty.exit_code == 0
    assert empty.stdout == ""
    assert "no run and no trial" in empty.stderr
    assert orjson.loads(results(tmp_path, "list", "--json").stdout) == []


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    missing = results(tmp_path / "missing", "list")
    assert missing.exit_code == 2
    assert "choose another place with --results" in missing.stderr


def test_a_run_without_a_record_is_listed_with_its_last_writing(tmp_path: Path) -> None:
    (tmp_path / "killed" / "spool").mkdir(parents=True)
    for folder, hours in {"killed/spool": 3, "killed": 5}.items():
        written_at = time.time() - hours * 3600
        os.utime(tmp_path / folder, times=(written_at, written_at))
    assert "written 3 hours ago" in results(tmp_path, "list").stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_figure_is_cut_and_a_name_keeps_its_end_at_any_width(results_folder: Path, columns: int) -> None:
    words = ["results", "list", "--results", str(results_folder)]
    lines = CliRunner().invoke(main, words, env={"COLUMNS": str(columns)}).stdout.splitlines()
    [of_long_name] = [line for line in lines if "inproc" in line]
    [of_saturated_run] = [line for line in lines if "saturated" in line]
    if columns > 60:
        assert max(map(len, lines)) <= columns
    assert re.search("p50 us  ?p99 us", lines[0])
    assert of_long_name.split()[-2:] == ["110", "330"]
    assert of_saturated_run.split()[-2:] == ["110", "330"]
    assert of_long_name.split()[0].endswith("00-dd2dd4")


def test_a_noisy_run_and_a_noisy_trial_have_a_mark(tmp_path: Path) -> None:
    noise = {"window_s": 1.0, "share_of_all_cpus": 0.4}
    put_run(tmp_path, "noisy", noise=noise)
    put_run(tmp_path, "quiet", noise={**noise, "share_of_all_cpus": 0.01})
    printed = results(tmp_path, "list").stdout.splitlines()
    (noisy,) = [line for line in printed if line.startswith("noisy ")]
    (quiet,) = [line for line in printed if line.startswith("quiet ")]
    assert noisy.split()[3] == "complete~"
    assert quiet.split()[3] == "complete"
    assert printed[-1] == "~ noisy: others took more than 5% of all processors beside most measurements"
    rows = {row["name"]: row for row in orjson.loads(results(tmp_path, "list", "--json").stdout)}
    assert rows["noisy"]["is_noisy"]
    assert not rows["quiet"]["is_noisy"]
