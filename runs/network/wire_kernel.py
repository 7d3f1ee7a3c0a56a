"""The wire itself, compiled: frames in, a clock, frames out.

A frame leaves when its bits have passed the sender's link, which carries one frame at a time, and the delay is over.
Its time of arrival is the kernel's, so that the delay does not grow by what waking up takes.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from runs.network.cable import FRAMING, LARGEST_FRAME, SMALLEST_FRAME

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

SLOT = 1536
QUEUE = 8_192
"""Frames that are under way from a port at most; more wait in the kernel's ring."""
RING_FRAME = 2048
"""Bytes of a frame in the kernel's ring, its header with it."""
BUCKETS = 65_536
"""Of lateness, 1 us each; the last one holds all above."""
AWAKE_NS = 25_000
"""The last moment before a frame is due is spent awake, since waking up takes about as long."""
FRAMES, FAILED, STRAY, LATEST_NS = range(4)
"""Places in `counts`: carried, refused by the kernel, not for anyone here, and the greatest lateness."""
_LONGEST_SLEEP_NS = 1_000_000_000
_TURN = 64
"""Most frames taken from a port before the clock is looked at."""
_MONOTONIC, _REALTIME = int(time.CLOCK_MONOTONIC), int(time.CLOCK_REALTIME)
_STATUS, _LENGTH, _SECONDS, _NS = 0, 1, 4, 5
"""Words of struct tpacket2_hdr (linux/if_packet.h), and a half word: where the frame starts."""
_START = 6
_IS_OURS = 1
_LAN, _PLACE = 4, 5
"""Bytes of a destination: see topology.Seat.mac."""

_write = types.ExternalFunction("write", types.intp(types.int32, types.uintp, types.uintp))
_ppoll = types.ExternalFunction("ppoll", types.int32(types.voidptr, types.uintp, types.voidptr, types.voidptr))
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


class Wire(NamedTuple):
    """Everything per port: what has arrived, and what is under way, a ring from `heads` to `tails`, in order."""

    polls: npt.NDArray[np.int32]
    """struct pollfd, two words each: the ports, then the descriptor that interrupts."""
    rings: tuple[Bytes, ...]
    """The kernel's, shared with it."""
    places: Integers
    """The frame of the ring that comes next."""
    frames: Bytes
    lengths: Integers
    due_ns: Integers
    heads: Integers
    tails: Integers
    free_ns: Integers
    """When a port's link is free again."""
    lateness: Integers
    counts: Integers
    clock: Integers
    """Scratch: a struct timespec."""


@intrinsic
def _fence(_context: Any) -> Any:
    """The kernel looks at the same memory: what stands before this happens before what stands after it."""

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
    """(when the frame leaves the wire, when the sender's link is free again); a bit takes `bit_ps` on the link."""
    on_cable = max(length, SMALLEST_FRAME) + FRAMING
    free_ns = max(arrived_ns, free_ns) + on_cable * 8 * bit_ps // 1000
    return free_ns + delay_ns, free_ns


@njit(cache=True)
def _take(wire: Wire, port: int, bit_ps: int, delay_ns: int) -> None:
    """What has arrived at a port gets its time of departure."""
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
    """Send on what is due of a port's frames: when the next one is."""
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
    """Until the descriptor behind the ports has something to say."""
    ports = len(wire.rings)
    while wire.polls[2 * ports + 1] >> 16 == 0:
        next_ns = _now_ns(_MONOTONIC, wire.clock) + _LONGEST_SLEEP_NS
        for port in range(ports):
            _take(wire, port, bit_ps, delay_ns)
            next_ns = min(next_ns, _put(wire, port))
        sleep_ns = max(next_ns - AWAKE_NS - _now_ns(_MONOTONIC, wire.clock), 0)
        wire.clock[0], wire.clock[1] = sleep_ns // 1_000_000_000, sleep_ns % 1_000_000_000
        _ppoll(wire.polls.ctypes, ports + 1, wire.clock.ctypes, 0)
