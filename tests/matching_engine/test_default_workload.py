"""Facts of the default workload, measured over a million orders."""

import numpy as np
import pytest
from order_streams import batch_of, uniform_orders

from exchange.messages import LAYOUTS, Confirmation, Quote, Trade
from matching_engine.encoding import SLACK_FRAMES
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from tests.matching_engine.invariants import check
from transports.frames import FrameBatch

pytestmark = pytest.mark.xdist_group("default workload")

ORDERS = 1_000_000
ANSWER_BYTES_PER_ORDER = 27
"""Memory for three answers of 9 bytes, which is more than an order gets on average."""


@pytest.fixture(scope="module")
def million():
    """An engine that has matched a million orders; the orders; their answers."""
    engine = MatchingEngine(OrderBook())
    orders = uniform_orders(ORDERS)
    answers = FrameBatch(3 * ORDERS, ANSWER_BYTES_PER_ORDER * ORDERS)
    assert engine.handle(batch_of(orders), answers).next == ORDERS
    return engine, orders, answers


def records(answers, message):
    """Return all answers of this type, in order, as a structured array."""
    starts = answers.offsets[: answers.count]
    layout = LAYOUTS[message]
    starts = starts[answers.buffer[starts] == layout.code]
    bytes_of_records = answers.buffer[starts[:, None] + np.arange(layout.size)]
    return bytes_of_records.view(layout.dtype)[:, 0]


def test_answers_per_order_are_those_of_the_specification(million):
    engine, _, answers = million
    counts = engine.counts
    assert counts.orders == ORDERS
    assert counts.trades / ORDERS == pytest.approx(1.478, abs=0.003)
    assert counts.confirmations / ORDERS == pytest.approx(0.570, abs=0.002)
    assert counts.quotes / ORDERS == pytest.approx(0.383, abs=0.003)
    assert answers.count == counts.trades + counts.confirmations + counts.quotes


def test_a_fifth_of_the_orders_stay_in_the_book(million):
    engine, _, _ = million
    resting = sum(engine.book.total_resting(side).orders for side in (1, 2))
    assert resting / ORDERS == pytest.approx(0.214, abs=0.002)
    check(engine.book)


def test_bought_and_sold_lots_are_equal_and_none_is_lost(million):
    engine, orders, answers = million
    trades = records(answers, Trade)
    side_of_trade = orders["side"][trades["id"].astype(np.int64) - 1]
    for side in (1, 2):
        offered = orders["volume"][orders["side"] == side].sum(dtype=np.int64)
        traded = trades["volume"][side_of_trade == side].sum(dtype=np.int64)
        resting = engine.book.total_resting(side).volume
        assert offered == traded + resting
    volumes = trades["volume"].astype(np.int64)
    assert volumes[side_of_trade == 1].sum() == volumes[side_of_trade == 2].sum()


def test_every_order_gets_its_own_confirmation_or_trade_at_once(million):
    _, orders, answers = million
    by_order = FrameBatch(ORDERS + SLACK_FRAMES, ANSWER_BYTES_PER_ORDER * ORDERS)
    # With a packing above 1, all answers to a frame are one frame; here each order is a frame.
    MatchingEngine(OrderBook(), packing=2).handle(batch_of(orders), by_order)
    assert (by_order.span(0, ORDERS) == answers.span(0, answers.count)).all()

    starts = answers.offsets[: answers.count]
    ends_of_orders = by_order.offsets[1 : ORDERS + 1]
    # The last answer to an order is the last one that begins before the end of the order's frame of answers.
    index_of_last_answer = np.searchsorted(starts, ends_of_orders) - 1
    is_quote = answers.buffer[starts[index_of_last_answer]] == LAYOUTS[Quote].code
    # A quote follows the confirmation, or the trades.
    index_of_order_s_answer = index_of_last_answer - is_quote
    first_bytes = starts[index_of_order_s_answer]
    assert np.isin(answers.buffer[first_bytes], [LAYOUTS[Confirmation].code, LAYOUTS[Trade].code]).all()
    ids = answers.buffer[first_bytes[:, None] + np.arange(1, 5)].view("<u4")[:, 0]  # the id follows the type byte
    assert (ids == orders["id"]).all()


def test_each_quote_differs_from_the_one_before_and_is_never_crossed(million):
    _, _, answers = million
    quotes = records(answers, Quote)
    assert (quotes[1:] != quotes[:-1]).all()
    assert (quotes["bid"] < quotes["ask"]).all()


def test_the_exact_price_rule_gives_fewer_answers():
    engine = MatchingEngine(OrderBook(policy="exact-price"))
    orders = uniform_orders(200_000)
    answers = FrameBatch(600_000, 5_400_000)
    engine.handle(batch_of(orders), answers)
    assert answers.count / len(orders) == pytest.approx(1.98, abs=0.01)
