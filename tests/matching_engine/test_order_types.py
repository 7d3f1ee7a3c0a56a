"""An example for each rule of order types and replaces, of the compiled book and of the reference book."""

import pytest
from order_streams import Compiled, Reference, all_answers, last_answers

from exchange.messages import (
    ASK,
    BID,
    FILL_OR_KILL,
    IMMEDIATE_OR_CANCEL,
    LIMIT,
    MARKET,
    POST_ONLY,
    Cancelled,
    CancelRequest,
    Confirmation,
    Order,
    Quote,
    Rejection,
    Replaced,
    ReplaceRequest,
    Trade,
    TypedOrder,
)

pytestmark = pytest.mark.parametrize("make", [Compiled, Reference])

# The reasons of rejections, as the specification numbers them.
BAD_PRICE = 2
BAD_VOLUME = 3
BOOK_FULL = 4
UNKNOWN_ID = 6
BAD_TYPE = 7
WOULD_TRADE = 8
NOTHING_TO_TRADE_WITH = 9


def ask(order_id, price, volume=10):
    return Order(order_id, ASK, price, volume)


def bid(order_id, price, volume=10):
    return Order(order_id, BID, price, volume)


def buy(order_type, order_id, price, volume=10):
    return TypedOrder(order_id, BID, price, volume, order_type)


def test_a_typed_limit_order_does_what_an_order_does(make):
    plain = make()
    typed = make()
    orders = [ask(1, 500), bid(2, 499), bid(3, 501, 15), ask(4, 499, 3)]
    for order in orders:
        assert typed.handle(TypedOrder(*order, LIMIT)) == plain.handle(order)
    assert typed.resting(BID) == plain.resting(BID)


@pytest.mark.parametrize("order_type", [0, 6, 255])
def test_an_order_of_an_unknown_type_is_rejected(make, order_type):
    assert make().handle(buy(order_type, 1, 500)) == [Rejection(1, BAD_TYPE)]


class TestMarketOrders:
    def test_a_market_order_trades_at_any_price(self, make):
        book = make()
        all_answers(book, [ask(1, 500), ask(2, 999)])
        assert book.handle(buy(MARKET, 3, 0, 12)) == [
            Trade(1, 500, 10),
            Trade(3, 500, 10),
            Trade(2, 999, 2),
            Trade(3, 999, 2),
            Quote(bid=0, ask=999),
        ]

    def test_the_rest_of_a_market_order_is_cancelled(self, make):
        book = make()
        all_answers(book, [bid(1, 500, 4)])
        assert book.handle(TypedOrder(2, ASK, 0, 10, MARKET)) == [
            Trade(1, 500, 4),
            Trade(2, 500, 4),
            Quote(bid=0, ask=1000),
            Cancelled(2, 6),
        ]
        assert book.resting(ASK) == []

    def test_a_market_order_without_a_counterpart_is_rejected(self, make):
        assert last_answers(make(), [bid(1, 500), buy(MARKET, 2, 0)]) == [Rejection(2, NOTHING_TO_TRADE_WITH)]

    @pytest.mark.parametrize("side", [ASK, BID])
    def test_a_market_order_in_an_empty_book_is_rejected_and_leaves_it_empty(self, make, side):
        book = make()
        assert book.handle(TypedOrder(1, side, 0, 10, MARKET)) == [Rejection(1, NOTHING_TO_TRADE_WITH)]
        assert (book.resting(ASK), book.resting(BID)) == ([], [])

    def test_a_market_order_with_a_price_is_rejected(self, make):
        assert last_answers(make(), [ask(1, 500), buy(MARKET, 2, 500)]) == [Rejection(2, BAD_PRICE)]

    def test_the_exact_price_policy_has_no_market_orders(self, make):
        book = make(policy="exact-price")
        assert last_answers(book, [ask(1, 500), buy(MARKET, 2, 0)]) == [Rejection(2, BAD_TYPE)]


