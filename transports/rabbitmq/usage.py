"""What a node has used, from a few files of /proc: CPU of all its threads, memory, context switches."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class NodeUsage:
    """Counters of a process since it was started; its children are left out."""

    cpu_ns: int
    voluntary: int
    involuntary: int
    rss_bytes: int
    max_rss_bytes: int | None
    """None where the system does not tell."""

    @classmethod
    def of(cls, pid: int) -> NodeUsage:
        """OSError where there is no such process."""
        return _from_proc(pid) if sys.platform == "linux" else _from_psutil(pid)

    def since(self, start: NodeUsage) -> dict[str, Any]:
        """Under the names of exchange.usage."""
        return {
            "cpu_s": (self.cpu_ns - start.cpu_ns) / 1e9,
            "rss_bytes": self.rss_bytes,
            "max_rss_bytes": self.max_rss_bytes,
            "voluntary_context_switches": self.voluntary - start.voluntary,
            "involuntary_context_switches": self.involuntary - start.involuntary,
        }


def cpu_ns_of(pid: int) -> int:
    """Of all its threads. OSError where there is no such process."""
    return time.clock_gettime_ns(_cpu_clock(pid)) if sys.platform == "linux" else _from_psutil(pid).cpu_ns


def _from_proc(pid: int) -> NodeUsage:
    cpu_ns = cpu_ns_of(pid)
    memory = _status(Path(f"/proc/{pid}/status"))
    if "VmRSS" not in memory:  # a zombie has none
        raise ProcessLookupError(f"process {pid} has ended")
    threads = [_status(task / "status") for task in Path(f"/proc/{pid}/task").iterdir()]
    return NodeUsage(
        cpu_ns,
        sum(thread["voluntary_ctxt_switches"] for thread in threads),
        sum(thread["nonvoluntary_ctxt_switches"] for thread in threads),
        memory["VmRSS"] * 1024,
        memory["VmHWM"] * 1024,
    )


def _cpu_clock(pid: int) -> int:
    """The kernel's number for the CPU clock of another process, what clock_getcpuclockid answers."""
    return (~pid << 3) | 2


def _status(path: Path) -> dict[str, int]:
    """The lines of a status file that begin with a number."""
    fields = (line.split() for line in path.read_text().splitlines())
    return {words[0][:-1]: int(words[1]) for words in fields if len(words) > 1 and words[1].isdecimal()}


def _from_psutil(pid: int) -> NodeUsage:
    try:
        process = psutil.Process(pid)
        times, switches = process.cpu_times(), process.num_ctx_switches()
        rss_bytes = process.memory_info().rss
    except psutil.Error as error:
        raise ProcessLookupError(f"no process {pid}") from error
    cpu_ns = int((times.user + times.system) * 1e9)
    return NodeUsage(cpu_ns, switches.voluntary, switches.involuntary, rss_bytes, None)
