"""The ledger of an agent: for each kind of message the numbers sent and received, times, and copies that came twice.

A message's head, little-endian. The body after it is a pattern; the whole message is as long as table 2 says:

    u16 destination's number on the link · u8 message · u8 which of three sizes · u16 number of the queue's location,
    or of the topic · u16 sender · u16 initiator · u16 winning supplier · u32 sequence of this sender to this
    destination, from 0 · i64 when it was handed over · i64 when its interaction was due (monotonic clock, ns)
"""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from exchange.measurements import LogBuckets
from exchange_simulation.messaging.supply_chain.messages import KILOBYTE, MESSAGES, Message, sizes_kb

HEAD = struct.Struct("<HBBHHHHIqq")
LONGEST_BODY = bytes(number % 251 for number in range(1 << 17))


class Head(NamedTuple):
    """The fields of HEAD. The target, the sender, the initiator and the winner are numbers of locations."""

    route: int
    message: int
    size_index: int
    target: int
    sender: int
    initiator: int
    winner: int
    sequence: int
    handed_over_ns: int
    due_ns: int


def bodies_of(message: Message) -> list[bytes]:
    """The three bodies of a message: as long as its sizes say, without the head."""
    return [LONGEST_BODY[: max(round(kb * KILOBYTE) - HEAD.size, 0)] for kb in sizes_kb(message)]


@dataclass
class MessageCounts:
    """Counts of one of the nineteen messages; the fields `measured_...` count only within the measured time."""

    sent: int = 0
    expected: int = 0
    """Deliveries of the messages that were sent: one for each subscriber of a topic."""
    received: int = 0
    doubled: int = 0
    """Copies that came once too often."""
    measured_sent: int = 0
    measured_received: int = 0
    measured_bytes: int = 0
    """Bytes of the messages received within the measured time."""
    delivery: LogBuckets = field(default_factory=LogBuckets)
    """Times from handing over to receipt, of messages received within the measured time."""
    since_due: LogBuckets = field(default_factory=LogBuckets)
    """Times from the due time of the message's interaction to receipt, of the same messages."""


class Ledger:
    """The counts and times of one agent."""

    def __init__(self, from_ns: int, until_ns: int) -> None:
        """`from_ns` and `until_ns`: begin and end of the measured time."""
        self._from_ns = from_ns
        self._until_ns = until_ns
        self._counts: dict[int, MessageCounts] = defaultdict(MessageCounts)
        self._delivery_ns: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._since_due_ns: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._sequences: dict[tuple[int, int, int], int] = defaultdict(int)
        self._copies_received: dict[tuple[int, int, int], array[int]] = {}
        self._lag_ns = array("q")

    def note_begun(self, due_ns: int, now_ns: int) -> None:
        """Note the lag of an interaction that begins now."""
        if due_ns >= self._from_ns:
            self._lag_ns.append(now_ns - due_ns)

    def note_sent(self, message: int, target: int, sender: int, deliveries: int, now_ns: int) -> int:
        """Note that a message is sent; returns its sequence among the messages of this sender to this destination."""
        stream = (message, target, sender)
        sequence = self._sequences[stream]
        self._sequences[stream] += 1
        counts = self._counts[message]
        counts.sent += 1
        counts.expected += deliveries
        if self._is_measured(now_ns):
            counts.measured_sent += 1
        return sequence

    def note_received(self, head: Head, size: int, copies: int, now_ns: int) -> int:
        """Note a receipt; returns how many copies of the message came before.

        `copies`: the number of copies that this agent should receive; further copies are doubles.
        """
        counts = self._counts[head.message]
        copy = self._count_copy(head)
        counts.received += 1
        if copy >= copies:
            counts.doubled += 1
        if self._is_measured(now_ns):
            counts.measured_received += 1
            counts.measured_bytes += size
            self._delivery_ns[head.message].append(now_ns - head.handed_over_ns)
            self._since_due_ns[head.message].append(now_ns - head.due_ns)
        return copy

    def _is_measured(self, now_ns: int) -> bool:
        return self._from_ns <= now_ns < self._until_ns

    def _count_copy(self, head: Head) -> int:
        """Count a copy of a message; returns how many copies came before, at most 65,535."""
        seen = self._copies_received.setdefault((head.message, head.target, head.sender), array("H"))
        if head.sequence >= len(seen):
            seen.extend([0] * (head.sequence + 1 - len(seen)))
        copies_before = seen[head.sequence]
        seen[head.sequence] = min(copies_before + 1, 0xFFFF)
        return copies_before

    @property
    def sent(self) -> int:
        return sum(counts.sent for counts in self._counts.values())

    @property
    def received(self) -> int:
        """The number of messages received, without doubles; a message counts once for each subscriber of this agent."""
        return sum(counts.received - counts.doubled for counts in self._counts.values())

    def details(self) -> dict[str, Any]:
        """The details of the agent's result: counts by message, with the times in buckets, and the lag."""
        for number, counts in self._counts.items():
            counts.delivery = _in_buckets(self._delivery_ns[number])
            counts.since_due = _in_buckets(self._since_due_ns[number])
        counts_by_message = {MESSAGES[number].name: vars(counts) for number, counts in sorted(self._counts.items())}
        return {"messages": counts_by_message, "lag": _in_buckets(self._lag_ns)}


def _in_buckets(times_ns: array[int]) -> LogBuckets:
    return LogBuckets.of(np.array(times_ns, np.int64))
