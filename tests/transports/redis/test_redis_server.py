"""A private Redis server: where it is found, what it says of itself, and that nothing of it is left however it ends."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.broker import is_gone
from tests.machine import until
from tests.transports.conftest import joined
from transports.base import Address, BadAddress, Link, NotInstalled, PeerGone, TransportError
from transports.declaration import RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.redis.connection import PASSWORD
from transports.redis.server import VARIABLE, Redis
from transports.servers.private import PrivateServer
from transports.servers.starting import ServerDidNotStart

STARTER = """
import sys, time
from pathlib import Path
from transports.declaration import ServerPlace
from transports.redis.server import Redis
with Redis().start(Path(sys.argv[1]), process_group=None, nodelay=True, where=ServerPlace()) as running:
    print(running.server.pid, running.server.keeper.pid, flush=True)
    time.sleep(600)
"""


def test_a_private_server_is_measured_and_says_its_version(redis: RunningBroker) -> None:
    assert isinstance(redis.server, PrivateServer)
    with joined(redis.url):
        facts = redis.server.facts()
        assert facts["product"] == "Redis"
        assert facts["version"][0].isdecimal()
        assert redis.server.cpu_ns() > 0
        assert redis.server.usage().rss_bytes > 1_000_000
        assert {end["tcp_nodelay"] for end in redis.server.accepted()} == {True}


def _serve(end: Link) -> bool:
    """Do one turn of a component's loop at this end. Returns False, so that the caller goes on until PeerGone."""
    end.wait(0)
    end.receive(FrameBatch())
    return False


def test_the_death_of_the_server_is_noticed_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Redis().start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        with joined(running.url) as ends:
            assert isinstance(running.server, PrivateServer)
            psutil.Process(running.server.pid).kill()
            for end in ends:
                with pytest.raises(PeerGone, match=r"the Redis server at 127\.0\.0\.1:[0-9]+ went away"):
                    until(partial(_serve, end), "the server's death", poll_s=0.01)
            with pytest.raises(OSError, match=r"Invalid argument|process"):
                running.server.usage()
    assert not (tmp_path / "server").exists()


def test_the_server_ends_with_its_starter_even_if_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "server")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        processes = [psutil.Process(int(number)) for number in starter.stdout.readline().split()]
        starter.kill()
    assert len(processes) == 2
    for process in processes:
        until(lambda: is_gone(process), "the end of the server and its keeper")  # noqa: B023


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "redis-server"))
    with pytest.raises(NotInstalled, match=f"{VARIABLE} names .*redis-server, which is no program"):
        Redis().installed()


def test_a_program_that_is_another_is_quoted_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho I am somebody else\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    with (
        pytest.raises(
            ServerDidNotStart, match="Redis ended with exit code 0 while it started; it said last:\nI am somebody else"
        ),
        Redis().start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()),
    ):
        pass
    assert not (tmp_path / "server").exists()


def test_nagle_at_the_server_is_refused_in_words(tmp_path: Path) -> None:
    with (
        pytest.raises(TransportError, match="always sets TCP_NODELAY"),
        Redis().start(tmp_path / "server", process_group=None, nodelay=False, where=ServerPlace()),
    ):
        pass


def test_the_record_says_when_streams_are_synced(redis: RunningBroker) -> None:
    probe = Redis().probe(redis.url, [Address.parse(redis.url, "a-run")])
    assert (probe.facts["product"], probe.facts["sync"]) == ("Redis", "everysec")
    probe.close()


def test_a_private_server_syncs_as_its_url_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncing = Redis().with_options({"sync": "always"})
    with syncing.start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        probe = Redis().probe(running.url, [Address.parse(running.url, "a-run")])
        assert probe.facts["sync"] == "always"
        probe.close()


@pytest.mark.parametrize("name", ["plain", "o'brien", 'dq"x', "back\\slash", "new\nline", "\udcff"], ids=ascii)
def test_a_server_works_in_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    """A quote ended redis.conf's text too early, and bytes that are no UTF-8 ended in a traceback."""
    folder = tmp_path / name / "server"
    with Redis().start(folder, process_group=None, nodelay=True, where=ServerPlace()):
        assert (folder / "appendonlydir").exists() or list(folder.glob("*.aof"))
    assert not folder.exists()


def test_a_sync_without_streams_is_refused_since_nothing_is_kept() -> None:
    with pytest.raises(BadAddress, match="a channel keeps nothing, so sync has no effect: add kind=stream"):
        Redis().check(Address.parse("redis://127.0.0.1:6379?sync=always", ""))
    Redis().check(Address.parse("redis://127.0.0.1:6379?kind=stream&sync=always", ""))
