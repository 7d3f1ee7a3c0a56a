"""Follows the orders of a stream: the side and instrument of each, and how many of its lots still rest in the book.

    messages, answers to each ──▶ OrderHistory.follow ──▶ the side and instrument of each request,
                                                          the lots that each message cancels

A request is a cancel or a replace. A message's *place* is its index among the messages of all gateways, ordered by
gateway and then by number: each gateway numbers its messages 1, 2, 3, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exchange import market_ids, messages
from exchange.compiled import cached_kernel, field_reader, signed
from exchange.market_ids import NUMBER_BITS
from exchange.messages import LAYOUTS, Cancelled, Rejection, Trade
from exchange_simulation.experiments.events.order_messages import (
    KIND_OF_CANCEL,
    KIND_OF_REPLACE,
    Bytes,
    Column,
    Longs,
    OrderMessages,
)
from matching_engine.encoding import ANSWER_SIZES

WIRE_ID_BITS = 32
"""The bits of an id on the wire. If there is one gateway, all of them are the number of the message."""
NO_PLACE = -1
"""Stands for the place of a message that no gateway has."""
TRADE = LAYOUTS[Trade].code
CANCELLED = LAYOUTS[Cancelled].code
REJECTION = LAYOUTS[Rejection].code
_trade_id = field_reader("id", Trade)
_trade_volume = field_reader("volume", Trade)
_cancelled_volume = field_reader("volume", Cancelled)


@cached_kernel(messages, market_ids)
def _follow(
    kinds: Longs,
    places: Longs,
    named_places: Longs,
    volumes: Longs,
    answers: Bytes,
    ends: Longs,
    sizes: Longs,
    first_places: Longs,
    number_bits: int,
    resting: Longs,
    cancelled: Longs,
) -> None:
    """Apply a block of messages to `resting`, and put the lots that each message cancels into `cancelled`.

    kinds, places, named_places, volumes    of each message: its kind, place, the place that it names or NO_PLACE, lots
    answers, ends                           the answers to the block, and where the answers to each message end
    sizes                                   bytes of an answer by its type byte
    first_places, number_bits               the place of each gateway's message 1, and the bits of a number in an id
    resting                                 the lots that rest of each order, by place

    A trade has one message for each resting order, and one for the incoming order at each price level. Each of these
    messages takes its lots off its order. A replace takes the rest of its order out, and brings the order in anew.
    """
    number_mask = (1 << number_bits) - 1
    at = 0
    for i in range(len(kinds)):
        kind = kinds[i]
        is_request = kind in (KIND_OF_CANCEL, KIND_OF_REPLACE)
        place = named_places[i] if is_request else places[i]
        is_rejected = at < ends[i] and answers[at] == REJECTION
        if not is_rejected:  # `place` is no NO_PLACE here: the engine rejects a request that names an unknown order
            if kind == KIND_OF_REPLACE:
                cancelled[i] = resting[place]
            if kind != KIND_OF_CANCEL:
                resting[place] = volumes[i]
        while at < ends[i]:
            if answers[at] == TRADE:
                order_id = signed(_trade_id(answers, at))
                traded = first_places[order_id >> number_bits] + (order_id & number_mask) - 1
                resting[traded] -= signed(_trade_volume(answers, at))
            elif answers[at] == CANCELLED:
                cancelled[i] = signed(_cancelled_volume(answers, at))
                resting[place] = 0
            at += sizes[answers[at]]


class OrderHistory:
    """What is known about the orders of a stream up to now."""

    def __init__(self, messages_of_gateways: Sequence[int], *, is_shared: bool) -> None:
        """`messages_of_gateways`: the number of messages of each gateway.

        `is_shared`: several gateways share the engine, so ids are market ids, in which gateways count from 1.
        """
        counts = [0, *messages_of_gateways] if is_shared else [*messages_of_gateways]  # index 0: no gateway, or the one
        self._counts = np.array(counts, np.int64)
        self._first_places = np.cumsum(self._counts) - self._counts
        self._number_bits = NUMBER_BITS if is_shared else WIRE_ID_BITS
        total = sum(counts)
        self._sides = np.zeros(total, np.uint8)
        self._instruments = np.zeros(total, np.uint16)
        self._resting = np.zeros(total, np.int64)

    @property
    def resting(self) -> Longs:
        """The lots that rest of each order, by place."""
        return self._resting

    def places_of(self, ids: Column) -> Longs:
        """Return the place of each id; NO_PLACE if no gateway has a message of that id."""
        gateways, numbers = self._split(ids)
        is_known = (gateways < len(self._counts)) & (numbers > 0)
        known_gateways = np.where(is_known, gateways, 0)
        is_known &= numbers <= self._counts[known_gateways]
        return np.where(is_known, self._first_places[known_gateways] + numbers - 1, NO_PLACE)

    def follow(self, block: OrderMessages, answers: Bytes, ends: Longs) -> tuple[OrderMessages, Longs]:
        """Return (the block with the side and instrument of each request, the lots that each message cancels).

        `ends`: where the answers to each message end. Blocks come in the stream's order. ValueError if a message's id
        is beyond those of its gateway.
        """
        places = self.places_of(block.id)
        unknown_ids = block.id[places == NO_PLACE]
        if len(unknown_ids):
            raise ValueError(f"a message has the id {unknown_ids[0]}, but its gateway has no message of that number")
        is_request = (block.kind == KIND_OF_CANCEL) | (block.kind == KIND_OF_REPLACE)
        self._sides[places[~is_request]] = block.side[~is_request]
        self._instruments[places[~is_request]] = block.instrument[~is_request]
        named_places = np.where(is_request, self.places_of(block.order_id), NO_PLACE)
        cancelled = np.zeros(len(block), np.int64)
        _follow(
            np.ascontiguousarray(block.kind, np.int64),
            places,
            named_places,
            np.ascontiguousarray(block.volume, np.int64),
            answers,
            ends,
            ANSWER_SIZES,
            self._first_places,
            self._number_bits,
            self._resting,
            cancelled,
        )
        # The engine rejects a request that names a later message, or another gateway's: such a request has no side.
        # `_sides` has the later messages of this block already. `_follow` sees the rejections themselves.
        gateways, numbers = self._split(block.id)
        gateways_of_named, numbers_of_named = self._split(block.order_id)
        is_earlier = (named_places != NO_PLACE) & (gateways == gateways_of_named) & (numbers_of_named < numbers)
        sides_of_named = np.where(is_earlier, self._sides[named_places], 0)
        instruments_of_named = np.where(is_earlier, self._instruments[named_places], 0)
        followed = replace(
            block,
            side=np.where(is_request, sides_of_named, block.side),
            instrument=np.where(is_request, instruments_of_named, block.instrument),
        )
        return followed, cancelled

    def _split(self, ids: Column) -> tuple[Longs, Longs]:
        """Return (the gateway of each id, or 0 if there is only one; the number of the message at its gateway)."""
        whole_ids = np.asarray(ids, np.int64)
        return whole_ids >> self._number_bits, whole_ids & ((1 << self._number_bits) - 1)