class TestImmediateOrCancel:
    def test_the_volume_that_cannot_trade_at_once_is_cancelled(self, make):
        book = make()
        all_answers(book, [ask(1, 500, 4), ask(2, 502)])
        assert book.handle(buy(IMMEDIATE_OR_CANCEL, 3, 501)) == [
            Trade(1, 500, 4),
            Trade(3, 500, 4),
            Quote(bid=0, ask=502),
            Cancelled(3, 6),
        ]
        assert book.resting(BID) == []

    def test_an_order_that_crosses_nothing_is_cancelled_whole(self, make):
        assert last_answers(make(), [ask(1, 500), buy(IMMEDIATE_OR_CANCEL, 2, 499)]) == [Cancelled(2, 10)]

    def test_a_full_book_accepts_an_order_that_never_rests(self, make):
        book = make(capacity=1)
        assert last_answers(book, [ask(1, 500), buy(IMMEDIATE_OR_CANCEL, 2, 499)]) == [Cancelled(2, 10)]


class TestFillOrKill:
    def test_an_order_that_can_be_filled_completely_trades(self, make):
        book = make()
        all_answers(book, [ask(1, 500, 4), ask(2, 501, 6)])
        assert book.handle(buy(FILL_OR_KILL, 3, 501)) == [
            Trade(1, 500, 4),
            Trade(3, 500, 4),
            Trade(2, 501, 6),
            Trade(3, 501, 6),
            Quote(bid=0, ask=1000),
        ]

    def test_an_order_that_could_be_filled_but_for_one_lot_is_cancelled(self, make):
        book = make()
        all_answers(book, [ask(1, 500, 4), ask(2, 501, 6), ask(3, 502)])
        assert book.handle(buy(FILL_OR_KILL, 4, 501, 11)) == [Cancelled(4, 11)]
        assert book.resting(ASK) == [(1, 500, 4), (2, 501, 6), (3, 502, 10)]

    def test_the_exact_price_policy_counts_only_the_order_s_price(self, make):
        book = make(policy="exact-price")
        all_answers(book, [ask(1, 500, 4), ask(2, 501, 6)])
        assert book.handle(buy(FILL_OR_KILL, 3, 501, 7)) == [Cancelled(3, 7)]
        assert book.handle(buy(FILL_OR_KILL, 4, 501, 6)) == [Trade(2, 501, 6), Trade(4, 501, 6)]


class TestPostOnly:
    def test_an_order_that_would_trade_is_rejected(self, make):
        book = make()
        assert last_answers(book, [ask(1, 500), buy(POST_ONLY, 2, 500)]) == [Rejection(2, WOULD_TRADE)]
        assert book.resting(ASK) == [(1, 500, 10)]

    def test_any_other_order_rests_and_is_confirmed(self, make):
        answers = last_answers(make(), [ask(1, 500), buy(POST_ONLY, 2, 499)])
        assert answers == [Quote(bid=499, ask=500), Confirmation(2)]

    def test_a_full_book_rejects_a_post_only_order(self, make):
        assert last_answers(make(capacity=1), [ask(1, 500), buy(POST_ONLY, 2, 499)]) == [Rejection(2, BOOK_FULL)]


