"""The start of a server: the wait until the server answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from transports.base import TransportError

LOOK_EVERY_S = 0.01
Answer = TypeVar("Answer")


class ServerDidNotStart(TransportError):
    """The server ended, or did not answer in time."""

    def __init__(self, product: str, failure: str, last_lines: str) -> None:
        said_last = f"; it said last:\n{last_lines}" if last_lines else ""
        super().__init__(f"{product} {failure}{said_last}")


def wait_until_ready(
    look: Callable[[], Answer | None],
    failure: Callable[[], str],
    until_s: float,
    refuse: Callable[[str], ServerDidNotStart],
    too_late: str = "did not answer in time",
) -> Answer:
    """Call `look` until it returns the server's answer, and return that answer.

    failure   why the server has ended, as "was killed by SIGKILL while it started"; empty while the server lives
    until_s   the time on the monotonic clock until which the server may take to answer
    refuse    makes the error to raise if the server has ended or is too late, from the end of its sentence
    too_late  the end of that sentence if the server is too late
    """
    while True:
        answer = look()
        if answer is not None:
            return answer
        problem = failure()
        if problem:
            raise refuse(problem)
        if time.monotonic() > until_s:
            raise refuse(too_late)
        time.sleep(LOOK_EVERY_S)
