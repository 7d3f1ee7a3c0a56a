"""A role's life, in a process or a thread of its own: it opens its links, does its task, and reports.

Role and launcher send each other tuples over a pipe:

    ("ready",)  ──▶                          ◀── ("start",)
    ("at work",)  ──▶
    ("progress", received)  ──▶              ◀── ("stop",)      to roles that wait for others
    ("result", RoleResult)  ──▶              ◀── ("close",)
    ("failed", sentence, is_mistake)  ──▶

A process is a fork of the launcher, which has compiled and imported everything, so that dozens share memory. The
launcher has frozen its objects (`settle_down`): a collection of garbage in a fork would copy all that is shared. A fork
keeps the descriptor of its pipe, and closes all others of the launcher: otherwise neither a broker nor the watchdog
would notice the launcher's end. The fork joins the watchdog's process group, and the watchdog ends this group whatever
becomes of the launcher.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn, TypeAlias

from exchange.results import ResourceUsage
from exchange_simulation.launching.errors import sentence
from exchange_simulation.launching.process_limits import starting, too_many_processes
from exchange_simulation.messaging.roles import Role, open_links
from exchange_simulation.messaging.session import LONGEST_TICK_NS, Session
from transports.base import BadAddress, CannotListen, Link, TransportError

PipeEnd: TypeAlias = "Connection[Any, Any]"
END_S = 3.0
"""The longest time that a role may take to close."""


def play(role: Role, launcher: PipeEnd, patience_s: float, in_thread: bool, enter_host: Callable[[], None]) -> None:
    """Call `enter_host`, and play a role from start to end. Never raises: errors go to the launcher as messages.

    `enter_host` moves the process, or the thread, to the host and the processor of its role.
    """
    with contextlib.suppress(EOFError, OSError):  # the launcher is gone
        try:
            enter_host()
            _play(role, launcher, patience_s, in_thread)
        except (TransportError, OSError) as error:
            launcher.send(("failed", sentence(error), isinstance(error, BadAddress | CannotListen)))
        except Exception:  # noqa: BLE001 - a mistake of ours; the other roles must end nevertheless
            launcher.send(("failed", f"broke: {traceback.format_exc()}", False))


def _play(role: Role, launcher: PipeEnd, patience_s: float, in_thread: bool) -> None:
    """Open the links, do the task once the launcher says start, and send the result."""
    with contextlib.ExitStack() as stack:
        links = open_links(role.ends, stack)
        launcher.send(("ready",))
        if launcher.recv() != ("start",):
            return
        launcher.send(("at work",))
        session = Session(links, launcher, patience_s, is_patient=role.is_patient, clock_ahead_ns=role.clock_ahead_ns)
        start = ResourceUsage.now(in_thread)
        result = role.task(session)
        result.usage = ResourceUsage.now(in_thread).since(start)
        result.sockets = [socket for link in links for socket in link.sockets()]
        result.facts = [link.facts() for link in links]
        launcher.send(("result", result))
        _linger(links, launcher)


def _linger(links: list[Link], launcher: PipeEnd) -> None:
    """Serve the links until the launcher says close: what was sent must leave, and heartbeats must go on.

    The pauses grow, since the first of 120 roles ends minutes before the last one, which needs the processor.
    """
    pause_ns = 1_000_000
    while True:
        if launcher.poll(pause_ns / 1e9) and launcher.recv() == ("close",):
            return
        for link in links:
            with contextlib.suppress(TransportError):
                link.wait(time.monotonic_ns(), readable=False)
        pause_ns = min(2 * pause_ns, LONGEST_TICK_NS)


@dataclass
class Piped:
    """A role at the other end of a pipe, as the launcher follows it."""

    pipe: PipeEnd
    words: deque[tuple[Any, ...]] = field(default_factory=deque, init=False)
    """Words that `receive` took from the pipe and `next_word` has not returned yet."""
    has_ended: bool = field(default=False, init=False)

    @property
    def source(self) -> PipeEnd:
        """What `multiprocessing.connection.wait` waits for before `receive`."""
        return self.pipe

    @property
    def has_words(self) -> bool:
        """True if `next_word` has a word to return, or the role has ended."""
        return bool(self.words) or self.has_ended

    def receive(self) -> None:
        """Wait for the role's next word on the pipe, and add it to `words`; note if the role has ended instead."""
        try:
            self.words.append(self.pipe.recv())
        except (EOFError, OSError):
            self.has_ended = True

    def tell(self, word: str) -> None:
        """Send the role a word. OSError if it has ended."""
        self.pipe.send((word,))

    def next_word(self) -> tuple[Any, ...]:
        """Return the next of `words`. Call it only if `has_words`. EOFError if none is left: the role has ended."""
        if not self.words:
            raise EOFError
        return self.words.popleft()


