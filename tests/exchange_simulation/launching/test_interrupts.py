"""Signals that end a command early."""

from __future__ import annotations

import signal
import weakref

import pytest

from exchange_simulation.launching.interrupts import on_signals, signals_deferred


class Thing:
    """What a weak reference can be to."""


def gone_with_a_signal(number: signal.Signals) -> None:
    """A signal arrives inside a weak reference's callback, where an exception is printed and lost."""
    thing = Thing()
    watched = weakref.ref(thing, lambda _: signal.raise_signal(number))
    del thing
    assert watched() is None


def test_a_signal_inside_a_library_s_callback_is_heeded_after_it() -> None:
    done = []

    @signals_deferred()
    def draw() -> None:
        gone_with_a_signal(signal.SIGINT)
        done.append("the page")

    with pytest.raises(KeyboardInterrupt):
        draw()
    assert done == ["the page"]


def test_it_goes_to_the_handler_that_was_there_before_and_that_one_stays() -> None:
    came: list[int] = []
    before = on_signals((signal.SIGTERM,), lambda number, _: came.append(number))
    try:
        with signals_deferred():
            signal.raise_signal(signal.SIGTERM)
            assert came == []
        assert came == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
