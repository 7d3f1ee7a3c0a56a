"""The facts about a machine in a record; unknown facts are absent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.launching.record.machine import checkout, cpu_quota_cores, host_facts
from tests.exchange_simulation.launching.record.fake_machine import FakeMachine

CPUS = "sys/devices/system/cpu"
CLOCKS = "sys/devices/system/clocksource/clocksource0"


def test_facts_that_the_system_does_not_show_are_absent(machine: FakeMachine) -> None:
    absent_facts = {
        "turbo",
        "smt",
        "numa_nodes",
        "clocksource",
        "hypervisor",
        "mitigations",
        "cpu_quota_cores",
        "governor",
    }
    assert not absent_facts & host_facts().keys()


def test_a_machine_is_described_by_what_changes_its_figures(machine: FakeMachine) -> None:
    machine.put(f"{CPUS}/intel_pstate/no_turbo", "1")
    machine.put(f"{CPUS}/smt/active", "1")
    machine.put(f"{CPUS}/vulnerabilities/meltdown", "Mitigation: PTI")
    machine.put(f"{CPUS}/vulnerabilities/spectre_v2", "Mitigation: Retpolines; STIBP: disabled")
    machine.put(f"{CPUS}/vulnerabilities/l1tf", "Not affected")
    machine.put("sys/devices/system/node/node0/cpulist", "0-3")
    machine.put("sys/devices/system/node/node1/cpulist", "4-7")
    machine.put(f"{CLOCKS}/current_clocksource", "tsc")
    machine.put(f"{CLOCKS}/available_clocksource", "tsc kvm-clock")
    found = host_facts()
    assert not found["turbo"]
    assert found["smt"]
    assert found["numa_nodes"] == 2
    assert found["clocksource"] == "tsc"
    assert found["hypervisor"] == "KVM"
    assert found["mitigations"] == {"meltdown": "PTI", "spectre_v2": "Retpolines"}


@pytest.mark.parametrize(
    ("path", "text", "field", "value"),
    [
        (f"{CPUS}/cpufreq/boost", "1", "turbo", True),
        (f"{CPUS}/smt/active", "0", "smt", False),
        ("sys/hypervisor/type", "xen", "hypervisor", "xen"),
        ("proc/cpuinfo", "model name : Z80\nflags : fpu hypervisor", "hypervisor", "unknown"),
        ("proc/cpuinfo", "model name : Z80", "cpu", "Z80"),
    ],
)
def test_each_fact_has_its_file(path: str, text: str, field: str, value: Any, machine: FakeMachine) -> None:
    machine.put(path, text)
    assert host_facts()[field] == value


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({"cpu.max": "max 100000"}, None),
        ({"ours/cpu.max": "150000 100000", "cpu.max": "400000 100000"}, 1.5),
        ({"ours/cpu.max": "max 100000", "cpu.max": "50000 100000"}, 0.5),
    ],
)
def test_the_tightest_quota_around_us_counts(files: dict[str, str], cores: float | None, machine: FakeMachine) -> None:
    machine.put("proc/self/cgroup", "0::/ours")
    for path, text in files.items():
        machine.put(f"sys/fs/cgroup/{path}", text)
    assert cpu_quota_cores() == cores


def test_an_old_control_group_has_its_quota_in_two_files(machine: FakeMachine) -> None:
    machine.put("proc/self/cgroup", "4:cpu,cpuacct:/ours\n0::/")
    machine.put("sys/fs/cgroup/cpu,cpuacct/ours/cpu.cfs_quota_us", "-1")
    machine.put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000")
    machine.put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
    assert cpu_quota_cores() == 2.5


def git(folder: Path, *words: str) -> str:
    own = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_names_its_commit_and_whether_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    assert checkout(folder) == {}
    git(folder, "init", "-q")
    (folder / "code.py").write_text("1\n")
    git(folder, "add", "code.py")
    git(folder, "commit", "-q", "-m", "one")
    commit = git(folder, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "of a hook that runs us"))
    assert checkout(folder) == {"commit": commit[:12], "uncommitted_changes": False}
    (folder / "new.txt").write_text("not tracked\n")
    assert checkout(folder)["uncommitted_changes"] is False
    (folder / "code.py").write_text("2\n")
    assert checkout(folder) == {"commit": commit[:12], "uncommitted_changes": True}
    (folder / "inside").mkdir()
    assert checkout(folder / "inside") == {}, "a package inside of somebody's repository is no checkout of ours"
