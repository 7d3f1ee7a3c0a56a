"""What the engine makes of a tape, against the answers of the reference book, message by message."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given

from benchmarks.reference_book import ReferenceBook
from exchange.messages import (
    ASK,
    BID,
    CancelRequest,
    Message,
    Order,
    Rejection,
    ReplaceRequest,
    Trade,
    encode,
)
from exchange.workload import MAX_PRICE
from matching_engine.tape_statistics import matched
from tests.matching_engine.order_streams import streams


def tape_of(*messages: Message) -> np.ndarray:
    return np.frombuffer(b"".join(map(encode, messages)), np.uint8)


def test_trades_are_those_of_resting_orders() -> None:
    figures = matched(
        tape_of(
            Order(1, ASK, 500, 4),
            Order(2, ASK, 500, 4),
            Order(3, ASK, 503, 4),
            Order(4, BID, 503, 10),
            ReplaceRequest(5, 3, 505, 1),
        )
    )
    assert (figures.messages, figures.trades, figures.volume) == (5, 3, 10)
    assert (figures.resting_asks.orders, figures.resting_bids.orders) == (1, 0)
    assert figures.levels[-1] == 1


def test_a_replaced_order_that_trades_is_the_incoming_one() -> None:
    figures = matched(tape_of(Order(1, BID, 400, 4), Order(2, ASK, 500, 4), ReplaceRequest(3, 1, 500, 6)))
    assert (figures.trades, figures.volume) == (1, 4)


def test_the_spread_is_counted_after_each_message() -> None:
    figures = matched(
        tape_of(
            Order(1, BID, 400, 4),
            Order(2, ASK, 410, 4),
            Order(3, ASK, 405, 4),
            CancelRequest(4, 3),
            CancelRequest(5, 9),
        )
    )
    assert {spread: int(figures.spreads[spread]) for spread in np.flatnonzero(figures.spreads)} == {10: 3, 5: 1}
    assert figures.rejections[6] == 1


@given(streams(MAX_PRICE).filter(bool))
def test_the_figures_are_those_of_the_reference_book(stream: list[Message]) -> None:
    book = ReferenceBook(MAX_PRICE, with_ids=True)
    trades = 0
    volume = 0
    rejections: Counter[int] = Counter()
    spreads: Counter[int] = Counter()
    for message in stream:
        incoming_id = message.order_id if isinstance(message, ReplaceRequest) else message.id
        for answer in book.handle(message):
            if isinstance(answer, Trade) and answer.id != incoming_id:
                trades += 1
                volume += answer.volume
            if isinstance(answer, Rejection):
                rejections[answer.reason] += 1
        if book.best_bid > 0 and book.best_ask <= MAX_PRICE:
            spreads[book.best_ask - book.best_bid] += 1
    figures = matched(tape_of(*stream))
    assert (figures.trades, figures.volume) == (trades, volume)
    assert {int(reason): int(figures.rejections[reason]) for reason in np.flatnonzero(figures.rejections)} == rejections
    assert {int(spread): int(figures.spreads[spread]) for spread in np.flatnonzero(figures.spreads)} == spreads
    assert figures.levels[-1] == len(book.levels[ASK]) + len(book.levels[BID])
