"""The compiled wire: it takes frames, waits, and sends them on.

A frame leaves when its bits have passed the sender's link, which carries one frame at a time, and the delay is over.
The kernel stamps its arrival, so the delay does not grow by the time that waking up takes.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from runs.network.profile import FRAMING, LARGEST_FRAME, SMALLEST_FRAME

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

SLOT = 1536
QUEUE = 8_192
"""The most frames under way from a port; more wait in the kernel's ring."""
RING_FRAME = 2048
"""Bytes of a frame with its header in the kernel's ring."""
BUCKETS = 65_536
"""Buckets of lateness, 1 us each; the last one counts everything above."""
AWAKE_NS = 25_000
"""The wire stays awake for this long before a frame is due, since waking up takes about as long."""
FRAMES, FAILED, STRAY, LATEST_NS = range(4)
"""Indexes of `counts`: frames carried, refused by the kernel and for no role here, and the greatest lateness."""
_LONGEST_SLEEP_NS = 1_000_000_000
_TURN = 64
"""The most frames taken from a port between two readings of the clock."""
_MONOTONIC, _REALTIME = int(time.CLOCK_MONOTONIC), int(time.CLOCK_REALTIME)
_STATUS, _LENGTH, _SECONDS, _NS = 0, 1, 4, 5
"""Indexes of words in struct tpacket2_hdr (linux/if_packet.h); _START, the frame's offset, is one of half words."""
_START = 6
_IS_OURS = 1
_LAN, _PLACE = 4, 5
"""Indexes of bytes in a destination address: see topology.Seat.mac."""

_write = types.ExternalFunction("write", types.intp(types.int32, types.uintp, types.uintp))
_ppoll = types.ExternalFunction("ppoll", types.int32(types.voidptr, types.uintp, types.voidptr, types.voidptr))
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


class Wire(NamedTuple):
    """The state of each port: arrived frames, and frames under way in a ring from `heads` to `tails`."""

    polls: npt.NDArray[np.int32]
    """struct pollfd, two words each: the ports, then the descriptor that interrupts."""
    rings: tuple[Bytes, ...]
    """Memory shared with the kernel."""
    places: Integers
    """The next frame of each ring."""
    frames: Bytes
    lengths: Integers
    due_ns: Integers
    heads: Integers
    tails: Integers
    free_ns: Integers
    """The times at which the ports' links are free again."""
    lateness: Integers
    counts: Integers
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
    """(time at which the frame leaves the wire, time at which the sender's link is free); a bit takes `bit_ps`."""
    on_cable = max(length, SMALLEST_FRAME) + FRAMING
    free_ns = max(arrived_ns, free_ns) + on_cable * 8 * bit_ps // 1000
    return free_ns + delay_ns, free_ns


@njit(cache=True)
def _take(wire: Wire, port: int, bit_ps: int, delay_ns: int) -> None:
    """Take arrived frames from a port's ring and compute their times of departure."""
    ring = wire.rings[port]
    words, halves = ring.view(np.uint32), ring.view(np.uint16)
    now_ns = _now_ns(_MONOTONIC, wire.clock)
    behind_ns = _now_ns(_REALTIME, wire.clock) - now_ns
    for _ in range(_TURN):
        header = wire.places[port] * RING_FRAME
        word = header // 4
        if words[word + _STATUS] & _IS_OURS == 0 or wire.tails[port] - wire.heads[port] == QUEUE:
            return
        _fence()
        length = np.int64(words[word + _LENGTH])
        start = header + halves[header // 2 + _START]
        place = wire.tails[port] % QUEUE
        if ring[start] == 2 and ring[start + _LAN] == 1 and length <= LARGEST_FRAME:
            wire.frames[port, place, :length] = ring[start : start + length]
            stamp_ns = np.int64(words[word + _SECONDS]) * 1_000_000_000 + np.int64(words[word + _NS])
            due_ns, free_ns = departure_ns(
                min(stamp_ns - behind_ns, now_ns), wire.free_ns[port], length, bit_ps, delay_ns
            )
            wire.lengths[port, place], wire.due_ns[port, place], wire.free_ns[port] = length, due_ns, free_ns
            wire.tails[port] += 1
        else:
            wire.counts[STRAY] += 1
        _fence()
        words[word + _STATUS] = 0
        wire.places[port] = (wire.places[port] + 1) % (len(ring) // RING_FRAME)


@njit(cache=True)
def _put(wire: Wire, port: int) -> int:
    """Send a port's due frames on. The time at which the next one is due."""
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
        if _write(wire.polls[2 * frame[_PLACE]], frame.ctypes.data, wire.lengths[port, place]) < 0:
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
        wire.clock[0], wire.clock[1] = sleep_ns // 1_000_000_000, sleep_ns % 1_000_000_000
        _ppoll(wire.polls.ctypes, ports + 1, wire.clock.ctypes, 0)
