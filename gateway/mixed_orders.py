"""Order streams of several kinds: a message is a function of seed, mix and number alone, as a plain order is.

Message i of a mix has the id i. `bits` are those of purpose MIX and number i (seeds.py):

    kind     the first whose cumulated percentage is above bits 32..63, as a part of 2^32
    order    side, price and volume are those of the plain order i; a market order has price 0
    cancel   names the order i - age, or the next earlier message that is a limit or post-only order
    replace  names an order in the same way, and gives it the volume of the plain order i, and its price: mirrored, as
             lowest + highest - price, if the plain order i is of the other side
    age      1 + the lowest k of bits 4..31, k = bits 0..3 modulo 12: ages up to 2^11, each power of two as likely

With several instruments, an order is sent as an InstrumentOrder, and gateway/instrument_choice.py has its instrument. A
request has none on the wire: it is that of the order which it names.

A request may come too late, when its order is no longer in the book: the engine rejects it, and the share of such
rejections is a property of the mix. Where no earlier order exists, the message is the plain order i instead.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from exchange import messages
from exchange.compiled import cached_kernel, record_writer, signed
from exchange.messages import (
    ASK,
    FILL_OR_KILL,
    IMMEDIATE_OR_CANCEL,
    LAYOUTS,
    LIMIT,
    MARKET,
    POST_ONLY,
    CancelRequest,
    InstrumentOrder,
    Order,
    ReplaceRequest,
    TypedOrder,
)
from exchange.order_mix import CANCEL, KINDS, REPLACE, RESTING_KINDS, OrderMix
from exchange.settings import RunSettings
from gateway import instrument_choice, seeds
from gateway.instrument_choice import ONLY_ONE, choice_key, chosen, limits_of
from gateway.seeded_orders import SeededOrders
from gateway.seeds import MIX, STEP, mix, purpose_key, stream_key
from transports.frames import Bytes, Longs

ORDER = LAYOUTS[Order]
LARGEST_RECORD = max(LAYOUTS[record].size for record in (TypedOrder, ReplaceRequest, CancelRequest, InstrumentOrder))
PAPERS_MIX = "paper"
"""The mix of limit orders alone."""
ORDER_TYPE_OF = {"limit": LIMIT, "market": MARKET, "ioc": IMMEDIATE_OR_CANCEL, "fok": FILL_OR_KILL, "post": POST_ONLY}
"""The order type of each kind that is an order. With one instrument, a limit order is sent as a plain order."""
_ORDER_TYPES = np.array([ORDER_TYPE_OF.get(kind, 0) for kind in KINDS], np.int64)
_MAY_REST = np.array([kind in RESTING_KINDS for kind in KINDS])
_LIMIT = KINDS.index("limit")
_CANCEL = KINDS.index(CANCEL)
_REPLACE = KINDS.index(REPLACE)
_AGE_BITS = 4
AGES = uint64(12)
"""Powers of two, from 2^0 on, below which ages lie."""

_put_order = record_writer(Order, "id", "side", "price", "volume")
_put_typed_order = record_writer(TypedOrder, "id", "side", "price", "volume", "order_type")
_put_instrument_order = record_writer(InstrumentOrder, "id", "instrument", "side", "price", "volume", "order_type")
_put_cancel_request = record_writer(CancelRequest, "id", "order_id")
_put_replace_request = record_writer(ReplaceRequest, "id", "order_id", "price", "volume")


@njit(inline="always")
def _kind(key: int, limits: Longs, number: int) -> int:
    """Return the kind of a message, as an index of KINDS. `limits`: the cumulated shares, as parts of 2^32."""
    share = signed(mix(key + uint64(number) * STEP) >> uint64(32))
    kind = 0
    while share >= limits[kind]:
        kind += 1
    return kind


@njit(inline="always")
def _named_order(key: int, limits: Longs, number: int) -> int:
    """Return the earlier order that request `number` names; 0 if there is none."""
    bits = mix(key + uint64(number) * STEP)
    mask = (uint64(1) << ((bits & uint64(15)) % AGES)) - uint64(1)
    age = signed((bits >> uint64(_AGE_BITS)) & mask) + 1
    order: int = max(number - age, 0)
    while order > 0 and not _MAY_REST[_kind(key, limits, order)]:
        order -= 1
    return order


@njit(inline="always")
def _side(order_key: int, order_id: int) -> int:
    """Return the side of a plain order, as seeded_orders.py has it."""
    bits = mix(order_key + uint64(order_id) * STEP)
    return ASK + int(signed(bits >> uint64(63)))


@cached_kernel(messages, seeds, instrument_choice)
def _write_mixed(
    key: int,
    limits: Longs,
    order_key: int,
    mirror: int,
    instrument_key: int,
    instrument_limits: Longs,
    first_id: int,
    sides: Longs,
    prices: Longs,
    volumes: Longs,
    out: Bytes,
    ends: Longs,
) -> None:
    """Write the messages of these plain orders from the start of `out` on, and the end of each.

    `order_key`: the key of the plain orders. `mirror`: the sum of the lowest and the highest price. `instrument_key`
    and `instrument_limits` choose instruments; without limits, orders have no instrument.
    """
    has_instruments = len(instrument_limits) > 0
    at = 0
    for i in range(len(sides)):
        number = first_id + i
        kind = _kind(key, limits, number)
        is_request = kind in (_CANCEL, _REPLACE)
        order_id = _named_order(key, limits, number) if is_request else 0
        is_limit = kind == _LIMIT or (is_request and order_id == 0)
        if is_limit and not has_instruments:
            at = _put_order(out, at, (number, sides[i], prices[i], volumes[i]))
        elif is_limit:
            instrument = chosen(instrument_key, instrument_limits, number)
            at = _put_instrument_order(out, at, (number, instrument, sides[i], prices[i], volumes[i], LIMIT))
        elif kind == _CANCEL:
            at = _put_cancel_request(out, at, (number, order_id))
        elif kind == _REPLACE:
            is_same_side = sides[i] == _side(order_key, order_id)
            price = prices[i] if is_same_side else mirror - prices[i]
            at = _put_replace_request(out, at, (number, order_id, price, volumes[i]))
        else:
            order_type = _ORDER_TYPES[kind]
            price = 0 if order_type == MARKET else prices[i]
            if has_instruments:
                instrument = chosen(instrument_key, instrument_limits, number)
                at = _put_instrument_order(out, at, (number, instrument, sides[i], price, volumes[i], order_type))
            else:
                at = _put_typed_order(out, at, (number, sides[i], price, volumes[i], order_type))
        ends[i] = at


@cached_kernel(messages, seeds, instrument_choice)
def _write_instruments(
    key: int, limits: Longs, instrument_key: int, instrument_limits: Longs, first_id: int, instruments: Longs
) -> None:
    """Write the instruments of messages first_id.., that of the named order for a request."""
    for i in range(len(instruments)):
        number = first_id + i
        kind = _kind(key, limits, number)
        named = _named_order(key, limits, number) if kind in (_CANCEL, _REPLACE) else 0
        instruments[i] = chosen(instrument_key, instrument_limits, named if named > 0 else number)


class MixedOrders:
    """Random access to the stream of a seed and a mix, over the plain orders of the same seed."""

    def __init__(
        self,
        order_mix: OrderMix,
        seed: int,
        prices: tuple[int, int],
        price_model: str = "uniform",
        instruments: int = 1,
    ) -> None:
        self._instrument_key = uint64(choice_key(seed))
        self._instrument_limits = limits_of(instruments) if instruments > 1 else ONLY_ONE
        self._key = uint64(purpose_key(uint64(seed), uint64(MIX)))
        self._order_key = uint64(stream_key(uint64(seed)))
        self._mirror = sum(prices)
        self._orders = SeededOrders(seed, prices, price_model)
        shares = np.cumsum(order_mix.percentages) / 100
        self._limits = np.round(shares * 2**32).astype(np.int64)

    @classmethod
    def of(cls, settings: RunSettings) -> MixedOrders:
        """Return the stream of these settings; without a mix, limit orders alone."""
        order_mix = OrderMix.parse(settings.mix or PAPERS_MIX)
        return cls(order_mix, settings.seed, settings.prices, settings.price_model, settings.instruments)

    @staticmethod
    def are_needed_for(settings: RunSettings) -> bool:
        """Return whether the messages of these settings are others than plain orders."""
        return settings.mix is not None or settings.instruments > 1

    def write(self, buffer: Bytes, ends: Longs, first_id: int, count: int) -> None:
        """Write `count` messages from number `first_id` on, from the buffer's start on; `ends` gets where each ends."""
        plain = np.frombuffer(self._orders.records(first_id, count), ORDER.dtype)
        sides = np.ascontiguousarray(plain["side"], np.int64)
        prices = np.ascontiguousarray(plain["price"], np.int64)
        volumes = np.ascontiguousarray(plain["volume"], np.int64)
        _write_mixed(
            self._key,
            self._limits,
            self._order_key,
            self._mirror,
            self._instrument_key,
            self._instrument_limits,
            first_id,
            sides,
            prices,
            volumes,
            buffer,
            ends,
        )

    def instruments(self, first_id: int, count: int) -> Longs:
        """Return the instruments of `count` messages from number `first_id` on; a request has its order's."""
        instruments = np.zeros(count, np.int64)
        if len(self._instrument_limits) > 0:
            _write_instruments(
                self._key, self._limits, self._instrument_key, self._instrument_limits, first_id, instruments
            )
        return instruments

    def records(self, first_id: int, count: int) -> bytes:
        """Return the same messages one after the other, for a tape."""
        buffer = np.empty(count * LARGEST_RECORD, np.uint8)
        ends = np.zeros(count, np.int64)
        self.write(buffer, ends, first_id, count)
        return buffer[: ends[-1]].tobytes()
