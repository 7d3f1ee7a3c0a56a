"""The faults, and the run that they are injected into: its processes, its broker, and the gateway's connections.

A connection is broken through its own sockets, which are borrowed from their process. So no proxy is needed, which
would change the figures, and nobody needs to be root.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from transports.declaration import BreakableServer, Server
from transports.sockets import borrowed

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
BETWEEN = "between the gateway and its peer"
LOST_SHARE = 0.1
LOSS = f"{LOST_SHARE:.0%} of the packets {BETWEEN} are lost for a while"
DELAY_US, USUAL_DELAY_US = 20_000, 50
DELAY = f"in an emulated network every packet takes {DELAY_US / 1000:g} ms for a while, one way"
NETWORK = f"gige?delay_us={USUAL_DELAY_US}"
COMPONENTS = ("gateway", "engine", "reporter")
BROKER = "broker"


@dataclass(frozen=True)
class Target:
    """A run under way; `broker` is the one that its links go through."""

    launcher: psutil.Process
    broker: Server | None

    def process(self, role: str) -> psutil.Process:
        """NoSuchProcess if it has ended."""
        if role == BROKER:
            return psutil.Process(self.broker.facts()["pid"] if self.broker else 0)
        for child in self.launcher.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if role in child.cmdline():
                    return child
        raise psutil.NoSuchProcess(0, role)

    @property
    def breakable(self) -> BreakableServer:
        """The broker, if it has commands for faults. OSError if it has none."""
        if not isinstance(self.broker, BreakableServer):
            raise OSError("this broker has no commands for faults")
        return self.broker

    @contextlib.contextmanager
    def connections(self) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
        """The gateway's connections to its engine, or to the broker: (its own end, the other end) of each.

        OSError if there is none.
        """
        gateway, peer = self.process("gateway"), self.process(BROKER if self.broker else "engine")
        theirs = {found.raddr: found.fd for found in peer.net_connections("tcp") if found.raddr}
        shared = [(own.fd, theirs[own.laddr]) for own in gateway.net_connections("tcp") if own.laddr in theirs]
        if not shared:
            raise OSError("no TCP connection joins the gateway and its peer")
        with contextlib.ExitStack() as stack:
            yield [
                (stack.enter_context(borrowed(gateway.pid, own)), stack.enter_context(borrowed(peer.pid, other)))
                for own, other in shared
            ]


class Fault(NamedTuple):
    name: str
    what: str
    during: Callable[[Target], AbstractContextManager[None]]
    """Injects the fault; leaving the context lifts it, where it can be lifted."""
    is_lifted: bool = False
    """Whether it is lifted while the run goes on."""
    needs_broker: bool = False
    needs_tcp: bool = False
    """Whether it breaks a TCP connection."""
    network: str = ""
    """The emulated network that its run is in; a broker is then the run's own."""


def _for_good(inject: Callable[..., object]) -> Callable[..., AbstractContextManager[None]]:
    """A fault that is never lifted."""

    @contextlib.contextmanager
    def during(*args: object) -> Iterator[None]:
        inject(*args)
        yield

    return during


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
def _alarmed(target: Target) -> Iterator[None]:
    broker = target.breakable
    broker.block_publishers()
    try:
        yield
    finally:
        broker.unblock_publishers()


@_for_good
def _reset(target: Target) -> None:
    """Disconnect the gateway's sockets: the kernel sends a reset, and each end reads one."""
    with target.connections() as connections:
        for own, _ in connections:
            disconnect(own)


def disconnect(sock: socket.socket) -> None:
    """Dissolve a connection by connect(2) to AF_UNSPEC, an address that Python's own connect cannot express."""
    nowhere = ctypes.create_string_buffer(struct.pack("H14x", socket.AF_UNSPEC))
    if ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), nowhere, 16) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def _lossy(share: float, target: Target) -> Iterator[None]:
    """Let both ends drop this share of the packets that arrive, acknowledgements too; 1 is a cable that was pulled."""
    with target.connections() as connections, contextlib.ExitStack() as stack:
        for sock in (end for ends in connections for end in ends):
            stack.enter_context(dropping(sock, share))
        yield


@contextlib.contextmanager
def dropping(sock: socket.socket, share: float) -> Iterator[None]:
    """Inside, the kernel drops this share of the packets for this socket; TCP sends again what was lost."""
    instructions = packet_filter(share)
    program = ctypes.create_string_buffer(instructions)
    words = struct.pack("HP", len(instructions) // 8, ctypes.addressof(program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, words)
    try:
        yield
    finally:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def packet_filter(share: float) -> bytes:
    """A classic BPF program (linux/filter.h): a packet is taken whole if a random number is above the share."""
    return b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (0x20, 0, 0, 0xFFFF_F000 + 56),  # load SKF_AD_RANDOM, a number of 32 bits
            (0x25, 0, 1, round(share * 0xFFFF_FFFF)),  # skip the next instruction unless it is greater
            (0x06, 0, 0, 0xFFFF_FFFF),  # return all bytes
            (0x06, 0, 0, 0),  # return none
        )
    )


@contextlib.contextmanager
def _delayed(target: Target) -> Iterator[None]:
    """Set the delay of the run's network: its holder reads commands on stdin, a pipe that its user may open."""
    stdin = Path(f"/proc/{target.process('exchange_simulation.launching.network.holder').pid}/fd/0")
    stdin.write_text(f"delay_us {DELAY_US}\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            stdin.write_text(f"delay_us {USUAL_DELAY_US}\n")


@_for_good
def _full(target: Target) -> None:
    """Let no file of the reporter and the launcher grow: every further write fails, as on a disk that is full."""
    for process in (target.process("reporter"), target.launcher):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))


_kill = _for_good(lambda role, target: target.process(role).kill())
_restart = _for_good(lambda target: target.breakable.restart())
_close = _for_good(lambda target: target.breakable.close_connections())


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
        *_on_each("kill", "the {} is killed (SIGKILL)", _kill),
        *_on_each("stop", "the {} is stopped for a while (SIGSTOP, then SIGCONT)", _stopped, lifted=True),
        *_on_each("freeze", "the {} is stopped for good", _stopped),
        Fault("broker-restart", "the broker ends and starts again over its own files", _restart, needs_broker=True),
        Fault("broker-alarm", "the broker is out of memory for a while, and takes no message", _alarmed, True, True),
        Fault("broker-close", "the broker closes every connection, by its own command", _close, needs_broker=True),
        Fault("connection-reset", "the gateway's connections are reset", _reset, needs_tcp=True),
        Fault("partition", f"no packet passes {BETWEEN} for a while", partial(_lossy, 1.0), True, needs_tcp=True),
        Fault("half-open", "no packet passes any more, and neither end is told", partial(_lossy, 1.0), needs_tcp=True),
        Fault("loss", LOSS, partial(_lossy, LOST_SHARE), True, needs_tcp=True),
        Fault("delay", DELAY, _delayed, True, needs_tcp=True, network=NETWORK),
        Fault("full-disk", "no file of reporter and launcher can grow any more", _full),
    )
}
"""Every fault by name, in the order of the matrix."""
