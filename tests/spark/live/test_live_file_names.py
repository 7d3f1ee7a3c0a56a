"""The names of the files of live tables, of which one folder has those of all runs."""

from __future__ import annotations

from pathlib import Path

from spark.live.folder import LiveFolder


def test_no_two_runs_share_a_file_of_the_table(tmp_path: Path) -> None:
    """Regression: the second hour of run x, and the first hour of run x.1, had one file."""
    files = []
    for name in ("x", "x.1", "1-x", "0-x", "0"):
        folder = LiveFolder(tmp_path / name)
        files += [folder.files_of_hour(hour)[1] for hour in (0, 1, 11)]
    assert len(set(files)) == len(files)
