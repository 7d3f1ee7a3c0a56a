"""Noise: the other work of the machine while the clock of a run ran, from the kernel's counters.

The CPU time of other processes comes from the scheduler's sums in /proc/PID/stat. The machine's busy time comes from
/proc/stat, which counts the process that runs at each tick. This busy time may be less than the run's own CPU time.
Then the time that others used is unknown.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import psutil

from exchange_simulation.launching.record import machine
from exchange_simulation.launching.record.machine import Throttling, text_of

LEAST_WINDOW_S = 0.25
"""The shortest window of a measurement. In a shorter one, a tick of the kernel's clock is too large a share."""
MOST_SHARE = 0.05
"""The largest share of the processors' time that does not change the figures; see docs/noisy-runs.md."""
ALL_PROCESSES = "pid:[4026531836]"
"""The namespace in which every process of the machine can be seen; the kernel gives it this number."""
KTHREADD = 2
"""The parent of kernel threads. It cannot be seen where /proc hides the processes of other users."""


class Process(NamedTuple):
    """A process's entry in /proc. `children_ticks` are those of ended children for which the process waited."""

    name: str
    parent: int
    started: int
    own_ticks: int
    children_ticks: int


@dataclass(frozen=True)
class ProcessTable:
    """All processes that can be seen at one time."""

    by_pid: Mapping[int, Process]
    at_s: float
    """The time in the middle of the reading. A reading takes a millisecond, and more on a busy machine."""
    sees_all: bool
    """False in a container, or where other users' processes are hidden."""

    @classmethod
    def now(cls) -> ProcessTable | None:
        """Read the table; None if this system has no /proc."""
        folder = str(machine.ROOT / "proc")
        with contextlib.suppress(OSError):
            begin_s = time.monotonic()
            by_pid = dict(_processes(folder))
            at_s = (begin_s + time.monotonic()) / 2
            return cls(by_pid, at_s, sees_every_process() and KTHREADD in by_pid)
        return None


def sees_every_process() -> bool:
    """Return True if all processes of the machine can be seen; False in a container, or if the system does not say."""
    with contextlib.suppress(OSError):
        return os.readlink(machine.ROOT / "proc/self/ns/pid") == ALL_PROCESSES
    return False


def _processes(folder: str) -> Iterator[tuple[int, Process]]:
    """Yield each process with its number."""
    for name in os.listdir(folder):
        if name.isdecimal():
            with contextlib.suppress(OSError):  # the process has just ended
                yield int(name), _process(f"{folder}/{name}/stat")


def _process(path: str) -> Process:
    """Read the fields of /proc/PID/stat that proc(5) numbers 2 (name), 4 (parent), 14 to 17 (ticks) and 22 (start).

    The name stands in brackets, and may itself hold brackets and blanks. `fields` begins with field 3.
    """
    descriptor = os.open(path, os.O_RDONLY)  # this takes a third of the time of a file object
    try:
        head, _, rest = os.read(descriptor, 4096).rpartition(b")")
    finally:
        os.close(descriptor)
    fields = rest.split()
    user, system, children_user, children_system = map(int, fields[14 - 3 : 17 - 3 + 1])
    _, _, name = head.partition(b"(")
    return Process(
        name=name.decode(errors="replace"),
        parent=int(fields[4 - 3]),
        started=int(fields[22 - 3]),
        own_ticks=user + system,
        children_ticks=children_user + children_system,
    )


