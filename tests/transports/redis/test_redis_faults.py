"""Faults of a private Redis server: it starts again over its files, blocks publishers, and closes connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.broker import is_gone
from tests.transports.conftest import TOKEN, deadline_ns, joined, serve_links_until
from transports.base import Address, BadAddress, PeerGone
from transports.declaration import BreakableServer, RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.redis import connection
from transports.redis.connection import PASSWORD
from transports.redis.server import PrivateRedis, Redis
from transports.registry import listen


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningBroker]:
    """A server of the test's own that syncs before it confirms."""
    broker = Redis().with_options({"sync": "always"})
    with broker.start(tmp_path / "server", None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        yield running


def server_of(running: RunningBroker) -> PrivateRedis:
    assert isinstance(running.server, PrivateRedis)
    assert isinstance(running.server, BreakableServer)
    return running.server


def test_what_a_stream_has_confirmed_survives_the_server_s_restart(own: RunningBroker) -> None:
    url = f"{own.url}?kind=stream"
    server = server_of(own)
    first = psutil.Process(server.pid)
    cpu_ns = server.cpu_ns()
    with joined(url) as (listener, connector):
        frames = FrameBatch.of(b"1", b"2", b"3")
        assert connector.send(frames, 0) == 3
        assert connector.drain(deadline_ns())
        server.restart()
        for end in (listener, connector):
            with pytest.raises(PeerGone, match=r"the Redis server at .* went away"):
                serve_links_until(lambda end=end: end.wait(time.monotonic_ns()) or end.receive(FrameBatch()) < 0)
    assert is_gone(first)
    assert server.facts()["pid"] == server.pid != first.pid
    assert server.cpu_ns() > cpu_ns
    assert server.usage().cpu_ns > cpu_ns
    next_one = listen(url, TOKEN)
    batch = FrameBatch()
    serve_links_until(lambda: next_one.receive(batch) >= 0 and batch.count >= 3, next_one)
    assert list(batch)[-3:] == [b"1", b"2", b"3"]
    next_one.close()


def test_publishers_wait_while_they_are_blocked(own: RunningBroker) -> None:
    server = server_of(own)
    with joined(own.url) as (listener, connector):
        server.block_publishers()
        connector.send(FrameBatch.of(b"waits"), 0)
        assert not connector.drain(time.monotonic_ns() + 50_000_000)
        batch = FrameBatch()
        assert listener.receive(batch) == 0
        server.unblock_publishers()
        serve_links_until(lambda: listener.receive(batch) > 0, listener, connector)
        assert list(batch) == [b"waits"]


def test_closed_connections_are_named_at_both_ends(own: RunningBroker) -> None:
    server = server_of(own)
    with joined(own.url) as ends:
        server.close_connections()
        for end in ends:
            with pytest.raises(PeerGone, match="it closed the connection"):
                serve_links_until(lambda end=end: end.wait(time.monotonic_ns()) or end.receive(FrameBatch()) < 0)


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_question_s(
    own: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher took the list of a SCAN for the answer to CONFIG GET, and ended with a stack trace."""
    server = psutil.Process(server_of(own).pid)
    probe = Redis().probe(own.url, [Address.parse(own.url, TOKEN)])
    with joined(f"{own.url}?kind=stream"):
        server.suspend()
        with monkeypatch.context() as patience:
            patience.setattr(connection, "ANSWER_S", 0.05)
            with pytest.raises(BadAddress, match=r"the Redis server at .* sent no answer within 0\.05 s"):
                probe.depth()
        assert probe.facts["sync"] == "always"
        server.resume()
        assert len(probe.depth()) == 2
    probe.close()


def test_a_server_that_is_gone_is_an_oserror(own: RunningBroker) -> None:
    server = server_of(own)
    psutil.Process(server.pid).kill()
    for fault in (server.close_connections, server.block_publishers, server.restart):
        with pytest.raises(OSError, match=r"refused|reset|process|Invalid"):
            fault()
