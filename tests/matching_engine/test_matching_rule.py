"""An example for each rule of the market. The compiled book and the reference book both follow the rules."""

import pytest
from order_streams import Compiled, Reference, all_answers, last_answers

from exchange.messages import ASK, BID, Cancel, Cancelled, Confirmation, Order, Quote, Rejection, Trade

pytestmark = pytest.mark.parametrize("make", [Compiled, Reference])
LARGEST_VOLUME = 0xFFFF

# The reasons of rejections, as the specification numbers them.
BAD_SIDE = 1
BAD_PRICE = 2
BAD_VOLUME = 3
BOOK_FULL = 4
DUPLICATE_ID = 5
UNKNOWN_ID = 6


def ask(order_id, price, volume=10):
    return Order(order_id, ASK, price, volume)


def bid(order_id, price, volume=10):
    return Order(order_id, BID, price, volume)


def test_an_order_that_meets_no_other_rests_and_is_confirmed(make):
    book = make()
    assert book.handle(ask(1, 500)) == [Quote(bid=0, ask=500), Confirmation(1)]
    assert book.handle(bid(2, 499)) == [Quote(bid=499, ask=500), Confirmation(2)]
    assert book.resting(ASK) == [(1, 500, 10)]


def test_a_quote_is_sent_only_if_a_best_price_changes(make):
    book = make()
    assert last_answers(book, [ask(1, 500), ask(2, 500)]) == [Confirmation(2)]
    assert book.handle(ask(3, 501)) == [Confirmation(3)]


def test_an_empty_side_is_quoted_as_zero_or_max_price_plus_one(make):
    assert last_answers(make(), [ask(1, 500), bid(2, 500)])[-1] == Quote(bid=0, ask=1000)
    assert make(max_price=65534).handle(bid(1, 65534)) == [Quote(bid=65534, ask=65535), Confirmation(1)]


def test_a_trade_takes_place_at_the_resting_orders_price(make):
    answers = last_answers(make(), [ask(1, 500), bid(2, 510)])
    assert answers == [Trade(1, 500, 10), Trade(2, 500, 10), Quote(bid=0, ask=1000)]
    answers = last_answers(make(), [bid(1, 510), ask(2, 500)])
    assert answers == [Trade(1, 510, 10), Trade(2, 510, 10), Quote(bid=0, ask=1000)]


def test_the_oldest_resting_order_trades_first(make):
    answers = last_answers(make(), [ask(1, 500), ask(2, 500), ask(3, 500), bid(4, 500, 20)])
    assert answers == [Trade(1, 500, 10), Trade(2, 500, 10), Trade(4, 500, 20)]


def test_the_best_price_trades_first(make):
    resting = [ask(1, 502), ask(2, 500, 1), ask(3, 501, 2), ask(4, 500, 3)]
    assert last_answers(make(), [*resting, bid(5, 501, 50)]) == [
        Trade(2, 500, 1),
        Trade(4, 500, 3),
        Trade(5, 500, 4),
        Trade(3, 501, 2),
        Trade(5, 501, 2),
        Quote(bid=501, ask=502),
    ]


def test_the_rest_of_an_order_is_the_youngest_at_its_price(make):
    book = make()
    all_answers(book, [bid(1, 501), bid(2, 500, 4), ask(3, 501, 15)])
    assert book.resting(ASK) == [(3, 501, 5)]
    all_answers(book, [ask(4, 501, 6)])
    assert book.resting(ASK) == [(3, 501, 5), (4, 501, 6)]


def test_a_partly_filled_resting_order_keeps_its_place_in_time(make):
    book = make()
    all_answers(book, [ask(1, 500), ask(2, 500), bid(3, 500, 4)])
    assert book.resting(ASK) == [(1, 500, 6), (2, 500, 10)]
    assert book.handle(bid(4, 500, 7)) == [Trade(1, 500, 6), Trade(2, 500, 1), Trade(4, 500, 7)]


def test_an_order_does_not_trade_at_a_worse_price_than_its_own(make):
    assert last_answers(make(), [ask(1, 501), bid(2, 500)]) == [Quote(bid=500, ask=501), Confirmation(2)]


def test_the_lowest_and_the_highest_price_are_traded(make):
    book = make(max_price=3)
    all_answers(book, [ask(1, 3), ask(2, 1), bid(3, 1, 10), bid(4, 3, 10)])
    assert book.resting(ASK) == []
    assert book.resting(BID) == []
    answers = last_answers(book, [bid(5, 1), bid(6, 3), ask(7, 1, 20)])
    assert answers[:2] == [Trade(6, 3, 10), Trade(7, 3, 10)]


def test_an_order_of_the_largest_volume_trades_with_all_others(make):
    book = make(with_ids=True)
    all_answers(book, [ask(order_id, 500, 1) for order_id in range(300)])
    answers = book.handle(bid(300, 500, LARGEST_VOLUME))
    assert answers[-2:] == [Trade(300, 500, 300), Quote(bid=500, ask=1000)]
    assert book.resting(BID) == [(300, 500, LARGEST_VOLUME - 300)]
    assert book.handle(ask(301, 500, LARGEST_VOLUME))[:2] == [
        Trade(300, 500, LARGEST_VOLUME - 300),
        Trade(301, 500, LARGEST_VOLUME - 300),
    ]


