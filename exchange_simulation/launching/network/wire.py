"""A wire in user space: packet sockets on the hub's ends of the links, joined by a compiled kernel.

The wire needs neither netem nor a device file, but only a network namespace. Each frame passes the process of the wire,
which takes CPU time (`cpu_s`) and may be late. The lateness is measured.

The compiled kernel takes frames, waits, and sends them on. A frame leaves when its bits have passed the sender's link,
which carries one frame at a time, and the delay is over. The delay counts from the kernel's time stamp of the frame's
arrival, so it does not include the time that the process needs to wake up.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from exchange_simulation.launching.network.profile import FRAMING, LARGEST_FRAME, SMALLEST_FRAME
from exchange_simulation.launching.priority import wake_on_time

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

SLOT = 1536
"""Bytes of memory for a frame on the wire."""
QUEUE = 8_192
"""The most frames on the wire from a port. Further frames wait in the kernel's ring."""
RING_FRAME = 2048
"""Bytes of a frame with its header in the kernel's ring."""
BUCKETS = 65_536
"""The number of buckets of lateness. A bucket is 1 us; the last one has no end."""
AWAKE_NS = 25_000
"""The wire does not sleep in this time before a frame is due, since waking up takes about as long."""

# Indexes of `Wire.counts`.
FRAMES = 0
"""Frames carried."""
FAILED = 1
"""Frames that the kernel refused."""
STRAY = 2
"""Frames whose destination is no role of this network."""
LATEST_NS = 3
"""The greatest lateness."""
COUNTS = 4
_LONGEST_SLEEP_NS = 1_000_000_000
_TURN = 64
"""The most frames taken from a port between two readings of the clock."""
_MONOTONIC = int(time.CLOCK_MONOTONIC)
_REALTIME = int(time.CLOCK_REALTIME)

# Indexes of words in struct tpacket2_hdr (linux/if_packet.h).
_STATUS = 0
_LENGTH = 1
_SECONDS = 4
_NS = 5
_START = 6
"""Index of a half word there: the frame's offset."""
_IS_OURS = 1
"""TP_STATUS_USER: the kernel has left the frame to us."""

# Indexes of bytes in a destination address: see topology.Seat.mac.
_LAN = 4
_SEAT = 5
_LOCAL_ADDRESS = 2
"""The first byte of the address of a seat."""
_ORDERS_LAN = 1
"""The number of the network that the wire joins: topology.ORDERS."""

_write = types.ExternalFunction("write", types.intp(types.int32, types.uintp, types.uintp))
_ppoll = types.ExternalFunction("ppoll", types.int32(types.voidptr, types.uintp, types.voidptr, types.voidptr))
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


class Wire(NamedTuple):
    """The state of all ports. A port's frames on the wire are in a ring, from `heads` to `tails`."""

    polls: npt.NDArray[np.int32]
    """A struct pollfd, of two words, for each port and for the descriptor that interrupts the wire."""
    rings: tuple[Bytes, ...]
    """Memory shared with the kernel."""
    places: Integers
    """The next frame of each ring."""
    frames: Bytes
    """The bytes of the frames on the wire, by port and place in the ring."""
    lengths: Integers
    """The lengths of these frames."""
    due_ns: Integers
    """The times at which these frames leave."""
    heads: Integers
    """The number of frames that have left, by port."""
    tails: Integers
    """The number of frames that were taken, by port."""
    free_ns: Integers
    """The time at which the link is free again, by port."""
    lateness: Integers
    """The number of frames by their lateness in us."""
    counts: Integers
    """FRAMES, FAILED, STRAY, LATEST_NS."""
    clock: Integers
    """Scratch memory: a struct timespec."""


