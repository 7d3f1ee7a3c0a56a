"""A private server: one process, one folder, one loopback port. It ends with us, however we end.

    our process ──pipe──▶ keeper, a shell ──starts──▶ the server
                          ends the server at end of file on the pipe

The pipe closes when our process ends, even by SIGKILL, so no server outlives it. The keeper and the server are members
of the run's process group, whose watchdog ends them too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from transports.declaration import ServerPlace
from transports.servers.accepted import accepted_sockets
from transports.servers.ending import end_in_words
from transports.servers.starting import ServerDidNotStart, wait_until_ready
from transports.servers.usage import ProcessUsage, cpu_ns_of
from transports.sockets import reserved_port

READY_S = 30.0
END_S = 3.0
LAST_LINES = 12
KEEPER = """
"$@" >>"$SERVER_LOG" 2>&1 </dev/null &
echo $!
cat >/dev/null
kill -KILL $!
wait $!
"""
"""Starts the server, prints its process number, and ends it once no process has the other end of stdin open.

Its exit code is that of the server."""


@dataclass(frozen=True)
class ServerCommand:
    """The parts of a server that differ from product to product."""

    product: str
    """The name for users: `NATS`."""
    command_line: Callable[[str, int, Path], Sequence[str]]
    """The command line for a host, a port and the server's folder, which exists."""
    facts_if_ready: Callable[[socket.socket], Mapping[str, Any] | None]
    """Takes a new connection: facts about the server, as its version; None, or OSError, if it is not ready yet."""


@dataclass
class PrivateServer:
    """A server that we started: a BrokerServer of transports/declaration.py."""

    command: ServerCommand
    folder: Path
    host: str
    port: int
    where: ServerPlace = field(repr=False)
    keeper: subprocess.Popen[bytes] = field(repr=False)
    pid: int
    about: dict[str, Any]
    ended: list[ProcessUsage] = field(default_factory=list, repr=False)
    """The use of the processes that `restart` has ended."""

    @classmethod
    def start(cls, command: ServerCommand, folder: Path, process_group: int | None, where: ServerPlace) -> Self:
        """Start the server and wait until it answers. `folder` must not exist; `stop` removes it.

        ServerDidNotStart: nothing of the server is left then.
        """
        folder.mkdir(mode=0o700, parents=True)
        began_s = time.monotonic()
        with reserved_port(where.host, 0, where.open_socket) as port:
            keeper, pid = _launch(command, folder, port, process_group, where)
            server = cls(command, folder, where.host, port, where, keeper, pid, about={})
            try:
                facts = server._wait_until_ready(began_s + READY_S)
            except BaseException:
                server.stop()
                raise
        server.about = {
            "product": command.product,
            **facts,
            "pid": pid,
            "port": port,
            "ready_after_s": round(time.monotonic() - began_s, 3),
        }
        return server

    def restart(self) -> None:
        """End the server, and start it again over its own files, at the same address.

        ServerDidNotStart: nothing of the server is left then. OSError if the server had ended already.
        """
        self.ended.append(ProcessUsage.of(self.pid))
        self._end()
        began_s = time.monotonic()
        with reserved_port(self.host, self.port, self.where.open_socket):
            self.keeper, self.pid = _launch(self.command, self.folder, self.port, None, self.where)
            try:
                self._wait_until_ready(began_s + READY_S)
            except BaseException:
                self.stop()
                raise
        self.about["pid"] = self.pid

    def _wait_until_ready(self, until_s: float) -> Mapping[str, Any]:
        """Return the server's facts once it answers. ServerDidNotStart if it ends, or does not answer in time."""
        return wait_until_ready(self._ask_for_facts, self._failure, until_s, self._refusal)

    def _ask_for_facts(self) -> Mapping[str, Any] | None:
        """The server's facts; None if it does not answer yet."""
        with contextlib.suppress(OSError), self.where.open_socket() as sock:
            sock.settimeout(1.0)
            sock.connect((self.host, self.port))
            return self.command.facts_if_ready(sock)
        return None

    def _failure(self) -> str:
        if not self._has_ended():
            return ""
        self._end()
        return f"{end_in_words(self.keeper.returncode)} while it started"

    def _refusal(self, failure: str) -> ServerDidNotStart:
        return ServerDidNotStart(self.command.product, failure, self._last_lines())

    def _has_ended(self) -> bool:
        try:
            ProcessUsage.of(self.pid)
        except OSError:
            return True
        return False

    def log(self) -> str:
        """All that the server has said; empty if its folder is gone."""
        with contextlib.suppress(OSError):
            return _log_of(self.folder).read_text(errors="replace")
        return ""

    def _last_lines(self) -> str:
        return "\n".join(self.log().splitlines()[-LAST_LINES:])

    def usage(self) -> ProcessUsage:
        """CPU time of all processes so far; memory of the newest one. OSError if the server has ended."""
        return ProcessUsage.of(self.pid).with_earlier(self.ended)

    def cpu_ns(self) -> int:
        return cpu_ns_of(self.pid) + sum(earlier.cpu_ns for earlier in self.ended)

    def facts(self) -> dict[str, Any]:
        """product, version, pid, port, ready_after_s."""
        return dict(self.about)

    def accepted(self) -> list[dict[str, Any]]:
        return accepted_sockets(self.pid, self.port)

    def stop(self) -> None:
        """End the server and its keeper, and remove the folder. May be called again."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        """End the server and its keeper."""
        if self.keeper.stdin and not self.keeper.stdin.closed:
            self.keeper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.keeper.wait(END_S)
        if self.keeper.poll() is None:
            for pid in (self.pid, self.keeper.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.keeper.wait()
        if self.keeper.stdout:
            self.keeper.stdout.close()


def _launch(
    command: ServerCommand, folder: Path, port: int, process_group: int | None, where: ServerPlace
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the keeper; returns it and the server's process number."""
    command_line = command.command_line(where.host, port, folder)
    try:
        keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER, "keeper", *where.prefix, *command_line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "SERVER_LOG": str(_log_of(folder))},
            umask=0o077,
            process_group=process_group,
            start_new_session=process_group is None,
        )
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ServerDidNotStart(command.product, f"cannot be started: {error.strerror}", "") from error
    assert keeper.stdout is not None
    number = keeper.stdout.readline()
    if not number:
        code = keeper.wait()
        shutil.rmtree(folder, ignore_errors=True)
        raise ServerDidNotStart(command.product, f"has no keeper, a shell, which {end_in_words(code)}", "")
    return keeper, int(number)


def _log_of(folder: Path) -> Path:
    return folder / "server.log"
