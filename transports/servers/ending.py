"""The end of a server's process, and of the helpers that it has started."""

from __future__ import annotations

import contextlib
import signal
import time

import psutil

GRACE_S = 3.0
LOOK_EVERY_S = 0.01
BY_SIGNAL = 128
"""A shell adds this to the number of the signal that killed a process."""


def end_process(server: psutil.Process) -> None:
    """Send SIGTERM, wait, then send SIGKILL; afterwards neither the process nor a child of it is left.

    Helpers may lead sessions of their own, so no signal to a process group reaches them: RabbitMQ's do. They end by
    themselves once the server's side of their pipe closes; we wait for that.
    """
    server_and_helpers = [server]
    with contextlib.suppress(psutil.Error):
        server_and_helpers += server.children(recursive=True)
    _signal([server], signal.SIGTERM)
    alive = _wait_for(server_and_helpers)
    _signal(alive, signal.SIGKILL)
    _wait_for(alive)


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _wait_for(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Wait for the processes to end; return those that still live after GRACE_S."""
    deadline_s = time.monotonic() + GRACE_S
    alive = [process for process in processes if is_alive(process)]
    while alive and time.monotonic() < deadline_s:
        time.sleep(LOOK_EVERY_S)
        alive = [process for process in processes if is_alive(process)]
    return alive


def end_in_words(code: int) -> str:
    """Return how a process ended, from its exit code. Python writes the end by signal 9 as -9, a shell as 137.

    For example: was killed by SIGKILL; ended with exit code 1
    """
    number = -code if code < 0 else code - BY_SIGNAL
    if number in set(signal.Signals):
        return f"was killed by {signal.Signals(number).name}"
    return f"ended with exit code {code}"


def is_alive(process: psutil.Process) -> bool:
    """True if the process runs. A zombie does not, unless threads of it still run."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    return False
