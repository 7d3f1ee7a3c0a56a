"""All processes of a group end with it, and none imports a file of the user's folder."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from exchange_simulation.launching import process_group
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.process_group import ProcessGroup
from tests.broker import is_gone
from tests.exchange_command import exchange
from tests.machine import until


class InterruptedPopen(subprocess.Popen[bytes]):
    """Ctrl-C comes when the process has been made, and its maker does not know it yet."""

    made: list[psutil.Process] = []  # noqa: RUF012

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.made.append(psutil.Process(self.pid))
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[psutil.Process]:
    """Interrupts every spawn from now on; the processes that were made."""
    InterruptedPopen.made = []
    monkeypatch.setattr(process_group.subprocess, "Popen", InterruptedPopen)
    return InterruptedPopen.made


def test_an_interrupt_while_the_watchdog_is_spawned_leaves_nothing(interrupted: list[psutil.Process]) -> None:
    group = ProcessGroup()
    with pytest.raises(KeyboardInterrupt), group:
        pass
    assert len(interrupted) == 1
    until(lambda: is_gone(interrupted[0]), "the end of the watchdog")
    assert not group.folder.exists()


def test_an_interrupt_while_a_component_is_spawned_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with ProcessGroup() as group:
        InterruptedPopen.made = []
        monkeypatch.setattr(process_group.subprocess, "Popen", InterruptedPopen)
        with pytest.raises(KeyboardInterrupt):
            group.start("engine", ["--help"], tmp_path / "engine.log", {})
        assert list(group.children) == ["engine"]
    assert len(InterruptedPopen.made) == 1
    until(lambda: is_gone(InterruptedPopen.made[0]), "the end of the component")


def test_processes_unknown_to_the_launcher_end_with_the_group() -> None:
    with ProcessGroup() as group:
        lost = subprocess.Popen(["sleep", "600"], process_group=group.id)
    assert lost.wait(60) == -signal.SIGKILL


NAMES = ("cli.py", "random.py", "orjson.py", "exchange_simulation.py", "struct.py")


def test_no_component_imports_a_file_of_the_user_s_folder(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text("open('pwned', 'a').write('x')\n")
    words = exchange_command("run", "--orders", 100, "--rate", "max", "--no-spark", "--no-page")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()


def test_a_component_that_prints_before_it_speaks_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'engine' in sys.argv or 'engine' in sys.orig_argv:\n    print('hello from a stranger')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    finished = exchange("run", "--results", tmp_path / "results", "--orders", 100, "--rate", "max", "--no-spark")
    assert finished.code == 1
    assert "engine printed 'hello from a stranger' where its launcher reads events" in finished.err + finished.out


@pytest.mark.parametrize("role", ["engine", "gateway", "reporter"])
def test_a_component_that_is_interrupted_while_it_imports_says_so_without_a_traceback(
    role: str, tmp_path: Path
) -> None:
    log = tmp_path / f"{role}.log"
    with ProcessGroup() as group:
        group.start(role, [role, "--launched", "--help"], log, {})
        component = group.children[role]
        component.send_signal(signal.SIGINT)
        assert component.wait(60) == 128 + signal.SIGINT
    assert log.read_text() == "interrupted before the start\n"
