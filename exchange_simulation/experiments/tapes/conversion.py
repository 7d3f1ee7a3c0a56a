"""From the events of a market's order book to the records of a tape: the rules that all formats share.

    file of a format ──▶ events: added, reduced, deleted, executed, replaced ──▶ records and due times of a tape

An event names an order by the file's own number. A table of the orders that rest, by that number, has the id that the
order got on the tape. An execution is the trace of an incoming order that the file does not have. On the tape it is an
immediate-or-cancel order of the other side, with the price and the volume of the execution.

The functions are compiled into the kernel of each format.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchange import messages
from exchange.compiled import cached_kernel, inlined, record_writer, signed
from exchange.messages import (
    ASK,
    BID,
    IMMEDIATE_OR_CANCEL,
    LAYOUTS,
    CancelRequest,
    Order,
    ReplaceRequest,
    TypedOrder,
)
from exchange.workload import MAX_PRICE
from transports.frames import Bytes, Longs

Table = npt.NDArray[np.int64]
LARGEST_RECORD = max(LAYOUTS[record].size for record in (Order, TypedOrder, ReplaceRequest, CancelRequest))
MAX_VOLUME = 0xFFFF
FIRST_CAPACITY = 1 << 12

# Columns of the table of resting orders.
NUMBER = 0  # the order's number in the file
ORDER_ID = 1  # its id on the tape; 0 for an empty row
SIDE = 2
PRICE = 3  # ticks
VOLUME = 4  # lots that rest
COLUMNS = 5

# Words of the state.
TAPE_BYTES = 0  # of the chunk that is converted now
CHUNK_RECORDS = 1  # of the chunk that is converted now
RECORDS = 2  # on the whole tape; the next record has this number + 1
RESTING = 3  # orders in the table
LAST_NS = 4
TICK = 5  # the file's price units in a tick
ORDERS = 6
EXECUTIONS = 7
CANCELS = 8
REPLACES = 9
LOWEST_PRICE = 10
HIGHEST_PRICE = 11
STATE_WORDS = 12


class LeftOut(IntEnum):
    """The reasons for which an event of the file, or a part of it, is not on the tape."""

    NO_WHOLE_TICK = 0
    PRICE_BEYOND = 1
    VOLUME_BEYOND = 2
    UNKNOWN_ORDER = 3
    NUMBER_TAKEN = 4
    TIME_GOES_BACK = 5


LEFT_OUT_WORDS = {
    LeftOut.NO_WHOLE_TICK: "orders at a price between two ticks",
    LeftOut.PRICE_BEYOND: f"orders at a price beyond 1 to {MAX_PRICE:,} ticks",
    LeftOut.VOLUME_BEYOND: f"orders of more than {MAX_VOLUME:,} lots, or of none",
    LeftOut.UNKNOWN_ORDER: "events of orders that are not on the tape",
    LeftOut.NUMBER_TAKEN: "orders whose number another resting order has",
    LeftOut.TIME_GOES_BACK: "times before the time of an earlier event, which were set to that time",
}
NO_WHOLE_TICK = int(LeftOut.NO_WHOLE_TICK)
PRICE_BEYOND = int(LeftOut.PRICE_BEYOND)
VOLUME_BEYOND = int(LeftOut.VOLUME_BEYOND)
UNKNOWN_ORDER = int(LeftOut.UNKNOWN_ORDER)
NUMBER_TAKEN = int(LeftOut.NUMBER_TAKEN)
TIME_GOES_BACK = int(LeftOut.TIME_GOES_BACK)

_put_order = record_writer(Order, "id", "side", "price", "volume")
_put_typed_order = record_writer(TypedOrder, "id", "side", "price", "volume", "order_type")
_put_cancel_request = record_writer(CancelRequest, "id", "order_id")
_put_replace_request = record_writer(ReplaceRequest, "id", "order_id", "price", "volume")


class Conversion(NamedTuple):
    """The memory of a conversion, for compiled code."""

    table: Table
    """The resting orders by their number: open addressing, at most half full. Shape (capacity, COLUMNS)."""
    tape: Bytes
    """The records that the chunk becomes."""
    due: Longs
    """The due times of these records, in ns."""
    state: Longs
    left_out: Longs
    """Counts by LeftOut."""


def new_conversion(records: int, tick: int) -> Conversion:
    """Return the memory of a conversion that writes at most this many records for each chunk of a file."""
    state = np.zeros(STATE_WORDS, np.int64)
    state[TICK] = tick
    state[LOWEST_PRICE] = MAX_PRICE
    return Conversion(
        table=np.zeros((FIRST_CAPACITY, COLUMNS), np.int64),
        tape=np.zeros(records * LARGEST_RECORD, np.uint8),
        due=np.zeros(records, np.int64),
        state=state,
        left_out=np.zeros(len(LeftOut), np.int64),
    )


def grown(conversion: Conversion) -> Conversion:
    """Return the conversion with a table of twice the capacity."""
    capacity = 2 * len(conversion.table)
    table = np.zeros((capacity, COLUMNS), np.int64)
    _copy_rows(conversion.table, table)
    return conversion._replace(table=table)


# ---- the table ------------------------------------------------------------------------------------------------


@inlined
def _home(table: Table, number: int) -> int:
    """Return the row at which the search for a number begins."""
    mixed = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    row: int = signed(mixed >> np.uint64(32)) & (len(table) - 1)
    return row


@inlined
def _row_of(table: Table, number: int) -> int:
    """Return the row of the order with this number, or the empty row where it would go."""
    row = _home(table, number)
    while table[row, ORDER_ID] != 0 and table[row, NUMBER] != number:
        row = (row + 1) & (len(table) - 1)
    return row


@inlined
def _empty(table: Table, row: int) -> None:
    """Empty a row, and move up the rows behind it that were pushed on by it."""
    mask = len(table) - 1
    hole = row
    following = (row + 1) & mask
    while table[following, ORDER_ID] != 0:
        distance_from_home = (following - _home(table, table[following, NUMBER])) & mask
        distance_from_hole = (following - hole) & mask
        if distance_from_home >= distance_from_hole:
            for column in range(COLUMNS):
                table[hole, column] = table[following, column]
            hole = following
        following = (following + 1) & mask
    table[hole, ORDER_ID] = 0


@cached_kernel(messages)
def _copy_rows(source: Table, target: Table) -> None:
    """Copy the orders of one table into a larger, empty one."""
    for row in range(len(source)):
        if source[row, ORDER_ID] != 0:
            place = _row_of(target, source[row, NUMBER])
            for column in range(COLUMNS):
                target[place, column] = source[row, column]


@inlined
def is_half_full(conversion: Conversion) -> bool:
    """Return whether the table must grow before the next event."""
    return 2 * conversion.state[RESTING] >= len(conversion.table)


# ---- events ---------------------------------------------------------------------------------------------------


@inlined
def _next_id(conversion: Conversion, time_ns: int) -> int:
    """Note the due time of the next record; returns its id."""
    state = conversion.state
    if time_ns < state[LAST_NS]:
        conversion.left_out[TIME_GOES_BACK] += 1
    else:
        state[LAST_NS] = time_ns
    conversion.due[state[CHUNK_RECORDS]] = state[LAST_NS]
    state[CHUNK_RECORDS] += 1
    state[RECORDS] += 1
    return state[RECORDS]


@inlined
def _is_possible(conversion: Conversion, price: int, volume: int) -> bool:
    """Return whether an order can have this price, in the file's units, and this volume. If not, count why."""
    ticks = price // conversion.state[TICK]
    if ticks * conversion.state[TICK] != price:
        conversion.left_out[NO_WHOLE_TICK] += 1
        return False
    if ticks < 1 or ticks > MAX_PRICE:
        conversion.left_out[PRICE_BEYOND] += 1
        return False
    if volume < 1 or volume > MAX_VOLUME:
        conversion.left_out[VOLUME_BEYOND] += 1
        return False
    conversion.state[LOWEST_PRICE] = min(conversion.state[LOWEST_PRICE], ticks)
    conversion.state[HIGHEST_PRICE] = max(conversion.state[HIGHEST_PRICE], ticks)
    return True


