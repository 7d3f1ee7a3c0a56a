"""Frames in, frames out: what is foreign, what a pack is, what happens when room runs out."""

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
    "hello": encode(Hello(1, 2, 1, 0, 1, 999, 3, 4)),
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
    return book.arena.tobytes()


@foreign
@pytest.mark.parametrize("packing", [1, 4])
def test_a_foreign_frame_is_pointed_out_and_changes_nothing(frame, packing):
    book, answers = OrderBook(capacity=9), FrameBatch()
    engine = MatchingEngine(book, packing)
    before = state_of(book)
    assert engine.handle(FrameBatch.of(frame), answers) == Handled(0, HandleStop.FOREIGN)
    assert (state_of(book), answers.count) == (before, 0)


@foreign
def test_frames_around_a_foreign_one_are_matched(frame):
    engine, answers = MatchingEngine(OrderBook()), FrameBatch()
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
    book, answers = OrderBook(capacity=9), FrameBatch()
    before = state_of(book)
    engine = MatchingEngine(book, packing=9)
    assert engine.handle(FrameBatch.of(b"".join(records)), answers) == Handled(0, HandleStop.FOREIGN)
    assert (state_of(book), answers.count) == (before, 0)


def test_more_records_than_agreed_are_foreign():
    assert MatchingEngine(OrderBook()).handle(FrameBatch.of(ORDER * 2), FrameBatch()).stop is HandleStop.FOREIGN
    for packing, count, stop in [(3, 3, HandleStop.DONE), (3, 4, HandleStop.FOREIGN), (2, 3, HandleStop.FOREIGN)]:
        assert MatchingEngine(OrderBook(), packing).handle(FrameBatch.of(ORDER * count), FrameBatch()).stop is stop


@given(st.lists(st.binary(max_size=24), max_size=12), st.sampled_from([1, 3]))
def test_no_bytes_whatever_break_the_book(frames, packing):
    book, answers = TinyBook(with_ids=True), FrameBatch()
    engine, orders, first = MatchingEngine(book, packing), FrameBatch.of(*frames), 0
    while first < len(frames):
        first, stop = engine.handle(orders, answers, first)
        first += stop is HandleStop.FOREIGN
    check(book)


@given(st.lists(st.binary(min_size=9, max_size=9).map(lambda fields: b"\x01" + fields), max_size=30))
def test_no_order_whatever_breaks_the_book(frames):
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
def test_an_answer_frame_too_large_ends_behind_the_last_answer_that_fits(largest_frame):
    asks = [encode(Order(id, ASK, 500, 1)) for id in range(2000)]
    sweep = encode(Order(2000, BID, 500, 0xFFFF)) + encode(Cancel(9)) + encode(Order(2001, ASK, 0, 1))
    whole = handled(MatchingEngine(OrderBook(), packing=3), [*asks, sweep])
    split = handled(MatchingEngine(OrderBook(), packing=3), [*asks, sweep], largest_frame=largest_frame)
    assert len(whole) == 2001
    assert split == [part for frame in whole for part in parts_of(frame, largest_frame)]


def parts_of(frame, largest_frame):
    part = b""
    for record in map(encode, decode_all(frame)):
        if part and len(part) + len(record) > largest_frame:
            yield part
            part = b""
        part += record
    yield part


def test_little_room_stops_between_frames_and_every_call_gets_on():
    orders, answers = batch_of(uniform_orders(2000)), FrameBatch(capacity_frames=400)
    engine, first, stops = MatchingEngine(OrderBook()), 0, 0
    while first < orders.count:
        answers.clear()
        following, stop = engine.handle(orders, answers, first)
        assert following > first
        stops += stop is HandleStop.ROOM
        first = following
    assert stops > 10
    assert answers.capacity_frames == 400


