"""A NATS server that all tests of this folder share, and fake servers that send the lines that a test gives them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from transports.declaration import RunningBroker
from transports.nats.connection import PASSWORD


@pytest.fixture
def nats(brokers: Callable[[str], RunningBroker], monkeypatch: pytest.MonkeyPatch) -> RunningBroker:
    """The server that all tests share, with its password in the environment."""
    running = brokers("nats")
    monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
    return running


@contextlib.contextmanager
def server_that_sends(*lines: bytes) -> Iterator[str]:
    """The URL of a server that sends the first line on connect, then one line after each line received, then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client, client.makefile("rb") as received:
                for line in lines:
                    client.sendall(line)
                    received.readline()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"nats://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)
