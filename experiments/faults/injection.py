"""The faults, and the run that they are injected into: its processes, its broker, and the gateway's connections.

A connection is broken by its own sockets, borrowed from the process that has them. So no proxy stands in between, which
would change what is measured, and nobody needs to be root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from transports.amqp.broker import PrivateServer
from transports.sockets import borrowed

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
DROP_EVERYTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A classic BPF program of one instruction: return 0, so the socket takes no byte of any packet."""
COMPONENTS = ("gateway", "engine", "reporter")
BROKER = "broker"


class Target:
    """A run under way; `broker` is the one that its links meet at."""

    def __init__(self, launcher: psutil.Process, folder: Path, broker: PrivateServer | None) -> None:
        self.launcher, self.folder, self.broker = launcher, folder, broker

    def process(self, role: str) -> psutil.Process:
        """NoSuchProcess if it has ended."""
        if role == BROKER:
            return psutil.Process(self.broker.node.pid if self.broker else 0)
        for child in self.launcher.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if role in child.cmdline():
                    return child
        raise psutil.NoSuchProcess(0, role)

    @contextlib.contextmanager
    def connections(self) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
        """The gateway's connections to its engine, or to the broker: (its own end, the other end) of each."""
        gateway, peer = self.process("gateway"), self.process(BROKER if self.broker else "engine")
        theirs = {found.raddr: found.fd for found in peer.net_connections("tcp") if found.raddr}
        with contextlib.ExitStack() as stack:
            yield [
                (
                    stack.enter_context(borrowed(gateway.pid, own.fd)),
                    stack.enter_context(borrowed(peer.pid, theirs[own.laddr])),
                )
                for own in gateway.net_connections("tcp")
                if own.laddr in theirs
            ]


class Fault(NamedTuple):
    name: str
    what: str
    during: Callable[[Target], AbstractContextManager[None]]
    """Injects the fault; leaving the context lifts it, where it can be lifted."""
    is_lifted: bool = False
    """Whether it is lifted while the run goes on."""
    needs_broker: bool = False


@contextlib.contextmanager
def _killed(role: str, target: Target) -> Iterator[None]:
    target.process(role).kill()
    yield


@contextlib.contextmanager
def _stopped(role: str, target: Target) -> Iterator[None]:
    process = target.process(role)
    process.suspend()
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


@contextlib.contextmanager
def _restarted(target: Target) -> Iterator[None]:
    assert target.broker
    target.broker.restart()
    yield


@contextlib.contextmanager
def _reset(target: Target) -> Iterator[None]:
    """Disconnect the gateway's sockets: the kernel sends a reset, and each end reads one."""
    with target.connections() as connections:
        for own, _ in connections:
            disconnect(own)
    yield


def disconnect(sock: socket.socket) -> None:
    """connect(2) to an address of no family, which Python's own call has no words for."""
    nowhere = ctypes.create_string_buffer(struct.pack("H14x", socket.AF_UNSPEC))
    if ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), nowhere, 16) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def _cut(target: Target) -> Iterator[None]:
    """Let both ends drop every packet that arrives, acknowledgements too, as behind a cable that was pulled."""
    with target.connections() as connections, contextlib.ExitStack() as stack:
        for own, other in connections:
            stack.enter_context(deaf(own))
            stack.enter_context(deaf(other))
        yield


@contextlib.contextmanager
def deaf(sock: socket.socket) -> Iterator[None]:
    """Inside, the kernel drops every packet for this socket; afterwards TCP sends again what was lost."""
    program = ctypes.create_string_buffer(DROP_EVERYTHING)
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
    try:
        yield
    finally:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


@contextlib.contextmanager
def _full(target: Target) -> Iterator[None]:
    """Let no file of the reporter and the launcher grow: every further write fails, as on a disk that is full."""
    for process in (target.process("reporter"), target.launcher):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))
    yield


def _on_each(
    how: str, what: str, during: Callable[[str, Target], AbstractContextManager[None]], lifted: bool = False
) -> list[Fault]:
    return [
        Fault(f"{role}-{how}", what.format(role), partial(during, role), lifted, role == BROKER)
        for role in (*COMPONENTS, BROKER)
    ]


FAULTS = {
    fault.name: fault
    for fault in (
        *_on_each("kill", "the {} is killed (SIGKILL)", _killed),
        *_on_each("stop", "the {} is stopped for a while (SIGSTOP, then SIGCONT)", _stopped, lifted=True),
        *_on_each("freeze", "the {} is stopped for good", _stopped),
        Fault("broker-restart", "the broker ends and starts again over its own files", _restarted, needs_broker=True),
        Fault("connection-reset", "the gateway's connections are reset", _reset),
        Fault("partition", "no packet passes between the gateway and its peer for a while", _cut, is_lifted=True),
        Fault("half-open", "no packet passes any more, and neither end is told", _cut),
        Fault("full-disk", "no file of reporter and launcher can grow any more", _full),
    )
}
"""Every fault by name, in the order of the matrix."""
