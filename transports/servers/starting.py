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
    """Return what `look` returns once that is not None: the server's answer.

    `failure` is the end of a sentence once the server has ended, as "was killed by SIGKILL while it started"; empty
    while it lives.
    The error of `refuse` is raised if the server has ended, or has not answered by `until_s` of the monotonic clock;
    `too_late` is the end of the sentence then.
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
