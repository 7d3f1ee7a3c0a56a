"""The book as an object: what it refuses, how it grows, and that `check` sees what is broken."""

import pytest
from order_streams import TinyBook, batch_of, handled, uniform_orders

from exchange.messages import ASK, BID, Cancel, Order, encode
from matching_engine import arena as a
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook, RestingOrder
from tests.matching_engine.invariants import BrokenInvariant, check
from transports.frames import FrameBatch


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_price": 0}, "max-price is 0; allowed is a whole number from 1 to 65,534"),
        ({"max_price": 65535}, "max-price is 65535; allowed is a whole number from 1 to 65,534"),
        ({"max_price": 99.5}, "max-price is 99.5; allowed is a whole number from 1 to 65,534"),
        ({"policy": "pro-rata"}, "policy is 'pro-rata'; allowed is price-time or exact-price"),
        ({"capacity": 0}, "capacity is 0; allowed is a whole number from 1 to 536,870,912"),
        ({"capacity": -3}, "capacity is -3; allowed is a whole number from 1 to 536,870,912"),
    ],
)
def test_a_nonsensical_setting_is_refused_by_name_value_and_range(settings, message):
    with pytest.raises(ValueError, match=message):
        OrderBook(**settings)


def test_an_empty_book_has_no_best_price():
    book = OrderBook(max_price=70)
    assert (book.best_bid, book.best_ask, book.resting(ASK), book.resting(BID)) == (0, 71, [], [])
    check(book)


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_book_that_grows_holds_what_it_held(with_ids):
    book = TinyBook(with_ids=with_ids)
    engine = MatchingEngine(book)
    handled(engine, [encode(Order(id, ASK, 900 - id, 1 + id)) for id in range(100)])
    assert book.capacity == 128
    assert book.resting(ASK) == [RestingOrder(id, 900 - id, 1 + id) for id in reversed(range(100))]
    check(book)


def test_a_bounded_book_never_grows():
    book = OrderBook(capacity=10)
    handled(MatchingEngine(book), [encode(Order(id, ASK, 500, 1)) for id in range(50)])
    assert (book.capacity, len(book.resting(ASK))) == (10, 10)
    check(book)


def test_ids_far_apart_share_buckets_and_are_told_apart():
    book = OrderBook(capacity=4, with_ids=True)
    engine = MatchingEngine(book)
    ids = [5, 5 + 16, 5 + 160, 5 + 1600]
    handled(engine, [encode(Order(id, ASK, 500, 1)) for id in ids])
    check(book)
    handled(engine, [encode(Cancel(ids[1])), encode(Cancel(ids[3]))])
    check(book)
    assert [order.id for order in book.resting(ASK)] == [ids[0], ids[2]]


def spoil_link(book, place):
    book.records[place + a.NEXT] = place


def spoil_volume(book, place):
    book.records[place + a.VOLUME] += 1


def spoil_zero_volume(book, place):
    book.records[place + a.VOLUME] = 0


def spoil_bitmap(book, place):
    book.arena[a.BITMAP] ^= 1 << 40


def spoil_summary(book, place):
    book.arena[a.SUMMARY] ^= 1 << 40


def spoil_best(book, place):
    book.state[a.BEST + a.BID] += 1


def spoil_free(book, place):
    book.state[a.FREE] = a.NOTHING


def spoil_volume_in(book, place):
    book.state[a.VOLUME_IN] += 1


def spoil_id(book, place):
    book.records[place + a.ID] += 1


def spoil_sentinel(book, place):
    book.records[a.FIRST_LEVEL + a.VOLUME] = 0


SPOILS = [
    spoil_link,
    spoil_volume,
    spoil_zero_volume,
    spoil_bitmap,
    spoil_summary,
    spoil_best,
    spoil_free,
    spoil_volume_in,
    spoil_id,
    spoil_sentinel,
]


@pytest.mark.parametrize("spoil", SPOILS)
def test_check_sees_a_book_that_is_spoilt(spoil):
    book = OrderBook(capacity=300, with_ids=True)
    engine = MatchingEngine(book)
    handled(engine, [frame.tobytes() for frame in uniform_orders(300)])
    check(book)
    spoil(book, book.first_order)
    with pytest.raises(BrokenInvariant):
        check(book)


def test_check_sees_a_crossed_book():
    book = OrderBook(capacity=9, policy="exact-price")
    handled(MatchingEngine(book), [encode(Order(1, ASK, 500, 1)), encode(Order(2, BID, 501, 1))])
    check(book)
    book.policy = "price-time"
    with pytest.raises(BrokenInvariant, match="not crossed"):
        check(book)


def test_a_wide_book_finds_the_next_price_across_any_gap():
    book = OrderBook(max_price=65534, capacity=9)
    prices = [1, 2, 63, 64, 4095, 4096, 40_000, 65_533, 65_534]
    handled(MatchingEngine(book), [encode(Order(price, ASK, price, 1)) for price in prices])
    engine, answers = MatchingEngine(book), FrameBatch()
    bids = FrameBatch.of(*(encode(Order(0, BID, 65_534, 1)) for _ in prices))
    engine.handle(bids, answers)
    quoted = [int.from_bytes(frame[3:], "little") for frame in answers if frame[0] == 4]
    assert quoted == [*prices[1:], 65_535]
    check(book)


def test_a_bid_side_is_the_mirror_of_an_ask_side():
    for max_price in (999, 65534):
        books = OrderBook(max_price), OrderBook(max_price)
        orders = uniform_orders(3000, 1, max_price)
        mirrored = orders.copy()
        mirrored["side"], mirrored["price"] = 3 - orders["side"], max_price + 1 - orders["price"]
        for book, stream in zip(books, (orders, mirrored), strict=True):
            MatchingEngine(book).handle(batch_of(stream), FrameBatch(20_000))
        asks, bids = books[0].resting(ASK), books[1].resting(BID)
        assert asks == [RestingOrder(o.id, max_price + 1 - o.price, o.volume) for o in bids]
