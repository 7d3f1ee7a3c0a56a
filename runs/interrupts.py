"""Signals that end a command early: Ctrl-C, `kill`, a terminal that closes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any


def on_signals(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> dict[signal.Signals, Any]:
    """Set the handler; return those it replaces. A hang-up that `nohup` ignores stays ignored."""
    handled = [n for n in numbers if n is not signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in handled}


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextlib.contextmanager
def ended_as_by_ctrl_c(ctrl_c: Callable[..., Any] = signal.default_int_handler) -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt this process as Ctrl-C does; `ctrl_c` is its handler."""
    before = on_signals((signal.SIGTERM, signal.SIGHUP), ctrl_c)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def heeded_at_the_end() -> Iterator[None]:
    """Hold back signals until the block has ended, then raise the first.

    Python prints and drops an exception that a handler raises inside a library's callback, such as those of weak
    references, which matplotlib uses by the thousand.
    """
    came: list[signal.Signals] = []
    before = on_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: came.append(number))
    try:
        yield
    finally:
        _restore(before)
        if came:
            signal.raise_signal(came[0])
