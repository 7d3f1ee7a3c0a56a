"""A stream's orders and requests as columns: the kind of each message, and what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.messages import CancelRequest, InstrumentOrder, Message, Order, ReplaceRequest, TypedOrder, records_of
from exchange.order_mix import CANCEL, KINDS, LIMIT, REPLACE
from gateway.tape_records import KIND_OF_ORDER_TYPE

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Column = npt.NDArray[Any]
"""Whole numbers of any width."""
Records = npt.NDArray[np.void]
KIND_OF_CANCEL = KINDS.index(CANCEL)
KIND_OF_LIMIT = KINDS.index(LIMIT)
KIND_OF_REPLACE = KINDS.index(REPLACE)


@dataclass(frozen=True, kw_only=True)
class OrderMessages:
    """A part of a stream. A field that a message does not have is 0."""

    id: Column
    """As the engine has it: a market id if several gateways share the engine."""
    kind: Column
    """An index of KINDS."""
    order_id: Column
    """The order that a request names."""
    side: Column
    price: Column
    volume: Column
    instrument: Column
    """0 if the engine has one book; of a request, the instrument of its order, once that is known."""

    def __len__(self) -> int:
        return len(self.id)

    @property
    def entering_id(self) -> Column:
        """The order that trades on account of each message: of a replace the order that it names."""
        return np.where(self.kind == KIND_OF_REPLACE, self.order_id, self.id)


def plain_messages(orders: Records) -> OrderMessages:
    """Return plain orders, which are limit orders, as columns. `orders` is in the layout of an order."""
    nothing = np.broadcast_to(np.int64(0), len(orders))
    return OrderMessages(
        id=orders["id"],
        kind=np.broadcast_to(np.int64(KIND_OF_LIMIT), len(orders)),
        order_id=nothing,
        side=orders["side"],
        price=orders["price"],
        volume=orders["volume"],
        instrument=nothing,
    )


def messages_in(data: Bytes, starts: Longs) -> OrderMessages:
    """Return the orders and requests that begin at these offsets.

    ValueError if one of them is of no type in KINDS_OF.
    """
    columns = {name: np.zeros(len(starts), np.int64) for name in OrderMessages.__dataclass_fields__}
    read = 0
    for message, kinds_of in KINDS_OF.items():
        numbers, records = records_of(message, data, starts)
        read += len(numbers)
        columns["kind"][numbers] = kinds_of(records)
        for field in records.dtype.names or ():
            if field in columns:
                columns[field][numbers] = records[field]
    if read < len(starts):
        raise ValueError("it has a message that no gateway sends")
    return OrderMessages(**columns)


def _kinds_of_typed(records: Records) -> Longs:
    return KIND_OF_ORDER_TYPE[records["order_type"]]


def _always(kind: int) -> Callable[[Records], Longs]:
    return lambda records: np.full(len(records), kind, np.int64)


KINDS_OF: dict[type[Message], Callable[[Records], Longs]] = {
    Order: _always(KIND_OF_LIMIT),
    TypedOrder: _kinds_of_typed,
    InstrumentOrder: _kinds_of_typed,
    CancelRequest: _always(KIND_OF_CANCEL),
    ReplaceRequest: _always(KIND_OF_REPLACE),
}
"""The messages that a gateway sends, and a function from records of each to their kinds."""
