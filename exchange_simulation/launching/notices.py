"""Messages during a measurement: each is a line on stderr, or a call of a listener that replaces stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

import click

T = TypeVar("T")
Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_printer: ContextVar[Listener | None] = ContextVar("printer", default=None)
_is_verbose: ContextVar[bool] = ContextVar("is_verbose", default=False)
_is_one_line: ContextVar[bool] = ContextVar("is_one_line", default=False)


def say(sentence: str) -> None:
    """Give the sentence to the listener; without a listener, print it on stderr, above a bar that is shown there."""
    listener = _listener.get() or _printer.get()
    if listener:
        listener(sentence)
    else:
        click.echo(sentence, err=True)


def printed_by(printer: Listener) -> contextlib.AbstractContextManager[None]:
    """Return a context in which `say` calls `printer`, if no listener gets the messages."""
    return holding(_printer, printer)


def has_listener() -> bool:
    """Return True if a listener gets the messages. Then nothing may be drawn on stderr."""
    return _listener.get() is not None


def detail(sentence: str) -> None:
    """Say the sentence if the user asked for details."""
    if _is_verbose.get():
        say(sentence)


@contextlib.contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give the variable this value in the context."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def with_details() -> contextlib.AbstractContextManager[None]:
    """Return a context in which `detail` says its sentences."""
    return holding(_is_verbose, True)


def with_one_line() -> contextlib.AbstractContextManager[None]:
    """Return a context in which commands print their outcome in one line."""
    return holding(_is_one_line, True)


def prints_one_line() -> bool:
    """Return True if the user wants the outcome in one line, without tables."""
    return _is_one_line.get()


def notices_to(listener: Listener) -> contextlib.AbstractContextManager[None]:
    """Return a context in which `say` calls the listener, and no progress bar is drawn."""
    return holding(_listener, listener)
