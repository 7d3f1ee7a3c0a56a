"""`exchange spark prepare`, but for the minute that Java takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.pipeline import jobs
from spark.errors import SparkUnavailableError
from spark.sessions.class_archive import ClassArchive
from spark.sessions.java import Java

COMMAND = ["spark", "prepare"]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """The archive of a Java that nobody starts; it is not written yet."""
    unwritten = ClassArchive(Java(tmp_path / "java", 17, None), tmp_path / "spark.jsa", None)
    monkeypatch.setattr(jobs, "find_java", lambda: unwritten.java)
    monkeypatch.setattr(jobs, "session_archive", lambda _: unwritten)
    monkeypatch.setattr(jobs, "write_archive", lambda: unwritten.file.write_bytes(bytes(3_000_000)))
    return unwritten


def test_the_archive_is_written_once_and_its_place_printed(archive: ClassArchive) -> None:
    first = CliRunner().invoke(main, COMMAND)
    assert first.exit_code == 0
    assert first.output.split(":")[0] == str(archive.file)
    assert "3 MB in 0 s" in first.output
    archive.file.write_bytes(b"")
    assert CliRunner().invoke(main, COMMAND).output == f"done already: {archive.file}\n"
    assert CliRunner().invoke(main, [*COMMAND, "--again"]).output == first.output


def test_an_archive_that_cannot_be_written_ends_in_one_sentence(
    archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise SparkUnavailableError("Java wrote no class archive: is there room for 200 MB?")

    monkeypatch.setattr(jobs, "write_archive", full)
    result = CliRunner().invoke(main, COMMAND)
    assert result.exit_code == 1
    assert result.output.startswith("Error: Spark is not prepared: Java wrote no")
    monkeypatch.setattr(jobs, "session_archive", lambda _: None)
    assert CliRunner().invoke(main, COMMAND).exit_code == 2


@pytest.mark.long
def test_a_session_finds_the_archive_that_prepare_wrote(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    script = "from spark.sessions import java, session; print(session.session_archive(java.find_java()).is_written)"
    for words, expected in (
        (["-m", "exchange_simulation.cli", *COMMAND], "Spark starts faster"),
        (["-c", script], "True"),
    ):
        result = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=True)
        assert expected in result.stdout
