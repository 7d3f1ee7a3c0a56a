"""Questions and answers, one at a time, over every transport; compiled where one has that."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe

import numpy as np
import pytest

from exchange_simulation.messaging.session import Session, Silence
from tests.transports.conftest import carry, deadline_ns, joined
from transports.base import Link, PeerGone
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.registry import has_broker

PATIENCE_S = 20.0
SIZES = (0, 1, 64, 70_000, LONGEST_FRAME)
EACH = 3


def session_of(link: Link, patience_s: float = PATIENCE_S) -> Session:
    """A session whose launcher says nothing."""
    return Session([link], Pipe()[0], patience_s)


@contextmanager
def echoing(link: Link, most: int) -> Iterator[list[int]]:
    """Echo what comes over the link, in a thread; yields a list that gets the number of echoes in the end."""
    echoed: list[int] = []

    def echo() -> None:
        done, batch = 0, FrameBatch(1, LONGEST_FRAME, LONGEST_FRAME)
        while done < most and time.monotonic_ns() < until_ns:
            done += session_of(link).echo(batch, most - done)
        link.drain(until_ns)
        echoed.append(done)

    until_ns = deadline_ns()
    thread = threading.Thread(target=echo)
    thread.start()
    yield echoed
    thread.join()


def body(size: int, number: int) -> bytes:
    return bytes([number + 1]) * size


def ask(link: Link, *questions: bytes, patience_s: float = PATIENCE_S) -> tuple[list[bytes], list[int]]:
    """The answers that came in time, and how long each took."""
    batch = FrameBatch.of(*questions)
    answers = FrameBatch(len(questions), (len(questions) + 1) * LONGEST_FRAME, LONGEST_FRAME)
    took_ns = np.zeros(len(questions), np.int64)
    with contextlib.suppress(Silence):
        session_of(link, patience_s).ask(batch, answers, took_ns)
    assert batch.count == len(questions)
    return list(answers), took_ns[: answers.count].tolist()


def test_every_answer_is_what_was_asked(url: str) -> None:
    with joined(url) as (listener, connector), echoing(listener, EACH * len(SIZES)) as echoed:
        for size in SIZES:
            questions = [body(size, number) for number in range(EACH)]
            began_ns = time.monotonic_ns()
            answers, took_ns = ask(connector, *questions)
            assert answers == questions
            assert min(took_ns) > 0
            assert sum(took_ns) <= time.monotonic_ns() - began_ns
    assert echoed == [EACH * len(SIZES)]


def test_batch_after_batch_each_question_gets_its_own_answer(url: str) -> None:
    with joined(url) as (listener, connector), echoing(listener, 10 * EACH):
        for batch in range(10):
            questions = [body(batch * size, number) for number, size in enumerate((1, 100, 10_000))]
            assert ask(connector, *questions)[0] == questions


def test_the_listener_may_ask_as_well(url: str) -> None:
    with joined(url) as (listener, connector), echoing(connector, 2):
        assert ask(listener, b"one", b"two")[0] == [b"one", b"two"]


def test_the_next_is_not_asked_before_the_answer_is_there(url: str) -> None:
    with joined(url) as (listener, connector):
        assert ask(connector, b"one", b"two", patience_s=0.001) == ([], [])
        asked = FrameBatch(2)
        while not listener.receive(asked):
            listener.wait(deadline_ns())
        assert list(asked) == [b"one"]


def test_who_answers_twice_is_found_out_at_the_first_question() -> None:
    class Twice(Link):
        """Answers what it is asked, and once more."""

        asked = 0

        def send(self, batch: FrameBatch, first: int) -> int:
            self.asked += batch.count - first
            return batch.count

        def receive(self, batch: FrameBatch) -> int:
            batch.append(b"answer")
            batch.append(b"answer")
            return 2

        def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
            raise AssertionError("there was something")

        def close(self, linger_s: float = 1.0) -> None:
            pass

    link, answers, took_ns = Twice(), FrameBatch(3), np.zeros(3, np.int64)
    with pytest.raises(Silence, match="more than one answer came to question 1 of 3"):
        session_of(link).ask(FrameBatch.of(b"one", b"two", b"three"), answers, took_ns)
    assert (link.asked, np.count_nonzero(took_ns)) == (1, 1)


def test_no_room_for_all_answers_is_a_mistake_of_the_caller(url: str) -> None:
    with joined(url) as (_, connector), pytest.raises(ValueError, match="no room for 2 answers"):
        session_of(connector).ask(FrameBatch.of(b"one", b"two"), FrameBatch(1), np.zeros(2, np.int64))


def test_an_answer_that_comes_later_is_not_lost(url: str) -> None:
    with joined(url) as (listener, connector):
        assert ask(connector, b"question", patience_s=0.001) == ([], [])
        asked = FrameBatch(1)
        while not listener.receive(asked):
            listener.wait(deadline_ns())
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
        assert session_of(listener).echo(FrameBatch(1), 5) == 0
        assert time.monotonic_ns() - began_ns < 2_000_000_000


def test_who_asks_a_peer_that_left_is_told(url: str) -> None:
    if has_broker(url) or url.startswith("zeromq+inproc"):
        pytest.skip("neither a broker nor inproc says that the other side has left")

    def ask_for_long(link: Link) -> None:
        for _ in range(100):
            ask(link, b"question", patience_s=0.02)

    with joined(url) as (listener, connector):
        connector.close()
        with pytest.raises(PeerGone):
            ask_for_long(listener)
