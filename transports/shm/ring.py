"""The rings of a segment, compiled: one process writes a ring, the other one reads it, and neither trusts the other.

In a ring a frame is its length as u32, the frame, and up to 3 bytes so that the next length stands at a multiple of 4.
A frame that reaches the ring's end goes on at its beginning. Places count bytes since the start, so a place modulo
RING_BYTES is where it lies in the ring. Each process has its own place in `numbers`, where the peer cannot change it.

The peer's place and the lengths are checked before they are used. If one is impossible, BROKEN is set, and the link
gives the peer up.

An end that is about to sleep sets its flag, and looks at the ring once more. The other end, once it has written or
read, looks at the flag and sends a byte over the socket between the two. The fences on both sides make sure that one
of the two sees the other's store.
"""

from __future__ import annotations

from numba import njit

from transports.frames import Bytes, Longs
from transports.lending import AT_ONCE, NOTICE, monotonic_ns, poll, receive_bytes, send_bytes
from transports.shm.segment import HEAD, READER_SLEEPS, RING_BYTES, TAIL, WRITER_SLEEPS
from transports.shm.words import LENGTH_BYTES, copy_bytes, fence, load_length, load_word, store_length, store_word
from transports.waiting import LONGEST_SLEEP_NS

# Places in `numbers`. The first is transports.lending.NOTICE.
WRITTEN = 1
"""Bytes that this end has written to its ring since the start."""
SEEN_READ = 2
"""Bytes of these that the peer had read when this end last looked."""
READ = 3
"""Bytes that this end has read from the peer's ring since the start."""
TOO_LONG = 4
"""Frames that were dropped because they were longer than a batch's largest."""
BROKEN = 5
"""1 once the peer wrote a place or a length that cannot be."""
HUNG_UP = 6
"""1 once the peer's socket has ended."""
SOCKET = 7
"""The descriptor of the socket between the two."""
OUT_CONTROL = 8
"""The place of the control words of the ring that this end writes."""
OUT_DATA = 9
"""The place of that ring."""
IN_CONTROL = 10
"""The place of the control words of the ring that this end reads."""
IN_DATA = 11
"""The place of that ring."""
SPINS = 12
"""1 if this end does not sleep, but looks again and again."""
POLLED = 13
"""The number of descriptors that a sleep watches."""
TIMESPEC = 14
"""A struct timespec, two numbers."""
WAKES = 16
"""Room for the bytes that wake this end, eight numbers; nobody reads them."""
WAKES_BYTES = 64
DESCRIPTORS = 24
"""From here on a struct pollfd for each descriptor, a number each."""
MOST_DESCRIPTORS = 64
"""The most descriptors that a sleep watches."""

ROOMY = RING_BYTES // 4
"""A writer without room is woken once so few bytes are unread: the longest frame then fits."""
LOOKS = 64
"""Looks at the ring between two looks at the clock."""
LOOK_AROUND_NS = 1_000_000
"""Time between two looks at the descriptors while this end spins."""


@njit(inline="always")
def _taken_by(size: int) -> int:
    """Bytes of the ring that a frame takes."""
    return LENGTH_BYTES + ((size + LENGTH_BYTES - 1) & -LENGTH_BYTES)


@njit(inline="always")
def _wake(numbers: Longs, memory: Bytes, flag: int) -> None:
    """Wake the peer if it sleeps and has set the flag. If the socket is full, the peer has bytes that wake it."""
    fence()
    if load_word(memory, flag):
        store_word(memory, flag, 0)
        send_bytes(numbers[SOCKET], memory.ctypes, 1, AT_ONCE)


@njit(inline="always")
def _unread_by_peer(numbers: Longs, memory: Bytes) -> int:
    """Bytes in this end's ring that the peer has not read; BROKEN is set if the peer says what cannot be."""
    seen = load_word(memory, numbers[OUT_CONTROL] + HEAD)
    unread = numbers[WRITTEN] - seen
    if unread < 0 or unread > RING_BYTES:
        numbers[BROKEN] = 1
        numbers[NOTICE] = 1
        return RING_BYTES
    numbers[SEEN_READ] = seen
    return unread


