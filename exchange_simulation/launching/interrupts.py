"""Signals that end work early: Ctrl-C, `kill`, a terminal that closes."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any


def on_signals(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> dict[signal.Signals, Any]:
    """Set the handler; return the handlers before it, by signal. A hang-up that `nohup` ignores stays ignored."""
    replaced = {}
    for number in numbers:
        is_ignored_by_nohup = number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
        if not is_ignored_by_nohup:
            replaced[number] = signal.signal(number, handler)
    return replaced


@contextlib.contextmanager
def signals_handled_by(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> Iterator[None]:
    """Let `handler` handle these signals in the context; restore the handlers before it at the end."""
    replaced = on_signals(numbers, handler)
    try:
        yield
    finally:
        for number, earlier_handler in replaced.items():
            signal.signal(number, earlier_handler)


def ended_as_by_ctrl_c(ctrl_c: Callable[..., Any] = signal.default_int_handler) -> AbstractContextManager[None]:
    """Let SIGTERM and SIGHUP interrupt this process as Ctrl-C does; `ctrl_c` is the handler of Ctrl-C."""
    return signals_handled_by((signal.SIGTERM, signal.SIGHUP), ctrl_c)


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Hold back signals until the context has ended, then raise the first one again.

    Outside the main thread nothing is held back, since no signal arrives there.

    Python prints and drops an exception that a handler raises inside a library's callback, such as those of weak
    references, which matplotlib uses by the thousand.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[signal.Signals] = []
    try:
        with signals_handled_by(
            (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda number, _: received.append(number)
        ):
            yield
    finally:
        if received:
            signal.raise_signal(received[0])


@contextlib.contextmanager
def beside(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run `work` in a thread. At the end of the context, set the event that `work` was given; wait for the thread."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
