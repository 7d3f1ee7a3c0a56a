"""Messages during a measurement: each is a line on stderr, or a call of the function that listens instead."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import click

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_is_verbose: ContextVar[bool] = ContextVar("is_verbose", default=False)


def say(sentence: str) -> None:
    """Tell the listener; without one, the user at the terminal."""
    if listener := _listener.get():
        listener(sentence)
    else:
        click.echo(sentence, err=True)


def has_listener() -> bool:
    """True if nothing may be drawn on stderr."""
    return _listener.get() is not None


def detail(sentence: str) -> None:
    """Say it if the user asked for details."""
    if _is_verbose.get():
        say(sentence)


@contextlib.contextmanager
def with_details() -> Iterator[None]:
    """Inside, `detail` says what it is given."""
    token = _is_verbose.set(True)
    try:
        yield
    finally:
        _is_verbose.reset(token)


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Inside, `say` calls the listener, and no progress bar is drawn."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
