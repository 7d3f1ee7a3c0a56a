"""Faults in runs whose components are behind a real sshd: their relays kill and stop them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange_command import exchange, exchange_in_process
from tests.exchange_simulation.launching.hosts.conftest import table
from tests.machine import until
from tests.ssh_server import SshServer

REPORTER_HERE = "[reporter]\naddress = '127.0.0.1'\n"


def cells(folder: Path, hosts: Path, faults: str) -> dict[str, dict[str, Any]]:
    """Run these faults over tcp and these hosts; return their entries in the record."""
    words = ("--quick", "--transports", "tcp", "--faults", faults, "--hosts", hosts, "--results", folder)
    finished = exchange("faults", *words, "--name", "faults")
    assert finished.code == 0, finished.err
    record = json.loads((folder / "faults" / "faults.json").read_bytes())
    return {cell["fault"]: cell for cell in record["cells"]}


@pytest.fixture
def behind_ssh(sshd: SshServer, tmp_path: Path) -> Path:
    path = tmp_path / "hosts.toml"
    elsewhere = table("gateway", sshd.command_prefix, "127.0.0.1") + table("engine", sshd.command_prefix, "127.0.0.1")
    path.write_text(elsewhere + REPORTER_HERE)
    return path


def test_components_on_other_hosts_are_killed_and_stopped(behind_ssh: Path, sshd: SshServer, tmp_path: Path) -> None:
    faults = "gateway-kill,engine-kill,engine-stop,reporter-kill,connection-reset,delay"
    found = cells(tmp_path / "r", behind_ssh, faults)
    assert found["engine-kill"]["said"] == "the engine was killed by SIGKILL"
    assert found["gateway-kill"]["said"] == "the gateway was killed by SIGKILL"
    assert found["reporter-kill"]["said"] == "the reporter was killed by SIGKILL"
    assert found["engine-stop"]["orders"]["unreported"] == 0
    assert found["engine-stop"]["without_service_s"] > 0.8, "the engine was stopped for 1 s"
    assert found["engine-stop"]["came_back"]
    assert "and the gateway is on ssh " in found["connection-reset"]["skipped"]
    assert found["delay"]["skipped"].endswith("which does not go together with --hosts")
    until(lambda: not sshd.sessions(), "the end of all sessions")


def test_faults_at_the_broker_are_skipped_over_hosts(behind_ssh: Path, tmp_path: Path) -> None:
    words = ("--transports", "nats", "--faults", "broker-kill,connection-reset", "--hosts", behind_ssh)
    finished = exchange("faults", "--quick", *words, "--results", tmp_path / "r", "--name", "faults")
    assert finished.code == 1, "no fault could be tried"
    record = json.loads((tmp_path / "r" / "faults" / "faults.json").read_bytes())
    for cell in record["cells"]:
        assert cell["skipped"].endswith("over --hosts each run starts its broker itself")


@pytest.mark.parametrize("separator", [(), ("--",)], ids=["option of faults", "option of its runs, after --"])
def test_the_reporter_must_be_on_this_host(separator: tuple[str, ...], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("[reporter]\nbefore = 'ssh a'\naddress = 'a'\n")
    words = (*separator, "--hosts", hosts)
    finished = exchange_in_process(
        "faults", "--transports", "tcp", "--faults", "engine-kill", "--results", tmp_path / "r", *words
    )
    assert finished.code == 2
    assert "faults reads the spool of the reporter while the run goes on, and that is on ssh a" in finished.err
    assert not (tmp_path / "r").exists()
