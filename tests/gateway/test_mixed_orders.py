"""Mixed streams depend only on seed, mix and number, and have the shares of the mix."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.allowed import BadSetting
from exchange.messages import (
    MARKET,
    POST_ONLY,
    CancelRequest,
    InstrumentOrder,
    Order,
    ReplaceRequest,
    TypedOrder,
    decode_all,
)
from exchange.order_mix import KINDS, OrderMix
from gateway.instrument_choice import instruments_of, limits_of
from gateway.mixed_orders import ORDER_TYPE_OF, MixedOrders
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.tape import match_tape

MARKET_MIX = "limit=50,post=10,market=5,ioc=3,fok=2,cancel=20,replace=10"
PRICES = (450, 549)
FIRST_MESSAGES = [
    Order(id=1, side=2, price=477, volume=45),
    Order(id=2, side=2, price=461, volume=30),
    ReplaceRequest(id=3, order_id=1, price=493, volume=10),
    Order(id=4, side=2, price=458, volume=21),
    Order(id=5, side=1, price=515, volume=70),
    TypedOrder(id=6, side=1, price=539, volume=37, order_type=3),
]
INSTRUMENTS_OF_SEED_7 = [6, 33, 53, 11, 37, 0, 12, 40]
KIND_OF_TYPE = {order_type: kind for kind, order_type in ORDER_TYPE_OF.items()}


def stream(mix: str = MARKET_MIX, seed: int = 7, price_model: str = "two-sided") -> MixedOrders:
    return MixedOrders(OrderMix.parse(mix), seed, PRICES, price_model)


def kind_of(message: object) -> str:
    if isinstance(message, TypedOrder):
        return KIND_OF_TYPE[message.order_type]
    return {Order: "limit", CancelRequest: "cancel", ReplaceRequest: "replace"}[type(message)]


def test_the_first_messages_of_a_seed_are_as_documented():
    assert list(decode_all(stream().records(1, 6))) == FIRST_MESSAGES


@given(seed=st.integers(0, 2**64 - 1), counts=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_the_sizes_of_the_parts_change_no_byte(seed, counts):
    messages = stream(seed=seed)
    whole = messages.records(1, sum(counts))
    parts = []
    first_id = 1
    for count in counts:
        parts.append(messages.records(first_id, count))
        first_id += count
    assert b"".join(parts) == whole


def test_each_kind_of_message_has_its_share_of_the_mix():
    count = 100_000
    kinds = Counter(kind_of(message) for message in decode_all(stream().records(1, count)))
    mix = OrderMix.parse(MARKET_MIX)
    for kind, percentage in zip(KINDS, mix.percentages, strict=True):
        expected = count * percentage / 100
        assert kinds[kind] == pytest.approx(expected, abs=5 * expected**0.5)


def test_requests_name_earlier_orders_that_may_rest():
    messages = {message.id: message for message in decode_all(stream().records(1, 20_000))}
    ages = []
    for number, message in messages.items():
        if isinstance(message, CancelRequest | ReplaceRequest):
            named = messages[message.order_id]
            assert message.order_id < number
            assert isinstance(named, Order) or named.order_type == POST_ONLY
            ages.append(number - message.order_id)
    assert np.median(ages) < 100
    assert max(ages) > 1_000


def test_orders_are_the_plain_orders_of_the_seed():
    plain = list(decode_all(SeededOrders(7, PRICES, "two-sided").records(1, 1_000)))
    for order, message in zip(plain, decode_all(stream().records(1, 1_000)), strict=True):
        if isinstance(message, TypedOrder):
            price = 0 if message.order_type == MARKET else order.price
            assert message[:4] == (order.id, order.side, price, order.volume)
        elif isinstance(message, Order):
            assert message == order


def test_a_replace_keeps_its_order_on_its_side_of_the_prices():
    """Two-sided bids lie at 450..504, asks at 495..549."""
    plain = list(decode_all(SeededOrders(7, PRICES, "two-sided").records(1, 5_000)))
    for message in decode_all(stream().records(1, 5_000)):
        if isinstance(message, ReplaceRequest):
            is_bid = plain[message.order_id - 1].side == 2
            assert 450 <= message.price <= 504 if is_bid else 495 <= message.price <= 549


def test_a_stream_without_earlier_orders_begins_with_orders():
    first = next(decode_all(stream("limit=1,cancel=99").records(1, 1)))
    assert isinstance(first, Order)


def stream_of_instruments(instruments: int, mix: str = MARKET_MIX) -> MixedOrders:
    return MixedOrders(OrderMix.parse(mix), 7, PRICES, "two-sided", instruments)


def test_with_instruments_orders_are_the_same_but_for_their_instrument():
    one = decode_all(stream().records(1, 2_000))
    instruments = stream_of_instruments(100).instruments(1, 2_000).tolist()
    for instrument, message, plain in zip(
        instruments, decode_all(stream_of_instruments(100).records(1, 2_000)), one, strict=True
    ):
        if isinstance(message, InstrumentOrder):
            typed = TypedOrder(*plain, order_type=1) if isinstance(plain, Order) else plain
            assert message == InstrumentOrder(typed.id, instrument, *typed[1:])
        else:
            assert message == plain


def test_a_request_has_the_instrument_of_the_order_that_it_names():
    messages = stream_of_instruments(100)
    instruments = messages.instruments(1, 5_000)
    for message in decode_all(messages.records(1, 5_000)):
        if isinstance(message, CancelRequest | ReplaceRequest):
            assert instruments[message.id - 1] == instruments[message.order_id - 1]


def test_instruments_have_the_shares_of_zipfs_law():
    count = 200_000
    orders = Counter(instruments_of(7, 50, np.arange(1, count + 1)).tolist())
    harmonic = sum(1 / (k + 1) for k in range(50))
    for instrument in range(50):
        expected = count / (instrument + 1) / harmonic
        assert orders[instrument] == pytest.approx(expected, abs=5 * expected**0.5)


def test_the_first_instruments_of_a_seed_are_as_documented():
    assert limits_of(4).tolist() == [2061584302, 3092376453, 3779571220, 4294967296]
    assert instruments_of(7, 100, np.arange(1, 9)).tolist() == INSTRUMENTS_OF_SEED_7


@pytest.mark.parametrize("mix", [MARKET_MIX, "exchange-core", "paper"])
def test_the_engine_answers_each_message_of_a_mix(mix):
    engine = MatchingEngine(OrderBook(with_ids=True))
    match_tape(engine, np.frombuffer(bytearray(stream(mix).records(1, 20_000)), np.uint8), lambda _: None)
    assert engine.counts.records == 20_000
    assert engine.counts.trades > 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit=60", "these add up to 60"),
        ("limit=60,limit=40", "limit stands there twice"),
        (
            "limit=60,cancle=40",
            "'cancle' is no kind: limit, market, ioc, fok, post, cancel, replace; did you mean 'cancel'",
        ),
        ("limit=sixty,cancel=40", "'limit=sixty' has no percentage"),
        ("limit=-60,cancel=160", "'limit=-60' has no percentage"),
        ("limit", "'limit' has no percentage"),
        ("", "'' is no kind"),
        ("cancel=60,market=40", "no order can rest"),
    ],
)
def test_a_mix_that_cannot_be_is_refused_with_the_reason(text, message):
    with pytest.raises(BadSetting, match=re.escape(message)):
        OrderMix.parse(text)
