"""A system that starts no further process: a sentence that names the limit, and nothing that was started stays."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from exchange_simulation.launching import process_group
from exchange_simulation.launching.errors import CannotStart
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.messaging.hosts import role_server
from exchange_simulation.messaging.hosts.role_messages import text_of_role
from exchange_simulation.messaging.hosts.role_server import RoleServer
from exchange_simulation.messaging.measuring import Launcher
from exchange_simulation.messaging.roles import Role, RoleResult
from exchange_simulation.messaging.session import Session

SENTENCE = r"^cannot start the consumer 3: the system allows no further process or thread \(ulimit -u is \w+; .* fewer$"


def no_more(*_arguments: object, **_settings: object) -> int:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def no_memory(*_arguments: object, **_settings: object) -> int:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def no_task(_session: Session) -> RoleResult:
    raise AssertionError("the role was started")


@pytest.fixture
def two_forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The system makes two forks and no further one; their numbers."""
    made: list[int] = []
    fork = os.fork

    def limited_fork() -> int:
        if len(made) == 2:
            no_more()
        pid = fork()
        if pid:
            made.append(pid)
        return pid

    monkeypatch.setattr("os.fork", limited_fork)
    return made


def test_a_refused_fork_ends_the_roles_before_it(two_forks: list[int]) -> None:
    roles = [Role(f"consumer {number}", no_task, ()) for number in (1, 2, 3)]
    setup: Any = SimpleNamespace(hosts=None, enter_host=lambda _role: None, group=0)
    with pytest.raises(CannotStart, match=SENTENCE), Launcher(roles, setup, in_threads=False, patience_s=9.0):
        pass
    assert len(two_forks) == 2
    assert not any(map(psutil.pid_exists, two_forks))


def test_a_refused_thread_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    setup: Any = SimpleNamespace(hosts=None, enter_host=lambda _role: None)
    roles = [Role("consumer 3", no_task, ())]
    with pytest.raises(CannotStart, match=SENTENCE), Launcher(roles, setup, in_threads=True, patience_s=9.0):
        pass


def test_a_host_that_cannot_fork_a_role_tells_the_launcher_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(role_server, "_say", said.append)
    monkeypatch.setattr("os.fork", no_more)
    server = RoleServer(SimpleNamespace(id=0))  # type: ignore[arg-type]
    server._obey({"do": "fork", "role": text_of_role(Role("consumer 3", no_task, ())), "patience_s": 9.0})
    server._obey({"do": "end", "role": "consumer 3", "may_close": False})
    failed, over = said
    assert failed["word"][0] == "failed"
    assert failed["word"][1].startswith("cannot start the consumer 3: the system allows no further process")
    assert over == {"role": "consumer 3", "over": True}


@pytest.mark.parametrize(
    ("popen", "words"),
    [
        (no_more, "cannot start the watchdog: the system allows no further process"),
        (no_memory, "cannot start the watchdog: no memory is left for a further process"),
    ],
)
def test_a_watchdog_that_cannot_start_leaves_no_folder(
    popen: Callable[..., int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group.subprocess, "Popen", popen)
    group = ProcessGroup()
    with pytest.raises(CannotStart, match=words), group:
        pass
    assert not group.folder.exists()


def test_a_component_that_cannot_start_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessGroup() as group:
        monkeypatch.setattr(process_group.subprocess, "Popen", no_more)
        with pytest.raises(CannotStart, match="cannot start the engine: the system allows no further process"):
            group.start("engine", ["--help"], None, {})
