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

from transports.sockets import INTERNET, borrowed_socket, describe

GRACE_S = 3.0
LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class NodeUsage:
    """A process's use of CPU and memory since its start, without its children."""

    cpu_ns: int
    voluntary: int
    """Context switches by which a thread began to wait."""
    involuntary: int
    """Context switches by which the kernel took the CPU from a thread."""
    rss_bytes: int
    max_rss_bytes: int | None
    """The largest memory so far; None if the system does not report it."""

    @classmethod
    def of(cls, pid: int) -> NodeUsage:
        """Read the counters of a process. OSError if there is no such process."""
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
    if sys.platform != "linux":
        return _from_psutil(pid).cpu_ns
    process_clock = (~pid << 3) | 2  # as the C library's clock_getcpuclockid computes the number
    return time.clock_gettime_ns(process_clock)


def _from_proc(pid: int) -> NodeUsage:
    cpu_ns = cpu_ns_of(pid)
    memory = _status(Path(f"/proc/{pid}/status"))
    if "VmRSS" not in memory:  # a zombie has none
        raise ProcessLookupError(f"process {pid} has ended")
    threads = [_status(task / "status") for task in Path(f"/proc/{pid}/task").iterdir()]
    return NodeUsage(
        cpu_ns=cpu_ns,
        voluntary=sum(thread.get("voluntary_ctxt_switches", 0) for thread in threads),
        involuntary=sum(thread.get("nonvoluntary_ctxt_switches", 0) for thread in threads),
        rss_bytes=memory["VmRSS"] * 1024,
        max_rss_bytes=memory["VmHWM"] * 1024,
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
    return NodeUsage(
        cpu_ns=cpu_ns,
        voluntary=switches.voluntary,
        involuntary=switches.involuntary,
        rss_bytes=rss_bytes,
        max_rss_bytes=None,
    )


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
        with borrowed_socket(pid, descriptor) as sock, contextlib.suppress(OSError):
            if sock.family in INTERNET:
                return describe(sock)
    return None


@dataclass(frozen=True)
class NodeAddress:
    """The address of a running node, our user there, and the node's process; other processes can use it, too."""

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


def end_process(node: psutil.Process) -> None:
    """Send SIGTERM, wait, then send SIGKILL; afterwards neither the process nor a child of it is left.

    A node's helpers (erl_child_setup, the shell that watches the disk) lead sessions of their own, so no signal to a
    process group reaches them. They end by themselves once the node's side of their pipe closes; we wait for that.
    """
    node_and_helpers = [node]
    with contextlib.suppress(psutil.Error):
        node_and_helpers += node.children(recursive=True)
    _signal([node], signal.SIGTERM)
    alive = _wait_for(node_and_helpers)
    _signal(alive, signal.SIGKILL)
    _wait_for(alive)


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _wait_for(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Wait for the processes to end; return those that still live after GRACE_S."""
    deadline_s = time.monotonic() + GRACE_S
    alive = [process for process in processes if is_alive(process)]
    while alive and time.monotonic() < deadline_s:
        time.sleep(LOOK_EVERY_S)
        alive = [process for process in processes if is_alive(process)]
    return alive


def is_alive(process: psutil.Process) -> bool:
    """True if the process runs. A zombie does not, unless threads of it still run."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    return False


def nodes_left_in(folder: Path) -> list[psutil.Process]:
    """The processes of our user whose command line has the home of a node in this folder."""
    home = str(folder / "home")
    return [process for process in psutil.process_iter() if _is_ours_with(process, home)]


def _is_ours_with(process: psutil.Process, argument: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.uids().effective == os.geteuid()) and argument in process.cmdline()
    return False
