"""Round trips in compiled code, over a link that lends its compiled calls.

A call ends once Python is needed, or after a moment; `Session.ask` and `Session.echo` then continue with the link's
Python methods.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exchange.compiled import cached_kernel
from transports import lending
from transports.base import Link
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NOTICE, Lendable, Lent, idle_calls, lent_by, monotonic_ns


@cached_kernel(lending)
def _ask_kernel(
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    questions: Bytes,
    question_offsets: Longs,
    count: int,
    answers: Bytes,
    answer_offsets: Longs,
    answered: int,
    largest: int,
    took_ns: Longs,
    until_ns: int,
) -> tuple[int, int, int]:
    """Ask from question `answered` on.

    Returns (questions answered, answers in the batch, time at which the question without an answer was sent, or 0).
    """
    timespec = np.empty(2, np.int64)
    received = answered
    while answered < count and received == answered:
        sent_ns = monotonic_ns(timespec)
        if sent_ns >= until_ns:
            return answered, received, 0
        next_question = send(numbers, memory, questions, question_offsets, answered, answered + 1)
        if next_question == answered:  # the link took nothing
            return answered, received, 0
        while received == answered:
            if numbers[NOTICE]:
                return answered, received, sent_ns
            received = receive(numbers, memory, answers, answer_offsets, received, largest)
            now_ns = monotonic_ns(timespec)
            if received == answered:
                if now_ns >= until_ns:
                    return answered, received, sent_ns
                sleep(numbers, memory, until_ns)
        took_ns[answered] = now_ns - sent_ns
        answered += 1
    return answered, received, 0


@cached_kernel(lending)
def _echo_kernel(
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    frames: Bytes,
    offsets: Longs,
    largest: int,
    most: int,
    until_ns: int,
) -> tuple[int, int, int]:
    """Send frames back. Returns (frames sent back, frames in the last batch, frames of the last batch sent back).

    The last two are 0 if all frames were sent back.
    """
    timespec = np.empty(2, np.int64)
    echoed = 0
    while echoed < most and not numbers[NOTICE]:
        received = receive(numbers, memory, frames, offsets, 0, largest)
        if received:
            sent = send(numbers, memory, frames, offsets, 0, received)
            echoed += sent
            if sent < received:
                return echoed, received, sent
        elif not numbers[NOTICE]:
            sleep(numbers, memory, until_ns)
        if monotonic_ns(timespec) >= until_ns:
            break
    return echoed, 0, 0


class AskedQuestions(NamedTuple):
    answered: int
    """Number of questions that have an answer."""
    pending_sent_ns: int
    """Time (monotonic clock, ns) at which the next question was sent; 0 if it was not sent yet."""


def ask(link: Link, questions: FrameBatch, answers: FrameBatch, took_ns: Longs, until_ns: int) -> AskedQuestions:
    """Ask from question `answers.count` on, as far as compiled code can.

    `answers` and `took_ns` get the answers and the times of their round trips.
    """
    lent = lent_by(link)
    if lent is None:
        return AskedQuestions(answers.count, 0)
    answered, received, sent_ns = _call_ask_kernel(lent, questions, answers, took_ns, until_ns)
    answers.count = received
    _settle(lent)
    return AskedQuestions(answered, sent_ns)


def echo(link: Link, batch: FrameBatch, most: int, until_ns: int) -> int:
    """Send back what comes, as far as compiled code can; returns how many frames went back.

    `batch` is empty before the call; afterwards it holds the frames that could not be sent back yet.
    """
    lent = lent_by(link)
    if lent is None:
        return 0
    echoed, received, sent = _call_echo_kernel(lent, batch, most, until_ns)
    batch.count = received
    batch.drop(sent)
    _settle(lent)
    return echoed


def load() -> None:
    """Load the kernels, so that the first round trip is as fast as the others."""
    nothing = FrameBatch(1)
    took_ns = np.zeros(1, np.int64)
    _call_ask_kernel(idle_calls(), nothing, nothing, took_ns, 0)
    _call_echo_kernel(idle_calls(), nothing, 0, 0)


def _call_ask_kernel(
    lent: Lent, questions: FrameBatch, answers: FrameBatch, took_ns: Longs, until_ns: int
) -> tuple[int, int, int]:
    return _ask_kernel(
        *_calls_of(lent),
        questions.buffer,
        questions.offsets,
        questions.count,
        answers.buffer,
        answers.offsets,
        answers.count,
        answers.largest_frame,
        took_ns,
        until_ns,
    )


def _call_echo_kernel(lent: Lent, batch: FrameBatch, most: int, until_ns: int) -> tuple[int, int, int]:
    return _echo_kernel(*_calls_of(lent), batch.buffer, batch.offsets, batch.largest_frame, most, until_ns)


def _calls_of(lent: Lent) -> tuple[Lendable, Lendable, Lendable, Longs, Bytes]:
    return lent.receive_one or lent.receive, lent.send, lent.sleep, lent.numbers, lent.memory


def _settle(lent: Lent) -> None:
    """Do what the compiled calls left to Python; PeerGone if the peer has left."""
    if lent.numbers[NOTICE]:
        lent.settle()
