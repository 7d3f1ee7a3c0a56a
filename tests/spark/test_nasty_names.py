"""A path is a path, whatever is in its name: Java reads some names as lists, URLs or patterns."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from exchange_simulation.experiments.pipeline.run_sources import find_runs
from exchange_simulation.launching.files import local_path
from spark.dataset.folder import LocalFolder, as_url
from spark.dataset.folder_of_url import dataset_folder
from spark.dataset.ingesting import ingest_runs
from spark.dataset.runs import read_runs
from spark.dataset.views import create_views
from spark.errors import DatasetUnreadableError, SparkUnavailableError
from spark.sessions import folders, jvm
from spark.sessions import session as sessions
from spark.sessions.folders import scratch_folder, session_folder
from spark.sessions.jvm import running_jvm
from spark.tables.files import spark_path, tables_folder

NASTY_NAMES = ("a,b", "co:lon", "file:x", "per%20cent", "qu?", "ha#h", "quo'te", 'dq"x', "back\\slash", "new\nline")
NO_UTF8 = "\udcff"


@pytest.mark.parametrize("name", [*NASTY_NAMES[:3], pytest.param("+".join(NASTY_NAMES[3:]), id="others")])
def test_runs_go_into_tables_at_a_path_of_any_name(name: str, spark: SparkSession, tmp_path: Path) -> None:
    made_up = MadeUpRun()
    results = tmp_path / name / "results"
    made_up.write(results / "run", *map(json.dumps, made_up.records))
    folder = dataset_folder(spark, str(tmp_path / name / "tables"))
    ingest_runs(folder, find_runs(results).sources, again=False)
    assert [ingested.facts.run for ingested in read_runs(folder)] == ["run"]
    create_views(spark, folder)
    assert spark.table("sample").count() == made_up.samples
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["results", "tables"]


@pytest.mark.parametrize("name", [*NASTY_NAMES, "out:1", "my:tables", "s3:tables"])
def test_a_path_is_no_url(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`out:1` was a URISyntaxException, since Java took it for a URL with the scheme `out`."""
    monkeypatch.chdir(tmp_path)
    assert as_url(name) == f"file://{tmp_path / name}"
    assert LocalFolder(as_url(name)).local == tmp_path / name
    assert local_path(name) == Path(name)


@pytest.mark.parametrize("url", ["hdfs://host/tables", "s3a://bucket/tables", "hdfs:/tables"])
def test_a_url_is_no_path(url: str) -> None:
    assert as_url(url) == url
    assert local_path(url) is None


@pytest.mark.parametrize("name", [*NASTY_NAMES, NO_UTF8], ids=ascii)
def test_a_session_s_folder_has_a_plain_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark parted a name at its comma, and left the second part in the user's folder."""
    odd = tmp_path / name
    odd.mkdir()
    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setattr(folders, "OTHERS", (str(plain),))
    with session_folder() as kept_folder:
        assert kept_folder.path.parent == plain
    assert not list(odd.iterdir())


def test_a_plain_folder_for_temporary_files_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert scratch_folder() == tmp_path


def test_no_plain_folder_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a,b"))
    monkeypatch.setattr(folders, "OTHERS", ("/dev/null",))
    with pytest.raises(SparkUnavailableError, match=r"Spark cannot work in .*/a,b: name a folder with TMPDIR"):
        scratch_folder()


def test_a_name_that_is_no_utf8_is_a_sentence(tmp_path: Path) -> None:
    """It was a JVM that died, for want of memory as was said."""
    folder = tmp_path / NO_UTF8
    folder.mkdir()
    for use in (spark_path, tables_folder, lambda path: LocalFolder(as_url(str(path)))):
        with pytest.raises(DatasetUnreadableError, match=r"Spark takes UTF-8 only, and .* is none"):
            use(folder)


def test_pyspark_s_own_files_lie_in_the_session_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a TMPDIR whose name is no UTF-8, pyspark waited for ever for the file with the JVM's port."""
    usual = str(tmp_path / NO_UTF8)
    folder = tmp_path / "session"
    folder.mkdir()
    places: list[str] = []

    def launch(*_: object) -> None:
        places.append(tempfile.gettempdir())
        raise OSError("no JVM here")

    monkeypatch.setattr(tempfile, "tempdir", usual)
    monkeypatch.setattr(jvm, "launch_gateway", launch)
    with pytest.raises(SparkUnavailableError, match="no JVM here"), running_jvm(SparkConf(loadDefaults=False), folder):
        pass
    assert places == [str(folder)]
    assert tempfile.gettempdir() == usual


@pytest.mark.parametrize("master", ["local-cluster[1,1,1024]", "yarn"])
def test_a_user_without_a_name_is_refused_at_a_master_with_processes_of_its_own(
    master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with (
        pytest.raises(SparkUnavailableError, match=r"54321 has no entry in /etc/passwd: add one"),
        sessions.open_session(master),
    ):
        pytest.fail("the session is open")


def test_a_user_without_a_name_is_refused_by_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with pytest.raises(SparkUnavailableError, match=r"spark-submit needs a user with a name, and 54321"):
        sessions.submit_job("local[1]", None, {}, ["summary", "results"])