class TestExactPrice:
    """The policy exact-price: an order trades only at its own price."""

    def test_a_better_price_is_not_traded_and_the_book_may_be_crossed(self, make):
        book = make(policy="exact-price")
        assert last_answers(book, [ask(1, 500), bid(2, 510)]) == [Quote(bid=510, ask=500), Confirmation(2)]

    def test_a_level_behind_the_best_one_trades_without_a_quote(self, make):
        book = make(policy="exact-price")
        answers = last_answers(book, [ask(1, 500), ask(2, 510), bid(3, 510, 10)])
        assert answers == [Trade(2, 510, 10), Trade(3, 510, 10)]

    def test_emptying_the_best_level_moves_the_quote(self, make):
        book = make(policy="exact-price")
        answers = last_answers(book, [ask(1, 500), ask(2, 510), bid(3, 500, 15)])
        assert answers == [Trade(1, 500, 10), Trade(3, 500, 10), Quote(bid=500, ask=510)]
        assert book.resting(BID) == [(3, 500, 5)]


class TestRejections:
    @pytest.mark.parametrize(
        ("order", "reason"),
        [
            (Order(9, 0, 500, 1), BAD_SIDE),
            (Order(9, 3, 500, 1), BAD_SIDE),
            (Order(9, 255, 500, 1), BAD_SIDE),
            (Order(9, ASK, 0, 1), BAD_PRICE),
            (Order(9, BID, 1000, 1), BAD_PRICE),
            (Order(9, BID, LARGEST_VOLUME, 1), BAD_PRICE),
            (Order(9, ASK, 500, 0), BAD_VOLUME),
            (Order(9, 0, 0, 0), BAD_SIDE),
            (Order(9, ASK, 0, 0), BAD_PRICE),
            (Order(1, ASK, 500, 0), BAD_VOLUME),
        ],
    )
    def test_a_bad_side_price_or_volume_is_rejected_in_this_order(self, make, order, reason):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), bid(2, 400)])
        assert book.handle(order) == [Rejection(order.id, reason)]
        assert book.resting(ASK) == [(1, 500, 10)]
        assert book.resting(BID) == [(2, 400, 10)]

    def test_a_full_book_rejects_an_order_that_crosses_nothing(self, make):
        book = make(capacity=2)
        all_answers(book, [ask(1, 500), ask(2, 501)])
        assert book.handle(ask(3, 502)) == [Rejection(3, BOOK_FULL)]
        assert book.handle(bid(4, 499)) == [Rejection(4, BOOK_FULL)]

    def test_a_full_book_accepts_an_order_that_crosses(self, make):
        book = make(capacity=2)
        all_answers(book, [ask(1, 500), ask(2, 501)])
        assert book.handle(bid(3, 500, 4))[:2] == [Trade(1, 500, 4), Trade(3, 500, 4)]
        assert book.handle(bid(4, 500, 7))[:2] == [Trade(1, 500, 6), Trade(4, 500, 6)]
        assert book.resting(BID) == [(4, 500, 1)]

    def test_a_full_exact_price_book_rejects_an_order_at_another_price(self, make):
        book = make(capacity=1, policy="exact-price")
        assert last_answers(book, [ask(1, 500), bid(2, 501)]) == [Rejection(2, BOOK_FULL)]
        assert book.handle(bid(3, 500))[:1] == [Trade(1, 500, 10)]

    def test_the_id_of_a_resting_order_is_rejected_until_the_order_ends(self, make):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), bid(1, 500)]) == [Rejection(1, DUPLICATE_ID)]
        all_answers(book, [bid(2, 500)])
        assert book.handle(ask(1, 500)) == [Quote(bid=0, ask=500), Confirmation(1)]

    def test_a_double_id_is_the_reason_even_in_a_full_book(self, make):
        assert last_answers(make(with_ids=True, capacity=1), [ask(1, 500), ask(1, 501)]) == [Rejection(1, DUPLICATE_ID)]

    def test_a_book_without_ids_accepts_a_double_id(self, make):
        assert last_answers(make(), [ask(1, 500), ask(1, 500)]) == [Confirmation(1)]


class TestCancels:
    def test_a_cancel_removes_the_rest_of_the_order(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), bid(2, 500, 3), ask(3, 500)])
        assert book.handle(Cancel(1)) == [Cancelled(1, 7)]
        assert book.resting(ASK) == [(3, 500, 10)]

    def test_a_cancel_that_moves_the_best_price_sends_a_quote(self, make):
        book = make(with_ids=True)
        all_answers(book, [bid(1, 500), bid(2, 300)])
        assert book.handle(Cancel(1)) == [Quote(bid=300, ask=1000), Cancelled(1, 10)]
        assert book.handle(Cancel(2)) == [Quote(bid=0, ask=1000), Cancelled(2, 10)]

    def test_a_cancel_keeps_the_other_orders_in_their_order(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), ask(2, 500), ask(3, 500), Cancel(2), ask(4, 500)])
        assert book.resting(ASK) == [(1, 500, 10), (3, 500, 10), (4, 500, 10)]

    def test_the_place_and_the_id_of_a_cancelled_order_are_free(self, make):
        book = make(with_ids=True, capacity=1)
        assert last_answers(book, [ask(1, 500), Cancel(1), ask(1, 501)]) == [Quote(bid=0, ask=501), Confirmation(1)]

    @pytest.mark.parametrize("order_id", [0, 7, 2**32 - 1])
    def test_an_unknown_order_cannot_be_cancelled(self, make, order_id):
        assert last_answers(make(with_ids=True), [ask(1, 500), Cancel(order_id)]) == [Rejection(order_id, UNKNOWN_ID)]

    def test_an_order_that_has_ended_cannot_be_cancelled(self, make):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), bid(2, 500), Cancel(1)]) == [Rejection(1, UNKNOWN_ID)]
        assert book.handle(Cancel(2)) == [Rejection(2, UNKNOWN_ID)]

    def test_a_book_without_ids_rejects_every_cancel(self, make):
        assert last_answers(make(), [ask(1, 500), Cancel(1)]) == [Rejection(1, UNKNOWN_ID)]
