"""`exchange broker`, as a user types it: one node per user, that outlives its command, and nothing after stop."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.broker import accepted_with_nodelay, family, is_gone, is_listening, need_rabbitmq
from tests.exchange_command import FinishedCommand, exchange, exchange_in_process
from tests.machine import PATIENCE_S, until
from transports.rabbitmq import running_node


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of this test's standing node, which does not outlive the test."""
    folder = tmp_path / "a folder, whose name has blänks"
    monkeypatch.setenv("EXCHANGE_BROKER_DIR", str(folder))
    yield folder
    exchange_in_process("broker", "stop")


def broker(*words: str) -> FinishedCommand:
    """Only a start of a node needs a process of its own, which the node outlives."""
    outcome = (exchange if words[0] == "start" else exchange_in_process)("broker", *words)
    assert "Traceback" not in outcome.err
    return outcome


def status() -> dict:
    outcome = broker("status", "--json")
    assert outcome.code == 0, outcome.err
    return outcome.record


def test_it_starts_once_serves_several_runs_and_leaves_nothing(folder: Path) -> None:
    need_rabbitmq()
    with ThreadPoolExecutor(2) as two:
        both = list(two.map(lambda _: broker("start", "--no-nodelay", "--memory-mark", "0.3"), range(2)))
    assert [outcome.code for outcome in both] == [0, 0]
    assert sorted("already" in outcome.out for outcome in both) == [False, True]

    figures = status()
    node = running_node()
    assert node is not None
    assert (node.pid, node.port, node.url) == (figures["pid"], figures["port"], figures["url"])
    assert (node.host, node.user, node.vhost) == ("127.0.0.1", "exchange", "/")
    assert figures["settings"]["nodelay"] is False
    assert figures["settings"]["memory_mark"] == 0.3
    assert figures["cpu_s"] > 0
    assert 0 < figures["uptime_s"] < PATIENCE_S
    assert not accepted_with_nodelay(node.pid, node.port)
    assert os.getsid(node.pid) == node.pid, "it leads a session of its own"

    line = broker("status").out
    assert line.count("\n") == 1
    for shown in (node.url, f"pid {node.pid}", f"RabbitMQ {figures['version']}", "MB", "s of CPU", "up "):
        assert shown in line
    assert node.password not in line
    assert not any(
        node.password in word for process in psutil.process_iter(["cmdline"]) for word in process.info["cmdline"] or []
    )
    assert stat.S_IMODE((folder / "state.json").stat().st_mode) == 0o600

    assert exchange_in_process("broker", "start").code == 0
    refused = exchange_in_process("broker", "start", "--nodelay")
    assert refused.code == 2
    assert "a broker is up with nodelay False" in refused.err
    assert status()["pid"] == node.pid

    started = family(node.pid)
    assert len(started) > 1
    assert is_listening(node.port)
    assert "stopped" in broker("stop").out
    assert [process for process in started if not is_gone(process)] == []
    assert not is_listening(node.port)
    assert not folder.exists()
    assert running_node() is None


@pytest.mark.long
def test_start_reclaims_a_node_that_was_killed_and_one_that_was_lost(folder: Path) -> None:
    need_rabbitmq()
    broker("start")
    killed = psutil.Process(status()["pid"])
    (folder / "node" / "leftover").touch()
    killed.kill()
    until(lambda: is_gone(killed), "the node's end")
    assert broker("status").code == 1

    assert "is up after" in broker("start").out
    lost = family(status()["pid"])
    assert not (folder / "node" / "leftover").exists()
    (folder / "state.json").unlink()  # as if `start` had been killed before it could write it
    assert broker("status").code == 1
    assert not is_gone(lost[0])

    broker("stop")
    assert [process for process in lost if not is_gone(process)] == []
    assert not folder.exists()


def test_with_none_up_status_exits_with_1_and_stop_does_nothing(folder: Path) -> None:
    outcome = broker("status")
    assert (outcome.code, outcome.out) == (1, "")
    assert "`exchange broker start`" in outcome.err
    as_json = broker("status", "--json")
    assert (as_json.code, as_json.record) == (1, None)
    stopped = broker("stop")
    assert (stopped.code, stopped.out) == (0, "no broker was up\n")
    assert not folder.exists()


def test_a_state_file_that_names_a_recycled_pid_or_is_no_state_is_nobody(folder: Path) -> None:
    folder.mkdir()
    began_s = psutil.Process().create_time()
    about = {"version": "3", "settings": {}}
    address = {
        "host": "127.0.0.1",
        "port": 1,
        "user": "u",
        "password": "p",
        "vhost": "/",
        "pid": os.getpid(),
        "about": about,
    }
    state = folder / "state.json"
    state.write_text(json.dumps({"address": address, "began_s": began_s}))
    assert running_node() is not None
    state.write_text(json.dumps({"address": address, "began_s": began_s - 100}))
    assert running_node() is None
    for garbage in ("", "[]", '{"address": {}}', "\0"):
        state.write_text(garbage)
        assert running_node() is None


def test_what_cannot_be_is_one_sentence_and_exit_code_2(folder: Path) -> None:
    missing = exchange_in_process("broker", "start", EXCHANGE_RABBITMQ_SERVER="/nowhere/rabbitmq-server")
    assert (missing.code, missing.out) == (2, "")
    assert "`sudo apt-get install rabbitmq-server`" in missing.err
    assert not (folder / "node").exists()

    unusable = exchange_in_process("broker", "start", EXCHANGE_BROKER_DIR="/proc/nowhere")
    assert unusable.code == 2
    assert "cannot use /proc/nowhere" in unusable.err

    nonsense = exchange_in_process("broker", "start", "--memory-mark", "-1")
    assert nonsense.code == 2
    assert "memory_mark is -1.0" in nonsense.err
