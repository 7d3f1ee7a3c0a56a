"""The feed of an engine that publishes: its trades and quotes are those of the book, and the answers stay the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.checksum import StreamChecksum
from exchange.messages import (
    ASK,
    BID,
    LIMIT,
    Cancel,
    CancelRequest,
    DepthLevel,
    InstrumentOrder,
    MarketQuote,
    MarketTrade,
    Message,
    Order,
    Quote,
    ReplaceRequest,
    Snapshot,
    Trade,
    TypedOrder,
    decode,
    decode_all,
    encode,
)
from matching_engine.engine import MatchingEngine
from matching_engine.market_data.feed import LARGEST_FRAME_BYTES, PublishingEngine
from matching_engine.market_data.kernels import DEPTH
from matching_engine.order_book import OrderBook
from tests.matching_engine.order_streams import TinyBook, handled, settings_of_books, streams, uniform_orders
from transports.frames import FrameBatch


def taken(engine: PublishingEngine) -> list[Message]:
    """Return the records that wait in the feed."""
    frames = FrameBatch()
    engine.feed.take(frames)
    return list(chain.from_iterable(decode_all(frame) for frame in frames))


def without_head(messages: Iterable[Message]) -> list[tuple[object, ...]]:
    """Return each record's type and its fields after instrument, sequence and time."""
    return [(type(message), *message[3:]) for message in messages]


def expected(message: Message, answers: list[Message]) -> list[tuple[object, ...]]:
    """Return the market data that one message's answers mean, as `without_head` does.

    An incoming order's own trade ends a price level. Its id is not that of a resting order, which the caller ensures.
    """
    incoming = message.order_id if isinstance(message, ReplaceRequest) else message.id
    published: list[tuple[object, ...]] = []
    for answer in answers:
        if isinstance(answer, Trade) and answer.id != incoming:
            published.append((MarketTrade, answer.price, answer.volume))
        elif isinstance(answer, Quote):
            published.append((MarketQuote, answer.bid, answer.ask))
    return published


@given(settings=settings_of_books(), data=st.data())
def test_the_feed_has_each_fill_of_a_resting_order_and_each_quote(settings, data) -> None:
    messages = data.draw(streams(settings["max_price"]))
    plain = MatchingEngine(TinyBook(**settings))
    publishing = PublishingEngine(TinyBook(**settings))
    seen_ids: set[int] = set()
    sequence = 0
    for message in messages:
        frame = encode(message)
        answers = handled(plain, [frame])
        assert handled(publishing, [frame]) == answers
        records = taken(publishing)
        is_new_id = isinstance(message, ReplaceRequest) or message.id not in seen_ids
        seen_ids.add(message.id)
        if is_new_id:
            assert without_head(records) == expected(message, [decode(answer) for answer in answers])
        assert [record.sequence for record in records] == list(range(sequence + 1, sequence + len(records) + 1))
        sequence += len(records)
    assert publishing.feed.messages == sequence
    assert publishing.counts == plain.counts


@given(sizes=st.lists(st.integers(1, 40), max_size=12), with_ids=st.booleans())
def test_batches_of_orders_publish_the_same_as_single_orders(sizes: list[int], with_ids: bool) -> None:
    orders = uniform_orders(200, 495, 504)
    frames = [order.tobytes() for order in orders]
    one_by_one = PublishingEngine(OrderBook(with_ids=with_ids))
    in_batches = PublishingEngine(OrderBook(with_ids=with_ids))
    handled(one_by_one, frames, [1] * len(frames))
    handled(in_batches, frames, sizes)
    assert without_head(taken(in_batches)) == without_head(taken(one_by_one))


def test_the_volume_published_is_the_volume_traded_on_each_side() -> None:
    book = OrderBook()
    engine = PublishingEngine(book)
    handled(engine, [order.tobytes() for order in uniform_orders(5_000)])
    volume = sum(record.volume for record in taken(engine) if isinstance(record, MarketTrade))
    for side in (ASK, BID):
        assert volume == book.volume_traded(side, book.total_resting(side))


