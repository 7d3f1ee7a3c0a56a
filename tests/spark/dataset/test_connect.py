"""`exchange spark summary`, `sql`, `bars` and `samples` through a Spark Connect server."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from exchange_simulation.cli.main import main
from tests.machine import lacks
from tests.spark.dataset.conftest import Dataset, RecordedRuns, SparkCommand
from tests.spark.dataset.test_sql import EXPECTED, MISTAKES, ORDERS
from tests.spark.standalone import connect_server

SUMMARY_TABLES = ("summary", "seconds", "arms", "comparison")
PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard")


@pytest.fixture(autouse=True)
def with_a_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of pytest-xdist has none, which pyspark takes for doctests: it ends the process without a package."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)


def asked(*words: object) -> Result:
    return CliRunner().invoke(main, ["spark", *map(str, words)])


def are_here() -> bool:
    try:
        return all(map(importlib.util.find_spec, PACKAGES))
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not are_here():
        lacks("Spark Connect's client: pip install 'exchange-simulation[connect]'")
    with connect_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.mark.jvm
def test_a_server_answers_as_a_session_of_our_own(server: str, dataset: Dataset) -> None:
    done = asked("sql", ORDERS, "--json", "--tables", dataset.folder.url, "--master", server)
    assert done.exit_code == 0, done.output
    assert [tuple(json.loads(line).values()) for line in done.stdout.splitlines()] == EXPECTED


@pytest.mark.jvm
def test_samples_are_the_same_through_a_server(server: str, dataset: Dataset, spark_command: SparkCommand) -> None:
    words = ("samples", "--csv", "--tables", dataset.folder.url)
    assert asked(*words, "--master", server).stdout == spark_command(*words).stdout != ""


@pytest.mark.jvm
def test_bars_are_the_same_through_a_server(server: str, spark_command: SparkCommand, events: Path) -> None:
    words = ("bars", "--every", "100ms", "--csv", "--tables", events / "tables")
    done = asked(*words, "--master", server)
    assert (done.stdout, len(done.stdout.splitlines())) == (spark_command(*words).stdout, 1 + 2 * 20), done.stderr


@pytest.mark.jvm
def test_a_summary_is_the_same_through_a_server(
    server: str, dataset: Dataset, recorded: RecordedRuns, tmp_path: Path
) -> None:
    tables = Path(shutil.copytree(recorded.results / "tables", tmp_path / "tables"))
    before = {name: pq.read_table(tables / name).to_pylist() for name in SUMMARY_TABLES}
    for name in SUMMARY_TABLES:
        shutil.rmtree(tables / name)
    done = asked("summary", recorded.results, "--tables", tables, "--master", server)
    assert done.exit_code == 0, done.output
    assert {name: pq.read_table(tables / name).to_pylist() for name in SUMMARY_TABLES} == before
    assert [len(before[name]) for name in ("summary", "arms")] == [3, 3]
    ours = dataset.summary.stdout.replace(str(recorded.results / "tables"), str(tables))
    assert done.stdout.splitlines()[:-1] == ours.splitlines()[:-1], "the last one names the tables"


@pytest.mark.jvm
def test_a_server_changes_no_tables_that_this_machine_does_not_have(server: str, tmp_path: Path) -> None:
    words = ("summary", tmp_path, "--master", server, "--tables")
    elsewhere = asked(*words, "hdfs://host/tables")
    assert (elsewhere.exit_code, "must be on a disk that this machine shares with it" in elsewhere.stderr) == (2, True)
    assert f"sees no folder file://{tmp_path}/none: give tables" in asked(*words, tmp_path / "none").stderr


@pytest.mark.jvm
@pytest.mark.parametrize(("statement", "message"), MISTAKES)
def test_a_mistake_in_sql_is_one_sentence_too(server: str, dataset: Dataset, statement: str, message: str) -> None:
    done = asked("sql", statement, "--tables", dataset.folder.url, "--master", server)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.jvm
def test_what_the_server_does_not_have_is_one_sentence(server: str, dataset: Dataset, tmp_path: Path) -> None:
    elsewhere = asked("sql", "select 1", "--tables", tmp_path / "none", "--master", server)
    assert f"the Spark Connect server sees no folder file://{tmp_path}/none: give tables" in elsewhere.stderr
    driver = ("--conf", "spark.driver.memory=2g")
    refused = asked("sql", "select 1", "--tables", dataset.folder.url, "--master", server, *driver)
    assert f"{server} lets no session set spark.driver.memory: start its server with it" in refused.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_named_with_how_to_get_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pyspark.sql.connect", package))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    done = asked("sql", "select 1", "--master", "sc://127.0.0.1:1")
    assert done.exit_code == 2
    assert "which is not here or too old: pip install 'exchange-simulation[connect]'" in done.stderr


def test_a_server_that_does_not_answer_is_told_at_once() -> None:
    if not are_here():
        lacks("Spark Connect's client: pip install 'exchange-simulation[connect]'")
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"sc://127.0.0.1:{gone.getsockname()[1]}"
    done = asked("sql", "select 1", "--master", url)
    assert done.exit_code == 2
    assert f"no Spark Connect server answers at {url} (Connection refused): start one" in done.stderr
    assert "is no address of Spark Connect" in asked("sql", "select 1", "--master", "sc://").stderr
