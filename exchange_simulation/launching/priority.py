"""Scheduling of a thread and of those that it starts: before all other work, after what carries orders, on time."""

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
"""The lowest: it goes before all normal work already."""
SLICE_NS, USUAL_SLICE = 100_000, 0
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call, by machine."""
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30


def processors_of(pid: int = 0) -> list[int]:
    """The processors on which a process may run, by default this one; empty if it has ended, or nobody can tell."""
    try:
        return sorted(os.sched_getaffinity(pid))
    except (OSError, AttributeError):
        return []


def scheduled_as_now() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Makes contexts in which this thread, and those that it starts, are scheduled as they are at this call."""
    if sys.platform != "linux":
        return contextlib.nullcontext
    return partial(_scheduled, os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)


def wake_on_time(slack_ns: int = 1) -> int | None:
    """Let the kernel end sleeps of this thread, and of those that it starts, at most `slack_ns` late.

    Returns the slack before; None where the system has no timer slack.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    before_ns: int = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0)
    return before_ns


@contextlib.contextmanager
def yielding() -> Iterator[None]:
    """In this context, this thread and those that it starts preempt no other when they wake.

    They still get their share of a processor. Without this, the launcher and the reporter would take the processor
    from a gateway or an engine in the middle of an order. Where the system refuses, as gVisor does, nothing changes.
    """
    with contextlib.ExitStack() as stack:
        if sys.platform == "linux" and os.sched_getscheduler(0) != os.SCHED_IDLE:
            with contextlib.suppress(OSError):
                stack.enter_context(_scheduled(os.SCHED_BATCH, 0))
        yield


@contextlib.contextmanager
def going_first(priority: str = "real-time") -> Iterator[None]:
    """In this context, this thread, and the threads and processes that it starts, have this priority of PRIORITIES.

    With normal priority they ask for short slices, which needs no permission: when they wake they preempt whatever has
    longer ones, above all the reporter. What has real-time priority waits for no normal work, only for a processor
    that one of its kind has, for 100 ms at most; the kernel leaves a twentieth of each second to the others. UserError
    where the system does not permit that.
    """
    if priority == "normal":
        with _short_slices():
            yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_scheduled(os.SCHED_RR, REAL_TIME_PRIORITY))
        except (OSError, AttributeError) as error:
            how = "be root, have CAP_SYS_NICE, or have `ulimit -r 1`; or leave out --priority"
            raise UserError(f"--priority is real-time, which this system does not let you have: {how}") from error
        yield


@contextlib.contextmanager
def _scheduled(policy: int, priority: int) -> Iterator[None]:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, policy, os.sched_param(priority))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


@contextlib.contextmanager
def _short_slices() -> Iterator[None]:
    """In this context, this thread and those that it starts ask for slices of SLICE_NS; Linux takes it from 6.12 on."""
    if sys.platform != "linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    _ask_for_slices(SLICE_NS)
    try:
        yield
    finally:
        _ask_for_slices(USUAL_SLICE)


def _ask_for_slices(slice_ns: int) -> None:
    """Call sched_setattr, which Python lacks, and every libc but the newest."""
    call = SCHED_SETATTR.get(platform.machine())
    if call:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = struct.pack("IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, slice_ns, 0, 0)
        ctypes.CDLL(None).syscall(call, 0, attributes, 0)
