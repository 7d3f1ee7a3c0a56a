"""The order stream and the book alone agree with a run's."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.reference_book import ReferenceBook
from exchange.messages import MalformedMessage, Order, decode_all
from exchange_simulation import OrderBook, orders
from gateway.seeded_orders import SeededOrders


def test_the_stream_is_the_gateway_s():
    stream = orders(seed=7, count=1000)
    assert stream.tobytes() == SeededOrders(7, (450, 549)).records(1, 1000)
    assert stream["id"].tolist() == list(range(1, 1001))
    assert set(stream["side"]) == {1, 2}
    assert stream["price"].min() >= 450
    assert stream["price"].max() <= 549


def test_a_later_part_of_the_stream_is_made_without_the_earlier_one():
    assert orders(count=10, first_id=91).tolist() == orders(count=100)[90:].tolist()


def test_wide_prices_are_all_that_the_book_accepts():
    prices = orders(count=20_000, price_model="wide")["price"]
    assert (prices.min(), prices.max()) == (1, 999)
    assert orders(count=20_000, price_model="wide", max_price=65_534)["price"].max() > 60_000


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"prices": (549, 450)}, "prices is '549..450'"),
        ({"price_model": "narrow"}, "price-model is 'narrow'"),
        ({"first_id": 0}, "first-id is 0"),
        ({"count": -1}, "count is -1"),
        ({"first_id": 2**32 - 1, "count": 2}, "count is 2"),
    ],
)
def test_a_bad_argument_of_the_stream_is_named(wrong: dict[str, object], named: str):
    with pytest.raises(ValueError, match=re.escape(named)):
        orders(**wrong)


def test_the_answers_are_those_of_the_plain_book():
    stream = orders(seed=3, count=20_000)
    book = OrderBook()
    plain = ReferenceBook()
    answers = book.match(stream)
    said = [answer for order in decode_all(stream.tobytes()) for answer in plain.handle(order)]
    for found, kind in [(answers.trades, "Trade"), (answers.confirmations, "Confirmation"), (answers.quotes, "Quote")]:
        expected = [tuple(answer) for answer in said if type(answer).__name__ == kind]
        assert [row[1:] for row in map(tuple, found.tolist())] == expected
    assert book.counts.orders == 20_000
    assert len(answers.trades) == book.counts.trades > 10_000


def test_the_book_says_what_rests_in_it():
    book = OrderBook()
    assert (book.best_bid, book.best_ask) == (None, None)
    stream = orders(count=3)
    stream["side"], stream["price"], stream["volume"] = [2, 1, 2], [500, 510, 505], [7, 8, 9]
    book.match(stream)
    assert (book.best_bid, book.best_ask) == (505, 510)
    assert [(order.price, order.volume) for order in book.bids] == [(505, 9), (500, 7)]
    assert [(order.price, order.volume) for order in book.asks] == [(510, 8)]


def test_two_halves_are_matched_as_the_whole():
    stream = orders(count=5000)
    whole = OrderBook()
    parts = OrderBook()
    whole.match(stream)
    parts.match(stream[:2500])
    parts.match(stream[2500:])
    assert parts.bids == whole.bids
    assert parts.counts == whole.counts


def test_an_array_of_something_else_is_refused():
    with pytest.raises(ValueError, match="orders have the type"):
        OrderBook().match(np.zeros(3, [("id", "u4")]))
    assert len(OrderBook().match(orders(count=0)).trades) == 0


def test_a_record_of_an_order_has_the_message_s_fields():
    assert orders(count=1).dtype.names == ("type", *Order._fields)


@pytest.mark.parametrize("content", [bytes, bytearray, memoryview])
def test_the_content_of_a_tape_is_matched_as_its_orders(content: Callable[[bytes], bytes]):
    stream = orders(count=5000)
    of_orders = OrderBook().match(stream)
    of_content = OrderBook().match(content(stream.tobytes()))
    assert of_content.trades.tolist() == of_orders.trades.tolist()
    assert of_content.confirmations.tolist() == of_orders.confirmations.tolist()


def test_what_is_neither_orders_nor_a_tape_is_refused_with_its_type():
    with pytest.raises(MalformedMessage, match="the type list; allowed are arrays and bytes"):
        OrderBook().match([1, 2, 3])


def test_answers_are_printed_as_their_numbers() -> None:
    answers = OrderBook().match(orders(seed=1, count=5_000))
    assert repr(answers).startswith(f"<Answers: {len(answers.trades):,} trades, ")
    assert len(repr(answers)) < 200
