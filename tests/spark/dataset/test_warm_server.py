"""`exchange spark server`: queries find it and use it, and nothing is left of it, whatever ends it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result
from spark_runs import MadeUpRun

from exchange_simulation import spark_tables
from exchange_simulation.cli.main import main
from exchange_simulation.launching.command_line import exchange_command
from spark.sessions.warm_server import ServerFile, server_of
from tests.spark.dataset.test_connect import are_here, with_a_main_module

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.long,
    pytest.mark.skipif(not are_here(), reason="Spark Connect's client is not installed"),
    pytest.mark.xdist_group("warm server"),
]
__all__ = ["with_a_main_module"]
PATIENCE_S = 120
STATEMENT = "select run, sum(orders_sent) as orders from traffic group by run"


def asked(*words: object) -> Result:
    return CliRunner().invoke(main, ["spark", *map(str, words)])


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tables of a run. Servers are noted in a cache of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    MadeUpRun(seconds=1).write(tmp_path / "results" / "a")
    assert asked("ingest", tmp_path / "results").exit_code == 0
    return tmp_path / "results"


@contextmanager
def serving(results: Path) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """Run a server; yield it, and its JVM, once it is ready. At the end neither is left."""
    command = exchange_command("spark", "server", results)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("ready: ")
            (jvm,) = [child for child in psutil.Process(server.pid).children() if "java" in child.name()]
            yield server, jvm
        finally:
            server.kill()


def assert_ends(process: psutil.Process) -> None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([descriptor], [], [], PATIENCE_S)
    os.close(descriptor)
    assert ended


def test_queries_use_the_server_until_it_is_stopped(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = results / "tables"
    with serving(results) as (server, jvm):
        found = server_of(tables)
        assert found is not None
        assert not any(found.url.partition("token=")[2] in word for word in jvm.cmdline()), "ps shows arguments"
        assert ServerFile(tables).path.stat().st_mode & 0o077 == 0
        with monkeypatch.context() as without_java:
            without_java.setenv("JAVA_HOME", "/nowhere")
            without_java.setattr(
                "exchange_simulation.experiments.pipeline.jobs.open_session",
                lambda *_, **__: pytest.fail("a session of its own was opened"),
            )
            done = asked("sql", STATEMENT, "--json", "--tables", tables)
            assert done.exit_code == 0, done.output
            assert json.loads(done.stdout) == {"run": "a", "orders": 2001}
            with spark_tables(results) as spark:
                assert [row.repeats for row in spark.sql("select repeats from arms").collect()] == [1]
            unknown = asked("sql", "select * from trade", "--tables", tables)
            assert "there is no table trade; there are: arms, comparison, completion" in unknown.stderr
        second = asked("server", results)
        assert second.exit_code != 0
        assert "has a server already" in second.stderr
        assert asked("server", results, "--stop").exit_code == 0
        assert server.wait(PATIENCE_S) == 0
        assert_ends(jvm)
    assert server_of(tables) is None
    nobody = asked("server", results, "--stop")
    assert nobody.exit_code == 2
    assert "no server runs for" in nobody.stderr


def test_a_server_that_is_killed_leaves_no_jvm_and_is_not_found(results: Path) -> None:
    with serving(results) as (server, jvm):
        server.send_signal(signal.SIGKILL)
        server.wait()
        assert server_of(results / "tables") is None
        assert_ends(jvm)


def test_a_server_whose_jvm_is_killed_says_so_and_ends(results: Path) -> None:
    with serving(results) as (server, jvm):
        jvm.kill()
        assert server.wait(PATIENCE_S) == 1
        assert server.stderr is not None
        assert "the server's JVM ended by itself" in server.stderr.read().splitlines()[-1]
    assert server_of(results / "tables") is None
