"""The machine of a measurement: its facts and versions, and its noise while a run's clock ran."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import zmq

LIBRARIES = ("numba", "numpy", "pyzmq", "pyspark", "xxhash")


def _line(path: str, default: str | None = None) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def _cpu_model() -> str:
    for line in (_line("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def host_facts() -> dict[str, Any]:
    """run.json's `host`; a fact that is not known here is absent."""
    facts = {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "congestion_control": _line("/proc/sys/net/ipv4/tcp_congestion_control"),
        "governor": _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load_before": list(os.getloadavg()),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def now() -> str:
    """The current time as run.json's `started_at` has it: ISO 8601 with zone."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def versions() -> dict[str, str]:
    """run.json's `versions`."""
    return {
        "python": platform.python_version(),
        "exchange": version("exchange-simulation"),
        **{library: version(library) for library in LIBRARIES},
        "libzmq": zmq.zmq_version(),
    }


@dataclass(frozen=True, kw_only=True)
class MachineTimes:
    """Counters of the whole machine, which only grow; seconds are summed over all processors."""

    at_s: float
    busy_s: float
    steal_s: float | None
    """Time that other guests of the same host took; None if this system does not say."""
    context_switches: int

    @classmethod
    def now(cls) -> MachineTimes:
        times = psutil.cpu_times()
        at_work = ("user", "nice", "system", "irq", "softirq")
        return cls(
            at_s=time.monotonic(),
            busy_s=sum(getattr(times, name, 0.0) for name in at_work),
            steal_s=getattr(times, "steal", None),
            context_switches=psutil.cpu_stats().ctx_switches,
        )


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The machine's work between two readings."""

    window_s: float
    busy_s: float
    steal_s: float | None
    context_switches: int
    load_after: list[float]

    def beside(self, components: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """run.json's `noise`. What others used is `busy_s` less what the run's own components used."""
        own_s = sum(usage["cpu_s"] for usage in components.values())
        facts = {name: value for name, value in asdict(self).items() if value is not None}
        return {**facts, "other_cpu_s": max(0.0, self.busy_s - own_s)}


class NoiseMeter:
    """Reads twice: when the run's clock starts, and when it stops."""

    def __init__(self) -> None:
        self._start: MachineTimes | None = None
        self.noise: Noise | None = None

    def clock_starts(self) -> None:
        self._start = MachineTimes.now()

    def clock_stops(self) -> None:
        """Take the second reading, once."""
        if self._start is None or self.noise is not None:
            return
        start, end = self._start, MachineTimes.now()
        self.noise = Noise(
            window_s=end.at_s - start.at_s,
            busy_s=end.busy_s - start.busy_s,
            steal_s=None if start.steal_s is None or end.steal_s is None else end.steal_s - start.steal_s,
            context_switches=end.context_switches - start.context_switches,
            load_after=list(os.getloadavg()),
        )