@dataclass
class Forked(Piped):
    """A role's process, and the launcher's end of the pipe to it."""

    pid: int

    def how_it_ended(self) -> str:
        """Wait until the process has ended, and return how it ended, as a clause."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.pid = 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def end(self, may_close: bool) -> None:
        """Kill the process. `may_close`: the process was told to close, so first give it a moment to close."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if self.pid and may_close:
                _await_closing(self.pipe)
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        self.pipe.close()


def _await_closing(pipe: PipeEnd) -> None:
    """Read the pipe until the role closes its end, or for END_S without a message."""
    with contextlib.suppress(EOFError, OSError):
        while pipe.poll(END_S):
            pipe.recv()


def fork(role: Role, patience_s: float, group: int, enter_host: Callable[[], None]) -> Forked:
    """Start a role as a process of a process group. The process first calls `enter_host`, as `play` has it.

    CannotStart if the system starts no further process.
    """
    ours, theirs = Pipe()
    with theirs, contextlib.ExitStack() as closed_on_error:
        closed_on_error.enter_context(ours)
        with starting(f"the {role.name}"):
            pid = os.fork()
        if pid == 0:
            _run_fork(role, theirs, patience_s, group, enter_host)
        closed_on_error.pop_all()
    return Forked(ours, pid)


def _run_fork(role: Role, pipe: PipeEnd, patience_s: float, group: int, enter_host: Callable[[], None]) -> NoReturn:
    """What a forked process does: it plays the role, and ends."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, group)
        _close_all_except(pipe.fileno())
        play(role, pipe, patience_s, False, enter_host)
        code = 0
    finally:
        os._exit(code)


def _close_all_except(descriptor: int) -> None:
    """Close every descriptor except this one and the standard ones; standard input becomes empty."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for other in _open_descriptors():
        if other > 2 and other != descriptor:
            with contextlib.suppress(OSError):
                os.close(other)


def _open_descriptors() -> Iterable[int]:
    """Return the open descriptors. If they cannot be listed, return every number that could be open.

    Under Linux, /dev/fd is a link into /proc, which may be hidden.
    """
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return range(os.sysconf("SC_OPEN_MAX"))


@dataclass
class Threaded(Piped):
    """A role's thread, and the launcher's end of the pipe to it; for transports that stay within one process."""

    thread: threading.Thread

    def how_it_ended(self) -> str:
        return "ended"

    def end(self, may_close: bool) -> None:
        if may_close:
            _await_closing(self.pipe)
        self.pipe.close()
        self.thread.join(END_S)


def start_thread(role: Role, patience_s: float, enter_host: Callable[[], None]) -> Threaded:
    """Start a role as a thread, which first calls `enter_host`, as `play` has it. CannotStart if there are too many."""
    ours, theirs = Pipe()

    def run_thread() -> None:
        with contextlib.closing(theirs):
            play(role, theirs, patience_s, True, enter_host)

    thread = threading.Thread(target=run_thread, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # "can't start new thread"
        raise too_many_processes(f"the {role.name}") from error
    return Threaded(ours, thread)
