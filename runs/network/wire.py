"""A wire in user space: packet sockets on the hub's ends of the links, joined by the kernel of wire_kernel.py.

It needs neither netem nor a device file, only a namespace of our own. Each frame passes one more process, which takes
CPU time (`cpu_s`) and may be late; the lateness is measured.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import time
from typing import Any

import numpy as np

from runs.network.wire_kernel import BUCKETS, FAILED, FRAMES, LATEST_NS, QUEUE, RING_FRAME, SLOT, STRAY, Wire, carry
from runs.priority import wake_on_time

_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION, _IGNORE_OUTGOING = 263, 5, 6, 10, 23
_TPACKET_V2 = 1
"""linux/if_packet.h."""
_ETH_P_ALL = 3
_BLOCK = 1 << 16
_RING_BYTES = 4096 * RING_FRAME
"""50 ms of full frames at 1 Gbit/s, for times when the wire is not on the CPU."""


class Port:
    """The hub's end of a link; the kernel writes arriving frames into a ring."""

    def __init__(self, interface: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        self.socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
        self.socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        shape = struct.pack("IIII", _BLOCK, _RING_BYTES // _BLOCK, RING_FRAME, _RING_BYTES // RING_FRAME)
        self.socket.setsockopt(_SOL_PACKET, _RX_RING, shape)
        self.ring = mmap.mmap(self.socket.fileno(), _RING_BYTES)
        self.socket.bind((interface, _ETH_P_ALL))

    def lost(self) -> int:
        """The number of frames that found the ring full since the last call."""
        return struct.unpack("II", self.socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))[1]


class UserSpaceWire:
    """Carries frames between `interfaces`, the hub's ends in the order of the seats, until `interrupt` is readable."""

    def __init__(self, interfaces: list[str], rate_bit_per_s: int, delay_us: float, interrupt: int) -> None:
        wake_on_time()
        self._ports = [Port(interface) for interface in interfaces]
        self._shape = round(1e12 / rate_bit_per_s), round(delay_us * 1000)
        self._wire = _wire(self._ports, interrupt)
        self._compile()
        self._is_realtime = _become_realtime()
        self._reset()

    def _compile(self) -> None:
        """Compile or load the kernel: with the interrupt marked as readable it returns at once."""
        self._wire.polls[-1] |= select.POLLIN << 16
        carry(self._wire, *self._shape)

    def carry(self) -> None:
        self._wire.polls[-1] = select.POLLIN
        carry(self._wire, *self._shape)

    def delay(self, delay_us: float) -> None:
        """Take another delay for the frames that come from now on; they stay in order."""
        self._shape = self._shape[0], round(delay_us * 1000)

    def figures(self) -> dict[str, Any]:
        """The number of frames since the last call, and how late they left."""
        counts, seen = self._wire.counts, np.cumsum(self._wire.lateness)
        p50, p99 = (int(np.searchsorted(seen, seen[-1] * share)) for share in (0.5, 0.99))
        figures = {
            "frames": int(counts[FRAMES]),
            "lateness_us": {"p50": p50, "p99": p99, "max": int(counts[LATEST_NS]) // 1000},
            "lost": sum(port.lost() for port in self._ports) + int(counts[FAILED]),
            "stray": int(counts[STRAY]),
            "is_realtime": self._is_realtime,
            "cpu_s": round(time.process_time() - self._cpu_s, 6),
        }
        self._reset()
        return figures

    def _reset(self) -> None:
        self._wire.lateness[:] = 0
        self._wire.counts[:] = 0
        self._cpu_s = time.process_time()


def _become_realtime() -> bool:
    """Ask to be scheduled before ordinary processes; without that, frames are milliseconds late on a busy machine."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True


def _wire(ports: list[Port], interrupt: int) -> Wire:
    """An idle wire. Ones fill its arrays, so that the memory is mapped now and not while a frame waits."""
    count, fds = len(ports), [port.socket.fileno() for port in ports]
    return Wire(
        polls=np.array([(fd, select.POLLIN) for fd in (*fds, interrupt)], np.int32).ravel(),
        rings=tuple(np.frombuffer(port.ring, np.uint8) for port in ports),
        places=np.zeros(count, np.int64),
        frames=np.ones((count, QUEUE, SLOT), np.uint8),
        lengths=np.ones((count, QUEUE), np.int64),
        due_ns=np.ones((count, QUEUE), np.int64),
        heads=np.zeros(count, np.int64),
        tails=np.zeros(count, np.int64),
        free_ns=np.zeros(count, np.int64),
        lateness=np.zeros(BUCKETS, np.int64),
        counts=np.zeros(4, np.int64),
        clock=np.zeros(2, np.int64),
    )
