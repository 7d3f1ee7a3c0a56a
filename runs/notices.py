"""What is said while something is measured: a line on stderr, or a call of the function that listens instead."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import click

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def say(sentence: str) -> None:
    """Tell the listener; without one, the user at the terminal."""
    if listener := _listener.get():
        listener(sentence)
    else:
        click.echo(sentence, err=True)


def has_listener() -> bool:
    """True if nothing may be drawn on stderr."""
    return _listener.get() is not None


@contextlib.contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Inside, `say` calls the listener, and no progress bar is drawn."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
