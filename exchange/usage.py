"""Usage of this process: CPU of all its threads, peak memory, context switches."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def max_rss_bytes() -> int:
    """Peak resident memory. getrusage includes the parent's pages before exec, so Linux's own line is preferred."""
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(frozen=True)
class Usage:
    """Counters of this process, or of this thread where components are threads of one process."""

    cpu_ns: int
    voluntary: int
    involuntary: int

    @classmethod
    def now(cls, of_thread: bool = False) -> Usage:
        scope = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF) if of_thread else resource.RUSAGE_SELF
        usage = resource.getrusage(scope)
        cpu_ns = time.thread_time_ns() if of_thread else time.process_time_ns()
        return cls(cpu_ns, usage.ru_nvcsw, usage.ru_nivcsw)

    def since(self, start: Usage) -> dict[str, Any]:
        """Usage since an earlier reading: the payload of a process record, and a component's entry in run.json."""
        return {
            "cpu_s": (self.cpu_ns - start.cpu_ns) / 1e9,
            "max_rss_bytes": max_rss_bytes(),
            "voluntary_context_switches": self.voluntary - start.voluntary,
            "involuntary_context_switches": self.involuntary - start.involuntary,
        }
