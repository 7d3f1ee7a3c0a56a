"""The conditions of a measurement: this machine, and the versions that measured."""

from __future__ import annotations

import os
import platform
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
