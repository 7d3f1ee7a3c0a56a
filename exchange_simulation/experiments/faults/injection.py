"""The faults, and their target: the processes, the broker and the gateway's connections of a run.

A connection is broken through its own sockets, which are borrowed from their processes. This needs no proxy, which
would change the figures, and no root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from exchange_simulation.experiments.faults.relays import relay_of, signal_through
from transports.declaration import BreakableServer, BrokerServer
from transports.sockets import borrowed_socket

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
"""Options of Linux sockets that Python's socket module does not name."""
INSTRUCTION_BYTES = 8
"""The size of an instruction of a packet filter."""
LINK_WORDS = "between the gateway and its peer"
LOST_SHARE = 0.1
"""The share of packets that the fault `loss` drops."""
DELAY_US = 20_000
"""The one-way delay of packets during the fault `delay`."""
USUAL_DELAY_US = 50
"""The one-way delay before and after that fault."""
NETWORK = f"gige?delay_us={USUAL_DELAY_US}"
"""The emulated network of the fault `delay`."""
COMPONENTS = ("gateway", "engine", "reporter")
BROKER = "broker"


class ConnectionEnds(NamedTuple):
    """Both sockets of a TCP connection, borrowed from their processes."""

    gateways_end: socket.socket
    peers_end: socket.socket


@dataclass(frozen=True)
class Target:
    """A run under way."""

    launcher: psutil.Process
    broker: BrokerServer | None
    """The broker between gateway and engine; None if they are connected directly."""

    def process(self, role: str) -> psutil.Process:
        """Return the process of a role. NoSuchProcess if that process has ended, or if the run has no such role."""
        if role == BROKER:
            if self.broker is None:
                raise psutil.NoSuchProcess(0, role)
            return psutil.Process(self.broker.facts()["pid"])
        for child in self.launcher.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if role in child.cmdline():
                    return child
        raise psutil.NoSuchProcess(0, role)

    def send(self, role: str, number: int) -> None:
        """Send a role's process a signal, through its relay if it is on another host. NoSuchProcess, OSError."""
        relay = relay_of(self.launcher, role)
        if relay:
            signal_through(relay, number)
        else:
            self.process(role).send_signal(number)

    @property
    def breakable(self) -> BreakableServer:
        """The broker. OSError if there is none, or if it has no commands for faults."""
        if not isinstance(self.broker, BreakableServer):
            raise OSError("this broker has no commands for faults")
        return self.broker

    @contextlib.contextmanager
    def connections(self) -> Iterator[list[ConnectionEnds]]:
        """Borrow the sockets of the gateway's connections to the engine, or to the broker. OSError if there is none."""
        gateway = self.process("gateway")
        peer = self.process(BROKER if self.broker else "engine")
        fd_by_remote_address = {end.raddr: end.fd for end in peer.net_connections("tcp") if end.raddr}
        with contextlib.ExitStack() as stack:
            connections = []
            for end in gateway.net_connections("tcp"):
                if end.laddr in fd_by_remote_address:
                    gateways_end = stack.enter_context(borrowed_socket(gateway.pid, end.fd))
                    peers_end = stack.enter_context(borrowed_socket(peer.pid, fd_by_remote_address[end.laddr]))
                    connections.append(ConnectionEnds(gateways_end, peers_end))
            if not connections:
                raise OSError("no TCP connection joins the gateway and its peer")
            yield connections


class Fault(NamedTuple):
    """A fault of the matrix."""

    name: str
    description: str
    injection: Callable[[Target], AbstractContextManager[None]]
    """Returns a context. Entering it injects the fault; leaving it lifts the fault, if that is possible."""
    is_lifted: bool = False
    """Whether the fault is lifted while the run goes on."""
    needs_broker: bool = False
    needs_tcp: bool = False
    """Whether the fault breaks a TCP connection."""
    network: str = ""
    """The emulated network of the run, empty without one. In a network the run starts its own broker."""


def _for_good(inject: Callable[..., object]) -> Callable[..., AbstractContextManager[None]]:
    """Turn the function `inject` into a context that injects a fault and never lifts it."""

    @contextlib.contextmanager
    def injection(*args: object) -> Iterator[None]:
        inject(*args)
        yield

    return injection


