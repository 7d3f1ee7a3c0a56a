"""Kernels are compiled once: the first process of a role is alone, and those that came meanwhile follow together."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from exchange_simulation.launching.first_alone import first_alone
from tests.machine import PATIENCE_S, until


def is_taken(lock: Path) -> bool:
    """Return whether a process has the lock alone."""
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def waiting_for(lock: Path) -> int:
    """Return how many wait for the lock: the system lists them below their lock's holder, with an arrow."""
    inode = str(lock.stat().st_ino)
    lines = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and line.split()[6].endswith(f":{inode}") for line in lines)


def test_those_who_come_while_the_first_is_there_wait_and_go_through_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    lock = tmp_path / "kernels" / "exchange-engine.lock"
    together = threading.Barrier(2, timeout=PATIENCE_S)
    passed: list[int] = []

    def follow() -> None:
        with first_alone("engine"):
            together.wait()
            passed.append(1)

    followers = [threading.Thread(target=follow) for _ in range(2)]
    with first_alone("engine"):
        assert is_taken(lock)
        for follower in followers:
            follower.start()
        until(lambda: waiting_for(lock) == 2 or passed, "two that wait")
        assert not passed
    for follower in followers:
        follower.join(PATIENCE_S)
    assert passed == [1, 1]
    assert not is_taken(lock)


def test_where_no_lock_can_be_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(file / "kernels"))
    with first_alone("engine"), first_alone("engine"):
        assert not (file / "kernels").exists()
