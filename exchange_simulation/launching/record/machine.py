"""The machine of a measurement: facts about the host, versions of libraries, and the commit of the code.

A fact that the system does not show is absent.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import zmq

ROOT = Path("/")
"""The folder of proc and sys. Tests set it to a folder with files of their own."""
LIBRARIES = ("numba", "numpy", "llvmlite", "scipy", "pyzmq", "pyspark", "xxhash")
CPUS = "sys/devices/system/cpu"
CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0"
SWITCHES = {"1": True, "0": False}
GUESTS_CLOCKS = {"kvm-clock": "KVM", "hyperv_clocksource": "Hyper-V", "xen": "Xen"}
"""Clocks that only guests of a hypervisor have, and the hypervisor of each."""
CHECKOUT = Path(__file__).parents[3]
COMMIT_DIGITS = 12
GIT_PATIENCE_S = 5.0


def text_of(path: str) -> str | None:
    """Return the content of a file, without white space around it; None if the file is missing or cannot be read."""
    try:
        return (ROOT / path).read_text(errors="replace").strip()
    except OSError:
        return None


def has_proc() -> bool:
    """Return True unless this is a Linux that hides /proc, as some containers do."""
    return sys.platform != "linux" or Path("/proc/self").exists()


def words_of(path: str) -> dict[str, str]:
    """Return the second word of each line by its first word; empty if the file is missing."""
    second_words = {}
    for line in (text_of(path) or "").splitlines():
        words = line.split()
        if len(words) > 1:
            second_words[words[0]] = words[1]
    return second_words


def host_facts() -> dict[str, Any]:
    """Return run.json's `host`."""
    facts = {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total if has_proc() else None,
        "kernel": f"{platform.system()} {platform.release()}",
        "congestion_control": text_of("proc/sys/net/ipv4/tcp_congestion_control"),
        "governor": text_of(f"{CPUS}/cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "smt": SWITCHES.get(text_of(f"{CPUS}/smt/active") or ""),
        "numa_nodes": len(list((ROOT / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "clocksource": text_of(f"{CLOCKSOURCE}/current_clocksource"),
        "hypervisor": _hypervisor(),
        "mitigations": _mitigations(),
        "cpu_quota_cores": cpu_quota_cores(),
        "load_before": list(os.getloadavg()),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _cpu_model() -> str:
    for line in (text_of("proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _turbo() -> bool | None:
    """Return True if processors may go above their nominal frequency; None if the system does not show that."""
    is_off = SWITCHES.get(text_of(f"{CPUS}/intel_pstate/no_turbo") or "")
    if is_off is not None:
        return not is_off
    return SWITCHES.get(text_of(f"{CPUS}/cpufreq/boost") or "")


def _hypervisor() -> str | None:
    """Return the hypervisor's name; `unknown` if the processor only says that there is one; None without one."""
    name_by_kernel = text_of("sys/hypervisor/type")
    if name_by_kernel:
        return name_by_kernel
    clocks = text_of(f"{CLOCKSOURCE}/available_clocksource") or ""
    for clock, name in GUESTS_CLOCKS.items():
        if clock in clocks:
            return name
    for line in (text_of("proc/cpuinfo") or "").splitlines():
        if line.startswith("flags"):
            return "unknown" if "hypervisor" in line.split() else None
    return None


def _mitigations() -> dict[str, str] | None:
    """Return the kernel's mitigation of each weakness of the processor; None if the system does not show them."""
    folder = ROOT / CPUS / "vulnerabilities"
    if not folder.is_dir():
        return None
    mitigations = {}
    for path in sorted(folder.iterdir()):
        line = text_of(str(path.relative_to(ROOT))) or ""
        if line.startswith("Mitigation: "):
            mitigations[path.name] = line.removeprefix("Mitigation: ").partition(";")[0]
    return mitigations


def now() -> str:
    """Return the current time as run.json's `started_at` has it: ISO 8601 with zone."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def versions() -> dict[str, Any]:
    """Return run.json's `versions`."""
    return {
        "python": platform.python_version(),
        "exchange": version("exchange-simulation"),
        **checkout(CHECKOUT),
        **_versions_of_libraries(),
        "libzmq": zmq.zmq_version(),
    }


@cache
def _versions_of_libraries() -> dict[str, str]:
    """Return the version of each installed library. The lookup is cached, since it reads every folder of the path."""
    installed: dict[str, str] = {}
    for library in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            installed[library] = version(library)
    return installed


def checkout(folder: Path) -> dict[str, Any]:
    """Return the commit of a git checkout, and whether tracked files differ from the commit.

    Empty if the folder has no `.git`, as an installed package, or git is missing. A repository around the folder is not
    that of this code, and does not count.
    """
    words = ["git", "--no-optional-locks", "-C", str(folder), "status", "--porcelain=v2", "--branch"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    lines = ""
    if (folder / ".git").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            lines = subprocess.run(
                [*words, "--untracked-files=no"],
                capture_output=True,
                text=True,
                env=environment,
                timeout=GIT_PATIENCE_S,
                check=True,
            ).stdout
    facts: dict[str, Any] = {}
    has_changes = any(not line.startswith("#") for line in lines.splitlines())
    for line in lines.splitlines():
        if line.startswith("# branch.oid "):
            facts["commit"] = line.split()[-1][:COMMIT_DIGITS]
            facts["uncommitted_changes"] = has_changes
    return facts


@dataclass(frozen=True)
class Throttling:
    """The number of periods in which the quota of our control group was used up, and the time that it had to wait."""

    periods: int
    throttled_s: float

    @classmethod
    def now(cls) -> Throttling | None:
        """Read the current counters; None if no control group limits processors here."""
        for folder in _cpu_groups():
            lines = words_of(f"{folder}/cpu.stat")
            if "nr_throttled" in lines:
                waited_ns = lines.get("throttled_time") or f"{lines['throttled_usec']}000"
                return cls(int(lines["nr_throttled"]), int(waited_ns) / 1e9)
        return None

    def since(self, start: Throttling) -> Throttling:
        return Throttling(self.periods - start.periods, self.throttled_s - start.throttled_s)


def cpu_quota_cores() -> float | None:
    """Return the smallest limit of processors of our control group and of those around it; None without a limit."""
    limits = []
    for folder in _cpu_groups():
        limit = _limit(folder)
        if limit is not None:
            limits.append(limit)
    return min(limits, default=None)


def _limit(folder: str) -> float | None:
    """Return the number of processors that the control group in this folder may use; None without a limit."""
    quota, _, period = (text_of(f"{folder}/cpu.max") or "").partition(" ")
    if not period:
        quota = text_of(f"{folder}/cpu.cfs_quota_us") or ""
        period = text_of(f"{folder}/cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal()) or int(period) == 0:
        return None
    return int(quota) / int(period)


def _cpu_groups() -> Iterator[str]:
    """Yield the folders of our control group for processors, and of the groups around it, from the inside out."""
    for line in (text_of("proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        names = controllers.split(",")
        if "cpu" not in names and controllers:
            continue
        mounted = Path("sys/fs/cgroup", controllers) if controllers else Path("sys/fs/cgroup")
        inside = Path(group.lstrip("/"))
        yield from (str(mounted / part) for part in (inside, *inside.parents))
