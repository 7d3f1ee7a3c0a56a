"""The ledger of an agent, message by message: sent and received, times, and copies that came twice.

A message's head, little-endian; its body is a pattern that makes it as long as its row of table 2 says:

    u16 destination's number on the link · u8 message · u8 which of three sizes · u16 number of the queue's location,
    or of the topic · u16 sender · u16 initiator · u16 supplier whose turn it is · u32 sequence of this sender to this
    destination, from 0 · i64 when it was handed over · i64 when its interaction was due (monotonic clock, ns)
"""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from exchange.measurements import LogBuckets
from exchange_simulation.messaging.supply_chain.messages import KILOBYTE, MESSAGES, sizes_kb

HEAD = struct.Struct("<HBBHHHHIqq")
BODY = bytes(number % 251 for number in range(1 << 17))


class Head(NamedTuple):
    route: int
    message: int
    size: int
    target: int
    sender: int
    initiator: int
    winner: int
    sequence: int
    handed_over_ns: int
    due_ns: int


@cache
def bodies() -> list[list[bytes]]:
    """The three bodies of each message, as long as table 2 says, less the head."""
    return [[BODY[: max(round(kb * KILOBYTE) - HEAD.size, 0)] for kb in sizes_kb(message)] for message in MESSAGES]


@dataclass
class MessageCounts:
    """Counts of one of the nineteen messages: all that were sent or came, and those within the measured time."""

    sent: int = 0
    expected: int = 0
    """Deliveries that the messages sent are to make: one for each subscriber of a topic."""
    received: int = 0
    doubled: int = 0
    measured_sent: int = 0
    measured_received: int = 0
    measured_bytes: int = 0
    """Received."""
    delivery: LogBuckets = field(default_factory=LogBuckets)
    """From handing over to receipt, of those received within the measured time."""
    since_due: LogBuckets = field(default_factory=LogBuckets)
    """From the time at which the message's interaction was due."""


class Ledger:
    """`from_ns` and `until_ns` are the measured time."""

    def __init__(self, from_ns: int, until_ns: int) -> None:
        self._from_ns = from_ns
        self._until_ns = until_ns
        self._counts: dict[int, MessageCounts] = defaultdict(MessageCounts)
        self._delivery_ns: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._since_due_ns: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._sequences: dict[tuple[int, int, int], int] = defaultdict(int)
        self._seen: dict[tuple[int, int, int], array[int]] = {}
        self._lag_ns = array("q")

    def note_begun(self, due_ns: int, now_ns: int) -> None:
        if due_ns >= self._from_ns:
            self._lag_ns.append(now_ns - due_ns)

    def next_sequence(self, message: int, target: int, sender: int, deliveries: int, now_ns: int) -> int:
        """Note that a message is sent; returns its number among those of this sender to this destination."""
        stream = (message, target, sender)
        counts = self._counts[message]
        self._sequences[stream] += 1
        counts.sent += 1
        counts.expected += deliveries
        counts.measured_sent += self._is_measured(now_ns)
        return self._sequences[stream] - 1

    def note_received(self, head: Head, size: int, copies: int, now_ns: int) -> int:
        """Note a receipt; returns how often the message came before. `copies` of it are no doubles."""
        counts = self._counts[head.message]
        copy = self._copy(head)
        counts.received += 1
        counts.doubled += copy >= copies
        if self._is_measured(now_ns):
            counts.measured_received += 1
            counts.measured_bytes += size
            self._delivery_ns[head.message].append(now_ns - head.handed_over_ns)
            self._since_due_ns[head.message].append(now_ns - head.due_ns)
        return copy

    def _is_measured(self, now_ns: int) -> bool:
        return self._from_ns <= now_ns < self._until_ns

    def _copy(self, head: Head) -> int:
        seen = self._seen.setdefault((head.message, head.target, head.sender), array("H"))
        if head.sequence >= len(seen):
            seen.extend([0] * (head.sequence + 1 - len(seen)))
        copy = seen[head.sequence]
        seen[head.sequence] = min(copy + 1, 0xFFFF)
        return copy

    @property
    def sent(self) -> int:
        return sum(counts.sent for counts in self._counts.values())

    @property
    def received(self) -> int:
        """Each message once for each of its subscribers here."""
        return sum(counts.received - counts.doubled for counts in self._counts.values())

    def details(self) -> dict[str, Any]:
        """The facts for the judge: counts by message, with the times in buckets, and the lag."""
        for number, counts in self._counts.items():
            counts.delivery = _in_buckets(self._delivery_ns[number])
            counts.since_due = _in_buckets(self._since_due_ns[number])
        by_message = {MESSAGES[number].name: vars(counts) for number, counts in sorted(self._counts.items())}
        return {"messages": by_message, "lag": _in_buckets(self._lag_ns)}


def _in_buckets(times_ns: array[int]) -> LogBuckets:
    return LogBuckets.of(np.array(times_ns, np.int64))
