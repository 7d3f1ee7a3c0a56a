"""For tests that need a real RabbitMQ: one private node for all of them, and what the system says of a node."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from transports.rabbitmq import Node, RabbitMqMissing, private_node
from transports.rabbitmq.boot import find_server
from transports.sockets import borrowed

LEFT_OUT_BY = "EXCHANGE_TESTS_WITHOUT_RABBITMQ"
PATIENCE_S = 20.0


def need_rabbitmq() -> None:
    """Fail with one sentence where there is no RabbitMQ; leave the test out where that was asked for."""
    missing = _why_missing()
    if missing and os.environ.get(LEFT_OUT_BY) == "1":
        pytest.skip(missing)
    if missing:
        pytest.fail(f"{missing}; {LEFT_OUT_BY}=1 leaves this test out", pytrace=False)


def _why_missing() -> str | None:
    try:
        find_server()
    except RabbitMqMissing as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def rabbitmq_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A private node, shared: each test uses names of its own."""
    need_rabbitmq()
    with private_node(tmp_path_factory.mktemp("rabbitmq") / "a node") as node:
        yield node


def until(condition: Callable[[], bool], what: str) -> None:
    """Polled, since what is watched is another process."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, f"never happened: {what}"
        time.sleep(0.01)


def family(pid: int) -> list[psutil.Process]:
    """A node and what it started."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def is_gone(process: psutil.Process) -> bool:
    """A zombie is gone: only its parent, perhaps init, has not looked yet."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def is_listening(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def accepted_with_nodelay(pid: int, port: int) -> bool:
    """TCP_NODELAY of a socket that the node has accepted, asked of the node's own descriptor."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"AMQP\x00\x00\x09\x01")
        assert client.recv(1) == b"\x01"
        descriptor = next(
            found.fd for found in psutil.Process(pid).net_connections("tcp") if found.raddr == client.getsockname()
        )
        try:
            with borrowed(pid, descriptor) as accepted:
                return bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        except OSError as error:
            pytest.skip(f"another process's sockets cannot be asked here: {error}")


def files_others_may_touch(folder: Path) -> list[str]:
    return [str(file) for file in (folder, *folder.rglob("*")) if file.stat().st_mode & 0o077]
