"""Questions and answers, one at a time, over every transport; compiled where one has that."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.transports.conftest import carry, deadline_ns, joined
from transports.base import Link, PeerGone
from transports.frames import LONGEST_FRAME, FrameBatch

SIZES = (0, 1, 64, 70_000, LONGEST_FRAME)
EACH = 3


@contextmanager
def echoing(link: Link, most: int) -> Iterator[list[int]]:
    """What comes there goes back, from a thread of its own; how many in the end."""
    echoed: list[int] = []

    def echo() -> None:
        done, batch = 0, FrameBatch(1, LONGEST_FRAME, LONGEST_FRAME)
        while done < most and time.monotonic_ns() < until_ns:
            done += link.echo(batch, most - done, time.monotonic_ns() + 50_000_000)
        echoed.append(done)

    until_ns = deadline_ns()
    thread = threading.Thread(target=echo)
    thread.start()
    yield echoed
    thread.join()


def body(size: int, number: int) -> bytes:
    return bytes([number + 1]) * size


def test_every_answer_is_what_was_asked(url: str) -> None:
    with joined(url) as (listener, connector), echoing(listener, EACH * len(SIZES)) as echoed:
        for size in SIZES:
            for number in range(EACH):
                answer = FrameBatch(1, LONGEST_FRAME, LONGEST_FRAME)
                began_ns = time.monotonic_ns()
                took_ns = connector.ask(FrameBatch.of(body(size, number)), answer, deadline_ns())
                assert 0 < took_ns <= time.monotonic_ns() - began_ns
                assert list(answer) == [body(size, number)]
    assert echoed == [EACH * len(SIZES)]


def test_the_listener_may_ask_as_well(url: str) -> None:
    with joined(url) as (listener, connector), echoing(connector, 1):
        answer = FrameBatch(1)
        assert listener.ask(FrameBatch.of(b"question"), answer, deadline_ns()) > 0
        assert list(answer) == [b"question"]


def test_no_answer_in_time_is_0_and_one_that_comes_later_is_not_lost(url: str) -> None:
    with joined(url) as (listener, connector):
        answer, asked = FrameBatch(1), FrameBatch(1)
        assert connector.ask(FrameBatch.of(b"question"), answer, time.monotonic_ns() + 1_000_000) == 0
        assert answer.count == 0
        while not listener.receive(asked):
            listener.wait(deadline_ns())
        assert list(asked) == [b"question"]
        assert list(carry(listener, connector, asked)) == [b"question"]


def test_several_at_once_all_come_back_in_order(url: str) -> None:
    frames = [body(64, number) for number in range(20)]
    with joined(url) as (listener, connector), echoing(listener, len(frames)):
        sent, outgoing, back = 0, FrameBatch.of(*frames), FrameBatch(len(frames))
        while back.count < len(frames):
            sent = connector.send(outgoing, sent) if sent < len(frames) else sent
            connector.receive(back)
            connector.wait(time.monotonic_ns() + 1_000_000)
        assert list(back) == frames


def test_nothing_to_echo_is_over_in_time(url: str) -> None:
    with joined(url) as (listener, _):
        began_ns = time.monotonic_ns()
        assert listener.echo(FrameBatch(1), 5, began_ns + 1_000_000) == 0
        assert time.monotonic_ns() - began_ns < 2_000_000_000


def test_who_asks_a_peer_that_left_is_told(url: str) -> None:
    if url.startswith(("amqp", "zeromq+inproc")):
        pytest.skip("neither a broker nor inproc says that the other side has left")

    def ask_for_long(link: Link) -> None:
        for _ in range(100):
            link.ask(FrameBatch.of(b"question"), FrameBatch(1), time.monotonic_ns() + 20_000_000)

    with joined(url) as (listener, connector):
        connector.close()
        with pytest.raises(PeerGone):
            ask_for_long(listener)
