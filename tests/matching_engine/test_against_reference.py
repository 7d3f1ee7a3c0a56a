"""The compiled book against the reference, byte for byte, on streams nobody would think of."""

from itertools import chain

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_streams import Reference, TinyBook, handled, packs, settings_of_books, streams

from exchange.messages import ASK, BID, encode
from matching_engine.engine import MatchingEngine
from tests.machine import EXAMPLES
from tests.matching_engine.invariants import check

thorough = settings(max_examples=2 * EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


def expected_records(reference, messages):
    return [[encode(answer) for answer in reference.handle(message)] for message in messages]


@thorough
@given(st.data())
def test_the_same_stream_gives_the_references_answers_byte_for_byte(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    book, reference = TinyBook(**kind), Reference(**kind)
    engine = MatchingEngine(book)
    for message, answers in zip(messages, expected_records(reference, messages), strict=True):
        assert handled(engine, [encode(message)]) == answers
        check(book)
    assert [list(map(tuple, book.resting(side))) for side in (ASK, BID)] == [
        reference.resting(side) for side in (ASK, BID)
    ]
    assert (book.best_bid, book.best_ask) == (reference.best_bid, reference.best_ask)


@thorough
@given(st.data())
def test_batches_and_room_of_any_size_give_the_same_answers(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    batches = data.draw(st.lists(st.integers(1, 9), max_size=20))
    frames = data.draw(st.sampled_from([1, 7, 300, 200_000]))
    book = TinyBook(**kind)
    answers = handled(MatchingEngine(book), [*map(encode, messages)], batches, capacity_frames=frames)
    assert answers == list(chain.from_iterable(expected_records(Reference(**kind), messages)))
    check(book)


@thorough
@given(st.data())
def test_all_answers_to_a_packed_frame_make_one_frame(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=30))
    batches = data.draw(st.lists(st.integers(1, 9), max_size=20))
    book = TinyBook(**kind)
    frames = packs(messages, sizes)
    answers = handled(MatchingEngine(book, packing=5), frames, batches, capacity_frames=data.draw(st.integers(1, 9)))
    records, expected = iter(expected_records(Reference(**kind), messages)), []
    for count in (frame_records(frame) for frame in frames):
        expected.append(b"".join(b"".join(next(records)) for _ in range(count)))
    assert answers == expected
    check(book)


def frame_records(frame):
    """How many orders of 10 bytes and cancels of 5 are in it."""
    count, at = 0, 0
    while at < len(frame):
        at += 10 if frame[at] == 1 else 5
        count += 1
    return count