@njit(cache=True, nogil=True)
def write_frames(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    """Write frames first..end-1 while there is room; returns the first one that was not written."""
    data = numbers[OUT_DATA]
    written = numbers[WRITTEN]
    index = first
    while index < end:
        begin = offsets[index]
        size = offsets[index + 1] - begin
        taken = _taken_by(size)
        if taken > RING_BYTES - ROOMY:
            raise ValueError("a frame is longer than LONGEST_FRAME allows")
        if written + taken - numbers[SEEN_READ] > RING_BYTES:
            numbers[WRITTEN] = written
            if _unread_by_peer(numbers, memory) + taken > RING_BYTES:
                break
        at = written & (RING_BYTES - 1)
        store_length(memory, data + at, size)
        at = (at + LENGTH_BYTES) & (RING_BYTES - 1)
        until_end = min(size, RING_BYTES - at)
        copy_bytes(memory, data + at, buffer, begin, until_end)
        if until_end < size:
            copy_bytes(memory, data, buffer, begin + until_end, size - until_end)
        written += taken
        index += 1
    if index > first:
        numbers[WRITTEN] = written
        store_word(memory, numbers[OUT_CONTROL] + TAIL, written)
        _wake(numbers, memory, numbers[OUT_CONTROL] + READER_SLEEPS)
    return index


@njit(cache=True, nogil=True)
def frames_with_room(numbers: Longs, memory: Bytes, offsets: Longs, first: int, end: int) -> int:
    """The first of frames first..end-1 for which `write_frames` has no room."""
    room = RING_BYTES - _unread_by_peer(numbers, memory)
    index = first
    while index < end:
        room -= _taken_by(offsets[index + 1] - offsets[index])
        if room < 0:
            break
        index += 1
    return index


@njit(cache=True, nogil=True)
def read_frames(numbers: Longs, memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    """Append the frames that have come to a batch's arrays; returns the batch's new count."""
    data = numbers[IN_DATA]
    read = numbers[READ]
    written = load_word(memory, numbers[IN_CONTROL] + TAIL)
    if written == read or numbers[BROKEN]:
        return count
    is_broken = written < read or written - read > RING_BYTES
    end = offsets[count]
    while not is_broken and read < written and count + 1 < len(offsets):
        at = read & (RING_BYTES - 1)
        size = load_length(memory, data + at)
        taken = _taken_by(size)
        if taken > written - read:
            is_broken = True
            break
        if size > largest:
            numbers[TOO_LONG] += 1
            numbers[NOTICE] = 1
            read += taken
            continue
        if end + size > len(buffer):
            break
        at = (at + LENGTH_BYTES) & (RING_BYTES - 1)
        until_end = min(size, RING_BYTES - at)
        copy_bytes(buffer, end, memory, data + at, until_end)
        if until_end < size:
            copy_bytes(buffer, end + until_end, memory, data, size - until_end)
        end += size
        count += 1
        offsets[count] = end
        read += taken
    if is_broken:
        numbers[BROKEN] = 1
        numbers[NOTICE] = 1
    numbers[READ] = read
    store_word(memory, numbers[IN_CONTROL] + HEAD, read)
    if written - read <= ROOMY:
        _wake(numbers, memory, numbers[IN_CONTROL] + WRITER_SLEEPS)
    return count


@njit(cache=True, nogil=True)
def is_ready(numbers: Longs, memory: Bytes, readable: bool, writable: bool) -> bool:
    """True if a frame has come (`readable`), there is room (`writable`), or the peer broke the ring."""
    if readable and load_word(memory, numbers[IN_CONTROL] + TAIL) != numbers[READ]:
        return True
    if writable and _unread_by_peer(numbers, memory) <= ROOMY:
        return True
    return numbers[BROKEN] != 0


@njit(cache=True, nogil=True)
def prepare_sleep(numbers: Longs, memory: Bytes, readable: bool, writable: bool) -> bool:
    """Ask the peer to wake this end. Returns False if this end must not sleep, since what it waits for is there."""
    if readable:
        store_word(memory, numbers[IN_CONTROL] + READER_SLEEPS, 1)
    if writable:
        store_word(memory, numbers[OUT_CONTROL] + WRITER_SLEEPS, 1)
    fence()
    return not is_ready(numbers, memory, readable, writable)


@njit(cache=True, nogil=True)
def end_sleep(numbers: Longs, memory: Bytes) -> None:
    """Ask the peer for no more bytes that wake, and take those that came. HUNG_UP is set if the socket has ended."""
    store_word(memory, numbers[IN_CONTROL] + READER_SLEEPS, 0)
    store_word(memory, numbers[OUT_CONTROL] + WRITER_SLEEPS, 0)
    if receive_bytes(numbers[SOCKET], numbers[WAKES:].ctypes, WAKES_BYTES, AT_ONCE) == 0:
        numbers[HUNG_UP] = 1
        numbers[NOTICE] = 1


@njit(cache=True, nogil=True)
def sleep(numbers: Longs, memory: Bytes, until_ns: int, readable: bool, writable: bool) -> None:
    """Sleep until a frame has come (`readable`), there is room (`writable`), the notice, a signal, or `until_ns`."""
    reason = 0
    pollfds = numbers[DESCRIPTORS : DESCRIPTORS + numbers[POLLED]]
    if prepare_sleep(numbers, memory, readable, writable):
        reason = poll(pollfds, numbers[TIMESPEC:WAKES], until_ns)
    end_sleep(numbers, memory)
    if reason:
        numbers[NOTICE] = 1


@njit(cache=True, nogil=True)
def spin(numbers: Longs, memory: Bytes, until_ns: int, readable: bool, writable: bool) -> None:
    """Stay awake until a frame has come (`readable`), there is room (`writable`), the notice, or `until_ns`."""
    pollfds = numbers[DESCRIPTORS : DESCRIPTORS + numbers[POLLED]]
    timespec = numbers[TIMESPEC:WAKES]
    now_ns = monotonic_ns(timespec)
    until_ns = min(until_ns, now_ns + LONGEST_SLEEP_NS)
    look_around_ns = now_ns + LOOK_AROUND_NS
    while now_ns < until_ns:
        for _ in range(LOOKS):
            if is_ready(numbers, memory, readable, writable):
                return
        now_ns = monotonic_ns(timespec)
        if now_ns >= look_around_ns:
            look_around_ns = now_ns + LOOK_AROUND_NS
            reason = poll(pollfds, timespec, 0)
            end_sleep(numbers, memory)
            if reason or numbers[HUNG_UP]:
                numbers[NOTICE] = 1
                return
