"""Frames of the matching engine: foreign frames, packs, and answers without enough room."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from order_streams import TinyBook, batch_of, handled, uniform_orders

from exchange.messages import (
    ASK,
    BID,
    Cancel,
    Confirmation,
    End,
    Hello,
    Order,
    Quote,
    Rejection,
    Statistics,
    Throughput,
    Trade,
    decode_all,
    encode,
)
from matching_engine import kernels
from matching_engine.engine import EngineCounts, Handled, HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from tests.matching_engine.invariants import check
from transports.frames import FrameBatch

ORDER = encode(Order(1, ASK, 500, 10))
CANCEL = encode(Cancel(1))
FOREIGN = {
    "nothing": b"",
    "hello": encode(Hello(1, 2, 1, 0, 1, 999, 3, 4, 1, 1, 1, 1)),
    "end": encode(End(1, 2, 3, 4)),
    "trade": encode(Trade(1, 500, 1)),
    "ten bytes of throughput": encode(Throughput(1, 2)),
    "five bytes of quote": encode(Quote(1, 2)),
    "statistics": encode(Statistics(b"{}")),
    "junk": b"\xff" * 10,
    "zeros": bytes(10),
    "short order": ORDER[:-1],
    "long order": ORDER + b"\0",
    "short cancel": CANCEL[:-1],
    "long cancel": CANCEL + b"\0",
    "type byte alone": ORDER[:1],
}
foreign = pytest.mark.parametrize("frame", FOREIGN.values(), ids=FOREIGN)


def state_of(book):
    """Return all bytes of the book."""
    return book.arena.tobytes()


@foreign
@pytest.mark.parametrize("packing", [1, 4])
def test_a_foreign_frame_is_reported_and_changes_nothing(frame, packing):
    book = OrderBook(capacity=9)
    answers = FrameBatch()
    engine = MatchingEngine(book, packing)
    before = state_of(book)
    assert engine.handle(FrameBatch.of(frame), answers) == Handled(0, HandleStop.FOREIGN)
    assert state_of(book) == before
    assert answers.count == 0


@foreign
def test_frames_around_a_foreign_one_are_matched(frame):
    engine = MatchingEngine(OrderBook())
    answers = FrameBatch()
    orders = FrameBatch.of(ORDER, frame, ORDER, encode(Order(3, BID, 500, 20)))
    assert engine.handle(orders, answers) == Handled(1, HandleStop.FOREIGN)
    assert engine.handle(orders, answers, first=2) == Handled(4, HandleStop.DONE)
    assert engine.counts == EngineCounts(
        orders=3, trades=3, confirmations=2, quotes=2, rejections=0, cancels=0, cancelled=0
    )


@pytest.mark.parametrize("frame", [frame for frame in FOREIGN.values() if frame])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_pack_with_one_malformed_record_is_foreign_as_a_whole(frame, place):
    records = [ORDER, ORDER]
    records.insert(place, frame)
    book = OrderBook(capacity=9)
    answers = FrameBatch()
    before = state_of(book)
    engine = MatchingEngine(book, packing=9)
    assert engine.handle(FrameBatch.of(b"".join(records)), answers) == Handled(0, HandleStop.FOREIGN)
    assert state_of(book) == before
    assert answers.count == 0


@pytest.mark.parametrize(
    ("packing", "records", "stop"),
    [
        (1, 2, HandleStop.FOREIGN),
        (2, 3, HandleStop.FOREIGN),
        (3, 3, HandleStop.DONE),
        (3, 4, HandleStop.FOREIGN),
    ],
)
def test_a_frame_of_more_records_than_the_packing_is_foreign(packing, records, stop):
    engine = MatchingEngine(OrderBook(), packing)
    assert engine.handle(FrameBatch.of(ORDER * records), FrameBatch()).stop is stop


@given(st.lists(st.binary(max_size=24), max_size=12), st.sampled_from([1, 3]))
def test_arbitrary_frames_never_break_the_book(frames, packing):
    book = TinyBook(with_ids=True)
    answers = FrameBatch()
    engine = MatchingEngine(book, packing)
    orders = FrameBatch.of(*frames)
    first = 0
    while first < len(frames):
        first, stop = engine.handle(orders, answers, first)
        if stop is HandleStop.FOREIGN:
            first += 1
    check(book)


@given(st.lists(st.binary(min_size=9, max_size=9).map(lambda fields: b"\x01" + fields), max_size=30))
def test_orders_with_arbitrary_fields_never_break_the_book(frames):
    book = TinyBook(max_price=65534, with_ids=True)
    handled(MatchingEngine(book), frames)
    check(book)


def test_bad_fields_in_a_pack_are_rejected_and_the_rest_is_matched():
    frame = encode(Order(1, 7, 500, 1)) + ORDER + encode(Cancel(8)) + encode(Order(2, BID, 500, 0))
    (answer,) = handled(MatchingEngine(OrderBook(), packing=4), [frame])
    assert list(decode_all(answer)) == [
        Rejection(1, 1),
        Quote(bid=0, ask=500),
        Confirmation(1),
        Rejection(8, 6),
        Rejection(2, 3),
    ]


@pytest.mark.parametrize("largest_frame", [1, 9, 18, 100, 12_345])
def test_too_large_an_answer_frame_is_split_between_answers(largest_frame):
    asks = [encode(Order(order_id, ASK, 500, 1)) for order_id in range(2000)]
    bid_for_all = encode(Order(2000, BID, 500, 0xFFFF))
    pack = bid_for_all + encode(Cancel(9)) + encode(Order(2001, ASK, 0, 1))
    whole_frames = handled(MatchingEngine(OrderBook(), packing=3), [*asks, pack])
    split_frames = handled(MatchingEngine(OrderBook(), packing=3), [*asks, pack], largest_frame=largest_frame)
    assert len(whole_frames) == 2001
    expected = []
    for frame in whole_frames:
        expected += parts_of(frame, largest_frame)
    assert split_frames == expected


def parts_of(frame, largest_frame):
    """Yield the longest parts of whole answers that are not larger than `largest_frame`, but at least one answer."""
    part = b""
    for record in map(encode, decode_all(frame)):
        if part and len(part) + len(record) > largest_frame:
            yield part
            part = b""
        part += record
    yield part


def test_with_little_room_every_call_matches_at_least_one_frame():
    orders = batch_of(uniform_orders(2000))
    answers = FrameBatch(capacity_frames=400)
    engine = MatchingEngine(OrderBook())
    first = 0
    stops_without_room = 0
    while first < orders.count:
        answers.clear()
        next_frame, stop = engine.handle(orders, answers, first)
        assert next_frame > first
        if stop is HandleStop.ROOM:
            stops_without_room += 1
        first = next_frame
    assert stops_without_room > 10
    assert answers.capacity_frames == 400


@pytest.mark.parametrize("packing", [1, 2])
@pytest.mark.parametrize("room_bytes", [6, 60, 180, 190, 200, 240, 260, 270, 280, 100_000])
@pytest.mark.parametrize("room_frames", [2, 12, 21, 22, 23, 24, 25, 26, 100])
def test_nothing_is_written_beyond_the_room_of_the_answers(packing, room_bytes, room_frames):
    """A bid for ten lots meets ten asks of one lot at ten prices: twenty trades and a quote, the most answers."""
    engine = MatchingEngine(OrderBook(capacity=20), packing)
    handled(engine, [encode(Order(order_id, ASK, 500 + order_id, 1)) for order_id in range(10)])
    answers = FrameBatch(1)
    answers.append(b"before")
    buffer_and_canary = np.full(room_bytes + 500, 0xCA, np.uint8)
    offsets_and_canary = np.full(room_frames + 50, -1)
    answers.buffer = buffer_and_canary[:room_bytes]
    answers.offsets = offsets_and_canary[: room_frames + 1]
    answers.offsets[:2] = 0, len(b"before")

    stop = engine.handle(FrameBatch.of(encode(Order(11, BID, 600, 10))), answers).stop

    assert (buffer_and_canary[room_bytes:] == 0xCA).all()
    assert (offsets_and_canary[room_frames + 1 :] == -1).all()
    if stop is HandleStop.ROOM:
        assert engine.counts.trades == 0
    else:
        assert stop is HandleStop.DONE
        assert engine.counts.trades == 20


def test_answers_are_appended_to_earlier_answers():
    engine = MatchingEngine(OrderBook())
    answers = FrameBatch()
    answers.append(b"before")
    engine.handle(FrameBatch.of(ORDER), answers)
    assert list(answers) == [b"before", encode(Quote(bid=0, ask=500)), encode(Confirmation(1))]


@pytest.mark.parametrize("packing", [1, 2])
def test_an_empty_batch_grows_for_the_answers_to_one_frame(packing):
    engine = MatchingEngine(OrderBook(), packing)
    asks = [encode(Order(order_id, ASK, 500, 1)) for order_id in range(30_000)]
    handled(engine, asks)
    answers = FrameBatch(capacity_frames=3)
    assert engine.handle(FrameBatch.of(encode(Order(0, BID, 500, 0xFFFF))), answers).stop is HandleStop.DONE
    assert sum(len(list(decode_all(frame))) for frame in answers) == 30_000 + 2
    assert answers.used_bytes > FrameBatch(capacity_frames=3).buffer.nbytes
    assert engine.counts.trades == 30_001


def test_a_batch_with_answers_is_not_enlarged_for_the_next_frame():
    engine = MatchingEngine(OrderBook())
    answers = FrameBatch(capacity_frames=20)
    orders = FrameBatch.of(encode(Order(1, ASK, 500, 1)), encode(Order(2, BID, 1, 0xFFFF)))
    assert engine.handle(orders, answers) == Handled(1, HandleStop.ROOM)
    assert answers.capacity_frames == 20


def test_a_batch_that_fills_within_a_pack_grows_for_the_rest_of_the_pack():
    engine = MatchingEngine(OrderBook(), packing=2)
    answers = FrameBatch()
    pack = encode(Order(2, ASK, 501, 1)) + encode(Order(3, BID, 1, 0xFFFF))
    assert engine.handle(FrameBatch.of(ORDER, pack), answers) == Handled(2, HandleStop.DONE)
    assert list(decode_all(answers[1])) == [Confirmation(2), Quote(bid=1, ask=500), Confirmation(3)]
    assert len(answers) == 2


def test_the_counts_agree_with_the_answers():
    messages = [Order(1, ASK, 500, 5), Order(2, BID, 500, 7), Cancel(2), Cancel(2), Order(3, 9, 1, 1)]
    for packing in (1, 5):
        engine = MatchingEngine(OrderBook(with_ids=True), packing)
        handled(engine, [encode(message) for message in messages])
        assert engine.counts == EngineCounts(
            orders=3, trades=2, confirmations=1, quotes=3, rejections=2, cancels=2, cancelled=1
        )


def test_a_first_frame_beyond_the_batch_is_an_error():
    with pytest.raises(IndexError, match="first is 2: the batch holds 1"):
        MatchingEngine(OrderBook()).handle(FrameBatch.of(ORDER), FrameBatch(), first=2)


@pytest.mark.parametrize("packing", [0, 65536])
def test_a_packing_that_does_not_fit_u16_is_refused(packing):
    with pytest.raises(ValueError, match=f"packing is {packing}; allowed is a whole number from 1 to 65,535"):
        MatchingEngine(OrderBook(), packing)


@pytest.mark.parametrize("with_ids", [False, True])
def test_warming_up_leaves_nothing_to_compile_and_the_book_unchanged(with_ids):
    book = TinyBook(with_ids=with_ids)
    engine = MatchingEngine(book)
    before = state_of(book)
    engine.warm()
    assert state_of(book) == before
    compiled = kernels.handler(exact=False, keeps_ids=with_ids, packed=False, shared=False, several=None)
    signatures = len(compiled.signatures)
    handled(engine, [encode(Order(order_id, ASK, 500, 1)) for order_id in range(9)])
    assert signatures > 0
    assert len(compiled.signatures) == signatures
