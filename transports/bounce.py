"""Questions and answers, one at a time, by the calls that every link has; a transport may have faster ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from transports.frames import FrameBatch

if TYPE_CHECKING:
    from transports.base import Link


def ask(link: Link, question: FrameBatch, answer: FrameBatch, until_ns: int) -> int:
    """See Link.ask."""
    sent_ns = time.monotonic_ns()
    return await_answer(link, answer, sent_ns, until_ns) if send_all(link, question, until_ns) else 0


def await_answer(link: Link, answer: FrameBatch, sent_ns: int, until_ns: int) -> int:
    """How long it took since the question went; 0 where it does not come in time."""
    while not link.receive(answer):
        if time.monotonic_ns() >= until_ns:
            return 0
        link.wait(until_ns)
    return time.monotonic_ns() - sent_ns


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


def send_all(link: Link, batch: FrameBatch, until_ns: int) -> bool:
    """Whether it could be, in time; until it can be, where there is none."""
    first = link.send(batch, 0)
    while first < batch.count:
        now_ns = time.monotonic_ns()
        if until_ns and now_ns >= until_ns:
            return False
        link.wait(until_ns or now_ns + 1_000_000_000, readable=False, writable=True)
        first = link.send(batch, first)
    return True
