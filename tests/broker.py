"""For tests that need a real RabbitMQ: one private node for all of them, and facts about a node from the system."""

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
from transports.declaration import RunningBroker, Where
from transports.keys import make_keys
from transports.rabbitmq import Node
from transports.rabbitmq.boot import find_server
from transports.registry import transport_of
from transports.sockets import borrowed_socket

shares_the_broker = pytest.mark.xdist_group("broker")
"""Marks a parameter with which a test asks for the fixture `brokers` while it runs."""

LEAVE_OUT_VARIABLE = "EXCHANGE_TESTS_WITHOUT_RABBITMQ"
LOG_ONLY_WARNINGS = "logger:set_primary_config(level, warning)"
"""Five lines about each of a thousand connections are a fifth of what a connection costs the node."""


def need_rabbitmq() -> None:
    """Fail with one sentence if there is no RabbitMQ, or leave the test out if the user asked for that."""
    with absence_of_broker_handled():
        find_server()


@contextlib.contextmanager
def absence_of_broker_handled() -> Iterator[None]:
    """If no broker is installed to start in the context, fail the test with one sentence, or leave the test out."""
    try:
        yield
    except NotInstalled as missing:
        if os.environ.get(LEAVE_OUT_VARIABLE) == "1":
            lacks(str(missing))
        pytest.fail(f"{missing}; {LEAVE_OUT_VARIABLE}=1 leaves this test out", pytrace=False)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RunningBroker]]:
    """Starts the broker of a scheme, the same for all tests: each test uses names of its own."""
    with contextlib.ExitStack() as stack:

        @cache
        def running(scheme: str) -> RunningBroker:
            declared = transport_of(scheme).broker
            assert declared, f"{scheme} declares no broker that a test could start"
            folder = tmp_path_factory.mktemp("broker") / f"of {scheme}"
            with absence_of_broker_handled():
                broker = stack.enter_context(declared().start(folder, None, nodelay=True, where=Where()))
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
    """The private RabbitMQ that all tests share. It is asked for in each module, since a module may restart it."""
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
    """Hide the broker that this user may have up: the test looks for a broker in an empty folder."""
    need_rabbitmq()
    monkeypatch.setenv("EXCHANGE_BROKER_DIR", str(tmp_path / "no broker"))


def assert_is_ours_and_has_nagle_on(record: dict[str, Any]) -> None:
    """Assert that a run's record has a private broker, set with `--nagle broker`, whose CPU time was measured."""
    assert record["components"]["broker"]["cpu_s"] > 0
    assert (record["broker"]["product"], record["broker"]["is_private"]) == ("RabbitMQ", True)
    assert record["settings"]["nagle"] == ["broker"]
    ends = ("gateway", "engine", "reporter", "broker", "broker", "broker")
    assert [(end["component"], end["tcp_nodelay"]) for end in record["sockets"]] == [
        (role, role != "broker") for role in ends
    ]


def family(pid: int) -> list[psutil.Process]:
    """Return the processes of a node: its own, and those that it started."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    """True if the process has ended. A zombie has ended too; only its parent has not waited for it yet."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def accepted_with_nodelay(pid: int, port: int) -> bool:
    """Return TCP_NODELAY of a socket that the node has accepted, read from the node's own descriptor."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        assert client.recv(1) == b"\x01"
        descriptor = next(
            connection.fd
            for connection in psutil.Process(pid).net_connections("tcp")
            if connection.raddr == client.getsockname()
        )
        try:
            with borrowed_socket(pid, descriptor) as accepted:
                return bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        except OSError as error:
            pytest.skip(f"another process's sockets cannot be asked here: {error}")


def files_others_may_touch(folder: Path) -> list[str]:
    return [str(file) for file in (folder, *folder.rglob("*")) if file.stat().st_mode & 0o077]
