"""Tapes: messages one after the other in a file, and beside it their due times, u64 ns, little-endian.

Both files are mapped, not read: a tape may be larger than the memory. Before a run, a check reads the whole file once;
the run then trusts the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from exchange import messages
from exchange.compiled import cached_kernel
from exchange.messages import LAYOUTS, Cancel, MalformedMessage, Order, noun_of
from exchange.workload import LATEST_NS
from gateway.tape_records import REPLAYED, SIZES, STRIDE, TapeRecords, id_at, read_records
from transports.frames import Bytes, Longs

ORDER = LAYOUTS[Order]
DUE_BYTES = 8
CHUNK_ORDERS = 1 << 20
FIRST_ID = 1


def due_path(tape: Path) -> Path:
    """The file of the tape's due times, whether it exists or not."""
    return tape.with_suffix(".due")


def replayable_records(path: Path) -> TapeRecords:
    """Check a tape, and return its records. MalformedMessage, with the offset, if a gateway cannot replay the tape."""
    tape = map_file(path)
    records = read_records(tape, FIRST_ID)
    if records.end < len(tape):
        raise _objection(tape, records)
    if records.total == 0:
        raise MalformedMessage("the tape is empty")
    return records


def _objection(tape: Bytes, records: TapeRecords) -> MalformedMessage:
    """Return the error about the first record that a gateway cannot replay."""
    end = records.end
    code = int(tape[end])
    if code == LAYOUTS[Cancel].code:
        reason = "a cancel without an id of its own has no answer by which it could be timed"
        return MalformedMessage(f"{reason}: replay the tape with exchange match; the first such cancel is", end)
    size = int(SIZES[code])
    if size == 0:
        allowed = ", ".join(f"{LAYOUTS[message].code} ({noun_of(message)})" for message in REPLAYED)
        return MalformedMessage(f"type byte {code}, where one of {allowed} goes", end)
    if end + size > len(tape):
        return MalformedMessage(f"truncated: {len(tape) - end} of {size} bytes", end)
    place = records.total + 1
    reason = "answers are paired with messages by id, so ids count 1, 2, 3, ...: number the messages anew"
    return MalformedMessage(f"{reason}; id {id_at(tape, end)} stands where {place} goes,", end)


def check_due(path: Path, orders: int) -> None:
    """Check the due times of a tape of `orders` orders. ValueError if the file holds no such times."""
    size = path.stat().st_size
    if size != orders * DUE_BYTES:
        raise ValueError(f"{size:,} bytes, where {orders:,} orders take {orders * DUE_BYTES:,}: 8 bytes each")
    due = map_file(path).view("<u8")
    for first in range(0, orders, CHUNK_ORDERS):
        part = due[first : first + CHUNK_ORDERS + 1]
        falls = part[1:] < part[:-1]
        if falls.any():
            order_id = first + int(falls.argmax()) + 2
            raise ValueError(f"order {order_id} is due before order {order_id - 1}: due times never decrease")
    if due[-1] > LATEST_NS:
        raise ValueError(f"the last order is due at {due[-1]} ns, beyond {LATEST_NS}, the latest that there is")


def map_file(path: Path) -> Bytes:
    """Map the file's bytes into an array. An empty file cannot be mapped, and becomes an empty array."""
    if path.stat().st_size == 0:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


class TapedOrders:
    """The plain orders of a tape, unchanged. An order's id is its place on the tape."""

    def __init__(self, tape: Path) -> None:
        self._records = map_file(tape)

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """Write the records of `count` orders from `first_id` on, from the buffer's start on."""
        start = (first_id - 1) * ORDER.size
        buffer[: count * ORDER.size] = self._records[start : start + count * ORDER.size]


@cached_kernel(messages)
def _write_ends(tape: Bytes, at: int, skipped: int, count: int, sizes: Longs, ends: Longs) -> int:
    """Skip some records from offset `at` on, and write where each of the next `count` ends, from the first one's start.

    Returns the offset at which the first one starts.
    """
    for _ in range(skipped):
        at += sizes[tape[at]]
    start = at
    for i in range(count):
        at += sizes[tape[at]]
        ends[i] = at - start
    return start


class TapedMessages:
    """The messages of a tape of any kinds, unchanged. A message's id is its place on the tape."""

    def __init__(self, tape: Path) -> None:
        self._tape = map_file(tape)
        self._starts = read_records(self._tape, FIRST_ID).starts

    def write(self, buffer: Bytes, ends: Longs, first_id: int, count: int) -> None:
        """Write `count` messages from `first_id` on, from the buffer's start on; `ends` gets where each ends."""
        stride, skipped = divmod(first_id - 1, STRIDE)
        start = _write_ends(self._tape, self._starts[stride], skipped, count, SIZES, ends)
        size = int(ends[count - 1])
        buffer[:size] = self._tape[start : start + size]
