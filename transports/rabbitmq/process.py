"""A running node seen from outside: its address, its use of CPU and memory, its connections, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from transports.sockets import INTERNET, borrowed, described

GRACE_S = 3.0
LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class NodeUsage:
    """Counters of a process since its start, without its children."""

    cpu_ns: int
    voluntary: int
    involuntary: int
    rss_bytes: int
    max_rss_bytes: int | None
    """None where the system does not report it."""

    @classmethod
    def of(cls, pid: int) -> NodeUsage:
        """OSError if there is no such process."""
        return _from_proc(pid) if sys.platform == "linux" else _from_psutil(pid)

    def since(self, start: NodeUsage) -> dict[str, Any]:
        """The use since an earlier reading, under the names of exchange.results."""
        return {
            "cpu_s": (self.cpu_ns - start.cpu_ns) / 1e9,
            "rss_bytes": self.rss_bytes,
            "max_rss_bytes": self.max_rss_bytes,
            "voluntary_context_switches": self.voluntary - start.voluntary,
            "involuntary_context_switches": self.involuntary - start.involuntary,
        }


def cpu_ns_of(pid: int) -> int:
    """CPU time of all threads of a process. OSError if there is no such process."""
    clock = (~pid << 3) | 2  # of that process, as clock_getcpuclockid computes it
    return time.clock_gettime_ns(clock) if sys.platform == "linux" else _from_psutil(pid).cpu_ns


def _from_proc(pid: int) -> NodeUsage:
    cpu_ns = cpu_ns_of(pid)
    memory = _status(Path(f"/proc/{pid}/status"))
    if "VmRSS" not in memory:  # a zombie has none
        raise ProcessLookupError(f"process {pid} has ended")
    threads = [_status(task / "status") for task in Path(f"/proc/{pid}/task").iterdir()]
    return NodeUsage(
        cpu_ns,
        sum(thread.get("voluntary_ctxt_switches", 0) for thread in threads),
        sum(thread.get("nonvoluntary_ctxt_switches", 0) for thread in threads),
        memory["VmRSS"] * 1024,
        memory["VmHWM"] * 1024,
    )


def _status(path: Path) -> dict[str, int]:
    """The lines of a status file whose value begins with a number; none if its process or thread has ended."""
    try:
        fields = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0][:-1]: int(words[1]) for words in fields if len(words) > 1 and words[1].isdecimal()}


def _from_psutil(pid: int) -> NodeUsage:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        switches = process.num_ctx_switches()
        rss_bytes = process.memory_info().rss
    except psutil.Error as error:
        raise ProcessLookupError(f"no process {pid}") from error
    cpu_ns = int((times.user + times.system) * 1e9)
    return NodeUsage(cpu_ns, switches.voluntary, switches.involuntary, rss_bytes, None)


def accepted_sockets(pid: int, port: int) -> list[dict[str, Any]]:
    """Local, peer and tcp_nodelay of each connection accepted on a port, in whatever network namespace.

    OSError if the system does not let us look, or the process is not ours.
    """
    accepted = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        connection = _connection(pid, int(descriptor))
        if connection is not None and connection["local"].endswith(f":{port}"):
            accepted.append(connection)
    return accepted


def _connection(pid: int, descriptor: int) -> dict[str, Any] | None:
    """Describe a connection; None if the descriptor is no connected TCP socket, or was closed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        if not os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith("socket:"):
            return None
        with borrowed(pid, descriptor) as sock, contextlib.suppress(OSError):
            return described(sock) if sock.family in INTERNET else None
    return None


@dataclass(frozen=True)
class NodeAddress:
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str
    pid: int
    about: Mapping[str, Any] = field(repr=False)

    @property
    def url(self) -> str:
        """The URL without the password."""
        scheme = "amqps" if self.facts()["settings"].get("keys") else "amqp"
        return f"{scheme}://{self.user}@{self.host}:{self.port}"

    def facts(self) -> dict[str, Any]:
        """product, version, erlang, pid, port, ready_after_s, settings."""
        return dict(self.about)

    def accepted(self) -> list[dict[str, Any]]:
        """Local, peer and tcp_nodelay of each connection that the node has accepted. OSError if we may not look."""
        return accepted_sockets(self.pid, self.port)

    def cpu_ns(self) -> int:
        """CPU time by one call of the kernel; `usage` reads a file for each thread. OSError if the node is gone."""
        return cpu_ns_of(self.pid)

    def usage(self) -> NodeUsage:
        """Read from /proc, without asking the node. OSError if the node is gone."""
        return NodeUsage.of(self.pid)


def end(node: psutil.Process) -> None:
    """Send SIGTERM, wait, then send SIGKILL; afterwards neither the process nor a child of it is left.

    A node's helpers (erl_child_setup, the shell that watches the disk) lead sessions of their own, so no signal to a
    process group reaches them. They end by themselves once the node's end of their pipe closes; `end` waits for that.
    """
    family = [node]
    with contextlib.suppress(psutil.Error):
        family += node.children(recursive=True)
    _signal([node], signal.SIGTERM)
    staying = _wait_for(family)
    _signal(staying, signal.SIGKILL)
    _wait_for(staying)


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _wait_for(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Wait for the processes to end; return those that still live after GRACE_S."""
    end_s = time.monotonic() + GRACE_S
    while (staying := [process for process in processes if lives(process)]) and time.monotonic() < end_s:
        time.sleep(LOOK_EVERY_S)
    return staying


def lives(process: psutil.Process) -> bool:
    """False for a zombie, which only waits for its parent; but a zombie with threads is still on its way out."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    return False


def left_in(folder: Path) -> list[psutil.Process]:
    """Our nodes that run in a folder, recognised by the home on their command line."""
    home = str(folder / "home")
    return [process for process in psutil.process_iter() if _is_ours_with(process, home)]


def _is_ours_with(process: psutil.Process, argument: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.uids().effective == os.geteuid()) and argument in process.cmdline()
    return False
