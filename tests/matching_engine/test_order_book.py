"""The order book as an object: refused settings, growth, and the check of its invariants."""

import numpy as np
import pytest
from order_streams import TinyBook, batch_of, handled, uniform_orders

from exchange.messages import ASK, BID, LIMIT, Cancel, InstrumentOrder, Order, Quote, decode, encode
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


def oldest_best_ask(book):
    """Return the place of the oldest order at the best ask of the book alone, or of instrument 0."""
    return int(book.records[best_ask_level(book) + layout.NEXT])


def best_ask_level(book, instrument=0):
    place = book.place(instrument)
    best_key = int(book.arena[place.best + layout.ASK])
    return level_at(book, best_key, instrument)


def level_at(book, key, instrument=0):
    """Return the place of the level of an ask's key."""
    return book.place(instrument).first_level + layout.LEVEL_WORDS * 2 * key


def damage_link(book):
    order = oldest_best_ask(book)
    book.records[order + layout.NEXT] = order


def damage_volume(book):
    book.records[oldest_best_ask(book) + layout.VOLUME] += 1


def damage_zero_volume(book):
    book.records[oldest_best_ask(book) + layout.VOLUME] = 0


def damage_bitmap(book):
    book.arena[book.place(0).bitmap] ^= 1 << 40


def damage_summary(book):
    book.arena[book.place(0).summary] ^= 1 << 40


def damage_best(book):
    book.arena[book.place(0).best + layout.BID] += 1


def damage_free(book):
    book.state[layout.FREE] = layout.NOTHING


def damage_volume_in(book):
    book.state[layout.VOLUME_IN] += 1


def damage_id(book):
    book.records[oldest_best_ask(book) + layout.ID] += 1


def damage_sentinel(book):
    """Clear the word that ends a walk along the ring of the first level that is made."""
    first_level = book.place(0).first_level
    first_made = int(np.flatnonzero(book.records[first_level + layout.NEXT :: layout.LEVEL_WORDS])[0])
    book.records[first_level + layout.LEVEL_WORDS * first_made + layout.VOLUME] = 0


def damage_index(book):
    entry = int(book.state[layout.BUCKETS]) + oldest_best_ask(book) // 2
    book.index[entry + layout.LEVEL] += layout.LEVEL_WORDS


def damage_unused_memory(book):
    book.arena[layout.BLOCKS - 1] = 1


def damage_limit(book):
    book.state[layout.LIMIT] += 1


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
    damage_index,
    damage_unused_memory,
    damage_limit,
]


def damage_unmade_level(book):
    book.records[level_at(book, key=1) + layout.PREVIOUS] = layout.FIRST_LEVEL


def damage_by_an_order_in_two_books(book):
    """Put an order into an empty level of another instrument too, at the same price."""
    order = oldest_best_ask(book)
    level = level_at(book, key=1, instrument=1)
    book.records[level + layout.NEXT] = order
    book.records[level + layout.PREVIOUS] = order


def damage_block(book):
    book.state[layout.BLOCK_WORDS] += 8


DAMAGES_OF_SEVERAL_BOOKS = [*DAMAGES, damage_unmade_level, damage_by_an_order_in_two_books, damage_block]


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_check_notices_a_damaged_book(damage):
    book = OrderBook(capacity=300, with_ids=True)
    handled(MatchingEngine(book), [frame.tobytes() for frame in uniform_orders(300)])
    check(book)
    damage(book)
    with pytest.raises(BrokenInvariant):
        check(book)


@pytest.mark.parametrize("damage", DAMAGES_OF_SEVERAL_BOOKS)
def test_the_check_notices_damage_in_books_of_several_instruments(damage):
    book = OrderBook(capacity=300, with_ids=True, instruments=3)
    orders = []
    for order in uniform_orders(300):
        _, order_id, side, price, volume = order.tolist()
        orders.append(InstrumentOrder(order_id, order_id % 3, side, price, volume, LIMIT))
    handled(MatchingEngine(book), [encode(order) for order in orders])
    check(book)
    damage(book)
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