class TestReplaces:
    @pytest.mark.parametrize("volume", [10, 3])
    def test_an_order_without_more_volume_keeps_its_place_in_time(self, make, volume):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), ask(2, 500)])
        assert book.handle(ReplaceRequest(90, 1, 500, volume)) == [Replaced(90, 500, volume)]
        assert book.resting(ASK) == [(1, 500, volume), (2, 500, 10)]

    def test_an_order_with_more_volume_loses_its_place_in_time(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500), ask(2, 500)])
        assert book.handle(ReplaceRequest(90, 1, 500, 11)) == [Replaced(90, 500, 11)]
        assert book.resting(ASK) == [(2, 500, 10), (1, 500, 11)]

    def test_a_new_price_that_is_the_best_one_sends_a_quote(self, make):
        book = make(with_ids=True)
        all_answers(book, [bid(1, 490), bid(2, 495)])
        assert book.handle(ReplaceRequest(90, 1, 496, 5)) == [Quote(bid=496, ask=1000), Replaced(90, 496, 5)]

    def test_a_lone_best_order_that_stays_best_sends_no_quote(self, make):
        """It leaves its price level and comes back, so the best price is the same as before."""
        book = make(with_ids=True)
        assert last_answers(book, [bid(1, 490), ReplaceRequest(90, 1, 490, 20)]) == [Replaced(90, 490, 20)]

    def test_a_new_price_that_crosses_trades_like_a_new_order(self, make):
        book = make(with_ids=True)
        all_answers(book, [ask(1, 500, 4), bid(2, 490)])
        assert book.handle(ReplaceRequest(90, 2, 500, 10)) == [
            Trade(1, 500, 4),
            Trade(2, 500, 4),
            Quote(bid=500, ask=1000),
            Replaced(90, 500, 6),
        ]

    def test_an_order_that_trades_completely_is_replaced_with_volume_zero(self, make):
        book = make(with_ids=True)
        answers = last_answers(book, [ask(1, 500), bid(2, 490), ReplaceRequest(90, 2, 500, 10)])
        assert answers[-1] == Replaced(90, 500, 0)
        assert book.handle(ReplaceRequest(90, 2, 490, 1)) == [Rejection(90, UNKNOWN_ID)]

    @pytest.mark.parametrize(
        ("replace", "reason"),
        [
            (ReplaceRequest(90, 7, 500, 10), UNKNOWN_ID),
            (ReplaceRequest(90, 1, 0, 10), BAD_PRICE),
            (ReplaceRequest(90, 1, 1000, 10), BAD_PRICE),
            (ReplaceRequest(90, 1, 500, 0), BAD_VOLUME),
        ],
    )
    def test_an_impossible_replace_is_rejected_and_changes_nothing(self, make, replace, reason):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), replace]) == [Rejection(replace.id, reason)]
        assert book.resting(ASK) == [(1, 500, 10)]

    def test_a_full_book_accepts_a_replace(self, make):
        book = make(with_ids=True, capacity=1)
        assert last_answers(book, [ask(1, 500), ReplaceRequest(90, 1, 510, 20)]) == [
            Quote(bid=0, ask=510),
            Replaced(90, 510, 20),
        ]

    def test_a_book_without_ids_rejects_every_replace(self, make):
        assert last_answers(make(), [ask(1, 500), ReplaceRequest(90, 1, 500, 5)]) == [Rejection(90, UNKNOWN_ID)]


class TestCancelRequests:
    def test_the_answer_to_a_request_has_the_request_s_id(self, make):
        book = make(with_ids=True)
        all_answers(book, [bid(1, 500), bid(2, 300)])
        assert book.handle(CancelRequest(90, 1)) == [Quote(bid=300, ask=1000), Cancelled(90, 10)]
        assert book.resting(BID) == [(2, 300, 10)]

    def test_a_request_for_an_order_that_has_ended_is_rejected(self, make):
        book = make(with_ids=True)
        assert last_answers(book, [ask(1, 500), bid(2, 500), CancelRequest(90, 1)]) == [Rejection(90, UNKNOWN_ID)]
        assert book.handle(ReplaceRequest(91, 2, 490, 5)) == [Rejection(91, UNKNOWN_ID)]

    def test_a_request_for_an_unknown_order_is_rejected(self, make):
        assert last_answers(make(with_ids=True), [bid(1, 500), CancelRequest(90, 2)]) == [Rejection(90, UNKNOWN_ID)]
        assert last_answers(make(), [bid(1, 500), CancelRequest(90, 1)]) == [Rejection(90, UNKNOWN_ID)]
