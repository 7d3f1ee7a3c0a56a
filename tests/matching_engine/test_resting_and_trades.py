"""Totals of a book, and trades copied out of answers, against the plain way to get them."""

from __future__ import annotations

import pytest
from order_streams import TinyBook, handled, uniform_orders

from exchange.messages import ASK, BID, Cancel, Trade, decode, encode
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import Resting


def answers_of(book: TinyBook) -> list[bytes]:
    """To orders of all kinds, rejected ones and cancels among them."""
    orders = [order.tobytes() for order in uniform_orders(3_000, 440, 560)]
    return handled(MatchingEngine(book), orders + [encode(Cancel(id)) for id in range(1, 3_000, 7)])


@pytest.mark.parametrize("policy", ["price-time", "exact-price"])
def test_resting_and_traded_volumes_are_those_of_orders_and_trades(policy: str) -> None:
    book = TinyBook(max_price=550, policy=policy, with_ids=True)
    trades = [trade for trade in map(decode, answers_of(book)) if isinstance(trade, Trade)]
    for side in (ASK, BID):
        orders = book.resting(side)
        left = book.total_resting(side)
        assert left == Resting(len(orders), sum(order.volume for order in orders))
        assert 2 * book.volume_traded(side, left) == sum(trade.volume for trade in trades)
