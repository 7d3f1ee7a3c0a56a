"""Ends a node and what it started, and finds nodes that their starter left behind.

The node's helpers (erl_child_setup, the shell that watches the disk) lead sessions of their own, so no signal to a
process group reaches them; they end by themselves when the node's end of their pipe closes. That is waited for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil

GRACE_S = 3.0
LOOK_EVERY_S = 0.01


def end(node: psutil.Process) -> None:
    """SIGTERM, a while, SIGKILL; afterwards neither it nor a child of it is left."""
    family = [node]
    with contextlib.suppress(psutil.Error):
        family += node.children(recursive=True)
    _signal([node], signal.SIGTERM)
    staying = _wait_for(family)
    _signal(staying, signal.SIGKILL)
    _wait_for(staying)


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _wait_for(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are still there after a while."""
    end_s = time.monotonic() + GRACE_S
    while (staying := [process for process in processes if lives(process)]) and time.monotonic() < end_s:
        time.sleep(LOOK_EVERY_S)
    return staying


def lives(process: psutil.Process) -> bool:
    """Not a zombie, which only waits for its parent; but a zombie with threads is still on its way out."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    return False


def left_in(folder: Path) -> list[psutil.Process]:
    """Nodes of ours that run in a folder, known by the home on their command line, whatever else is lost."""
    home = str(folder / "home")
    return [process for process in psutil.process_iter() if _is_ours(process) and home in _words(process)]


def _is_ours(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.uids().effective == os.geteuid())
    return False


def _words(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []
