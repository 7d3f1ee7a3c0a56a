"""Round trips with no Python between a call and the next, over a link that lends its compiled calls.

A call ends once Python is needed, or after a moment; `Session.ask` and `echo` then go on by the link's own calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exchange.compiled import cached_kernel
from transports import lending
from transports.base import Link
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NOTICE, Lendable, Lent, idle_calls, lent_by, monotonic_ns


@cached_kernel(lending)
def _ask(
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    questions: Bytes,
    question_ends: Longs,
    count: int,
    answers: Bytes,
    answer_ends: Longs,
    answered: int,
    largest: int,
    took_ns: Longs,
    until_ns: int,
) -> tuple[int, int, int]:
    """Ask from question `answered` on. Returns (questions answered, answers that came, time of sending: see `ask`)."""
    timespec = np.empty(2, np.int64)
    came = answered
    while answered < count and came == answered:
        sent_ns = monotonic_ns(timespec)
        if sent_ns >= until_ns or send(numbers, memory, questions, question_ends, answered, answered + 1) == answered:
            return answered, came, 0
        while came == answered:
            if numbers[NOTICE]:
                return answered, came, sent_ns
            came = receive(numbers, memory, answers, answer_ends, came, largest)
            now_ns = monotonic_ns(timespec)
            if came == answered:
                if now_ns >= until_ns:
                    return answered, came, sent_ns
                sleep(numbers, memory, until_ns)
        took_ns[answered] = now_ns - sent_ns
        answered += 1
    return answered, came, 0


@cached_kernel(lending)
def _echo(
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    frames: Bytes,
    ends: Longs,
    largest: int,
    most: int,
    until_ns: int,
) -> tuple[int, int, int]:
    """Send frames back. Returns (how many went, frames in the batch, how many of these went)."""
    timespec = np.empty(2, np.int64)
    done = 0
    while done < most and not numbers[NOTICE]:
        came = receive(numbers, memory, frames, ends, 0, largest)
        if came:
            sent = send(numbers, memory, frames, ends, 0, came)
            done += sent
            if sent < came:
                return done, came, sent
        elif not numbers[NOTICE]:
            sleep(numbers, memory, until_ns)
        if monotonic_ns(timespec) >= until_ns:
            break
    return done, 0, 0


def ask(link: Link, questions: FrameBatch, answers: FrameBatch, took_ns: Longs, until_ns: int) -> tuple[int, int]:
    """Ask from question `answers.count` on, as far as compiled code can. Returns (questions answered, time of sending).

    The time (monotonic, ns) is that of the question that still waits for its answer; 0 if none does.
    """
    if (lent := lent_by(link)) is None:
        return answers.count, 0
    answered, answers.count, sent_ns = _asked(lent, questions, answers, took_ns, until_ns)
    _settle(lent)
    return answered, sent_ns


def echo(link: Link, batch: FrameBatch, most: int, until_ns: int) -> int:
    """Send back what comes, as far as compiled code can; returns how many frames went back.

    `batch` is empty before; afterwards it holds frames that came and could not be sent back yet.
    """
    if (lent := lent_by(link)) is None:
        return 0
    done, batch.count, sent = _echoed(lent, batch, most, until_ns)
    batch.drop(sent)
    _settle(lent)
    return done


def load() -> None:
    """Load the kernels, so that the first round trip is as fast as the others."""
    nothing = FrameBatch(1)
    took_ns = np.zeros(1, np.int64)
    _asked(idle_calls(), nothing, nothing, took_ns, 0)
    _echoed(idle_calls(), nothing, 0, 0)


def _asked(
    lent: Lent, questions: FrameBatch, answers: FrameBatch, took_ns: Longs, until_ns: int
) -> tuple[int, int, int]:
    return _ask(
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


def _echoed(lent: Lent, batch: FrameBatch, most: int, until_ns: int) -> tuple[int, int, int]:
    return _echo(*_calls_of(lent), batch.buffer, batch.offsets, batch.largest_frame, most, until_ns)


def _calls_of(lent: Lent) -> tuple[Lendable, Lendable, Lendable, Longs, Bytes]:
    return lent.receive_one or lent.receive, lent.send, lent.sleep, lent.numbers, lent.memory


def _settle(lent: Lent) -> None:
    """Do what the calls left to Python; it may raise PeerGone."""
    if lent.numbers[NOTICE]:
        lent.settle()
