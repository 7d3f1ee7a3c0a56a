"""The compiled book against the reference book, byte for byte, on generated streams of orders."""

from itertools import chain

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_streams import Reference, TinyBook, handled, packs, settings_of_books, streams

from exchange.messages import ASK, BID, decode_all, encode
from matching_engine.engine import MatchingEngine
from tests.machine import EXAMPLES
from tests.matching_engine.invariants import check

thorough = settings(max_examples=2 * EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


def expected_records(reference, messages):
    """Return the reference's answers to each message, encoded."""
    return [[encode(answer) for answer in reference.handle(message)] for message in messages]


@thorough
@given(st.data())
def test_every_stream_gives_the_same_answers_as_the_reference(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    book = TinyBook(**kind)
    reference = Reference(**kind)
    engine = MatchingEngine(book)
    for message, answers in zip(messages, expected_records(reference, messages), strict=True):
        assert handled(engine, [encode(message)]) == answers
        check(book)
    for side in (ASK, BID):
        assert [tuple(order) for order in book.resting(side)] == reference.resting(side)
    assert book.best_bid == reference.best_bid
    assert book.best_ask == reference.best_ask


@thorough
@given(st.data())
def test_batches_and_room_of_any_size_give_the_same_answers(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    batches = data.draw(st.lists(st.integers(1, 9), max_size=20))
    room_frames = data.draw(st.sampled_from([1, 7, 300, 200_000]))
    book = TinyBook(**kind)
    frames = [encode(message) for message in messages]
    answers = handled(MatchingEngine(book), frames, batches, capacity_frames=room_frames)
    assert answers == list(chain.from_iterable(expected_records(Reference(**kind), messages)))
    check(book)


@thorough
@given(st.data())
def test_all_answers_to_a_packed_frame_make_one_frame(data):
    kind = data.draw(settings_of_books())
    messages = data.draw(streams(kind["max_price"]))
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=30))
    batches = data.draw(st.lists(st.integers(1, 9), max_size=20))
    room_frames = data.draw(st.integers(1, 9))
    book = TinyBook(**kind)
    frames = packs(messages, sizes)
    answers = handled(MatchingEngine(book, packing=5), frames, batches, capacity_frames=room_frames)
    reference = Reference(**kind)
    expected = []
    for frame in frames:
        records = expected_records(reference, decode_all(frame))
        expected.append(b"".join(chain.from_iterable(records)))
    assert answers == expected
    check(book)
