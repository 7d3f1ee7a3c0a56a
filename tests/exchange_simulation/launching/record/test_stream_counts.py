"""Counts from the recorded streams of a gateway that left no result."""

from __future__ import annotations

from pathlib import Path

from exchange.instances import answers_file, orders_file
from exchange.market_ids import LEAST_OPENING_ID
from exchange.messages import ASK, BID, Confirmation, Order, Trade, encode
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.streams import stream_counts


def test_a_trade_of_an_opening_order_answers_no_order_of_the_gateway(tmp_path: Path) -> None:
    orders = [Order(1, BID, 500, 10), Order(2, ASK, 500, 10), Order(3, BID, 500, 10)]
    answers = [Confirmation(1), Confirmation(2), Trade(LEAST_OPENING_ID + 7, 500, 4)]
    (tmp_path / orders_file(1)).write_bytes(b"".join(map(encode, orders)))
    (tmp_path / answers_file(1, 1)).write_bytes(b"".join(map(encode, answers)))
    counts = stream_counts(tmp_path, Lineup.of(RunSettings()))
    assert counts == {1: {"orders_sent": 3, "orders_answered": 2, "answers_received": 3}}