@pytest.mark.parametrize("packing", [1, 2])
@pytest.mark.parametrize("room_bytes", [6, 60, 180, 190, 200, 240, 260, 270, 280, 100_000])
@pytest.mark.parametrize("room_frames", [2, 12, 21, 22, 23, 24, 25, 26, 100])
def test_nothing_is_written_beyond_the_room_there_is(packing, room_bytes, room_frames):
    """Ten asks of one lot at ten prices: a bid for ten causes twenty trades and a quote, the most it can."""
    engine = MatchingEngine(OrderBook(capacity=20), packing)
    handled(engine, [encode(Order(id, ASK, 500 + id, 1)) for id in range(10)])
    answers = FrameBatch(1)
    answers.append(b"before")
    bytes_and_canary, ends_and_canary = np.full(room_bytes + 500, 0xCA, np.uint8), np.full(room_frames + 50, -1)
    answers.buffer, answers.offsets = bytes_and_canary[:room_bytes], ends_and_canary[: room_frames + 1]
    answers.offsets[:2] = 0, 6
    stop = engine.handle(FrameBatch.of(encode(Order(11, BID, 600, 10))), answers).stop
    assert (bytes_and_canary[room_bytes:] == 0xCA).all()
    assert (ends_and_canary[room_frames + 1 :] == -1).all()
    assert (stop, engine.counts.trades) in [(HandleStop.ROOM, 0), (HandleStop.DONE, 20)]


def test_answers_are_appended_to_those_already_there():
    engine, answers = MatchingEngine(OrderBook()), FrameBatch()
    answers.append(b"before")
    engine.handle(FrameBatch.of(ORDER), answers)
    assert list(answers) == [b"before", encode(Quote(bid=0, ask=500)), encode(Confirmation(1))]


@pytest.mark.parametrize("packing", [1, 2])
def test_an_empty_batch_too_small_for_one_frames_answers_is_enlarged(packing):
    engine = MatchingEngine(OrderBook(), packing)
    asks = [encode(Order(id, ASK, 500, 1)) for id in range(30_000)]
    handled(engine, asks)
    answers = FrameBatch(capacity_frames=3)
    assert engine.handle(FrameBatch.of(encode(Order(0, BID, 500, 0xFFFF))), answers).stop is HandleStop.DONE
    assert sum(len(list(decode_all(frame))) for frame in answers) == 30_000 + 2
    assert answers.used_bytes > FrameBatch(capacity_frames=3).buffer.nbytes
    assert engine.counts.trades == 30_001


def test_a_batch_with_answers_in_it_is_never_enlarged_for_the_next_frame():
    engine, answers = MatchingEngine(OrderBook()), FrameBatch(capacity_frames=20)
    orders = FrameBatch.of(ORDER[:-2] + b"\1\0", encode(Order(2, BID, 1, 0xFFFF)))
    assert engine.handle(orders, answers) == Handled(1, HandleStop.ROOM)
    assert answers.capacity_frames == 20


def test_a_batch_that_fills_within_a_pack_matches_no_record_twice():
    """Room is made for the rest of the pack."""
    engine, answers = MatchingEngine(OrderBook(), packing=2), FrameBatch()
    pack = encode(Order(2, ASK, 501, 1)) + encode(Order(3, BID, 1, 0xFFFF))
    assert engine.handle(FrameBatch.of(ORDER, pack), answers) == Handled(2, HandleStop.DONE)
    assert list(decode_all(answers[1])) == [Confirmation(2), Quote(bid=1, ask=500), Confirmation(3)]
    assert len(answers) == 2


def test_counts_are_those_of_the_answers():
    messages = [Order(1, ASK, 500, 5), Order(2, BID, 500, 7), Cancel(2), Cancel(2), Order(3, 9, 1, 1)]
    for packing in (1, 5):
        engine = MatchingEngine(OrderBook(with_ids=True), packing)
        handled(engine, [encode(message) for message in messages])
        assert engine.counts == EngineCounts(
            orders=3, trades=2, confirmations=1, quotes=3, rejections=2, cancels=2, cancelled=1
        )


def test_a_first_frame_behind_the_last_is_a_mistake_of_the_caller():
    with pytest.raises(IndexError, match="first is 2: the batch holds 1"):
        MatchingEngine(OrderBook()).handle(FrameBatch.of(ORDER), FrameBatch(), first=2)


@pytest.mark.parametrize("packing", [0, 65536])
def test_a_packing_that_does_not_travel_is_refused(packing):
    with pytest.raises(ValueError, match=f"packing is {packing}; allowed is a whole number from 1 to 65,535"):
        MatchingEngine(OrderBook(), packing)


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_warm_engine_compiles_nothing_and_its_book_is_untouched(with_ids):
    book = TinyBook(with_ids=with_ids)
    engine, before = MatchingEngine(book), state_of(book)
    engine.warm()
    assert state_of(book) == before
    compiled = kernels.handler(exact=False, keeps_ids=with_ids, packed=False)
    signatures = len(compiled.signatures)
    handled(engine, [encode(Order(id, ASK, 500, 1)) for id in range(9)])
    assert len(compiled.signatures) == signatures > 0
