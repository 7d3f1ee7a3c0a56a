"""A group of processes that end together, with a watchdog, and a supervisor that restarts killed processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from exchange.words import printable
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import CannotStart
from exchange_simulation.launching.interrupts import signals_deferred
from exchange_simulation.launching.kernel_cache import SETTLED
from exchange_simulation.launching.priority import scheduled_as_now
from exchange_simulation.launching.process_limits import starting

WAIT_S = 3.0
"""The time between SIGTERM and SIGKILL for a child."""
WATCHDOG = Path(__file__).with_name("watchdog.py")
MOST_RESTARTS = 100
PIPE_BYTES = 1 << 20
"""The size of the pipe for a component's events: room for some 20 s with --recover. So a launcher that is stopped for
that long does not block its components.
"""


class ProcessGroup:
    """A context with child processes and a scratch folder. At its end the children are ended and the folder is removed,
    even if this process is killed.

    Signals are held back while a process is started: an interrupt inside Popen would leave a process that no list has.
    """

    def __enter__(self) -> ProcessGroup:
        self._scheduled = scheduled_as_now()
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, Path | None] = {}
        self._relayed: set[str] = set()
        with contextlib.ExitStack() as ended_on_error:
            with signals_deferred():
                self._begin()
                ended_on_error.push(self)
                # A signal that was held back raises KeyboardInterrupt here, and the stack then calls our __exit__.
            ended_on_error.pop_all()
        return self

    def _begin(self) -> None:
        """Make the scratch folder, and start the watchdog that removes it. CannotStart without a further process."""
        self.folder = Path(tempfile.mkdtemp(prefix="exchange-"))
        try:
            with starting("the watchdog"):
                self._watchdog = subprocess.Popen(
                    [sys.executable, "-I", "-S", WATCHDOG],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
        except (OSError, CannotStart):
            self.folder.rmdir()
            raise
        _send(self._watchdog, f"remove {os.fsencode(self.folder).hex()}".encode())

    @property
    def id(self) -> int:
        """The group's number. A process in the group ends with the launcher, even if the launcher is killed."""
        return self._watchdog.pid

    def start(
        self,
        name: str,
        arguments: list[str],
        log: Path | None,
        environment: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> None:
        """Run `exchange ARGUMENTS`: events go to a pipe, stderr to the `log` file, or to our stderr.

        `environment` is added to ours; `prefix` goes before the command. The process is scheduled as the caller was
        when the context began.
        """
        command = [*prefix, *exchange_command(*arguments)]
        self._start_command(name, command, log, {**os.environ, **SETTLED, **environment})

    def start_on_host(
        self, name: str, relay: Sequence[str], arguments: list[str], log: Path | None, environment: Mapping[str, str]
    ) -> None:
        """Run `exchange ARGUMENTS` on another host, by the command that starts a relay there.

        The relay gets the arguments and the environment over its stdin. Signals go over its stdin too.
        """
        self._relayed.add(name)
        self._start_command(name, relay, log, os.environ)
        order = {"words": arguments, "environment": dict(environment)}
        _send(self.children[name], orjson.dumps(order))

    def is_relayed(self, name: str) -> bool:
        """Return True if the child is the command that reaches a component on another host."""
        return name in self._relayed

    def _start_command(
        self, name: str, command: Sequence[str], log: Path | None, environment: Mapping[str, str]
    ) -> None:
        """Run a command: its stdin and stdout are pipes, its stderr goes to the `log` file, or to our stderr.

        CannotStart if the system starts no further process.
        """
        if name in self.children:  # a restart
            _close_pipes(self.children[name])
        self._logs[name] = log
        with (
            self._scheduled(),
            log.open("ab") if log else contextlib.nullcontext() as stderr,
            signals_deferred(),
            _sigint_blocked(),
            starting(f"the {name}"),
        ):
            self.children[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                process_group=self.id,
                env=environment,
            )
        with contextlib.suppress(OSError, AttributeError):  # the user's limit is smaller, or this is no Linux
            fcntl.fcntl(self.children[name].stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # type: ignore[arg-type]

    def last_line_of(self, name: str) -> str:
        """Return the last line in a process's log; empty if there is no line."""
        log = self._logs.get(name)
        if log is None:
            return ""
        try:
            lines = log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        for line in reversed(lines):
            if line.strip():
                return printable(line.strip())
        return ""

    def tell(self, *names: str, known: Mapping[str, Any] | None = None) -> None:
        """Send components a line. The first line starts them.

        `known` are facts for a component about the killed process in whose place it was started.
        """
        for name in names:
            _send(self.children[name], orjson.dumps(known or {}))

    def signal(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal; after any but SIGSTOP send SIGCONT too, since a stopped process cannot handle the signal."""
        if self.is_relayed(name):
            _send(self.children[name], orjson.dumps({"signal": number}))
        elif self.children[name].poll() is None:
            self.children[name].send_signal(number)
            if number != signal.SIGSTOP:
                self.children[name].send_signal(signal.SIGCONT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self.children:
            self.signal(name)
        for child in self.children.values():
            end(child, WAIT_S)
        _send(self._watchdog, b"done")
        self._watchdog.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)  # the watchdog may have been killed


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Let a process that is started inside begin with SIGINT blocked: a SIGINT waits until the process can handle it.

    cli/start.py unblocks SIGINT. Otherwise Python would print a traceback of the module that it imports.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send(child: subprocess.Popen[bytes], line: bytes) -> None:
    """Write a line to a child's stdin, unless the child has gone."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(line + b"\n")
        child.stdin.flush()


def end(child: subprocess.Popen[Any], patience_s: float) -> None:
    """Wait for a child that was asked to end, kill it if it is late, and close its pipes."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(patience_s)
    child.kill()
    child.wait()
    _close_pipes(child)


def _close_pipes(child: subprocess.Popen[Any]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Supervisor:
    """Restarts killed processes, each at most MOST_RESTARTS times. It must be ready again within `timeout_s`."""

    def __init__(self, start: Callable[[str], None] | None, timeout_s: float) -> None:
        """`start` starts a process by its name. Without `start`, no process is restarted."""
        self._start = start
        self._timeout_s = timeout_s
        self._restarts: Counter[str] = Counter()
        self._until_s: dict[str, float] = {}
        """By process: the time at which it must be ready again."""

    @property
    def restarts(self) -> int:
        return self._restarts.total()

    def restarted(self, name: str, code: int) -> bool:
        """Restart a process that ended with this exit code, if it was killed. Returns whether it was restarted."""
        if self._start is None or code >= 0 or self._restarts[name] == MOST_RESTARTS:
            return False
        # The time runs from the first kill since the process was ready: a second kill does not extend it.
        until_s = self._until_s.setdefault(name, time.monotonic() + self._timeout_s)
        if time.monotonic() > until_s:
            return False
        self._restarts[name] += 1
        self._start(name)
        return True

    def has_restarted(self, name: str) -> bool:
        return name in self._restarts

    def note_ready(self, name: str) -> None:
        del self._until_s[name]

    def late(self) -> list[str]:
        """Return the restarted processes that are not ready in time."""
        return [name for name, until_s in self._until_s.items() if time.monotonic() > until_s]
