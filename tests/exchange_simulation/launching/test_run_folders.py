"""Listing the folders of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import run_folders, runs_begun, runs_begun_or_beginning


def test_runs_are_found_in_a_folder_in_trials_and_as_the_folder(tmp_path: Path) -> None:
    for name in ("one", "trial/two", ".hidden", "trial/.three"):
        (tmp_path / name / "spool").mkdir(parents=True)
        (tmp_path / name / "spool" / "000001.jsonl").touch()
    (tmp_path / "not begun" / "spool").mkdir(parents=True)
    (tmp_path / "not begun" / "spool" / ".000001.jsonl.part").touch()
    (tmp_path / "a file").touch()
    assert [run.name for run in run_folders(tmp_path)] == ["not begun", "one", "two"]
    assert [run.name for run in runs_begun(tmp_path)] == ["one", "two"]
    assert run_folders(tmp_path / "one") == [tmp_path / "one"]


def test_a_run_that_begins_during_the_listing_is_listed(tmp_path: Path) -> None:
    for name in ("first", "going"):
        (tmp_path / name / "spool").mkdir(parents=True)
    (tmp_path / "first" / "spool" / "000001.jsonl").touch()
    found = runs_begun(tmp_path)
    assert next(found).name == "first"
    (tmp_path / "going" / "spool" / "000001.jsonl").touch()
    assert next(found).name == "going"


def test_a_run_is_under_way_as_soon_as_its_folder_exists(tmp_path: Path) -> None:
    """A run that did not begin has a record."""
    for name in ("about to begin", "begun", "never began"):
        (tmp_path / name / "spool").mkdir(parents=True)
    (tmp_path / "begun" / "spool" / "000001.jsonl").touch()
    (tmp_path / "begun" / "run.json").touch()
    (tmp_path / "never began" / "run.json").touch()
    assert [run.name for run in runs_begun_or_beginning(tmp_path)] == ["about to begin", "begun"]


def test_a_trial_that_is_removed_meanwhile_holds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "one" / "spool").mkdir(parents=True)
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: listed(path / "gone" if path.name == "trial" else path))
    assert run_folders(tmp_path) == [tmp_path / "one"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(UserError, match=r"cannot read .*a file: Not a directory; give a folder with runs in it"):
        run_folders(tmp_path / "a file")
