"""The records of a tape: how many there are of each kind, where they start, and whether a gateway can replay them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exchange import messages
from exchange.compiled import cached_kernel, field_reader, signed
from exchange.messages import (
    FILL_OR_KILL,
    IMMEDIATE_OR_CANCEL,
    INCOMING_TYPES,
    LAYOUTS,
    MARKET,
    POST_ONLY,
    Cancel,
    CancelRequest,
    InstrumentOrder,
    Order,
    ReplaceRequest,
    TypedOrder,
    sizes_by_code,
)
from exchange.order_mix import CANCEL, KINDS, LIMIT, REPLACE, OrderMix
from transports.frames import Bytes, Longs

STRIDE = 1 << 10
"""Records from one noted start to the next."""
ANY_ID = -1
"""Stands for a tape whose ids need not count 1, 2, 3, ..."""

SIZES = sizes_by_code(INCOMING_TYPES)
SMALLEST_RECORD = int(SIZES[SIZES > 0].min())
_ORDER_TYPE_OFFSET = LAYOUTS[TypedOrder].offset("order_type")
_INSTRUMENT_ORDER = LAYOUTS[InstrumentOrder].code
_TYPED_ORDER = LAYOUTS[TypedOrder].code
_CANCEL_WITHOUT_ID = LAYOUTS[Cancel].code
REPLAYED = (Order, TypedOrder, ReplaceRequest, CancelRequest, InstrumentOrder)
"""Messages that a gateway can replay: each has an id of its own, which its answers bear."""
_instrument = field_reader("instrument", InstrumentOrder)
_instrument_order_type = field_reader("order_type", InstrumentOrder)
_record_id = field_reader("id", *REPLAYED)


def _kinds_by_byte(kind_of: dict[int, str]) -> Longs:
    """Return the index of a kind in KINDS by a byte of a record. A byte that is not in the table is a limit order's."""
    kinds = np.full(256, KINDS.index(LIMIT), np.int64)
    for byte, kind in kind_of.items():
        kinds[byte] = KINDS.index(kind)
    return kinds


KIND_OF_RECORD = _kinds_by_byte(
    {
        LAYOUTS[Order].code: LIMIT,
        LAYOUTS[Cancel].code: CANCEL,
        LAYOUTS[CancelRequest].code: CANCEL,
        LAYOUTS[ReplaceRequest].code: REPLACE,
    }
)
"""The kind of a record, by its type byte. A typed order's kind is that of its order type."""
KIND_OF_ORDER_TYPE = _kinds_by_byte(
    {MARKET: "market", IMMEDIATE_OR_CANCEL: "ioc", FILL_OR_KILL: "fok", POST_ONLY: "post"}
)


class TapeRecords(NamedTuple):
    """The records from a tape's start up to its end, or to the first one that does not belong there."""

    total: int
    """The number of records."""
    end: int
    """The byte offset at which the last record ends."""
    by_kind: dict[str, int]
    """The number of records of each kind, for all of KINDS."""
    starts: Longs
    """The byte offsets of records 1, 1 + STRIDE, 1 + 2 * STRIDE, ..."""
    has_plain_orders_only: bool
    instruments: int | None
    """One more than the highest instrument; None if no order names one."""


@cached_kernel(messages)
def _read_records(
    tape: Bytes,
    first_id: int,
    sizes: Longs,
    kind_of_record: Longs,
    kind_of_order_type: Longs,
    counts: Longs,
    starts: Longs,
) -> tuple[int, int, int]:
    """Put the number of records of each kind into `counts`, and the offset of every STRIDE-th record into `starts`.

    Returns the number of records, the offset at which they end, and the highest instrument or -1. `sizes` and
    `kind_of_record` have an element for each type byte, and `kind_of_order_type` one for each order type.

    The records end at a record that is cut off, or whose type byte is unknown. If `first_id` is not ANY_ID, they also
    end at an id that does not follow, and at a cancel without an id of its own.
    """
    at = 0
    records = 0
    highest_instrument = -1
    while at < len(tape):
        code = tape[at]
        size = sizes[code]
        if size == 0 or at + size > len(tape):
            break
        if first_id != ANY_ID and (code == _CANCEL_WITHOUT_ID or _record_id(tape, at) != first_id + records):
            break
        if code == _TYPED_ORDER:
            kind = kind_of_order_type[tape[at + _ORDER_TYPE_OFFSET]]
        elif code == _INSTRUMENT_ORDER:
            kind = kind_of_order_type[signed(_instrument_order_type(tape, at))]
            highest_instrument = max(highest_instrument, signed(_instrument(tape, at)))
        else:
            kind = kind_of_record[code]
        counts[kind] += 1
        if records % STRIDE == 0:
            starts[records // STRIDE] = at
        at += size
        records += 1
    return records, at, highest_instrument


def id_at(tape: Bytes, offset: int) -> int:
    """Return the id of the record, one of REPLAYED, that starts at the offset."""
    layout = LAYOUTS[Order]  # all of REPLAYED have their id at the same place
    start = offset + layout.offset("id")
    return int.from_bytes(tape[start : start + layout.width("id")].tobytes(), "little")


def read_records(tape: Bytes, first_id: int = ANY_ID) -> TapeRecords:
    """Read the tape up to its end, or to the first record that does not belong there.

    `first_id`: the id of the first record, from which ids count up; ANY_ID for a tape with any ids.
    """
    counts = np.zeros(len(KINDS), np.int64)
    starts = np.zeros(len(tape) // SMALLEST_RECORD // STRIDE + 1, np.int64)
    total, end, highest_instrument = _read_records(
        tape, first_id, SIZES, KIND_OF_RECORD, KIND_OF_ORDER_TYPE, counts, starts
    )
    noted_starts = -(-total // STRIDE)
    by_kind = dict(zip(KINDS, counts.tolist(), strict=True))
    return TapeRecords(
        total=total,
        end=end,
        by_kind=by_kind,
        starts=starts[:noted_starts],
        has_plain_orders_only=by_kind[LIMIT] == total and end == total * LAYOUTS[Order].size,
        instruments=None if highest_instrument < 0 else highest_instrument + 1,
    )


PARTS = 10**8
"""A percentage of a mix is a whole number of these parts of all records: it has six digits."""


def mix_of(by_kind: dict[str, int]) -> str:
    """Return the mix of this many records of each kind, as `--mix` takes it. BadSetting if no order of these can rest.

    Every kind that occurs has at least the smallest percentage. The largest percentage is such that all add up to 100.
    """
    records = sum(by_kind.values())
    parts: dict[str, int] = {}
    for kind, count in by_kind.items():
        if count > 0:
            parts[kind] = max(1, round(PARTS * count / records))
    largest = max(parts, key=lambda kind: parts[kind])
    parts[largest] += PARTS - sum(parts.values())
    words: list[str] = []
    for kind, part in parts.items():
        percentage = f"{100 * part / PARTS:.6f}".rstrip("0").rstrip(".")
        words.append(f"{kind}={percentage}")
    mix = ",".join(words)
    OrderMix.parse(mix)
    return mix
