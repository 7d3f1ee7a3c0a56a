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

from transports.declaration import BreakableServer, BrokerServer
from transports.sockets import borrowed_socket

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
"""Options of Linux sockets that Python's socket module does not name."""
BETWEEN = "between the gateway and its peer"
LOST_SHARE = 0.1
LOSS = f"{LOST_SHARE:.0%} of the packets {BETWEEN} are lost for a while"
DELAY_US = 20_000
USUAL_DELAY_US = 50
DELAY = f"in an emulated network every packet takes {DELAY_US / 1000:g} ms for a while, one way"
NETWORK = f"gige?delay_us={USUAL_DELAY_US}"
COMPONENTS = ("gateway", "engine", "reporter")
BROKER = "broker"


@dataclass(frozen=True)
class Target:
    """A run under way; `broker` is the one that its links go through, None without one."""

    launcher: psutil.Process
    broker: BrokerServer | None

    def process(self, role: str) -> psutil.Process:
        """Return the process of a role. NoSuchProcess if it has ended, or if the run has none."""
        if role == BROKER:
            if self.broker is None:
                raise psutil.NoSuchProcess(0, role)
            return psutil.Process(self.broker.facts()["pid"])
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
        """Borrow the gateway's connections to its engine, or to the broker: (the gateway's end, the other end) of each.

        OSError if there is none.
        """
        gateway = self.process("gateway")
        peer = self.process(BROKER if self.broker else "engine")
        fd_by_remote_address = {end.raddr: end.fd for end in peer.net_connections("tcp") if end.raddr}
        with contextlib.ExitStack() as stack:
            connections = []
            for end in gateway.net_connections("tcp"):
                if end.laddr in fd_by_remote_address:
                    gateways_end = stack.enter_context(borrowed_socket(gateway.pid, end.fd))
                    peers_end = stack.enter_context(borrowed_socket(peer.pid, fd_by_remote_address[end.laddr]))
                    connections.append((gateways_end, peers_end))
            if not connections:
                raise OSError("no TCP connection joins the gateway and its peer")
            yield connections


class Fault(NamedTuple):
    """A fault of the matrix: its name, what it does in words, how it is injected, and what it needs."""

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
    """Return `inject` as the context of a fault that is never lifted."""

    @contextlib.contextmanager
    def during(*args: object) -> Iterator[None]:
        inject(*args)
        yield

    return during


@contextlib.contextmanager
def _stopped(role: str, target: Target) -> Iterator[None]:
    """Stop a process (SIGSTOP), and let it go on at the end (SIGCONT)."""
    process = target.process(role)
    process.suspend()
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


@contextlib.contextmanager
def _alarmed(target: Target) -> Iterator[None]:
    """Let the broker take no message until the end."""
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
        for gateways_end, _ in connections:
            disconnect(gateways_end)


def disconnect(sock: socket.socket) -> None:
    """Dissolve a connection by connect(2) to AF_UNSPEC, an address that Python's own connect cannot express."""
    nowhere = ctypes.create_string_buffer(struct.pack("H14x", socket.AF_UNSPEC))
    if ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), nowhere, 16) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def _lossy(share: float, target: Target) -> Iterator[None]:
    """Let both ends drop this share of the packets that arrive, acknowledgements too; 1 is a cable that was pulled."""
    with target.connections() as connections, contextlib.ExitStack() as stack:
        for gateways_end, peers_end in connections:
            stack.enter_context(dropping(gateways_end, share))
            stack.enter_context(dropping(peers_end, share))
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
    """Return a classic BPF program (linux/filter.h) that drops this share of all packets.

    A packet is taken whole if a random number is above the share.
    """
    instructions = (
        (0x20, 0, 0, 0xFFFF_F000 + 56),  # load SKF_AD_RANDOM, a number of 32 bits
        (0x25, 0, 1, round(share * 0xFFFF_FFFF)),  # skip the next instruction unless it is greater
        (0x06, 0, 0, 0xFFFF_FFFF),  # return all bytes
        (0x06, 0, 0, 0),  # return none
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


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


@_for_good
def _kill(role: str, target: Target) -> None:
    target.process(role).kill()


@_for_good
def _restart(target: Target) -> None:
    target.breakable.restart()


@_for_good
def _close(target: Target) -> None:
    target.breakable.close_connections()


def _on_each(
    how: str, what: str, during: Callable[[str, Target], AbstractContextManager[None]], is_lifted: bool = False
) -> list[Fault]:
    """Return the same fault for each component and for the broker; `what` has {} for the role."""
    return [
        Fault(
            name=f"{role}-{how}",
            what=what.format(role),
            during=partial(during, role),
            is_lifted=is_lifted,
            needs_broker=role == BROKER,
        )
        for role in (*COMPONENTS, BROKER)
    ]


FAULTS = {
    fault.name: fault
    for fault in (
        *_on_each("kill", "the {} is killed (SIGKILL)", _kill),
        *_on_each("stop", "the {} is stopped for a while (SIGSTOP, then SIGCONT)", _stopped, is_lifted=True),
        *_on_each("freeze", "the {} is stopped for good", _stopped),
        Fault("broker-restart", "the broker ends and starts again over its own files", _restart, needs_broker=True),
        Fault(
            "broker-alarm",
            "the broker is out of memory for a while, and takes no message",
            _alarmed,
            is_lifted=True,
            needs_broker=True,
        ),
        Fault("broker-close", "the broker closes every connection, by its own command", _close, needs_broker=True),
        Fault("connection-reset", "the gateway's connections are reset", _reset, needs_tcp=True),
        Fault(
            "partition",
            f"no packet passes {BETWEEN} for a while",
            partial(_lossy, 1.0),
            is_lifted=True,
            needs_tcp=True,
        ),
        Fault("half-open", "no packet passes any more, and neither end is told", partial(_lossy, 1.0), needs_tcp=True),
        Fault("loss", LOSS, partial(_lossy, LOST_SHARE), is_lifted=True, needs_tcp=True),
        Fault("delay", DELAY, _delayed, is_lifted=True, needs_tcp=True, network=NETWORK),
        Fault("full-disk", "no file of reporter and launcher can grow any more", _full),
    )
}
"""Every fault by name, in the order of the matrix."""
