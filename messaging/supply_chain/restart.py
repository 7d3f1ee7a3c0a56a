"""A broker that is restarted in the middle of a measurement."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from mmap import mmap
from typing import Protocol, runtime_checkable

from messaging.benchmark import Cell
from messaging.roles import Role
from runs.errors import UserError
from runs.interrupts import beside
from transports.base import TransportError
from transports.declaration import Server

LOOK_EVERY_S = 0.02


@runtime_checkable
class Restartable(Protocol):
    """A broker's server that can be ended and started again."""

    def restart(self) -> None: ...


@contextlib.contextmanager
def restarting(cell: Cell, roles: Sequence[Role], server: Server | None) -> Iterator[None]:
    """Restart the broker in the middle, if that was asked for. UserError if it is not ours."""
    after_s = cell.settings.get("restart_after_s")
    if after_s is None:
        yield
        return
    if not isinstance(server, Restartable):
        raise UserError("--restart-after needs a private broker: say --transport amqp, and first exchange broker stop")
    start: mmap = roles[0].task.start
    failed: list[Exception] = []

    def restart(over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            began_ns = int.from_bytes(start[:8], "little")
            if began_ns and time.monotonic_ns() > began_ns + (cell.settings["warm_up_s"] + after_s) * 1e9:
                break
        try:
            if not over.is_set():
                server.restart()
        except (TransportError, OSError) as error:
            failed.append(error)

    with beside(restart):
        yield
    if failed:
        raise UserError(f"the broker could not be restarted: {failed[0]}")