def test_a_trade_with_an_order_of_equal_volume_is_published_once() -> None:
    engine = PublishingEngine(OrderBook())
    orders = [Order(1, ASK, 500, 5), Order(2, ASK, 500, 5), Order(3, BID, 500, 10)]
    handled(engine, [encode(order) for order in orders])
    trades = [record for record in taken(engine) if isinstance(record, MarketTrade)]
    assert without_head(trades) == [(MarketTrade, 500, 5), (MarketTrade, 500, 5)]


def test_frames_hold_whole_records_and_the_checksum_is_that_of_their_bytes() -> None:
    engine = PublishingEngine(OrderBook())
    handled(engine, [order.tobytes() for order in uniform_orders(10_000)])
    frames = FrameBatch()
    engine.feed.take(frames)
    assert frames.count > 1
    checksum = StreamChecksum()
    records = 0
    for frame in frames:
        assert len(frame) <= LARGEST_FRAME_BYTES
        records += len(list(decode_all(frame)))
    checksum.update(frames.span(0, frames.count))
    assert records == engine.feed.messages
    assert checksum.value == engine.feed.checksum.value


def test_a_full_feed_is_emptied_before_the_next_order() -> None:
    engine = PublishingEngine(OrderBook(max_price=2))
    published: list[Message] = []
    engine.empty_feed = lambda: published.extend(taken(engine))
    number = 0
    for _ in range(30):  # sells 65,535 single lots to one order, so that most of the feed is full
        asks = [Order(number + lot, ASK, 1, 1) for lot in range(1, 20_001)]
        number += len(asks) + 1
        handled(engine, [encode(order) for order in (*asks, Order(number, BID, 1, 20_000))])
    assert published, "the feed was never full"
    published += taken(engine)
    assert sum(isinstance(record, MarketTrade) for record in published) == 30 * 20_000
    assert [record.sequence for record in published] == list(range(1, len(published) + 1))


def test_the_time_in_a_record_is_that_of_the_reading_of_its_order() -> None:
    engine = PublishingEngine(OrderBook())
    for number, side in ((1, ASK), (2, BID)):
        handled(engine, [encode(Order(number, side, 500, 5))])
    times = [record.read_ns for record in taken(engine)]
    assert times == sorted(times)
    assert times[0] < times[-1] == engine.feed.read_ns


def best_levels(book: OrderBook, side: int) -> list[tuple[int, int]]:
    """Return price and volume of the best levels of a side."""
    volumes: dict[int, int] = {}
    for order in book.resting(side):
        volumes[order.price] = volumes.get(order.price, 0) + order.volume
    return list(volumes.items())[:DEPTH]


def rebuilt(depth: dict[tuple[int, int], tuple[int, int]], side: int) -> list[tuple[int, int]]:
    """Return the levels of a side that are not empty, best first."""
    return [depth[side, place] for place in range(DEPTH) if depth.get((side, place), (0, 0))[0]]


@pytest.mark.parametrize("with_ids", [False, True])
def test_depth_changes_rebuild_the_ten_best_levels(with_ids: bool) -> None:
    book = OrderBook(with_ids=with_ids)
    engine = PublishingEngine(book, with_depth=True)
    frames = [order.tobytes() for order in uniform_orders(600)]
    depth: dict[tuple[int, int], tuple[int, int]] = {}
    for first in range(0, len(frames), 20):
        handled(engine, frames[first : first + 20])
        for record in taken(engine):
            if isinstance(record, DepthLevel):
                depth[record.side, record.place] = (record.price, record.volume)
        for side in (ASK, BID):
            assert rebuilt(depth, side) == best_levels(book, side)


def test_depth_follows_a_cancel_that_moves_no_best_price() -> None:
    engine = PublishingEngine(OrderBook(with_ids=True), with_depth=True)
    handled(engine, [encode(Order(1, ASK, 500, 5)), encode(Order(2, ASK, 501, 7))])
    taken(engine)
    handled(engine, [encode(Cancel(2))])
    assert without_head(taken(engine)) == [(DepthLevel, ASK, 1, 0, 0)]


def test_a_snapshot_has_the_best_prices_and_the_levels() -> None:
    engine = PublishingEngine(OrderBook(), with_depth=True)
    handled(engine, [encode(Order(1, ASK, 500, 5)), encode(Order(2, BID, 499, 7)), encode(Order(3, BID, 499, 1))])
    last = len(taken(engine))
    snapshot, *levels = decode_all(b"".join(engine.feed.snapshot(9)))
    assert snapshot == Snapshot(0, last, 9, bid=499, ask=500)
    assert without_head(levels) == [(DepthLevel, ASK, 0, 500, 5), (DepthLevel, BID, 0, 499, 8)]


