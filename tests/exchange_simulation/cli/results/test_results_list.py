"""`exchange results list`: a line for each run and trial, whatever state its folder is in."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from kept_folders import DAY, put_bytes, put_run, put_trial, results

from exchange_simulation.cli.main import main

LOCAL = f"{datetime.fromisoformat(f'{DAY}:20+00:00').astimezone():%m-%d %H:%M}"
LONG = "20261121-144220-zeromq+inproc-16000-dd2dd4"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each."""
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


def rows(there: Path, *words: object) -> dict[str, dict[str, object]]:
    outcome = results(there, "list", "--json", *words)
    assert outcome.exit_code == 0, outcome.output
    return {row["name"]: row for row in orjson.loads(outcome.stdout)}


def test_a_folder_is_one_line_of_80_columns_and_the_newest_is_last(there: Path) -> None:
    lines = results(there, "list").stdout.splitlines()
    assert len(lines) == 1 + 10
    assert max(map(len, lines)) <= 80
    started = [line.split()[0] for line in lines if LOCAL in line]
    assert [name[-6:] for name in started] == ["trial", "at-out", LONG[-6:], "newest"]


def test_a_row_has_start_transport_rate_and_completion_from_due(there: Path) -> None:
    told = next(line for line in results(there, "list").stdout.splitlines() if line.startswith("newest"))
    assert told.split() == ["newest", *LOCAL.split(), "saturated", "run", "tcp", "8,000", "110", "330"]


def test_a_run_of_another_year_tells_its_year(tmp_path: Path) -> None:
    put_run(tmp_path, "old", started_at="2019-06-15T12:00:00+00:00")
    assert " 2019-06-15 " in results(tmp_path, "list").stdout


def test_what_was_not_measured_is_absent_and_never_0(there: Path) -> None:
    assert (rows(there)["flat-out"]["p50_us"], rows(there)["flat-out"]["orders_per_s"]) == (None, [None])
    told = next(line for line in results(there, "list").stdout.splitlines() if line.startswith("flat-out"))
    assert told.split()[-3:] == ["max", "-", "-"]


def test_a_name_that_is_too_long_keeps_the_end_by_which_it_is_found(there: Path) -> None:
    name = next(line.split()[0] for line in results(there, "list").stdout.splitlines() if "inproc" in line)
    assert name.startswith("…")
    assert orjson.loads(results(there, "show", name[1:], "--json").stdout)["name"] == LONG


def test_a_trial_is_one_line_that_tells_its_command_and_its_repeats(there: Path) -> None:
    row = rows(there)["trial"]
    assert (row["what"], row["status"], row["repeats"], row["runs"], row["planned_runs"]) == (
        "compare",
        "complete",
        2,
        4,
        4,
    )
    told = next(line for line in results(there, "list").stdout.splitlines() if line.startswith("trial"))
    assert told.endswith("2 repeats, zeromq 1k")


def test_a_trial_without_a_record_tells_how_far_it_came(there: Path) -> None:
    row = rows(there)["killed-trial"]
    assert (row["status"], row["runs"], row["planned_runs"]) == ("unfinished", 4, 4)
    assert "4 of 4 runs, written " in next(
        line for line in results(there, "list").stdout.splitlines() if "killed-t" in line
    )


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
def test_a_record_that_cannot_be_read_is_listed_as_what_it_is(there: Path, name: str, status: str, why: str) -> None:
    row = rows(there)[name]
    assert row["status"] == status
    assert why in str(row["reason"])
    assert f" {status} " in next(line for line in results(there, "list").stdout.splitlines() if name in line)


def test_folders_that_no_run_left_are_counted_and_not_listed(there: Path) -> None:
    outcome = results(there, "list")
    assert "not listed: 1 folder in" in outcome.stderr
    assert "tables" not in outcome.stdout + outcome.stderr, "Spark's own folder is no stranger"
    assert "notes" not in outcome.stdout + outcome.stderr
    assert {"notes", ".hidden", "run.json"}.isdisjoint(rows(there))


def test_a_list_is_narrowed_to_a_transport_a_status_and_the_newest(there: Path) -> None:
    assert list(rows(there, "--transport", "tcp")) == ["newest"]
    assert list(rows(there, "--status", "unfinished")) == ["killed", "killed-trial"]
    assert list(rows(there, "--last", 1, "--transport", "zmq", "--status", "complete")) == ["flat-out"]
    nothing = results(there, "list", "--transport", "pigeon")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "none of 10 runs and trials matches" in nothing.stderr


def test_an_empty_directory_is_no_mistake_and_a_missing_one_is(tmp_path: Path) -> None:
    """An empty one is said to be empty."""
    empty = results(tmp_path, "list")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "no run and no trial" in empty.stderr
    assert orjson.loads(results(tmp_path, "list", "--json").stdout) == []
    missing = results(tmp_path / "missing", "list")
    assert missing.exit_code == 2
    assert "choose another place with --results" in missing.stderr


def test_a_run_without_a_record_says_when_something_of_it_was_last_written(tmp_path: Path) -> None:
    (tmp_path / "killed" / "spool").mkdir(parents=True)
    for folder, hours in {"killed/spool": 3, "killed": 5}.items():
        os.utime(tmp_path / folder, times=(time.time() - hours * 3600,) * 2)
    assert "written 3 hours ago" in results(tmp_path, "list").stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_figure_is_cut_and_a_name_keeps_its_end_at_any_width(there: Path, columns: int) -> None:
    put = CliRunner().invoke(main, ["results", "list", "--results", str(there)], env={"COLUMNS": str(columns)})
    lines = [line for line in put.stdout.splitlines() if (" run " in line and "saturated" in line) or "inproc" in line]
    assert max(map(len, put.stdout.splitlines())) <= columns or columns == 60
    assert "p50 us  p99 us" in put.stdout.splitlines()[0] or "p50 us p99 us" in put.stdout.splitlines()[0]
    assert [line.split()[-2:] for line in lines] == [["110", "330"], ["110", "330"]]
    assert lines[0].split()[0].endswith("00-dd2dd4")
