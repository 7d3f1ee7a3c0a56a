"""Each rule of the market by example, of the compiled book and of the reference alike."""

import pytest
from order_streams import Compiled, Reference, all_answers, last_answers

from exchange.messages import ASK, BID, Cancel, Cancelled, Confirmation, Order, Quote, Rejection, Trade

pytestmark = pytest.mark.parametrize("make", [Compiled, Reference])
MOST = 0xFFFF


def ask(id, price, volume=10):
    return Order(id, ASK, price, volume)


def bid(id, price, volume=10):
    return Order(id, BID, price, volume)


def test_an_order_that_meets_nobody_rests_and_is_confirmed_after_the_quote(make):
    book = make()
    assert book.handle(ask(1, 500)) == [Quote(bid=0, ask=500), Confirmation(1)]
    assert book.handle(bid(2, 499)) == [Quote(bid=499, ask=500), Confirmation(2)]
    assert book.resting(ASK) == [(1, 500, 10)]


def test_no_quote_goes_out_unless_a_best_price_changes(make):
    book = make()
    assert last_answers(book, [ask(1, 500), ask(2, 500)]) == [Confirmation(2)]
    assert book.handle(ask(3, 501)) == [Confirmation(3)]


def test_zero_says_no_bid_and_one_above_max_price_no_ask(make):
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


def test_the_best_price_trades_first_with_a_trade_a_level(make):
    resting = [ask(1, 502), ask(2, 500, 1), ask(3, 501, 2), ask(4, 500, 3)]
    assert last_answers(make(), [*resting, bid(5, 501, 50)]) == [
        Trade(2, 500, 1),
        Trade(4, 500, 3),
        Trade(5, 500, 4),
        Trade(3, 501, 2),
        Trade(5, 501, 2),
        Quote(bid=501, ask=502),
    ]


def test_what_is_left_of_an_order_rests_at_its_own_price_last_in_time(make):
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


def test_an_order_does_not_trade_behind_its_own_price(make):
    assert last_answers(make(), [ask(1, 501), bid(2, 500)]) == [Quote(bid=500, ask=501), Confirmation(2)]


def test_the_lowest_and_the_highest_price_trade_like_any_other(make):
    book = make(max_price=3)
    all_answers(book, [ask(1, 3), ask(2, 1), bid(3, 1, 10), bid(4, 3, 10)])
    assert (book.resting(ASK), book.resting(BID)) == ([], [])
    assert last_answers(book, [bid(5, 1), bid(6, 3), ask(7, 1, 20)])[:2] == [Trade(6, 3, 10), Trade(7, 3, 10)]


def test_the_largest_volume_trades_in_one_lots_with_everyone(make):
    book = make(with_ids=True)
    all_answers(book, [ask(id, 500, 1) for id in range(300)])
    answers = book.handle(bid(300, 500, MOST))
    assert answers[-2:] == [Trade(300, 500, 300), Quote(bid=500, ask=1000)]
    assert book.resting(BID) == [(300, 500, MOST - 300)]
    assert book.handle(ask(301, 500, MOST))[:2] == [Trade(300, 500, MOST - 300), Trade(301, 500, MOST - 300)]


class TestExactPrice:
    """The narrower rule: trades at the order's own price only."""

    def test_a_better_price_is_passed_by_and_the_book_may_be_crossed(self, make):
        book = make(policy="exact-price")
        assert last_answers(book, [ask(1, 500), bid(2, 510)]) == [Quote(bid=510, ask=500), Confirmation(2)]

    def test_a_level_behind_the_best_one_trades_without_a_quote(self, make):
        book = make(policy="exact-price")
        answers = last_answers(book, [ask(1, 500), ask(2, 510), bid(3, 510, 10)])
        assert answers == [Trade(2, 510, 10), Trade(3, 510, 10)]

    def test_emptying_the_best_level_moves_the_quote(self, make):
        """The rest of the order stays at its price."""
        book = make(policy="exact-price")
        answers = last_answers(book, [ask(1, 500), ask(2, 510), bid(3, 500, 15)])
        assert answers == [Trade(1, 500, 10), Trade(3, 500, 10), Quote(bid=500, ask=510)]
        assert book.resting(BID) == [(3, 500, 5)]


