"""A fake /proc and /sys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from exchange_simulation.launching.record import machine as machine_facts
from exchange_simulation.launching.record.noise import ALL_PROCESSES, KTHREADD

Ticks = tuple[int, int, int]
"""(the parent's pid, own ticks, ticks of children that ended) of a process."""


class FakeMachine:
    """Two processors; what no test puts there does not exist."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        monkeypatch.setattr(machine_facts, "ROOT", root)
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
        self.put("proc/self/ns/.keep", "")
        self.whole_machine_is_seen(True)
        self.ran(busy_ticks=0)
        self.processes({})
        free = ("MemFree", "MemAvailable", "Buffers", "Cached", "SReclaimable", "Shmem", "Active", "Inactive", "Slab")
        self.put("proc/meminfo", "\n".join(["MemTotal: 4096 kB", *(f"{name}: 512 kB" for name in free)]))

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text + "\n")

    def whole_machine_is_seen(self, seen: bool) -> None:
        link = self.root / "proc/self/ns/pid"
        link.unlink(missing_ok=True)
        link.symlink_to(ALL_PROCESSES if seen else "pid:[4026532001]")

    def ran(self, busy_ticks: int, steal_ticks: int = 0, pressure_us: int | None = None) -> None:
        """Since the machine's start."""
        self.put("proc/stat", f"cpu  {busy_ticks} 0 0 0 0 0 0 {steal_ticks} 0 0\nctxt 100\nintr 0\nsoftirq 0")
        if pressure_us is not None:
            self.put("proc/pressure/cpu", f"some avg10=0.00 avg60=0.00 avg300=0.00 total={pressure_us}\nfull total=9")

    def processes(self, by_pid: Mapping[int, Ticks]) -> None:
        """Make these all processes that there are, beside the kernel's own. Their start times are their pids."""
        for folder in (self.root / "proc").glob("[0-9]*"):
            (folder / "stat").unlink()
            folder.rmdir()
        for pid, (parent, own, children) in {KTHREADD: (0, 0, 0), **by_pid}.items():
            name = f"({pid} (a name) 1 2)"
            self.put(
                f"proc/{pid}/stat", f"{pid} {name} S {parent} 0 0 0 0 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 {pid}"
            )

    def start_anew(self, pid: int) -> None:
        """Give a process another start time: its pid was used again."""
        stat = self.root / f"proc/{pid}/stat"
        everything_but_start, _, _ = stat.read_text().rpartition(" ")
        stat.write_text(f"{everything_but_start} 4711\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    return FakeMachine(tmp_path / "machine", monkeypatch)
