"""Lets kernels be compiled once: the first process of a role compiles them, and the others wait and load them.

Processes of one role need the same kernels. If these are not on disk yet, all processes of a run would compile them at
the same time, each for itself. The lock is a file in the folder that keeps the kernels.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from exchange_simulation.launching.kernel_cache import ROOT, VARIABLE


@contextlib.contextmanager
def first_alone(purpose: str) -> Iterator[None]:
    """Let the first process that comes for a purpose go through the context alone.

    Processes that come meanwhile wait for its end, and then go through together. Without a folder for the lock, nobody
    waits.
    """
    descriptor = _opened_lock(purpose)
    if descriptor is None:
        yield
        return
    try:
        _wait_for_first(descriptor)
        yield
    finally:
        os.close(descriptor)


def import_in_turn(role: str, *modules: str) -> None:
    """Import modules some of whose kernels are compiled at import."""
    with first_alone(f"importing-{role}"):
        for module in modules:
            import_module(module)


def _opened_lock(purpose: str) -> int | None:
    """Return the descriptor of the lock's file; None if there can be no such file."""
    given = os.environ.get(VARIABLE)
    folder = Path(given) if given else ROOT / "exchange" / "__pycache__"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / f"exchange-{purpose}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _wait_for_first(descriptor: int) -> None:
    """Take the lock alone, or wait until nobody has it alone. On a file system without locks, nobody waits."""
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
