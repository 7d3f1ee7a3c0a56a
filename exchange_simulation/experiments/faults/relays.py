"""Signals to components on other hosts: their relays send them.

The launcher of a run speaks to a relay over a pipe, the stdin of the command that reaches the host. The pipe takes a
line of this process too.
"""

from __future__ import annotations

import contextlib
import os

import orjson
import psutil

from exchange_simulation.launching.hosts.run_hosts import RELAY


def relay_of(launcher: psutil.Process, component: str) -> psutil.Process | None:
    """Return the command that reaches the component's relay; None if the component is on this host."""
    words = [*RELAY, component]
    for child in launcher.children():
        with contextlib.suppress(psutil.Error):
            if child.cmdline()[-len(words) :] == words:
                return child
    return None


def signal_through(relay: psutil.Process, number: int) -> None:
    """Let a relay send its component this signal. OSError if the relay is gone."""
    pipe = os.open(f"/proc/{relay.pid}/fd/0", os.O_WRONLY)
    try:
        os.write(pipe, orjson.dumps({"signal": number}) + b"\n")
    finally:
        os.close(pipe)
