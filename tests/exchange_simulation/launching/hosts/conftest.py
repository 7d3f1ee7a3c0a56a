"""Hosts that are network namespaces of this machine, and hosts behind a real sshd."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.network import Network
from exchange_simulation.launching.network.probe import probe
from exchange_simulation.launching.network.profile import parse
from tests.machine import lacks
from tests.ssh_server import SshServer, ssh_server

EXCHANGE = Path(sys.executable).with_name("exchange")
WriteHosts = Callable[..., Path]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests of this folder in one process: they make networks and count processes."""
    item.add_marker(pytest.mark.xdist_group("network"))


def table(title: str, before: str, address: str) -> str:
    """A table of a hosts file."""
    return f"[{title}]\nbefore = {json.dumps(before)}\naddress = '{address}'\nexchange = '{EXCHANGE}'\n"


@pytest.fixture
def namespaces(tmp_path: Path) -> Iterator[WriteHosts]:
    """Yield a function that makes three hosts, joined by a network of this profile, and writes their file."""
    with ExitStack() as networks:

        def make(profile: str) -> Path:
            machine = probe()
            try:
                machine.mechanism(parse(profile))
            except UserError as refusal:
                leave_out = pytest.skip if machine.findings["tools"].works else lacks
                leave_out(refusal.message)
            network = networks.enter_context(Network.up(parse(profile)))
            tables = []
            for role, address in network.address.items():
                tables.append(table(role, shlex.join(network.prefix(role)), address))
            path = tmp_path / "hosts.toml"
            path.write_text("\n".join(tables))
            return path

        yield make


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[SshServer]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    with ssh_server(folder) as server:
        yield server


@pytest.fixture
def behind_ssh(sshd: SshServer, tmp_path: Path) -> Path:
    """The file of a run whose engine and reporter are behind sshd, and whose gateway is on this host."""
    path = tmp_path / "hosts.toml"
    path.write_text(
        table("engine", sshd.command_prefix, "127.0.0.1") + table("reporter", sshd.command_prefix, "127.0.0.1")
    )
    return path
