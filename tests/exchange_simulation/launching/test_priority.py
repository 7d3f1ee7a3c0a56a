"""--priority real-time: the threads that have it, and the error without permission."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.component import Events, serve
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.priority import SLICE_NS, at_priority, yielding
from tests.exchange_command import Running, run_exchange_in_process
from tests.machine import until
from transports.declaration import Broker, RunningBroker

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_RR"), reason="this system has no real-time priority")


class Scheduler:
    """Stands for the kernel's: it remembers what each thread asked for, and grants everything."""

    def __init__(self) -> None:
        self._policies: dict[int, int] = {}
        self.asked: list[int] = []

    @property
    def policy(self) -> int:
        return self._policies.get(threading.get_ident(), os.SCHED_OTHER)

    def set(self, _pid: int, policy: int, _parameters: os.sched_param) -> None:
        self._policies[threading.get_ident()] = policy
        self.asked.append(policy)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    found = Scheduler()
    monkeypatch.setattr(os, "sched_setscheduler", found.set)
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: found.policy)
    return found


class Watched:
    """A service that notes the policy under which it is warmed and run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self.policies = scheduler, {"opened": scheduler.policy}

    def warm(self) -> None:
        self.policies["warmed"] = self._scheduler.policy

    def run(self) -> None:
        self.policies["run"] = self._scheduler.policy

    def stop(self, reason: str) -> None: ...

    def close(self) -> None: ...


def test_a_component_opens_links_and_runs_first_but_not_compiles(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilation has the priority of other processes."""
    # settle_down would change this process
    monkeypatch.setattr("exchange_simulation.launching.component.settle_down", lambda: None)
    monkeypatch.setattr("exchange_simulation.launching.component.on_signals", lambda *_: None)
    opened: list[Watched] = []

    def open_service() -> tuple[Any, str]:
        opened.append(Watched(scheduler))
        return opened[0], "nowhere"

    serve(Events("engine", launched=False), open_service, None, priority="real-time")
    assert opened[0].policies == {"opened": os.SCHED_RR, "warmed": os.SCHED_OTHER, "run": os.SCHED_RR}
    assert scheduler.policy == os.SCHED_OTHER


class Noting(Broker):
    """A broker that starts nothing, and says under which policy it was started."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @contextlib.contextmanager
    def start(self, *_: object) -> Iterator[RunningBroker]:
        yield RunningBroker(f"noting://{self._scheduler.policy}")

    def standing(self, nodelay: bool) -> RunningBroker:
        return RunningBroker("noting://standing")


def test_a_private_broker_goes_first_and_another_is_left_alone(scheduler: Scheduler) -> None:
    with Brokers() as brokers:
        first = brokers.get(Noting(scheduler), nodelay=True, priority="real-time")
        assert first.url == f"noting://{os.SCHED_RR}"
        assert brokers.get(Noting(scheduler), nodelay=True, priority="real-time") is first
        assert brokers.get(Noting(scheduler), nodelay=True).url == "noting://standing"
        assert scheduler.policy == os.SCHED_OTHER


def test_the_record_has_the_priority_and_threads_of_one_process_get_it(scheduler: Scheduler, tmp_path: Path) -> None:
    finished = run_exchange_in_process(tmp_path, "--orders", "10", "--rate", "max", "--priority", "real-time")
    assert finished.code == 0, finished.err
    assert finished.record["settings"]["priority"] == "real-time"
    assert scheduler.asked.count(os.SCHED_RR) == 3, "the command tries it; then a gateway and an engine have it"
    shown = CliRunner().invoke(main, ["report", str(next(tmp_path.iterdir())), "--no-spark"])
    assert "memory in real-time priority as fast as it goes" in shown.output


@pytest.mark.parametrize("command", ["compare", "nagle", "sweep"])
def test_every_trial_of_rates_takes_it(command: str, scheduler: Scheduler, tmp_path: Path) -> None:
    words = [command, "--transports", "zeromq,tcp", "--rates", "1000", "--dry-run", "--results", str(tmp_path)]
    for priority, is_asked in (("normal", False), ("real-time", True)):
        finished = CliRunner().invoke(main, [*words, "--priority", priority])
        assert finished.exit_code == 0, finished.output
        assert (os.SCHED_RR in scheduler.asked) == is_asked


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL])
def test_without_permission_for_real_time_nothing_starts(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """gVisor answers EINVAL, others EPERM; to yield is a courtesy, which nobody is refused for."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    words = ["run", "--transport", "memory", "--priority", "real-time", "--results", str(tmp_path / "results")]
    finished = CliRunner().invoke(main, words)
    assert finished.exit_code == 2
    assert "--priority is real-time, which this system does not let you have" in finished.output
    assert "ulimit -r 1" in finished.output
    assert not (tmp_path / "results").exists()
    with at_priority("normal"), yielding():
        pass