@intrinsic
def _fence(_context: Any) -> Any:
    """A memory barrier: the kernel reads the same memory, so earlier writes must be visible before later ones."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@njit(cache=True)
def _now_ns(which: int, clock: Integers) -> int:
    _clock_gettime(which, clock.ctypes)
    return clock[0] * 1_000_000_000 + clock[1]


@njit(cache=True)
def departure_ns(arrived_ns: int, free_ns: int, length: int, bit_ps: int, delay_ns: int) -> tuple[int, int]:
    """Return the time at which a frame leaves the wire, and the time at which the sender's link is free again.

    `length` is the frame's in bytes, `bit_ps` the time of a bit on the link.
    """
    on_cable = max(length, SMALLEST_FRAME) + FRAMING
    free_ns = max(arrived_ns, free_ns) + on_cable * 8 * bit_ps // 1000
    return free_ns + delay_ns, free_ns


@njit(cache=True)
def _take(wire: Wire, port: int, bit_ps: int, delay_ns: int) -> None:
    """Take arrived frames from a port's ring and compute their times of departure."""
    ring = wire.rings[port]
    words = ring.view(np.uint32)
    halves = ring.view(np.uint16)
    now_ns = _now_ns(_MONOTONIC, wire.clock)
    realtime_ahead_ns = _now_ns(_REALTIME, wire.clock) - now_ns  # Linux stamps frames by the realtime clock
    for _ in range(_TURN):
        header = wire.places[port] * RING_FRAME
        word = header // 4
        if words[word + _STATUS] & _IS_OURS == 0 or wire.tails[port] - wire.heads[port] == QUEUE:
            return
        _fence()
        length = np.int64(words[word + _LENGTH])
        start = header + halves[header // 2 + _START]
        place = wire.tails[port] % QUEUE
        is_for_a_seat = ring[start] == _LOCAL_ADDRESS and ring[start + _LAN] == _ORDERS_LAN
        if is_for_a_seat and length <= LARGEST_FRAME:
            wire.frames[port, place, :length] = ring[start : start + length]
            stamp_ns = np.int64(words[word + _SECONDS]) * 1_000_000_000 + np.int64(words[word + _NS])
            due_ns, free_ns = departure_ns(
                min(stamp_ns - realtime_ahead_ns, now_ns), wire.free_ns[port], length, bit_ps, delay_ns
            )
            wire.lengths[port, place] = length
            wire.due_ns[port, place] = due_ns
            wire.free_ns[port] = free_ns
            wire.tails[port] += 1
        else:
            wire.counts[STRAY] += 1
        _fence()
        words[word + _STATUS] = 0
        wire.places[port] = (wire.places[port] + 1) % (len(ring) // RING_FRAME)


@njit(cache=True)
def _put(wire: Wire, port: int) -> int:
    """Send a port's due frames on. Returns the time at which the next frame is due."""
    now_ns = _now_ns(_MONOTONIC, wire.clock)
    while wire.heads[port] < wire.tails[port]:
        place = wire.heads[port] % QUEUE
        due_ns = wire.due_ns[port, place]
        if due_ns > now_ns:
            return due_ns
        late_ns = now_ns - due_ns
        wire.lateness[min(late_ns // 1000, BUCKETS - 1)] += 1
        wire.counts[LATEST_NS] = max(wire.counts[LATEST_NS], late_ns)
        wire.counts[FRAMES] += 1
        frame = wire.frames[port, place]
        if _write(wire.polls[2 * frame[_SEAT]], frame.ctypes.data, wire.lengths[port, place]) < 0:
            wire.counts[FAILED] += 1
        now_ns = _now_ns(_MONOTONIC, wire.clock)
        wire.heads[port] += 1
    return now_ns + _LONGEST_SLEEP_NS


@njit(cache=True)
def carry(wire: Wire, bit_ps: int, delay_ns: int) -> None:
    """Carry frames until the interrupting descriptor is readable."""
    ports = len(wire.rings)
    while wire.polls[2 * ports + 1] >> 16 == 0:
        next_ns = _now_ns(_MONOTONIC, wire.clock) + _LONGEST_SLEEP_NS
        for port in range(ports):
            _take(wire, port, bit_ps, delay_ns)
            next_ns = min(next_ns, _put(wire, port))
        sleep_ns = max(next_ns - AWAKE_NS - _now_ns(_MONOTONIC, wire.clock), 0)
        wire.clock[0] = sleep_ns // 1_000_000_000
        wire.clock[1] = sleep_ns % 1_000_000_000
        _ppoll(wire.polls.ctypes, ports + 1, wire.clock.ctypes, 0)


# Numbers of linux/if_packet.h and linux/if_ether.h.
_SOL_PACKET = 263
_RX_RING = 5
_STATISTICS = 6
_VERSION = 10
_IGNORE_OUTGOING = 23
_TPACKET_V2 = 1
_ETH_P_ALL = 3

_BLOCK = 1 << 16
_RING_BYTES = 4096 * RING_FRAME
"""The size of a port's ring: 50 ms of full frames at 1 Gbit/s, for times in which the wire does not run."""


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
        """Return the number of frames that were lost since the last call, since the ring was full."""
        _received, dropped = struct.unpack("II", self.socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))
        return int(dropped)


class UserSpaceWire:
    """A wire between `interfaces`, the hub's ends of the links in the order of the seats. `interrupt` stops `carry`."""

    def __init__(self, interfaces: list[str], rate_bit_per_s: int, delay_us: float, interrupt: int) -> None:
        wake_on_time()
        self._ports = [Port(interface) for interface in interfaces]
        self._bit_ps = round(1e12 / rate_bit_per_s)
        """The time of a bit on a link."""
        self._delay_ns = round(delay_us * 1000)
        self._wire = _wire(self._ports, interrupt)
        self._compile()
        self._is_realtime = _become_realtime()
        self._reset()

    def _compile(self) -> None:
        """Compile or load the kernel by a call that returns at once, since the interrupt is marked as readable."""
        self._wire.polls[-1] |= select.POLLIN << 16
        carry(self._wire, self._bit_ps, self._delay_ns)

    def carry(self) -> None:
        """Carry frames until `interrupt` is readable."""
        self._wire.polls[-1] = select.POLLIN
        carry(self._wire, self._bit_ps, self._delay_ns)

    def set_delay(self, delay_us: float) -> None:
        """Set the delay of the frames that arrive from now on. Frames of a port stay in order."""
        self._delay_ns = round(delay_us * 1000)

    def figures(self) -> dict[str, Any]:
        """Return the number of frames since the last call, and their lateness. Resets the counts."""
        counts = self._wire.counts
        frames_up_to = np.cumsum(self._wire.lateness)
        p50 = int(np.searchsorted(frames_up_to, frames_up_to[-1] * 0.5))
        p99 = int(np.searchsorted(frames_up_to, frames_up_to[-1] * 0.99))
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
    """Get real-time scheduling; return False if that is not permitted.

    Without it, frames are milliseconds late on a busy machine.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True


def _wire(ports: list[Port], interrupt: int) -> Wire:
    """Return an idle wire. Its large arrays are filled with ones, so that their memory is mapped at once."""
    count = len(ports)
    polls = []
    for descriptor in [*(port.socket.fileno() for port in ports), interrupt]:
        polls += [descriptor, select.POLLIN]
    return Wire(
        polls=np.array(polls, np.int32),
        rings=tuple(np.frombuffer(port.ring, np.uint8) for port in ports),
        places=np.zeros(count, np.int64),
        frames=np.ones((count, QUEUE, SLOT), np.uint8),
        lengths=np.ones((count, QUEUE), np.int64),
        due_ns=np.ones((count, QUEUE), np.int64),
        heads=np.zeros(count, np.int64),
        tails=np.zeros(count, np.int64),
        free_ns=np.zeros(count, np.int64),
        lateness=np.zeros(BUCKETS, np.int64),
        counts=np.zeros(COUNTS, np.int64),
        clock=np.zeros(2, np.int64),
    )