def cpu_s_by_process(
    before: ProcessTable, after: ProcessTable, own_pids: Collection[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return CPU seconds between two readings by process, first of other processes, then of own processes.

    A process's time includes that of its children that ended between the readings. The kernel adds the whole time of an
    ended child to its parent, so the child's time before the first reading is subtracted. If the parent did not wait
    for the child, the child's time is lost.
    """
    own = _with_descendants(before, own_pids) | _with_descendants(after, own_pids)
    used_before = Counter[int]()
    for pid, process in before.by_pid.items():
        if not _still_lives(pid, process, after):
            used_before[_heir(process, before, after)] += process.own_ticks + process.children_ticks
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    cpu_s_of_others: dict[int, float] = {}
    cpu_s_of_own: dict[int, float] = {}
    for pid, process in after.by_pid.items():
        cpu_s = tick_s * _ticks_between(before.by_pid.get(pid), process, used_before[pid])
        if pid in own:
            cpu_s_of_own[pid] = cpu_s
        else:
            cpu_s_of_others[pid] = cpu_s
    return cpu_s_of_others, cpu_s_of_own


def _ticks_between(before: Process | None, process: Process, ended_children_before: int) -> int:
    """Return the ticks that a process, and its children that ended, used between two readings.

    `ended_children_before` are the ticks of such children before the first reading.
    """
    is_new = before is None or before.started != process.started
    if before is None or is_new:
        return process.own_ticks + process.children_ticks
    own_ticks = process.own_ticks - before.own_ticks
    children_ticks = process.children_ticks - before.children_ticks - ended_children_before
    return own_ticks + max(0, children_ticks)


def _still_lives(pid: int, process: Process, later: ProcessTable) -> bool:
    """Return True if the process is in the later table. Another process may have got its number."""
    same_number = later.by_pid.get(pid)
    return same_number is not None and same_number.started == process.started


def _heir(process: Process, before: ProcessTable, after: ProcessTable) -> int:
    """Return the nearest ancestor of an ended process that still lives: the ended process's time is added to it."""
    parent = process.parent
    while parent in before.by_pid and not _still_lives(parent, before.by_pid[parent], after):
        parent = before.by_pid[parent].parent
    return parent


def _with_descendants(table: ProcessTable, pids: Collection[int]) -> set[int]:
    """Return these processes and all their descendants."""
    children: dict[int, list[int]] = {}
    for pid, process in table.by_pid.items():
        children.setdefault(process.parent, []).append(pid)
    family = set(pids)
    new = list(pids)
    while new:
        next_generation = []
        for pid in new:
            next_generation += [child for child in children.get(pid, ()) if child not in family]
        family.update(next_generation)
        new = next_generation
    return family


@dataclass(frozen=True, kw_only=True)
class MachineTimes:
    """Counters of the whole machine at one time. They only grow. Seconds are summed over all processors."""

    at_s: float
    busy_s: float
    steal_s: float | None
    """Time that other guests of the same host took; None if this system does not say."""
    context_switches: int
    cpu_pressure_s: float | None
    """Time in which some task waited for a processor (PSI); None if the kernel does not count it."""
    throttling: Throttling | None
    processes: ProcessTable | None

    @classmethod
    def now(cls) -> MachineTimes:
        times = psutil.cpu_times()
        at_work = ("user", "nice", "system", "irq", "softirq")
        return cls(
            at_s=time.monotonic(),
            busy_s=sum(getattr(times, name, 0.0) for name in at_work),
            steal_s=getattr(times, "steal", None),
            context_switches=psutil.cpu_stats().ctx_switches,
            cpu_pressure_s=_cpu_pressure_s(),
            throttling=Throttling.now(),
            processes=ProcessTable.now(),
        )


def _cpu_pressure_s() -> float | None:
    """Return the time in which some task waited for a processor; None if the kernel does not count it.

    The first line of the file is `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`.
    """
    _, _, after_total = (text_of("proc/pressure/cpu") or "").partition("total=")
    words = after_total.split()
    return int(words[0]) / 1e6 if words else None


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The machine's work between two readings. A field is None if the system does not show it."""

    window_s: float
    busy_s: float
    steal_s: float | None
    context_switches: int
    load_after: list[float]
    cores: int
    cpu_pressure_s: float | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None
    other_processes_cpu_s: float | None = None
    own_processes_cpu_s: float = 0.0
    """CPU time of the launcher and its descendants: the components, and also a network's wire, tcpdump and Spark."""
    sees_all_processes: bool = False

    def as_record(self, components: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return run.json's `noise`. `components` is the use of the machine by the run's components."""
        components_cpu_s = sum(usage["cpu_s"] for usage in components.values())
        remainder_s = self.busy_s - max(self.own_processes_cpu_s, components_cpu_s)
        other_cpu_s = remainder_s if remainder_s >= 0 else None
        facts = {
            name: value for name, value in vars(self).items() if value is not None and name not in UNWRITTEN_FIELDS
        }
        return {**facts, "other_cpu_s": other_cpu_s, "share_of_all_cpus": self._share(other_cpu_s)}

    def _share(self, remainder_s: float | None) -> float | None:
        """Return the share of all processors' time that others took; None if it is unknown.

        In a container, processes outside cannot be seen. There the remainder of the machine's busy time is used, which
        includes their time.
        """
        other_s = self.other_processes_cpu_s
        if not self.sees_all_processes:
            other_s = None if remainder_s is None else max(remainder_s, other_s or 0.0)
        if other_s is None or self.window_s < LEAST_WINDOW_S:
            return None
        return min(1.0, (other_s + (self.steal_s or 0.0)) / (self.window_s * self.cores))


UNWRITTEN_FIELDS = {"cores", "sees_all_processes", "own_processes_cpu_s"}
"""Fields that are not written into run.json's `noise`."""


def noise_share(run: Mapping[str, Any]) -> float | None:
    """Return the share of all processors' time that other work and steal took during a run; None if it is unknown.

    Of a run over several machines, it is the share on the machine where others took most; the launcher's machine counts
    only if it has components. A record without `share_of_all_cpus` is of an older version. In such a record 0 also
    stands for an unknown share.
    """
    hosts = run.get("hosts") or ()
    shares = [(host.get("noise") or {}).get("share_of_all_cpus") for host in hosts]
    if not hosts or any(host["is_launchers_machine"] for host in hosts):
        shares.append(_launchers_share(run))
    return max((share for share in shares if share is not None), default=None)


def _launchers_share(run: Mapping[str, Any]) -> float | None:
    """Return the share of the processors' time that others took on the launcher's machine; None if it is unknown."""
    noise = run.get("noise")
    cores = run.get("host", {}).get("cores")
    if not noise:
        return None
    if "share_of_all_cpus" in noise:
        return noise["share_of_all_cpus"]
    if not cores or not noise["window_s"] or not noise["other_cpu_s"]:
        return None
    return float((noise["other_cpu_s"] + noise.get("steal_s", 0.0)) / (noise["window_s"] * cores))


def is_noisy_share(share: float | None, most_share: float = MOST_SHARE) -> bool:
    """Return True if others took so much of the processors that it shows in the figures. This is the only such rule.

    A measurement whose noise is unknown is not noisy.
    """
    return share is not None and share > most_share


def noise_words(run: Mapping[str, Any]) -> str:
    """Return the noise in words; empty if the noise is unknown. For example: others took 47% of all processors"""
    share = noise_share(run)
    return "" if share is None else f"others took {share_words(share)} of all processors"


def why_set_aside(run: Mapping[str, Any]) -> str:
    """Return why the run is to be made again, in words. If its noise is unknown, an earlier try was noisy."""
    return noise_words(run) or "too short to tell what others took"


def share_words(share: float) -> str:
    """Return the share in percent. Below 10% it has a decimal, so that 5.0% and 5.4% can be told from each other."""
    return f"{share:.0%}" if share >= 2 * MOST_SHARE else f"{share:.1%}"


class NoiseMeter:
    """Reads the machine's counters twice: when the run's clock starts, and when it stops."""

    def __init__(self) -> None:
        self._start: MachineTimes | None = None
        self.noise: Noise | None = None

    def clock_starts(self) -> None:
        """Take the first reading. Without /proc there is none, and the noise stays unknown."""
        if machine.has_proc():
            self._start = MachineTimes.now()

    def clock_stops(self, own_pids: Collection[int] = (), hides_own: bool = False) -> None:
        """Take the second reading, once. `own_pids` are processes of the run beside this one and its descendants.

        `hides_own`: a process of the run cannot be told from other processes, so the share of others is unknown.
        """
        if self._start is not None and self.noise is None:
            noise = noise_between(self._start, MachineTimes.now(), {os.getpid(), *own_pids})
            if hides_own:
                noise = replace(noise, other_processes_cpu_s=None, sees_all_processes=True)
            self.noise = noise


def noise_between(start: MachineTimes, end: MachineTimes, own_pids: Collection[int]) -> Noise:
    """Return the difference between two readings. Descendants of `own_pids` belong to the run as well."""
    throttled = end.throttling.since(start.throttling) if start.throttling and end.throttling else None
    window_s = end.at_s - start.at_s
    tables = (start.processes, end.processes)
    other_cores, own_cores = _busy_processors(start.processes, end.processes, own_pids)
    return Noise(
        window_s=window_s,
        busy_s=end.busy_s - start.busy_s,
        steal_s=_difference(start.steal_s, end.steal_s),
        context_switches=end.context_switches - start.context_switches,
        load_after=list(os.getloadavg()),
        cores=os.cpu_count() or 1,
        cpu_pressure_s=_difference(start.cpu_pressure_s, end.cpu_pressure_s),
        throttled_periods=throttled.periods if throttled else None,
        throttled_s=throttled.throttled_s if throttled else None,
        other_processes_cpu_s=None if other_cores is None else other_cores * window_s,
        own_processes_cpu_s=(own_cores or 0.0) * window_s,
        sees_all_processes=all(table is not None and table.sees_all for table in tables),
    )


def _busy_processors(
    before: ProcessTable | None, after: ProcessTable | None, own_pids: Collection[int]
) -> tuple[float | None, float | None]:
    """Return how many processors other processes kept busy on average, and how many own processes; None if unknown.

    The divisor is the time between the two tables, since reading the tables takes time.
    """
    if before is None or after is None:
        return None, None
    window_s = after.at_s - before.at_s
    of_others, of_own = cpu_s_by_process(before, after, own_pids)
    return sum(of_others.values()) / window_s, sum(of_own.values()) / window_s


def _difference(start: float | None, end: float | None) -> float | None:
    """Return `end` - `start`; None if one of them is None."""
    if start is None or end is None:
        return None
    return end - start
