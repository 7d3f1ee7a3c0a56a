"""Signals that end a command early."""

from __future__ import annotations

import signal
import weakref

import pytest

from exchange_simulation.launching.interrupts import heeded_at_the_end, on_signals


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

    @heeded_at_the_end()
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
        with heeded_at_the_end():
            signal.raise_signal(signal.SIGTERM)
            assert came == []
        assert came == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert came == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
