"""Questions and answers, one at a time, by the calls that every link has; a transport may have faster ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from transports.frames import FrameBatch, Longs

if TYPE_CHECKING:
    from transports.base import Link


def ask(link: Link, questions: FrameBatch, answers: FrameBatch, took_ns: Longs, longest_ns: int) -> int:
    """See Link.ask."""
    if min(answers.capacity_frames, len(took_ns)) < questions.count:
        raise ValueError(f"no room for {questions.count} answers")
    while (number := answers.count) < questions.count:
        sent_ns = link.ask_ahead(questions, answers, took_ns)
        if answers.count > number and not sent_ns:
            continue
        number, until_ns = answers.count, time.monotonic_ns() + longest_ns
        sent_ns = sent_ns or _send_one(link, questions, number, until_ns)
        if not sent_ns or not (answered_ns := _await_answer(link, answers, until_ns)):
            break
        took_ns[number] = answered_ns - sent_ns
        if answers.count > number + 1:  # more than was asked for: the numbers of what follows would be wrong
            return number + 1
    return answers.count


def _send_one(link: Link, batch: FrameBatch, number: int, until_ns: int) -> int:
    """When it went; 0 where it could not be sent in time."""
    count, batch.count = batch.count, number + 1
    try:
        sent_ns = time.monotonic_ns()
        return sent_ns if send_all(link, batch, until_ns, number) else 0
    finally:
        batch.count = count


def _await_answer(link: Link, answers: FrameBatch, until_ns: int) -> int:
    """When it came; 0 where it does not in time."""
    while not link.receive(answers):
        if time.monotonic_ns() >= until_ns:
            return 0
        link.wait(until_ns)
    return time.monotonic_ns()


def echo(link: Link, batch: FrameBatch, most: int, until_ns: int) -> int:
    """See Link.echo."""
    done = 0
    while done < most and time.monotonic_ns() < until_ns:
        batch.clear()
        if link.receive(batch):
            send_all(link, batch, 0)
            done += batch.count
        else:
            link.wait(until_ns)
    return done


def send_all(link: Link, batch: FrameBatch, until_ns: int, first: int = 0) -> bool:
    """Whether it could be, in time; until it can be, where there is none."""
    first = link.send(batch, first)
    while first < batch.count:
        now_ns = time.monotonic_ns()
        if until_ns and now_ns >= until_ns:
            return False
        link.wait(until_ns or now_ns + 1_000_000_000, readable=False, writable=True)
        first = link.send(batch, first)
    return True