@inlined
def _remember(conversion: Conversion, row: int, number: int, order_id: int, side: int, price: int, volume: int) -> None:
    """Fill an empty row of the table."""
    table = conversion.table
    table[row, NUMBER] = number
    table[row, ORDER_ID] = order_id
    table[row, SIDE] = side
    table[row, PRICE] = price
    table[row, VOLUME] = volume
    conversion.state[RESTING] += 1


@inlined
def _forget(conversion: Conversion, row: int) -> None:
    _empty(conversion.table, row)
    conversion.state[RESTING] -= 1


@inlined
def add_order(conversion: Conversion, time_ns: int, number: int, side: int, price: int, volume: int) -> None:
    """Put a limit order on the tape. `price` is in the file's units."""
    state = conversion.state
    row = _row_of(conversion.table, number)
    if conversion.table[row, ORDER_ID] != 0:
        conversion.left_out[NUMBER_TAKEN] += 1
        return
    if not _is_possible(conversion, price, volume):
        return
    ticks = price // state[TICK]
    order_id = _next_id(conversion, time_ns)
    state[TAPE_BYTES] = _put_order(conversion.tape, state[TAPE_BYTES], (order_id, side, ticks, volume))
    state[ORDERS] += 1
    _remember(conversion, row, number, order_id, side, ticks, volume)


