"""What a user's broker asks of its clients reaches components and roles on hosts that do not have it."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.exchange_command import VALID_STATUSES, Running, exchange
from tests.exchange_simulation.launching.hosts.conftest import table
from tests.machine import lacks
from tests.transports.amqp.tls_listener import Secured, tls_listener
from transports.amqp.address import CA_FILE, PASSWORD, PASSWORD_FILE
from transports.declaration import RunningBroker, ServerPlace
from transports.rabbitmq import Node, NodeSettings, private_node

LOAD = ("--rate", 1000, "--orders", 2000, "--seed", 7)
VARIABLES = (PASSWORD, PASSWORD_FILE, CA_FILE, "EXCHANGE_NATS_PASSWORD", "EXCHANGE_REDIS_PASSWORD")


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder for files of the user, which is empty on the other host."""
    folder = tmp_path / "given"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def host_without(given: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes the file of a run or benchmark with one role on another host."""

    def write(role: str) -> Path:
        return hosts_file_without(given, role, tmp_path)

    return write


def hosts_file_without(folder: Path, role: str, tmp_path: Path) -> Path:
    """Write a hosts file. On the role's host the folder is empty, and the user has set no variable of a broker."""
    empty = tmp_path / "empty"
    empty.mkdir()
    hide = f'mount --bind {empty} {folder} && exec "$@"'
    unset = [word for name in VARIABLES for word in ("-u", name)]
    before = ["unshare", "--mount", "sh", "-c", hide, "sh", "env", *unset]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        lacks("mount namespaces")
    path = tmp_path / "hosts.toml"
    path.write_text(table(role, shlex.join(before), "127.0.0.1"))
    return path


def command_lines() -> str:
    """Return the command lines of all processes of this machine."""
    lines = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            lines.append(shlex.join(process.cmdline()))
    return "\n".join(lines)


def finish_without_showing(secret: str, run: Running) -> None:
    """Let the run end in order. Its secret is in no command line, output or file."""
    run.wait_until_under_way()
    arguments = command_lines()
    finished = run.finish()
    assert finished.code == 0, finished.err
    assert finished.record["status"] in VALID_STATUSES
    assert run.folder.name in arguments
    assert secret not in arguments + finished.out + finished.err
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("scheme", ["amqp", "nats", pytest.param("redis", marks=pytest.mark.long)])
def test_the_password_of_a_users_broker_reaches_the_other_hosts(
    scheme: str,
    brokers: Callable[[str], RunningBroker],
    host_without: Callable[[str], Path],
    running: Callable[..., Running],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = brokers(scheme)
    [(variable, password)] = broker.environment.items()
    monkeypatch.setenv(variable, password)
    run = running("--hosts", host_without("engine"), "--transport", broker.url, *LOAD)
    finish_without_showing(password, run)


@pytest.fixture
def secured(rabbitmq_node: Node, given: Path) -> Iterator[Secured]:
    with tls_listener(rabbitmq_node, given) as secured:
        yield secured


@pytest.fixture
def password_in_file(secured: Secured, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the password, and the certificate of the broker's authority, as files in the hidden folder."""
    password = given / "password"
    password.write_text(f"{secured.node.password}\n")
    password.chmod(0o600)
    monkeypatch.setenv(PASSWORD_FILE, str(password))
    monkeypatch.setenv(CA_FILE, str(secured.authority.certificate))


def address_of(secured: Secured) -> str:
    """Return the broker's address, without the options of links."""
    return secured.url().partition("?")[0]


@pytest.mark.usefixtures("password_in_file")
def test_files_of_a_users_broker_are_copied_to_the_other_hosts(
    secured: Secured, host_without: Callable[[str], Path], running: Callable[..., Running]
) -> None:
    run = running("--hosts", host_without("engine"), "--transport", address_of(secured), *LOAD)
    finish_without_showing(secured.node.password, run)


@pytest.mark.usefixtures("password_in_file")
def test_roles_of_a_benchmark_get_the_password_and_the_files_too(
    secured: Secured, host_without: Callable[[str], Path], tmp_path: Path
) -> None:
    words = ("--sizes", 64, "--count", 20_000, "--repeats", 1, "--keep-noisy", "--name", "bench")
    over = ("--hosts", host_without("consumer"), "--transport", address_of(secured), "--results", tmp_path / "results")
    finished = exchange("bench", "de-spsc", *words, *over)
    assert finished.code == 0, finished.err
    record = json.loads((tmp_path / "results" / "bench" / "bench.json").read_bytes())
    [repeat] = record["rows"][0]["repeats"]
    assert repeat["roles"]["consumer"]["received"] == 20_000


def test_keys_in_the_address_of_a_users_broker_are_copied_to_the_other_hosts(
    keys: Path, running: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = hosts_file_without(keys, "engine", tmp_path)
    with private_node(tmp_path / "node", None, NodeSettings(keys=str(keys)), ServerPlace(keys=keys)) as node:
        monkeypatch.setenv(PASSWORD, node.password)
        run = running("--hosts", hosts, "--transport", f"{node.url}/%2F?keys={keys}", *LOAD)
        finish_without_showing(node.password, run)
