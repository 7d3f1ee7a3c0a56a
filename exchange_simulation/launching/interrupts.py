"""Signals that end work early: Ctrl-C, `kill`, a terminal that closes.

A signal may arrive while foreign code runs, as in a hook around fork or in the callback of a weak reference, where
Python prints and drops the exception of a handler. So a command that measures notes the signal (`interruption_noted`).
The exception KeyboardInterrupt is raised where the command waits (`interruptible`) or begins its next step
(`raise_if_interrupted`), and a signal that comes while a record is written does not keep the page from being written.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IGNORED_BY_WISH = (signal.SIGINT, signal.SIGHUP)
"""Signals that stay ignored if they were: a shell ignores SIGINT for its background jobs, `nohup` ignores SIGHUP."""
ONE_PRESS_S = 0.3
"""Signals that come within this time count as one: `timeout` sends two, to its child and to its group."""
BY_SIGNAL = 128
"""Shells give a command that was ended by a signal this exit code plus the signal's number."""


class SignalReceived(KeyboardInterrupt):
    """The KeyboardInterrupt for a signal, which it names for whoever does not know the notes."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number = number


class Interruption:
    """The signals that asked a command to end."""

    def __init__(self, raises_everywhere: bool) -> None:
        self.number: signal.Signals | None = None
        """The first signal; None if none came."""
        self._first_s = 0.0
        self._is_pending = False
        """A signal was noted, and no KeyboardInterrupt has been raised for it."""
        self._raising_contexts = 1 if raises_everywhere else 0

    @property
    def came(self) -> bool:
        """True if a signal asked the command to end."""
        return self.number is not None

    def exit_code(self, otherwise: int) -> int:
        """Return the exit code of the signal, as 130 for Ctrl-C; `otherwise` if none came."""
        return otherwise if self.number is None else BY_SIGNAL + self.number

    def forget(self) -> None:
        """Forget the signal: it ended the command in the ordinary way, so its exit code stays."""
        self.number = None

    def take_over(self, outer: Interruption) -> None:
        """Note the signal that an outer context has noted, if there is one. KeyboardInterrupt as `note` raises it."""
        if outer.number is None or self.number is not None:
            return
        self.number = outer.number
        self._first_s = outer._first_s
        self._is_pending = True
        if self._raising_contexts:
            self._raise_pending()

    def note(self, number: int, _frame: FrameType | None = None) -> None:
        """Handle a signal: note it. KeyboardInterrupt where that may be raised, and for a second signal anywhere."""
        now_s = time.monotonic()
        if self.number is None:
            self.number = signal.Signals(number)
            self._first_s = now_s
        elif now_s - self._first_s <= ONE_PRESS_S:
            return
        else:
            raise SignalReceived(self.number)
        self._is_pending = True
        if self._raising_contexts:
            self._raise_pending()

    @contextlib.contextmanager
    def raised_inside(self) -> Iterator[None]:
        """Raise KeyboardInterrupt for a signal that comes inside, or that was noted before."""
        self._raising_contexts += 1
        try:
            if self._is_pending:
                self._raise_pending()
            yield
        finally:
            self._raising_contexts -= 1

    def _raise_pending(self) -> None:
        self._is_pending = False
        raise SignalReceived(self.number or signal.SIGINT)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


@contextlib.contextmanager
def interruption_noted(
    raises_everywhere: bool = False, numbers: tuple[signal.Signals, ...] = ENDING_SIGNALS
) -> Iterator[Interruption]:
    """Note the signals that ask this process to end; yield their notes, which an outer context gets too.

    KeyboardInterrupt at once if an outer context has noted a signal, and this one `raises_everywhere`.
    Outside the main thread no signal arrives, so no handler is set there.
    """
    interruption = Interruption(raises_everywhere)
    outer = _current.get()
    token = _current.set(interruption)
    is_main_thread = threading.current_thread() is threading.main_thread()
    handlers = signals_handled_by(numbers, interruption.note) if is_main_thread else contextlib.nullcontext()
    try:
        with handlers, _dropped_without_a_word():
            if outer is not None:
                interruption.take_over(outer)
            yield interruption
    finally:
        _current.reset(token)
        if outer is not None and outer.number is None:
            outer.number = interruption.number


@contextlib.contextmanager
def _dropped_without_a_word() -> Iterator[None]:
    """Let Python print nothing about a SignalReceived that it drops: the signal is noted, so the command ends by it.

    Python drops an exception that a handler raises in a finalizer, as in those of llvmlite, and prints its traceback.
    """
    print_traceback = sys.unraisablehook

    def print_others(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, SignalReceived):
            print_traceback(dropped)

    sys.unraisablehook = print_others
    try:
        yield
    finally:
        sys.unraisablehook = print_traceback


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for a signal that comes inside, or that was noted before. For waits of our own."""
    interruption = _current.get()
    with interruption.raised_inside() if interruption else contextlib.nullcontext():
        yield


def pause(seconds: float) -> None:
    """Sleep. KeyboardInterrupt as soon as a signal comes."""
    with interruptible():
        time.sleep(seconds)


def note_raised(error: KeyboardInterrupt) -> None:
    """Note the signal of a KeyboardInterrupt that the handler of a library has raised, as Spark's does on Ctrl-C.

    The command then has the signal's exit code.
    """
    interruption = _current.get()
    if interruption is not None and not interruption.came:
        interruption.number = error.number if isinstance(error, SignalReceived) else signal.SIGINT


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if a signal came, also where an exception was raised for it and got lost."""
    interruption = _current.get()
    if interruption is not None and interruption.came:
        raise KeyboardInterrupt


def on_signals(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> dict[signal.Signals, Any]:
    """Set the handler; return the handlers before it, by signal. IGNORED_BY_WISH says which may stay ignored."""
    replaced = {}
    for number in numbers:
        is_ignored = number in IGNORED_BY_WISH and signal.getsignal(number) is signal.SIG_IGN
        if not is_ignored:
            replaced[number] = signal.signal(number, handler)
    return replaced


@contextlib.contextmanager
def signals_handled_by(numbers: tuple[signal.Signals, ...], handler: Callable[..., Any]) -> Iterator[None]:
    """Let `handler` handle these signals in the context; restore the previous handlers at the end."""
    replaced = on_signals(numbers, handler)
    try:
        yield
    finally:
        for number, earlier_handler in replaced.items():
            signal.signal(number, earlier_handler)


def ended_as_by_ctrl_c() -> contextlib.AbstractContextManager[Interruption]:
    """Raise KeyboardInterrupt for SIGINT, SIGTERM and SIGHUP, wherever they come. For work without a record."""
    return interruption_noted(raises_everywhere=True)


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Hold back signals until the context has ended, then raise the first one again.

    Use this around code that runs callbacks of a library, such as those of weak references in matplotlib: Python prints
    an exception that a handler raises there, and drops it. Outside the main thread nothing is held back, since no
    signal arrives there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[signal.Signals] = []
    try:
        with signals_handled_by(ENDING_SIGNALS, lambda number, _: received.append(number)):
            yield
    finally:
        if received:
            signal.raise_signal(received[0])


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run `work` in a thread. At the end of the context, set the event that `work` gets, and wait for the thread."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
