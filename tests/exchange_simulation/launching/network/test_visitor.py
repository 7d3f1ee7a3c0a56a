"""Round trips are measured although datagrams get lost."""

from __future__ import annotations

import socket
import threading

import pytest

from exchange_simulation.launching.network import visitor
from tests.machine import PATIENCE_S


@pytest.fixture
def forgetful(monkeypatch):
    """A server that ignores the first questions, and answers the next; its port is the visitor's."""
    monkeypatch.setattr(visitor, "PATIENCE_S", 0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("127.0.0.1", 0))
        door.settimeout(PATIENCE_S)
        monkeypatch.setattr(visitor, "PORT", door.getsockname()[1])
        yield door


def test_a_lost_question_is_asked_again_and_not_timed(forgetful):
    """Only the question that was answered is timed."""

    def serve() -> None:
        for _ in range(2):
            forgetful.recvfrom(visitor.BYTES)
        while (question := forgetful.recvfrom(visitor.BYTES))[0]:  # more of them where answers come late
            forgetful.sendto(*question)

    server = threading.Thread(target=serve)
    server.start()
    assert len(visitor.ask("127.0.0.1", 4)) == 4
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.sendto(b"", forgetful.getsockname())
    server.join()


def test_a_server_that_never_answers_is_a_timeout(forgetful, monkeypatch):
    monkeypatch.setattr(visitor, "TRIES", 2)
    with pytest.raises(TimeoutError, match="not answered"):
        visitor.ask("127.0.0.1", 1)
