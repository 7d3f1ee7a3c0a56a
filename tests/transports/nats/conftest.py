"""A NATS server that all tests of this folder share, and fake ones that say what a test gives them."""

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
def server_that_says(*lines: bytes) -> Iterator[str]:
    """The URL of a server that says one line for each line that it hears, the first one at once, then hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            client, _ = door.accept()
            with client, client.makefile("rb") as heard:
                for line in lines:
                    client.sendall(line)
                    heard.readline()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"nats://127.0.0.1:{door.getsockname()[1]}"
        thread.join(10)
