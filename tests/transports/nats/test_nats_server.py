"""A private NATS server: where it is found, what it says of itself, and that nothing of it is left, however it ends."""

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
from transports.nats.connection import PASSWORD
from transports.nats.server import VARIABLE, Nats
from transports.servers.private import PrivateServer
from transports.servers.starting import ServerDidNotStart

STARTER = """
import sys, time
from pathlib import Path
from transports.declaration import ServerPlace
from transports.nats.server import Nats
with Nats().start(Path(sys.argv[1]), process_group=None, nodelay=True, where=ServerPlace()) as running:
    print(running.server.pid, running.server.keeper.pid, flush=True)
    time.sleep(600)
"""


def test_a_private_server_is_measured_and_says_its_version(nats: RunningBroker) -> None:
    assert isinstance(nats.server, PrivateServer)
    with joined(nats.url):
        facts = nats.server.facts()
        assert facts["product"] == "NATS"
        assert facts["version"][0].isdecimal()
        assert nats.server.cpu_ns() > 0
        assert nats.server.usage().rss_bytes > 1_000_000
        assert {end["tcp_nodelay"] for end in nats.server.accepted()} == {True}


def takes_turn(end: Link) -> bool:
    """Let the end do its work. Return False: the end of the wait is the error that the link raises."""
    end.wait(0)
    end.receive(FrameBatch())
    return False


def test_the_death_of_the_server_is_noticed_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Nats().start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        with joined(running.url) as ends:
            assert isinstance(running.server, PrivateServer)
            psutil.Process(running.server.pid).kill()
            for end in ends:
                with pytest.raises(PeerGone, match=r"the NATS server at 127\.0\.0\.1:[0-9]+ went away"):
                    until(partial(takes_turn, end), "the server's death", poll_s=0.01)
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
        until(partial(is_gone, process), "the end of the server and its keeper")


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nats-server"))
    with pytest.raises(NotInstalled, match=f"{VARIABLE} names .*nats-server, which is no program"):
        Nats().installed()


def test_a_program_that_is_another_is_quoted_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho I am somebody else\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    with (
        pytest.raises(
            ServerDidNotStart, match="NATS ended with exit code 0 while it started; it said last:\nI am somebody else"
        ),
        Nats().start(tmp_path / "server", process_group=None, nodelay=True, where=ServerPlace()),
    ):
        pass
    assert not (tmp_path / "server").exists()


def test_nagle_at_the_server_is_refused_in_words(tmp_path: Path) -> None:
    with (
        pytest.raises(TransportError, match="always sets TCP_NODELAY"),
        Nats().start(tmp_path / "server", process_group=None, nodelay=False, where=ServerPlace()),
    ):
        pass


def test_a_sync_without_streams_is_refused_since_nothing_is_kept() -> None:
    with pytest.raises(BadAddress, match="core NATS keeps nothing, so sync has no effect: add delivery=durable"):
        Nats().check(Address.parse("nats://127.0.0.1:4222?sync=always", ""))
    Nats().check(Address.parse("nats://127.0.0.1:4222?delivery=durable&sync=always", ""))