class TestRejections:
    @pytest.mark.parametrize(
        ("order", "reason"),
        [
            (Order(9, 0, 500, 1), 1),
            (Order(9, 3, 500, 1), 1),
            (Order(9, 255, 500, 1), 1),
            (Order(9, ASK, 0, 1), 2),
            (Order(9, BID, 1000, 1), 2),
            (Order(9, BID, MOST, 1), 2),
            (Order(9, ASK, 500, 0), 3),
            (Order(9, 0, 0, 0), 1),
            (Order(9, ASK, 0, 0), 2),
            (Order(1, ASK, 500, 0), 3),
        ],
    )
    def test_bad_fields_are_rejected_side_before_price_before_volume(self, make, order, reason):
        """They change nothing."""
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), bid(2, 400)])
        assert book.handle(order) == [Rejection(order.id, reason)]
        assert (book.resting(ASK), book.resting(BID)) == ([(1, 500, 10)], [(2, 400, 10)])

    def test_a_full_book_rejects_what_crosses_nothing(self, make):
        book = make(capacity=2)
        all_answers(book, [ask(1, 500), ask(2, 501)])
        assert book.handle(ask(3, 502)) == [Rejection(3, 4)]
        assert book.handle(bid(4, 499)) == [Rejection(4, 4)]

    def test_a_full_book_takes_what_crosses_since_that_ends_or_frees_a_place(self, make):
        book = make(capacity=2)
        all_answers(book, [ask(1, 500), ask(2, 501)])
        assert book.handle(bid(3, 500, 4))[:2] == [Trade(1, 500, 4), Trade(3, 500, 4)]
        assert book.handle(bid(4, 500, 7))[:2] == [Trade(1, 500, 6), Trade(4, 500, 6)]
        assert book.resting(BID) == [(4, 500, 1)]

    def test_a_full_exact_price_book_counts_only_its_own_price_as_crossing(self, make):
        book = make(capacity=1, policy="exact-price")
        assert last_answers(book, [ask(1, 500), bid(2, 501)]) == [Rejection(2, 4)]
        assert book.handle(bid(3, 500))[:1] == [Trade(1, 500, 10)]

    def test_the_id_of_a_resting_order_is_refused_until_that_order_has_ended(self, make):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), bid(1, 500)]) == [Rejection(1, 5)]
        all_answers(book, [bid(2, 500)])
        assert book.handle(ask(1, 500)) == [Quote(bid=0, ask=500), Confirmation(1)]

    def test_a_double_id_is_named_before_a_full_book(self, make):
        assert last_answers(make(with_ids=True, capacity=1), [ask(1, 500), ask(1, 501)]) == [Rejection(1, 5)]

    def test_without_ids_nobody_minds_a_double_one(self, make):
        assert last_answers(make(), [ask(1, 500), ask(1, 500)]) == [Confirmation(1)]


class TestCancels:
    def test_a_cancel_takes_out_what_is_left_of_the_order(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), bid(2, 500, 3), ask(3, 500)])
        assert book.handle(Cancel(1)) == [Cancelled(1, 7)]
        assert book.resting(ASK) == [(3, 500, 10)]

    def test_a_cancel_that_moves_the_best_price_quotes_first(self, make):
        book = make(with_ids=True)
        all_answers(book, [bid(1, 500), bid(2, 300)])
        assert book.handle(Cancel(1)) == [Quote(bid=300, ask=1000), Cancelled(1, 10)]
        assert book.handle(Cancel(2)) == [Quote(bid=0, ask=1000), Cancelled(2, 10)]

    def test_a_cancel_in_the_middle_keeps_the_others_order_in_time(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), ask(2, 500), ask(3, 500), Cancel(2), ask(4, 500)])
        assert [id for id, _, _ in book.resting(ASK)] == [1, 3, 4]

    def test_a_cancelled_order_leaves_its_place_and_its_id(self, make):
        book = make(with_ids=True, capacity=1)
        assert last_answers(book, [ask(1, 500), Cancel(1), ask(1, 501)]) == [Quote(bid=0, ask=501), Confirmation(1)]

    @pytest.mark.parametrize("id", [0, 7, 2**32 - 1])
    def test_an_unknown_order_cannot_be_cancelled(self, make, id):
        assert last_answers(make(with_ids=True), [ask(1, 500), Cancel(id)]) == [Rejection(id, 6)]

    def test_nor_can_one_that_has_ended(self, make):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), bid(2, 500), Cancel(1)]) == [Rejection(1, 6)]
        assert book.handle(Cancel(2)) == [Rejection(2, 6)]

    def test_a_book_without_ids_knows_no_order_to_cancel(self, make):
        assert last_answers(make(), [ask(1, 500), Cancel(1)]) == [Rejection(1, 6)]
