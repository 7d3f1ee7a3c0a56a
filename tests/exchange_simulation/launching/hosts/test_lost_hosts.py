"""Hosts that go while a run is under way, and launchers that go: a record, a sentence, and nothing left behind."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.exchange_command import Running, processes_with_scratch
from tests.exchange_simulation.launching.hosts.conftest import table
from tests.machine import until
from tests.ssh_server import SshServer

LONG = ("--rate", 500, "--duration", 600, "--timeout", 2)
REPORTER_HERE = "[reporter]\naddress = '127.0.0.1'\n"
StartRun = Callable[..., Running]


def process_of(scratch: Path, *words: str) -> psutil.Process:
    """The process of the run's hosts whose command has these words, one after the other."""
    for process in processes_with_scratch(scratch):
        if " ".join(words) in " ".join(process.cmdline()):
            return process
    raise AssertionError(
        f"no process {words} among {[process.cmdline() for process in processes_with_scratch(scratch)]}"
    )


@pytest.fixture
def engine_behind_ssh(sshd: SshServer, tmp_path: Path, running: StartRun) -> Running:
    """A run under way whose engine is behind ssh. Processes on both sides have the run's folder for temporary files."""
    scratch = tmp_path / "scratch"
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", f"{sshd.command_prefix} env TMPDIR={scratch}", "127.0.0.1") + REPORTER_HERE)
    return running("--no-page", "--hosts", path, *LONG).wait_until_under_way()


def assert_nothing_is_left(run: Running) -> None:
    """No process of the run, on either side, and no file of theirs."""
    until(lambda: not processes_with_scratch(run.scratch), "the end of all processes on both sides")
    assert list(run.scratch.glob("exchange-*")) == []


def test_a_connection_that_is_cut_ends_the_run_with_a_record(engine_behind_ssh: Running, sshd: SshServer) -> None:
    sshd.cut_connections()
    finished = engine_behind_ssh.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert "the engine ended with exit code 255: see engine.log" in "; ".join(finished.record["reasons"])
    assert f"the host {sshd.command_prefix} env TMPDIR=" in "; ".join(finished.record["reasons"])
    assert " is gone: " in "; ".join(finished.record["reasons"])
    assert "Traceback" not in finished.err
    assert finished.record["counts"]["orders_sent"] > 0
    assert_nothing_is_left(engine_behind_ssh)


def test_a_component_that_is_killed_on_its_host_is_named_with_the_signal(engine_behind_ssh: Running) -> None:
    process_of(engine_behind_ssh.scratch, "engine", "--launched").kill()
    finished = engine_behind_ssh.finish()
    assert finished.code == 1
    assert "the engine was killed by SIGKILL" in finished.record["reasons"]
    assert_nothing_is_left(engine_behind_ssh)


@pytest.mark.parametrize("words", [("hosts", "relay"), ("hosts", "agent")])
def test_a_helper_that_is_killed_on_its_host_leaves_nothing(engine_behind_ssh: Running, words: tuple[str, str]) -> None:
    process_of(engine_behind_ssh.scratch, "bin/exchange", *words).kill()
    if words == ("hosts", "agent"):
        engine_behind_ssh.signal(signal.SIGINT)
    finished = engine_behind_ssh.finish()
    assert finished.record["status"] == "partial"
    assert "Traceback" not in finished.err
    assert_nothing_is_left(engine_behind_ssh)


def test_a_killed_launcher_leaves_nothing_on_either_side(engine_behind_ssh: Running) -> None:
    assert process_of(engine_behind_ssh.scratch, "engine", "--launched").is_running()
    engine_behind_ssh.signal(signal.SIGKILL)
    engine_behind_ssh.finish()
    assert_nothing_is_left(engine_behind_ssh)


def test_ctrl_c_reaches_a_gateway_on_another_host(sshd: SshServer, tmp_path: Path, running: StartRun) -> None:
    path = tmp_path / "hosts.toml"
    gateway = f"{sshd.command_prefix} env TMPDIR={tmp_path / 'scratch'}"
    path.write_text(table("gateway", gateway, "127.0.0.1") + REPORTER_HERE + "[engine]\naddress = '127.0.0.1'\n")
    run = running("--no-page", "--hosts", path, *LONG).wait_until_under_way()
    run.signal(signal.SIGINT)
    finished = run.finish()
    assert finished.code == 130
    assert "gateway: interrupted" in finished.record["reasons"], "its result came back"
    assert_nothing_is_left(run)


def names_of_processes(scratch: Path) -> list[str]:
    """Return the names of the processes that have this scratch folder; those that end meanwhile are left out."""
    names = []
    for process in processes_with_scratch(scratch):
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_host_that_does_not_answer_can_be_left(number: signal.Signals, tmp_path: Path, running: StartRun) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(table("engine", "sh -c 'sleep 600'", "127.0.0.1") + REPORTER_HERE)
    run = running("--no-page", "--hosts", path, *LONG)
    until(lambda: "sleep" in names_of_processes(run.scratch), "the prefix")
    run.signal(number)
    finished = run.finish()
    assert finished.code == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in finished.err
    assert_nothing_is_left(run)


@pytest.mark.long
def test_a_host_that_stops_is_not_waited_for_for_ever(engine_behind_ssh: Running) -> None:
    process_of(engine_behind_ssh.scratch, "bin/exchange", "hosts", "agent").suspend()
    engine_behind_ssh.signal(signal.SIGINT)
    finished = engine_behind_ssh.finish()
    assert finished.code == 130
    assert "is gone: it did not answer in time" in "; ".join(finished.record["reasons"])
    assert_nothing_is_left(engine_behind_ssh)


def test_ctrl_c_ends_components_on_hosts_in_band(engine_behind_ssh: Running) -> None:
    engine_behind_ssh.signal(signal.SIGINT)
    finished = engine_behind_ssh.finish()
    assert finished.code == 130
    record = finished.record
    assert record["counts"]["orders_received"] == record["counts"]["orders_sent"]
    assert "gateway: interrupted" in record["reasons"]
    assert_nothing_is_left(engine_behind_ssh)
