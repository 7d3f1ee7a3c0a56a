"""The calls that a link over shared memory lends; see transports/lending.py."""

from __future__ import annotations

from collections.abc import Callable

from transports.frames import Bytes, Longs
from transports.lending import RECEIVE, SEND, SLEEP, Lent, lendable
from transports.shm import ring, segment, words
from transports.shm.peer import Peer
from transports.shm.ring import SPINS, read_frames, sleep, spin, write_frames


@lendable(RECEIVE, ring, segment, words)
def _receive(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    return read_frames(numbers, memory, buffer, offsets, count, largest)


@lendable(SEND, ring, segment, words)
def _send(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    return write_frames(numbers, memory, buffer, offsets, first, end)


@lendable(SLEEP, ring, segment, words)
def _sleep(numbers: Longs, memory: Bytes, until_ns: int) -> None:
    if numbers[SPINS]:
        spin(numbers, memory, until_ns, True, False)
    else:
        sleep(numbers, memory, until_ns, True, False)


def lent_calls(peer: Peer, settle: Callable[[], None]) -> Lent:
    """The calls of the one peer of a pair."""
    return Lent(_receive, _send, _sleep, peer.numbers, peer.memory, settle)
