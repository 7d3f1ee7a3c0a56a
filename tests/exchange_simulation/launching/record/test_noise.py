"""Noise: the other work of the machine while a run's clock ran.

A process of the fake machine is (the parent's pid, own ticks, ticks of children that ended); a tick is 10 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from exchange_simulation.launching.record.noise import MachineTimes, Noise, NoiseMeter, noise_between, noise_share
from tests.exchange_simulation.launching.record.fake_machine import FakeMachine

OWN = 100
SHELL = 50
OTHER = 60
CHILD = 61
WINDOW_S = 2.0
QUIET = Noise(
    window_s=WINDOW_S,
    busy_s=1.0,
    steal_s=0.1,
    context_switches=300,
    load_after=[0.5, 0.4, 0.3],
    cores=2,
    other_processes_cpu_s=0.2,
    sees_all_processes=True,
)


def between(start: MachineTimes, end: MachineTimes) -> Noise:
    return noise_between(at(start, 0.0), at(end, WINDOW_S), {OWN})


def at(times: MachineTimes, at_s: float) -> MachineTimes:
    assert times.processes is not None
    return replace(times, at_s=at_s, processes=replace(times.processes, at_s=at_s))


def test_what_the_run_used_itself_is_nobody_elses() -> None:
    facts = QUIET.as_record({"gateway": {"cpu_s": 0.5}, "engine": {"cpu_s": 0.25}})
    assert facts["other_cpu_s"] == pytest.approx(0.25)
    assert facts["busy_s"] == 1.0
    assert facts["steal_s"] == 0.1
    assert facts["context_switches"] == 300
    assert facts["share_of_all_cpus"] == pytest.approx((0.2 + 0.1) / (2 * WINDOW_S))


def test_noise_is_unknown_if_the_run_used_more_than_the_busy_time(machine: FakeMachine) -> None:
    machine.processes({OWN: (SHELL, 0, 0)})
    start = MachineTimes.now()
    machine.ran(busy_ticks=100)
    facts = between(start, MachineTimes.now()).as_record({"gateway": {"cpu_s": 1.01}})
    assert facts["other_cpu_s"] is None
    assert facts["share_of_all_cpus"] == 0.0, "the processes themselves say that they did nothing"
    machine.whole_machine_is_seen(False)
    facts = between(start, MachineTimes.now()).as_record({"gateway": {"cpu_s": 1.01}})
    assert facts["other_cpu_s"] is None
    assert facts["share_of_all_cpus"] is None


def test_in_a_container_outside_work_is_seen_only_in_the_busy_time(machine: FakeMachine) -> None:
    machine.whole_machine_is_seen(False)
    start = MachineTimes.now()
    machine.ran(busy_ticks=100)
    facts = between(start, MachineTimes.now()).as_record({"gateway": {"cpu_s": 0.4}})
    outside_s = 1.0 - 0.4
    assert facts["share_of_all_cpus"] == pytest.approx(outside_s / (WINDOW_S * (os.cpu_count() or 1)))


def test_in_a_container_the_runs_own_processes_are_no_noise(machine: FakeMachine) -> None:
    """A network's wire, tcpdump, Spark beside the run: the launcher's child here."""
    machine.whole_machine_is_seen(False)
    machine.processes({OWN: (SHELL, 0, 0), OWN + 1: (OWN, 0, 0)})
    start = MachineTimes.now()
    machine.processes({OWN: (SHELL, 10, 0), OWN + 1: (OWN, 70, 0)})
    machine.ran(busy_ticks=100)
    facts = between(start, MachineTimes.now()).as_record({"gateway": {"cpu_s": 0.4}})
    assert facts["other_cpu_s"] == pytest.approx(0.2)


def test_only_processes_outside_the_run_are_noise(machine: FakeMachine) -> None:
    machine.processes({SHELL: (1, 10, 0), OWN: (SHELL, 20, 0), OWN + 1: (OWN, 5, 0), OTHER: (1, 7, 0)})
    start = MachineTimes.now()
    machine.processes(
        {SHELL: (1, 11, 0), OWN: (SHELL, 90, 0), OWN + 1: (OWN, 99, 0), OWN + 2: (OWN + 1, 9, 0), OTHER: (1, 37, 0)}
    )
    assert between(start, MachineTimes.now()).other_processes_cpu_s == pytest.approx(0.31)


def test_a_process_that_ended_counts_from_the_first_reading_on(machine: FakeMachine) -> None:
    """The parent gets the whole time of its child, of which 40 ticks are before the first reading."""
    machine.processes({OTHER: (1, 7, 100), CHILD: (OTHER, 30, 10)})
    start = MachineTimes.now()
    machine.processes({OTHER: (1, 7, 165)})
    assert between(start, MachineTimes.now()).other_processes_cpu_s == pytest.approx(0.25)


def test_an_ended_process_without_a_waiting_parent_subtracts_nothing(machine: FakeMachine) -> None:
    machine.processes({OTHER: (1, 7, 0), CHILD: (OTHER, 30, 0)})
    start = MachineTimes.now()
    machine.processes({OTHER: (1, 17, 0)})
    assert between(start, MachineTimes.now()).other_processes_cpu_s == pytest.approx(0.10)


def test_a_reused_process_number_is_a_new_process(machine: FakeMachine) -> None:
    machine.processes({OTHER: (1, 900, 0)})
    start = MachineTimes.now()
    machine.processes({OTHER: (1, 12, 0)})
    machine.start_anew(OTHER)
    assert between(start, MachineTimes.now()).other_processes_cpu_s == pytest.approx(0.12)


def test_the_window_of_processes_is_the_time_between_both_tables(machine: FakeMachine) -> None:
    """On a busy machine a reading takes long."""
    machine.processes({OTHER: (1, 0, 0)})
    start = MachineTimes.now()
    machine.processes({OTHER: (1, 220, 0)})
    end = at(MachineTimes.now(), 2.2)
    noise = noise_between(at(start, 0.0), replace(end, at_s=WINDOW_S), {OWN})
    assert noise.other_processes_cpu_s == pytest.approx(2.0)


def test_steal_and_pressure_are_differences_and_steal_is_noise(machine: FakeMachine) -> None:
    machine.ran(busy_ticks=50, steal_ticks=10, pressure_us=1_000_000)
    start = MachineTimes.now()
    machine.ran(busy_ticks=60, steal_ticks=30, pressure_us=1_250_000)
    noise = between(start, MachineTimes.now())
    assert noise.steal_s == pytest.approx(0.2)
    assert noise.cpu_pressure_s == pytest.approx(0.25)
    assert replace(noise, cores=2).as_record({})["share_of_all_cpus"] == pytest.approx(0.05)


def test_a_kernel_without_pressure_leaves_it_out(machine: FakeMachine) -> None:
    noise = between(MachineTimes.now(), MachineTimes.now())
    assert "cpu_pressure_s" not in noise.as_record({})
    assert "throttled_periods" not in noise.as_record({})


@pytest.mark.parametrize(("unit", "waited"), [("throttled_usec", 250_000), ("throttled_time", 250_000_000)])
def test_throttling_is_that_of_our_control_group(unit: str, waited: int, machine: FakeMachine) -> None:
    unified = unit == "throttled_usec"
    machine.put("proc/self/cgroup", "0::/ours" if unified else "2:cpu,cpuacct:/ours\n1:memory:/")
    stat = "sys/fs/cgroup/ours/cpu.stat" if unified else "sys/fs/cgroup/cpu,cpuacct/ours/cpu.stat"
    machine.put(stat, f"nr_periods 9\nnr_throttled 2\n{unit} 0")
    start = MachineTimes.now()
    machine.put(stat, f"nr_periods 99\nnr_throttled 5\n{unit} {waited}")
    facts = between(start, MachineTimes.now()).as_record({})
    assert facts["throttled_periods"] == 3
    assert facts["throttled_s"] == 0.25


def test_a_window_of_a_few_ticks_has_no_share() -> None:
    assert replace(QUIET, window_s=0.1).as_record({})["share_of_all_cpus"] is None


@pytest.mark.parametrize(
    ("noise", "share"),
    [
        ({"window_s": 2.0, "other_cpu_s": 0.3, "steal_s": 0.1}, 0.1),
        ({"window_s": 2.0, "other_cpu_s": 0.0, "steal_s": 0.1}, None),
        ({"window_s": 2.0, "other_cpu_s": None, "share_of_all_cpus": 0.07}, 0.07),
        ({"window_s": 2.0, "other_cpu_s": 0.3, "share_of_all_cpus": None}, None),
        (None, None),
    ],
    ids=["older", "older, where 0 stood for a negative remainder", "newer", "unknown", "not measured"],
)
def test_the_share_of_a_record_of_any_version(noise: dict[str, Any] | None, share: float | None) -> None:
    assert noise_share({"noise": noise, "host": {"cores": 2}}) == share


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_a_busy_loop_beside_shows_as_its_share() -> None:
    """The loop's parent ends at once, so the loop is no descendant of this process."""
    loop = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    meter = NoiseMeter()
    with subprocess.Popen(["sh", "-c", '"$@" &', "sh", sys.executable, "-c", loop], stdout=subprocess.PIPE) as shell:
        shell.wait()
        meter.clock_starts()
        assert shell.stdout is not None
        shell.stdout.read()
        time.sleep(0.05)
    meter.clock_stops()
    others_s = meter.noise.other_processes_cpu_s if meter.noise else None
    assert others_s is not None
    assert others_s >= 0.4


def test_only_the_first_stop_after_a_start_counts() -> None:
    meter = NoiseMeter()
    meter.clock_stops()
    assert meter.noise is None
    meter.clock_starts()
    meter.clock_stops()
    first = meter.noise
    meter.clock_stops()
    assert meter.noise is first
