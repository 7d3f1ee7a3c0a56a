"""A Redis server that all tests of this folder share, and fake servers that answer as a test says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from transports.declaration import RunningBroker
from transports.redis.connection import PASSWORD

ABOUT = {"server": "redis", "version": "7.2.4", "role": "master"}
HELLO = b"%3\r\n" + b"".join(b"+%s\r\n+%s\r\n" % (name.encode(), value.encode()) for name, value in ABOUT.items())
"""The answer of a server that accepts our introduction."""


@pytest.fixture
def redis(brokers: Callable[[str], RunningBroker], monkeypatch: pytest.MonkeyPatch) -> RunningBroker:
    """The server that all tests share, with its password in the environment."""
    running = brokers("redis")
    monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
    return running


@contextlib.contextmanager
def server_that_answers(*answers: bytes, greeting: bytes = b"") -> Iterator[str]:
    """The URL of a server that answers the commands of every connection so, one answer for each; then it hangs up.

    It sends the greeting as soon as somebody connects.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError):
                client.sendall(greeting)
                for answer in answers:
                    if not client.recv(65536):
                        return
                    client.sendall(answer)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
