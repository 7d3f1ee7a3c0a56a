"""The relay of a component on a host: it starts the component, and passes lines between it and the launcher.

    launcher                      relay                              component
    {"words": .., "environment": ..}  ──▶ starts `exchange WORDS`
    {"signal": 15}  ──▶           sends the signal
    any other line  ──▶           passes it on  ──▶                  stdin
                    ◀──           passes it on  ◀──                  stdout

The words and the environment come over stdin: ssh would give the words of a command to a shell, and arguments can be
seen by all users of the host. If stdin ends, the launcher or the connection is gone, and the relay ends the component.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from typing import Any

import orjson

from exchange_simulation.launching.hosts.agent import STDIN, STDOUT
from exchange_simulation.launching.hosts.lines import CHUNK, LineReader, PeerSilent, as_line, write_all
from exchange_simulation.launching.interrupts import BY_SIGNAL
from exchange_simulation.launching.process_group import ProcessGroup

COMPONENT = "component"


def relay_component() -> int:
    """Start the component that the first line names, and pass lines until one end is gone; return its exit code.

    Returns 128 plus its number for a component that was killed by a signal, and 1 if the launcher went first.
    """
    with contextlib.suppress(PeerSilent, BrokenPipeError), ProcessGroup() as processes:
        reader = LineReader(STDIN)
        order = reader.message()
        write_all(STDOUT, as_line({"event": "relayed", "pid": os.getpid()}))
        processes.start(COMPONENT, order["words"], None, order["environment"])
        _pass_lines(processes, reader.rest())
        code = processes.children[COMPONENT].wait()
        return BY_SIGNAL - code if code < 0 else code
    return 1


def _pass_lines(processes: ProcessGroup, already_read: bytes) -> None:
    """Pass lines in both directions until the component closes its stdout. PeerSilent if the launcher goes first."""
    component = processes.children[COMPONENT]
    assert component.stdout is not None
    stdout = component.stdout.fileno()
    unread = already_read
    while True:
        *lines, unread = unread.split(b"\n")
        for line in lines:
            _handle_line(line, processes, component)
        readable, _, _ = select.select([STDIN, stdout], [], [])
        if stdout in readable:
            chunk = os.read(stdout, CHUNK)
            if not chunk:
                return
            write_all(STDOUT, chunk)
        if STDIN in readable:
            chunk = os.read(STDIN, CHUNK)
            if not chunk:
                raise PeerSilent("the launcher is gone")
            unread += chunk


def _handle_line(line: bytes, processes: ProcessGroup, component: subprocess.Popen[bytes]) -> None:
    """Send the component the signal that a line asks for, or pass the line on."""
    message: dict[str, Any] = orjson.loads(line)
    if "signal" in message:
        processes.signal(COMPONENT, message["signal"])
        return
    assert component.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # the component has ended, and its stdout will say so
        component.stdin.write(line + b"\n")
        component.stdin.flush()
