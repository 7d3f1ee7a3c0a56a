"""Opening orders: the reference book's answers after them, counts that leave them out, ids that never clash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_streams import INSTRUMENTS, TinyBook, handled, settings_of_books, streams

from benchmarks.reference_book import ReferenceBooks
from exchange.messages import (
    ASK,
    BID,
    LIMIT,
    Cancel,
    CancelRequest,
    Confirmation,
    InstrumentOrder,
    MalformedMessage,
    Message,
    Order,
    Quote,
    ReplaceRequest,
    Trade,
    decode,
    encode,
)
from matching_engine.engine import EngineCounts, MatchingEngine
from matching_engine.market_data.feed import PublishingEngine
from matching_engine.opening_orders import fill_book, has_cancels_or_replaces
from matching_engine.order_book import OrderBook
from tests.machine import EXAMPLES

FIRST_OPENING_ID = 31 * 2**27


def tape_of(*messages: Message) -> np.ndarray:
    """Return the messages as a tape, in memory that can be written to."""
    return np.frombuffer(bytearray(b"".join(map(encode, messages))), np.uint8)


def with_opening_ids(message: Message) -> Message:
    """Return the message as it stands in the book: its ids begin with gateway 31."""
    message = message._replace(id=FIRST_OPENING_ID + message.id)
    if isinstance(message, CancelRequest | ReplaceRequest):
        message = message._replace(order_id=FIRST_OPENING_ID + message.order_id)
    return message


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_after_an_opening_the_answers_are_those_of_the_reference_book(data) -> None:
    kind = data.draw(settings_of_books())
    opening = data.draw(streams(kind["max_price"], instruments=INSTRUMENTS).filter(len))
    messages = data.draw(streams(kind["max_price"], instruments=INSTRUMENTS))
    opening = [message for message in opening if getattr(message, "instrument", 0) < INSTRUMENTS]
    engine = MatchingEngine(TinyBook(**kind, instruments=INSTRUMENTS))
    reference = ReferenceBooks(INSTRUMENTS, **kind)
    if opening:
        fill_book(engine, tape_of(*opening))
    for message in opening:
        reference.handle(with_opening_ids(message))
    answers = b"".join(handled(engine, [encode(message) for message in messages]))
    assert answers == b"".join(encode(answer) for message in messages for answer in reference.handle(message))
    assert engine.counts.records == len(messages)


def test_an_order_of_the_run_may_have_the_id_of_an_opening_order() -> None:
    engine = MatchingEngine(OrderBook(with_ids=True))
    fill_book(engine, tape_of(Order(1, ASK, 500, 10)))
    answers = [decode(frame) for frame in handled(engine, [encode(Order(1, BID, 400, 1)), encode(Cancel(1))])]
    assert answers[:2] == [Quote(400, 500), Confirmation(1)]
    assert engine.book.best_ask == 500, "the cancel took the order of the run"


def test_a_trade_with_an_opening_order_bears_an_id_that_no_order_of_a_run_has() -> None:
    engine = MatchingEngine(OrderBook())
    fill_book(engine, tape_of(Order(7, ASK, 500, 10)))
    answers = [decode(frame) for frame in handled(engine, [encode(Order(1, BID, 500, 4))])]
    assert answers == [Trade(FIRST_OPENING_ID + 7, 500, 4), Trade(1, 500, 4)]


def test_counts_leave_the_opening_out() -> None:
    engine = MatchingEngine(OrderBook())
    fill_book(engine, tape_of(Order(1, ASK, 500, 10), Order(2, BID, 500, 4)))
    assert engine.counts == EngineCounts(0, 0, 0, 0, 0, 0, 0)


def test_the_first_snapshot_has_the_prices_and_the_depth_of_the_opening() -> None:
    engine = MatchingEngine(OrderBook())
    fill_book(engine, tape_of(Order(1, ASK, 500, 10), Order(2, ASK, 502, 3), Order(3, BID, 400, 1)))
    publishing = PublishingEngine(engine.book, with_depth=True)
    publishing.feed.begin_with_book()
    assert publishing.feed.messages == 0
    [part] = publishing.feed.snapshot(1)
    published = [decode(part[:16]), *(decode(part[at : at + 27]) for at in range(16, len(part), 27))]
    assert (published[0].bid, published[0].ask) == (400, 500)
    assert [(level.price, level.volume) for level in published[1:]] == [(500, 10), (502, 3), (400, 1)]


def test_a_tape_with_cancels_or_replaces_needs_a_book_with_ids() -> None:
    order = Order(1, ASK, 500, 10)
    assert not has_cancels_or_replaces(tape_of(order))
    for request in (Cancel(1), CancelRequest(2, 1), ReplaceRequest(2, 1, 500, 5)):
        assert has_cancels_or_replaces(tape_of(order, request))


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "the tape is empty at offset 0"),
        ([Order(1, ASK, 5, 1), Order(2**27, ASK, 5, 1)], "the id is above 134217727.* at offset 10"),
        ([Order(1, ASK, 5, 1), Quote(1, 2)], "type byte 4, where .* at offset 10"),
        (
            [InstrumentOrder(1, 1, ASK, 5, 1, LIMIT)],
            "an order is of instrument 1; the engine's book has 1 instrument, numbered from 0: .* at offset 0",
        ),
    ],
)
def test_an_opening_that_the_engine_cannot_take_is_refused(messages: list[Message], sentence: str) -> None:
    with pytest.raises(MalformedMessage, match=sentence):
        fill_book(MatchingEngine(OrderBook()), tape_of(*messages))
