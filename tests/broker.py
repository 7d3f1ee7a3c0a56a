"""Real brokers for tests, a private one for each scheme, and facts about a node from the system."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.machine import lacks
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq
from transports.base import NotInstalled
from transports.declaration import RunningBroker, ServerPlace
from transports.keys import make_keys
from transports.rabbitmq import Node
from transports.rabbitmq.boot import find_server
from transports.registry import transport_of
from transports.sockets import borrowed_socket

shares_the_broker = pytest.mark.xdist_group("broker")
"""The mark of a parameter with which a test uses the fixture `brokers`."""

LEAVE_OUT_VARIABLE = "EXCHANGE_TESTS_WITHOUT_RABBITMQ"
LOG_ONLY_WARNINGS = "logger:set_primary_config(level, warning)"
"""An Erlang expression. Without it, the five log lines for each connection take a fifth of the node's CPU time."""


def need_rabbitmq() -> None:
    """Fail the test with a sentence if RabbitMQ is not installed; skip the test if LEAVE_OUT_VARIABLE is set."""
    with absence_of_broker_handled():
        find_server()


@contextlib.contextmanager
def absence_of_broker_handled() -> Iterator[None]:
    """Fail the test if a broker that starts in the context is not installed; skip it if LEAVE_OUT_VARIABLE is set."""
    try:
        yield
    except NotInstalled as missing:
        if os.environ.get(LEAVE_OUT_VARIABLE) == "1":
            lacks(str(missing))
        pytest.fail(f"{missing}; {LEAVE_OUT_VARIABLE}=1 leaves this test out", pytrace=False)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RunningBroker]]:
    """Return a function that starts the broker of a scheme. All tests share the broker, each with its own names."""
    with contextlib.ExitStack() as stack:

        @cache
        def running(scheme: str) -> RunningBroker:
            declared = transport_of(scheme).broker
            assert declared, f"{scheme} declares no broker that a test could start"
            folder = tmp_path_factory.mktemp("broker") / f"of {scheme}"
            with absence_of_broker_handled():
                broker = stack.enter_context(declared().start(folder, None, nodelay=True, where=ServerPlace()))
            if isinstance(broker.server, PrivateRabbitMq):
                broker.server.node.evaluate(LOG_ONLY_WARNINGS)
            return broker

        yield running


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `exchange keys` makes it."""
    try:
        return make_keys(tmp_path_factory.mktemp("keys") / "mine", days=2).folder
    except NotInstalled as missing:
        lacks(str(missing))


@pytest.fixture(scope="module")
def rabbitmq_node(brokers: Callable[[str], RunningBroker]) -> Node:
    """The private RabbitMQ that all tests share. Each module gets the current node, since a module may restart it."""
    server = brokers("amqp").server
    assert isinstance(server, PrivateRabbitMq)
    return server.node


@pytest.fixture
def at_broker(rabbitmq_node: Node, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the node that all tests share, with its password in the environment."""
    monkeypatch.setenv(PASSWORD, rabbitmq_node.password)
    return rabbitmq_node.url


@pytest.fixture
def no_standing_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's standing broker: the test looks for it in an empty folder."""
    need_rabbitmq()
    monkeypatch.setenv("EXCHANGE_BROKER_DIR", str(tmp_path / "no broker"))


def assert_is_ours_and_has_nagle_on(record: dict[str, Any]) -> None:
    """Assert that a run's record has a private broker, set with `--nagle broker`, whose CPU time was measured."""
    assert record["components"]["broker"]["cpu_s"] > 0
    assert record["broker"]["product"] == "RabbitMQ"
    assert record["broker"]["is_private"]
    assert record["settings"]["nagle"] == ["broker"]
    sockets = record["sockets"]
    roles = [end["component"] for end in sockets]
    assert roles == ["gateway", "engine", "reporter", "broker", "broker", "broker"]
    for end in sockets:
        assert end["tcp_nodelay"] is (end["component"] != "broker")


def family(pid: int) -> list[psutil.Process]:
    """Return the processes of a node: its own, and those that it started."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    """Return whether the process has ended. A zombie has ended: its parent has not waited for it yet."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def accepted_with_nodelay(pid: int, port: int) -> bool:
    """Return TCP_NODELAY of a socket that the node has accepted, read from the node's own descriptor."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        assert client.recv(1) == b"\x01"
        connections = psutil.Process(pid).net_connections("tcp")
        [accepted_end] = [connection for connection in connections if connection.raddr == client.getsockname()]
        descriptor = accepted_end.fd
        try:
            with borrowed_socket(pid, descriptor) as accepted:
                return bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        except OSError as error:
            pytest.skip(f"this system does not show another process's sockets: {error}")


def files_others_may_touch(folder: Path) -> list[str]:
    """Return the files of a folder, and the folder itself, that users other than the owner may read or change."""
    files = [folder, *folder.rglob("*")]
    return [str(file) for file in files if file.stat().st_mode & 0o077]
