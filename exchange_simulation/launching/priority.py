"""Scheduling of a thread, and of the threads and processes that it starts: priority, preemption, and exact timers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial

from exchange_simulation.launching.errors import UserError

REAL_TIME_PRIORITY = 1
"""The lowest real-time priority. It is enough to run before all normal work."""
SLICE_NS = 100_000
"""The length of a short time slice."""
DEFAULT_SLICE = 0
"""The value that gives a thread the system's default slice."""
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call sched_setattr, by machine."""
SCHED_ATTRIBUTES = struct.Struct("IIQiIQQQ")
"""The struct sched_attr of linux/sched/types.h: size, policy, flags, nice, priority, runtime, deadline, period."""
PR_SET_TIMERSLACK = 29
PR_GET_TIMERSLACK = 30


def processors_of(pid: int = 0) -> list[int]:
    """Return the processors on which a process may run; 0 is this process.

    Empty if the process has ended, or the system does not say.
    """
    try:
        return sorted(os.sched_getaffinity(pid))
    except (OSError, AttributeError):
        return []


def scheduled_as_now() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Remember how the calling thread is scheduled. Return a function that makes contexts: whichever thread enters one
    is scheduled like that inside it.
    """
    if sys.platform != "linux":
        return contextlib.nullcontext
    return partial(_scheduled, os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)


def wake_on_time(slack_ns: int = 1) -> int | None:
    """Set the timer slack of this thread, and of those that it starts: the kernel may end a sleep that much later.

    Returns the previous slack; None if the system has no timer slack.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    before_ns: int = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0)
    return before_ns


@contextlib.contextmanager
def without_preempting() -> Iterator[None]:
    """A context in which this thread, and those that it starts, do not preempt other threads when they wake.

    They still get their share of a processor. Without this context, the launcher and the reporter would take the
    processor from a gateway or an engine in the middle of an order. If the system refuses, as gVisor does, nothing
    changes.
    """
    with contextlib.ExitStack() as stack:
        if sys.platform == "linux" and os.sched_getscheduler(0) != os.SCHED_IDLE:
            with contextlib.suppress(OSError):
                stack.enter_context(_scheduled(os.SCHED_BATCH, 0))
        yield


@contextlib.contextmanager
def at_priority(priority: str = "real-time") -> Iterator[None]:
    """A context in which this thread, and the threads and processes that it starts, have this priority.

    normal     They get short time slices, which needs no permission. When they wake they preempt threads with longer
               slices, such as the reporter.
    real-time  They never wait for normal work, and at most 100 ms for other real-time work. The kernel leaves a
               twentieth of each second to normal work.

    UserError if the system does not permit real-time priority.
    """
    if priority == "normal":
        with _short_slices():
            yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_scheduled(os.SCHED_RR, REAL_TIME_PRIORITY))
        except (OSError, AttributeError) as error:
            advice = "be root, have CAP_SYS_NICE, or have `ulimit -r 1`; or leave out --priority"
            raise UserError(f"--priority is real-time, which this system does not let you have: {advice}") from error
        yield


@contextlib.contextmanager
def _scheduled(policy: int, priority: int) -> Iterator[None]:
    """Set this thread's policy and priority in the context, and restore both at the end."""
    previous_policy = os.sched_getscheduler(0)
    previous_parameters = os.sched_getparam(0)
    os.sched_setscheduler(0, policy, os.sched_param(priority))
    try:
        yield
    finally:
        os.sched_setscheduler(0, previous_policy, previous_parameters)


@contextlib.contextmanager
def _short_slices() -> Iterator[None]:
    """Give this thread, and those that it starts, slices of SLICE_NS in the context. Linux before 6.12 ignores this."""
    if sys.platform != "linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    _ask_for_slices(SLICE_NS)
    try:
        yield
    finally:
        _ask_for_slices(DEFAULT_SLICE)


def _ask_for_slices(slice_ns: int) -> None:
    """Set the time slice of this thread by sched_setattr, which Python and most versions of libc lack."""
    call = SCHED_SETATTR.get(platform.machine())
    if call:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = SCHED_ATTRIBUTES.pack(SCHED_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, slice_ns, 0, 0)
        ctypes.CDLL(None).syscall(call, 0, attributes, 0)
