"""Kernels that mark each order with its gateway, and give each answer to the gateways that get it.

`stamp` puts a gateway into the ids of its orders, which makes them market ids (exchange/market_ids.py). `route` gives
each answer to the gateway whose order it names, with the gateway's own number as its id, and a quote to all gateways
that get quotes.
docs/gateways.md has the rule.
"""

from __future__ import annotations

import numpy as np

from exchange import checksum, market_ids, messages
from exchange.checksum import State, hash_into
from exchange.compiled import cached_kernel, field_reader, inlined, load_u32, signed, store_u32
from exchange.market_ids import HIGHEST_NUMBER, NUMBER_BITS
from exchange.messages import (
    ANSWER_TYPES,
    INCOMING_TYPES,
    LAYOUTS,
    QUOTE_TYPES,
    Cancelled,
    CancelRequest,
    Confirmation,
    InstrumentQuote,
    Quote,
    Rejection,
    Replaced,
    ReplaceRequest,
    Trade,
    sizes_by_code,
)
from transports.frames import Bytes, Longs

ORDER_SIZES = sizes_by_code(INCOMING_TYPES)
QUOTE = LAYOUTS[Quote].code
INSTRUMENT_QUOTE = LAYOUTS[InstrumentQuote].code
REPLACE_REQUEST = LAYOUTS[ReplaceRequest].code
CANCEL_REQUEST = LAYOUTS[CancelRequest].code
ID_AT = 1
"""The offset of the id in every order and in every answer but a quote."""
NAMED_AT = LAYOUTS[CancelRequest].offset("order_id")
"""The offset of the id of the order that a request names."""
_ANSWERS_WITH_ID = [answer for answer in ANSWER_TYPES if answer not in QUOTE_TYPES]
for _message in (*INCOMING_TYPES, *_ANSWERS_WITH_ID):
    if LAYOUTS[_message].offset("id") != ID_AT or LAYOUTS[_message].width("id") != 4:
        raise LookupError(f"the id of {_message.__name__} lies at another place than that of the others")
if LAYOUTS[ReplaceRequest].offset("order_id") != NAMED_AT:
    raise LookupError("the two requests name their order at different places")

_answered_id = field_reader("id", Trade, Confirmation, Rejection, Cancelled, Replaced)

# States of a gateway, by its number.
CLOSED = 0  # it gets no answers, and those for it are counted as undelivered
OPEN = 1
OVERRUN = 2  # as CLOSED, since more answers waited for it than there is room
OPEN_WITHOUT_QUOTES = 3  # as OPEN, and it gets no quotes


@inlined
def _is_order(source: Bytes, at: int, end: int) -> bool:
    """Return whether the frame is one order or request, whose own id is a gateway's own number."""
    if at == end or ORDER_SIZES[source[at]] != end - at:
        return False
    return signed(load_u32(source, at + ID_AT)) <= HIGHEST_NUMBER


@cached_kernel(checksum, market_ids, messages)
def stamp(orders: Bytes, offsets: Longs, first: int, count: int, gateway: int, orders_sum: State) -> int:
    """Put the gateway into the ids in the frames from `first` to `count` - 1, up to the first frame that is no order.

    Returns that frame, or `count`. Before the ids change, the frames are hashed into `orders_sum`, the checksum of what
    the gateway sent. A request that names an order by a market id keeps that id.
    """
    end = first
    while end < count and _is_order(orders, offsets[end], offsets[end + 1]):
        end += 1
    hash_into(orders_sum, orders, offsets[first], offsets[end])
    stamped = gateway << NUMBER_BITS
    for frame in range(first, end):
        at = offsets[frame]
        store_u32(orders, at + ID_AT, stamped | signed(load_u32(orders, at + ID_AT)))
        if orders[at] == CANCEL_REQUEST or orders[at] == REPLACE_REQUEST:
            named = signed(load_u32(orders, at + NAMED_AT))
            if named <= HIGHEST_NUMBER:
                store_u32(orders, at + NAMED_AT, stamped | named)
    return end


@inlined
def _append(
    answers: Bytes,
    at: int,
    size: int,
    gateway: int,
    queues: Bytes,
    ends: Longs,
    counts: Longs,
    states: Longs,
    undelivered: Longs,
) -> int:
    """Append a record to a gateway's queue, and return where it begins there; -1 if the gateway gets no answers.

    A gateway whose queue is full is overrun, and gets no answers from then on.
    """
    count = counts[gateway]
    queue = queues[gateway]
    if states[gateway] == OPEN or states[gateway] == OPEN_WITHOUT_QUOTES:
        begin = ends[gateway, count]
        if count + 1 < ends.shape[1] and begin + size <= len(queue):
            for byte in range(size):
                queue[begin + byte] = answers[at + byte]
            ends[gateway, count + 1] = begin + size
            counts[gateway] = count + 1
            return int(begin)
        states[gateway] = OVERRUN
    undelivered[gateway] += 1
    return -1


@cached_kernel(market_ids, messages)
def route(
    answers: Bytes,
    offsets: Longs,
    first: int,
    count: int,
    queues: Bytes,
    ends: Longs,
    counts: Longs,
    states: Longs,
    undelivered: Longs,
) -> None:
    """Append the answers in the frames from `first` to `count` - 1 to the queues of their gateways.

    `queues`, shape (1 + gateways, bytes), and `ends`, shape (1 + gateways, frames + 1), hold each gateway's queue;
    `counts` has the frames in it. Row 0 belongs to no gateway, since gateways count from 1.
    """
    gateways = len(counts)
    for frame in range(first, count):
        at = offsets[frame]
        size = offsets[frame + 1] - at
        if answers[at] == QUOTE or answers[at] == INSTRUMENT_QUOTE:
            for gateway in range(1, gateways):
                if states[gateway] == OPEN_WITHOUT_QUOTES:
                    continue
                _append(answers, at, size, gateway, queues, ends, counts, states, undelivered)
            continue
        order_id = signed(_answered_id(answers, at))
        gateway = order_id >> NUMBER_BITS
        begin = _append(answers, at, size, gateway, queues, ends, counts, states, undelivered)
        if begin >= 0:
            store_u32(queues[gateway], begin + ID_AT, order_id & HIGHEST_NUMBER)


def open_state(*, gets_quotes: bool) -> int:
    """Return the state of a gateway that gets answers."""
    return OPEN if gets_quotes else OPEN_WITHOUT_QUOTES


def routed(answers: Bytes, offsets: Longs, gateways: int, *, get_quotes: bool = True) -> list[Bytes]:
    """Return the bytes that each of this many gateways gets of these answers, one record a frame, gateway 1 first."""
    count = len(offsets) - 1
    counts = np.zeros(1 + gateways, np.int64)
    queues = np.zeros((1 + gateways, len(answers)), np.uint8)
    ends = np.zeros((1 + gateways, count + 1), np.int64)
    states = np.full(1 + gateways, open_state(gets_quotes=get_quotes), np.int64)
    states[0] = CLOSED
    route(answers, offsets, 0, count, queues, ends, counts, states, np.zeros(1 + gateways, np.int64))
    return [queues[gateway, : ends[gateway, counts[gateway]]] for gateway in range(1, 1 + gateways)]
