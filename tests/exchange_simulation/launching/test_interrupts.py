"""Signals that end a command early."""

from __future__ import annotations

import signal
import weakref

import pytest

from exchange_simulation.launching.interrupts import (
    SignalReceived,
    ended_as_by_ctrl_c,
    interruptible,
    interruption_noted,
    note_raised,
    on_signals,
    raise_if_interrupted,
    signals_deferred,
)


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


def test_a_noted_signal_is_raised_at_the_next_wait_and_not_in_foreign_code() -> None:
    with interruption_noted() as interruption:
        gone_with_a_signal(signal.SIGTERM)
        assert interruption.came
        with pytest.raises(KeyboardInterrupt), interruptible():
            pytest.fail("the wait begins")
        with interruptible():
            pass  # it was raised once: a loop that handles it may go on
        assert interruption.exit_code(1) == 143


def test_a_signal_is_raised_inside_a_wait() -> None:
    with interruption_noted(), pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_no_next_step_begins_where_an_exception_got_lost_and_python_prints_nothing_about_it() -> None:
    """pytest makes an error of what Python would print: the traceback of llvmlite's finalizer came with an exit."""
    with interruption_noted(raises_everywhere=True):
        raise_if_interrupted()
        gone_with_a_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()


def test_an_outer_context_learns_of_the_signal_and_may_forget_it() -> None:
    with interruption_noted() as outer:
        with interruption_noted():
            signal.raise_signal(signal.SIGHUP)
        assert outer.exit_code(0) == 129
        outer.forget()
        assert outer.exit_code(0) == 0


def test_an_inner_context_knows_a_signal_that_an_outer_one_has_noted() -> None:
    """A comparison went on to its end if Ctrl-C came while it counted the runs that remain."""
    with interruption_noted():
        signal.raise_signal(signal.SIGINT)
        with interruption_noted() as inner:
            assert inner.came
            with pytest.raises(KeyboardInterrupt), interruptible():
                pytest.fail("the wait begins")


def test_work_that_is_interrupted_everywhere_does_not_begin_after_a_signal() -> None:
    """Spark made its tables if Ctrl-C came while the page was written."""
    with interruption_noted():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
            pytest.fail("the work begins")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_a_shell_ignores_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruption_noted() as interruption:
            signal.raise_signal(number)
            assert not interruption.came
    finally:
        signal.signal(number, before)


def test_a_keyboard_interrupt_of_a_library_s_handler_is_noted_unless_our_handler_noted_a_signal() -> None:
    with interruption_noted() as interruption:
        note_raised(KeyboardInterrupt())
        assert interruption.exit_code(0) == 130
        note_raised(SignalReceived(signal.SIGTERM))
        assert interruption.exit_code(0) == 130
    with interruption_noted() as interruption:
        note_raised(SignalReceived(signal.SIGTERM))
        assert interruption.exit_code(0) == 143
