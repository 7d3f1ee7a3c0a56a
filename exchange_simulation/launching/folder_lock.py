"""A measurement locks its folder while it goes on: others see that it does, and no second process adds to it."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from exchange_simulation.launching.errors import UserError

FILE = ".lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder in the context, or until this process ends. UserError if another process has locked it."""
    with (folder / FILE).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"another process measures in {folder}: wait until it has ended") from error
        yield


def is_locked(folder: Path) -> bool:
    """Return True if a process measures in the folder. A folder that cannot be looked at counts as free."""
    try:
        with (folder / FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
