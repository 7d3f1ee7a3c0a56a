"""--priority real-time: the threads that have it, and the error without permission."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.component import Events, serve
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.priority import SLICE_NS, at_priority, without_preempting
from tests.broker import is_gone
from tests.exchange_command import Running, run_exchange_in_process
from tests.machine import until
from transports.declaration import Broker, RunningBroker

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_RR"), reason="this system has no real-time priority")


class Scheduler:
    """Stands in for the kernel's scheduler: grants every policy, and remembers what the threads asked for."""

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
    scheduler = Scheduler()
    monkeypatch.setattr(os, "sched_setscheduler", scheduler.set)
    monkeypatch.setattr(os, "sched_getscheduler", lambda _pid: scheduler.policy)
    return scheduler


class Watched:
    """A service that notes the policy under which it is warmed and run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.policies = {"opened": scheduler.policy}

    def warm(self) -> None:
        self.policies["warmed"] = self._scheduler.policy

    def run(self) -> None:
        self.policies["run"] = self._scheduler.policy

    def stop(self, reason: str) -> None: ...

    def close(self) -> None: ...


def test_a_component_has_its_priority_while_opening_and_running_and_not_while_compiling(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilation has the priority of other processes."""
    # settle_down would change this process
    monkeypatch.setattr("exchange_simulation.launching.component.settle_down", lambda: None)
    monkeypatch.setattr("exchange_simulation.launching.component.on_signals", lambda *_: None)
    opened: list[Watched] = []

    def open_service() -> tuple[Any, str]:
        service = Watched(scheduler)
        opened.append(service)
        return service, "nowhere"

    serve(Events("engine", launched=False), open_service, None, priority="real-time")
    (service,) = opened
    assert service.policies == {"opened": os.SCHED_RR, "warmed": os.SCHED_OTHER, "run": os.SCHED_RR}
    assert scheduler.policy == os.SCHED_OTHER


class Noting(Broker):
    """A broker that starts nothing. Its URL has the policy under which it was started."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @contextlib.contextmanager
    def start(self, *_: object) -> Iterator[RunningBroker]:
        yield RunningBroker(f"noting://{self._scheduler.policy}")

    def standing(self, nodelay: bool) -> RunningBroker:
        return RunningBroker("noting://standing")


def test_a_private_broker_has_the_priority_and_a_standing_one_is_left_alone(scheduler: Scheduler) -> None:
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
    requests = scheduler.asked.count(os.SCHED_RR)
    assert requests == 3, "the command tries the priority; then a gateway and an engine have it"
    shown = CliRunner().invoke(main, ["report", str(next(tmp_path.iterdir())), "--no-spark"])
    assert "memory in real-time priority as fast as it goes" in shown.output


@pytest.mark.parametrize("command", ["compare", "nagle", "sweep"])
def test_every_trial_of_rates_takes_the_priority(command: str, scheduler: Scheduler, tmp_path: Path) -> None:
    words = [command, "--transports", "zeromq,tcp", "--rates", "1000", "--dry-run", "--results", str(tmp_path)]
    for priority, is_asked in (("normal", False), ("real-time", True)):
        finished = CliRunner().invoke(main, [*words, "--priority", priority])
        assert finished.exit_code == 0, finished.output
        assert (os.SCHED_RR in scheduler.asked) == is_asked


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL])
def test_without_permission_for_real_time_nothing_starts(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """gVisor answers EINVAL, other kernels EPERM. `without_preempting` then does nothing."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    words = ["run", "--transport", "memory", "--priority", "real-time", "--results", str(tmp_path / "results")]
    finished = CliRunner().invoke(main, words)
    assert finished.exit_code == 2
    assert "--priority is real-time, which this system does not let you have" in finished.output
    assert "ulimit -r 1" in finished.output
    assert not (tmp_path / "results").exists()
    with at_priority("normal"), without_preempting():
        pass


def test_a_process_with_idle_scheduling_keeps_it(scheduler: Scheduler) -> None:
    scheduler.set(0, os.SCHED_IDLE, os.sched_param(0))
    with without_preempting():
        assert scheduler.policy == os.SCHED_IDLE


def slice_ns(proc_path: str = "thread-self") -> int | None:
    """Return the slice of a thread, given by its path below /proc; None if the kernel does not say how long it is."""
    facts = Path("/proc", proc_path, "sched")
    if not facts.exists():
        return None
    for line in facts.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.startswith("se.slice"):
            return int(value)
    return None


@pytest.mark.skipif(slice_ns() is None, reason="this kernel does not say how long a slice is")
def test_in_normal_priority_order_carriers_have_short_slices() -> None:
    """The thread itself has them until the end of the context; a thread that it starts there has them too."""
    before_ns = slice_ns()
    slices_of_started_thread: list[int | None] = []
    with at_priority("normal"):
        thread = threading.Thread(target=lambda: slices_of_started_thread.append(slice_ns()))
        thread.start()
        thread.join()
        assert slice_ns() == SLICE_NS
    assert slices_of_started_thread == [SLICE_NS]
    assert slice_ns() == before_ns
    assert before_ns != SLICE_NS


def test_only_threads_that_carry_orders_have_short_slices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reporter's thread has no real-time priority."""
    asked: list[str] = []
    monkeypatch.setattr(
        "exchange_simulation.launching.priority._ask_for_slices",
        lambda _: asked.append(threading.current_thread().name),
    )
    assert run_exchange_in_process(tmp_path, "--orders", "10", "--rate", "max").code == 0
    assert set(asked) == {"MainThread", "gateway", "engine"}, "the command tries short slices first"


def schedulings(process: psutil.Process) -> set[tuple[int, int | None]]:
    """Return the (policy, slice) of each of the process's threads; empty if one of them has just ended."""
    found: set[tuple[int, int | None]] = set()
    try:
        for thread in process.threads():
            policy = os.sched_getscheduler(thread.id)
            found.add((policy, slice_ns(f"{process.pid}/task/{thread.id}")))
    except (OSError, psutil.NoSuchProcess):
        return set()
    return found


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
        until(partial(is_gone, first), f"the first {role}'s death")
        second = until(partial(component_after, run, role, first), f"another {role}")
        until(partial(has_schedulings, second, wanted), f"its threads to have {wanted}")
    run.signal(signal.SIGINT)
    run.finish()


def component_after(run: Running, role: str, first: psutil.Process) -> psutil.Process | None:
    """Return the run's process with this role, if it is another than the first one; else None."""
    process = run.component(role)
    return None if process.pid == first.pid else process


def has_schedulings(process: psutil.Process, wanted: set[tuple[int, int | None]]) -> bool:
    return schedulings(process) == wanted
