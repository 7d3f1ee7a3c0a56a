"""Arbitrary bytes, records and requests over many instruments in one arena: the reference's answers, a sane arena."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from order_streams import TinyBook, settings_of_books, streams

from benchmarks.reference_book import ReferenceBooks
from exchange.market_ids import market_id
from exchange.messages import (
    ASK,
    BID,
    INCOMING_TYPES,
    LAYOUTS,
    CancelRequest,
    MalformedMessage,
    Message,
    Order,
    ReplaceRequest,
    decode_all,
    encode,
)
from matching_engine.engine import HandleStop, MatchingEngine
from tests.decoders.damage import damaged
from tests.machine import EXAMPLES
from tests.matching_engine.invariants import check
from transports.frames import FrameBatch

LEAST_MESSAGES = 20
"""In a shorter stream hardly a request names an order that rests."""
MOST_OTHER_FRAMES = 15
MOST_LEVELS_CHECKED_OFTEN = 500
"""With more price levels the arena is checked at the end of a stream only, since a check looks at every level."""


def of_two_gateways(message: Message) -> Message:
    """Return the message with market ids: the orders and requests of even numbers are another gateway's."""
    message = message._replace(id=market_id(1 + message.id % 2, message.id))
    if isinstance(message, CancelRequest | ReplaceRequest):
        message = message._replace(order_id=market_id(1 + message.order_id % 2, message.order_id))
    return message


@st.composite
def records_of_any_fields(draw: st.DrawFn) -> bytes:
    """Draw a record that the engine takes, whose fields are arbitrary bytes."""
    layout = LAYOUTS[draw(st.sampled_from(INCOMING_TYPES))]
    bytes_of_fields = layout.size - 1
    return bytes([layout.code]) + draw(st.binary(min_size=bytes_of_fields, max_size=bytes_of_fields))


@st.composite
def frames(draw: st.DrawFn, messages: list[Message], packing: int) -> list[bytes]:
    """Draw frames of these messages, and among them damaged frames, records of arbitrary fields, arbitrary bytes."""
    records = [encode(message) for message in messages]
    drawn: list[bytes] = []
    while records:
        size = draw(st.integers(1, packing))
        drawn.append(b"".join(records[:size]))
        records = records[size:]
    whole_frames = drawn or [encode(Order(1, ASK, 1, 1))]
    other = st.one_of(records_of_any_fields(), damaged(*whole_frames), st.binary(max_size=24))
    for frame in draw(st.lists(other, max_size=MOST_OTHER_FRAMES)):
        drawn.insert(draw(st.integers(0, len(drawn))), frame)
    return drawn


def messages_in(frame: bytes, packing: int) -> list[Message]:
    """Return the orders and requests of a frame that an engine takes; none for every other frame."""
    try:
        messages = list(decode_all(frame))
    except MalformedMessage:
        return []
    is_too_long = len(messages) > packing
    has_other_records = any(not isinstance(message, INCOMING_TYPES) for message in messages)
    return [] if is_too_long or has_other_records else messages


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_bytes_over_many_instruments_leave_the_arena_sane_and_give_the_answers_of_the_reference(data) -> None:
    kind = data.draw(settings_of_books())
    instruments = data.draw(st.sampled_from([1, 3, 100]))
    is_shared = data.draw(st.booleans())
    packing = data.draw(st.sampled_from([1, 4]))
    messages = data.draw(streams(kind["max_price"], instruments=instruments, least=LEAST_MESSAGES))
    if is_shared:
        messages = [of_two_gateways(message) for message in messages]
    book = TinyBook(**kind, instruments=instruments)
    engine = MatchingEngine(book, packing, is_shared)
    reference = ReferenceBooks(instruments, **kind, is_shared=is_shared)
    for frame in data.draw(frames(messages, packing)):
        answers = FrameBatch()
        expected = [encode(answer) for message in messages_in(frame, packing) for answer in reference.handle(message)]
        stop = engine.handle(FrameBatch.of(frame), answers).stop
        assert stop is (HandleStop.DONE if expected else HandleStop.FOREIGN)
        assert b"".join(answers) == b"".join(expected)
        if instruments * kind["max_price"] <= MOST_LEVELS_CHECKED_OFTEN:
            check(book)
    check(book)
    levels = 0
    volumes = {ASK: 0, BID: 0}
    for instrument, plain_book in enumerate(reference.books):
        assert book.best_prices(instrument) == plain_book.quote()
        for side in (ASK, BID):
            resting = [(order.id, order.price, order.volume) for order in plain_book.resting(side)]
            assert [tuple(order) for order in book.resting(side, instrument)] == resting
            levels += len(plain_book.levels[side])
            volumes[side] += sum(order.volume for order in plain_book.resting(side))
    assert book.occupied_levels == levels
    assert {side: book.total_resting(side).volume for side in (ASK, BID)} == volumes
