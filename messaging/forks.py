"""Roles as processes: forks of this one, which has compiled and imported everything, so that dozens share memory.

The parent has settled down (experiments/component.py): a collection of garbage in a fork would copy all that is shared.
A fork keeps the descriptor on which it speaks, and none else of ours: or a broker would not notice that we are gone,
nor the watchdog. It is in the watchdog's process group, which ends it, whatever becomes of us. It never returns.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

Life = Callable[["Connection[Any, Any]"], None]
"""What someone does with his end of a pipe, until he has nothing more to do."""
END_S = 3.0


@dataclass
class Forked:
    """A process of ours, and our end of the pipe to it."""

    pipe: Connection[Any, Any]
    pid: int

    def how_it_ended(self) -> str:
        """Once its pipe is at its end."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.pid = 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def end(self, in_order: bool) -> None:
        """Give it a moment to close what it has open, where it was let off; then kill it."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if self.pid and in_order:
                _let_it_close(self.pipe)
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        self.pipe.close()


def _let_it_close(pipe: Connection[Any, Any]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while pipe.poll(END_S):
            pipe.recv()


def fork(life: Life, group: int) -> Forked:
    """Start it in a process group."""
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        _live(life, theirs, group)
    theirs.close()
    return Forked(ours, pid)


def _live(life: Life, pipe: Connection[Any, Any], group: int) -> None:
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, group)
        _keep_only(pipe.fileno())
        life(pipe)
    finally:
        os._exit(0)


def _keep_only(descriptor: int) -> None:
    """And the standard ones; nothing is read any more."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            there = sorted(map(int, os.listdir(folder)))
            break
    else:
        there = list(range(3, 1024))
    for each in there:
        if each > 2 and each != descriptor:
            with contextlib.suppress(OSError):
                os.close(each)


@dataclass
class Threaded:
    """The same as a thread, for transports that cannot leave a process."""

    pipe: Connection[Any, Any]
    thread: threading.Thread

    def how_it_ended(self) -> str:
        return "ended"

    def end(self, in_order: bool) -> None:
        if in_order:
            _let_it_close(self.pipe)
        self.pipe.close()
        self.thread.join(END_S)


def thread(life: Life) -> Threaded:
    ours, theirs = Pipe()

    def live() -> None:
        with contextlib.closing(theirs):
            life(theirs)

    started = threading.Thread(target=live, daemon=True)
    started.start()
    return Threaded(ours, started)
