"""Strangers at a TCP listener: however many say nothing, whoever shows the token gets in."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from tests.transports.conftest import TOKEN, connect_while_serving, greet, until
from transports.base import Link
from transports.registry import listen
from transports.tcp import door


@pytest.fixture
def listener() -> Iterator[Link]:
    link = listen("tcp://127.0.0.1:0", TOKEN)
    yield link
    link.close()


@contextlib.contextmanager
def strangers(link: Link, count: int) -> Iterator[list[socket.socket]]:
    """Sockets made beforehand, to connect when the test says so."""
    with contextlib.ExitStack() as held:
        yield [held.enter_context(socket.socket()) for _ in range(count)]


def knock(link: Link, sockets: list[socket.socket]) -> None:
    host, port = link.url.removeprefix("tcp://").split(":")
    for sock in sockets:
        sock.connect((host, int(port)))


@contextlib.contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """No more than so many descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as held:
        free = [held.enter_context(open(os.devnull)) for _ in range(count)]
        highest = max(each.fileno() for each in free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_strangers_who_take_every_descriptor_are_refused_and_counted(listener: Link) -> None:
    with strangers(listener, 20) as sockets:
        with descriptors_left(5):
            knock(listener, sockets)
            until(lambda: listener.refused == 20, listener)
        peer = connect_while_serving(listener)
        greet(peer, listener)
        peer.close()


def test_a_listener_without_descriptors_waits_and_does_not_spin(listener: Link) -> None:
    with strangers(listener, 1) as sockets:
        with descriptors_left(1), open(os.devnull):
            knock(listener, sockets)
            listener.wait(time.monotonic_ns() + 1_000_000)
            end_ns, calls = time.monotonic_ns() + 50_000_000, 0
            while time.monotonic_ns() < end_ns:
                listener.wait(end_ns)
                calls += 1
            assert calls <= 20
        until(lambda: listener.refused == 1, listener)


def test_no_more_newcomers_are_kept_than_the_door_has_places(listener: Link) -> None:
    kept = len(os.listdir("/proc/self/fd"))
    with strangers(listener, door.MOST_CANDIDATES + 10) as sockets:
        knock(listener, sockets)
        until(lambda: listener.refused == len(sockets), listener)
        assert len(os.listdir("/proc/self/fd")) - kept - len(sockets) == door.MOST_CANDIDATES


def test_who_shows_nothing_in_time_is_refused(listener: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CANDIDATE_NS", 1)
    with strangers(listener, 1) as sockets:
        knock(listener, sockets)
        sockets[0].settimeout(0)

        def shown_the_door() -> bool:
            with contextlib.suppress(BlockingIOError):
                return sockets[0].recv(1) == b""
            return False

        until(shown_the_door, listener)
        assert listener.refused == 1


def test_300_strangers_who_come_before_the_listener_looks_keep_nobody_out(listener: Link) -> None:
    with strangers(listener, 300) as crowd:
        for sock in crowd:
            sock.settimeout(0.5)  # less than the second after which a lost attempt is made again
        knock(listener, crowd)
        with contextlib.closing(connect_while_serving(listener)) as connector:
            greet(connector, listener)
