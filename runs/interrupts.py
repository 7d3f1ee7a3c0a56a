"""Signals that end a command early: Ctrl-C, `kill`, a terminal that closes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any


def on_signals(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> dict[signal.Signals, Any]:
    """Handle them, but for a hang-up that `nohup` has us ignore; the handlers that were there before."""
    heeded = [n for n in numbers if n is not signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heeded}


@contextlib.contextmanager
def ended_as_by_ctrl_c(ctrl_c: Callable[..., Any] = signal.default_int_handler) -> Iterator[None]:
    """SIGTERM and SIGHUP interrupt us as Ctrl-C does, where that has a handler of its own as this one."""
    before = on_signals((signal.SIGTERM, signal.SIGHUP), ctrl_c)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def heeded_at_the_end() -> Iterator[None]:
    """A signal that came meanwhile is ours once this is done.

    An exception that a handler raises inside what a library calls back (a weak reference's end, in matplotlib by the
    thousand) is printed with its traceback and lost.
    """
    came: list[signal.Signals] = []
    before = on_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
