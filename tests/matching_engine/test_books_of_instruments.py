"""Books of several instruments in one memory: the reference's answers, shared ids and capacity, and sane memory."""

from __future__ import annotations

import resource
from itertools import chain

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_streams import INSTRUMENTS, TinyBook, handled, packs, settings_of_books, streams

from benchmarks.reference_book import ReferenceBooks
from exchange.allowed import BadSetting
from exchange.messages import (
    ASK,
    BID,
    LIMIT,
    Cancelled,
    CancelRequest,
    Confirmation,
    InstrumentOrder,
    InstrumentQuote,
    Order,
    Rejection,
    Replaced,
    ReplaceRequest,
    Trade,
    decode,
    decode_all,
    encode,
)
from exchange.order_mix import OrderMix
from gateway.mixed_orders import MixedOrders
from matching_engine.engine import MatchingEngine
from matching_engine.kernels import NO_SUCH_INSTRUMENT
from matching_engine.order_book import OrderBook
from matching_engine.tape import match_tape
from tests.machine import EXAMPLES
from tests.matching_engine.invariants import check

thorough = settings(max_examples=2 * EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


def expected_records(reference: ReferenceBooks, messages) -> list[list[bytes]]:
    """Return the reference's answers to each message, encoded."""
    return [[encode(answer) for answer in reference.handle(message)] for message in messages]


def answers_to(engine: MatchingEngine, *messages) -> list:
    """Return the answers to the messages."""
    return [decode(frame) for frame in handled(engine, [encode(message) for message in messages])]


@thorough
@given(st.data())
def test_every_stream_gives_the_same_answers_as_a_list_of_reference_books(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"], instruments=INSTRUMENTS))
    book = TinyBook(**kind, instruments=INSTRUMENTS)
    reference = ReferenceBooks(INSTRUMENTS, **kind)
    engine = MatchingEngine(book)
    for message, answers in zip(messages, expected_records(reference, messages), strict=True):
        assert handled(engine, [encode(message)]) == answers
        check(book)
    for instrument, plain_book in enumerate(reference.books):
        assert book.best_prices(instrument) == plain_book.quote()
        for side in (ASK, BID):
            expected = [(order.id, order.price, order.volume) for order in plain_book.resting(side)]
            assert [tuple(order) for order in book.resting(side, instrument)] == expected
    totals = {side: book.total_resting(side) for side in (ASK, BID)}
    assert sum(total.orders for total in totals.values()) == reference.orders.count
    assert book.volume_traded(ASK, totals[ASK]) == book.volume_traded(BID, totals[BID])
    assert engine.counts.records == len(messages)


@thorough
@given(st.data())
def test_packs_and_batches_of_any_size_give_the_same_answers(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"], instruments=INSTRUMENTS))
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=30))
    batches = data.draw(st.lists(st.integers(1, 9), max_size=20))
    frames = packs(messages, sizes)
    book = TinyBook(**kind, instruments=INSTRUMENTS)
    engine = MatchingEngine(book, packing=5)
    answers = handled(engine, frames, batches, capacity_frames=data.draw(st.integers(1, 9)))
    reference = ReferenceBooks(INSTRUMENTS, **kind)
    expected = [b"".join(chain.from_iterable(expected_records(reference, decode_all(frame)))) for frame in frames]
    assert answers == expected
    check(book)


def test_orders_of_two_instruments_do_not_trade_with_each_other():
    engine = MatchingEngine(OrderBook(instruments=2))
    ask = InstrumentOrder(id=1, instrument=0, side=ASK, price=500, volume=5, order_type=LIMIT)
    bid = InstrumentOrder(id=2, instrument=1, side=BID, price=500, volume=5, order_type=LIMIT)
    assert answers_to(engine, ask, bid) == [
        InstrumentQuote(instrument=0, bid=0, ask=500),
        Confirmation(id=1),
        InstrumentQuote(instrument=1, bid=500, ask=1000),
        Confirmation(id=2),
    ]


def test_an_order_without_an_instrument_is_of_instrument_0():
    engine = MatchingEngine(OrderBook(instruments=2))
    ask = InstrumentOrder(id=1, instrument=0, side=ASK, price=500, volume=5, order_type=LIMIT)
    answers = answers_to(engine, ask, Order(id=2, side=BID, price=500, volume=2))
    assert answers[2:] == [Trade(1, 500, 2), Trade(2, 500, 2)]


def test_an_instrument_that_nobody_serves_is_a_rejection_with_a_reason():
    engine = MatchingEngine(OrderBook(instruments=2))
    for instrument in (2, 0xFFFF):
        order = InstrumentOrder(id=7, instrument=instrument, side=ASK, price=500, volume=5, order_type=LIMIT)
        assert answers_to(engine, order) == [Rejection(7, NO_SUCH_INSTRUMENT)]
    assert engine.counts.rejections == 2


def test_requests_find_their_order_without_naming_its_instrument():
    engine = MatchingEngine(OrderBook(instruments=100, with_ids=True))
    ask = InstrumentOrder(id=1, instrument=99, side=ASK, price=500, volume=5, order_type=LIMIT)
    answers = answers_to(engine, ask, ReplaceRequest(2, 1, 501, 5), CancelRequest(3, 1))
    assert answers[2:] == [
        InstrumentQuote(instrument=99, bid=0, ask=501),
        Replaced(id=2, price=501, volume=5),
        InstrumentQuote(instrument=99, bid=0, ask=1000),
        Cancelled(id=3, volume=5),
    ]


@pytest.mark.parametrize(
    ("instruments", "max_price"), [(0, 999), (10_001, 999), (3_000, 65_534)], ids=["none", "limit", "memory"]
)
def test_more_instruments_than_memory_should_hold_are_refused(instruments, max_price):
    with pytest.raises(BadSetting, match="instruments"):
        OrderBook(max_price, instruments=instruments)


def test_books_of_wide_prices_take_memory_only_where_orders_rest():
    """All levels of 1,000 books of 65,534 prices would take 1 GB."""
    tape = MixedOrders(OrderMix.parse("paper"), 1, (450, 549), instruments=1_000).records(1, 20_000)
    engine = MatchingEngine(OrderBook(65_534, instruments=1_000, with_ids=True))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    match_tape(engine, np.frombuffer(bytearray(tape), np.uint8), lambda _: None)
    engine.book.grow()
    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert engine.counts.trades > 1_000
    assert after_kb - before_kb < 200_000
