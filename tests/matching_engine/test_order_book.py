"""The order book as an object: refused settings, growth, and the check of its invariants."""

import pytest
from order_streams import TinyBook, batch_of, handled, uniform_orders

from exchange.messages import ASK, BID, Cancel, Order, Quote, decode, encode
from matching_engine import arena as layout
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
def test_an_impossible_setting_is_refused_with_name_value_and_range(settings, message):
    with pytest.raises(ValueError, match=message):
        OrderBook(**settings)


def test_an_empty_book_has_no_best_price():
    book = OrderBook(max_price=70)
    assert book.best_bid == 0
    assert book.best_ask == 71
    assert book.resting(ASK) == []
    assert book.resting(BID) == []
    check(book)


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_book_that_grows_keeps_its_orders(with_ids):
    book = TinyBook(with_ids=with_ids)
    engine = MatchingEngine(book)
    handled(engine, [encode(Order(number, ASK, 900 - number, 1 + number)) for number in range(100)])
    assert book.capacity == 128
    best_first = reversed(range(100))
    assert book.resting(ASK) == [RestingOrder(number, 900 - number, 1 + number) for number in best_first]
    check(book)


def test_a_bounded_book_never_grows():
    book = OrderBook(capacity=10)
    handled(MatchingEngine(book), [encode(Order(order_id, ASK, 500, 1)) for order_id in range(50)])
    assert book.capacity == 10
    assert len(book.resting(ASK)) == 10
    check(book)


def test_ids_that_share_a_bucket_of_the_index_are_distinguished():
    book = OrderBook(capacity=4, with_ids=True)
    engine = MatchingEngine(book)
    ids = [5, 5 + 16, 5 + 160, 5 + 1600]  # the index has 16 buckets
    handled(engine, [encode(Order(order_id, ASK, 500, 1)) for order_id in ids])
    check(book)
    handled(engine, [encode(Cancel(ids[1])), encode(Cancel(ids[3]))])
    check(book)
    assert [order.id for order in book.resting(ASK)] == [ids[0], ids[2]]


def damage_link(book, place):
    book.records[place + layout.NEXT] = place


def damage_volume(book, place):
    book.records[place + layout.VOLUME] += 1


def damage_zero_volume(book, place):
    book.records[place + layout.VOLUME] = 0


def damage_bitmap(book, place):
    book.arena[layout.BITMAP] ^= 1 << 40


def damage_summary(book, place):
    book.arena[layout.SUMMARY] ^= 1 << 40


def damage_best(book, place):
    book.state[layout.BEST + layout.BID] += 1


def damage_free(book, place):
    book.state[layout.FREE] = layout.NOTHING


def damage_volume_in(book, place):
    book.state[layout.VOLUME_IN] += 1


def damage_id(book, place):
    book.records[place + layout.ID] += 1


def damage_sentinel(book, place):
    book.records[layout.FIRST_LEVEL + layout.VOLUME] = 0


DAMAGES = [
    damage_link,
    damage_volume,
    damage_zero_volume,
    damage_bitmap,
    damage_summary,
    damage_best,
    damage_free,
    damage_volume_in,
    damage_id,
    damage_sentinel,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_check_notices_a_damaged_book(damage):
    book = OrderBook(capacity=300, with_ids=True)
    engine = MatchingEngine(book)
    handled(engine, [frame.tobytes() for frame in uniform_orders(300)])
    check(book)
    damage(book, book.first_order)
    with pytest.raises(BrokenInvariant):
        check(book)


def test_the_check_notices_a_crossed_book():
    book = OrderBook(capacity=9, policy="exact-price")
    handled(MatchingEngine(book), [encode(Order(1, ASK, 500, 1)), encode(Order(2, BID, 501, 1))])
    check(book)
    book.policy = "price-time"
    with pytest.raises(BrokenInvariant, match="not crossed"):
        check(book)


def test_the_next_best_price_is_found_across_any_gap():
    book = OrderBook(max_price=65534, capacity=9)
    prices = [1, 2, 63, 64, 4095, 4096, 40_000, 65_533, 65_534]
    handled(MatchingEngine(book), [encode(Order(price, ASK, price, 1)) for price in prices])
    engine = MatchingEngine(book)
    answers = FrameBatch()
    bids = FrameBatch.of(*(encode(Order(0, BID, 65_534, 1)) for _ in prices))
    engine.handle(bids, answers)
    quotes = [message for message in map(decode, answers) if isinstance(message, Quote)]
    assert [quote.ask for quote in quotes] == [*prices[1:], 65_535]
    check(book)


@pytest.mark.parametrize("max_price", [999, 65534])
def test_a_mirrored_stream_gives_the_mirrored_book(max_price):
    orders = uniform_orders(3000, 1, max_price)
    mirrored_orders = orders.copy()
    mirrored_orders["side"] = ASK + BID - orders["side"]
    mirrored_orders["price"] = max_price + 1 - orders["price"]
    book = OrderBook(max_price)
    mirrored_book = OrderBook(max_price)
    MatchingEngine(book).handle(batch_of(orders), FrameBatch(20_000))
    MatchingEngine(mirrored_book).handle(batch_of(mirrored_orders), FrameBatch(20_000))
    bids = mirrored_book.resting(BID)
    assert book.resting(ASK) == [RestingOrder(bid.id, max_price + 1 - bid.price, bid.volume) for bid in bids]