def test_a_typed_order_publishes_its_trades() -> None:
    engine = PublishingEngine(OrderBook())
    handled(engine, [encode(Order(1, ASK, 500, 5)), encode(TypedOrder(2, BID, 0, 3, 2))])
    trades = [record for record in taken(engine) if isinstance(record, MarketTrade)]
    assert without_head(trades) == [(MarketTrade, 500, 3)]


def test_market_data_names_the_instrument_of_each_trade_quote_and_level() -> None:
    engine = PublishingEngine(OrderBook(with_ids=True, instruments=3), with_depth=True)
    ask = InstrumentOrder(id=1, instrument=2, side=ASK, price=500, volume=5, order_type=LIMIT)
    bid = InstrumentOrder(id=2, instrument=2, side=BID, price=500, volume=2, order_type=LIMIT)
    other = InstrumentOrder(id=3, instrument=1, side=BID, price=400, volume=7, order_type=LIMIT)
    batch = FrameBatch.of(*[encode(order) for order in (ask, bid, other)])
    engine.handle(batch, FrameBatch())
    records = taken(engine)
    trades = [(record.instrument, record.volume) for record in records if isinstance(record, MarketTrade)]
    quotes = [(record.instrument, record.bid, record.ask) for record in records if isinstance(record, MarketQuote)]
    levels = [(record.instrument, record.price, record.volume) for record in records if isinstance(record, DepthLevel)]
    assert trades == [(2, 2)]
    assert quotes == [(2, 0, 500), (1, 400, 1000)]
    assert levels == [(1, 400, 7), (2, 500, 3)]


def test_a_cancel_is_published_under_the_instrument_of_its_order() -> None:
    engine = PublishingEngine(OrderBook(with_ids=True, instruments=3))
    ask = InstrumentOrder(id=1, instrument=2, side=ASK, price=500, volume=5, order_type=LIMIT)
    engine.handle(FrameBatch.of(encode(ask), encode(CancelRequest(2, 1))), FrameBatch())
    records = taken(engine)
    assert [(record.instrument, record.ask) for record in records] == [(2, 500), (2, 1000)]


def test_a_snapshot_has_every_instrument_in_parts_that_fit_into_frames() -> None:
    instruments = 5_000
    engine = PublishingEngine(OrderBook(instruments=instruments))
    order = InstrumentOrder(id=1, instrument=4_321, side=BID, price=77, volume=5, order_type=LIMIT)
    engine.handle(FrameBatch.of(encode(order)), FrameBatch())
    engine.feed.take(FrameBatch())
    parts = engine.feed.snapshot(9)
    assert len(parts) > 1
    assert max(len(part) for part in parts) <= LARGEST_FRAME_BYTES
    snapshots = list(decode_all(b"".join(parts)))
    assert [snapshot.instrument for snapshot in snapshots] == list(range(instruments))
    assert [snapshot.instrument for snapshot in snapshots if snapshot.bid == 77] == [4_321]


@pytest.mark.parametrize("packing", [2, 7, 60_000])
def test_packed_orders_publish_what_single_orders_publish(packing: int) -> None:
    """Answers to a pack are those of an engine without a feed, whatever the room of feed and answers."""
    orders = [order.tobytes() for order in uniform_orders(60_000)]
    packs = [b"".join(orders[first : first + packing]) for first in range(0, len(orders), packing)]
    plain = MatchingEngine(OrderBook(), packing)
    publishing = PublishingEngine(OrderBook(), packing=packing)
    singles = PublishingEngine(OrderBook())
    records: list[Message] = []
    publishing.empty_feed = lambda: records.extend(taken(publishing))
    records_of_singles: list[Message] = []
    singles.empty_feed = lambda: records_of_singles.extend(taken(singles))
    assert handled(publishing, packs) == handled(plain, packs)
    handled(singles, orders)
    records += taken(publishing)
    records_of_singles += taken(singles)
    assert without_head(records) == without_head(records_of_singles)
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))  # type: ignore[union-attr]
