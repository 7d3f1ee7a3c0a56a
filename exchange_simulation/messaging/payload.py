"""A benchmark's messages: numbered, stamped and filled by a publisher, checked by a receiver.

    bytes 0..7    sequence: publisher's number << 40 | message's number, from 0     (little-endian)
    bytes 8..15   stamp: the monotonic clock in ns when the message was handed over with its batch; at a fixed rate when
                  it was due
    bytes 16..    body: a pattern

A message of 8 to 15 bytes has no stamp and therefore no latency of its own. Only the mean latency of all messages is
known, from the sum of the times at which they were handed over and the sum of the times at which they came. A message
of 1 to 7 bytes has only the low bytes of its number, which show the order modulo 256, 65,536, and so on.

A message's checksum is the sum of its 8-byte words and of the bytes after them, modulo 2^64. The checksum of several
messages is the sum of their checksums, so it does not depend on how receivers share the messages. One kernel call fills
a batch, and one call checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from exchange import log_buckets, measurements
from exchange.compiled import cached_kernel, inlined, kernel, load_u64, signed, store_u64
from exchange.log_buckets import log_bucket
from exchange.measurements import BUCKETS, LogBuckets
from exchange_simulation.messaging.message_load import MessageRange
from exchange_simulation.messaging.roles import ReceivedPart
from transports.frames import Bytes, FrameBatch, Longs

NUMBERED = 8
"""The smallest size of a message with a whole number."""
STAMPED = 16
"""The smallest size of a message with a stamp."""
NUMBER_BITS = 40
"""The low bits of a sequence, which hold the message's number."""
BATCH_FRAMES = 4096
"""The largest number of messages in a batch."""
BATCH_BYTES = 1 << 18
"""The largest size of a batch of several messages."""
# Places in a receipt's state.
_RECEIVED = 0
_CHECKSUM = 1
_WRONG_SIZE = 2
_FOREIGN = 3
"""Messages of an unknown publisher."""
_BEHIND = 4
"""Messages whose number is not above the last number of their publisher."""
_SKIPPED = 5
"""Numbers that were left out."""
_SUM_NS = 6
"""Sum, least and largest latency."""
_MIN_NS = 7
_MAX_NS = 8
_STATE_SIZE = 9
_NUMBER = (1 << NUMBER_BITS) - 1
NO_DUE_TIMES: Longs = np.zeros(0, np.int64)


