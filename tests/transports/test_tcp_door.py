"""Strangers at a TCP listener: silent connections, even many, never keep out a peer with the token."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, connect_while_serving, deadline_ns, greet, serve_links_until
from transports.base import Link
from transports.registry import connect, listen
from transports.tcp import door


@pytest.fixture
def listener() -> Iterator[Link]:
    link = listen("tcp://127.0.0.1:0", TOKEN)
    yield link
    link.close()


@contextlib.contextmanager
def strangers(link: Link, count: int) -> Iterator[list[socket.socket]]:
    """Yield sockets that are not connected yet: `knock` connects them."""
    with contextlib.ExitStack() as closing:
        yield [closing.enter_context(socket.socket()) for _ in range(count)]


def knock(link: Link, sockets: list[socket.socket]) -> None:
    """Connect these sockets to the listener."""
    host, port = link.url.removeprefix("tcp://").split(":")
    for sock in sockets:
        sock.connect((host, int(port)))


@contextlib.contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open no more than this many further descriptors in the context."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as closing:
        free = [closing.enter_context(open(os.devnull)) for _ in range(count)]
        highest = max(file.fileno() for file in free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_strangers_that_take_every_descriptor_are_refused_and_counted(listener: Link) -> None:
    with strangers(listener, 20) as sockets:
        with descriptors_left(5):
            knock(listener, sockets)
            serve_links_until(lambda: listener.refused == 20, listener)
        peer = connect_while_serving(listener)
        greet(peer, listener)
        peer.close()


def test_a_listener_without_descriptors_waits_and_does_not_spin(listener: Link) -> None:
    with strangers(listener, 1) as sockets:
        with descriptors_left(1), open(os.devnull):
            knock(listener, sockets)
            listener.wait(time.monotonic_ns() + 1_000_000)
            end_ns = time.monotonic_ns() + 50_000_000
            calls = 0
            while time.monotonic_ns() < end_ns:
                listener.wait(end_ns)
                calls += 1
            assert calls <= 20
        serve_links_until(lambda: listener.refused == 1, listener)


def test_the_door_keeps_only_a_limited_number_of_candidates(listener: Link) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    with strangers(listener, door.MOST_CANDIDATES + 10) as sockets:
        knock(listener, sockets)
        serve_links_until(lambda: listener.refused == len(sockets), listener)
        kept_by_the_door = len(os.listdir("/proc/self/fd")) - open_before - len(sockets)
        assert kept_by_the_door == door.MOST_CANDIDATES


def test_a_stranger_without_a_token_in_time_is_refused(listener: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CANDIDATE_NS", 1)
    with strangers(listener, 1) as sockets:
        knock(listener, sockets)
        [stranger] = sockets
        stranger.settimeout(0)

        def is_disconnected() -> bool:
            try:
                return stranger.recv(1) == b""
            except BlockingIOError:
                return False

        serve_links_until(is_disconnected, listener)
        assert listener.refused == 1


def test_a_peer_that_compiles_before_its_tls_handshake_is_over_is_admitted(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(listen(f"tcp://127.0.0.1:0?keys={keys}", TOKEN)) as listener:
        monotonic_ns = time.monotonic_ns
        with contextlib.closing(connect(listener.url, TOKEN, deadline_ns())) as connector:
            serve_links_until(lambda: listener.refused == 1, listener)  # it has come, and has not shown the token
            monkeypatch.setattr(door.time, "monotonic_ns", lambda: monotonic_ns() + 45 * 10**9)
            listener.wait(0)
            greet(connector, listener)
        assert listener.refused == 0


def test_300_waiting_strangers_do_not_keep_out_a_peer(listener: Link) -> None:
    with strangers(listener, 300) as crowd:
        for sock in crowd:
            sock.settimeout(0.5)  # the kernel repeats a lost attempt after a second: none may be lost
        knock(listener, crowd)
        with contextlib.closing(connect_while_serving(listener)) as connector:
            greet(connector, listener)
