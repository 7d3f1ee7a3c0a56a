"""Totals of a book, and trades copied out of answers, against the plain way to get them."""

from __future__ import annotations

import numpy as np
import pytest
from order_streams import TinyBook, handled, uniform_orders

from exchange.messages import ASK, BID, Cancel, Trade, decode, encode
from matching_engine.encoding import TradeColumns, copy_trades
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import Resting


def answers_of(book: TinyBook) -> list[bytes]:
    """To orders of all kinds, rejected ones and cancels among them."""
    orders = [order.tobytes() for order in uniform_orders(3_000, 440, 560)]
    return handled(MatchingEngine(book), orders + [encode(Cancel(id)) for id in range(1, 3_000, 7)])


@pytest.mark.parametrize("policy", ["price-time", "exact-price"])
def test_what_rests_and_was_traded_is_what_the_orders_of_the_book_and_the_trades_say(policy: str) -> None:
    book = TinyBook(max_price=550, policy=policy, with_ids=True)
    trades = [trade for trade in map(decode, answers_of(book)) if isinstance(trade, Trade)]
    for side in (ASK, BID):
        orders = book.resting(side)
        left = book.total_resting(side)
        assert left == Resting(len(orders), sum(order.volume for order in orders))
        assert 2 * book.volume_traded(side, left) == sum(trade.volume for trade in trades)


def test_trades_are_copied_out_of_answers_of_every_kind_in_their_order() -> None:
    answers = answers_of(TinyBook(max_price=550, with_ids=True))
    trades = [trade for trade in map(decode, answers) if isinstance(trade, Trade)]
    columns = TradeColumns.of(len(trades) + 1)
    assert copy_trades(np.frombuffer(b"".join(answers), np.uint8), *columns, 1) == len(trades) + 1
    assert [tuple(row) for row in zip(*(column[1:].tolist() for column in columns), strict=True)] == trades
