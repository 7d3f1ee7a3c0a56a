"""A server's process seen from outside: its use of CPU and memory since its start."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class ProcessUsage:
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
    def of(cls, pid: int) -> ProcessUsage:
        """Read the counters of a process. OSError if there is no such process."""
        return _from_proc(pid) if sys.platform == "linux" else _from_psutil(pid)

    def with_earlier(self, earlier: Sequence[ProcessUsage]) -> ProcessUsage:
        """This use, with the CPU time and the context switches of the server's earlier processes."""
        return replace(
            self,
            cpu_ns=self.cpu_ns + sum(usage.cpu_ns for usage in earlier),
            voluntary=self.voluntary + sum(usage.voluntary for usage in earlier),
            involuntary=self.involuntary + sum(usage.involuntary for usage in earlier),
        )

    def since(self, start: ProcessUsage) -> dict[str, Any]:
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


def _from_proc(pid: int) -> ProcessUsage:
    cpu_ns = cpu_ns_of(pid)
    memory = _status(Path(f"/proc/{pid}/status"))
    if "VmRSS" not in memory:  # a zombie has none
        raise ProcessLookupError(f"process {pid} has ended")
    threads = [_status(task / "status") for task in Path(f"/proc/{pid}/task").iterdir()]
    return ProcessUsage(
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


def _from_psutil(pid: int) -> ProcessUsage:
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        switches = process.num_ctx_switches()
        rss_bytes = process.memory_info().rss
    except psutil.Error as error:
        raise ProcessLookupError(f"no process {pid}") from error
    cpu_ns = int((times.user + times.system) * 1e9)
    return ProcessUsage(
        cpu_ns=cpu_ns,
        voluntary=switches.voluntary,
        involuntary=switches.involuntary,
        rss_bytes=rss_bytes,
        max_rss_bytes=None,
    )
