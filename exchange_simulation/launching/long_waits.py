"""Tells the user what a command waits for, if the wait is long, so that the command does not seem to hang."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import copy_context

from exchange_simulation.launching.interrupts import in_background
from exchange_simulation.launching.notices import say

LONG_WAIT_S = 10.0


@contextlib.contextmanager
def said_if_long(what: str) -> Iterator[None]:
    """Say `waiting for WHAT` once if the context takes longer than LONG_WAIT_S."""
    context = copy_context()  # a thread does not inherit the listener of `say`

    def wait(is_over: threading.Event) -> None:
        if not is_over.wait(LONG_WAIT_S):
            context.run(say, waiting_for(what))

    with in_background(wait):
        yield


def waiting_for(what: str) -> str:
    """Return the sentence about a wait that has taken LONG_WAIT_S."""
    return f"waiting for {what}, for {LONG_WAIT_S:g} s so far"