@contextlib.contextmanager
def _stopped(role: str, target: Target) -> Iterator[None]:
    """Stop a process (SIGSTOP), and continue it at the end (SIGCONT)."""
    target.send(role, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            target.send(role, signal.SIGCONT)


@contextlib.contextmanager
def _alarmed(target: Target) -> Iterator[None]:
    """Make the broker block its publishers, as if it had no memory left, until the end."""
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
        for connection in connections:
            disconnect(connection.gateways_end)


def disconnect(sock: socket.socket) -> None:
    """Dissolve a connection by connect(2) to AF_UNSPEC. Python's own connect cannot express this address."""
    nowhere = ctypes.create_string_buffer(struct.pack("H14x", socket.AF_UNSPEC))
    if ctypes.CDLL(None, use_errno=True).connect(sock.fileno(), nowhere, 16) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def _lossy(share: float, target: Target) -> Iterator[None]:
    """Let both ends drop this share of the arriving packets, also acknowledgements. 1 acts as a pulled cable."""
    with target.connections() as connections, contextlib.ExitStack() as stack:
        for connection in connections:
            stack.enter_context(dropping(connection.gateways_end, share))
            stack.enter_context(dropping(connection.peers_end, share))
        yield


@contextlib.contextmanager
def dropping(sock: socket.socket, share: float) -> Iterator[None]:
    """Let the kernel drop this share of the packets for this socket until the end; TCP sends lost packets again."""
    instructions = packet_filter(share)
    buffer = ctypes.create_string_buffer(instructions)
    program = struct.pack("HP", len(instructions) // INSTRUCTION_BYTES, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    try:
        yield
    finally:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def packet_filter(share: float) -> bytes:
    """Return a classic BPF program (linux/filter.h) that drops this share of all packets.

    The filter accepts a packet if a random number of 32 bits is above the share of 2^32.
    """
    instructions = (
        (0x20, 0, 0, 0xFFFF_F000 + 56),  # load SKF_AD_RANDOM, a random number
        (0x25, 0, 1, round(share * 0xFFFF_FFFF)),  # skip the next instruction unless the number is greater
        (0x06, 0, 0, 0xFFFF_FFFF),  # accept all bytes of the packet
        (0x06, 0, 0, 0),  # accept no byte: drop the packet
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


@contextlib.contextmanager
def _delayed(target: Target) -> Iterator[None]:
    """Set the delay of the run's network by a command to the network's holder, which reads its stdin, a pipe."""
    stdin = Path(f"/proc/{target.process('exchange_simulation.launching.network.holder').pid}/fd/0")
    stdin.write_text(f"delay_us {DELAY_US}\n")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            stdin.write_text(f"delay_us {USUAL_DELAY_US}\n")


@_for_good
def _full(target: Target) -> None:
    """Limit the files of reporter and launcher to their size: every further write fails, as on a full disk."""
    for process in (target.process("reporter"), target.launcher):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))


@_for_good
def _kill(role: str, target: Target) -> None:
    target.send(role, signal.SIGKILL)


@_for_good
def _restart(target: Target) -> None:
    target.breakable.restart()


@_for_good
def _close(target: Target) -> None:
    target.breakable.close_connections()


def _for_each_role(
    suffix: str,
    description: str,
    injection: Callable[[str, Target], AbstractContextManager[None]],
    is_lifted: bool = False,
) -> list[Fault]:
    """Return the same fault for each component and for the broker; `description` has {} in place of the role."""
    return [
        Fault(
            name=f"{role}-{suffix}",
            description=description.format(role),
            injection=partial(injection, role),
            is_lifted=is_lifted,
            needs_broker=role == BROKER,
        )
        for role in (*COMPONENTS, BROKER)
    ]


FAULTS = {
    fault.name: fault
    for fault in (
        *_for_each_role("kill", "the {} is killed (SIGKILL)", _kill),
        *_for_each_role("stop", "the {} is stopped for a while (SIGSTOP, then SIGCONT)", _stopped, is_lifted=True),
        *_for_each_role("freeze", "the {} is stopped for good", _stopped),
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
            f"no packet passes {LINK_WORDS} for a while",
            partial(_lossy, 1.0),
            is_lifted=True,
            needs_tcp=True,
        ),
        Fault("half-open", "no packet passes any more, and neither end is told", partial(_lossy, 1.0), needs_tcp=True),
        Fault(
            "loss",
            f"{LOST_SHARE:.0%} of the packets {LINK_WORDS} are lost for a while",
            partial(_lossy, LOST_SHARE),
            is_lifted=True,
            needs_tcp=True,
        ),
        Fault(
            "delay",
            f"in an emulated network every packet takes {DELAY_US / 1000:g} ms for a while, one way",
            _delayed,
            is_lifted=True,
            needs_tcp=True,
            network=NETWORK,
        ),
        Fault("full-disk", "no file of reporter and launcher can grow any more", _full),
    )
}
"""Every fault by name, in the order of the matrix."""
