"""The totals of a book agree with its orders and its trades."""

from __future__ import annotations

import pytest
from order_streams import TinyBook, handled, uniform_orders

from exchange.messages import ASK, BID, Cancel, Trade, decode, encode
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import RestingTotal


def answers_of(book: TinyBook) -> list[bytes]:
    """Return the answers to orders of all kinds, some of which are rejected, and to cancels."""
    orders = [order.tobytes() for order in uniform_orders(3_000, 440, 560)]
    cancels = [encode(Cancel(order_id)) for order_id in range(1, 3_000, 7)]
    return handled(MatchingEngine(book), orders + cancels)


@pytest.mark.parametrize("policy", ["price-time", "exact-price"])
def test_a_book_s_totals_agree_with_its_orders_and_trades(policy: str) -> None:
    book = TinyBook(max_price=550, policy=policy, with_ids=True)
    trades = [trade for trade in map(decode, answers_of(book)) if isinstance(trade, Trade)]
    for side in (ASK, BID):
        orders = book.resting(side)
        total = book.total_resting(side)
        assert total == RestingTotal(len(orders), sum(order.volume for order in orders))
        assert 2 * book.volume_traded(side, total) == sum(trade.volume for trade in trades), "a trade for each side"