@inlined
def _checksum(buffer: Bytes, at: int, size: int) -> Any:
    """The checksum of the bytes from `at` on."""
    total = np.int64(0)
    for k in range(size // 8):
        total += signed(load_u64(buffer, at + 8 * k))
    for k in range(size - size % 8, size):
        total += np.int64(buffer[at + k])
    return total


@kernel
def _fill(buffer: Bytes, size: int, first: int, frames: int, now_ns: int, due: Longs) -> int:
    """Number and stamp frames, whose bodies are filled already; returns the sum of their checksums.

    The stamps are the due times, or `now_ns` if `due` is empty.
    """
    total = np.int64(0)
    body = np.int64(0)
    if size >= STAMPED and frames:
        body = _checksum(buffer, STAMPED, size - STAMPED)
    for i in range(frames):
        at = i * size
        number = first + i
        if size >= STAMPED:
            stamp = due[i] if len(due) else np.int64(now_ns)
            store_u64(buffer, at, number)
            store_u64(buffer, at + 8, stamp)  # type: ignore[arg-type]
            total += number + stamp + body
        elif size >= NUMBERED:
            store_u64(buffer, at, number)
            total += _checksum(buffer, at, size)
        else:
            for k in range(size):
                buffer[at + k] = (number >> (8 * k)) & 0xFF
            total += _checksum(buffer, at, size)
    return total  # type: ignore[return-value]


@inlined
def _short_number(buffer: Bytes, at: int, size: int) -> Any:
    """The number of a message that is shorter than NUMBERED."""
    value = np.int64(0)
    for k in range(size):
        value |= np.int64(buffer[at + k]) << (8 * k)
    return value


@cached_kernel(log_buckets, measurements)
def _check(
    buffer: Bytes, offsets: Longs, count: int, size: int, now_ns: int, state: Longs, lasts: Longs, buckets: Longs
) -> None:
    """Check and count the messages of a batch. Messages with the same stamp go into their bucket together."""
    stamp_ns = np.int64(-1)
    alike = np.int64(0)
    for i in range(count + 1):
        at = offsets[i]
        is_message = i < count and offsets[i + 1] - at == size
        stamp = signed(load_u64(buffer, at + 8)) if is_message and size >= STAMPED else np.int64(-1)
        if stamp != stamp_ns:
            if alike:
                late_ns = max(now_ns - int(stamp_ns), 1)
                state[_SUM_NS] += late_ns * alike
                state[_MIN_NS] = min(state[_MIN_NS], late_ns)
                state[_MAX_NS] = max(state[_MAX_NS], late_ns)
                buckets[log_bucket(late_ns)] += alike
            stamp_ns = stamp
            alike = np.int64(0)
        if not is_message:
            state[_WRONG_SIZE] += i < count
            continue
        alike += stamp >= 0
        state[_RECEIVED] += 1
        state[_CHECKSUM] += _checksum(buffer, at, size)
        if size < NUMBERED:
            number = _short_number(buffer, at, size)
            state[_BEHIND] += number != (lasts[0] + 1) & ((1 << (8 * size)) - 1)
            lasts[0] = number
            continue
        sequence = signed(load_u64(buffer, at))
        publisher = sequence >> NUMBER_BITS
        number = sequence & _NUMBER
        if not 0 <= publisher < len(lasts):
            state[_FOREIGN] += 1
        elif number <= lasts[publisher]:
            state[_BEHIND] += 1
        else:
            state[_SKIPPED] += number - lasts[publisher] - 1
            lasts[publisher] = number


def frames_in_a_batch(size: int) -> int:
    """The number of messages of a size in a batch."""
    return max(1, min(BATCH_FRAMES, BATCH_BYTES // size))


class MessageSource:
    """Makes the messages of one publisher, a batch at a time, and counts them."""

    def __init__(self, size: int, publisher: int = 0, frames: int | None = None) -> None:
        frames = frames or frames_in_a_batch(size)
        self.size = size
        self.count = 0
        self.checksum = 0
        self.stamps_ns = 0
        """The sum of the stamps of all messages, also of messages that are too short to hold their stamp."""
        self._first = publisher << NUMBER_BITS
        self.batch = FrameBatch(frames, frames * size, size)
        self.batch.buffer[:] = np.resize(np.arange(size) % 251, frames * size)
        self.batch.offsets[:] = np.arange(frames + 1) * size

    def fill(self, most: int, now_ns: int, due: Longs = NO_DUE_TIMES) -> None:
        """Make up to `most` messages, as many as the batch has room for.

        Their stamps are their due times, or `now_ns` if `due` is empty.
        """
        batch = self.batch
        batch.count = min(most, batch.capacity_frames)
        total = _fill(batch.buffer, self.size, self._first + self.count, batch.count, now_ns, due)
        self.checksum = (self.checksum + total) % 2**64
        if len(due):
            after_first_ns = int((due - due[0]).sum())  # the sum of the due times themselves would overflow
            self.stamps_ns += len(due) * int(due[0]) + after_first_ns
        else:
            self.stamps_ns += now_ns * batch.count
        self.count += batch.count


class Receipt:
    """Checks and counts the messages of one receiver; all messages have one size.

    With `bounds` it counts each part of the messages by itself, as those of each step of a load. A bound is the number
    of a part's first message, from 0, by each publisher's own count.
    """

    def __init__(self, size: int, publishers: int = 1, clock_ahead_ns: int = 0, bounds: Sequence[int] = ()) -> None:
        """`clock_ahead_ns` is the receiver's clock minus that of the publishers, whose stamps the messages have."""
        self.size = size
        self._clock_ahead_ns = clock_ahead_ns
        self.came_ns = 0
        self.latest_ns = 0
        """When the latest batch came."""
        self._bounds: Longs = np.array(bounds, np.int64)
        parts = len(bounds) + 1
        self._states: list[Longs] = [np.zeros(_STATE_SIZE, np.int64) for _ in range(parts)]
        for state in self._states:
            state[_MIN_NS] = np.iinfo(np.int64).max
        self._lasts: Longs = np.full(publishers, -1, np.int64)
        self._buckets: list[Longs] = [np.zeros(BUCKETS, np.int64) for _ in range(parts)]
        self._first_ns = [0] * parts
        self._last_ns = [0] * parts

    def add(self, batch: FrameBatch, now_ns: int) -> None:
        """Check a batch that had come at `now_ns`; adds this time to `came_ns` for each frame."""
        self.came_ns += now_ns * batch.count
        self.latest_ns = now_ns
        if not len(self._bounds):
            self._add_to_part(0, batch, 0, batch.count, now_ns)
            return
        parts = np.searchsorted(self._bounds, self._numbers(batch), side="right")
        first_frames = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), batch.count]
        for first, end in pairwise(first_frames):
            if first < end:
                part = int(parts[first])
                self._add_to_part(part, batch, first, end, now_ns)
                self._first_ns[part] = self._first_ns[part] or now_ns
                self._last_ns[part] = now_ns

    def _add_to_part(self, part: int, batch: FrameBatch, first: int, end: int, now_ns: int) -> None:
        """Check the frames from `first` to `end`, whose numbers all belong to one part."""
        _check(
            batch.buffer,
            batch.offsets[first:],
            end - first,
            self.size,
            now_ns - self._clock_ahead_ns,
            self._states[part],
            self._lasts,
            self._buckets[part],
        )

    def _numbers(self, batch: FrameBatch) -> Longs:
        """The numbers of a batch's messages. Messages too short for a whole number are numbered as they come."""
        if self.size < NUMBERED:
            return np.arange(self.received, self.received + batch.count)
        places = batch.offsets[: batch.count, None] + np.arange(NUMBERED)
        inside = np.minimum(places, len(batch.buffer) - 1)  # a frame of another size may end before its number does
        sequences = np.ascontiguousarray(batch.buffer[inside]).view("<i8")[:, 0]
        numbers: Longs = sequences & _NUMBER
        return numbers

    def empty_batch(self, frames: int | None = None) -> FrameBatch:
        """A batch to receive into; a longer message than `size` is junk."""
        frames = frames or frames_in_a_batch(self.size)
        return FrameBatch(frames, (frames + 1) * self.size, self.size)

    def _sum(self, place: int) -> int:
        """The sum of a value of the state over all parts."""
        return sum(int(state[place]) for state in self._states)

    @property
    def received(self) -> int:
        return self._sum(_RECEIVED)

    @property
    def checksum(self) -> int:
        return self._sum(_CHECKSUM) % 2**64

    @property
    def wrong(self) -> dict[str, int]:
        """Number of wrong messages, by their problem; problems without a message are left out."""
        counts = {
            "of another size": self._sum(_WRONG_SIZE),
            "of nobody's": self._sum(_FOREIGN),
            "twice, or out of order": self._sum(_BEHIND),
            "left out": self._sum(_SKIPPED),
        }
        return {problem: count for problem, count in counts.items() if count}

    @property
    def latency(self) -> LogBuckets:
        """Time from handing over to receipt; empty if messages are too short for a stamp."""
        return LogBuckets.together(self._latency_of_part(part) for part in range(len(self._states)))

    def part_of(self, messages: MessageRange) -> ReceivedPart:
        """What came of messages whose first number is 0 or a bound; the number after the last is a bound or the end."""
        firsts = [0, *self._bounds.tolist()]
        parts = [part for part, first in enumerate(firsts) if messages.first <= first < messages.end]
        parts_with_messages = [part for part in parts if self._states[part][_RECEIVED]]
        return ReceivedPart(
            received=sum(int(self._states[part][_RECEIVED]) for part in parts),
            first_ns=min((self._first_ns[part] for part in parts_with_messages), default=0),
            last_ns=max((self._last_ns[part] for part in parts_with_messages), default=0),
            latency=LogBuckets.together(self._latency_of_part(part) for part in parts),
        )

    def _latency_of_part(self, part: int) -> LogBuckets:
        buckets = self._buckets[part]
        if not buckets.any():
            return LogBuckets()
        state = self._states[part]
        return LogBuckets(buckets, int(state[_SUM_NS]), int(state[_MIN_NS]), int(state[_MAX_NS]))
