"""Questions and answers, one at a time, over every transport; in compiled code if the link lends its calls."""

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
QUESTIONS_PER_SIZE = 3
UNUSED_PIPE = Pipe()


def session_of(link: Link, patience_s: float = PATIENCE_S) -> Session:
    """A session whose launcher sends no word: the other end of the pipe stays open, and nobody writes to it."""
    to_launcher, _launchers_end = UNUSED_PIPE
    return Session([link], to_launcher, patience_s)


@contextmanager
def echoing(link: Link, most: int) -> Iterator[list[int]]:
    """Send back up to `most` frames in a thread; yields a list that gets the number of these frames in the end."""
    echoed: list[int] = []
    until_ns = deadline_ns()

    def echo() -> None:
        count = 0
        batch = FrameBatch(1, LONGEST_FRAME, LONGEST_FRAME)
        while count < most and time.monotonic_ns() < until_ns:
            count += session_of(link).echo(batch, most - count)
        link.drain(until_ns)
        echoed.append(count)

    thread = threading.Thread(target=echo)
    thread.start()
    yield echoed
    thread.join()


def body(size: int, number: int) -> bytes:
    return bytes([number + 1]) * size


def ask(link: Link, *questions: bytes, patience_s: float = PATIENCE_S) -> tuple[list[bytes], list[int]]:
    """Ask the questions; returns (the answers that came in time, the times of their round trips in ns)."""
    batch = FrameBatch.of(*questions)
    answers = FrameBatch(len(questions), (len(questions) + 1) * LONGEST_FRAME, LONGEST_FRAME)
    took_ns = np.zeros(len(questions), np.int64)
    with contextlib.suppress(Silence):
        session_of(link, patience_s).ask(batch, answers, took_ns)
    assert batch.count == len(questions)
    return list(answers), took_ns[: answers.count].tolist()


def test_every_answer_equals_its_question(url: str) -> None:
    with joined(url) as (listener, connector), echoing(listener, QUESTIONS_PER_SIZE * len(SIZES)) as echoed:
        for size in SIZES:
            questions = [body(size, number) for number in range(QUESTIONS_PER_SIZE)]
            began_ns = time.monotonic_ns()
            answers, took_ns = ask(connector, *questions)
            assert answers == questions
            assert min(took_ns) > 0
            assert sum(took_ns) <= time.monotonic_ns() - began_ns
    assert echoed == [QUESTIONS_PER_SIZE * len(SIZES)]


def test_questions_of_many_batches_get_their_own_answers(url: str) -> None:
    with joined(url) as (listener, connector), echoing(listener, 10 * QUESTIONS_PER_SIZE):
        for batch in range(10):
            questions = [body(batch * size, number) for number, size in enumerate((1, 100, 10_000))]
            answers, _ = ask(connector, *questions)
            assert answers == questions


def test_the_listener_may_ask_as_well(url: str) -> None:
    with joined(url) as (listener, connector), echoing(connector, 2):
        assert ask(listener, b"one", b"two")[0] == [b"one", b"two"]


def test_a_question_waits_for_the_answer_to_the_one_before(url: str) -> None:
    with joined(url) as (listener, connector):
        assert ask(connector, b"one", b"two", patience_s=0.001) == ([], [])
        received = FrameBatch(2)
        while not listener.receive(received):
            listener.wait(deadline_ns())
        assert list(received) == [b"one"]


def test_two_answers_to_one_question_are_an_error() -> None:
    class LinkThatAnswersTwice(Link):
        asked = 0

        def send(self, batch: FrameBatch, first: int) -> int:
            self.asked += batch.count - first
            return batch.count

        def receive(self, batch: FrameBatch) -> int:
            batch.append(b"answer")
            batch.append(b"answer")
            return 2

        def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
            raise AssertionError("answers were there already")

        def close(self, linger_s: float = 1.0) -> None:
            pass

    link = LinkThatAnswersTwice()
    answers = FrameBatch(3)
    took_ns = np.zeros(3, np.int64)
    with pytest.raises(Silence, match="more than one answer came to question 1 of 3"):
        session_of(link).ask(FrameBatch.of(b"one", b"two", b"three"), answers, took_ns)
    assert link.asked == 1
    assert np.count_nonzero(took_ns) == 1


def test_too_little_room_for_the_answers_is_a_value_error(url: str) -> None:
    with joined(url) as (_, connector), pytest.raises(ValueError, match="no room for 2 answers"):
        session_of(connector).ask(FrameBatch.of(b"one", b"two"), FrameBatch(1), np.zeros(2, np.int64))


def test_an_answer_that_comes_later_is_not_lost(url: str) -> None:
    with joined(url) as (listener, connector):
        assert ask(connector, b"question", patience_s=0.001) == ([], [])
        asked = FrameBatch(1)
        while not listener.receive(asked):
            listener.wait(deadline_ns())
        assert list(carry(listener, connector, asked)) == [b"question"]


def test_frames_sent_at_once_come_back_in_order(url: str) -> None:
    frames = [body(64, number) for number in range(20)]
    with joined(url) as (listener, connector), echoing(listener, len(frames)):
        sent = 0
        outgoing = FrameBatch.of(*frames)
        echoed = FrameBatch(len(frames))
        while echoed.count < len(frames):
            if sent < len(frames):
                sent = connector.send(outgoing, sent)
            connector.receive(echoed)
            connector.wait(time.monotonic_ns() + 1_000_000)
        assert list(echoed) == frames


def test_an_echo_without_frames_returns_soon(url: str) -> None:
    with joined(url) as (listener, _):
        began_ns = time.monotonic_ns()
        assert session_of(listener).echo(FrameBatch(1), 5) == 0
        assert time.monotonic_ns() - began_ns < 2_000_000_000


def test_asking_a_peer_that_has_left_is_an_error(url: str) -> None:
    if has_broker(url) or url.startswith("zeromq+inproc"):
        pytest.skip("neither a broker nor inproc says that the other side has left")

    def ask_many_times(link: Link) -> None:
        for _ in range(100):
            ask(link, b"question", patience_s=0.02)

    with joined(url) as (listener, connector):
        connector.close()
        with pytest.raises(PeerGone):
            ask_many_times(listener)
