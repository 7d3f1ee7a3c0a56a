"""Tapes: order records one after the other in a file, and beside it their due times, u64 ns, little-endian.

Both files are mapped, not read: a tape may be larger than the memory. Before a run, a check reads the whole file once;
the run then trusts the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.messages import LAYOUTS, Cancel, CancelRequest, MalformedMessage, Order, ReplaceRequest, TypedOrder
from exchange.workload import LATEST_NS
from transports.frames import Bytes

ORDER = LAYOUTS[Order]
ENGINE_ONLY = {
    LAYOUTS[Cancel].code: "cancel",
    LAYOUTS[CancelRequest].code: "cancel",
    LAYOUTS[ReplaceRequest].code: "replace",
    LAYOUTS[TypedOrder].code: "typed order",
}
"""The nouns of records, by type byte, that an engine takes and a gateway does not send."""
DUE_BYTES = 8
CHUNK_ORDERS = 1 << 20


def due_path(tape: Path) -> Path:
    """The file of the tape's due times, whether it exists or not."""
    return tape.with_suffix(".due")


def check_orders(path: Path) -> int:
    """Check a tape, and count its orders. MalformedMessage, with the offset, if a gateway cannot replay the tape."""
    tape = map_file(path)
    whole = len(tape) // ORDER.size
    table = tape[: whole * ORDER.size].view(ORDER.dtype)
    for first in range(0, whole, CHUNK_ORDERS):
        _check_part(table[first : first + CHUNK_ORDERS], first)
    end = whole * ORDER.size
    if end < len(tape):
        _check_type(int(tape[end]), end)
        raise MalformedMessage(f"truncated: {len(tape) - end} of {ORDER.size} bytes", end)
    if whole == 0:
        raise MalformedMessage("the tape is empty")
    return whole


def _check_part(part: npt.NDArray[np.void], before: int) -> None:
    """Check the orders of a part of the tape, which has `before` orders before it. MalformedMessage for a wrong one."""
    ids = np.arange(before + 1, before + 1 + len(part))
    wrong = (part["type"] != ORDER.code) | (part["id"] != ids)
    if not wrong.any():
        return
    index = int(wrong.argmax())
    offset = (before + index) * ORDER.size
    _check_type(int(part["type"][index]), offset)
    order_id = int(part["id"][index])
    place = before + index + 1
    reason = "answers are paired with orders by id, so ids count 1, 2, 3, ...: number the orders anew"
    raise MalformedMessage(f"{reason}; id {order_id} stands where {place} goes,", offset)


def _check_type(code: int, offset: int) -> None:
    """Raise MalformedMessage unless this is the type byte of an order."""
    if code in ENGINE_ONLY:
        reason = (
            f"a gateway sends plain orders only: replay the tape with exchange match; the first {ENGINE_ONLY[code]} is"
        )
        raise MalformedMessage(reason, offset)
    if code != ORDER.code:
        raise MalformedMessage(f"type byte {code}, where {ORDER.code} (order) goes", offset)


def check_due(path: Path, orders: int) -> None:
    """Check the due times of a tape of so many orders. ValueError, with a sentence, if the file holds no such times."""
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
    """The orders of a tape, unchanged. An order's id is its place on the tape."""

    def __init__(self, tape: Path) -> None:
        self._records = map_file(tape)

    def write(self, buffer: Bytes, first_id: int, count: int) -> None:
        """Write the records of `count` orders from `first_id` on, from the buffer's start on."""
        start = (first_id - 1) * ORDER.size
        buffer[: count * ORDER.size] = self._records[start : start + count * ORDER.size]