@inlined
def _resting_row(conversion: Conversion, number: int) -> int:
    """Return the row of a resting order; -1 if it is not on the tape, which is counted."""
    row = _row_of(conversion.table, number)
    if conversion.table[row, ORDER_ID] == 0:
        conversion.left_out[UNKNOWN_ORDER] += 1
        return -1
    return row


@inlined
def _cancel_row(conversion: Conversion, time_ns: int, row: int) -> None:
    """Put a cancel of the row's order on the tape, and forget the order."""
    state = conversion.state
    order_id = conversion.table[row, ORDER_ID]
    request_id = _next_id(conversion, time_ns)
    state[TAPE_BYTES] = _put_cancel_request(conversion.tape, state[TAPE_BYTES], (request_id, order_id))
    state[CANCELS] += 1
    _forget(conversion, row)


@inlined
def delete_order(conversion: Conversion, time_ns: int, number: int) -> None:
    """Put a cancel on the tape."""
    row = _resting_row(conversion, number)
    if row >= 0:
        _cancel_row(conversion, time_ns, row)


@inlined
def reduce_order(conversion: Conversion, time_ns: int, number: int, lots: int) -> None:
    """Put a replace by a smaller volume on the tape, which keeps the place in time; a cancel if no volume is left."""
    row = _resting_row(conversion, number)
    if row < 0:
        return
    table = conversion.table
    state = conversion.state
    left = table[row, VOLUME] - lots
    if left <= 0:
        _cancel_row(conversion, time_ns, row)
        return
    table[row, VOLUME] = left
    request_id = _next_id(conversion, time_ns)
    values = (request_id, table[row, ORDER_ID], table[row, PRICE], left)
    state[TAPE_BYTES] = _put_replace_request(conversion.tape, state[TAPE_BYTES], values)
    state[REPLACES] += 1


@inlined
def execute_order(conversion: Conversion, time_ns: int, number: int, lots: int) -> None:
    """Put an immediate-or-cancel order on the tape that trades this many lots with the resting order."""
    row = _resting_row(conversion, number)
    if row < 0:
        return
    table = conversion.table
    state = conversion.state
    traded = min(max(lots, 1), table[row, VOLUME])
    incoming_side = ASK if table[row, SIDE] == BID else BID
    order_id = _next_id(conversion, time_ns)
    values = (order_id, incoming_side, table[row, PRICE], traded, IMMEDIATE_OR_CANCEL)
    state[TAPE_BYTES] = _put_typed_order(conversion.tape, state[TAPE_BYTES], values)
    state[EXECUTIONS] += 1
    if table[row, VOLUME] == traded:
        _forget(conversion, row)
    else:
        table[row, VOLUME] -= traded


@inlined
def replace_order(conversion: Conversion, time_ns: int, number: int, new_number: int, price: int, volume: int) -> None:
    """Put a replace on the tape; the order is known by its new number then. `price` is in the file's units.

    If the new order cannot be on the tape, the old one is cancelled.
    """
    row = _resting_row(conversion, number)
    if row < 0:
        return
    table = conversion.table
    state = conversion.state
    is_taken = new_number != number and table[_row_of(table, new_number), ORDER_ID] != 0
    if is_taken:
        conversion.left_out[NUMBER_TAKEN] += 1
    if is_taken or not _is_possible(conversion, price, volume):
        _cancel_row(conversion, time_ns, row)
        return
    ticks = price // state[TICK]
    order_id = table[row, ORDER_ID]
    side = table[row, SIDE]
    request_id = _next_id(conversion, time_ns)
    values = (request_id, order_id, ticks, volume)
    state[TAPE_BYTES] = _put_replace_request(conversion.tape, state[TAPE_BYTES], values)
    state[REPLACES] += 1
    _forget(conversion, row)
    _remember(conversion, _row_of(table, new_number), new_number, order_id, side, ticks, volume)