def test_a_process_with_idle_scheduling_keeps_it(scheduler: Scheduler) -> None:
    scheduler.set(0, os.SCHED_IDLE, os.sched_param(0))
    with yielding():
        assert scheduler.policy == os.SCHED_IDLE


def slice_ns(thread: str = "thread-self") -> int | None:
    """The thread's slice, as the kernel has it; None where it does not say."""
    facts = Path("/proc", thread, "sched")
    lines = facts.read_text().splitlines() if facts.exists() else []
    return next((int(line.split(":")[1]) for line in lines if line.startswith("se.slice")), None)


@pytest.mark.skipif(slice_ns() is None, reason="this kernel does not say how long a slice is")
def test_in_normal_priority_order_carriers_have_short_slices() -> None:
    """Threads have short slices until they end."""
    before, started = slice_ns(), []
    with at_priority("normal"):
        thread = threading.Thread(target=lambda: started.append(slice_ns()))
        thread.start()
        thread.join()
        assert slice_ns() == SLICE_NS
    assert started == [SLICE_NS]
    assert slice_ns() == before != SLICE_NS


def test_only_threads_that_carry_orders_have_short_slices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reporter's thread has no real-time priority."""
    asked: list[str] = []
    monkeypatch.setattr(
        "exchange_simulation.launching.priority._ask_for_slices",
        lambda _: asked.append(threading.current_thread().name),
    )
    assert run_exchange_in_process(tmp_path, "--orders", "10", "--rate", "max").code == 0
    assert set(asked) == {"MainThread", "gateway", "engine"}, "the command tries it first"


def schedulings(process: psutil.Process) -> set[tuple[int, int | None]]:
    """The policies and slices that a process's threads have; empty if one of them has just ended."""
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        threads = [thread.id for thread in process.threads()]
        return {(os.sched_getscheduler(thread), slice_ns(f"{process.pid}/task/{thread}")) for thread in threads}
    return set()


def is_permitted(priority: str) -> bool:
    with contextlib.suppress(UserError), at_priority(priority):
        return True
    return False


@pytest.mark.parametrize("priority", ["normal", pytest.param("real-time", marks=pytest.mark.long)])
def test_a_restarted_component_is_scheduled_as_the_first_one_was(
    priority: str, running: Callable[..., Running]
) -> None:
    if not is_permitted(priority):
        pytest.skip("this system permits no real-time priority")
    words = ("--rate", 1000, "--orders", 60_000, "--recover", "--timeout", 60, "--priority", priority, "--no-page")
    run = running(*words).wait_until_under_way()
    for role in ("engine", "gateway", "reporter"):
        first = run.component(role)
        wanted = schedulings(first)
        first.kill()
        until(lambda first=first: not first.is_running() or first.status() == psutil.STATUS_ZOMBIE, "its death")
        another = until(lambda role=role, first=first: other_than(first, run.component(role)), f"another {role}")
        until(lambda another=another, wanted=wanted: schedulings(another) == wanted, f"its threads to have {wanted}")
    run.signal(signal.SIGINT)
    run.finish()


def other_than(first: psutil.Process, found: psutil.Process) -> psutil.Process | None:
    return None if found.pid == first.pid else found
